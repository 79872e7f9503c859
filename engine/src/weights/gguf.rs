//! GGUF files of the `llama` architecture, dequantised to F32.
//!
//! GGUF stores the rows of the query and key projections of a llama in interleaved rotary order: row 2i + j of a head is
//! row i + j·head_dim/2 of the original. They are put back, so that one rotation serves every file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, Value};

use super::{LayerPart, Part, TensorSource, finite};
use crate::config::{ModelConfig, RopeScaling};
use crate::error::ModelError;

const ROPE_DIVISORS: &str = "rope_freqs.weight";

pub(super) struct GgufSource {
    file: PathBuf,
    reader: BufReader<File>,
    content: Content,
    /// Of a query or key head, set by `config`.
    head_dim: usize,
}

impl GgufSource {
    pub(super) fn open(file: &Path) -> Result<Self, ModelError> {
        let handle = File::open(file).map_err(|source| ModelError::Read {
            file: file.to_path_buf(),
            source,
        })?;
        let mut reader = BufReader::new(handle);
        let content = Content::read(&mut reader).map_err(|e| ModelError::Format {
            file: file.to_path_buf(),
            reason: format!("not a readable GGUF file: {e}"),
        })?;
        Ok(Self {
            file: file.to_path_buf(),
            reader,
            content,
            head_dim: 0,
        })
    }

    /// The model's shape from the file's metadata.
    pub(super) fn config(&mut self) -> Result<ModelConfig, ModelError> {
        let architecture = match self.content.metadata.get("general.architecture") {
            Some(Value::String(name)) => name.clone(),
            _ => "none named".into(),
        };
        if architecture != "llama" {
            return Err(ModelError::Architecture {
                file: self.file.clone(),
                seen: architecture,
                supported: "llama",
            });
        }
        let hidden = self.need("llama.embedding_length")?;
        let n_heads = self.need("llama.attention.head_count")?;
        let head_dim = match self.count("llama.attention.key_length")? {
            Some(head_dim) => head_dim,
            None => hidden.checked_div(n_heads).unwrap_or(0),
        };
        for key in ["llama.rope.dimension_count", "llama.attention.value_length"] {
            if let Some(seen) = self.count(key)?.filter(|&n| n != head_dim) {
                return Err(self.field(key, seen, &format!("the head size {head_dim}")));
            }
        }
        if let Some(n) = self.count("llama.expert_count")?.filter(|&n| n > 0) {
            return Err(self.field(
                "llama.expert_count",
                n,
                "0: mixtures of experts are not supported",
            ));
        }
        let vocab = self
            .content
            .tensor_infos
            .get("token_embd.weight")
            .and_then(|t| t.shape.dims().first().copied());
        let vocab = match vocab {
            Some(vocab) => vocab,
            None => self.need("llama.vocab_size")?,
        };
        let config = ModelConfig {
            architecture,
            vocab,
            hidden,
            ffn: self.need("llama.feed_forward_length")?,
            n_layers: self.need("llama.block_count")?,
            n_heads,
            n_kv_heads: self
                .count("llama.attention.head_count_kv")?
                .unwrap_or(n_heads),
            head_dim,
            context_tok: self.need("llama.context_length")?,
            rms_eps: self
                .number("llama.attention.layer_norm_rms_epsilon")?
                .unwrap_or(1e-5),
            rope_theta: self.number("llama.rope.freq_base")?.unwrap_or(10_000.0),
            rope_scaling: self.rope_scaling(head_dim)?,
            qkv_bias: false,
            qk_norm: false,
            tied: !self.content.tensor_infos.contains_key("output.weight"),
            bos: self.token("tokenizer.ggml.bos_token_id")?,
            eos: self
                .token("tokenizer.ggml.eos_token_id")?
                .into_iter()
                .collect(),
        };
        self.head_dim = head_dim;
        config.check(&self.file)
    }

    fn rope_scaling(&mut self, head_dim: usize) -> Result<RopeScaling, ModelError> {
        if self.content.tensor_infos.contains_key(ROPE_DIVISORS) {
            let divisors = self.dequantise(ROPE_DIVISORS, &[head_dim / 2])?;
            return Ok(RopeScaling::Divisors(divisors));
        }
        let key = "llama.rope.scaling.type";
        match self.content.metadata.get(key) {
            None => Ok(RopeScaling::None),
            Some(Value::String(kind)) if kind == "none" => Ok(RopeScaling::None),
            Some(Value::String(kind)) if kind == "linear" => {
                let factor = self.number("llama.rope.scaling.factor")?;
                let missing = || self.field("llama.rope.scaling.factor", "missing", "a number");
                Ok(RopeScaling::Linear {
                    factor: factor.ok_or_else(missing)?,
                })
            }
            Some(other) => Err(self.field(
                key,
                format!("{other:?}"),
                "none, linear, or a rope_freqs.weight tensor",
            )),
        }
    }

    fn field(&self, field: &str, seen: impl ToString, allowed: &str) -> ModelError {
        ModelError::Field {
            file: self.file.clone(),
            field: field.into(),
            seen: seen.to_string(),
            allowed: allowed.into(),
        }
    }

    fn need(&self, key: &str) -> Result<usize, ModelError> {
        self.count(key)?
            .ok_or_else(|| self.field(key, "missing", "a whole number"))
    }

    fn count(&self, key: &str) -> Result<Option<usize>, ModelError> {
        let value = match self.content.metadata.get(key) {
            None => return Ok(None),
            Some(Value::U8(v)) => Some(*v as u64),
            Some(Value::U16(v)) => Some(*v as u64),
            Some(Value::U32(v)) => Some(*v as u64),
            Some(Value::U64(v)) => Some(*v),
            Some(Value::I32(v)) => u64::try_from(*v).ok(),
            Some(Value::I64(v)) => u64::try_from(*v).ok(),
            Some(_) => None,
        };
        match value.and_then(|v| usize::try_from(v).ok()) {
            Some(value) => Ok(Some(value)),
            None => Err(self.field(
                key,
                format!("{:?}", self.content.metadata[key]),
                "a whole number",
            )),
        }
    }

    fn token(&self, key: &str) -> Result<Option<u32>, ModelError> {
        let id = self.count(key)?;
        id.map(|id| u32::try_from(id).map_err(|_| self.field(key, id, "a token id")))
            .transpose()
    }

    fn number(&self, key: &str) -> Result<Option<f64>, ModelError> {
        match self.content.metadata.get(key) {
            None => Ok(None),
            Some(Value::F32(v)) => Ok(Some(*v as f64)),
            Some(Value::F64(v)) => Ok(Some(*v)),
            Some(other) => Err(self.field(key, format!("{other:?}"), "a number")),
        }
    }

    fn dequantise(&mut self, tensor: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let Some(info) = self.content.tensor_infos.get(tensor) else {
            return Err(ModelError::Missing {
                file: self.file.clone(),
                tensor: tensor.into(),
                wanted: shape.to_vec(),
            });
        };
        if info.shape.dims() != shape {
            return Err(ModelError::Shape {
                file: self.file.clone(),
                tensor: tensor.into(),
                seen: info.shape.dims().to_vec(),
                wanted: shape.to_vec(),
            });
        }
        let read = self.content.tensor(&mut self.reader, tensor, &Device::Cpu);
        let dense = read
            .and_then(|quantised| quantised.dequantize(&Device::Cpu))
            .and_then(|dense| dense.flatten_all()?.to_vec1::<f32>())
            .map_err(|e| ModelError::Tensor {
                file: self.file.clone(),
                tensor: tensor.into(),
                reason: format!("cannot be read: {e}"),
            })?;
        finite(&self.file, tensor, dense)
    }
}

impl TensorSource for GgufSource {
    fn read(&mut self, part: Part, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let stored = self.dequantise(&part.gguf_name(), shape)?;
        match part {
            Part::Layer(_, LayerPart::Q | LayerPart::K) => {
                Ok(half_split_rows(&stored, shape[1], self.head_dim))
            }
            _ => Ok(stored),
        }
    }

    fn refuse_others(&self, wanted: &[Part]) -> Result<(), ModelError> {
        let mut wanted: BTreeSet<String> = wanted.iter().map(|p| p.gguf_name()).collect();
        wanted.insert(ROPE_DIVISORS.into());
        let others: BTreeSet<&String> = self
            .content
            .tensor_infos
            .keys()
            .filter(|name| !wanted.contains(*name))
            .collect();
        match others.first() {
            Some(name) => Err(ModelError::Unexpected {
                file: self.file.clone(),
                tensor: name.to_string(),
            }),
            None => Ok(()),
        }
    }
}

/// Rows of each head from interleaved to half-split rotary order.
fn half_split_rows(stored: &[f32], n_in: usize, head_dim: usize) -> Vec<f32> {
    let mut rows = Vec::with_capacity(stored.len());
    for head in stored.chunks_exact(head_dim * n_in) {
        for half in 0..2 {
            for i in 0..head_dim / 2 {
                rows.extend_from_slice(&head[(2 * i + half) * n_in..][..n_in]);
            }
        }
    }
    rows
}

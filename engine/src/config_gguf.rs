//! The shape of a model from the metadata of a GGUF file.

use std::path::Path;

use crate::config::{ModelConfig, RopeScaling};
use crate::error::ModelError;
use crate::gguf::{Gguf, Value};

/// The tensor that holds a divisor for each rotary frequency.
pub(crate) const ROPE_DIVISORS: &str = "rope_freqs.weight";
/// Mistral's files call themselves llama.
const SUPPORTED: [&str; 3] = ["llama", "qwen2", "qwen3"];
const SUPPORTED_NAMES: &str = "llama (mistral too), qwen2, qwen3";

impl ModelConfig {
    /// Reads the keys of the file's architecture. Divisors of the rotary frequencies are a tensor, which the caller
    /// reads; with them, `rope_scaling` is `None` here.
    pub(crate) fn from_gguf(gguf: &Gguf, file: &Path) -> Result<Self, ModelError> {
        let named = gguf.metadata.get("general.architecture");
        let seen = named.and_then(Value::as_text).unwrap_or("none named");
        let Some(architecture) = SUPPORTED.into_iter().find(|known| *known == seen) else {
            return Err(ModelError::Architecture {
                file: file.to_path_buf(),
                seen: seen.to_owned(),
                supported: SUPPORTED_NAMES,
            });
        };
        let keys = Keys {
            gguf,
            file,
            architecture,
        };
        let hidden = keys.need("embedding_length")?;
        let n_heads = keys.need("attention.head_count")?;
        let head_dim = match keys.count("attention.key_length")? {
            Some(head_dim) => head_dim,
            None => hidden.checked_div(n_heads).unwrap_or(0),
        };
        for key in ["rope.dimension_count", "attention.value_length"] {
            if let Some(seen) = keys.count(key)?.filter(|&n| n != head_dim) {
                return Err(keys.refuse(key, seen, &format!("the head size {head_dim}")));
            }
        }
        if let Some(n) = keys.count("expert_count")?.filter(|&n| n > 0) {
            let allowed = "0: mixtures of experts are not supported";
            return Err(keys.refuse("expert_count", n, allowed));
        }
        let context_tok = keys.need("context_length")?;
        let window = keys.count("attention.sliding_window")?;
        if let Some(window) = window.filter(|&window| window > 0 && window < context_tok) {
            let allowed = format!(
                "0, or at least the context of {context_tok} tokens: windowed attention is not supported"
            );
            return Err(keys.refuse("attention.sliding_window", window, &allowed));
        }
        let table = gguf.tensors.get("token_embd.weight");
        let vocab = match table.and_then(|table| table.shape.first()) {
            Some(&vocab) => vocab,
            None => keys.need("vocab_size")?,
        };
        let mut eos = Vec::new();
        for key in ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"] {
            eos.extend(keys.token(key)?.filter(|id| !eos.contains(id)));
        }
        let epsilon = keys.number("attention.layer_norm_rms_epsilon")?;
        Ok(ModelConfig {
            architecture: architecture.to_owned(),
            vocab,
            hidden,
            ffn: keys.need("feed_forward_length")?,
            n_layers: keys.need("block_count")?,
            n_heads,
            n_kv_heads: keys.count("attention.head_count_kv")?.unwrap_or(n_heads),
            head_dim,
            context_tok,
            rms_eps: epsilon.unwrap_or(1e-5),
            rope_theta: keys.number("rope.freq_base")?.unwrap_or(10_000.0),
            rope_scaling: keys.rope_scaling()?,
            qkv_bias: architecture == "qwen2",
            qk_norm: architecture == "qwen3",
            tied: !gguf.tensors.contains_key("output.weight"),
            bos: keys.token("tokenizer.ggml.bos_token_id")?,
            eos,
        })
    }
}

/// The metadata, its keys named without the architecture in front.
struct Keys<'a> {
    gguf: &'a Gguf,
    file: &'a Path,
    architecture: &'static str,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        match key.starts_with("tokenizer.") {
            true => key.to_owned(),
            false => format!("{}.{key}", self.architecture),
        }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.gguf.metadata.get(&self.name(key))
    }

    fn refuse(&self, key: &str, seen: impl ToString, allowed: &str) -> ModelError {
        ModelError::Field {
            file: self.file.to_path_buf(),
            field: self.name(key),
            seen: seen.to_string(),
            allowed: allowed.into(),
        }
    }

    fn need(&self, key: &str) -> Result<usize, ModelError> {
        let missing = || self.refuse(key, "missing", "a whole number");
        self.count(key)?.ok_or_else(missing)
    }

    fn count(&self, key: &str) -> Result<Option<usize>, ModelError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.as_u64().and_then(|v| usize::try_from(v).ok()) {
            Some(count) => Ok(Some(count)),
            None => Err(self.refuse(key, value.describe(), "a whole number")),
        }
    }

    fn token(&self, key: &str) -> Result<Option<u32>, ModelError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.as_u64().and_then(|v| u32::try_from(v).ok()) {
            Some(id) => Ok(Some(id)),
            None => Err(self.refuse(key, value.describe(), "a token id")),
        }
    }

    fn number(&self, key: &str) -> Result<Option<f64>, ModelError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) => Ok(Some(number)),
            None => Err(self.refuse(key, value.describe(), "a number")),
        }
    }

    fn rope_scaling(&self) -> Result<RopeScaling, ModelError> {
        const TYPE: &str = "rope.scaling.type";
        const FACTOR: &str = "rope.scaling.factor";
        if self.gguf.tensors.contains_key(ROPE_DIVISORS) {
            return Ok(RopeScaling::None);
        }
        let Some(value) = self.get(TYPE) else {
            return Ok(RopeScaling::None);
        };
        match value.as_text() {
            Some("none") => Ok(RopeScaling::None),
            Some("linear") => {
                let missing = || self.refuse(FACTOR, "missing", "a number");
                let factor = self.number(FACTOR)?.ok_or_else(missing)?;
                Ok(RopeScaling::Linear { factor })
            }
            _ => {
                let allowed = "none, linear, or a rope_freqs.weight tensor";
                Err(self.refuse(TYPE, value.describe(), allowed))
            }
        }
    }
}

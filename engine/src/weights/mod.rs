//! A model's weights in memory, checked tensor by tensor against its configuration.

mod gguf;
mod names;
mod safetensors;

use std::path::Path;

use etime_kernels::cpu::{MatrixPart, PackedMatrix};

use crate::config::ModelConfig;
use crate::error::ModelError;
pub(crate) use names::{LayerPart, Part};

/// Where tensors come from. Names and storage differ; shapes are `[out, in]`, rows of queries and keys in half-split
/// rotary order.
pub(crate) trait TensorSource {
    /// The tensor as F32, if it has this shape.
    fn read(&mut self, part: Part, shape: &[usize]) -> Result<Vec<f32>, ModelError>;

    /// An error for a tensor that `wanted` does not name and that no loader may ignore.
    fn refuse_others(&self, wanted: &[Part]) -> Result<(), ModelError>;
}

/// Refuses a tensor with a number that no product survives.
fn finite(file: &Path, tensor: &str, values: Vec<f32>) -> Result<Vec<f32>, ModelError> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(values),
        Some(index) => Err(ModelError::Tensor {
            file: file.to_path_buf(),
            tensor: tensor.into(),
            reason: format!("element {index} is {}, not a finite number", values[index]),
        }),
    }
}

/// One layer, projections of the same input stacked along their outputs.
#[derive(Debug)]
pub(crate) struct LayerWeights {
    pub attn_norm: Vec<f32>,
    /// Queries, keys, values.
    pub qkv: PackedMatrix,
    pub qkv_bias: Option<Vec<f32>>,
    /// Norms of a query head and of a key head.
    pub qk_norm: Option<(Vec<f32>, Vec<f32>)>,
    pub attn_out: PackedMatrix,
    pub ffn_norm: Vec<f32>,
    /// Gate, up.
    pub gate_up: PackedMatrix,
    pub down: PackedMatrix,
}

/// All weights of a model.
#[derive(Debug)]
pub(crate) struct Weights {
    /// `[vocab][hidden]`; `None` where the head serves for both.
    pub embed: Option<Vec<f32>>,
    pub layers: Vec<LayerWeights>,
    pub norm: Vec<f32>,
    pub head: PackedMatrix,
}

impl Weights {
    pub(crate) fn load(
        config: &ModelConfig,
        source: &mut dyn TensorSource,
    ) -> Result<Self, ModelError> {
        source.refuse_others(&names::parts(config))?;
        let (vocab, hidden) = (config.vocab, config.hidden);
        let embed = source.read(Part::Embed, &[vocab, hidden])?;
        let layers = (0..config.n_layers).map(|layer| load_layer(config, source, layer));
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        let norm = source.read(Part::Norm, &[hidden])?;
        if config.tied {
            let head = stack(&[&embed], hidden)?;
            return Ok(Self {
                embed: None,
                layers,
                norm,
                head,
            });
        }
        let head = source.read(Part::Head, &[vocab, hidden])?;
        let head = stack(&[&head], hidden)?;
        Ok(Self {
            embed: Some(embed),
            layers,
            norm,
            head,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        let matrices = |l: &LayerWeights| {
            l.qkv.bytes() + l.attn_out.bytes() + l.gate_up.bytes() + l.down.bytes()
        };
        let layers: usize = self.layers.iter().map(matrices).sum();
        let embed = self.embed.as_deref().map_or(0, size_of_val);
        (layers + embed + self.head.bytes()) as u64
    }
}

fn load_layer(
    config: &ModelConfig,
    source: &mut dyn TensorSource,
    layer: usize,
) -> Result<LayerWeights, ModelError> {
    use LayerPart::*;
    let mut get = |part, shape: &[usize]| source.read(Part::Layer(layer, part), shape);
    let (hidden, ffn, hd) = (config.hidden, config.ffn, config.head_dim);
    let (q_out, kv_out) = (config.n_heads * hd, config.n_kv_heads * hd);
    let attn_norm = get(AttnNorm, &[hidden])?;
    let q = get(Q, &[q_out, hidden])?;
    let k = get(K, &[kv_out, hidden])?;
    let v = get(V, &[kv_out, hidden])?;
    let qkv_bias = match config.qkv_bias {
        true => Some(
            [
                get(QBias, &[q_out])?,
                get(KBias, &[kv_out])?,
                get(VBias, &[kv_out])?,
            ]
            .concat(),
        ),
        false => None,
    };
    let qk_norm = match config.qk_norm {
        true => Some((get(QNorm, &[hd])?, get(KNorm, &[hd])?)),
        false => None,
    };
    let attn_out = get(AttnOut, &[hidden, q_out])?;
    let ffn_norm = get(FfnNorm, &[hidden])?;
    let gate = get(Gate, &[ffn, hidden])?;
    let up = get(Up, &[ffn, hidden])?;
    let down = get(Down, &[hidden, ffn])?;
    Ok(LayerWeights {
        attn_norm,
        qkv: stack(&[&q, &k, &v], hidden)?,
        qkv_bias,
        qk_norm,
        attn_out: stack(&[&attn_out], q_out)?,
        ffn_norm,
        gate_up: stack(&[&gate, &up], hidden)?,
        down: stack(&[&down], ffn)?,
    })
}

/// A directory with `config.json` and `model.safetensors`, whole or sharded.
pub(crate) fn load_directory(directory: &Path) -> Result<(ModelConfig, Weights), ModelError> {
    let file = directory.join("config.json");
    let json = std::fs::read(&file).map_err(|source| ModelError::Read {
        file: file.clone(),
        source,
    })?;
    let config = ModelConfig::from_hf_json(&json, &file)?;
    let mut source = safetensors::Shards::open(directory)?;
    let weights = Weights::load(&config, &mut source)?;
    Ok((config, weights))
}

/// The same from the bytes of `config.json` and `model.safetensors`; `name` stands for the files in errors.
pub(crate) fn load_bytes(
    name: &str,
    config_json: &[u8],
    safetensors: &[u8],
) -> Result<(ModelConfig, Weights), ModelError> {
    let config = ModelConfig::from_hf_json(config_json, &Path::new(name).join("config.json"))?;
    let mut source =
        safetensors::Shards::from_bytes(&Path::new(name).join("model.safetensors"), safetensors)?;
    let weights = Weights::load(&config, &mut source)?;
    Ok((config, weights))
}

/// A GGUF file of the `llama` architecture, dequantised to F32.
pub(crate) fn load_gguf(file: &Path) -> Result<(ModelConfig, Weights), ModelError> {
    let mut source = gguf::GgufSource::open(file)?;
    let config = source.config()?;
    let weights = Weights::load(&config, &mut source)?;
    Ok((config, weights))
}

fn stack(parts: &[&[f32]], n_in: usize) -> Result<PackedMatrix, ModelError> {
    let parts: Vec<MatrixPart> = parts.iter().map(|part| MatrixPart::F32(part)).collect();
    Ok(PackedMatrix::stack(&parts, n_in)?)
}

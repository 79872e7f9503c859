//! A model's weights in memory, checked tensor by tensor against its configuration.

mod data;
mod gguf;
mod holdings;
mod names;
mod safetensors;

use std::io::{Read, Seek};
use std::path::Path;

use etime_kernels::cpu::{MatrixPart, PackedMatrix};

use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::gguf::TensorType;
use crate::settings::WeightStorage;
use data::Held;

pub(crate) use data::TensorData;
pub use holdings::Holdings;
pub(crate) use names::{LayerPart, Part};

/// Where tensors come from. Names and storage differ; shapes are `[out, in]`, rows of queries and keys in half-split
/// rotary order.
pub(crate) trait TensorSource {
    /// What the tensor is stored as; `None` where it is missing or of a type that no model uses.
    fn stored(&self, part: Part) -> Option<TensorType>;

    /// A matrix, if it has this shape.
    fn matrix(
        &mut self,
        part: Part,
        shape: [usize; 2],
        held: Held,
    ) -> Result<TensorData, ModelError>;

    /// A norm or a bias, if it has this length.
    fn vector(&mut self, part: Part, len: usize) -> Result<Vec<f32>, ModelError>;

    /// An error for a tensor that the configuration does not name and that no loader may ignore.
    fn refuse_others(&self, config: &ModelConfig) -> Result<(), ModelError>;
}

/// A file, or its bytes.
trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

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
    pub embed: Option<TensorData>,
    pub layers: Vec<LayerWeights>,
    pub norm: Vec<f32>,
    pub head: PackedMatrix,
    pub holdings: Holdings,
}

impl Weights {
    pub(crate) fn load(
        config: &ModelConfig,
        source: &mut dyn TensorSource,
        weights: WeightStorage,
    ) -> Result<Self, ModelError> {
        source.refuse_others(config)?;
        let holdings = holdings::holdings(config, source, weights);
        let mut loader = Loader {
            config,
            source,
            weights,
        };
        let (vocab, hidden) = (config.vocab, config.hidden);
        let embed = loader.matrix(Part::Embed, vocab, hidden)?;
        let layers = (0..config.n_layers).map(|layer| loader.layer(layer));
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        let norm = loader.source.vector(Part::Norm, hidden)?;
        let (embed, head) = match config.tied {
            true => (None, embed),
            false => (Some(embed), loader.matrix(Part::Head, vocab, hidden)?),
        };
        Ok(Self {
            embed,
            layers,
            norm,
            head: stack(&[head], hidden)?,
            holdings,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        let matrices = |l: &LayerWeights| {
            l.qkv.bytes() + l.attn_out.bytes() + l.gate_up.bytes() + l.down.bytes()
        };
        let layers: usize = self.layers.iter().map(matrices).sum();
        let embed = self.embed.as_ref().map_or(0, TensorData::bytes);
        (layers + embed + self.head.bytes()) as u64
    }
}

struct Loader<'a> {
    config: &'a ModelConfig,
    source: &'a mut dyn TensorSource,
    weights: WeightStorage,
}

impl Loader<'_> {
    fn matrix(&mut self, part: Part, n_out: usize, n_in: usize) -> Result<TensorData, ModelError> {
        let held = holdings::held(self.source, part, self.weights);
        self.source.matrix(part, [n_out, n_in], held)
    }

    fn layer(&mut self, layer: usize) -> Result<LayerWeights, ModelError> {
        use LayerPart::*;
        let config = self.config;
        let (hidden, ffn, hd) = (config.hidden, config.ffn, config.head_dim);
        let (q_out, kv_out) = (config.n_heads * hd, config.n_kv_heads * hd);
        let of = |part| Part::Layer(layer, part);
        let attn_norm = self.source.vector(of(AttnNorm), hidden)?;
        let qkv = [
            self.matrix(of(Q), q_out, hidden)?,
            self.matrix(of(K), kv_out, hidden)?,
            self.matrix(of(V), kv_out, hidden)?,
        ];
        let qkv = stack(&qkv, hidden)?;
        let qkv_bias = match config.qkv_bias {
            true => Some(
                [
                    self.source.vector(of(QBias), q_out)?,
                    self.source.vector(of(KBias), kv_out)?,
                    self.source.vector(of(VBias), kv_out)?,
                ]
                .concat(),
            ),
            false => None,
        };
        let qk_norm = match config.qk_norm {
            true => Some((
                self.source.vector(of(QNorm), hd)?,
                self.source.vector(of(KNorm), hd)?,
            )),
            false => None,
        };
        let attn_out = stack(&[self.matrix(of(AttnOut), hidden, q_out)?], q_out)?;
        let ffn_norm = self.source.vector(of(FfnNorm), hidden)?;
        let gate_up = [
            self.matrix(of(Gate), ffn, hidden)?,
            self.matrix(of(Up), ffn, hidden)?,
        ];
        let gate_up = stack(&gate_up, hidden)?;
        let down = stack(&[self.matrix(of(Down), hidden, ffn)?], ffn)?;
        Ok(LayerWeights {
            attn_norm,
            qkv,
            qkv_bias,
            qk_norm,
            attn_out,
            ffn_norm,
            gate_up,
            down,
        })
    }
}

/// Matrices of `n_in` inputs and one storage, stacked along their outputs.
fn stack(parts: &[TensorData], n_in: usize) -> Result<PackedMatrix, ModelError> {
    let parts: Vec<MatrixPart> = parts.iter().map(TensorData::part).collect();
    Ok(PackedMatrix::stack(&parts, n_in)?)
}

/// A directory with `config.json` and `model.safetensors`, whole or sharded.
pub(crate) fn load_directory(
    directory: &Path,
    weights: WeightStorage,
) -> Result<(ModelConfig, Weights), ModelError> {
    let (config, mut source) = open_directory(directory)?;
    let weights = Weights::load(&config, &mut source, weights)?;
    Ok((config, weights))
}

/// The same from the bytes of `config.json` and `model.safetensors`; `name` stands for the files in errors.
pub(crate) fn load_bytes(
    name: &str,
    config_json: &[u8],
    safetensors: &[u8],
    weights: WeightStorage,
) -> Result<(ModelConfig, Weights), ModelError> {
    let (config, mut source) = open_bytes(name, config_json, safetensors)?;
    let weights = Weights::load(&config, &mut source, weights)?;
    Ok((config, weights))
}

/// A GGUF file.
pub(crate) fn load_gguf(
    file: &Path,
    weights: WeightStorage,
) -> Result<(ModelConfig, Weights), ModelError> {
    let mut source = gguf::GgufSource::open(file)?;
    let config = source.config()?;
    let weights = Weights::load(&config, &mut source, weights)?;
    Ok((config, weights))
}

/// The same from the file's bytes; `file` stands for it in errors.
pub(crate) fn load_gguf_bytes(
    file: &Path,
    bytes: &[u8],
    weights: WeightStorage,
) -> Result<(ModelConfig, Weights), ModelError> {
    let mut source = gguf::GgufSource::from_bytes(file, bytes)?;
    let config = source.config()?;
    let weights = Weights::load(&config, &mut source, weights)?;
    Ok((config, weights))
}

/// How the tensors of a directory would be held, from the headers alone.
pub(crate) fn holdings_of_directory(
    directory: &Path,
    weights: WeightStorage,
) -> Result<Holdings, ModelError> {
    let (config, source) = open_directory(directory)?;
    Ok(holdings::holdings(&config, &source, weights))
}

/// The same from the bytes of `config.json` and `model.safetensors`.
pub(crate) fn holdings_of_bytes(
    name: &str,
    config_json: &[u8],
    safetensors: &[u8],
    weights: WeightStorage,
) -> Result<Holdings, ModelError> {
    let (config, source) = open_bytes(name, config_json, safetensors)?;
    Ok(holdings::holdings(&config, &source, weights))
}

/// The same from a GGUF file.
pub(crate) fn holdings_of_gguf(
    file: &Path,
    weights: WeightStorage,
) -> Result<Holdings, ModelError> {
    let mut source = gguf::GgufSource::open(file)?;
    let config = source.config()?;
    Ok(holdings::holdings(&config, &source, weights))
}

fn open_directory(
    directory: &Path,
) -> Result<(ModelConfig, safetensors::Shards<'static>), ModelError> {
    let file = directory.join("config.json");
    let json = std::fs::read(&file).map_err(|source| ModelError::Read {
        file: file.clone(),
        source,
    })?;
    let config = ModelConfig::from_hf_json(&json, &file)?;
    Ok((config, safetensors::Shards::open(directory)?))
}

fn open_bytes<'a>(
    name: &str,
    config_json: &[u8],
    safetensors: &'a [u8],
) -> Result<(ModelConfig, safetensors::Shards<'a>), ModelError> {
    let config = ModelConfig::from_hf_json(config_json, &Path::new(name).join("config.json"))?;
    let file = Path::new(name).join("model.safetensors");
    Ok((config, safetensors::Shards::from_bytes(&file, safetensors)?))
}

//! The network: llama architecture, written for training (whole windows, no cache).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::{DType, Device, Error, Result, Tensor, Var, bail};
use candle_nn::ops;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use crate::ops::{CausalSoftmax, RmsNorm, Rope};

/// `config.json` as transformers' `LlamaConfig` writes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    pub architectures: Vec<String>,
    pub model_type: String,
    pub hidden_act: String,
    pub torch_dtype: String,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub num_key_value_heads: usize,
    pub head_dim: usize,
    pub rms_norm_eps: f64,
    pub rope_theta: f64,
    pub max_position_embeddings: usize,
    pub vocab_size: usize,
    pub tie_word_embeddings: bool,
    pub attention_bias: bool,
    pub mlp_bias: bool,
    pub bos_token_id: u32,
    pub eos_token_id: u32,
}

impl Config {
    /// Name and shape of every weight, in name order.
    pub fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        let (h, ffn) = (self.hidden_size, self.intermediate_size);
        let q = self.num_attention_heads * self.head_dim;
        let kv = self.num_key_value_heads * self.head_dim;
        let mut shapes = BTreeMap::from([
            ("model.embed_tokens.weight".into(), vec![self.vocab_size, h]),
            ("model.norm.weight".into(), vec![h]),
        ]);
        for layer in 0..self.num_hidden_layers {
            for (name, shape) in [
                ("input_layernorm", vec![h]),
                ("self_attn.q_proj", vec![q, h]),
                ("self_attn.k_proj", vec![kv, h]),
                ("self_attn.v_proj", vec![kv, h]),
                ("self_attn.o_proj", vec![h, q]),
                ("post_attention_layernorm", vec![h]),
                ("mlp.gate_proj", vec![ffn, h]),
                ("mlp.up_proj", vec![ffn, h]),
                ("mlp.down_proj", vec![h, ffn]),
            ] {
                shapes.insert(format!("model.layers.{layer}.{name}.weight"), shape);
            }
        }
        shapes
    }

    pub fn parameters(&self) -> usize {
        self.shapes()
            .values()
            .map(|s| s.iter().product::<usize>())
            .sum()
    }
}

/// Inverted dropout on the residual branches and the embedding; a rate in 1/256 steps.
pub struct Dropout<'a> {
    pub rate: f64,
    pub rng: &'a mut ChaCha8Rng,
}

impl Dropout<'_> {
    fn apply(&mut self, x: Tensor) -> Result<Tensor> {
        let dropped = (self.rate * 256.0).round() as u8;
        let keep = 256.0 / (256.0 - f32::from(dropped));
        let mut bytes = vec![0u8; x.elem_count()];
        self.rng.fill_bytes(&mut bytes);
        let mask: Vec<f32> = bytes
            .iter()
            .map(|&b| if b < dropped { 0.0 } else { keep })
            .collect();
        let mask = Tensor::from_vec(mask, x.shape(), x.device())?;
        x * mask
    }
}

pub struct Net {
    pub config: Config,
    pub weights: BTreeMap<String, Var>,
    rope: Rope,
}

impl Net {
    /// Normal weights of variance 1 / fan-in (branch outputs also divided by 2 · layers), embedding sd 0.05, norms 1.
    pub fn init(config: Config, rng: &mut ChaCha8Rng) -> Result<Self> {
        let branches = (2 * config.num_hidden_layers) as f32;
        let mut weights = BTreeMap::new();
        for (name, shape) in config.shapes() {
            let fan_in = shape[shape.len() - 1] as f32;
            let sd = if name.contains("embed") {
                0.05
            } else if name.contains("o_proj") || name.contains("down_proj") {
                (fan_in * branches).sqrt().recip()
            } else {
                fan_in.sqrt().recip()
            };
            let count: usize = shape.iter().product();
            let values: Vec<f32> = if shape.len() == 1 {
                vec![1.0; count]
            } else {
                (0..count)
                    .map(|_| sd * rng.sample::<f32, _>(StandardNormal))
                    .collect()
            };
            weights.insert(name, Var::from_vec(values, shape, &Device::Cpu)?);
        }
        Ok(Self::new(config, weights))
    }

    /// Weights from a safetensors file; every name and shape must be the config's, with none left over.
    pub fn load(config: Config, file: &Path) -> Result<Self> {
        let mut found: HashMap<_, _> = candle_core::safetensors::load(file, &Device::Cpu)?;
        let mut weights = BTreeMap::new();
        for (name, shape) in config.shapes() {
            let Some(tensor) = found.remove(&name) else {
                bail!("{} has no tensor {name}", file.display());
            };
            if tensor.dims() != shape || tensor.dtype() != DType::F32 {
                bail!(
                    "{name} is {:?} {:?}, the config asks for {shape:?} F32",
                    tensor.dims(),
                    tensor.dtype()
                );
            }
            weights.insert(name, Var::from_tensor(&tensor)?);
        }
        if let Some(name) = found.keys().next() {
            bail!("{} has the unknown tensor {name}", file.display());
        }
        Ok(Self::new(config, weights))
    }

    fn new(config: Config, weights: BTreeMap<String, Var>) -> Self {
        let rope = Rope::new(
            config.head_dim,
            config.max_position_embeddings,
            config.rope_theta,
        );
        Self {
            config,
            weights,
            rope,
        }
    }

    /// Written beside the target and renamed, so that a reader never sees half a file.
    pub fn save(&self, file: &Path) -> Result<()> {
        let tensors: HashMap<_, _> = self
            .weights
            .iter()
            .map(|(name, var)| (name.as_str(), var.as_tensor().clone()))
            .collect();
        let partial = file.with_extension("partial");
        candle_core::safetensors::save(&tensors, &partial)?;
        std::fs::rename(&partial, file).map_err(Error::from)
    }

    fn weight(&self, name: &str) -> Result<&Tensor> {
        match self.weights.get(name) {
            Some(var) => Ok(var.as_tensor()),
            None => bail!("no weight {name}"),
        }
    }

    fn norm(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let eps = self.config.rms_norm_eps as f32;
        x.apply_op2(self.weight(&format!("{name}.weight"))?, RmsNorm { eps })
    }

    fn linear(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        x.matmul(&self.weight(&format!("{name}.weight"))?.t()?)
    }

    /// Logits (batch · positions, vocabulary) of the windows `tokens` (batch, positions).
    pub fn forward(&self, tokens: &Tensor, mut dropout: Option<Dropout<'_>>) -> Result<Tensor> {
        let (batch, positions) = tokens.dims2()?;
        let embedding = self.weight("model.embed_tokens.weight")?;
        let mut drop = |x: Tensor| match dropout.as_mut() {
            Some(dropout) => dropout.apply(x),
            None => Ok(x),
        };
        let mut x = drop(embedding.index_select(&tokens.flatten_all()?, 0)?)?;
        for layer in 0..self.config.num_hidden_layers {
            let at = format!("model.layers.{layer}");
            let normed = self.norm(&x, &format!("{at}.input_layernorm"))?;
            let attended = self.attention(&normed, &at, batch, positions)?;
            x = (x + drop(attended)?)?;
            let normed = self.norm(&x, &format!("{at}.post_attention_layernorm"))?;
            x = (x + drop(self.feed_forward(&normed, &at)?)?)?;
        }
        self.norm(&x, "model.norm")?.matmul(&embedding.t()?)
    }

    fn attention(&self, x: &Tensor, at: &str, batch: usize, positions: usize) -> Result<Tensor> {
        let c = &self.config;
        let (heads, kv_heads, d) = (c.num_attention_heads, c.num_key_value_heads, c.head_dim);
        let split = |name: &str, heads: usize| {
            self.linear(x, &format!("{at}.self_attn.{name}"))?
                .reshape((batch, positions, heads, d))?
                .transpose(1, 2)?
                .contiguous()
        };
        let q = split("q_proj", heads)?.apply_op1(self.rope.clone())?;
        let k = split("k_proj", kv_heads)?.apply_op1(self.rope.clone())?;
        let v = split("v_proj", kv_heads)?;
        // Query heads that share a KV head lie side by side: stack them as rows of one matrix.
        let q = q.reshape((batch, kv_heads, heads / kv_heads * positions, d))?;
        let scale = (d as f32).sqrt().recip();
        let mass = q.matmul(&k.t()?)?.apply_op1(CausalSoftmax { scale })?;
        let out = mass
            .matmul(&v)?
            .reshape((batch, heads, positions, d))?
            .transpose(1, 2)?
            .reshape((batch * positions, heads * d))?;
        self.linear(&out, &format!("{at}.self_attn.o_proj"))
    }

    fn feed_forward(&self, x: &Tensor, at: &str) -> Result<Tensor> {
        let gate = ops::silu(&self.linear(x, &format!("{at}.mlp.gate_proj"))?)?;
        let up = self.linear(x, &format!("{at}.mlp.up_proj"))?;
        self.linear(&(gate * up)?, &format!("{at}.mlp.down_proj"))
    }
}

/// −ln P of each target, nats: logits (n, vocabulary), targets (n) → (n).
pub fn surprisal_nats(logits: &Tensor, targets: &Tensor) -> Result<Tensor> {
    ops::log_softmax(logits, 1)?
        .gather(&targets.unsqueeze(1)?, 1)?
        .squeeze(1)?
        .neg()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use rand::SeedableRng;

    pub fn small() -> Config {
        Config {
            architectures: vec!["LlamaForCausalLM".into()],
            model_type: "llama".into(),
            hidden_act: "silu".into(),
            torch_dtype: "float32".into(),
            hidden_size: 64,
            intermediate_size: 96,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 32,
            rms_norm_eps: 1e-5,
            rope_theta: 1e4,
            max_position_embeddings: 64,
            vocab_size: 50,
            tie_word_embeddings: true,
            attention_bias: false,
            mlp_bias: false,
            bos_token_id: 0,
            eos_token_id: 0,
        }
    }

    fn tokens(batch: usize, positions: usize) -> Tensor {
        let ids: Vec<u32> = (0..(batch * positions) as u32)
            .map(|i| i * 7 % 50)
            .collect();
        Tensor::from_vec(ids, (batch, positions), &Device::Cpu).unwrap()
    }

    fn net() -> Net {
        Net::init(small(), &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn every_parameter_gets_a_nonzero_gradient() {
        let (net, tokens) = (net(), tokens(2, 20));
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let dropout = Dropout {
            rate: 0.1,
            rng: &mut rng,
        };
        let logits = net.forward(&tokens, Some(dropout)).unwrap();
        let loss = surprisal_nats(&logits, &tokens.flatten_all().unwrap()).unwrap();
        let grads = loss.mean_all().unwrap().backward().unwrap();
        for (name, var) in &net.weights {
            let grad = grads.get(var).unwrap_or_else(|| panic!("{name}: none"));
            let size = grad.sqr().unwrap().sum_all().unwrap();
            let size = size.to_scalar::<f32>().unwrap();
            assert!(size.is_finite() && size > 1e-12, "{name}: {size}");
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (net, tokens) = (net(), tokens(1, 12));
        let targets = tokens.flatten_all().unwrap();
        let loss = || {
            let logits = net.forward(&tokens, None).unwrap();
            surprisal_nats(&logits, &targets)
                .unwrap()
                .mean_all()
                .unwrap()
        };
        let grads = loss().backward().unwrap();
        let value = |t: Tensor| t.to_scalar::<f32>().unwrap();
        for (name, var) in &net.weights {
            let grad = grads.get(var).unwrap();
            let norm = value(grad.sqr().unwrap().sum_all().unwrap()).sqrt();
            let step = 1e-2;
            let unit = (grad * f64::from(step / norm)).unwrap();
            let start = var.as_tensor().copy().unwrap();
            let at = |sign: f64| {
                var.set(&(&start + (&unit * sign).unwrap()).unwrap())
                    .unwrap();
                value(loss())
            };
            let slope = (at(1.0) - at(-1.0)) / (2.0 * step);
            var.set(&start).unwrap();
            assert!((slope / norm - 1.0).abs() < 0.03, "{name}: {slope}, {norm}");
        }
    }

    #[test]
    fn a_later_token_changes_no_earlier_logit() {
        let net = net();
        let whole = net.forward(&tokens(1, 20), None).unwrap();
        let part = net.forward(&tokens(1, 11), None).unwrap();
        let gap = (whole.narrow(0, 0, 11).unwrap() - part).unwrap().abs();
        let gap = gap.unwrap().flatten_all().unwrap().max(0).unwrap();
        assert!(gap.to_scalar::<f32>().unwrap() < 1e-5);
    }

    #[test]
    fn saved_weights_load_to_the_same_logits_and_a_wrong_shape_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("model.safetensors");
        let net = net();
        net.save(&file).unwrap();
        let again = Net::load(small(), &file).unwrap();
        let logits = |net: &Net| {
            let logits = net.forward(&tokens(1, 9), None).unwrap();
            logits.to_vec2::<f32>().unwrap()
        };
        assert_eq!(logits(&net), logits(&again));
        let mut other = small();
        other.vocab_size += 1;
        let error = Net::load(other, &file).err().unwrap().to_string();
        assert!(error.contains("embed_tokens"), "{error}");
    }
}

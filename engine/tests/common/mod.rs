//! Small random checkpoints, and candle-transformers' models on the same tensors.
#![allow(dead_code)]

pub mod gguf;

use std::collections::BTreeMap;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device as CandleDevice, Tensor};
use candle_nn::VarBuilder;
use etime_engine::{KvPool, LoadOptions, Model, SeqStep, Wanted, WeightStorage};
use serde_json::{Value, json};

pub type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// A model that fits in a test.
#[derive(Clone)]
pub struct Shape {
    pub architecture: &'static str,
    pub vocab: usize,
    pub hidden: usize,
    pub ffn: usize,
    pub layers: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub tied: bool,
    pub rope_scaling: Value,
}

impl Shape {
    pub fn llama(heads: usize, kv_heads: usize, head_dim: usize, tied: bool) -> Self {
        Self {
            architecture: "llama",
            vocab: 97,
            hidden: heads * head_dim,
            ffn: 80,
            layers: 3,
            heads,
            kv_heads,
            head_dim,
            tied,
            rope_scaling: Value::Null,
        }
    }

    pub fn config_json(&self) -> Value {
        json!({
            "model_type": self.architecture,
            "vocab_size": self.vocab,
            "hidden_size": self.hidden,
            "intermediate_size": self.ffn,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "rope_scaling": self.rope_scaling,
            "max_position_embeddings": 128,
            "max_window_layers": self.layers,
            "sliding_window": 128,
            "use_sliding_window": false,
            "attention_bias": false,
            "hidden_act": "silu",
            "bos_token_id": 1,
            "eos_token_id": [2, 3],
            "tie_word_embeddings": self.tied,
        })
    }

    /// Random weights under their Hugging Face names.
    pub fn tensors(&self, seed: u64) -> Tensors {
        let mut random = Random(seed);
        let mut tensors = Tensors::new();
        let (h, hd) = (self.hidden, self.head_dim);
        let (q, kv) = (self.heads * hd, self.kv_heads * hd);
        let mut add = |name: String, shape: &[usize]| {
            let n = shape.iter().product();
            let values = random.vector(n);
            // Norms near 1, matrices and biases such that activations keep their size.
            let norm = name.contains("norm");
            let gain = if shape.len() == 2 {
                3.0 / (shape[1] as f32).sqrt()
            } else {
                0.3
            };
            let values = values
                .into_iter()
                .map(|x| if norm { 1.0 + 0.3 * x } else { gain * x });
            tensors.insert(name, (shape.to_vec(), values.collect()));
        };
        add("model.embed_tokens.weight".into(), &[self.vocab, h]);
        add("model.norm.weight".into(), &[h]);
        if !self.tied {
            add("lm_head.weight".into(), &[self.vocab, h]);
        }
        for layer in 0..self.layers {
            let p = format!("model.layers.{layer}");
            add(format!("{p}.input_layernorm.weight"), &[h]);
            add(format!("{p}.post_attention_layernorm.weight"), &[h]);
            for (name, rows) in [("q", q), ("k", kv), ("v", kv)] {
                add(format!("{p}.self_attn.{name}_proj.weight"), &[rows, h]);
                if self.architecture == "qwen2" {
                    add(format!("{p}.self_attn.{name}_proj.bias"), &[rows]);
                }
            }
            add(format!("{p}.self_attn.o_proj.weight"), &[h, q]);
            if self.architecture == "qwen3" {
                add(format!("{p}.self_attn.q_norm.weight"), &[hd]);
                add(format!("{p}.self_attn.k_norm.weight"), &[hd]);
            }
            add(format!("{p}.mlp.gate_proj.weight"), &[self.ffn, h]);
            add(format!("{p}.mlp.up_proj.weight"), &[self.ffn, h]);
            add(format!("{p}.mlp.down_proj.weight"), &[h, self.ffn]);
        }
        tensors
    }

    pub fn model(&self, seed: u64) -> Model {
        let json = self.config_json().to_string();
        Model::from_bytes(
            "test",
            json.as_bytes(),
            &safetensors_bytes(&self.tensors(seed)),
            LoadOptions::default(),
        )
        .unwrap()
    }
}

/// Everything dequantised to F32.
pub fn exact() -> LoadOptions {
    LoadOptions {
        weights: WeightStorage::F32,
        ..LoadOptions::default()
    }
}

/// Rounds the matrices to what a storage keeps of them. Rotary rows move whole, so blocks along a row are the same.
pub fn round(tensors: &mut Tensors, stored: GgmlDType) {
    for (dims, values) in tensors.values_mut().filter(|(dims, _)| dims.len() == 2) {
        let tensor = Tensor::from_slice(values, dims.as_slice(), &CandleDevice::Cpu).unwrap();
        let rounded = QTensor::quantize(&tensor, stored).unwrap();
        let rounded = rounded.dequantize(&CandleDevice::Cpu).unwrap();
        *values = rounded.flatten_all().unwrap().to_vec1().unwrap();
    }
}

/// The tensors in half precision, to the nearest number.
pub fn f16_safetensors_bytes(tensors: &Tensors) -> Vec<u8> {
    let halves: BTreeMap<&String, Vec<u8>> = tensors
        .iter()
        .map(|(name, (_, values))| {
            let halves = values.iter().map(|&x| etime_kernels::cpu::f32_to_f16(x));
            (name, halves.flat_map(u16::to_le_bytes).collect())
        })
        .collect();
    let views = tensors.iter().map(|(name, (shape, _))| {
        let dtype = safetensors::Dtype::F16;
        let view = safetensors::tensor::TensorView::new(dtype, shape.clone(), &halves[name]);
        (name.clone(), view.unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

pub fn safetensors_bytes(tensors: &Tensors) -> Vec<u8> {
    let bytes: BTreeMap<&String, Vec<u8>> = tensors
        .iter()
        .map(|(n, (_, v))| (n, v.iter().flat_map(|x| x.to_le_bytes()).collect()))
        .collect();
    let views = tensors.iter().map(|(name, (shape, _))| {
        let view = safetensors::tensor::TensorView::new(
            safetensors::Dtype::F32,
            shape.clone(),
            &bytes[name],
        );
        (name.clone(), view.unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

pub fn var_builder(tensors: &Tensors) -> VarBuilder<'static> {
    let map = tensors.iter().map(|(n, (s, v))| {
        (
            n.clone(),
            Tensor::from_slice(v, s.as_slice(), &CandleDevice::Cpu).unwrap(),
        )
    });
    VarBuilder::from_tensors(map.collect(), DType::F32, &CandleDevice::Cpu)
}

/// Logits after every token, one token at a time with candle's dense cache.
pub fn oracle(config: &Value, tensors: &Tensors, tokens: &[u32]) -> Vec<Vec<f32>> {
    oracle_with(config, var_builder(tensors), tokens)
}

/// The same for weights that candle has already read.
pub fn oracle_with(config: &Value, vb: VarBuilder, tokens: &[u32]) -> Vec<Vec<f32>> {
    let json = config.to_string();
    let row = |t: Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let inputs = tokens
        .iter()
        .map(|&t| Tensor::new(&[[t]], &CandleDevice::Cpu).unwrap());
    match config["model_type"].as_str().unwrap() {
        "llama" => {
            use candle_transformers::models::llama;
            let parsed: llama::LlamaConfig = serde_json::from_str(&json).unwrap();
            let parsed = parsed.into_config(false);
            let mut cache =
                llama::Cache::new(true, DType::F32, &parsed, &CandleDevice::Cpu).unwrap();
            let model = llama::Llama::load(vb, &parsed).unwrap();
            inputs
                .enumerate()
                .map(|(i, x)| row(model.forward(&x, i, &mut cache).unwrap()))
                .collect()
        }
        "mistral" => {
            use candle_transformers::models::mistral;
            let mut model = mistral::Model::new(&serde_json::from_str(&json).unwrap(), vb).unwrap();
            inputs
                .enumerate()
                .map(|(i, x)| row(model.forward(&x, i).unwrap()))
                .collect()
        }
        "qwen2" => {
            use candle_transformers::models::qwen2;
            let mut model =
                qwen2::ModelForCausalLM::new(&serde_json::from_str(&json).unwrap(), vb).unwrap();
            inputs
                .enumerate()
                .map(|(i, x)| row(model.forward(&x, i).unwrap()))
                .collect()
        }
        "qwen3" => {
            use candle_transformers::models::qwen3;
            let mut model =
                qwen3::ModelForCausalLM::new(&serde_json::from_str(&json).unwrap(), vb).unwrap();
            inputs
                .enumerate()
                .map(|(i, x)| row(model.forward(&x, i).unwrap()))
                .collect()
        }
        other => panic!("no oracle for {other}"),
    }
}

/// Logits after every token, computed in chunks of `chunk` tokens over a shuffled block table.
pub fn engine_logits(
    model: &mut Model,
    tokens: &[u32],
    chunk: usize,
    block_tok: usize,
) -> Vec<Vec<f32>> {
    let n_blocks = tokens.len().div_ceil(block_tok);
    let mut kv = KvPool::new(model.config(), n_blocks + 2, block_tok).unwrap();
    let blocks: Vec<u32> = (0..n_blocks as u32).rev().map(|b| b + 1).collect();
    let vocab = model.config().vocab;
    let mut all = vec![];
    for (i, part) in tokens.chunks(chunk).enumerate() {
        let step = SeqStep {
            tokens: part,
            start_tok: i * chunk,
            blocks: &blocks,
            kept: None,
            logits: Wanted::All,
        };
        let out = model.forward(&mut kv, &[step]).unwrap();
        all.extend(out.logits.chunks_exact(vocab).map(<[f32]>::to_vec));
    }
    all
}

pub fn max_difference(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    pairs
        .map(|(x, y)| (x - y).abs())
        .fold(0.0, |m, d| if d > m || d.is_nan() { d } else { m })
}

pub fn assert_close(seen: &[Vec<f32>], wanted: &[Vec<f32>], tolerance: f32, label: &str) {
    let difference = max_difference(seen, wanted);
    assert!(
        difference <= tolerance,
        "{label}: max |Δ| = {difference:e} > {tolerance:e}"
    );
}

pub fn text(n: usize, vocab: usize, seed: u64) -> Vec<u32> {
    let mut random = Random(seed);
    (0..n)
        .map(|_| (random.next() % vocab as u64) as u32)
        .collect()
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform on [−1, 1).
    pub fn vector(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|_| (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0)
            .collect()
    }
}

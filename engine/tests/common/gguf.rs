//! GGUF files with the tensors of a test, written by candle.

use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use super::{Shape, Tensors};

pub type Metadata = Vec<(String, Value)>;

pub fn gguf_name(hf: &str) -> String {
    let replaced = [
        ("model.layers.", "blk."),
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ];
    replaced
        .iter()
        .fold(hf.to_string(), |name, (from, to)| name.replace(from, to))
}

/// Rows of a projection in the order that llama.cpp's converter writes: [head][2][hd/2] → [head][hd/2][2].
fn interleave(values: &[f32], n_in: usize, hd: usize) -> Vec<f32> {
    let row = |head: usize, r: usize| &values[(head * hd + r) * n_in..][..n_in];
    let heads = values.len() / n_in / hd;
    let order = (0..heads).flat_map(|h| (0..hd / 2).flat_map(move |i| [(h, i), (h, i + hd / 2)]));
    order.flat_map(|(h, r)| row(h, r).to_vec()).collect()
}

/// The inverse of [`interleave`].
pub fn half_split(values: &[f32], n_in: usize, hd: usize) -> Vec<f32> {
    let row = |head: usize, r: usize| &values[(head * hd + r) * n_in..][..n_in];
    let heads = values.len() / n_in / hd;
    let order =
        (0..heads).flat_map(|h| (0..hd).map(move |r| (h, 2 * (r % (hd / 2)) + r / (hd / 2))));
    order.flat_map(|(h, r)| row(h, r).to_vec()).collect()
}

fn metadata(shape: &Shape) -> Metadata {
    let number = |n: usize| Value::U32(n as u32);
    let named = |key: &str| format!("{}.{key}", shape.architecture);
    let architecture = Value::String(shape.architecture.into());
    vec![
        ("general.architecture".into(), architecture),
        (named("embedding_length"), number(shape.hidden)),
        (named("feed_forward_length"), number(shape.ffn)),
        (named("block_count"), number(shape.layers)),
        (named("attention.head_count"), number(shape.heads)),
        (named("attention.head_count_kv"), number(shape.kv_heads)),
        (named("attention.key_length"), number(shape.head_dim)),
        (named("context_length"), number(128)),
        (named("attention.layer_norm_rms_epsilon"), Value::F32(1e-5)),
        (named("rope.freq_base"), Value::F32(10_000.0)),
        ("tokenizer.ggml.eos_token_id".into(), number(2)),
    ]
}

/// A file of this shape, its metadata changed by `change`; `stored` says how a matrix with rows of so many elements is
/// stored, vectors are F32.
pub fn write(
    file: &Path,
    shape: &Shape,
    tensors: &Tensors,
    stored: impl Fn(usize) -> GgmlDType,
    change: impl Fn(&mut Metadata),
) {
    let mut metadata = metadata(shape);
    change(&mut metadata);
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(k, v)| (k.as_str(), v)).collect();
    let quantised: Vec<(String, QTensor)> = tensors
        .iter()
        .map(|(name, (dims, values))| {
            let rotary = name.contains("q_proj.weight") || name.contains("k_proj.weight");
            let values = match rotary && shape.architecture == "llama" {
                true => interleave(values, dims[1], shape.head_dim),
                false => values.clone(),
            };
            let tensor = Tensor::from_vec(values, dims.as_slice(), &Device::Cpu).unwrap();
            let dtype = match dims.as_slice() {
                [_, n_in] => stored(*n_in),
                _ => GgmlDType::F32,
            };
            (gguf_name(name), QTensor::quantize(&tensor, dtype).unwrap())
        })
        .collect();
    let tensors: Vec<(&str, &QTensor)> = quantised.iter().map(|(n, t)| (n.as_str(), t)).collect();
    gguf_file::write(&mut File::create(file).unwrap(), &metadata, &tensors).unwrap();
}

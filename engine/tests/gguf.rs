//! GGUF files, written here with candle and read by the engine.

mod common;

use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device as CandleDevice, Tensor};
use common::{Shape, Tensors, engine_logits, exact, text};
use etime_engine::{Model, RopeScaling};

fn gguf_name(hf: &str) -> String {
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

fn write(
    file: &Path,
    shape: &Shape,
    tensors: &Tensors,
    dtype: GgmlDType,
    change: impl Fn(&mut Vec<(String, Value)>),
) {
    let number = |n: usize| Value::U32(n as u32);
    let mut metadata: Vec<(String, Value)> = vec![
        ("general.architecture".into(), Value::String("llama".into())),
        ("llama.embedding_length".into(), number(shape.hidden)),
        ("llama.feed_forward_length".into(), number(shape.ffn)),
        ("llama.block_count".into(), number(shape.layers)),
        ("llama.attention.head_count".into(), number(shape.heads)),
        (
            "llama.attention.head_count_kv".into(),
            number(shape.kv_heads),
        ),
        ("llama.rope.dimension_count".into(), number(shape.head_dim)),
        ("llama.context_length".into(), number(128)),
        (
            "llama.attention.layer_norm_rms_epsilon".into(),
            Value::F32(1e-5),
        ),
        ("llama.rope.freq_base".into(), Value::F32(10_000.0)),
        ("tokenizer.ggml.eos_token_id".into(), number(2)),
    ];
    change(&mut metadata);
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(k, v)| (k.as_str(), v)).collect();
    let quantised: Vec<(String, QTensor)> = tensors
        .iter()
        .map(|(name, (dims, values))| {
            let rotary = name.contains("q_proj.weight") || name.contains("k_proj.weight");
            let values = if rotary {
                interleave(values, dims[1], shape.head_dim)
            } else {
                values.clone()
            };
            let tensor = Tensor::from_vec(values, dims.as_slice(), &CandleDevice::Cpu).unwrap();
            let dtype = if dims.len() == 2 {
                dtype
            } else {
                GgmlDType::F32
            };
            (gguf_name(name), QTensor::quantize(&tensor, dtype).unwrap())
        })
        .collect();
    let tensors: Vec<(&str, &QTensor)> = quantised.iter().map(|(n, t)| (n.as_str(), t)).collect();
    gguf_file::write(&mut File::create(file).unwrap(), &metadata, &tensors).unwrap();
}

#[test]
fn an_f32_gguf_file_gives_the_logits_of_its_safetensors_twin_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    for tied in [true, false] {
        let shape = Shape::llama(6, 2, 16, tied);
        write(&file, &shape, &shape.tensors(1), GgmlDType::F32, |_| {});
        let mut model = Model::load(&file, exact()).unwrap();
        assert_eq!((model.config().tied, model.config().vocab), (tied, 97));
        assert_eq!(model.config().eos, [2]);
        let tokens = text(20, 97, 2);
        let wanted = engine_logits(&mut shape.model(1), &tokens, 20, 16);
        assert_eq!(engine_logits(&mut model, &tokens, 20, 16), wanted);
    }
}

#[test]
fn quantised_blocks_are_read_as_their_dequantised_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let mut shape = Shape::llama(4, 2, 16, true);
    shape.ffn = 96;
    let mut tensors = shape.tensors(1);
    write(&file, &shape, &tensors, GgmlDType::Q8_0, |_| {});
    // Rounds the matrices as the file does; rows are permuted whole, so blocks of 32 along a row are the same.
    for (dims, values) in tensors.values_mut().filter(|(dims, _)| dims.len() == 2) {
        let tensor = Tensor::from_slice(values, dims.as_slice(), &CandleDevice::Cpu).unwrap();
        let rounded = QTensor::quantize(&tensor, GgmlDType::Q8_0)
            .unwrap()
            .dequantize(&CandleDevice::Cpu)
            .unwrap();
        *values = rounded.flatten_all().unwrap().to_vec1().unwrap();
    }
    let json = shape.config_json().to_string();
    let bytes = common::safetensors_bytes(&tensors);
    let mut twin = Model::from_bytes("twin", json.as_bytes(), &bytes, exact()).unwrap();
    let tokens = text(20, 97, 2);
    let seen = engine_logits(&mut Model::load(&file, exact()).unwrap(), &tokens, 20, 16);
    assert_eq!(seen, engine_logits(&mut twin, &tokens, 20, 16));
}

#[test]
fn stored_rope_divisors_and_linear_scaling_are_applied() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let shape = Shape::llama(4, 2, 16, true);
    let linear = |m: &mut Vec<(String, Value)>| {
        m.push((
            "llama.rope.scaling.type".into(),
            Value::String("linear".into()),
        ));
        m.push(("llama.rope.scaling.factor".into(), Value::F32(4.0)));
    };
    write(&file, &shape, &shape.tensors(1), GgmlDType::F32, linear);
    let mut model = Model::load(&file, exact()).unwrap();
    assert_eq!(
        model.config().rope_scaling,
        RopeScaling::Linear { factor: 4.0 }
    );
    let tokens = text(20, 97, 2);
    let scaled = engine_logits(&mut model, &tokens, 20, 16);
    assert_ne!(scaled, engine_logits(&mut shape.model(1), &tokens, 20, 16));

    let mut tensors = shape.tensors(1);
    tensors.insert("rope_freqs.weight".into(), (vec![8], vec![4.0; 8]));
    write(&file, &shape, &tensors, GgmlDType::F32, |_| {});
    let mut model = Model::load(&file, exact()).unwrap();
    assert_eq!(engine_logits(&mut model, &tokens, 20, 16), scaled);
}

#[test]
fn a_gguf_file_that_cannot_be_served_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let shape = Shape::llama(4, 2, 16, true);
    let error =
        |change: fn(&mut Vec<(String, Value)>), damage: fn(&mut Tensors), cut: fn(&mut Vec<u8>)| {
            let mut tensors = shape.tensors(1);
            damage(&mut tensors);
            write(&file, &shape, &tensors, GgmlDType::F32, change);
            let mut bytes = std::fs::read(&file).unwrap();
            cut(&mut bytes);
            std::fs::write(&file, bytes).unwrap();
            Model::load(&file, exact()).unwrap_err().to_string()
        };
    let e = error(|m| m[0].1 = Value::String("falcon".into()), |_| (), |_| ());
    assert!(
        e.contains("\"falcon\" is not supported; supported: llama"),
        "{e}"
    );
    let e = error(|m| m[1].1 = Value::String("wide".into()), |_| (), |_| ());
    assert!(e.contains("llama.embedding_length"), "{e}");
    let e = error(|m| drop(m.remove(7)), |_| (), |_| ());
    assert!(e.contains("llama.context_length is missing"), "{e}");
    let e = error(|m| m[2].1 = Value::U32(81), |_| (), |_| ());
    assert!(
        e.contains("blk.0.ffn_gate.weight has shape [80, 64], wanted [81, 64]"),
        "{e}"
    );
    let e = error(|_| (), |t| drop(t.remove("model.norm.weight")), |_| ());
    assert!(e.contains("output_norm.weight is missing"), "{e}");
    let e = error(|_| (), |_| (), |b| b.truncate(b.len() - 64));
    assert!(
        e.contains("tensor \"") && e.contains("truncated or damaged"),
        "{e}"
    );
    let e = error(|_| (), |_| (), |b| b.truncate(200));
    assert!(e.contains("not a whole GGUF file"), "{e}");
    let e = error(|_| (), |_| (), |b| b[0] = b'X');
    assert!(e.contains("not a GGUF file"), "{e}");
    let e = error(|_| (), |_| (), |b| b[8..16].fill(0xff));
    assert!(e.contains("the list of tensors"), "{e}");
}

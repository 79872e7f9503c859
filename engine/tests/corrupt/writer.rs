//! A GGUF file of known places: where each number of its header lies.

use etime_engine::quant::quantise_q8_0;
use etime_kernels::cpu::f32_to_f16;

use crate::common::Random;

const HIDDEN: usize = 32;
const VOCAB: usize = 8;
const ALIGNMENT: usize = 32;

/// A number in the header.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub at: usize,
    pub width_bytes: usize,
    pub value: u64,
}

pub struct Sample {
    pub bytes: Vec<u8>,
    pub fields: Vec<Field>,
    pub header_bytes: usize,
}

#[derive(Clone, Copy)]
enum Stored {
    F32 = 0,
    F16 = 1,
    Q4_1 = 3,
    Q8_0 = 8,
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    fields: Vec<Field>,
}

impl Writer {
    fn number(&mut self, name: impl Into<String>, width_bytes: usize, value: u64) {
        self.fields.push(Field {
            name: name.into(),
            at: self.bytes.len(),
            width_bytes,
            value,
        });
        self.bytes.extend(&value.to_le_bytes()[..width_bytes]);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.number(format!("length of {name}"), 8, text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn key(&mut self, key: &str, kind: u64) {
        self.text(&format!("key {key}"), key);
        self.number(format!("type of {key}"), 4, kind);
    }

    fn key_text(&mut self, key: &str, value: &str) {
        self.key(key, 8);
        self.text(key, value);
    }

    fn key_u32(&mut self, key: &str, value: u64) {
        self.key(key, 4);
        self.number(format!("value of {key}"), 4, value);
    }

    fn key_f32(&mut self, key: &str, value: f32) {
        self.key(key, 6);
        self.number(format!("value of {key}"), 4, value.to_bits().into());
    }

    fn list(&mut self, key: &str, kind: u64, len: usize) {
        self.key(key, 9);
        self.number(format!("item type of {key}"), 4, kind);
        self.number(format!("number of items of {key}"), 8, len as u64);
    }

    fn texts(&mut self, key: &str, items: &[&str]) {
        self.list(key, 8, items.len());
        for item in items {
            self.text(&format!("an item of {key}"), item);
        }
    }
}

/// A llama of one layer with tensors in four storages, its tokenizer, and a key of every other type.
pub fn sample() -> Sample {
    let tensors = tensors();
    let mut w = Writer::default();
    w.bytes.extend(b"GGUF");
    w.number("version", 4, 3);
    w.number("number of tensors", 8, tensors.len() as u64);
    w.number("number of keys", 8, 23);
    w.key_text("general.architecture", "llama");
    w.key_u32("general.alignment", ALIGNMENT as u64);
    w.key_u32("llama.embedding_length", HIDDEN as u64);
    w.key_u32("llama.feed_forward_length", 64);
    w.key_u32("llama.block_count", 1);
    w.key_u32("llama.attention.head_count", 2);
    w.key_u32("llama.attention.head_count_kv", 1);
    w.key_u32("llama.context_length", 64);
    w.key_f32("llama.attention.layer_norm_rms_epsilon", 1e-5);
    w.key_f32("llama.rope.freq_base", 10_000.0);
    w.key_text("tokenizer.ggml.model", "gpt2");
    w.key_text("tokenizer.ggml.pre", "smollm");
    w.texts(
        "tokenizer.ggml.tokens",
        &["a", "b", "c", "d", "e", "ab", "cd", "<end>"],
    );
    w.texts("tokenizer.ggml.merges", &["a b", "c d"]);
    w.list("tokenizer.ggml.token_type", 5, VOCAB);
    for kind in [1, 1, 1, 1, 1, 1, 1, 3] {
        w.number("an item of tokenizer.ggml.token_type", 4, kind);
    }
    w.key_u32("tokenizer.ggml.eos_token_id", 7);
    w.key("tokenizer.ggml.add_bos_token", 7);
    w.number("value of tokenizer.ggml.add_bos_token", 1, 0);
    for (key, kind, width_bytes) in [
        ("x.u8", 0, 1),
        ("x.i16", 3, 2),
        ("x.u64", 10, 8),
        ("x.f64", 12, 8),
    ] {
        w.key(key, kind);
        w.number(format!("value of {key}"), width_bytes, 5);
    }
    w.list("x.nested", 9, 2);
    for _ in 0..2 {
        w.number("item type of x.nested", 4, 7);
        w.number("number of items of x.nested", 8, 3);
        w.bytes.extend([0, 1, 1]);
    }
    w.list("x.empty", 8, 0);

    let mut data = Vec::new();
    for (name, dims, stored, bytes) in &tensors {
        w.text(&format!("name of {name}"), name);
        w.number(
            format!("number of dimensions of {name}"),
            4,
            dims.len() as u64,
        );
        for &dim in dims {
            w.number(format!("a dimension of {name}"), 8, dim as u64);
        }
        w.number(format!("type of tensor {name}"), 4, *stored as u64);
        w.number(format!("offset of {name}"), 8, data.len() as u64);
        data.extend(bytes);
        data.resize(data.len().next_multiple_of(ALIGNMENT), 0);
    }
    let header_bytes = w.bytes.len();
    w.bytes.resize(header_bytes.next_multiple_of(ALIGNMENT), 0);
    w.bytes.extend(data);
    Sample {
        bytes: w.bytes,
        fields: w.fields,
        header_bytes,
    }
}

type Tensor = (String, Vec<usize>, Stored, Vec<u8>);

/// Dimensions fastest first.
fn tensors() -> Vec<Tensor> {
    use Stored::*;
    let layer = [
        ("attn_norm.weight", vec![HIDDEN], F32),
        ("attn_q.weight", vec![HIDDEN, 32], Q8_0),
        ("attn_k.weight", vec![HIDDEN, 16], Q8_0),
        ("attn_v.weight", vec![HIDDEN, 16], Q8_0),
        ("attn_output.weight", vec![32, HIDDEN], F16),
        ("ffn_norm.weight", vec![HIDDEN], F32),
        ("ffn_gate.weight", vec![HIDDEN, 64], Q4_1),
        ("ffn_up.weight", vec![HIDDEN, 64], Q4_1),
        ("ffn_down.weight", vec![64, HIDDEN], F32),
    ];
    let layer = layer.map(|(name, dims, stored)| (format!("blk.0.{name}"), dims, stored));
    let whole = [
        ("token_embd.weight".to_owned(), vec![HIDDEN, VOCAB], F16),
        ("output_norm.weight".to_owned(), vec![HIDDEN], F32),
        ("output.weight".to_owned(), vec![HIDDEN, VOCAB], F32),
    ];
    let mut random = Random(4);
    let mut fill = |(name, dims, stored): (String, Vec<usize>, Stored)| {
        let values: Vec<f32> = random.vector(dims.iter().product());
        let bytes = encode(&values, stored);
        (name, dims, stored, bytes)
    };
    let mut tensors: Vec<Tensor> = whole.into_iter().map(&mut fill).collect();
    tensors.extend(layer.into_iter().map(fill));
    tensors
}

fn encode(values: &[f32], stored: Stored) -> Vec<u8> {
    match stored {
        Stored::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Stored::F16 => {
            let halves = values.iter().map(|&x| f32_to_f16(x));
            halves.flat_map(u16::to_le_bytes).collect()
        }
        Stored::Q8_0 => quantise_q8_0(values),
        // Scale 1/16, minimum −1/2, one quant for two elements: any numbers will do.
        Stored::Q4_1 => values
            .chunks(32)
            .flat_map(|block| {
                let scales = [f32_to_f16(1.0 / 16.0), f32_to_f16(-0.5)];
                let quants = block[..16].iter().map(|x| (x.to_bits() >> 8) as u8);
                let scales = scales.into_iter().flat_map(u16::to_le_bytes);
                scales.chain(quants).collect::<Vec<u8>>()
            })
            .collect(),
    }
}

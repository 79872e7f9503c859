//! What each storage costs in the distributions that a model gives.
//!
//! Two columns each: `lost` compares with the F32 weights that were stored, `held` with the exact numbers of the file
//! (`weights: F32`). What is held as it is stored costs nothing more; what is repacked to Q8_0 is rounded once more.

mod common;

use std::path::Path;

use candle_core::quantized::GgmlDType;
use common::gguf::write;
use common::{Shape, Tensors, engine_logits, exact, max_difference, text};
use etime_engine::gguf::Gguf;
use etime_engine::quant::dequantise;
use etime_engine::store::{ModelFiles, Store};
use etime_engine::tokenizer::Tokenizer;
use etime_engine::{LoadOptions, Model};

/// How far a storage may be from the F32 weights: mean KL in nats per token, and the largest change of a logit.
struct Bound {
    name: &'static str,
    stored: GgmlDType,
    /// For rows that are no whole number of blocks, as llama.cpp chooses.
    fallback: GgmlDType,
    lost_nats: f64,
    lost_logit: f32,
    /// The same against the exact numbers of the file.
    held_nats: f64,
    held_logit: f32,
}

/// Mean over tokens of KL(wanted ‖ seen), in nats.
fn kl_nats(wanted: &[Vec<f32>], seen: &[Vec<f32>]) -> f64 {
    let total: f64 = wanted
        .iter()
        .zip(seen)
        .map(|(p, q)| {
            let (log_p, log_q) = (log_softmax(p), log_softmax(q));
            let terms = log_p.iter().zip(&log_q);
            terms.map(|(p, q)| p.exp() * (p - q)).sum::<f64>()
        })
        .sum();
    total / wanted.len() as f64
}

fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let max = logits.iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x)) as f64;
    let sum: f64 = logits.iter().map(|&x| (x as f64 - max).exp()).sum();
    let log_z = max + sum.ln();
    logits.iter().map(|&x| x as f64 - log_z).collect()
}

fn check(name: &str, shape: &Shape, tensors: &Tensors, tokens: &[u32], bounds: &[Bound]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let logits = |file: &Path, options| {
        let mut model = Model::load(file, options).unwrap();
        let bytes = model.weight_bytes();
        (engine_logits(&mut model, tokens, tokens.len(), 16), bytes)
    };
    write(&file, shape, tensors, |_| GgmlDType::F32, |_| {});
    let (wanted, _) = logits(&file, exact());
    println!("{name}, {} tokens", tokens.len());
    println!("storage    MiB   lost nats/tok    |Δlogit|   held nats/tok    |Δlogit|");
    for bound in bounds {
        let stored = |n_in: usize| match n_in.is_multiple_of(bound.stored.block_size()) {
            true => bound.stored,
            false => bound.fallback,
        };
        write(&file, shape, tensors, stored, |_| {});
        let (seen, bytes) = logits(&file, LoadOptions::default());
        let (dense, _) = logits(&file, exact());
        let lost = (kl_nats(&wanted, &seen), max_difference(&wanted, &seen));
        let held = (kl_nats(&dense, &seen), max_difference(&dense, &seen));
        println!(
            "{:<8} {:>6.1} {:>15.3e} {:>11.4} {:>15.3e} {:>11.4}",
            bound.name,
            bytes as f64 / (1 << 20) as f64,
            lost.0,
            lost.1,
            held.0,
            held.1
        );
        let name = bound.name;
        assert!(lost.0 <= bound.lost_nats, "{name}: {} nats lost", lost.0);
        assert!(
            lost.1 <= bound.lost_logit,
            "{name}: a logit off by {}",
            lost.1
        );
        assert!(
            held.0 <= bound.held_nats,
            "{name}: {} nats by repacking",
            held.0
        );
        assert!(
            held.1 <= bound.held_logit,
            "{name}: a logit off by {}",
            held.1
        );
    }
}

const fn bound(
    name: &'static str,
    stored: GgmlDType,
    fallback: GgmlDType,
    (lost_nats, lost_logit): (f64, f32),
    (held_nats, held_logit): (f64, f32),
) -> Bound {
    Bound {
        name,
        stored,
        fallback,
        lost_nats,
        lost_logit,
        held_nats,
        held_logit,
    }
}

#[test]
fn storages_of_a_random_model_stay_within_their_stated_distance_of_its_f32_weights() {
    use GgmlDType::*;
    let mut shape = Shape::llama(4, 2, 64, false);
    (shape.ffn, shape.vocab) = (512, 512);
    let none = (0.0, 0.0);
    let bounds = [
        bound("F32", F32, F32, none, none),
        bound("F16", F16, F16, (2e-5, 0.08), none),
        bound("Q8_0", Q8_0, Q8_0, (5e-3, 0.8), none),
        bound("Q4_0", Q4_0, Q4_0, (1.0, 12.0), (5e-3, 1.0)),
        bound("Q4_1", Q4_1, Q4_1, (1.0, 12.0), (6e-3, 1.2)),
        bound("Q4_K", Q4K, Q5_0, (1.0, 12.0), (5e-3, 1.0)),
        bound("Q6_K", Q6K, Q8_0, (8e-2, 3.0), (5e-3, 1.0)),
    ];
    let tokens = text(64, shape.vocab, 3);
    check("random", &shape, &shape.tensors(5), &tokens, &bounds);
}

#[test]
#[ignore = "minutes: quantises SmolLM2 seven times; the full gate runs it"]
fn storages_of_smollm2_stay_within_their_stated_distance_of_its_f32_weights() {
    use GgmlDType::*;
    let file = match Store::from_env().resolve("smollm2").map(|s| s.files) {
        Ok(ModelFiles::Gguf(file)) => file,
        other => {
            eprintln!("smollm2 is not here, nothing is compared: {other:?}");
            return;
        }
    };
    let gguf = Gguf::open(&file).unwrap();
    let tokenizer = Tokenizer::from_gguf(&gguf.metadata).unwrap();
    let prompt = "Gravity is the force by which a planet or other body draws objects toward its center. \
        The force of gravity keeps all of the planets in orbit around the sun. Why do you land on the \
        ground when you jump up instead of floating off into space? In 1687 Newton wrote:\n";
    let tokens = tokenizer.encode(prompt).unwrap();
    let shape = Shape {
        architecture: "llama",
        vocab: 49_152,
        hidden: 576,
        ffn: 1536,
        layers: 30,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        tied: true,
        rope_scaling: serde_json::Value::Null,
    };
    let tensors = smollm2_tensors(&file, &gguf, &shape);
    let none = (0.0, 0.0);
    let bounds = [
        bound("F32", F32, F32, none, none),
        bound("F16", F16, F16, (1e-5, 0.08), none),
        bound("Q8_0", Q8_0, Q8_0, (4e-3, 1.5), none),
        bound("Q4_0", Q4_0, Q4_0, (1.0, 28.0), (4e-3, 1.5)),
        // The storage that these weights come from: rounding them again changes less.
        bound("Q4_1", Q4_1, Q4_1, (0.2, 10.0), (4e-3, 1.5)),
        bound("Q4_K", Q4K, Q5_0, (0.25, 14.0), (4e-3, 2.0)),
        bound("Q6_K", Q6K, Q8_0, (3e-2, 5.0), (1e-3, 1.0)),
    ];
    check("SmolLM2-135M", &shape, &tensors, &tokens, &bounds);

    let logits = |options| {
        let mut model = Model::load(&file, options).unwrap();
        engine_logits(&mut model, &tokens, tokens.len(), 16)
    };
    let (wanted, seen) = (logits(exact()), logits(LoadOptions::default()));
    let (kl, logit) = (kl_nats(&wanted, &seen), max_difference(&wanted, &seen));
    println!("its own file, Q4_1 held as Q8_0: {kl:.3e} nats/tok, |Δlogit| {logit:.4}");
    assert!(
        kl <= 4e-3 && logit <= 1.5,
        "{kl} nats, a logit off by {logit}"
    );
}

/// The file's tensors as F32 under their Hugging Face names, rotary rows in half-split order.
fn smollm2_tensors(file: &Path, gguf: &Gguf, shape: &Shape) -> Tensors {
    let bytes = std::fs::read(file).unwrap();
    let mut names = vec![
        "model.embed_tokens.weight".to_owned(),
        "model.norm.weight".into(),
    ];
    for layer in 0..shape.layers {
        let parts = [
            "input_layernorm",
            "post_attention_layernorm",
            "self_attn.q_proj",
            "self_attn.k_proj",
            "self_attn.v_proj",
            "self_attn.o_proj",
            "mlp.gate_proj",
            "mlp.up_proj",
            "mlp.down_proj",
        ];
        names.extend(parts.map(|part| format!("model.layers.{layer}.{part}.weight")));
    }
    names
        .into_iter()
        .map(|name| {
            let info = &gguf.tensors[&common::gguf::gguf_name(&name)];
            let stored = &bytes[info.start_bytes as usize..][..info.len_bytes];
            let mut values = dequantise(info.stored, stored).unwrap();
            if name.contains("q_proj") || name.contains("k_proj") {
                values = common::gguf::half_split(&values, info.shape[1], shape.head_dim);
            }
            (name, (info.shape.clone(), values))
        })
        .collect()
}

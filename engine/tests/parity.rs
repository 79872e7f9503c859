//! Logits against candle-transformers' models with their dense caches.

mod common;

use common::{Shape, assert_close, engine_logits, exact, oracle, text};
use etime_engine::{LoadOptions, Model};
use serde_json::json;

const TOLERANCE: f32 = 1e-4;

fn check(shape: &Shape, label: &str) {
    let tokens = text(45, shape.vocab, 5);
    let wanted = oracle(&shape.config_json(), &shape.tensors(9), &tokens);
    let spread = wanted.iter().flatten().fold(0.0f32, |m, x| m.max(x.abs()));
    assert!(spread > 1.0, "{label}: logits below {spread} prove little");
    let mut model = shape.model(9);
    for (chunk, block_tok) in [(1, 16), (7, 16), (45, 32)] {
        let seen = engine_logits(&mut model, &tokens, chunk, block_tok);
        assert_close(&seen, &wanted, TOLERANCE, label);
    }
}

#[test]
fn llama_without_grouped_heads_matches_the_dense_cache() {
    check(&Shape::llama(4, 4, 32, false), "4 heads, untied");
    check(&Shape::llama(4, 4, 16, true), "4 heads, tied");
}

#[test]
fn llama_with_three_and_eight_queries_per_key_matches_the_dense_cache() {
    check(&Shape::llama(9, 3, 16, true), "9 over 3, tied");
    check(&Shape::llama(3, 1, 64, false), "3 over 1, untied");
    check(&Shape::llama(8, 1, 8, false), "8 over 1, untied");
}

#[test]
fn llama3_rope_scaling_matches_the_dense_cache() {
    let mut shape = Shape::llama(6, 2, 32, true);
    shape.rope_scaling = json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64
    });
    check(&shape, "llama3 scaling");
}

#[test]
fn mistral_qwen2_and_qwen3_match_the_dense_cache_through_their_switches() {
    let mut shape = Shape::llama(4, 2, 16, false);
    shape.architecture = "mistral";
    check(&shape, "mistral");
    shape.architecture = "qwen2";
    check(&shape, "qwen2: biases");
    shape.tied = true;
    check(&shape, "qwen2, tied");
    shape.architecture = "qwen3";
    shape.head_dim = 32;
    check(
        &shape,
        "qwen3: head norms, heads wider than the hidden size",
    );
}

#[test]
fn half_precision_safetensors_match_the_dense_cache_and_stay_half_precision() {
    for architecture in ["llama", "mistral", "qwen2", "qwen3"] {
        let mut shape = Shape::llama(4, 2, 16, architecture == "llama");
        shape.architecture = architecture;
        let bytes = common::f16_safetensors_bytes(&shape.tensors(9));
        let mut rounded = shape.tensors(9);
        for (_, values) in rounded.values_mut() {
            for x in values {
                *x = etime_kernels::cpu::f16_to_f32(etime_kernels::cpu::f32_to_f16(*x));
            }
        }
        let json = shape.config_json().to_string();
        let load = |options| Model::from_bytes("f16", json.as_bytes(), &bytes, options).unwrap();
        let tokens = text(30, shape.vocab, 5);
        let (mut half, mut wide) = (load(LoadOptions::default()), load(exact()));
        let seen = engine_logits(&mut half, &tokens, 7, 16);
        let wanted = oracle(&shape.config_json(), &rounded, &tokens);
        assert_close(&seen, &wanted, TOLERANCE, architecture);
        assert_eq!(seen, engine_logits(&mut wide, &tokens, 7, 16));
        assert_eq!(2 * half.weight_bytes(), wide.weight_bytes());
        assert!(half.holdings().contains_key("F16"), "{:?}", half.holdings());
    }
}

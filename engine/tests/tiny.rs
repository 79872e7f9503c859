//! The bundled model: parity with candle-transformers' dense cache and invariance on trained weights.

mod common;

use std::collections::HashMap;
use std::path::PathBuf;

use candle_core::{DType, Device as CandleDevice};
use candle_nn::VarBuilder;
use common::{assert_close, engine_logits, exact, oracle_with, text};
use etime_engine::Model;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models/tiny")
}

#[test]
fn tiny_matches_the_dense_cache() {
    let config = std::fs::read_to_string(folder().join("config.json")).unwrap();
    let tensors: HashMap<_, _> =
        candle_core::safetensors::load(folder().join("model.safetensors"), &CandleDevice::Cpu)
            .unwrap()
            .into_iter()
            .map(|(name, tensor)| (name, tensor.to_dtype(DType::F32).unwrap()))
            .collect();
    let vb = VarBuilder::from_tensors(tensors, DType::F32, &CandleDevice::Cpu);
    let mut model = Model::load(&folder(), exact()).unwrap();
    let tokens = text(120, model.config().vocab, 4);
    let wanted = oracle_with(&serde_json::from_str(&config).unwrap(), vb, &tokens);
    assert_close(
        &engine_logits(&mut model, &tokens, 50, 16),
        &wanted,
        1e-4,
        "tiny",
    );
}

#[test]
fn tiny_in_chunks_is_bit_equal_to_one_prefill() {
    let mut model = Model::load(&folder(), exact()).unwrap();
    let tokens = text(100, model.config().vocab, 6);
    let whole = engine_logits(&mut model, &tokens, 100, 16);
    for chunk in [1, 3, 15, 16, 17] {
        assert!(
            engine_logits(&mut model, &tokens, chunk, 16) == whole,
            "chunk {chunk}"
        );
    }
}

//! Any bytes as a model file.

use std::path::Path;

use etime_engine::gguf::Gguf;
use etime_engine::tokenizer::Tokenizer;
use etime_engine::{KvPool, LoadOptions, Model, SeqStep, Wanted};

const BLOCK_TOK: usize = 4;
/// Longer steps would only time the kernels.
const TOKENS: usize = 3;

/// A GGUF file.
pub fn gguf(bytes: &[u8]) {
    if let Ok(header) = Gguf::read(bytes, Path::new("fuzz.gguf"), bytes.len() as u64) {
        let tokenizer = Tokenizer::from_gguf(&header.metadata);
        if let Ok(tokenizer) = tokenizer {
            // An error is an answer too.
            let _ = tokenizer.encode("a b");
        }
    }
    if let Ok(model) = Model::from_gguf_bytes("fuzz.gguf", bytes, LoadOptions::default()) {
        run(model);
    }
}

/// The length of a config (u16, little endian), the config, the weights.
pub fn safetensors(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (config, weights) = rest.split_at(length);
    if let Ok(model) = Model::from_bytes("fuzz", config, weights, LoadOptions::default()) {
        run(model);
    }
}

fn run(mut model: Model) {
    let config = model.config();
    let n_tok = TOKENS.min(config.context_tok);
    let tokens: Vec<u32> = (0..n_tok).map(|t| (t % config.vocab) as u32).collect();
    let Ok(mut kv) = KvPool::new(config, 1, BLOCK_TOK) else {
        return;
    };
    let step = SeqStep {
        tokens: &tokens,
        start_tok: 0,
        blocks: &[0],
        kept: None,
        logits: Wanted::Last,
    };
    // Weights may be so large that logits overflow: the sensor refuses those, here only the shapes are checked.
    if let Ok(out) = model.forward(&mut kv, &[step]) {
        assert_eq!(out.logits.len(), model.config().vocab);
    }
}

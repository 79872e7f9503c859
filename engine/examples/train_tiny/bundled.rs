//! The committed model, judged with the training network.

use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Llama, LlamaConfig};
use tokenizers::Tokenizer;

use crate::bpe::{self, END_OF_TEXT, END_OF_TEXT_ID};
use crate::fit;
use crate::net::{Config, Net};

/// Lines in the manner of the training text, written for this test.
const UNSEEN: &str = "\
KEEPER:
Good morrow, sir. What news of the old mill?
The river rose last night, and I do fear
The wheel is broke and all the grain is lost.

MILLER:
Then let it go, my friend; I'll build again,
And when the spring is come we shall have bread.
";

const MAX_BYTES: u64 = 4_000_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny")
}

fn config() -> Config {
    let json = fs::read_to_string(folder().join("config.json")).unwrap();
    serde_json::from_str(&json).unwrap()
}

fn tokenizer() -> Tokenizer {
    Tokenizer::from_file(folder().join("tokenizer.json")).unwrap()
}

fn net() -> Net {
    Net::load(config(), &folder().join("model.safetensors")).unwrap()
}

#[test]
fn unseen_lines_cost_far_less_than_a_uniform_guess_and_less_than_scrambled_ones() {
    let (net, mut tokens) = (net(), bpe::encode(&tokenizer(), UNSEEN).unwrap());
    let nats = fit::held_out_nats(&net, &tokens).unwrap();
    let uniform = f64::from(net.config.vocab_size as u32).ln();
    assert!(
        nats.is_finite() && nats < uniform - 1.5,
        "{nats}, {uniform}"
    );
    tokens.reverse();
    let scrambled = fit::held_out_nats(&net, &tokens).unwrap();
    assert!(nats < scrambled - 1.0, "{nats}, {scrambled}");
}

#[test]
fn logits_are_finite_over_the_whole_context() {
    let net = net();
    let tokens = bpe::encode(&tokenizer(), &UNSEEN.repeat(6)).unwrap();
    let tokens = &tokens[..net.config.max_position_embeddings];
    let nats = fit::held_out_nats(&net, tokens).unwrap();
    assert!(nats.is_finite() && nats < 4.0, "{nats}");
}

/// candle-transformers reads the same files by Hugging Face's conventions (names, row order of RoPE, GQA).
#[test]
fn an_independent_llama_reads_the_files_to_the_same_logits() {
    let json = fs::read_to_string(folder().join("config.json")).unwrap();
    let theirs = serde_json::from_str::<LlamaConfig>(&json).unwrap();
    let theirs = theirs.into_config(false);
    let bytes = fs::read(folder().join("model.safetensors")).unwrap();
    let weights = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu).unwrap();
    let llama = Llama::load(weights, &theirs).unwrap();
    let (net, tokens) = (net(), bpe::encode(&tokenizer(), UNSEEN).unwrap());
    for len in [1, 2, 37, tokens.len()] {
        let input = Tensor::from_slice(&tokens[..len], (1, len), &Device::Cpu).unwrap();
        let mut cache = Cache::new(false, DType::F32, &theirs, &Device::Cpu).unwrap();
        let a = llama.forward(&input, 0, &mut cache).unwrap();
        let b = net.forward(&input, None).unwrap();
        let b = b.narrow(0, len - 1, 1).unwrap();
        let gap = (a - b).unwrap().abs().unwrap().flatten_all().unwrap();
        let gap = gap.max(0).unwrap().to_scalar::<f32>().unwrap();
        assert!(gap < 1e-4, "{len} tokens: {gap}");
    }
}

#[test]
fn config_tokenizer_and_card_agree() {
    let (config, tokenizer) = (config(), tokenizer());
    assert_eq!(tokenizer.get_vocab_size(true), config.vocab_size);
    assert_eq!(tokenizer.token_to_id(END_OF_TEXT), Some(END_OF_TEXT_ID));
    assert_eq!(config.bos_token_id, END_OF_TEXT_ID);
    assert_eq!(config.eos_token_id, END_OF_TEXT_ID);
    assert!((300_000..=1_000_000).contains(&config.parameters()));
    let card = fs::read_to_string(folder().join("README.md")).unwrap();
    assert!(card.contains(&format!("{} parameters", config.parameters())));
}

#[test]
fn the_tokenizer_gives_any_text_back() {
    let tokenizer = tokenizer();
    for text in [
        UNSEEN,
        "naïve — 漢字 🎭\u{0}\t\r\n",
        " 12  3.5e-7 {[ ]};",
        "",
    ] {
        let ids = bpe::encode(&tokenizer, text).unwrap();
        assert_eq!(tokenizer.decode(&ids, false).unwrap(), text);
    }
}

#[test]
fn the_model_is_small_enough_to_embed() {
    let bytes: u64 = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes <= MAX_BYTES, "{bytes} bytes");
}

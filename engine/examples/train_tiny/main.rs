//! Trains the bundled `tiny` model from one text file and writes it as a Hugging Face directory.
//!
//! It runs two threads of its own; `RAYON_NUM_THREADS=1` keeps the tensor library from adding more.
//! `RAYON_NUM_THREADS=1 cargo run --release -p etime-engine --example train_tiny -- --text tinyshakespeare.txt --out DIR`

mod bigram;
mod bpe;
#[cfg(test)]
mod bundled;
mod card;
mod fit;
mod muon;
mod net;
mod ops;
mod text;
mod windows;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tokenizers::Tokenizer;

use bigram::Bigram;
use fit::{LONG_TOK, Recipe, Schedule};
use net::{Config, Net};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const SAMPLE_PROMPT: &str = "DUKE:\n";
const SAMPLE_TOK: usize = 240;
const SAMPLE_TEMPERATURE: f64 = 0.8;

#[derive(Parser)]
#[command(about = "Train the bundled tiny model from one text file")]
struct Args {
    /// The training text, UTF-8
    #[arg(long)]
    text: PathBuf,
    /// Directory for model.safetensors, config.json, tokenizer.json and README.md
    #[arg(long)]
    out: PathBuf,
    /// Seed of initial weights, window order, dropout and sample
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Optimiser steps
    #[arg(long, default_value_t = 2400, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Tokens per step, rounded down to whole windows on each of two threads
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1024..))]
    step_tok: u32,
    /// Vocabulary size
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(512..=1024))]
    vocab: u32,
    /// Dropout rate
    #[arg(long, default_value_t = 0.05)]
    dropout: f64,
    /// Peak learning rate of AdamW; Muon's is in fixed proportion
    #[arg(long, default_value_t = 3e-3)]
    rate: f64,
}

fn main() -> Outcome<()> {
    let args = Args::parse();
    check(&args)?;
    let bytes = fs::read(&args.text).map_err(|e| format!("{}: {e}", args.text.display()))?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|e| format!("{} is not UTF-8: {e}", args.text.display()))?;
    fs::create_dir_all(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;

    let splits = text::split(text);
    let tokenizer = bpe::train(splits.train, args.vocab as usize)?;
    let encode = |part: &str| bpe::encode(&tokenizer, part);
    let (train, dev, test) = (
        encode(splits.train)?,
        encode(splits.dev)?,
        encode(splits.test)?,
    );
    if train.len() <= 2 * LONG_TOK || dev.len() < 2 || test.len() < 2 {
        return Err(format!(
            "{} gives {} train, {} dev and {} test tokens; at least {} train tokens are needed",
            args.text.display(),
            train.len(),
            dev.len(),
            test.len(),
            2 * LONG_TOK + 1
        )
        .into());
    }
    let bigram = Bigram::fit(&train, &dev, args.vocab as usize);
    println!(
        "tokens {} / {} / {}, bigram {:?}: dev {:.4}, test {:.4} nats/token",
        train.len(),
        dev.len(),
        test.len(),
        bigram.smoothing,
        bigram.loss_nats(&dev),
        bigram.loss_nats(&test)
    );

    let config = config(args.vocab as usize);
    tokenizer.save(args.out.join("tokenizer.json"), false)?;
    let json = serde_json::to_string_pretty(&config)?;
    fs::write(args.out.join("config.json"), json + "\n")?;
    let weights_file = args.out.join("model.safetensors");
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let net = Net::init(config.clone(), &mut rng)?;
    println!("{} parameters", config.parameters());
    let recipe = recipe(&args);
    let trained = fit::train(&net, &train, &dev, &recipe, |net| net.save(&weights_file))?;

    let net = Net::load(config, &weights_file)?;
    let test_nats = fit::held_out_nats(&net, &test)?;
    let test_chars = tokenizer.decode(&test[1..], false)?.chars().count();
    let card = card::Card {
        config: &net.config,
        text_name: &file_name(&args.text),
        text_sha256: &text::sha256_hex(&bytes),
        text_bytes: bytes.len(),
        split_tok: [train.len(), dev.len(), test.len()],
        seed: args.seed,
        steps: recipe.schedule.steps,
        step_tok: recipe.step_tok,
        best_step: trained.best_step,
        train_seconds: trained.seconds,
        command: &command(&args),
        dev_nats: trained.best_dev_nats,
        test_nats,
        test_nats_per_char: test_nats * (test.len() - 1) as f64 / test_chars as f64,
        test_tok: test.len() - 1,
        bigram_dev_nats: bigram.loss_nats(&dev),
        bigram_test_nats: bigram.loss_nats(&test),
        smoothing: bigram.smoothing,
        sample_temperature: SAMPLE_TEMPERATURE,
        sample_prompt: SAMPLE_PROMPT,
        sample: &sample(&net, &tokenizer, args.seed)?,
    };
    fs::write(args.out.join("README.md"), card.markdown()?)?;
    println!("test {test_nats:.4} nats/token");
    Ok(())
}

fn check(args: &Args) -> Outcome<()> {
    if !(0.0..0.9).contains(&args.dropout) {
        return Err(format!("--dropout {}: 0 <= rate < 0.9 is allowed", args.dropout).into());
    }
    if !(args.rate > 0.0 && args.rate <= 0.1) {
        return Err(format!("--rate {}: 0 < rate <= 0.1 is allowed", args.rate).into());
    }
    Ok(())
}

fn config(vocab_size: usize) -> Config {
    Config {
        architectures: vec!["LlamaForCausalLM".into()],
        model_type: "llama".into(),
        hidden_act: "silu".into(),
        torch_dtype: "float32".into(),
        hidden_size: 128,
        intermediate_size: 384,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 32,
        rms_norm_eps: 1e-5,
        rope_theta: 1e4,
        max_position_embeddings: LONG_TOK,
        vocab_size,
        tie_word_embeddings: true,
        attention_bias: false,
        mlp_bias: false,
        bos_token_id: bpe::END_OF_TEXT_ID,
        eos_token_id: bpe::END_OF_TEXT_ID,
    }
}

fn recipe(args: &Args) -> Recipe {
    let steps = args.steps as usize;
    Recipe {
        schedule: Schedule {
            steps,
            warmup_steps: 100.min(steps / 2),
            peak_rate: args.rate,
            final_share: 0.02,
        },
        step_tok: args.step_tok as usize,
        dropout: args.dropout,
        weight_decay: 0.05,
        seed: args.seed,
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The command that trains this model again, with file names in place of paths.
fn command(args: &Args) -> String {
    format!(
        "RAYON_NUM_THREADS=1 cargo run --release -p etime-engine --example train_tiny -- --text {} --out DIR \\\n  \
         --seed {} --steps {} --step-tok {} --vocab {} --dropout {} --rate {}",
        file_name(&args.text),
        args.seed,
        args.steps,
        args.step_tok,
        args.vocab,
        args.dropout,
        args.rate
    )
}

fn sample(net: &Net, tokenizer: &Tokenizer, seed: u64) -> Outcome<String> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(2);
    let prompt = bpe::encode(tokenizer, SAMPLE_PROMPT)?;
    let drawn = fit::sample(net, &prompt, SAMPLE_TOK, SAMPLE_TEMPERATURE, &mut rng)?;
    tokenizer.decode(&drawn, false)
}

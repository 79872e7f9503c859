//! What the fuzzers drive, driven by seeded damage; and the fuzzers' seeds.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::MEMORY;
use crate::common::safetensors_bytes;
use crate::judge::alone;
use crate::safetensors::shape;
use crate::writer::sample;

#[path = "../../../fuzz/entries/models.rs"]
mod entries;
#[path = "../../../fuzz/entries/mutate.rs"]
mod mutator;

const BUDGET: Duration = Duration::from_secs(60);
/// Weights, their packed form, the tokenizer's tables and a step of three tokens.
const MOST_FILES: usize = 12;
const MOST_FIXED_BYTES: usize = 256 << 10;

/// The length of a config, the config and the weights, as the fuzzer takes them.
fn checkpoint() -> Vec<u8> {
    let config = shape().config_json().to_string();
    let length = (config.len() as u16).to_le_bytes();
    let weights = safetensors_bytes(&shape().tensors(2));
    [&length[..], config.as_bytes(), &weights].concat()
}

/// Length of config and header together.
fn checkpoint_header_bytes(bytes: &[u8]) -> usize {
    let config = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    let header = bytes[2 + config..].first_chunk().unwrap();
    2 + config + 8 + u64::from_le_bytes(*header) as usize
}

fn drive(name: &str, seed: &[u8], header_bytes: usize, entry: fn(&[u8])) {
    let _alone = alone();
    entry(seed);
    let start = Instant::now();
    let (mut cases, mut largest) = (0_u64, 0);
    while start.elapsed() < BUDGET {
        let bytes = mutator::Mutator(cases).damage(seed, header_bytes);
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let ended = catch_unwind(AssertUnwindSafe(|| entry(&bytes)));
        let peak = MEMORY.peak_usage().saturating_sub(before);
        assert!(ended.is_ok(), "{name}: case {cases} panicked");
        let most = MOST_FILES * bytes.len() + MOST_FIXED_BYTES;
        assert!(peak <= most, "{name}: case {cases} held {peak} bytes");
        largest = largest.max(peak);
        cases += 1;
    }
    println!(
        "{name}: {cases} mutations, at most {} KiB held",
        largest >> 10
    );
}

#[test]
#[ignore = "a minute; the full gate runs it"]
fn mutations_of_a_gguf_file_neither_panic_nor_take_much_memory() {
    let sample = sample();
    drive("GGUF", &sample.bytes, sample.header_bytes, entries::gguf);
}

#[test]
#[ignore = "a minute; the full gate runs it"]
fn mutations_of_a_checkpoint_neither_panic_nor_take_much_memory() {
    let seed = checkpoint();
    let header_bytes = checkpoint_header_bytes(&seed);
    drive("safetensors", &seed, header_bytes, entries::safetensors);
}

#[test]
#[ignore = "writes into fuzz/corpus, which git ignores"]
fn seeds_of_the_fuzzers_of_model_files_are_written() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let seeds = [("gguf", sample().bytes), ("safetensors", checkpoint())];
    for (target, bytes) in seeds {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("seed"), &bytes).unwrap();
        println!("{target}: {} bytes", bytes.len());
    }
}

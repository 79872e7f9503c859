use std::path::Path;

use etime_engine::gguf::Gguf;
use etime_engine::tokenizer::Tokenizer;
use etime_engine::{LoadOptions, Model};

use crate::common::exact;
use crate::judge::{Tally, alone};
use crate::writer::{Field, Sample, sample};

const BLOCK_BYTES: usize = 4096;

fn load(bytes: &[u8]) -> Result<Model, String> {
    let model = Model::from_gguf_bytes("m.gguf", bytes, LoadOptions::default());
    let model = model.map_err(|e| e.to_string())?;
    let gguf = Gguf::read(bytes, Path::new("m.gguf"), bytes.len() as u64);
    let tokenizer = Tokenizer::from_gguf(&gguf.map_err(|e| e.to_string())?.metadata);
    let tokenizer = tokenizer.map_err(|e| e.to_string())?;
    tokenizer
        .check_against(model.config().vocab)
        .map_err(|e| e.to_string())?;
    Ok(model)
}

/// Wrong values of a field: near the right one, at the edges of common types, and those of other fields like it.
fn wrong_values(field: &Field, sample: &Sample) -> Vec<u64> {
    let mask = u64::MAX >> (64 - 8 * field.width_bytes);
    let right = field.value;
    let edges = [0, 1, 1 << 31, 1 << 32, 1 << 63, u64::MAX, u64::MAX - 31];
    let near = [
        right.wrapping_sub(1),
        right.wrapping_add(1),
        right.wrapping_add(32),
    ];
    let mut values: Vec<u64> = edges.into_iter().chain(near).collect();
    if field.name.starts_with("type of") || field.name.starts_with("item type") {
        values.extend(0..48);
    }
    if field.name.starts_with("offset of") {
        let offsets = sample
            .fields
            .iter()
            .filter(|f| f.name.starts_with("offset of"));
        values.extend(offsets.map(|f| f.value));
    }
    let mut values: Vec<u64> = values.iter().map(|value| value & mask).collect();
    values.sort_unstable();
    values.dedup();
    values.retain(|&value| value != right);
    values
}

/// Fields that may hold another number without making the file one that contradicts itself.
fn may_differ(what: &str) -> bool {
    let fields = [
        // Numbers that the tensors do not bear out.
        "value of llama.context_length",
        "value of llama.attention.layer_norm_rms_epsilon",
        "value of llama.rope.freq_base",
        "value of tokenizer.ggml.eos_token_id",
        "value of tokenizer.ggml.add_bos_token",
        "an item of tokenizer.ggml.token_type",
        // A signed for an unsigned integer of the same width.
        "type of llama",
        "type of tokenizer",
        "item type of tokenizer.ggml.token_type",
        // BF16 for F16.
        "type of tensor",
        // Version 2 is laid out as version 3.
        "version",
        // Nothing reads these.
        "value of x.",
        "type of x.",
        "item type of x.",
    ];
    fields.iter().any(|field| what.starts_with(field))
}

#[test]
fn every_wrong_field_flipped_bit_and_cut_of_a_gguf_file_is_refused_or_harmless() {
    let _alone = alone();
    let sample = sample();
    let mut right = load(&sample.bytes).unwrap();
    let exactly = Model::from_gguf_bytes("m.gguf", &sample.bytes, exact()).unwrap();
    assert_eq!(right.holdings().len(), 4, "{:?}", right.holdings());
    assert!(exactly.holdings().contains_key("Q4_1 → F32"));
    crate::common::engine_logits(&mut right, &[1, 2, 3], 3, 4);

    let mut fields = Tally::default();
    for field in &sample.fields {
        for value in wrong_values(field, &sample) {
            let mut bytes = sample.bytes.clone();
            let place = &mut bytes[field.at..][..field.width_bytes];
            place.copy_from_slice(&value.to_le_bytes()[..field.width_bytes]);
            let case = format!("{} {} instead of {}", field.name, value, field.value);
            fields.judge(&field.name, &case, &bytes, load);
        }
    }
    fields.print("GGUF, wrong fields");
    for what in fields.harmless.keys() {
        assert!(may_differ(what), "a wrong {what} went unnoticed");
    }

    let mut flips = Tally::default();
    for at in 0..sample.header_bytes {
        for flip in (0..8).map(|bit| 1 << bit).chain([0xff]) {
            let mut bytes = sample.bytes.clone();
            bytes[at] ^= flip;
            let what = "a flipped bit";
            flips.judge(
                what,
                &format!("byte {at} flipped by {flip:#04x}"),
                &bytes,
                load,
            );
        }
    }
    flips.print("GGUF, flipped header");

    let mut cuts = Tally::default();
    let whole = sample.bytes.len();
    let blocks = (0..whole).step_by(BLOCK_BYTES);
    for at in (0..sample.header_bytes).chain(blocks).chain([whole - 1]) {
        cuts.judge("a cut", &format!("cut at {at}"), &sample.bytes[..at], load);
    }
    cuts.print("GGUF, cut");
    // The last tensor ends on the file's last byte but for its padding, so nothing can be spared.
    assert!(cuts.harmless.is_empty());
    println!(
        "GGUF: {} cases",
        fields.cases() + flips.cases() + cuts.cases()
    );
}

#[test]
fn a_list_of_lists_is_read_to_a_depth_of_four_and_no_further() {
    let _alone = alone();
    let nested = |depth: usize| {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(b"k");
        bytes.extend(9_u32.to_le_bytes());
        for _ in 1..depth {
            bytes.extend(9_u32.to_le_bytes());
            bytes.extend(1_u64.to_le_bytes());
        }
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        Gguf::read(bytes.as_slice(), Path::new("m"), bytes.len() as u64)
    };
    assert!(nested(4).is_ok());
    let error = nested(5).unwrap_err().to_string();
    assert!(
        error.contains("key \"k\" is nested more than 4 deep"),
        "{error}"
    );
    let error = nested(100_000).unwrap_err().to_string();
    assert!(error.contains("nested more than 4 deep"), "{error}");
}

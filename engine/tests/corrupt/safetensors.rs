use etime_engine::{LoadOptions, Model};
use serde_json::{Value, json};

use crate::common::{Shape, safetensors_bytes};
use crate::judge::{Tally, alone};

const BLOCK_BYTES: usize = 4096;
const DTYPES: [&str; 16] = [
    "BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "I16", "U16", "F16", "BF16", "I32", "U32", "F64",
    "I64", "U64", "C64", "none",
];

pub fn shape() -> Shape {
    let mut shape = Shape::llama(2, 1, 8, false);
    (shape.vocab, shape.ffn, shape.layers) = (9, 24, 1);
    shape
}

fn load(bytes: &[u8]) -> Result<Model, String> {
    let config = shape().config_json().to_string();
    let model = Model::from_bytes("m", config.as_bytes(), bytes, LoadOptions::default());
    model.map_err(|e| e.to_string())
}

/// A file with this header in front of this data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), data].concat()
}

/// Wrong values of a number in the header.
fn wrong_numbers(right: u64) -> Vec<Value> {
    let numbers = [
        0,
        right.wrapping_sub(1),
        right + 1,
        1 << 31,
        1 << 32,
        1 << 63,
        u64::MAX,
    ];
    let numbers = numbers.into_iter().filter(|&n| n != right);
    let others = [json!(-1), json!(1.5), json!("0"), json!(null), json!([])];
    numbers.map(Value::from).chain(others).collect()
}

#[test]
fn every_wrong_field_flipped_bit_and_cut_of_a_safetensors_file_is_refused_or_harmless() {
    let _alone = alone();
    let right = safetensors_bytes(&shape().tensors(2));
    crate::common::engine_logits(&mut load(&right).unwrap(), &[1, 2, 3], 3, 4);
    let header_bytes = 8 + u64::from_le_bytes(*right.first_chunk().unwrap()) as usize;
    let (header, data) = (&right[8..header_bytes], &right[header_bytes..]);
    let header: Value = serde_json::from_slice(header).unwrap();
    let names: Vec<&String> = header.as_object().unwrap().keys().collect();

    let mut fields = Tally::default();
    let length = (header_bytes - 8) as u64;
    for wrong in wrong_numbers(length).iter().filter_map(Value::as_u64) {
        let mut bytes = right.clone();
        bytes[..8].copy_from_slice(&wrong.to_le_bytes());
        let case = format!("header length {wrong} instead of {length}");
        fields.judge("header length", &case, &bytes, load);
    }
    let mut change = |what: String, edit: &dyn Fn(&mut Value)| {
        let mut changed = header.clone();
        edit(&mut changed);
        if changed == header {
            return;
        }
        let bytes = file(&changed.to_string(), data);
        fields.judge(&what, &format!("{what}: {changed}"), &bytes, load);
    };
    for &name in &names {
        let entry = &header[name];
        for dtype in DTYPES {
            change(format!("dtype of {name}"), &|h| {
                h[name]["dtype"] = json!(dtype)
            });
        }
        for list in ["shape", "data_offsets"] {
            let numbers = entry[list].as_array().unwrap();
            for (i, number) in numbers.iter().enumerate() {
                for wrong in wrong_numbers(number.as_u64().unwrap()) {
                    change(format!("{list} of {name}"), &|h| {
                        h[name][list][i] = wrong.clone()
                    });
                }
            }
            change(format!("{list} of {name}"), &|h| h[name][list] = json!([]));
            change(format!("{list} of {name}"), &|h| {
                h[name][list] = json!([1, 2, 3])
            });
        }
        for &other in &names {
            let offsets = &header[other]["data_offsets"];
            change(format!("data_offsets of {name}"), &|h| {
                h[name]["data_offsets"] = offsets.clone()
            });
        }
        change(format!("entry of {name}"), &|h| {
            drop(h.as_object_mut().unwrap().remove(name))
        });
        change(format!("entry of {name}"), &|h| h[name] = json!(3));
    }
    fields.print("safetensors, wrong fields");
    assert!(fields.harmless.is_empty(), "a wrong field went unnoticed");

    let mut flips = Tally::default();
    for at in 0..header_bytes {
        for flip in (0..8).map(|bit| 1 << bit).chain([0xff]) {
            let mut bytes = right.clone();
            bytes[at] ^= flip;
            let case = format!("byte {at} flipped by {flip:#04x}");
            flips.judge("a flipped bit", &case, &bytes, load);
        }
    }
    flips.print("safetensors, flipped header");

    let mut cuts = Tally::default();
    let blocks = (0..right.len()).step_by(BLOCK_BYTES);
    for at in (0..header_bytes).chain(blocks).chain([right.len() - 1]) {
        cuts.judge("a cut", &format!("cut at {at}"), &right[..at], load);
    }
    cuts.print("safetensors, cut");
    assert!(cuts.harmless.is_empty());
    println!(
        "safetensors: {} cases",
        fields.cases() + flips.cases() + cuts.cases()
    );
}

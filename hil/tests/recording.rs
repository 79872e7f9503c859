//! Recordings on disk: the same numbers back, or a clear error.

use etime_hil::rundir::{read_recording, write_recording};
use etime_sim::{RecordedRequest, RecordedStep, Recording};
use std::fs;

fn recording() -> Recording {
    let vocab = 5;
    let request = |request: u64, steps: usize| RecordedRequest {
        request,
        prompt_tok: 3 + steps,
        rows: (0..steps)
            .map(|s| {
                (0..vocab)
                    .map(|i| (request as f32 + s as f32) / (i as f32 + 0.3))
                    .collect()
            })
            .collect(),
        steps: (0..steps)
            .map(|s| RecordedStep {
                token: s as u32,
                u: s as f64 * 0.1 - 1.0,
                surprisal_nats: s as f64 / 3.0,
                raw_surprisal_nats: s as f64 / 7.0,
            })
            .collect(),
    };
    let mut requests = vec![request(9, 4), request(2, 0), request(7, 1)];
    requests[0].rows[1] = vec![f32::NEG_INFINITY, -0.0, 1.0, f32::MIN_POSITIVE, 3.5].into();
    Recording {
        vocab,
        descriptor: "Fixed T = 1, dense \"quoted\" ⊢".to_string(),
        requests,
    }
}

fn bytes() -> Vec<u8> {
    let mut out = Vec::new();
    write_recording(&mut out, &recording()).unwrap();
    out
}

fn read(bytes: &[u8]) -> Result<Recording, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.safetensors");
    fs::write(&path, bytes).unwrap();
    read_recording(&path).map_err(|e| {
        let text = e.to_string();
        assert!(text.contains("recording.safetensors"), "{text}");
        text
    })
}

/// `bytes` with `from` replaced by `to` of the same length in the header.
fn forged(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes();
    let at = bytes
        .windows(from.len())
        .position(|w| w == from.as_bytes())
        .unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn a_recording_comes_back_equal_and_its_bytes_are_stable() {
    assert_eq!(read(&bytes()).unwrap(), recording());
    assert_eq!(bytes(), bytes());
    assert_eq!(
        read(&{
            let mut out = Vec::new();
            write_recording(&mut out, &Recording::default()).unwrap();
            out
        })
        .unwrap(),
        Recording::default()
    );
}

#[test]
fn the_reference_reader_of_the_format_accepts_it() {
    let bytes = bytes();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("logits").unwrap().shape(), [5, 5]);
    assert_eq!(
        tensors.tensor("token").unwrap().data()[4..8],
        1u32.to_le_bytes()
    );
}

#[test]
fn every_truncation_is_an_error_that_says_so() {
    let bytes = bytes();
    for len in 0..bytes.len() {
        let text = read(&bytes[..len]).unwrap_err();
        assert!(text.contains("truncated"), "{len}: {text}");
    }
}

#[test]
fn a_misshapen_recording_names_the_tensor() {
    for (from, to, part) in [
        ("\"token\"", "\"tokem\"", "no tensor `token`"),
        ("\"U32\"", "\"I32\"", "tensor `token` is I32"),
        ("\"descriptor\"", "\"descriptoo\"", "no `descriptor`"),
        ("\"shape\":[5,5]", "\"shape\":[1,5]", "header"),
    ] {
        let text = read(&forged(from, to)).unwrap_err();
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut long = bytes();
    long.push(0);
    assert!(read(&long).unwrap_err().contains("tensors end after"));
    let mut wild = bytes();
    wild[7] = 0xff;
    assert!(read(&wild).unwrap_err().contains("not a recording"));
}

#[test]
fn request_lengths_that_do_not_add_up_are_refused() {
    let mut bytes = bytes();
    let header_bytes = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    // `steps` is the third vector of three requests.
    bytes[8 + header_bytes + 2 * 3 * 8] = 200;
    let text = read(&bytes).unwrap_err();
    assert!(
        text.contains("200") && text.contains("rows are 5"),
        "{text}"
    );
}

#[test]
fn a_ragged_recording_is_not_written() {
    let mut ragged = recording();
    ragged.requests[0].steps.pop();
    assert!(write_recording(&mut Vec::new(), &ragged).is_err());
}

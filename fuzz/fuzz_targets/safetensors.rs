#![no_main]

#[path = "../entries/models.rs"]
#[allow(dead_code)]
mod models;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| models::safetensors(bytes));

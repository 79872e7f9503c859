#![no_main]

#[path = "../entries/scenario.rs"]
mod scenario;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scenario::scenario(bytes));

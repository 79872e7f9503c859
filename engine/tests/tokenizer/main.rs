//! The tokenizer on a vocabulary built here, and on SmolLM2's where it is present.

mod small;
mod smollm2;
mod strings;

//! Damaged files: every one is refused with an error, or gives finite logits; none panics and none makes the reader
//! allocate more than a few times its size.

#[path = "../common/mod.rs"]
mod common;
mod gguf;
mod judge;
mod mutate;
mod safetensors;
mod writer;

/// Knows the most bytes that were ever held.
#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

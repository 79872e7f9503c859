//! Numbers as model files store them.
//!
//! A quantised type stores blocks of 32 or 256 elements: integers of few bits, and scales that stretch them. Reading one
//! gives exactly the F32 that the reference code gives (ggml's `dequantize_row_*`), operation by operation, without fused
//! multiply-adds.

mod half;
mod k4;
mod k6;
mod q4;
mod q5;
mod q8;

use etime_kernels::cpu::{Q8_BLOCK as Q8_0_ELEMENTS, Q8_BLOCK_BYTES as Q8_0_BYTES};

use crate::gguf::TensorType;

pub use q8::quantise_q8_0;
pub(crate) use q8::{q8_0_row, scale_of};

/// What [`dequantise`] reads, for messages.
pub const READABLE: &str = "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K";

/// Most elements in a block of a type that can be read.
const MAX_BLOCK: usize = 256;

/// Turns one block into its elements.
type Reader = fn(&[u8], &mut [f32]);

fn reader(stored: TensorType) -> Option<Reader> {
    Some(match stored {
        TensorType::F32 => half::f32,
        TensorType::F16 => half::f16,
        TensorType::BF16 => half::bf16,
        TensorType::Q4_0 => q4::q4_0,
        TensorType::Q4_1 => q4::q4_1,
        TensorType::Q5_0 => q5::q5_0,
        TensorType::Q5_1 => q5::q5_1,
        TensorType::Q8_0 => q8::q8_0,
        TensorType::Q4_K => k4::q4_k,
        TensorType::Q5_K => k4::q5_k,
        TensorType::Q6_K => k6::q6_k,
        _ => return None,
    })
}

/// The elements of whole blocks; a rest that is no block is left out. `None` for a type that cannot be read.
pub fn dequantise(stored: TensorType, bytes: &[u8]) -> Option<Vec<f32>> {
    let read = reader(stored)?;
    let block = stored.block();
    let mut elements = vec![0.0; bytes.len() / block.bytes * block.elements];
    let blocks = bytes.chunks_exact(block.bytes);
    for (bytes, out) in blocks.zip(elements.chunks_exact_mut(block.elements)) {
        read(bytes, out);
    }
    Some(elements)
}

/// The same in blocks of Q8_0, by way of F32. `None` for a type that cannot be read or whose blocks are shorter than 32.
pub fn repack_q8_0(stored: TensorType, bytes: &[u8]) -> Option<Vec<u8>> {
    let read = reader(stored)?;
    let block = stored.block();
    if block.elements < Q8_0_ELEMENTS {
        return None;
    }
    let n_blocks = bytes.len() / block.bytes * (block.elements / Q8_0_ELEMENTS);
    let mut packed = Vec::with_capacity(n_blocks * Q8_0_BYTES);
    let mut elements = [0.0; MAX_BLOCK];
    let elements = &mut elements[..block.elements];
    for bytes in bytes.chunks_exact(block.bytes) {
        read(bytes, elements);
        q8::append(elements, &mut packed);
    }
    Some(packed)
}

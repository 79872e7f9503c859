//! CPU kernels on slices: F32 activations, weights in F32, F16 or Q8_0.

mod attention;
mod dispatch;
mod exp;
mod half;
mod kv;
mod matmul;
mod pointwise;
mod vector;

pub use attention::{Attention, AttentionOut, paged_attention};
pub use dispatch::{SimdLevel, simd_level};
pub use exp::exp_neg;
pub use half::{f16_to_f32, f32_to_f16};
pub use kv::write_kv;
pub use matmul::{MatrixPart, PackedMatrix, Q8_BLOCK, Q8_BLOCK_BYTES, matmul};
pub use pointwise::{RopeTable, add_bias, add_into, rms_norm, rope, silu_mul};

//! CPU kernels on F32 slices.

mod attention;
mod dispatch;
mod exp;
mod kv;
mod matmul;
mod pointwise;
mod vector;

pub use attention::{Attention, AttentionOut, paged_attention};
pub use dispatch::{SimdLevel, simd_level};
pub use exp::exp_neg;
pub use kv::write_kv;
pub use matmul::{PackedMatrix, matmul};
pub use pointwise::{RopeTable, add_bias, add_into, rms_norm, rope, silu_mul};

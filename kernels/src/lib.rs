//! Compute kernels as plain functions on slices. They know shapes, never a model.
//!
//! | function | does |
//! |---|---|
//! | [`cpu::write_kv`] | stores new keys and values in the block pool by slot |
//! | [`cpu::paged_attention`] | attends over a block list; output, log-sum-exp, attention mass per block |
//! | [`cpu::matmul`] | F32 activations × packed weights in F32, F16 or Q8_0 |
//! | [`cpu::rms_norm`], [`cpu::rope`], [`cpu::silu_mul`] | the pointwise rest of a transformer layer |
//!
//! Every CPU kernel is row-independent: the result of a row is a fixed sequence of correctly rounded
//! operations on that row's own data. It does not change with the other rows of the call, with the number
//! of threads, or with the SIMD width that was found at run time.
//!
//! Shapes ([`KvShape`], [`BlockLists`], [`AttnRows`]) and [`KernelError`] are shared by every backend; other devices get
//! modules beside [`cpu`].

pub mod cpu;
mod error;
mod shape;

pub use error::KernelError;
pub use shape::{AttnRows, BlockLists, KvShape};

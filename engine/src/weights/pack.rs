//! From the tensors of a file to the matrices of the kernels.

use etime_kernels::KernelError;
use etime_kernels::cpu::PackedMatrix;

use super::TensorData;

/// Matrices of `n_in` inputs, stacked along their outputs.
pub(super) fn pack(parts: Vec<TensorData>, n_in: usize) -> Result<PackedMatrix, KernelError> {
    let parts: Vec<Vec<f32>> = parts.into_iter().map(TensorData::into_f32).collect();
    let parts: Vec<&[f32]> = parts.iter().map(Vec::as_slice).collect();
    PackedMatrix::stack(&parts, n_in)
}

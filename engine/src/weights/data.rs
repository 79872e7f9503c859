//! A matrix as it is held: the bits of the file where a kernel can use them.

use std::path::Path;

use etime_kernels::cpu::{
    MatrixPart, Q8_BLOCK as Q8_0_ELEMENTS, Q8_BLOCK_BYTES as Q8_0_BYTES, f16_to_f32,
};

use crate::error::ModelError;
use crate::gguf::TensorType;
use crate::quant;
use crate::settings::WeightStorage;

/// How a matrix is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    F32,
    F16,
    Q8_0,
}

/// Rows of a matrix, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TensorData {
    F32(Vec<f32>),
    F16(Vec<u16>),
    /// Blocks of 34 bytes, an f16 scale and 32 signed bytes, along a row.
    Q8_0(Vec<u8>),
}

impl Held {
    /// What a matrix stored like this is held as: F32, F16 and Q8_0 as they are, BF16 exactly as F32, others as Q8_0.
    pub(crate) fn of(stored: TensorType, weights: WeightStorage) -> Self {
        match (weights, stored) {
            (WeightStorage::F32, _) | (_, TensorType::F32 | TensorType::BF16) => Held::F32,
            (_, TensorType::F16) => Held::F16,
            _ => Held::Q8_0,
        }
    }

    /// What stacked matrices are held as: one kind for all, F32 where they differ.
    pub(crate) fn together(self, other: Self) -> Self {
        match self == other {
            true => self,
            false => Held::F32,
        }
    }
}

impl TensorData {
    /// The tensor in `bytes`, whole blocks of `stored`.
    ///
    /// # Errors
    /// A type that cannot be read, and a number that is not finite: no product survives it.
    pub(crate) fn read(
        file: &Path,
        tensor: &str,
        stored: TensorType,
        bytes: Vec<u8>,
        held: Held,
    ) -> Result<Self, ModelError> {
        let data = match (held, stored) {
            (Held::F16, TensorType::F16) => Some(TensorData::F16(halves(&bytes))),
            (Held::Q8_0, TensorType::Q8_0) => Some(TensorData::Q8_0(bytes)),
            (Held::Q8_0, _) => quant::repack_q8_0(stored, &bytes).map(TensorData::Q8_0),
            _ => quant::dequantise(stored, &bytes).map(TensorData::F32),
        };
        let Some(data) = data else {
            return Err(ModelError::Dtype {
                file: file.to_path_buf(),
                tensor: tensor.into(),
                seen: format!("{stored:?}"),
                supported: quant::READABLE,
            });
        };
        match data.not_finite() {
            None => Ok(data),
            Some(reason) => Err(ModelError::Tensor {
                file: file.to_path_buf(),
                tensor: tensor.into(),
                reason,
            }),
        }
    }

    fn not_finite(&self) -> Option<String> {
        match self {
            TensorData::F32(values) => {
                let index = values.iter().position(|x| !x.is_finite())?;
                let seen = values[index];
                Some(format!("element {index} is {seen}, not a finite number"))
            }
            TensorData::F16(values) => {
                let finite = |&bits: &u16| f16_to_f32(bits).is_finite();
                let index = values.iter().position(|bits| !finite(bits))?;
                let seen = f16_to_f32(values[index]);
                Some(format!("element {index} is {seen}, not a finite number"))
            }
            TensorData::Q8_0(blocks) => {
                let blocks = blocks.as_chunks::<Q8_0_BYTES>().0;
                let index = blocks
                    .iter()
                    .position(|b| !quant::scale_of(b).is_finite())?;
                Some(format!(
                    "the Q8_0 scale of elements {} to {} is not a finite number",
                    index * Q8_0_ELEMENTS,
                    (index + 1) * Q8_0_ELEMENTS - 1
                ))
            }
        }
    }

    /// The rows for the kernels.
    pub(crate) fn part(&self) -> MatrixPart<'_> {
        match self {
            TensorData::F32(values) => MatrixPart::F32(values),
            TensorData::F16(values) => MatrixPart::F16(values),
            TensorData::Q8_0(blocks) => MatrixPart::Q8_0(blocks),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            TensorData::F32(values) => size_of_val(values.as_slice()),
            TensorData::F16(values) => size_of_val(values.as_slice()),
            TensorData::Q8_0(blocks) => blocks.len(),
        }
    }

    /// Row `index` of a matrix with rows of `row.len()` elements, as F32.
    pub(crate) fn copy_row(&self, index: usize, row: &mut [f32]) {
        let n_in = row.len();
        match self {
            TensorData::F32(values) => row.copy_from_slice(&values[index * n_in..][..n_in]),
            TensorData::F16(values) => {
                let stored = &values[index * n_in..][..n_in];
                for (x, &bits) in row.iter_mut().zip(stored) {
                    *x = f16_to_f32(bits);
                }
            }
            TensorData::Q8_0(blocks) => {
                let row_bytes = q8_0_row_bytes(n_in);
                quant::q8_0_row(&blocks[index * row_bytes..][..row_bytes], row);
            }
        }
    }

    /// All elements as F32.
    pub(crate) fn into_f32(self) -> Vec<f32> {
        match self {
            TensorData::F32(values) => values,
            TensorData::F16(values) => values.into_iter().map(f16_to_f32).collect(),
            TensorData::Q8_0(blocks) => {
                let mut values = vec![0.0; blocks.len() / Q8_0_BYTES * Q8_0_ELEMENTS];
                quant::q8_0_row(&blocks, &mut values);
                values
            }
        }
    }

    /// Rows of `n_in` elements, each head of `head_dim` rows put from interleaved into half-split rotary order: row
    /// 2i + j of a head becomes its row i + j·head_dim/2.
    pub(crate) fn half_split(self, n_in: usize, head_dim: usize) -> Self {
        match self {
            TensorData::F32(rows) => TensorData::F32(half_split_rows(&rows, n_in, head_dim)),
            TensorData::F16(rows) => TensorData::F16(half_split_rows(&rows, n_in, head_dim)),
            TensorData::Q8_0(rows) => {
                TensorData::Q8_0(half_split_rows(&rows, q8_0_row_bytes(n_in), head_dim))
            }
        }
    }
}

fn q8_0_row_bytes(n_in: usize) -> usize {
    n_in / Q8_0_ELEMENTS * Q8_0_BYTES
}

fn halves(bytes: &[u8]) -> Vec<u16> {
    let pairs = bytes.as_chunks().0;
    pairs.iter().map(|&pair| u16::from_le_bytes(pair)).collect()
}

fn half_split_rows<T: Copy>(stored: &[T], row_len: usize, head_dim: usize) -> Vec<T> {
    let mut rows = Vec::with_capacity(stored.len());
    for head in stored.chunks_exact(head_dim * row_len) {
        for half in 0..2 {
            for i in 0..head_dim / 2 {
                rows.extend_from_slice(&head[(2 * i + half) * row_len..][..row_len]);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stored: TensorType, bytes: &[u8], held: Held) -> Result<TensorData, String> {
        TensorData::read(Path::new("f"), "t", stored, bytes.to_vec(), held)
            .map_err(|error| error.to_string())
    }

    /// Two heads of four rows of 32 elements; element j of row r is r + j/64, exact in every storage.
    fn rows() -> Vec<f32> {
        (0..8 * 32).map(|i| (i / 32) as f32).collect()
    }

    #[test]
    fn whole_rows_move_whatever_they_are_stored_as() {
        let wide: Vec<u8> = rows().iter().flat_map(|x| x.to_le_bytes()).collect();
        let half = rows().into_iter().map(etime_kernels::cpu::f32_to_f16);
        let half: Vec<u8> = half.flat_map(u16::to_le_bytes).collect();
        let blocks = quant::quantise_q8_0(&rows());
        let order = [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0];
        for (stored, bytes, held) in [
            (TensorType::F32, wide, Held::F32),
            (TensorType::F16, half, Held::F16),
            (TensorType::Q8_0, blocks, Held::Q8_0),
        ] {
            let moved = read(stored, &bytes, held).unwrap().half_split(32, 4);
            let mut row = [0.0; 32];
            for (index, wanted) in order.into_iter().enumerate() {
                moved.copy_row(index, &mut row);
                assert!(
                    row.iter().all(|x| (x - wanted).abs() < 2e-3),
                    "{stored:?}: {row:?}"
                );
            }
            let all = moved.into_f32();
            assert_eq!(all.len(), 8 * 32);
            assert_eq!(all[7 * 32..], row);
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_refused_in_every_storage() {
        let inf = 0x7c00_u16.to_le_bytes();
        let error = read(TensorType::F16, &[[0, 0], inf].concat(), Held::F16).unwrap_err();
        assert!(error.contains("element 1 is inf"), "{error}");
        let mut blocks = quant::quantise_q8_0(&[1.0; 64]);
        blocks[34..36].copy_from_slice(&inf);
        let error = read(TensorType::Q8_0, &blocks, Held::Q8_0).unwrap_err();
        assert!(error.contains("elements 32 to 63"), "{error}");
        let error = read(TensorType::Q8_0, &blocks, Held::F32).unwrap_err();
        assert!(error.contains("element 32 is inf"), "{error}");
        let error = read(TensorType::Q2_K, &[0; 84], Held::Q8_0).unwrap_err();
        assert!(error.contains("stored as Q2_K; supported: F32"), "{error}");
    }

    #[test]
    fn matrices_of_different_storage_are_stacked_as_f32() {
        assert_eq!(Held::Q8_0.together(Held::Q8_0), Held::Q8_0);
        assert_eq!(Held::Q8_0.together(Held::F16), Held::F32);
        assert_eq!(
            Held::of(TensorType::Q6_K, WeightStorage::Stored),
            Held::Q8_0
        );
        assert_eq!(Held::of(TensorType::Q6_K, WeightStorage::F32), Held::F32);
    }
}

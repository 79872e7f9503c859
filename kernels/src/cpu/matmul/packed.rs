//! Weight matrices in the layout that the product reads.

use super::PANEL;
use crate::cpu::half::f16_to_f32;
use crate::error::{KernelError, check_len};

/// Weights of a Q8_0 block, which share one scale.
pub const Q8_BLOCK: usize = 32;
/// Bytes of a stored Q8_0 block: a half-precision scale, little endian, and 32 signed bytes.
pub const Q8_BLOCK_BYTES: usize = 2 + Q8_BLOCK;

/// A matrix `[out][in]` as it is stored, row by row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MatrixPart<'a> {
    F32(&'a [f32]),
    /// Half precision, as bits.
    F16(&'a [u16]),
    /// Blocks of [`Q8_BLOCK_BYTES`] bytes: a row is `in / 32` of them.
    Q8_0(&'a [u8]),
}

impl MatrixPart<'_> {
    fn name(&self) -> &'static str {
        match self {
            MatrixPart::F32(_) => "F32",
            MatrixPart::F16(_) => "F16",
            MatrixPart::Q8_0(_) => "Q8_0",
        }
    }

    /// Rows of `n_in` inputs.
    fn rows(&self, n_in: usize) -> Result<usize, KernelError> {
        let (len, row) = match self {
            MatrixPart::F32(x) => (x.len(), n_in),
            MatrixPart::F16(x) => (x.len(), n_in),
            MatrixPart::Q8_0(x) => (x.len(), n_in / Q8_BLOCK * Q8_BLOCK_BYTES),
        };
        if row == 0 || matches!(self, MatrixPart::Q8_0(_)) && !n_in.is_multiple_of(Q8_BLOCK) {
            return Err(KernelError::Length {
                what: "a row of Q8_0 weights",
                seen: n_in,
                wanted: n_in.next_multiple_of(Q8_BLOCK).max(Q8_BLOCK),
            });
        }
        check_len("matrix", len, len / row * row)?;
        Ok(len / row)
    }
}

/// `[out / 16][in][16]`, the last panel padded with zeros; Q8_0 scales `[out / 16][in / 32][16]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Packed {
    F32(Vec<f32>),
    F16(Vec<u16>),
    Q8_0 { quants: Vec<i8>, scales: Vec<u16> },
}

/// A weight matrix, packed in the precision that it is stored in.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedMatrix {
    n_out: usize,
    n_in: usize,
    pub(super) data: Packed,
}

impl PackedMatrix {
    /// Packs matrices `[out_i][n_in]` of one storage, stacked along the outputs.
    ///
    /// # Errors
    /// No inputs or outputs, a part whose length is no whole number of rows, parts of different storage, and rows of
    /// Q8_0 that are no whole number of blocks.
    pub fn stack(parts: &[MatrixPart], n_in: usize) -> Result<Self, KernelError> {
        let zero = |what| Err(KernelError::Zero { what });
        if n_in == 0 {
            return zero("matrix inputs");
        }
        let mut n_out = 0;
        for part in parts {
            n_out += part.rows(n_in)?;
            if part.name() != parts[0].name() {
                return Err(KernelError::MixedStorage {
                    first: parts[0].name(),
                    seen: part.name(),
                });
            }
        }
        if n_out == 0 {
            return zero("matrix outputs");
        }
        let n_panels = n_out.div_ceil(PANEL);
        if n_out
            .next_multiple_of(PANEL)
            .checked_mul(n_in)
            .is_none_or(|n| n.checked_mul(4).is_none())
        {
            return Err(KernelError::Overflow {
                what: "packed matrix",
            });
        }
        let data = match parts[0] {
            MatrixPart::F32(_) => {
                let rows = parts.iter().flat_map(|part| match part {
                    MatrixPart::F32(x) => x.chunks_exact(n_in),
                    _ => [].chunks_exact(n_in),
                });
                Packed::F32(interleave(rows, n_panels, n_in))
            }
            MatrixPart::F16(_) => {
                let rows = parts.iter().flat_map(|part| match part {
                    MatrixPart::F16(x) => x.chunks_exact(n_in),
                    _ => [].chunks_exact(n_in),
                });
                Packed::F16(interleave(rows, n_panels, n_in))
            }
            MatrixPart::Q8_0(_) => pack_q8(parts, n_panels, n_in),
        };
        Ok(Self { n_out, n_in, data })
    }

    pub fn n_out(&self) -> usize {
        self.n_out
    }

    pub fn n_in(&self) -> usize {
        self.n_in
    }

    /// Memory held, padding included.
    pub fn bytes(&self) -> usize {
        match &self.data {
            Packed::F32(x) => size_of_val(x.as_slice()),
            Packed::F16(x) => size_of_val(x.as_slice()),
            Packed::Q8_0 { quants, scales } => quants.len() + size_of_val(scales.as_slice()),
        }
    }

    /// Writes row `o` (the weights of output `o`), exact as F32, to `row`: embedding look-up in a tied head.
    pub fn copy_row(&self, o: usize, row: &mut [f32]) -> Result<(), KernelError> {
        check_len("matrix row", row.len(), self.n_in)?;
        if o >= self.n_out {
            return Err(KernelError::SlotOutOfRange {
                entry: 0,
                slot: o,
                n_slots: self.n_out,
            });
        }
        let (panel, lane) = (o / PANEL, o % PANEL);
        let at = |i: usize| (panel * self.n_in + i) * PANEL + lane;
        for (i, x) in row.iter_mut().enumerate() {
            *x = match &self.data {
                Packed::F32(data) => data[at(i)],
                Packed::F16(data) => f16_to_f32(data[at(i)]),
                Packed::Q8_0 { quants, scales } => {
                    let block = panel * (self.n_in / Q8_BLOCK) + i / Q8_BLOCK;
                    f32::from(quants[at(i)]) * f16_to_f32(scales[block * PANEL + lane])
                }
            };
        }
        Ok(())
    }
}

fn interleave<'a, T: Copy + Default + 'a>(
    rows: impl Iterator<Item = &'a [T]>,
    n_panels: usize,
    n_in: usize,
) -> Vec<T> {
    let mut data = vec![T::default(); n_panels * n_in * PANEL];
    for (o, row) in rows.enumerate() {
        let panel = &mut data[o / PANEL * PANEL * n_in..][..PANEL * n_in];
        for (column, &x) in panel.chunks_exact_mut(PANEL).zip(row) {
            column[o % PANEL] = x;
        }
    }
    data
}

fn pack_q8(parts: &[MatrixPart], n_panels: usize, n_in: usize) -> Packed {
    let n_blocks = n_in / Q8_BLOCK;
    let mut quants = vec![0; n_panels * n_in * PANEL];
    let mut scales = vec![0; n_panels * n_blocks * PANEL];
    let rows = parts.iter().flat_map(|part| match part {
        MatrixPart::Q8_0(x) => x.chunks_exact(n_blocks * Q8_BLOCK_BYTES),
        _ => [].chunks_exact(n_blocks * Q8_BLOCK_BYTES),
    });
    for (o, row) in rows.enumerate() {
        let (panel, lane) = (o / PANEL, o % PANEL);
        for (b, block) in row.as_chunks::<Q8_BLOCK_BYTES>().0.iter().enumerate() {
            scales[(panel * n_blocks + b) * PANEL + lane] =
                u16::from_le_bytes([block[0], block[1]]);
            for (i, &byte) in block[2..].iter().enumerate() {
                let input = b * Q8_BLOCK + i;
                quants[(panel * n_in + input) * PANEL + lane] = byte as i8;
            }
        }
    }
    Packed::Q8_0 { quants, scales }
}

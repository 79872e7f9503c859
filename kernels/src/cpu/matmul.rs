//! F32 activations × packed F32 weights, each output a fixed sequence of operations.

use std::borrow::Cow;

use rayon::prelude::*;

use super::dispatch::{Kernel, SimdLevel, dispatch, simd_level};
use super::vector::{LANES, Vector};
use crate::error::{KernelError, check_len};

/// Outputs of a panel: computed side by side, one lane each.
const PANEL: usize = LANES;
/// Inputs summed before the partial sum is added to the total: bounds the rounding error of a long sum.
const CHUNK: usize = 256;
/// Rows of activations that stay in cache while the panels of a task pass over them; a multiple of every tile.
const ROW_BLOCK: usize = 96;
/// Below this many multiply-adds a call stays on its own thread.
const SERIAL_MACS: usize = 1 << 16;

/// A weight matrix `[out][in]` stored `[out / 16][in][16]`, the last panel padded with zeros.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedMatrix {
    n_out: usize,
    n_in: usize,
    data: Vec<f32>,
}

impl PackedMatrix {
    /// Packs matrices `[out_i][n_in]`, stacked along the outputs.
    pub fn stack(parts: &[&[f32]], n_in: usize) -> Result<Self, KernelError> {
        if n_in == 0 {
            return Err(KernelError::Zero {
                what: "matrix inputs",
            });
        }
        let mut n_out = 0;
        for part in parts {
            check_len("matrix", part.len(), part.len() / n_in * n_in)?;
            n_out += part.len() / n_in;
        }
        if n_out == 0 {
            return Err(KernelError::Zero {
                what: "matrix outputs",
            });
        }
        let elements =
            n_out
                .next_multiple_of(PANEL)
                .checked_mul(n_in)
                .ok_or(KernelError::Overflow {
                    what: "packed matrix",
                })?;
        let mut data = vec![0.0; elements];
        let rows = parts.iter().flat_map(|part| part.chunks_exact(n_in));
        for (o, row) in rows.enumerate() {
            let panel = &mut data[o / PANEL * PANEL * n_in..][..PANEL * n_in];
            for (column, &x) in panel.chunks_exact_mut(PANEL).zip(row) {
                column[o % PANEL] = x;
            }
        }
        Ok(Self { n_out, n_in, data })
    }

    pub fn n_out(&self) -> usize {
        self.n_out
    }

    pub fn n_in(&self) -> usize {
        self.n_in
    }

    pub fn bytes(&self) -> usize {
        std::mem::size_of_val(self.data.as_slice())
    }

    /// Copies row `o` (the weights of output `o`) to `row`: embedding look-up in a tied head.
    pub fn copy_row(&self, o: usize, row: &mut [f32]) -> Result<(), KernelError> {
        check_len("matrix row", row.len(), self.n_in)?;
        if o >= self.n_out {
            return Err(KernelError::SlotOutOfRange {
                entry: 0,
                slot: o,
                n_slots: self.n_out,
            });
        }
        let panel = &self.data[o / PANEL * PANEL * self.n_in..][..PANEL * self.n_in];
        for (x, column) in row.iter_mut().zip(panel.chunks_exact(PANEL)) {
            *x = column[o % PANEL];
        }
        Ok(())
    }
}

/// `out[r][o] = Σ_i x[r][i] · w[o][i]`, `x` `[row][in]`, `out` `[row][out]`.
///
/// Inputs are summed in order by fused multiply-add, in chunks of 256, whatever the number of rows or threads: a row's
/// outputs do not depend on its neighbours, to the bit.
pub fn matmul(w: &PackedMatrix, x: &[f32], out: &mut [f32]) -> Result<(), KernelError> {
    let n_rows = x.len() / w.n_in;
    check_len("activations", x.len(), n_rows * w.n_in)?;
    check_len("matmul output", out.len(), n_rows * w.n_out)?;
    if n_rows == 0 {
        return Ok(());
    }
    let tiled = tile_rows(x, w.n_in, most_rows(simd_level()));
    let target = Target {
        start: out.as_mut_ptr(),
        n_out: w.n_out,
    };
    let run = |first_panel: usize, panels: &[f32]| {
        dispatch(Task {
            first_panel,
            panels,
            n_in: w.n_in,
            most: most_rows(simd_level()),
            tiled: &tiled,
            target,
        });
    };
    let panel_len = PANEL * w.n_in;
    let n_panels = w.n_out.div_ceil(PANEL);
    if n_rows * w.n_out * w.n_in < SERIAL_MACS {
        run(0, &w.data);
        return Ok(());
    }
    let per_task = (n_panels / (4 * rayon::current_num_threads())).clamp(1, 8);
    w.data
        .par_chunks(per_task * panel_len)
        .enumerate()
        .for_each(|(task, panels)| run(task * per_task, panels));
    Ok(())
}

/// Rows of the largest tile: as many sums as fit in the registers.
fn most_rows(level: SimdLevel) -> usize {
    match level {
        SimdLevel::Avx512 => 12,
        SimdLevel::Avx2 => 6,
        SimdLevel::Portable => 4,
    }
}

/// Rows of the next tile when `left` rows remain.
fn tile_height(left: usize, most: usize) -> usize {
    match left {
        _ if left >= most => most,
        8.. => 8,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// Activations tile by tile, `[tile][in][row of the tile]`: the inner loop then reads one stream.
fn tile_rows(x: &[f32], n_in: usize, most: usize) -> Cow<'_, [f32]> {
    let n_rows = x.len() / n_in;
    if n_rows == 1 {
        return Cow::Borrowed(x);
    }
    let mut tiled = vec![0.0; x.len()];
    let mut row = 0;
    while row < n_rows {
        let height = tile_height(n_rows - row, most);
        let range = row * n_in..(row + height) * n_in;
        let tile = &mut tiled[range.clone()];
        for (r, source) in x[range].chunks_exact(n_in).enumerate() {
            for (column, &value) in tile.chunks_exact_mut(height).zip(source) {
                column[r] = value;
            }
        }
        row += height;
    }
    Cow::Owned(tiled)
}

/// The output matrix, written by several tasks at disjoint columns.
#[derive(Clone, Copy)]
struct Target {
    start: *mut f32,
    n_out: usize,
}

// SAFETY: tasks write disjoint columns (their own panels) of a buffer that outlives them.
unsafe impl Send for Target {}
// SAFETY: as above; nothing is read through the pointer.
unsafe impl Sync for Target {}

/// Some panels against all rows.
struct Task<'a> {
    first_panel: usize,
    panels: &'a [f32],
    n_in: usize,
    /// The tile height with which `tiled` was laid out.
    most: usize,
    tiled: &'a [f32],
    target: Target,
}

impl Kernel for Task<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let n_rows = self.tiled.len() / self.n_in;
        for block in (0..n_rows).step_by(ROW_BLOCK) {
            let end = n_rows.min(block + ROW_BLOCK);
            for (i, panel) in self.panels.chunks_exact(PANEL * self.n_in).enumerate() {
                let column = (self.first_panel + i) * PANEL;
                let mut row = block;
                while row < end {
                    let height = tile_height(end - row, self.most);
                    match height {
                        12 => self.tile::<V, 12>(panel, column, row),
                        8 => self.tile::<V, 8>(panel, column, row),
                        6 => self.tile::<V, 6>(panel, column, row),
                        4 => self.tile::<V, 4>(panel, column, row),
                        2 => self.tile::<V, 2>(panel, column, row),
                        _ => self.tile::<V, 1>(panel, column, row),
                    }
                    row += height;
                }
            }
        }
    }
}

impl Task<'_> {
    #[inline(always)]
    fn tile<V: Vector, const R: usize>(&self, panel: &[f32], column: usize, row: usize) {
        let xs = &self.tiled[row * self.n_in..(row + R) * self.n_in];
        let mut total = [V::zero(); R];
        for (weights, xs) in panel.chunks(CHUNK * PANEL).zip(xs.chunks(CHUNK * R)) {
            let part = tile_chunk::<V, R>(weights, xs);
            for r in 0..R {
                total[r] = total[r].add(part[r]);
            }
        }
        let width = PANEL.min(self.target.n_out - column);
        for (r, sum) in total.into_iter().enumerate() {
            let mut lanes = [0.0; PANEL];
            sum.store(&mut lanes);
            // SAFETY: row + r < rows and column + width <= n_out, so the range lies in the output; its columns
            // belong to this panel alone.
            unsafe {
                let to = self
                    .target
                    .start
                    .add((row + r) * self.target.n_out + column);
                std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, width);
            }
        }
    }
}

#[inline(always)]
fn tile_chunk<V: Vector, const R: usize>(weights: &[f32], xs: &[f32]) -> [V; R] {
    let mut acc = [V::zero(); R];
    let inputs = weights
        .as_chunks::<PANEL>()
        .0
        .iter()
        .zip(xs.as_chunks::<R>().0);
    for (w, x) in inputs {
        let w = V::load(w);
        for r in 0..R {
            acc[r] = acc[r].add_scaled(x[r], w);
        }
    }
    acc
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::dispatch::dispatch_at;

    #[test]
    fn a_product_has_the_same_bits_at_every_simd_level_and_tile_height() {
        let wave =
            |n: usize, rate: f32| (0..n).map(|i| (i as f32 * rate).sin()).collect::<Vec<_>>();
        let (n_in, n_out, rows) = (300, 32, 13);
        let w = PackedMatrix::stack(&[&wave(n_in * n_out, 0.37)], n_in).unwrap();
        let x = wave(n_in * rows, 0.73);
        let mut wanted = vec![0.0; rows * n_out];
        matmul(&w, &x, &mut wanted).unwrap();
        for level in [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512] {
            for most in [4, 6, 12] {
                let mut out = vec![0.0; rows * n_out];
                let target = Target {
                    start: out.as_mut_ptr(),
                    n_out,
                };
                let tiled = tile_rows(&x, n_in, most);
                let task = Task {
                    first_panel: 0,
                    panels: &w.data,
                    n_in,
                    most,
                    tiled: &tiled,
                    target,
                };
                dispatch_at(level, task);
                let same = out
                    .iter()
                    .zip(&wanted)
                    .all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{level:?}, tiles of {most}");
            }
        }
    }
}

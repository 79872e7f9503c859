//! F32 activations × packed F32 weights, each output a fixed sequence of operations.

use rayon::prelude::*;

use super::dispatch::{Kernel, SimdLevel, dispatch};
use crate::error::{KernelError, check_len};

/// Outputs of a panel: computed side by side, one lane each.
const PANEL: usize = 16;
/// Inputs summed before the partial sum is added to the total: bounds the rounding error of a long sum.
const CHUNK: usize = 256;
/// Rows of activations that stay in cache while the panels of a task pass over them.
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
    let target = Target {
        start: out.as_mut_ptr(),
        n_out: w.n_out,
    };
    let run = |first_panel: usize, panels: &[f32]| {
        dispatch(Task {
            first_panel,
            panels,
            n_in: w.n_in,
            x,
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
pub(super) struct Task<'a> {
    first_panel: usize,
    panels: &'a [f32],
    n_in: usize,
    x: &'a [f32],
    target: Target,
}

impl Kernel for Task<'_> {
    #[inline(always)]
    fn run(self, level: SimdLevel) {
        let n_rows = self.x.len() / self.n_in;
        for block in (0..n_rows).step_by(ROW_BLOCK) {
            let end = n_rows.min(block + ROW_BLOCK);
            for (i, panel) in self.panels.chunks_exact(PANEL * self.n_in).enumerate() {
                let column = (self.first_panel + i) * PANEL;
                match level {
                    SimdLevel::Avx512 => self.rows_in_tiles::<12>(panel, column, block, end),
                    _ => self.rows_in_tiles::<6>(panel, column, block, end),
                }
            }
        }
    }
}

impl<'a> Task<'a> {
    #[cfg(test)]
    pub(super) fn whole(w: &'a PackedMatrix, x: &'a [f32], out: &'a mut [f32]) -> Self {
        assert_eq!(out.len() * w.n_in, x.len() * w.n_out);
        let target = Target {
            start: out.as_mut_ptr(),
            n_out: w.n_out,
        };
        Task {
            first_panel: 0,
            panels: &w.data,
            n_in: w.n_in,
            x,
            target,
        }
    }

    #[inline(always)]
    fn rows_in_tiles<const MOST: usize>(
        &self,
        panel: &[f32],
        column: usize,
        first: usize,
        end: usize,
    ) {
        let mut row = first;
        while row + MOST <= end {
            self.tile::<MOST>(panel, column, row);
            row += MOST;
        }
        if MOST > 8 && row + 8 <= end {
            self.tile::<8>(panel, column, row);
            row += 8;
        }
        if row + 4 <= end {
            self.tile::<4>(panel, column, row);
            row += 4;
        }
        if row + 2 <= end {
            self.tile::<2>(panel, column, row);
            row += 2;
        }
        if row < end {
            self.tile::<1>(panel, column, row);
        }
    }

    #[inline(always)]
    fn tile<const R: usize>(&self, panel: &[f32], column: usize, row: usize) {
        let mut total = [[0.0f32; PANEL]; R];
        for first in (0..self.n_in).step_by(CHUNK) {
            let len = CHUNK.min(self.n_in - first);
            let weights = &panel[first * PANEL..(first + len) * PANEL];
            let xs: [&[f32]; R] =
                std::array::from_fn(|r| &self.x[(row + r) * self.n_in + first..][..len]);
            let part = tile_chunk(weights, xs);
            for r in 0..R {
                for lane in 0..PANEL {
                    total[r][lane] += part[r][lane];
                }
            }
        }
        let width = PANEL.min(self.target.n_out - column);
        for (r, sums) in total.iter().enumerate() {
            // SAFETY: row + r < rows and column + width <= n_out, so the range lies in the output; its columns
            // belong to this panel alone.
            unsafe {
                let to = self
                    .target
                    .start
                    .add((row + r) * self.target.n_out + column);
                std::ptr::copy_nonoverlapping(sums.as_ptr(), to, width);
            }
        }
    }
}

#[inline(always)]
fn tile_chunk<const R: usize>(weights: &[f32], xs: [&[f32]; R]) -> [[f32; PANEL]; R] {
    let mut acc = [[0.0f32; PANEL]; R];
    for (i, w) in weights.as_chunks::<PANEL>().0.iter().enumerate() {
        for r in 0..R {
            let x = xs[r][i];
            for lane in 0..PANEL {
                acc[r][lane] = x.mul_add(w[lane], acc[r][lane]);
            }
        }
    }
    acc
}

//! The inner loops: some rows of activations against some panels, all sums in registers.

use std::ops::Range;

use super::PANEL;
use super::packed::Q8_BLOCK;
use super::storage::{F32Panels, Panels};
use crate::cpu::dispatch::{Kernel, SimdLevel};
use crate::cpu::vector::Vector;

/// Inputs summed before the partial sum is added to the total: bounds the rounding error of a long sum.
pub(super) const CHUNK: usize = 256;
/// Rows of activations that stay in cache while the panels of a task pass over them; a multiple of every tile.
const ROW_BLOCK: usize = 96;
/// From this many rows on, weights are widened to F32 once and read from cache by every tile.
const WIDEN_ROWS: usize = 24;
/// Panels that are widened together.
const WIDE: usize = 3;
/// Panels that all tiles of rows pass over before the next ones: few enough to stay in the second-level cache, and a
/// multiple of every tile's.
const PANEL_BLOCK: usize = 12;

/// Rows of the largest tile: as many sums as fit in the registers.
pub(super) fn most_rows(level: SimdLevel) -> usize {
    match level {
        SimdLevel::Avx512 => 8,
        SimdLevel::Avx2 => 6,
        SimdLevel::Portable => 4,
    }
}

/// Rows of the tile that starts at `row` of `n_rows`. No tile reaches across a block of rows.
pub(super) fn tile_height(row: usize, n_rows: usize, most: usize) -> usize {
    let block_end = (row / ROW_BLOCK + 1) * ROW_BLOCK;
    let left = n_rows.min(block_end) - row;
    match left {
        _ if left >= most => most,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// Panels that a task starts at a multiple of: as many as the tiles of `n_rows` rows take.
pub(super) fn group(n_rows: usize, most: usize) -> usize {
    if n_rows >= most { WIDE } else { 4 }
}

/// The output matrix, written by several tasks at disjoint columns.
#[derive(Clone, Copy)]
pub(super) struct Target {
    start: *mut f32,
    len: usize,
    n_out: usize,
}

// SAFETY: tasks write disjoint columns (their own panels) of a buffer that outlives them.
unsafe impl Send for Target {}
// SAFETY: as above; a task reads only what it wrote itself.
unsafe impl Sync for Target {}

impl Target {
    pub fn new(out: &mut [f32], n_out: usize) -> Self {
        Self {
            start: out.as_mut_ptr(),
            len: out.len(),
            n_out,
        }
    }

    /// Adds `sum` to the columns of panel `panel` in `row`, or starts them at it.
    #[inline(always)]
    fn put<V: Vector>(self, row: usize, panel: usize, sum: V, first: bool) {
        let column = panel * PANEL;
        let width = PANEL.min(self.n_out - column);
        let start = row * self.n_out + column;
        debug_assert!(start + width <= self.len);
        let mut lanes = [0.0; PANEL];
        // SAFETY: row and panel lie in the matrix, so start + width <= len; these columns belong to this task alone.
        unsafe {
            let to = self.start.add(start);
            if !first {
                std::ptr::copy_nonoverlapping(to, lanes.as_mut_ptr(), width);
            }
            V::load(&lanes).add(sum).store(&mut lanes);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, width);
        }
    }
}

/// The panels `range` against all rows.
pub(super) struct Task<'a, P> {
    pub range: Range<usize>,
    pub panels: P,
    pub n_in: usize,
    /// The tile height with which `tiled` was laid out.
    pub most: usize,
    pub tiled: &'a [f32],
    pub target: Target,
}

impl<P: Panels> Kernel for Task<'_, P> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let n_rows = self.tiled.len() / self.n_in;
        if n_rows >= WIDEN_ROWS {
            return self.widened::<V>(n_rows);
        }
        for start in self.range.clone().step_by(PANEL_BLOCK) {
            let panels = start..self.range.end.min(start + PANEL_BLOCK);
            let mut row = 0;
            while row < n_rows {
                let height = tile_height(row, n_rows, self.most);
                self.direct::<V>(row, height, panels.clone());
                row += height;
            }
        }
    }
}

impl<P: Panels> Task<'_, P> {
    /// One tile of rows against some panels, straight from their storage.
    ///
    /// A tile needs R + N loads for R · N multiply-adds: as square as the registers allow is fastest.
    #[inline(always)]
    fn direct<V: Vector>(&self, row: usize, height: usize, panels: Range<usize>) {
        match (height, V::REGISTERS) {
            (8, 32) => self.panels_of::<V, 8, 3>(row, panels),
            (6, _) => self.panels_of::<V, 6, 1>(row, panels),
            (4, 32) => self.panels_of::<V, 4, 4>(row, panels),
            (4, _) => self.panels_of::<V, 4, 1>(row, panels),
            (2, 32) => self.panels_of::<V, 2, 4>(row, panels),
            (2, _) => self.panels_of::<V, 2, 2>(row, panels),
            (_, 32) => self.panels_of::<V, 1, 4>(row, panels),
            _ => self.panels_of::<V, 1, 2>(row, panels),
        }
    }

    #[inline(always)]
    fn panels_of<V: Vector, const R: usize, const N: usize>(
        &self,
        row: usize,
        panels: Range<usize>,
    ) {
        let mut panel = panels.start;
        while panel + N <= panels.end {
            self.whole::<V, R, N>(row, panel);
            panel += N;
        }
        while panel < panels.end {
            self.whole::<V, R, 1>(row, panel);
            panel += 1;
        }
    }

    /// R rows against N panels over all inputs.
    #[inline(always)]
    fn whole<V: Vector, const R: usize, const N: usize>(&self, row: usize, panel: usize) {
        let xs = &self.tiled[row * self.n_in..(row + R) * self.n_in];
        let mut total = [[V::zero(); N]; R];
        for start in (0..self.n_in).step_by(CHUNK) {
            let inputs = start..self.n_in.min(start + CHUNK);
            let part = chunk::<V, P, R, N>(self.panels, panel, inputs, xs);
            for r in 0..R {
                for n in 0..N {
                    total[r][n] = total[r][n].add(part[r][n]);
                }
            }
        }
        for (r, sums) in total.into_iter().enumerate() {
            for (n, sum) in sums.into_iter().enumerate() {
                self.target.put(row + r, panel + n, sum, true);
            }
        }
    }

    /// All rows, chunk by chunk of inputs: a chunk of weights is widened to F32 once and serves every row of a block.
    #[inline(always)]
    fn widened<V: Vector>(&self, n_rows: usize) {
        let mut wide = [0.0; WIDE * CHUNK * PANEL];
        for block in (0..n_rows).step_by(ROW_BLOCK) {
            let end = n_rows.min(block + ROW_BLOCK);
            let mut panel = self.range.start;
            while panel < self.range.end {
                let n = WIDE.min(self.range.end - panel);
                for start in (0..self.n_in).step_by(CHUNK) {
                    let inputs = start..self.n_in.min(start + CHUNK);
                    for i in 0..n {
                        let to = &mut wide[i * CHUNK * PANEL..][..CHUNK * PANEL];
                        widen::<V, P>(self.panels, panel + i, inputs.clone(), to);
                    }
                    self.tiles::<V>(&wide, panel, n, inputs, block..end, n_rows);
                }
                panel += n;
            }
        }
    }

    /// Adds what the inputs `inputs` of the `n` panels in `wide` give to the outputs of `rows`.
    #[inline(always)]
    fn tiles<V: Vector>(
        &self,
        wide: &[f32],
        panel: usize,
        n: usize,
        inputs: Range<usize>,
        rows: Range<usize>,
        n_rows: usize,
    ) {
        let mut row = rows.start;
        while row < rows.end {
            let height = tile_height(row, n_rows, self.most);
            let tile = Tile {
                wide,
                panel,
                inputs: inputs.clone(),
                row,
            };
            match (height, n, V::REGISTERS) {
                (8, WIDE, 32) => self.wide_tile::<V, 8, WIDE>(tile, n),
                (8, ..) => self.wide_tile::<V, 8, 1>(tile, n),
                (6, ..) => self.wide_tile::<V, 6, 1>(tile, n),
                (4, WIDE, 32) => self.wide_tile::<V, 4, WIDE>(tile, n),
                (4, ..) => self.wide_tile::<V, 4, 1>(tile, n),
                (2, ..) => self.wide_tile::<V, 2, 1>(tile, n),
                _ => self.wide_tile::<V, 1, 1>(tile, n),
            }
            row += height;
        }
    }

    #[inline(always)]
    fn wide_tile<V: Vector, const R: usize, const N: usize>(&self, tile: Tile, n: usize) {
        let Tile {
            wide,
            panel,
            inputs,
            row,
        } = tile;
        let xs = &self.tiled[row * self.n_in..(row + R) * self.n_in];
        let first = inputs.start == 0;
        let xs = &xs[inputs.start * R..inputs.end * R];
        for i in (0..n).step_by(N) {
            let panels = F32Panels {
                data: &wide[i * CHUNK * PANEL..],
                n_in: CHUNK,
            };
            let part = chunk::<V, F32Panels, R, N>(panels, 0, 0..inputs.len(), xs);
            for (r, sums) in part.into_iter().enumerate() {
                for (k, sum) in sums.into_iter().enumerate() {
                    self.target.put(row + r, panel + i + k, sum, first);
                }
            }
        }
    }
}

/// Where a tile of widened weights and rows lies.
struct Tile<'a> {
    wide: &'a [f32],
    panel: usize,
    inputs: Range<usize>,
    row: usize,
}

/// Writes the weights of some inputs of a panel as F32, `[in][16]`.
#[inline(always)]
fn widen<V: Vector, P: Panels>(panels: P, panel: usize, inputs: Range<usize>, to: &mut [f32]) {
    for start in inputs.clone().step_by(Q8_BLOCK) {
        let scale = panels.scale::<V>(panel, start / Q8_BLOCK);
        for i in start..inputs.end.min(start + Q8_BLOCK) {
            // SAFETY: panel and input lie in the matrix.
            let column: V = unsafe { panels.column(panel, i, scale) };
            if let Some(to) = to[(i - inputs.start) * PANEL..].first_chunk_mut() {
                column.store(to);
            }
        }
    }
}

/// Sums over `inputs` of R rows against N panels from `panel`; `xs` is the rows' whole tile, `[in][R]`.
#[inline(always)]
fn chunk<V: Vector, P: Panels, const R: usize, const N: usize>(
    panels: P,
    panel: usize,
    inputs: Range<usize>,
    xs: &[f32],
) -> [[V; N]; R] {
    let mut acc = [[V::zero(); N]; R];
    let xs = &xs.as_chunks::<R>().0[inputs.clone()];
    for (b, xs) in xs.chunks(Q8_BLOCK).enumerate() {
        let start = inputs.start + b * Q8_BLOCK;
        let scales: [P::Scale<V>; N] =
            std::array::from_fn(|n| panels.scale::<V>(panel + n, start / Q8_BLOCK));
        for (i, x) in xs.iter().enumerate() {
            // SAFETY: the panels and inputs lie in the matrix.
            let w: [V; N] =
                std::array::from_fn(|n| unsafe { panels.column(panel + n, start + i, scales[n]) });
            for r in 0..R {
                for n in 0..N {
                    acc[r][n] = acc[r][n].add_scaled(x[r], w[n]);
                }
            }
        }
    }
    acc
}

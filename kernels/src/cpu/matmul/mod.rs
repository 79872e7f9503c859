//! F32 activations × packed weights, each output a fixed sequence of operations.

mod packed;
mod storage;
mod tile;

use std::borrow::Cow;

use rayon::prelude::*;

pub use packed::{MatrixPart, PackedMatrix, Q8_BLOCK, Q8_BLOCK_BYTES};

use super::dispatch::{SimdLevel, dispatch_at, simd_level};
use super::vector::LANES;
use crate::error::{KernelError, check_len};
use packed::Packed;
use storage::{Panels, WithPanels};
use tile::{Target, Task, tile_height};

/// Outputs of a panel: computed side by side, one lane each.
const PANEL: usize = LANES;
/// Below this many multiply-adds a call stays on its own thread.
const SERIAL_MACS: usize = 1 << 16;

/// `out[r][o] = Σ_i x[r][i] · w[o][i]`, `x` `[row][in]`, `out` `[row][out]`.
///
/// Inputs are summed in order by fused multiply-add, in chunks of 256, whatever the number of rows or threads and the
/// storage of the weights: a row's outputs do not depend on its neighbours, and weights that are the same numbers in
/// F32, F16 or Q8_0 give the same outputs, to the bit.
pub fn matmul(w: &PackedMatrix, x: &[f32], out: &mut [f32]) -> Result<(), KernelError> {
    let n_rows = x.len() / w.n_in();
    check_len("activations", x.len(), n_rows * w.n_in())?;
    check_len("matmul output", out.len(), n_rows * w.n_out())?;
    if n_rows > 0 {
        w.with_panels(Product {
            level: simd_level(),
            w,
            x,
            out,
        });
    }
    Ok(())
}

struct Product<'a> {
    level: SimdLevel,
    w: &'a PackedMatrix,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl WithPanels for Product<'_> {
    fn call<P: Panels>(self, panels: P) {
        let (n_in, n_out) = (self.w.n_in(), self.w.n_out());
        let most = tile::most_rows(self.level);
        let n_rows = self.x.len() / n_in;
        let tiled = tile_rows(self.x, n_in, most);
        let target = Target::new(self.out, n_out);
        let n_panels = n_out.div_ceil(PANEL);
        let run = |range: std::ops::Range<usize>| {
            dispatch_at(
                self.level,
                Task {
                    range,
                    panels,
                    n_in,
                    most,
                    tiled: &tiled,
                    target,
                },
            );
        };
        if n_rows * n_out * n_in < SERIAL_MACS {
            return run(0..n_panels);
        }
        let group = tile::group(n_rows, most);
        let groups = n_panels.div_ceil(group);
        let per_task = group * (groups / (4 * rayon::current_num_threads())).clamp(1, 16);
        (0..n_panels.div_ceil(per_task))
            .into_par_iter()
            .for_each(|task| run(task * per_task..n_panels.min((task + 1) * per_task)));
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
        let height = tile_height(row, n_rows, most);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize, rate: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * rate).sin()).collect()
    }

    /// The product by the definition: one chain of fused multiply-adds to a chunk, chunks added in order.
    fn by_definition(w: &PackedMatrix, x: &[f32]) -> Vec<u32> {
        let mut row = vec![0.0; w.n_in()];
        let mut out = Vec::new();
        for x in x.chunks_exact(w.n_in()) {
            for o in 0..w.n_out() {
                w.copy_row(o, &mut row).unwrap();
                let chunks = x.chunks(tile::CHUNK).zip(row.chunks(tile::CHUNK));
                let sum = |(x, w): (&[f32], &[f32])| {
                    let pairs = x.iter().zip(w);
                    pairs.fold(0.0f32, |sum, (x, w)| x.mul_add(*w, sum))
                };
                out.push(chunks.map(sum).fold(0.0f32, |a, b| a + b).to_bits());
            }
        }
        out
    }

    fn matrices(n_in: usize, n_out: usize) -> [PackedMatrix; 3] {
        let f32s = wave(n_in * n_out, 0.37);
        let f16s: Vec<u16> = f32s.iter().map(|&x| crate::cpu::f32_to_f16(x)).collect();
        let blocks: Vec<u8> = (0..n_in / Q8_BLOCK * n_out)
            .flat_map(|b| {
                let scale = crate::cpu::f32_to_f16(0.003 + 0.001 * (b % 7) as f32);
                let quants = (0..Q8_BLOCK).map(move |i| ((b * 31 + i * 77) % 255) as u8);
                scale.to_le_bytes().into_iter().chain(quants)
            })
            .collect();
        [
            MatrixPart::F32(&f32s),
            MatrixPart::F16(&f16s),
            MatrixPart::Q8_0(&blocks),
        ]
        .map(|part| PackedMatrix::stack(&[part], n_in).unwrap())
    }

    #[test]
    fn a_product_has_the_bits_of_its_definition_in_every_storage_at_every_level_and_number_of_rows()
    {
        let (n_in, n_out) = (320, 100);
        for (storage, w) in ["F32", "F16", "Q8_0"]
            .into_iter()
            .zip(matrices(n_in, n_out))
        {
            for n_rows in [1, 2, 3, 5, 9, 13, 16, 29, 61, 100, 112, 199] {
                let x = wave(n_in * n_rows, 0.73);
                let wanted = by_definition(&w, &x);
                for level in [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512] {
                    let mut out = vec![f32::NAN; n_rows * n_out];
                    w.with_panels(Product {
                        level,
                        w: &w,
                        x: &x,
                        out: &mut out,
                    });
                    let bits: Vec<u32> = out.iter().map(|x| x.to_bits()).collect();
                    assert!(bits == wanted, "{storage} {level:?} {n_rows} rows");
                }
            }
        }
    }
}

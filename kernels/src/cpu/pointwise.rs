//! The pointwise parts of a transformer layer.

use rayon::prelude::*;

use super::dispatch::{Kernel, dispatch};
use super::exp::exp_neg;
use super::vector::{LANES, Vector};
use crate::error::{KernelError, check_len};

/// Elements of a task; a smaller call stays on its own thread.
const TASK: usize = 1 << 14;

#[inline(always)]
pub(super) fn tree_sum(mut lanes: [f32; LANES]) -> f32 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0]
}

/// `out[r][i] = x[r][i] · weight[i] / √(mean_i x[r][i]² + eps)`; a row is as long as `weight`.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) -> Result<(), KernelError> {
    let n = weight.len();
    if n == 0 {
        return Err(KernelError::Zero { what: "norm size" });
    }
    check_len("norm input", x.len(), x.len() / n * n)?;
    check_len("norm output", out.len(), x.len())?;
    let rows = (TASK / n).max(1) * n;
    let tasks = x.par_chunks(rows).zip(out.par_chunks_mut(rows));
    tasks.for_each(|(x, out)| {
        dispatch(RmsNorm {
            x,
            weight,
            eps,
            out,
        })
    });
    Ok(())
}

struct RmsNorm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    eps: f32,
    out: &'a mut [f32],
}

impl Kernel for RmsNorm<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let n = self.weight.len();
        for (x, out) in self.x.chunks_exact(n).zip(self.out.chunks_exact_mut(n)) {
            let (whole, rest) = x.as_chunks::<LANES>();
            let mut lanes = [0.0f32; LANES];
            for chunk in whole {
                for (sum, &v) in lanes.iter_mut().zip(chunk) {
                    *sum = v.mul_add(v, *sum);
                }
            }
            for (sum, &v) in lanes.iter_mut().zip(rest) {
                *sum = v.mul_add(v, *sum);
            }
            let factor = 1.0 / (tree_sum(lanes) / n as f32 + self.eps).sqrt();
            for ((o, &v), &w) in out.iter_mut().zip(x).zip(self.weight) {
                *o = v * factor * w;
            }
        }
    }
}

/// cos and sin of position × frequency, `[position][head_dim / 2]` each.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeTable {
    half: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl RopeTable {
    /// `inv_freq` holds the head_dim/2 angular frequencies in radians per token; angles are formed in F32, as
    /// reference implementations do.
    pub fn new(inv_freq: &[f32], n_positions: usize) -> Result<Self, KernelError> {
        let half = inv_freq.len();
        let elements = half.checked_mul(n_positions).ok_or(KernelError::Overflow {
            what: "rotary table",
        })?;
        let (mut cos, mut sin) = (Vec::with_capacity(elements), Vec::with_capacity(elements));
        for position in 0..n_positions {
            for &f in inv_freq {
                let angle = position as f32 * f;
                cos.push(angle.cos());
                sin.push(angle.sin());
            }
        }
        Ok(Self { half, cos, sin })
    }

    pub fn n_positions(&self) -> usize {
        self.cos.len().checked_div(self.half).unwrap_or(0)
    }
}

/// Rotates each head of `x` `[row][n_heads][head_dim]`, of which `row_stride` elements make a row, in place.
///
/// Pairs are (i, i + head_dim/2), the "half-split" order of Hugging Face checkpoints. Elements of a row past its
/// `n_heads` heads are left alone, so queries, keys and values may share one buffer.
pub fn rope(
    table: &RopeTable,
    positions: &[u32],
    n_heads: usize,
    row_stride: usize,
    x: &mut [f32],
) -> Result<(), KernelError> {
    let half = table.half;
    check_len("rotary input", x.len(), positions.len() * row_stride)?;
    if n_heads * 2 * half > row_stride {
        return Err(KernelError::Length {
            what: "rotary row",
            seen: row_stride,
            wanted: n_heads * 2 * half,
        });
    }
    let n_positions = table.n_positions();
    if let Some(row) = positions.iter().position(|&p| p as usize >= n_positions) {
        return Err(KernelError::PositionOutOfRange {
            row,
            position: positions[row] as usize,
            n_positions,
        });
    }
    if positions.is_empty() || half == 0 {
        return Ok(());
    }
    for (row, &position) in x.chunks_exact_mut(row_stride).zip(positions) {
        let at = position as usize * half;
        let (cos, sin) = (&table.cos[at..at + half], &table.sin[at..at + half]);
        for head in row[..n_heads * 2 * half].chunks_exact_mut(2 * half) {
            let (low, high) = head.split_at_mut(half);
            for i in 0..half {
                let (a, b) = (low[i], high[i]);
                low[i] = a * cos[i] - b * sin[i];
                high[i] = b * cos[i] + a * sin[i];
            }
        }
    }
    Ok(())
}

/// `out[r][i] = silu(g) · u` with `g = x[r][i]`, `u = x[r][n + i]`: `x` is `[row][2n]`, gate then up; `out` `[row][n]`.
pub fn silu_mul(n: usize, x: &[f32], out: &mut [f32]) -> Result<(), KernelError> {
    if n == 0 {
        return Err(KernelError::Zero {
            what: "feed-forward size",
        });
    }
    check_len("feed-forward input", x.len(), x.len() / (2 * n) * (2 * n))?;
    check_len("feed-forward output", out.len(), x.len() / 2)?;
    let rows = (TASK / n).max(1);
    let tasks = x.par_chunks(rows * 2 * n).zip(out.par_chunks_mut(rows * n));
    tasks.for_each(|(x, out)| dispatch(SiluMul { n, x, out }));
    Ok(())
}

struct SiluMul<'a> {
    n: usize,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for SiluMul<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let rows = self.x.chunks_exact(2 * self.n);
        for (x, out) in rows.zip(self.out.chunks_exact_mut(self.n)) {
            let (gate, up) = x.split_at(self.n);
            for ((o, &g), &u) in out.iter_mut().zip(gate).zip(up) {
                let e = exp_neg(-g.abs());
                let numerator = if g < 0.0 { e } else { 1.0 };
                *o = g * (numerator / (1.0 + e)) * u;
            }
        }
    }
}

/// `x[i] += y[i]`
pub fn add_into(x: &mut [f32], y: &[f32]) -> Result<(), KernelError> {
    check_len("addend", y.len(), x.len())?;
    for (a, &b) in x.iter_mut().zip(y) {
        *a += b;
    }
    Ok(())
}

/// `x[r][i] += bias[i]`
pub fn add_bias(x: &mut [f32], bias: &[f32]) -> Result<(), KernelError> {
    if bias.is_empty() {
        return Err(KernelError::Zero { what: "bias size" });
    }
    check_len("biased rows", x.len(), x.len() / bias.len() * bias.len())?;
    for row in x.chunks_exact_mut(bias.len()) {
        for (a, &b) in row.iter_mut().zip(bias) {
            *a += b;
        }
    }
    Ok(())
}

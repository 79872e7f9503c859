//! Attention over a block list with an online softmax.

use rayon::prelude::*;

use super::dispatch::{Kernel, dispatch};
use super::exp::exp_neg;
use super::vector::{LANES, Vector};
use crate::error::{KernelError, check_len};
use crate::shape::{AttnRows, BlockLists, KvShape};

/// Partial sums of a query-key product over the head size.
const PARTIALS: usize = 4;
/// Below this many multiply-adds a call stays on its own thread: waking others would cost more.
const SERIAL_MACS: usize = 1 << 16;

/// One attention call: queries `[row][head][head_dim]` over the listed blocks of each row's sequence.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    pub shape: KvShape,
    /// Query heads, a multiple of the key-value heads; head `h` reads key-value head `h / (n_heads / n_kv_heads)`.
    pub n_heads: usize,
    /// Factor on every query-key product, usually 1/√head_dim.
    pub scale: f32,
    pub lists: BlockLists<'a>,
    pub rows: AttnRows<'a>,
}

/// Where the results go; everything is overwritten.
#[derive(Debug)]
pub struct AttentionOut<'a> {
    /// `[row][head][head_dim]`
    pub out: &'a mut [f32],
    /// `[row][head]`, natural log of Σ exp(score) over the listed keys of the row.
    pub lse: &'a mut [f32],
    /// Share of the softmax that falls on each listed block, packed `[row][head][entry]` as
    /// [`AttnRows::mass_len`] counts. It sums to 1 over the entries of a (row, head); blocks past the context get 0.
    pub mass: &'a mut [f32],
}

/// Softmax attention of each row over the keys below `context_tok` in its listed blocks.
///
/// A row reads nothing but its own queries, its own list and the valid slots of the listed blocks, in list order:
/// the same row in another batch, another chunk of a prefill or on another number of threads gives the same bits.
/// The running maximum and sum follow Milakov & Gimelshein (arXiv 1805.02867).
pub fn paged_attention(
    call: &Attention,
    k_pool: &[f32],
    v_pool: &[f32],
    q: &[f32],
    result: AttentionOut,
) -> Result<(), KernelError> {
    let Attention {
        shape,
        n_heads,
        lists,
        rows,
        ..
    } = call;
    let (n_heads, hd, n_kv) = (*n_heads, shape.head_dim, shape.n_kv_heads);
    shape.check(k_pool.len(), v_pool.len())?;
    if n_heads == 0 || n_heads % n_kv != 0 {
        return Err(KernelError::HeadRatio {
            n_heads,
            n_kv_heads: n_kv,
        });
    }
    lists.check(shape)?;
    rows.check(shape, lists)?;
    check_len("queries", q.len(), rows.len() * n_heads * hd)?;
    check_len("attention output", result.out.len(), q.len())?;
    check_len("log-sum-exp output", result.lse.len(), rows.len() * n_heads)?;
    check_len(
        "mass output",
        result.mass.len(),
        rows.mass_len(lists, n_heads),
    )?;

    let group = n_heads / n_kv;
    let mut items = Vec::with_capacity(rows.len() * n_kv);
    let mut mass = result.mass;
    let outs = result.out.chunks_exact_mut(group * hd);
    let lses = result.lse.chunks_exact_mut(group);
    for (index, (out, lse)) in outs.zip(lses).enumerate() {
        let (row, kv_head) = (index / n_kv, index % n_kv);
        let entries = lists.entries(rows.seq[row] as usize);
        let (own, rest) = mass.split_at_mut(group * entries.len());
        mass = rest;
        items.push(Item {
            shape,
            kv_head,
            scale: call.scale,
            context_tok: rows.context_tok[row] as usize,
            physical: &lists.physical[entries.clone()],
            logical: &lists.logical[entries],
            k_pool,
            v_pool,
            q: &q[index * group * hd..][..group * hd],
            out,
            lse,
            mass: own,
        });
    }
    let macs: usize = items.iter().map(|i| i.mass.len() * shape.run()).sum();
    if macs < SERIAL_MACS {
        items.into_iter().for_each(dispatch);
    } else {
        items.into_par_iter().for_each(dispatch);
    }
    Ok(())
}

/// The query heads of one row that share one key-value head.
struct Item<'a> {
    shape: &'a KvShape,
    kv_head: usize,
    scale: f32,
    context_tok: usize,
    physical: &'a [u32],
    logical: &'a [u32],
    k_pool: &'a [f32],
    v_pool: &'a [f32],
    /// `[head][head_dim]`, as `out`.
    q: &'a [f32],
    out: &'a mut [f32],
    lse: &'a mut [f32],
    /// `[head][entry]`
    mass: &'a mut [f32],
}

impl Kernel for Item<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let (hd, bt, run) = (self.shape.head_dim, self.shape.block_tok, self.shape.run());
        let group = self.lse.len();
        let n_entries = self.physical.len();
        let mut q = vec![0.0f32; hd];
        let mut p = vec![0.0f32; bt.next_multiple_of(LANES)];
        for head in 0..group {
            for (scaled, &x) in q.iter_mut().zip(&self.q[head * hd..][..hd]) {
                *scaled = x * self.scale;
            }
            let out = &mut self.out[head * hd..][..hd];
            let mass = &mut self.mass[head * n_entries..][..n_entries];
            out.fill(0.0);
            mass.fill(0.0);
            let (mut max, mut sum) = (f32::NEG_INFINITY, 0.0f32);
            for entry in 0..n_entries {
                let first_tok = self.logical[entry] as usize * bt;
                if first_tok >= self.context_tok {
                    break;
                }
                let valid = bt.min(self.context_tok - first_tok);
                let start =
                    (self.physical[entry] as usize * self.shape.n_kv_heads + self.kv_head) * run;
                scores(&q, &self.k_pool[start..start + run], bt, valid, &mut p);
                let block_max = maximum(&p);
                if block_max > max {
                    let shrink = exp_neg(max - block_max);
                    sum *= shrink;
                    scale_all(out, shrink);
                    scale_all(&mut mass[..entry], shrink);
                    max = block_max;
                }
                mass[entry] = exponentiate(&mut p, max);
                sum += mass[entry];
                accumulate(out, &p[..valid], &self.v_pool[start..start + run]);
            }
            let inverse = 1.0 / sum;
            scale_all(out, inverse);
            scale_all(mass, inverse);
            self.lse[head] = max + (sum as f64).ln() as f32;
        }
    }
}

#[inline(always)]
fn scale_all(xs: &mut [f32], factor: f32) {
    for x in xs {
        *x *= factor;
    }
}

/// Query-key products of a block's slots into `p`; −∞ from slot `valid` on. `keys` is `[head_dim][slot]`.
#[inline(always)]
fn scores(q: &[f32], keys: &[f32], bt: usize, valid: usize, p: &mut [f32]) {
    let mut slot = 0;
    while slot < valid {
        if slot + LANES <= bt {
            // Slots past `valid` are computed too and then masked: lanes do not mix.
            p[slot..slot + LANES].copy_from_slice(&lane_scores(q, keys, bt, slot));
            slot += LANES;
        } else {
            p[slot] = one_score(q, keys, bt, slot);
            slot += 1;
        }
    }
    p[valid..].fill(f32::NEG_INFINITY);
}

#[inline(always)]
fn lane_scores(q: &[f32], keys: &[f32], bt: usize, slot: usize) -> [f32; LANES] {
    let mut acc = [[0.0f32; LANES]; PARTIALS];
    let whole = q.len() / PARTIALS * PARTIALS;
    for d in (0..whole).step_by(PARTIALS) {
        for (part, acc) in acc.iter_mut().enumerate() {
            fused(acc, q[d + part], &keys[(d + part) * bt + slot..][..LANES]);
        }
    }
    for d in whole..q.len() {
        fused(&mut acc[d - whole], q[d], &keys[d * bt + slot..][..LANES]);
    }
    let mut sum = [0.0f32; LANES];
    for lane in 0..LANES {
        sum[lane] = (acc[0][lane] + acc[1][lane]) + (acc[2][lane] + acc[3][lane]);
    }
    sum
}

/// The same operations as a lane of [`lane_scores`], for slots that do not fill a vector.
#[inline(always)]
fn one_score(q: &[f32], keys: &[f32], bt: usize, slot: usize) -> f32 {
    let mut acc = [0.0f32; PARTIALS];
    for (d, &x) in q.iter().enumerate() {
        acc[d % PARTIALS] = x.mul_add(keys[d * bt + slot], acc[d % PARTIALS]);
    }
    (acc[0] + acc[1]) + (acc[2] + acc[3])
}

#[inline(always)]
fn fused<const W: usize>(acc: &mut [f32; W], x: f32, ys: &[f32]) {
    for (a, &y) in acc.iter_mut().zip(ys) {
        *a = x.mul_add(y, *a);
    }
}

#[inline(always)]
fn maximum(p: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in p.chunks_exact(LANES) {
        for (m, &x) in lanes.iter_mut().zip(chunk) {
            *m = if x > *m { x } else { *m };
        }
    }
    lanes
        .iter()
        .fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m })
}

/// p ← exp(p − max); returns the sum, by lane and then over the lanes in a fixed tree.
#[inline(always)]
fn exponentiate(p: &mut [f32], max: f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for chunk in p.chunks_exact_mut(LANES) {
        for (sum, x) in lanes.iter_mut().zip(chunk) {
            *x = exp_neg(*x - max);
            *sum += *x;
        }
    }
    super::pointwise::tree_sum(lanes)
}

/// out[d] += Σ_slot p[slot] · values[slot][d], slots in order, over the valid slots only.
#[inline(always)]
fn accumulate(out: &mut [f32], p: &[f32], values: &[f32]) {
    let hd = out.len();
    let mut d = 0;
    while d + 64 <= hd {
        accumulate_at::<64>(out, p, values, d);
        d += 64;
    }
    while d + LANES <= hd {
        accumulate_at::<LANES>(out, p, values, d);
        d += LANES;
    }
    while d < hd {
        accumulate_at::<1>(out, p, values, d);
        d += 1;
    }
}

#[inline(always)]
fn accumulate_at<const W: usize>(out: &mut [f32], p: &[f32], values: &[f32], d: usize) {
    let hd = out.len();
    let mut acc = [0.0f32; W];
    acc.copy_from_slice(&out[d..d + W]);
    for (slot, &weight) in p.iter().enumerate() {
        fused(&mut acc, weight, &values[slot * hd + d..][..W]);
    }
    out[d..d + W].copy_from_slice(&acc);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::dispatch::{SimdLevel, dispatch_at};

    const LEVELS: [SimdLevel; 3] = [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512];

    fn wave(n: usize, rate: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * rate).sin()).collect()
    }

    fn same_bits(a: &[f32], b: &[f32]) -> bool {
        a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits())
    }

    #[test]
    fn attention_has_the_same_bits_at_every_simd_level() {
        let shape = KvShape {
            n_blocks: 3,
            block_tok: 16,
            n_kv_heads: 1,
            head_dim: 80,
        };
        let pool = wave(shape.elements().unwrap(), 0.91);
        let q = wave(2 * 80, 1.7);
        let results = LEVELS.map(|level| {
            let (mut out, mut lse, mut mass) = (vec![0.0; 160], vec![0.0; 2], vec![0.0; 4]);
            dispatch_at(
                level,
                Item {
                    shape: &shape,
                    kv_head: 0,
                    scale: 0.3,
                    context_tok: 27,
                    physical: &[2, 0],
                    logical: &[0, 1],
                    k_pool: &pool,
                    v_pool: &pool,
                    q: &q,
                    out: &mut out,
                    lse: &mut lse,
                    mass: &mut mass,
                },
            );
            [out, lse, mass].concat()
        });
        assert!(same_bits(&results[0], &results[1]) && same_bits(&results[0], &results[2]));
        assert!(results[0].iter().all(|x| x.is_finite()));
    }
}

//! Random paged caches and the f64 reference.

use etime_kernels::cpu::{self, Attention, AttentionOut};
use etime_kernels::{AttnRows, BlockLists, KernelError, KvShape};

/// Sequences in a shuffled pool; every slot that holds no token is NaN.
#[derive(Clone)]
pub struct Case {
    pub shape: KvShape,
    pub n_heads: usize,
    pub k_pool: Vec<f32>,
    pub v_pool: Vec<f32>,
    /// Per sequence `[token][kv_head][head_dim]`.
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
    pub indptr: Vec<usize>,
    pub physical: Vec<u32>,
    pub logical: Vec<u32>,
    pub seq: Vec<u32>,
    pub context: Vec<u32>,
    pub q: Vec<f32>,
}

#[derive(Debug)]
pub struct Outcome {
    pub out: Vec<f32>,
    pub lse: Vec<f32>,
    pub mass: Vec<f32>,
}

impl Case {
    /// One decode row per sequence, at its last token.
    pub fn new(
        n_heads: usize,
        n_kv_heads: usize,
        block_tok: usize,
        head_dim: usize,
        lengths: &[usize],
        seed: u64,
    ) -> Self {
        let rows = lengths
            .iter()
            .enumerate()
            .map(|(s, &n)| (s as u32, n as u32))
            .collect();
        Self::build(
            n_heads,
            KvShape {
                n_blocks: 0,
                block_tok,
                n_kv_heads,
                head_dim,
            },
            lengths,
            rows,
            seed,
        )
    }

    /// A row for every token of every sequence.
    pub fn causal(
        n_heads: usize,
        n_kv_heads: usize,
        block_tok: usize,
        head_dim: usize,
        lengths: &[usize],
        seed: u64,
    ) -> Self {
        let rows = lengths
            .iter()
            .enumerate()
            .flat_map(|(s, &n)| (1..=n).map(move |c| (s as u32, c as u32)))
            .collect();
        Self::build(
            n_heads,
            KvShape {
                n_blocks: 0,
                block_tok,
                n_kv_heads,
                head_dim,
            },
            lengths,
            rows,
            seed,
        )
    }

    fn build(
        n_heads: usize,
        mut shape: KvShape,
        lengths: &[usize],
        rows: Vec<(u32, u32)>,
        seed: u64,
    ) -> Self {
        let mut random = Random(seed);
        let blocks: Vec<usize> = lengths
            .iter()
            .map(|n| n.div_ceil(shape.block_tok))
            .collect();
        shape.n_blocks = blocks.iter().sum::<usize>() + 3;
        let mut free: Vec<u32> = (0..shape.n_blocks as u32).collect();
        random.shuffle(&mut free);
        let elements = shape.elements().unwrap();
        let mut case = Self {
            shape,
            n_heads,
            k_pool: vec![f32::NAN; elements],
            v_pool: vec![f32::NAN; elements],
            keys: vec![],
            values: vec![],
            indptr: vec![0],
            physical: vec![],
            logical: vec![],
            seq: rows.iter().map(|r| r.0).collect(),
            context: rows.iter().map(|r| r.1).collect(),
            q: random.vector(rows.len() * n_heads * shape.head_dim),
        };
        for (&n_tok, &n_blk) in lengths.iter().zip(&blocks) {
            let table: Vec<u32> = free.drain(..n_blk).collect();
            let slots: Vec<u32> = (0..n_tok)
                .map(|t| {
                    table[t / shape.block_tok] * shape.block_tok as u32
                        + (t % shape.block_tok) as u32
                })
                .collect();
            let k = random.vector(n_tok * shape.n_kv_heads * shape.head_dim);
            let v = random.vector(n_tok * shape.n_kv_heads * shape.head_dim);
            cpu::write_kv(&shape, &mut case.k_pool, &mut case.v_pool, &slots, &k, &v).unwrap();
            case.keys.push(k);
            case.values.push(v);
            case.physical.extend(&table);
            case.logical.extend(0..n_blk as u32);
            case.indptr.push(case.physical.len());
        }
        case
    }

    /// Keeps the listed blocks for which `keep(sequence, logical index)` holds.
    pub fn keep(&mut self, keep: impl Fn(usize, u32) -> bool) {
        let (mut indptr, mut physical, mut logical) = (vec![0], vec![], vec![]);
        for s in 0..self.indptr.len() - 1 {
            for e in self.indptr[s]..self.indptr[s + 1] {
                if keep(s, self.logical[e]) {
                    physical.push(self.physical[e]);
                    logical.push(self.logical[e]);
                }
            }
            indptr.push(physical.len());
        }
        (self.indptr, self.physical, self.logical) = (indptr, physical, logical);
    }

    pub fn run(&self) -> Outcome {
        self.try_run().unwrap()
    }

    pub fn try_run(&self) -> Result<Outcome, KernelError> {
        self.try_rows(0..self.seq.len(), &self.q)
    }

    pub fn run_rows(&self, rows: std::ops::Range<usize>) -> Outcome {
        let width = self.n_heads * self.shape.head_dim;
        self.try_rows(rows.clone(), &self.q[rows.start * width..rows.end * width])
            .unwrap()
    }

    fn try_rows(&self, range: std::ops::Range<usize>, q: &[f32]) -> Result<Outcome, KernelError> {
        let lists = BlockLists {
            indptr: &self.indptr,
            physical: &self.physical,
            logical: &self.logical,
        };
        let rows = AttnRows {
            seq: &self.seq[range.clone()],
            context_tok: &self.context[range.clone()],
        };
        let mut outcome = Outcome {
            out: vec![f32::NAN; q.len()],
            lse: vec![f32::NAN; range.len() * self.n_heads],
            mass: vec![f32::NAN; rows.mass_len(&lists, self.n_heads)],
        };
        let call = Attention {
            shape: self.shape,
            n_heads: self.n_heads,
            scale: self.scale(),
            lists,
            rows,
        };
        let Outcome { out, lse, mass } = &mut outcome;
        cpu::paged_attention(
            &call,
            &self.k_pool,
            &self.v_pool,
            q,
            AttentionOut { out, lse, mass },
        )?;
        Ok(outcome)
    }

    fn scale(&self) -> f32 {
        1.0 / (self.shape.head_dim as f32).sqrt()
    }

    /// `[row][head][entry]`
    pub fn masses_by_row(&self, mass: &[f32]) -> Vec<Vec<Vec<f32>>> {
        let mut at = 0;
        let mut rows = vec![];
        for &s in &self.seq {
            let n = self.indptr[s as usize + 1] - self.indptr[s as usize];
            rows.push(
                (0..self.n_heads)
                    .map(|h| mass[at + h * n..at + (h + 1) * n].to_vec())
                    .collect(),
            );
            at += n * self.n_heads;
        }
        rows
    }

    pub fn assert_matches_gather(&self) {
        let result = self.run();
        let hd = self.shape.head_dim;
        let masses = self.masses_by_row(&result.mass);
        for (row, masses) in masses.iter().enumerate() {
            for (head, seen_mass) in masses.iter().enumerate() {
                let (out, lse, mass) = self.gather(row, head);
                let at = row * self.n_heads + head;
                let label = format!("row {row} head {head} of {:?}", self.shape);
                assert_close(&result.out[at * hd..(at + 1) * hd], &out, 2e-5, &label);
                assert_close(
                    &[result.lse[at] / lse.abs().max(1.0) as f32],
                    &[lse / lse.abs().max(1.0)],
                    1e-5,
                    &label,
                );
                assert_close(seen_mass, &mass, 1e-4, &label);
            }
        }
    }

    /// Output, log-sum-exp and block masses of one row and head, straight from the tokens.
    fn gather(&self, row: usize, head: usize) -> (Vec<f64>, f64, Vec<f64>) {
        let KvShape {
            block_tok,
            n_kv_heads,
            head_dim: hd,
            ..
        } = self.shape;
        let seq = self.seq[row] as usize;
        let kv_head = head / (self.n_heads / n_kv_heads);
        let q = &self.q[(row * self.n_heads + head) * hd..][..hd];
        let entries = &self.logical[self.indptr[seq]..self.indptr[seq + 1]];
        let mut tokens = vec![];
        for (e, &block) in entries.iter().enumerate() {
            let first = block as usize * block_tok;
            for t in first..(first + block_tok).min(self.context[row] as usize) {
                let k = &self.keys[seq][(t * n_kv_heads + kv_head) * hd..][..hd];
                let dot: f64 = q.iter().zip(k).map(|(&a, &b)| a as f64 * b as f64).sum();
                tokens.push((e, t, dot * self.scale() as f64));
            }
        }
        let max = tokens.iter().map(|t| t.2).fold(f64::NEG_INFINITY, f64::max);
        let z: f64 = tokens.iter().map(|t| (t.2 - max).exp()).sum();
        let (mut out, mut mass) = (vec![0.0; hd], vec![0.0; entries.len()]);
        for &(e, t, score) in &tokens {
            let p = (score - max).exp() / z;
            mass[e] += p;
            let v = &self.values[seq][(t * n_kv_heads + kv_head) * hd..][..hd];
            out.iter_mut().zip(v).for_each(|(o, &x)| *o += p * x as f64);
        }
        (out, max + z.ln(), mass)
    }
}

pub fn assert_close(seen: &[f32], wanted: &[f64], tolerance: f64, label: &str) {
    assert_eq!(seen.len(), wanted.len(), "{label}");
    for (i, (&a, &b)) in seen.iter().zip(wanted).enumerate() {
        let difference = (a as f64 - b).abs();
        assert!(
            difference <= tolerance,
            "{label}, element {i}: {a} is not {b} within {tolerance:e}"
        );
    }
}

/// SplitMix64, enough for test data.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform on [−1, 1).
    pub fn vector(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|_| (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0)
            .collect()
    }

    pub fn shuffle<T>(&mut self, xs: &mut [T]) {
        for i in (1..xs.len()).rev() {
            xs.swap(i, self.next() as usize % (i + 1));
        }
    }
}

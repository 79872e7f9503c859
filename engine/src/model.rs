//! The forward pass of the llama family. One file serves every member; [`ModelConfig`] holds the switches.

use std::path::Path;

use etime_kernels::cpu::{self, Attention, AttentionOut, RopeTable};
use etime_kernels::{AttnRows, BlockLists};

use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::kv::KvPool;
use crate::settings::LoadOptions;
use crate::step::{Mass, Rows, SeqStep, StepOutput};
use crate::weights::{self, Holdings, LayerWeights, Weights};

/// A decoder with its weights. It keeps no state between steps but a rotary table; keys and values live in a
/// [`KvPool`].
///
/// Every kernel is row-independent, so the logits of a token are the same to the bit whether its text is computed at
/// once, in chunks or token by token, alone or among other sequences.
#[derive(Debug)]
pub struct Model {
    config: ModelConfig,
    weights: Weights,
    inv_freq: Vec<f32>,
    /// Grows with the longest position seen: the stated context of a model may be far beyond its use.
    rope: RopeTable,
}

impl Model {
    /// A directory (`config.json`, `model.safetensors` or its shards) or a `.gguf` file.
    pub fn load(path: &Path, options: LoadOptions) -> Result<Self, ModelError> {
        options.device.check()?;
        let (config, weights) = match path.is_dir() {
            true => weights::load_directory(path, options.weights)?,
            false => weights::load_gguf(path, options.weights)?,
        };
        Self::new(config, weights)
    }

    /// The bytes of `config.json` and `model.safetensors`; `name` stands for their folder in errors.
    pub fn from_bytes(
        name: &str,
        config_json: &[u8],
        safetensors: &[u8],
        options: LoadOptions,
    ) -> Result<Self, ModelError> {
        options.device.check()?;
        let (config, weights) =
            weights::load_bytes(name, config_json, safetensors, options.weights)?;
        Self::new(config, weights)
    }

    /// The bytes of a GGUF file; `name` stands for it in errors.
    pub fn from_gguf_bytes(
        name: &str,
        gguf: &[u8],
        options: LoadOptions,
    ) -> Result<Self, ModelError> {
        options.device.check()?;
        let (config, weights) = weights::load_gguf_bytes(Path::new(name), gguf, options.weights)?;
        Self::new(config, weights)
    }

    fn new(config: ModelConfig, weights: Weights) -> Result<Self, ModelError> {
        let inv_freq = config.inv_freq();
        let rope = RopeTable::new(&inv_freq, 0)?;
        Ok(Self {
            config,
            weights,
            inv_freq,
            rope,
        })
    }

    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Bytes of weights held.
    pub fn weight_bytes(&self) -> u64 {
        self.weights.bytes()
    }

    /// What the tensors were stored as and are held as.
    pub fn holdings(&self) -> &Holdings {
        &self.weights.holdings
    }

    /// Computes the tokens of every sequence of the step and writes their keys and values to `kv`.
    ///
    /// Nothing is written when the step is refused.
    pub fn forward(&mut self, kv: &mut KvPool, step: &[SeqStep]) -> Result<StepOutput, ModelError> {
        let rows = Rows::new(&self.config, kv, step)?;
        let end_tok = rows.context_tok.iter().max().map_or(0, |&n| n as usize);
        if end_tok > self.rope.n_positions() {
            let n_positions = end_tok.next_power_of_two().min(self.config.context_tok);
            self.rope = RopeTable::new(&self.inv_freq, n_positions)?;
        }
        let mut out = StepOutput {
            mass: step
                .iter()
                .map(|s| vec![Mass::default(); s.blocks.len()])
                .collect(),
            rows: rows.logit_ranges.clone(),
            ..StepOutput::default()
        };
        let mut x = self.embed(&rows.tokens)?;
        for layer in 0..self.config.n_layers {
            let weights = &self.weights.layers[layer];
            let mixed = self.attention(weights, &x, &rows, kv, layer, &mut out.mass)?;
            cpu::add_into(&mut x, &mixed)?;
            let fed = self.feed_forward(weights, &x)?;
            cpu::add_into(&mut x, &fed)?;
        }
        out.logits = self.head(&x, &rows.logit_rows)?;
        for mass in out.mass.iter_mut().flatten() {
            mass.mean /= (self.config.n_layers * self.config.n_heads) as f64;
        }
        self.count(&rows, kv.shape().block_tok, &mut out);
        Ok(out)
    }

    fn embed(&self, tokens: &[u32]) -> Result<Vec<f32>, ModelError> {
        let hidden = self.config.hidden;
        let mut x = vec![0.0; tokens.len() * hidden];
        for (row, &token) in x.chunks_exact_mut(hidden).zip(tokens) {
            match &self.weights.embed {
                Some(table) => table.copy_row(token as usize, row),
                None => self.weights.head.copy_row(token as usize, row)?,
            }
        }
        Ok(x)
    }

    fn attention(
        &self,
        weights: &LayerWeights,
        x: &[f32],
        rows: &Rows,
        kv: &mut KvPool,
        layer: usize,
        mass: &mut [Vec<Mass>],
    ) -> Result<Vec<f32>, ModelError> {
        let config = &self.config;
        let (n_rows, hd) = (rows.tokens.len(), config.head_dim);
        let normed = self.norm(x, &weights.attn_norm)?;
        let mut qkv = vec![0.0; n_rows * config.qkv()];
        cpu::matmul(&weights.qkv, &normed, &mut qkv)?;
        if let Some(bias) = &weights.qkv_bias {
            cpu::add_bias(&mut qkv, bias)?;
        }
        let (q_len, kv_len) = (config.n_heads * hd, config.n_kv_heads * hd);
        let mut q = columns(&qkv, config.qkv(), 0, q_len);
        let mut k = columns(&qkv, config.qkv(), q_len, kv_len);
        let v = columns(&qkv, config.qkv(), q_len + kv_len, kv_len);
        if let Some((q_norm, k_norm)) = &weights.qk_norm {
            q = self.norm(&q, q_norm)?;
            k = self.norm(&k, k_norm)?;
        }
        cpu::rope(&self.rope, &rows.positions, config.n_heads, q_len, &mut q)?;
        cpu::rope(
            &self.rope,
            &rows.positions,
            config.n_kv_heads,
            kv_len,
            &mut k,
        )?;

        let shape = *kv.shape();
        let (k_pool, v_pool) = &mut kv.layers[layer];
        cpu::write_kv(&shape, k_pool, v_pool, &rows.slots, &k, &v)?;
        let lists = BlockLists {
            indptr: &rows.indptr,
            physical: &rows.physical,
            logical: &rows.logical,
        };
        let call = Attention {
            shape,
            n_heads: config.n_heads,
            scale: 1.0 / (hd as f32).sqrt(),
            lists,
            rows: AttnRows {
                seq: &rows.seq,
                context_tok: &rows.context_tok,
            },
        };
        let mut mixed = vec![0.0; n_rows * q_len];
        let mut lse = vec![0.0; n_rows * config.n_heads];
        let mut block_mass = vec![0.0; call.rows.mass_len(&lists, config.n_heads)];
        let result = AttentionOut {
            out: &mut mixed,
            lse: &mut lse,
            mass: &mut block_mass,
        };
        cpu::paged_attention(&call, k_pool, v_pool, &q, result)?;
        add_mass(rows, config.n_heads, &block_mass, mass);

        let mut out = vec![0.0; n_rows * config.hidden];
        cpu::matmul(&weights.attn_out, &mixed, &mut out)?;
        Ok(out)
    }

    fn feed_forward(&self, weights: &LayerWeights, x: &[f32]) -> Result<Vec<f32>, ModelError> {
        let (hidden, ffn) = (self.config.hidden, self.config.ffn);
        let n_rows = x.len() / hidden;
        let normed = self.norm(x, &weights.ffn_norm)?;
        let mut gate_up = vec![0.0; n_rows * 2 * ffn];
        cpu::matmul(&weights.gate_up, &normed, &mut gate_up)?;
        let mut gated = vec![0.0; n_rows * ffn];
        cpu::silu_mul(ffn, &gate_up, &mut gated)?;
        let mut out = vec![0.0; x.len()];
        cpu::matmul(&weights.down, &gated, &mut out)?;
        Ok(out)
    }

    /// Logits of the named rows only: the head is the largest matrix.
    fn head(&self, x: &[f32], logit_rows: &[usize]) -> Result<Vec<f32>, ModelError> {
        let hidden = self.config.hidden;
        let wanted: Vec<f32> = logit_rows
            .iter()
            .flat_map(|&r| &x[r * hidden..][..hidden])
            .copied()
            .collect();
        let normed = self.norm(&wanted, &self.weights.norm)?;
        let mut logits = vec![0.0; logit_rows.len() * self.config.vocab];
        cpu::matmul(&self.weights.head, &normed, &mut logits)?;
        Ok(logits)
    }

    fn norm(&self, x: &[f32], weight: &[f32]) -> Result<Vec<f32>, ModelError> {
        let mut out = vec![0.0; x.len()];
        cpu::rms_norm(x, weight, self.config.rms_eps as f32, &mut out)?;
        Ok(out)
    }

    fn count(&self, rows: &Rows, block_tok: usize, out: &mut StepOutput) {
        let config = &self.config;
        let n_rows = rows.tokens.len();
        let keys = |row| rows.keys_of(row, block_tok);
        let attended: u64 = (0..n_rows).map(keys).sum();
        let last_rows = (0..n_rows).filter(|&r| rows.seq.get(r + 1) != Some(&rows.seq[r]));
        let dense = n_rows as u64 * config.macs_per_tok()
            + rows.logit_rows.len() as u64 * (config.vocab * config.hidden) as u64;
        let attention = attended * 2 * (config.n_layers * config.n_heads * config.head_dim) as u64;
        out.tokens = n_rows as u64;
        out.flops = 2 * (dense + attention);
        out.kv_bytes = last_rows.map(keys).sum::<u64>() * config.kv_bytes_per_tok();
    }
}

/// Columns `start .. start + len` of rows of `width`.
fn columns(x: &[f32], width: usize, start: usize, len: usize) -> Vec<f32> {
    x.chunks_exact(width)
        .flat_map(|row| &row[start..start + len])
        .copied()
        .collect()
}

/// Adds one layer's masses of each sequence's last row: sums in `mean`, maxima in `max`.
fn add_mass(rows: &Rows, n_heads: usize, block_mass: &[f32], mass: &mut [Vec<Mass>]) {
    let mut at = 0;
    for (row, &seq) in rows.seq.iter().enumerate() {
        let listed = &rows.logical[rows.indptr[seq as usize]..rows.indptr[seq as usize + 1]];
        let heads = &block_mass[at..at + n_heads * listed.len()];
        at += heads.len();
        if rows.seq.get(row + 1) == Some(&seq) {
            continue;
        }
        for head in heads.chunks_exact(listed.len()) {
            for (&share, &block) in head.iter().zip(listed) {
                let mass = &mut mass[seq as usize][block as usize];
                mass.mean += share as f64;
                mass.max = mass.max.max(share as f64);
            }
        }
    }
}

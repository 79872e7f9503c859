//! What one forward pass is asked, checked and flattened into rows.

use crate::config::ModelConfig;
use crate::error::{ModelError, StepFault};
use crate::kv::KvPool;

/// Which rows of a sequence's share get logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    None,
    /// After the last token: what decoding needs.
    Last,
    /// After every token, as for scoring a given text.
    All,
}

/// One sequence's share of a step: `tokens` at positions `start_tok ..`.
#[derive(Debug, Clone, Copy)]
pub struct SeqStep<'a> {
    pub tokens: &'a [u32],
    pub start_tok: usize,
    /// Physical blocks in logical order, enough for every position up to the last of `tokens`.
    pub blocks: &'a [u32],
    /// Logical blocks that attention may read, increasing; `None` reads all. The blocks that `tokens` are written to
    /// are always read too, so that every row sees itself.
    pub kept: Option<&'a [u32]>,
    pub logits: Wanted,
}

impl SeqStep<'_> {
    /// Tokens in the sequence once the step is done.
    pub fn end_tok(&self) -> usize {
        self.start_tok + self.tokens.len()
    }
}

/// Attention mass of one block from a sequence's last query row, over layers and heads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mass {
    pub mean: f64,
    pub max: f64,
}

/// The result of one pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepOutput {
    /// `[row][vocab]`, rows of all sequences in order.
    pub logits: Vec<f32>,
    /// Rows of `logits` that belong to each sequence.
    pub rows: Vec<std::ops::Range<usize>>,
    /// Per sequence, per block of its table; blocks that were not read have mass 0.
    pub mass: Vec<Vec<Mass>>,
    /// Tokens computed.
    pub tokens: u64,
    /// Bytes of keys and values read by attention: each sequence's read blocks once per layer, up to its length.
    pub kv_bytes: u64,
    /// Floating-point operations of matrix products and attention; a multiply-add counts as two.
    pub flops: u64,
}

/// A step as flat rows.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub tokens: Vec<u32>,
    pub positions: Vec<u32>,
    pub slots: Vec<u32>,
    pub seq: Vec<u32>,
    pub context_tok: Vec<u32>,
    /// Block lists, compressed.
    pub indptr: Vec<usize>,
    pub physical: Vec<u32>,
    pub logical: Vec<u32>,
    /// Rows of the step that get logits, in order.
    pub logit_rows: Vec<usize>,
    pub logit_ranges: Vec<std::ops::Range<usize>>,
}

impl Rows {
    pub(crate) fn new(
        config: &ModelConfig,
        kv: &KvPool,
        step: &[SeqStep],
    ) -> Result<Self, ModelError> {
        let mut rows = Self {
            indptr: vec![0],
            ..Self::default()
        };
        for (index, seq) in step.iter().enumerate() {
            check(config, kv, seq).map_err(|reason| ModelError::Step { seq: index, reason })?;
            rows.push(kv.shape().block_tok, index, seq);
        }
        Ok(rows)
    }

    fn push(&mut self, block_tok: usize, index: usize, seq: &SeqStep) {
        let first_row = self.tokens.len();
        for (offset, &token) in seq.tokens.iter().enumerate() {
            let position = seq.start_tok + offset;
            let block = seq.blocks[position / block_tok];
            self.tokens.push(token);
            // Contexts and slots are below 2^32: `ModelConfig::check`, `KvPool::new`.
            self.positions.push(position as u32);
            self.slots
                .push(block * block_tok as u32 + (position % block_tok) as u32);
            self.seq.push(index as u32);
            self.context_tok.push(position as u32 + 1);
        }
        let used = seq.end_tok().div_ceil(block_tok);
        let written = (seq.start_tok / block_tok) as u32;
        for (logical, &physical) in (0u32..).zip(&seq.blocks[..used]) {
            if logical >= written
                || seq
                    .kept
                    .is_none_or(|kept| kept.binary_search(&logical).is_ok())
            {
                self.logical.push(logical);
                self.physical.push(physical);
            }
        }
        self.indptr.push(self.logical.len());
        let end_row = self.tokens.len();
        let wanted = match seq.logits {
            Wanted::None => end_row..end_row,
            Wanted::Last => end_row - 1..end_row,
            Wanted::All => first_row..end_row,
        };
        let start = self.logit_rows.len();
        self.logit_rows.extend(wanted);
        self.logit_ranges.push(start..self.logit_rows.len());
    }

    /// Keys that row `row` attends to.
    pub(crate) fn keys_of(&self, row: usize, block_tok: usize) -> u64 {
        let seq = self.seq[row] as usize;
        let context_tok = self.context_tok[row] as usize;
        let listed = &self.logical[self.indptr[seq]..self.indptr[seq + 1]];
        let valid = |&block: &u32| {
            context_tok
                .saturating_sub(block as usize * block_tok)
                .min(block_tok)
        };
        listed.iter().map(valid).sum::<usize>() as u64
    }
}

fn check(config: &ModelConfig, kv: &KvPool, seq: &SeqStep) -> Result<(), StepFault> {
    let (block_tok, n_blocks) = (kv.shape().block_tok, kv.shape().n_blocks);
    if seq.tokens.is_empty() {
        return Err(StepFault::Empty);
    }
    if let Some(&token) = seq.tokens.iter().find(|&&t| t as usize >= config.vocab) {
        return Err(StepFault::Token {
            token,
            vocab: config.vocab,
        });
    }
    let end_tok = seq.start_tok.saturating_add(seq.tokens.len());
    if end_tok > config.context_tok {
        return Err(StepFault::Context {
            end_tok,
            context_tok: config.context_tok,
        });
    }
    let needed = end_tok.div_ceil(block_tok);
    if seq.blocks.len() < needed {
        return Err(StepFault::Blocks {
            end_tok,
            block_tok,
            needed,
            seen: seq.blocks.len(),
        });
    }
    if let Some(&block) = seq.blocks.iter().find(|&&b| b as usize >= n_blocks) {
        return Err(StepFault::Pool { block, n_blocks });
    }
    let kept = seq.kept.unwrap_or(&[]);
    if let Some(&block) = kept.iter().find(|&&b| b as usize >= seq.blocks.len()) {
        return Err(StepFault::Kept {
            block,
            table: seq.blocks.len(),
        });
    }
    if let Some(pair) = kept.windows(2).find(|pair| pair[1] <= pair[0]) {
        return Err(StepFault::KeptOrder {
            previous: pair[0],
            block: pair[1],
        });
    }
    Ok(())
}

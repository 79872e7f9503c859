//! Shapes and index lists of the paged KV cache, common to every backend.

use crate::error::{KernelError, check_len};

/// Shape of one layer's block pool.
///
/// Keys are stored `[block][kv_head][head_dim][slot]`, values `[block][kv_head][slot][head_dim]`. Both products of
/// attention then run along the contiguous axis: scores of all slots of a block grow in parallel without a
/// horizontal sum, and so does the output over the head size. A (block, kv_head) pair is one contiguous run in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvShape {
    pub n_blocks: usize,
    /// Slots (tokens) in a block.
    pub block_tok: usize,
    pub n_kv_heads: usize,
    pub head_dim: usize,
}

impl KvShape {
    /// Elements of the key pool; the value pool has as many.
    pub fn elements(&self) -> Result<usize, KernelError> {
        self.n_blocks
            .checked_mul(self.block_tok)
            .and_then(|n| n.checked_mul(self.n_kv_heads))
            .and_then(|n| n.checked_mul(self.head_dim))
            .ok_or(KernelError::Overflow { what: "KV pool" })
    }

    pub fn n_slots(&self) -> usize {
        self.n_blocks * self.block_tok
    }

    /// Elements of one (block, kv_head) run.
    pub(crate) fn run(&self) -> usize {
        self.block_tok * self.head_dim
    }

    pub(crate) fn check(&self, keys: usize, values: usize) -> Result<(), KernelError> {
        for (what, n) in [
            ("block_tok", self.block_tok),
            ("n_kv_heads", self.n_kv_heads),
            ("head_dim", self.head_dim),
        ] {
            if n == 0 {
                return Err(KernelError::Zero { what });
            }
        }
        let wanted = self.elements()?;
        check_len("key pool", keys, wanted)?;
        check_len("value pool", values, wanted)
    }
}

/// Block lists of the sequences of a step, in compressed rows: sequence `s` lists entries
/// `indptr[s] .. indptr[s + 1]`.
///
/// A list may be any subset of a sequence's blocks, so each entry names its physical block in the pool and its
/// logical index in the sequence (token `t` lives in logical block `t / block_tok`). Logical indices increase.
#[derive(Debug, Clone, Copy)]
pub struct BlockLists<'a> {
    pub indptr: &'a [usize],
    pub physical: &'a [u32],
    pub logical: &'a [u32],
}

impl BlockLists<'_> {
    pub fn n_seqs(&self) -> usize {
        self.indptr.len().saturating_sub(1)
    }

    /// Entries of sequence `seq`. Panics if `seq` is not in the lists.
    pub fn entries(&self, seq: usize) -> std::ops::Range<usize> {
        self.indptr[seq]..self.indptr[seq + 1]
    }

    pub(crate) fn check(&self, shape: &KvShape) -> Result<(), KernelError> {
        let n_entries = self.physical.len();
        check_len("logical block indices", self.logical.len(), n_entries)?;
        if self.indptr.is_empty() {
            return Err(KernelError::Zero {
                what: "length of indptr",
            });
        }
        let bad = |index: usize| KernelError::Indptr {
            index,
            seen: self.indptr[index],
            n_entries,
        };
        if self.indptr[0] != 0 {
            return Err(bad(0));
        }
        if let Some(i) = (1..self.indptr.len()).find(|&i| self.indptr[i] < self.indptr[i - 1]) {
            return Err(bad(i));
        }
        if self.indptr[self.indptr.len() - 1] != n_entries {
            return Err(bad(self.indptr.len() - 1));
        }
        for (entry, &block) in self.physical.iter().enumerate() {
            if block as usize >= shape.n_blocks {
                return Err(KernelError::BlockOutOfRange {
                    entry,
                    block: block as usize,
                    n_blocks: shape.n_blocks,
                });
            }
        }
        for seq in 0..self.n_seqs() {
            for entry in self.entries(seq).skip(1) {
                let (previous, seen) = (self.logical[entry - 1], self.logical[entry]);
                if seen <= previous {
                    return Err(KernelError::ListOrder {
                        entry,
                        seen: seen as usize,
                        previous: previous as usize,
                    });
                }
            }
        }
        Ok(())
    }
}

/// The query rows of a step.
#[derive(Debug, Clone, Copy)]
pub struct AttnRows<'a> {
    /// Sequence of each row, an index into [`BlockLists`].
    pub seq: &'a [u32],
    /// Row `r` attends to the positions below `context_tok[r]`: its own position plus one for causal attention.
    pub context_tok: &'a [u32],
}

impl AttnRows<'_> {
    pub fn len(&self) -> usize {
        self.seq.len()
    }

    pub fn is_empty(&self) -> bool {
        self.seq.is_empty()
    }

    /// Elements of the mass output: Σ over rows of `n_heads` × listed blocks, packed `[row][head][entry]`.
    /// Call it on rows that belong to `lists`; a row of an unknown sequence counts as 0.
    pub fn mass_len(&self, lists: &BlockLists, n_heads: usize) -> usize {
        self.seq
            .iter()
            .map(|&s| s as usize)
            .filter(|&s| s < lists.n_seqs())
            .map(|s| n_heads * lists.entries(s).len())
            .sum()
    }

    pub(crate) fn check(&self, shape: &KvShape, lists: &BlockLists) -> Result<(), KernelError> {
        check_len("context_tok", self.context_tok.len(), self.seq.len())?;
        for (row, (&seq, &context_tok)) in self.seq.iter().zip(self.context_tok).enumerate() {
            let (seq, context_tok) = (seq as usize, context_tok as usize);
            if seq >= lists.n_seqs() {
                return Err(KernelError::SeqOutOfRange {
                    row,
                    seq,
                    n_seqs: lists.n_seqs(),
                });
            }
            let entries = lists.entries(seq);
            let first_tok = lists
                .logical
                .get(entries.start)
                .map(|&b| b as usize * shape.block_tok);
            if entries.is_empty() || first_tok.is_none_or(|t| t >= context_tok) {
                return Err(KernelError::EmptyRow {
                    row,
                    seq,
                    context_tok,
                    listed_blk: entries.len(),
                });
            }
        }
        Ok(())
    }
}

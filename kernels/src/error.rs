//! What can be wrong with a kernel's arguments, with the values seen.

use thiserror::Error;

/// Arguments that a kernel refuses. Nothing is written when one is returned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KernelError {
    #[error("{what} must be at least 1")]
    Zero { what: &'static str },
    #[error("the size of {what} does not fit in memory addresses")]
    Overflow { what: &'static str },
    #[error("{what} has {seen} elements, expected {wanted}")]
    Length {
        what: &'static str,
        seen: usize,
        wanted: usize,
    },
    #[error("matrices of {first} and of {seen} weights cannot be stacked")]
    MixedStorage {
        first: &'static str,
        seen: &'static str,
    },
    #[error("{n_heads} query heads is not a multiple of {n_kv_heads} key-value heads")]
    HeadRatio { n_heads: usize, n_kv_heads: usize },
    #[error("rotary embedding needs an even head size, got {head_dim}")]
    OddHead { head_dim: usize },
    #[error("slot {slot} (entry {entry}) is outside a pool of {n_slots} slots")]
    SlotOutOfRange {
        entry: usize,
        slot: usize,
        n_slots: usize,
    },
    #[error("block {block} (list entry {entry}) is outside a pool of {n_blocks} blocks")]
    BlockOutOfRange {
        entry: usize,
        block: usize,
        n_blocks: usize,
    },
    #[error(
        "block lists must start at 0, not decrease and end at {n_entries}: indptr[{index}] is {seen}"
    )]
    Indptr {
        index: usize,
        seen: usize,
        n_entries: usize,
    },
    #[error(
        "block lists must be in increasing logical order: entry {entry} is logical block {seen}, after {previous}"
    )]
    ListOrder {
        entry: usize,
        seen: usize,
        previous: usize,
    },
    #[error("row {row} belongs to sequence {seq}, but there are {n_seqs} block lists")]
    SeqOutOfRange {
        row: usize,
        seq: usize,
        n_seqs: usize,
    },
    #[error(
        "row {row} of sequence {seq} has no key to attend to: context {context_tok} tokens, {listed_blk} listed blocks"
    )]
    EmptyRow {
        row: usize,
        seq: usize,
        context_tok: usize,
        listed_blk: usize,
    },
    #[error("row {row} is at position {position}, the rotary table holds {n_positions}")]
    PositionOutOfRange {
        row: usize,
        position: usize,
        n_positions: usize,
    },
}

/// `seen == wanted`, or an error naming `what`.
pub(crate) fn check_len(what: &'static str, seen: usize, wanted: usize) -> Result<(), KernelError> {
    if seen == wanted {
        return Ok(());
    }
    Err(KernelError::Length { what, seen, wanted })
}

//! What can go wrong between a model's files and its logits.

use std::path::PathBuf;

use etime_kernels::KernelError;
use thiserror::Error;

use crate::gguf::GgufError;

#[derive(Debug, Error)]
pub enum ModelError {
    #[error("{}: {source}", file.display())]
    Read {
        file: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error("{}: not valid JSON: {source}", file.display())]
    Json {
        file: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: {field}: {source}", file.display())]
    FieldType {
        file: PathBuf,
        field: String,
        source: serde_json::Error,
    },
    #[error("{}: {field} is {seen}, allowed: {allowed}", file.display())]
    Field {
        file: PathBuf,
        field: String,
        seen: String,
        allowed: String,
    },
    #[error("{}: architecture {seen:?} is not supported; supported: {supported}", file.display())]
    Architecture {
        file: PathBuf,
        seen: String,
        supported: &'static str,
    },
    #[error("{}: {reason}", file.display())]
    Format { file: PathBuf, reason: String },
    #[error("{}: {seen_bytes} bytes, but its header describes {wanted_bytes}: truncated or damaged", file.display())]
    Size {
        file: PathBuf,
        seen_bytes: u64,
        wanted_bytes: u64,
    },
    #[error("{}: tensor {tensor} is missing (wanted shape {wanted:?})", file.display())]
    Missing {
        file: PathBuf,
        tensor: String,
        wanted: Vec<usize>,
    },
    #[error("{}: tensor {tensor} has shape {seen:?}, wanted {wanted:?}", file.display())]
    Shape {
        file: PathBuf,
        tensor: String,
        seen: Vec<usize>,
        wanted: Vec<usize>,
    },
    #[error("{}: tensor {tensor} is stored as {seen}; supported: {supported}", file.display())]
    Dtype {
        file: PathBuf,
        tensor: String,
        seen: String,
        supported: &'static str,
    },
    #[error("{}: tensor {tensor} has no place in this model: the configuration and the weights disagree", file.display())]
    Unexpected { file: PathBuf, tensor: String },
    #[error("{}: tensor {tensor}: {reason}", file.display())]
    Tensor {
        file: PathBuf,
        tensor: String,
        reason: String,
    },
    #[error(
        "a KV cache of {n_blocks} blocks of {block_tok} tokens needs {bytes} bytes, which this machine does not give"
    )]
    KvMemory {
        n_blocks: usize,
        block_tok: usize,
        bytes: String,
    },
    #[error("sequence {seq} of the step: {reason}")]
    Step { seq: usize, reason: StepFault },
    #[error("device {device} is not in this build; available: cpu")]
    Device { device: &'static str },
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// What a step may not ask.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StepFault {
    #[error("it has no tokens")]
    Empty,
    #[error("token {token} is outside a vocabulary of {vocab}")]
    Token { token: u32, vocab: usize },
    #[error("it ends at {end_tok} tokens, the context holds {context_tok}")]
    Context { end_tok: usize, context_tok: usize },
    #[error("{end_tok} tokens need {needed} blocks of {block_tok}, its table has {seen}")]
    Blocks {
        end_tok: usize,
        block_tok: usize,
        needed: usize,
        seen: usize,
    },
    #[error("kept block {block} is outside its table of {table}")]
    Kept { block: u32, table: usize },
    #[error("kept blocks must increase: {block} after {previous}")]
    KeptOrder { previous: u32, block: u32 },
    #[error("block {block} of its table is outside a pool of {n_blocks}")]
    Pool { block: u32, n_blocks: usize },
}

//! The part of a scenario that configures the engine.

use crate::device::Device;
use etime_control::config::Limits;
use serde::{Deserialize, Serialize};

/// How weights are held in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WeightStorage {
    /// F32, F16 and Q8_0 as they are; BF16 exactly as F32; other quantised types repacked to Q8_0.
    #[default]
    Stored,
    /// Everything as F32, exactly: for comparisons with other programs.
    F32,
}

/// How a model is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    pub device: Device,
    pub weights: WeightStorage,
}

/// Which model, where it runs, and what one step may hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Engine", deny_unknown_fields)]
pub struct EngineConfig {
    /// A known name (`tiny`, `smollm2`), a directory of safetensors, or a GGUF file.
    pub model: String,
    #[serde(default)]
    pub device: Device,
    #[serde(default)]
    pub weights: WeightStorage,
    /// Token slots per KV block.
    #[serde(default = "default_block_tok")]
    pub block_tok: usize,
    /// Blocks in the KV pool.
    pub kv_blocks: usize,
    /// Sequences in flight at once.
    pub max_seqs: usize,
    /// Tokens computed in one step, prefill and decode together.
    #[serde(default = "default_max_batched_tok")]
    pub max_batched_tok: usize,
}

fn default_block_tok() -> usize {
    16
}

fn default_max_batched_tok() -> usize {
    512
}

impl EngineConfig {
    pub fn load_options(&self) -> LoadOptions {
        LoadOptions {
            device: self.device,
            weights: self.weights,
        }
    }

    pub fn limits(&self) -> Limits {
        Limits {
            block_tok: self.block_tok,
            kv_blocks: self.kv_blocks,
            max_seqs: self.max_seqs,
            max_batched_tok: self.max_batched_tok,
        }
    }
}

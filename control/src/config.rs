//! The part of a scenario that configures what decides.

use crate::law::TemperatureLaw;
use serde::{Deserialize, Serialize};

/// The three controllers and their sensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Micro scale: the temperature law.
    pub temperature: TemperatureLaw,
    /// Meso scale: which KV blocks attention reads.
    #[serde(default)]
    pub pruning: Pruning,
    /// Macro scale: which sequence is served.
    #[serde(default)]
    pub priority: Priority,
    /// How entropy is read.
    #[serde(default)]
    pub sensor: Sensor,
    /// Floor of the entropy that is fed to the law, nats: Ĥ = max(Ĥ, H_min).
    #[serde(default)]
    pub h_min_nats: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Pruning {
    /// Attention reads every block.
    #[default]
    Dense,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Priority {
    /// First come, first served.
    #[default]
    Fcfs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Sensor {
    /// Exact entropy over the whole vocabulary.
    #[default]
    Exact,
    /// The tight upper bound from the `k` largest probabilities: never an under-estimate.
    TopK { k: usize },
}

impl Sensor {
    /// Head size to ask a plant for.
    pub fn top_k(&self) -> Option<usize> {
        match *self {
            Sensor::Exact => None,
            Sensor::TopK { k } => Some(k),
        }
    }
}

/// What one serving step may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Token slots per KV block.
    pub block_tok: usize,
    /// Blocks in the KV pool.
    pub kv_blocks: usize,
    /// Sequences in flight at once.
    pub max_seqs: usize,
    /// Tokens computed in one step, prefill and decode together.
    pub max_batched_tok: usize,
}

impl Limits {
    /// Limits under which `sequences` of at most `len_tok` tokens all run at once.
    pub fn roomy(sequences: usize, len_tok: usize) -> Self {
        let block_tok = 16;
        Limits {
            block_tok,
            kv_blocks: sequences.max(1) * len_tok.div_ceil(block_tok).max(1),
            max_seqs: sequences.max(1),
            max_batched_tok: (sequences * len_tok).clamp(1, 2048),
        }
    }
}

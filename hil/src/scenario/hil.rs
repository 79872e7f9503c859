//! The part of a scenario that says how a prediction is validated.

use crate::tolerance::Tolerance;
use serde::{Deserialize, Serialize};

/// Hardware in the loop: predict, measure, judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hil {
    /// Levels to judge, each on its own.
    pub levels: Vec<Level>,
    /// Runs of the free level: as many are measured as are predicted.
    pub runs: usize,
    /// The open-loop recordings that the free level predicts from.
    pub record: Record,
    #[serde(default)]
    pub tolerance: Tolerance,
}

/// What is held equal between prediction and measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Level {
    /// The logits: every column must agree to the last bit.
    Replay,
    /// The tokens: the engine runs again under another temperature path.
    Forced,
    /// Only the seeds: ensembles are compared.
    Free,
}

impl Level {
    pub const ALL: [Level; 3] = [Level::Replay, Level::Forced, Level::Free];

    /// Name of the variant, as a scenario spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Level::Replay => "Replay",
            Level::Forced => "Forced",
            Level::Free => "Free",
        }
    }
}

/// Open-loop recordings, made with other seeds and prompts than those that are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Fixed temperatures to record at.
    pub temperatures: Vec<f64>,
    /// Runs at each temperature.
    pub runs: usize,
}

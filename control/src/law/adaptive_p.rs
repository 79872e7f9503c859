//! Adaptive-p: the draw prefers tokens of a probability that is steered by the average of those drawn.

use super::{Action, LawState, Observation};
use crate::draw::LogitShape;
use serde::{Deserialize, Serialize};

/// Draws by [`LogitShape::Reshape`] at target' = clamp(2 target − m, 0, 1); then m' = b m + (1 − b) p(x), m_0 = target.
///
/// p(x) is the probability of the drawn token before the reshaping. m = target is a fixed point where the reshaped
/// draw has that mean p; elsewhere target' leans the other way, by as much as m is off.
/// Source: the adaptive-p sampler of llama.cpp, which puts a cutoff of small p before it on large vocabularies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveP {
    /// Wanted mean probability of the drawn tokens.
    pub target_p: f64,
    /// Coefficient b of the average.
    #[serde(default = "default_ema")]
    pub ema: f64,
    /// Temperature before the reshaping.
    #[serde(default = "one")]
    pub t: f64,
}

fn default_ema() -> f64 {
    0.9
}

fn one() -> f64 {
    1.0
}

impl AdaptiveP {
    pub(super) fn shape(&self, state: &LawState) -> LogitShape {
        LogitShape::Reshape {
            u: self.t.ln(),
            target_p: (2.0 * self.target_p - state.mean_p).clamp(0.0, 1.0),
        }
    }

    pub(super) fn step(&self, mut state: LawState, seen: Observation) -> (LawState, Action) {
        let fed_nats = seen.tempered_surprisal_nats;
        state.mean_p = self.ema * state.mean_p + (1.0 - self.ema) * (-fed_nats).exp();
        (state, Action::hold(fed_nats))
    }
}

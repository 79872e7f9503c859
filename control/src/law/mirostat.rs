//! Mirostat 2: a cutoff of surprisal, steered so that the drawn surprisal meets its setpoint.

use super::{Action, LawState, Observation};
use crate::draw::LogitShape;
use serde::{Deserialize, Serialize};
use std::f64::consts::LN_2;

/// Draws from the tokens with −log2 p ≤ μ, at least the likeliest; then e = −log2 p(x) − τ and μ' = μ − η e, μ_0 = 2τ.
///
/// For any logits Σ e_t = (μ_0 − μ_N)/η, so the mean surprisal meets τ as long as μ stays bounded. It does not where
/// τ is out of reach: μ has no clip, as in the sources, and runs away. Bits live in this law alone: what leaves it is
/// in nats. Source: Basu, Ramachandran, Keskar & Varshney 2021, "Mirostat: a neural text decoding algorithm that
/// directly controls perplexity" (arXiv 2007.14966), in the second version of its authors' code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MirostatV2 {
    /// Setpoint τ of the surprisal, bits.
    pub tau_bits: f64,
    /// Gain η, bits of μ per bit of error.
    pub eta: f64,
    /// Temperature before the cutoff.
    #[serde(default = "one")]
    pub t: f64,
    #[serde(default)]
    pub surprisal_of: SurprisalOf,
}

fn one() -> f64 {
    1.0
}

/// Which p the surprisal of the drawn token is taken of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SurprisalOf {
    /// Of p before the cutoff, as the authors' code does.
    #[default]
    Vocabulary,
    /// Of p renormalised over the kept tokens, as llama.cpp does.
    Kept,
}

impl SurprisalOf {
    /// Name of the variant, as a scenario spells it.
    pub fn name(self) -> &'static str {
        match self {
            SurprisalOf::Vocabulary => "Vocabulary",
            SurprisalOf::Kept => "Kept",
        }
    }
}

impl MirostatV2 {
    pub(super) fn mu_start_bits(&self) -> f64 {
        2.0 * self.tau_bits
    }

    pub(super) fn shape(&self, state: &LawState) -> LogitShape {
        LogitShape::SurprisalCutoff {
            u: self.t.ln(),
            cutoff_nats: state.mu_bits * LN_2,
        }
    }

    pub(super) fn step(&self, mut state: LawState, seen: Observation) -> (LawState, Action) {
        let fed_nats = match self.surprisal_of {
            SurprisalOf::Vocabulary => seen.tempered_surprisal_nats,
            SurprisalOf::Kept => seen.surprisal_nats,
        };
        // A forced token that the cutoff excludes says nothing about the cutoff: μ holds.
        if fed_nats.is_finite() {
            state.mu_bits -= self.eta * (fed_nats / LN_2 - self.tau_bits);
        }
        (state, Action::hold(fed_nats))
    }
}

//! The integral law divided by its own loop gain: one damped Newton step per token.

use super::{Action, Band, LawState, Observation};
use serde::{Deserialize, Serialize};

/// u' = clip(u − clamp(κ (H − H*)/max(V, V_floor), ±max_step)).
///
/// κ is dimensionless; on fixed logits the slope at u* is 1 − κ where V(u*) ≥ V_floor: locally stable for 0 < κ < 2,
/// κ = 1 is Newton's step. Globally stable only with κ sup V < 2 V_floor or a step limit. It gives up the mean-error
/// identity of [`Integral`](super::Integral): it nulls the mean of (H − H*)/max(V, V_floor), so mean H is biased.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalised {
    /// Gain κ, dimensionless.
    pub kappa: f64,
    /// Setpoint H*, nats.
    pub target_nats: f64,
    /// Smallest varentropy that is divided by, nats².
    pub v_floor: f64,
    /// Largest |Δu| of one step; absent: no limit.
    #[serde(default)]
    pub max_step: Option<f64>,
    pub t_min: f64,
    pub t_max: f64,
    pub t_start: f64,
    /// As in [`Integral`](super::Integral).
    #[serde(default)]
    pub ema: f64,
    /// As in [`Integral`](super::Integral).
    #[serde(default)]
    pub delay_tok: usize,
}

impl Normalised {
    pub fn band(&self) -> Band {
        Band::from_t(self.t_min, self.t_max)
    }

    pub(super) fn step(&self, mut state: LawState, seen: Observation) -> (LawState, Action) {
        let fed_nats = seen.h_nats;
        let Some((h_nats, v)) = state
            .filter
            .push(fed_nats, seen.v, self.ema, self.delay_tok)
        else {
            return (state, Action::hold(fed_nats));
        };
        let limit = self.max_step.unwrap_or(f64::INFINITY);
        let push = self.kappa * (h_nats - self.target_nats) / v.max(self.v_floor);
        let wanted = state.u - push.clamp(-limit, limit);
        state.u = self.band().clip(wanted);
        let clip_u = state.u - wanted;
        (state, Action { fed_nats, clip_u })
    }
}

//! The integral law, with the paper's sign and with the sign that its prose needs.

use super::{Action, Band, LawState, Measure, Observation};
use serde::{Deserialize, Serialize};

/// Settings of [`Published`](super::TemperatureLaw::Published) and [`Corrected`](super::TemperatureLaw::Corrected).
///
/// With e = H − H*, u' = clip(u ± η e, ln T_min, ln T_max). On fixed logits dH/du = V, so the slope of the map is
/// 1 + ηV for the printed sign and 1 − ηV for the corrected one; the latter is locally stable for 0 < ηV(u*) < 2,
/// for 0 < ηV < 2(1 + b)/(1 − b) with the average, and for 0 < ηV < 2 sin(π/(4q + 2)) with q extra tokens of delay.
/// For any logits Σ(H_t − H*) = (u_0 − u_N + Σ c_t)/η with c_t what the clip added (corrected sign, no filter).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Integral {
    /// Gain η, 1/nat.
    pub eta_per_nat: f64,
    /// Setpoint H*, nats.
    pub target_nats: f64,
    pub t_min: f64,
    pub t_max: f64,
    pub t_start: f64,
    #[serde(default)]
    pub measure: Measure,
    /// Coefficient b of the average m' = b m + (1 − b) H; 0 switches it off.
    #[serde(default)]
    pub ema: f64,
    /// Tokens of delay beyond the one that a loop around a sampler always has.
    #[serde(default)]
    pub delay_tok: usize,
}

/// Direction of the feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// As printed in the paper.
    Plus,
    /// As stability needs it.
    Minus,
}

impl Integral {
    pub fn band(&self) -> Band {
        Band::from_t(self.t_min, self.t_max)
    }

    pub(super) fn step(
        &self,
        sign: Sign,
        mut state: LawState,
        seen: Observation,
    ) -> (LawState, Action) {
        let fed_nats = match self.measure {
            Measure::Tempered => seen.h_nats,
            Measure::Raw => seen.h_raw_nats,
        };
        let Some((h_nats, _)) = state
            .filter
            .push(fed_nats, seen.v, self.ema, self.delay_tok)
        else {
            return (state, Action::hold(fed_nats));
        };
        let push = self.eta_per_nat * (h_nats - self.target_nats);
        let wanted = match sign {
            Sign::Plus => state.u + push,
            Sign::Minus => state.u - push,
        };
        state.u = self.band().clip(wanted);
        let clip_u = state.u - wanted;
        (state, Action { fed_nats, clip_u })
    }
}

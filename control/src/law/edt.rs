//! EDT: temperature from the raw entropy of the logits that it is about to act on, without memory.

use super::Band;
use serde::{Deserialize, Serialize};

/// T = clip(T_0 · N^(θ/H_raw), T_min, T_0) before each draw, with 0 < N < 1.
///
/// T rises with the entropy from 0 (at H_raw = 0, where the lower bound holds) towards T_0: the direction of the
/// printed law, but of the raw entropy and without an integral, so that nothing winds up.
/// Source: Zhang, Bao & Huang 2024, "EDT: improving large language models' generation by entropy-based dynamic
/// temperature sampling" (arXiv 2403.14541).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edt {
    /// Temperature T_0 of an endless entropy, and the upper bound.
    pub t_0: f64,
    /// Scale θ of the entropy, nats.
    pub theta_nats: f64,
    /// Base N.
    #[serde(default = "default_base")]
    pub base: f64,
    /// Lower bound of T.
    pub t_min: f64,
}

fn default_base() -> f64 {
    0.8
}

impl Edt {
    pub fn band(&self) -> Band {
        Band::from_t(self.t_min, self.t_0)
    }

    pub(super) fn u(&self, h_raw_nats: f64) -> f64 {
        let band = self.band();
        // Rounding can take an entropy of 0 to either side of it.
        if h_raw_nats <= 0.0 {
            return band.u_min;
        }
        band.clip(self.t_0.ln() + self.base.ln() * self.theta_nats / h_raw_nats)
    }
}

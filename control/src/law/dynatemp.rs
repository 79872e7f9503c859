//! Dynamic temperature: T follows the raw entropy of the logits that it is about to act on.

use super::Band;
use serde::{Deserialize, Serialize};

/// T = T_min + (T_max − T_min) (H_raw/ln n)^x, before each draw.
///
/// H_raw is the entropy at T = 1 and n the whole vocabulary, so that the order of samplers cannot change it. An open
/// loop: T does not depend on what it did, and it rises with the entropy, the direction of the printed law.
/// Source: the dynamic temperature sampler of llama.cpp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dynatemp {
    pub t_min: f64,
    pub t_max: f64,
    /// Exponent x of the normalised entropy.
    #[serde(default = "default_exponent")]
    pub exponent: f64,
}

fn default_exponent() -> f64 {
    1.0
}

impl Dynatemp {
    pub fn band(&self) -> Band {
        Band::from_t(self.t_min, self.t_max)
    }

    pub(super) fn u(&self, h_raw_nats: f64, ln_n: f64) -> f64 {
        // One symbol alone has no entropy to normalise.
        let share = match ln_n > 0.0 {
            true => (h_raw_nats / ln_n).clamp(0.0, 1.0),
            false => 0.0,
        };
        let t = self.t_min + (self.t_max - self.t_min) * share.powf(self.exponent);
        self.band().clip(t.ln())
    }
}

//! How logits become the distribution that is drawn from.

use super::cdf::Cdf;

/// What is done to a row of logits before the draw; p = softmax(z/T) with T = e^`u` throughout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogitShape {
    /// p itself.
    Temperature { u: f64 },
    /// p over the tokens with −ln p ≤ `cutoff_nats`, renormalised. Those of largest p stay under any cutoff.
    SurprisalCutoff { u: f64, cutoff_nats: f64 },
    /// softmax(z') with z' = 5 − 10 d²/(1 + d), d = |p − `target_p`|/0.3: most likely is what has p near the target.
    ///
    /// The tail of p ≈ 0 shares one z', so that its mass grows with the vocabulary. z' is rounded to F32, as logits are.
    /// Source: the adaptive-p sampler of llama.cpp.
    Reshape { u: f64, target_p: f64 },
}

/// z' at p = target.
const PEAK_LOGIT: f64 = 5.0;
/// How steeply z' falls with distance.
const SHARPNESS: f64 = 10.0;
/// The distance in p that counts as 1.
const WIDTH_P: f64 = 0.3;

impl LogitShape {
    /// Log-temperature ln T.
    pub fn u(self) -> f64 {
        match self {
            LogitShape::Temperature { u }
            | LogitShape::SurprisalCutoff { u, .. }
            | LogitShape::Reshape { u, .. } => u,
        }
    }

    /// The row to draw from in place of z/T, with its log-temperature; `None` where p itself is drawn from.
    pub(super) fn row(self, p: &Cdf) -> Option<(Vec<f32>, f64)> {
        let map = |f: &dyn Fn(f32) -> f32| p.logits().iter().map(|&z| f(z)).collect();
        match self {
            LogitShape::Temperature { .. } => None,
            LogitShape::SurprisalCutoff { u, cutoff_nats } => {
                let kept = |z| p.surprisal_nats(z) <= cutoff_nats || p.is_peak(z);
                let cut = |z| if kept(z) { z } else { f32::NEG_INFINITY };
                Some((map(&cut), u))
            }
            LogitShape::Reshape { target_p, .. } => {
                let reshaped = |z: f32| match z == f32::NEG_INFINITY {
                    true => z,
                    false => peaked(p.p(z), target_p),
                };
                Some((map(&reshaped), 0.0))
            }
        }
    }
}

fn peaked(p: f64, target_p: f64) -> f32 {
    let d = (p - target_p).abs() / WIDTH_P;
    (PEAK_LOGIT - SHARPNESS * d * d / (1.0 + d)) as f32
}

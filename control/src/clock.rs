//! The entropic clock: how much entropy a sequence gave up along its path.

use crate::draw::{DrawKey, uniform};
use serde::{Deserialize, Serialize};

/// Entropic time of one sequence, fed with its entropies in order.
///
/// τ = Σ max(0, H_{t−1} − H_t) = ½ (TV + H_0 − H_N): half the roughness of the path plus its net drop.
/// Independent noise of standard deviation σ (Gaussian) alone adds σ/√π per token, so τ is read beside
/// the net drop, the total variation and [`surrogate_tau`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntropicClock {
    first_nats: f64,
    last_nats: f64,
    tau_nats: f64,
    variation_nats: f64,
    len: u64,
}

impl EntropicClock {
    /// Adds the next entropy; the first one, H_0, only starts the clock.
    pub fn push(&mut self, h_nats: f64) {
        if self.len == 0 {
            self.first_nats = h_nats;
        } else {
            self.tau_nats += (self.last_nats - h_nats).max(0.0);
            self.variation_nats += (self.last_nats - h_nats).abs();
        }
        self.last_nats = h_nats;
        self.len += 1;
    }

    /// τ, nats.
    pub fn tau(&self) -> f64 {
        self.tau_nats
    }

    /// H_0 − H_N, nats.
    pub fn net_drop(&self) -> f64 {
        self.first_nats - self.last_nats
    }

    /// TV = Σ |H_{t−1} − H_t|, nats.
    pub fn total_variation(&self) -> f64 {
        self.variation_nats
    }

    /// Entropies seen, H_0 included.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Mean τ, nats, of `shuffles` random orders of `series`: what its values alone give, whatever their order.
///
/// Fisher–Yates on Philox numbers keyed by (`seed`, shuffle, swap). Zero without shuffles.
pub fn surrogate_tau(series: &[f64], seed: u64, shuffles: usize) -> f64 {
    /// Keeps these numbers apart from the token draws of the same seed.
    const STREAM: u64 = 0x7375_7272_6f67_6174;
    if shuffles == 0 {
        return 0.0;
    }
    let mut order = series.to_vec();
    let mut sum = 0.0;
    for shuffle in 0..shuffles {
        order.copy_from_slice(series);
        for i in (1..order.len()).rev() {
            let key = DrawKey {
                seed: seed ^ STREAM,
                request: shuffle as u64,
                token: i as u64,
            };
            order.swap(i, (uniform(key) * (i + 1) as f64) as usize);
        }
        let mut clock = EntropicClock::default();
        order.iter().for_each(|&h| clock.push(h));
        sum += clock.tau();
    }
    sum / shuffles as f64
}

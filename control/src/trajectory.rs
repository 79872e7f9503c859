//! What a run leaves behind: plain columns, one row per (step, sequence that drew a token).

use crate::plant::Cost;

/// Where the temperature of a row stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Strictly inside (T_min, T_max), or an open loop.
    Inside,
    AtMin,
    AtMax,
}

/// One row: what was measured and done when one token was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Step of the driver.
    pub step: u64,
    /// Start of the step on the driver's clock, in its unit (steps, or modelled seconds).
    pub time: f64,
    pub request: u64,
    /// Index of the drawn token in the generated text.
    pub index_tok: u64,
    /// Log-temperature of the draw, u = ln T.
    pub u: f64,
    /// Entropy of the distribution drawn from, nats: at that temperature, after a cutoff or reshaping if there is one.
    pub h_nats: f64,
    /// Varentropy at that temperature, before any cutoff or reshaping, nats².
    pub v: f64,
    /// Entropy at T = 1, nats.
    pub h_raw_nats: f64,
    /// Varentropy at T = 1, nats².
    pub v_raw: f64,
    /// Tight lower and upper bounds of H from the k largest probabilities; both equal `h_nats` with the exact sensor.
    pub h_lower_nats: f64,
    pub h_upper_nats: f64,
    /// Signal fed to the law, nats: an entropy, floor included, or the surprisal that the law reads.
    pub fed_nats: f64,
    /// What the clip added to the update that follows this draw, in u.
    pub clip_u: f64,
    /// Signed loop gain: −dΔu/dH · V; 0 for laws without one. Stable at fixed logits for values in (0, 2).
    pub loop_gain: f64,
    pub bound: Bound,
    /// Drawn token and its surprisal −ln p, in the distribution drawn from and at T = 1, nats.
    pub token: u32,
    pub surprisal_nats: f64,
    pub surprisal_raw_nats: f64,
    /// Entropic time since the sequence's first draw: of `h_nats`, and of H at T = 1.
    pub tau_nats: f64,
    pub tau_raw_nats: f64,
}

/// What one step of the driver did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub time: f64,
    pub sequences: u64,
    pub drawn: u64,
    pub cost: Cost,
}

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trajectory {
    /// In step order; within a step in order of admission.
    pub samples: Vec<Sample>,
    pub steps: Vec<Step>,
    /// Log-temperature after the last update of each request, in order of submission.
    pub u_end: Vec<f64>,
}

impl Trajectory {
    /// Rows of one request, in text order.
    pub fn of_request(&self, request: u64) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |s| s.request == request)
    }

    /// Requests in order of first appearance.
    pub fn requests(&self) -> Vec<u64> {
        let mut seen = std::collections::BTreeSet::new();
        self.samples
            .iter()
            .map(|s| s.request)
            .filter(|&id| seen.insert(id))
            .collect()
    }
}

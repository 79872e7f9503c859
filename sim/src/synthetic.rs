//! Rows of one shape whose sharpness is a stochastic process, moved by the text that is drawn.

use crate::logits::finite;
use crate::{InMemory, Logits, RowSource, SimError};
use etime_control::draw::Drawn;
use etime_control::plant::PlantError;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sharper and flatter than any model: a row times e^±20 is a certainty or a uniform draw, and stays an F32.
const MAX_LN_SHARPNESS: f64 = 20.0;

/// How ln sharpness x_t of a sequence moves, ε_t independent standard normal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Process {
    /// x_t = sd·ε_t.
    Iid { sd: f64 },
    /// x_t = φ·x_{t−1} + sd·√(1 − φ²)·ε_t, started in its stationary law: standard deviation sd, autocorrelation φ^k.
    Ar1 { phi: f64, sd: f64 },
    /// x_t = mean + sd·ε_t of the current regime, which stays with probability `stay` and else changes to one of
    /// the others at random: text alternates between deciding (flat) and filling in (sharp).
    Regimes { stay: f64, levels: Vec<Regime> },
}

/// One regime of [`Process::Regimes`]: mean and standard deviation of ln sharpness.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regime {
    pub mean: f64,
    pub sd: f64,
}

/// A synthetic language model: z_t = e^{x_t} · (the shape, permuted afresh for every token).
///
/// Text feedback adds g·(s_t − s̄_t) to x_{t+1}, where s_t is the raw surprisal of the drawn token, s̄_t the mean
/// of those before it (the first one has no effect) and g `feedback_per_nat`. The permutation makes symbols exchangeable.
/// x_t is kept within ±20.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyntheticSpec {
    pub logits: Logits,
    pub process: Process,
    /// Text feedback g, 1/nat.
    #[serde(default)]
    pub feedback_per_nat: f64,
}

/// The plant of a [`SyntheticSpec`].
pub type Synthetic = InMemory<SyntheticRows>;

#[derive(Clone, Debug)]
pub struct SyntheticRows {
    shape: Vec<f32>,
    process: Process,
    feedback_per_nat: f64,
    seed: u64,
    sequences: BTreeMap<u64, Sequence>,
}

#[derive(Clone, Debug)]
struct Sequence {
    rng: ChaCha8Rng,
    /// Set by the first step.
    state: Option<State>,
    /// What the text adds to the next ln sharpness.
    push: f64,
    surprisals: u64,
    mean_surprisal_nats: f64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    ln_sharpness: f64,
    regime: usize,
}

impl Synthetic {
    /// `seed` keys the random streams together with the request.
    ///
    /// # Errors
    /// A field outside of its range.
    pub fn new(spec: &SyntheticSpec, seed: u64) -> Result<Self, SimError> {
        spec.process.check()?;
        finite("feedback_per_nat", spec.feedback_per_nat)?;
        Ok(InMemory::from_source(SyntheticRows {
            shape: spec.logits.row()?,
            process: spec.process.clone(),
            feedback_per_nat: spec.feedback_per_nat,
            seed,
            sequences: BTreeMap::new(),
        }))
    }

    /// ln sharpness of the latest row of a request.
    pub fn ln_sharpness(&self, request: u64) -> Option<f64> {
        let state = self.source.sequences.get(&request)?.state?;
        Some(state.ln_sharpness)
    }
}

impl Sequence {
    fn new(seed: u64, request: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(request);
        Sequence {
            rng,
            state: None,
            push: 0.0,
            surprisals: 0,
            mean_surprisal_nats: 0.0,
        }
    }
}

impl RowSource for SyntheticRows {
    fn restart(&mut self, request: u64) {
        let fresh = Sequence::new(self.seed, request);
        self.sequences.insert(request, fresh);
    }

    fn next_row(&mut self, request: u64) -> Result<Arc<[f32]>, PlantError> {
        let seed = self.seed;
        let sequence = self
            .sequences
            .entry(request)
            .or_insert_with(|| Sequence::new(seed, request));
        let mut state = self.process.next(sequence.state, &mut sequence.rng);
        let moved = state.ln_sharpness + std::mem::take(&mut sequence.push);
        state.ln_sharpness = moved.clamp(-MAX_LN_SHARPNESS, MAX_LN_SHARPNESS);
        sequence.state = Some(state);
        let sharpness = state.ln_sharpness.exp();
        let scaled = self
            .shape
            .iter()
            .map(|&z| (f64::from(z) * sharpness) as f32);
        let mut row: Vec<f32> = scaled.collect();
        row.shuffle(&mut sequence.rng);
        Ok(row.into())
    }

    fn heard(&mut self, request: u64, drawn: &Drawn) {
        let Some(sequence) = self.sequences.get_mut(&request) else {
            return;
        };
        let surprise_nats = drawn.raw_surprisal_nats - sequence.mean_surprisal_nats;
        if sequence.surprisals > 0 {
            sequence.push = self.feedback_per_nat * surprise_nats;
        }
        sequence.surprisals += 1;
        sequence.mean_surprisal_nats += surprise_nats / sequence.surprisals as f64;
    }
}

impl Process {
    fn check(&self) -> Result<(), SimError> {
        let sd_is_valid = |sd: f64| match sd >= 0.0 {
            true => finite("sd", sd),
            false => Err(SimError::field("sd", sd, "at least 0")),
        };
        match self {
            Process::Iid { sd } => sd_is_valid(*sd),
            Process::Ar1 { phi, sd } => {
                if phi.is_nan() || phi.abs() >= 1.0 {
                    return Err(SimError::field("phi", phi, "strictly between -1 and 1"));
                }
                sd_is_valid(*sd)
            }
            Process::Regimes { stay, levels } => {
                if !(0.0..=1.0).contains(stay) {
                    return Err(SimError::field("stay", stay, "from 0 to 1"));
                }
                if levels.is_empty() {
                    return Err(SimError::field("levels", "empty", "at least one regime"));
                }
                for level in levels {
                    sd_is_valid(level.sd)?;
                    finite("mean", level.mean)?;
                }
                Ok(())
            }
        }
    }

    /// The state after `last`, or the first one.
    fn next(&self, last: Option<State>, rng: &mut ChaCha8Rng) -> State {
        let noise: f64 = StandardNormal.sample(rng);
        match self {
            Process::Iid { sd } => State {
                ln_sharpness: sd * noise,
                regime: 0,
            },
            Process::Ar1 { phi, sd } => {
                let ln_sharpness = match last {
                    Some(last) => phi * last.ln_sharpness + sd * (1.0 - phi * phi).sqrt() * noise,
                    None => sd * noise,
                };
                State {
                    ln_sharpness,
                    regime: 0,
                }
            }
            Process::Regimes { stay, levels } => {
                let regime = match last {
                    None => rng.random_range(0..levels.len()),
                    Some(last) if levels.len() == 1 || rng.random_bool(*stay) => last.regime,
                    Some(last) => {
                        let other = rng.random_range(0..levels.len() - 1);
                        other + usize::from(other >= last.regime)
                    }
                };
                State {
                    ln_sharpness: levels[regime].mean + levels[regime].sd * noise,
                    regime,
                }
            }
        }
    }
}

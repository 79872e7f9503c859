//! Shapes of a logit row.

use crate::SimError;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// A logit row, given by its shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Logits {
    /// z_i = −`exponent` · ln i for i = 1..=`vocab`: p_i ∝ i^−exponent at T = 1.
    Zipf { vocab: usize, exponent: f64 },
    /// Independent normal logits of standard deviation `sd`, the same for the same `seed`.
    Gaussian { vocab: usize, sd: f64, seed: u64 },
    /// `spikes` logits that lie `gap` above the others, which are all 0.
    Spiked {
        vocab: usize,
        gap: f64,
        spikes: usize,
    },
    /// The row itself.
    Values(Vec<f32>),
}

impl Logits {
    /// The row as F32, never empty, without NaN or +inf, and not all −inf.
    ///
    /// # Errors
    /// A field outside of its range.
    pub fn row(&self) -> Result<Vec<f32>, SimError> {
        let vocab = match self {
            Logits::Zipf { vocab, .. }
            | Logits::Gaussian { vocab, .. }
            | Logits::Spiked { vocab, .. } => *vocab,
            Logits::Values(values) => values.len(),
        };
        if vocab == 0 || u32::try_from(vocab).is_err() {
            return Err(SimError::field("vocab", vocab, "from 1 to 2^32 - 1"));
        }
        match *self {
            Logits::Zipf { exponent, .. } => {
                finite("exponent", exponent)?;
                let z = |i: usize| (-exponent * ((i + 1) as f64).ln()) as f32;
                Ok((0..vocab).map(z).collect())
            }
            Logits::Gaussian { sd, seed, .. } => {
                finite("sd", sd)?;
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let z = |_| {
                    let unit: f64 = StandardNormal.sample(&mut rng);
                    (sd * unit) as f32
                };
                Ok((0..vocab).map(z).collect())
            }
            Logits::Spiked { gap, spikes, .. } => {
                finite("gap", gap)?;
                if spikes > vocab {
                    return Err(SimError::field("spikes", spikes, "at most vocab"));
                }
                let mut row = vec![0.0; vocab];
                row[..spikes].fill(gap as f32);
                Ok(row)
            }
            Logits::Values(ref values) => {
                let valid = |z: &f32| z.abs() <= 1e9 || *z == f32::NEG_INFINITY;
                if !values.iter().all(valid) || values.iter().all(|z| *z == f32::NEG_INFINITY) {
                    let allowed = "within ±1e9 or -inf, and not all -inf";
                    return Err(SimError::field("Values", format!("{values:?}"), allowed));
                }
                Ok(values.clone())
            }
        }
    }
}

/// Logits are F32: a shape number must leave room for the sharpness and the normal factor.
pub(crate) fn finite(field: &'static str, seen: f64) -> Result<(), SimError> {
    if seen.abs() <= 1e9 {
        Ok(())
    } else {
        Err(SimError::field(field, format!("{seen:e}"), "within ±1e9"))
    }
}

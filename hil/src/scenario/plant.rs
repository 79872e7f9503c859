//! The simulated plants that a scenario can name.

use super::text::join;
use etime_control::law::FieldError;
use etime_control::plant::Plant;
use etime_sim::{Fixed, Logits, SimError, Synthetic, SyntheticSpec};
use serde::{Deserialize, Serialize};

/// A plant that is a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum SimPlant {
    /// One logit row for ever.
    Fixed(Logits),
    /// Rows of one shape whose sharpness is a stochastic process.
    Synthetic(SyntheticSpec),
}

impl SimPlant {
    /// The plant, its random streams keyed by `seed`.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Plant>, SimError> {
        Ok(match self {
            SimPlant::Fixed(logits) => Box::new(Fixed::new(logits)?),
            SimPlant::Synthetic(spec) => Box::new(Synthetic::new(spec, seed)?),
        })
    }

    fn logits(&self) -> &Logits {
        match self {
            SimPlant::Fixed(logits) => logits,
            SimPlant::Synthetic(spec) => &spec.logits,
        }
    }

    /// Symbols of the vocabulary.
    pub fn vocab(&self) -> usize {
        match self.logits() {
            Logits::Zipf { vocab, .. }
            | Logits::Gaussian { vocab, .. }
            | Logits::Spiked { vocab, .. } => *vocab,
            Logits::Values(values) => values.len(),
        }
    }

    /// Checks every parameter; paths are relative to the plant.
    pub fn check(&self) -> Result<(), FieldError> {
        /// Larger than any vocabulary in use; a row of it takes 64 MiB.
        const MAX_VOCAB: usize = 1 << 24;
        let (logits_path, process_path) = match self {
            SimPlant::Fixed(_) => ("", ""),
            SimPlant::Synthetic(_) => ("logits", "process"),
        };
        let refuse = |parent: &str, error: SimError| match error {
            SimError::Field {
                field,
                seen,
                allowed,
            } => FieldError {
                path: if field == "feedback_per_nat" {
                    field.to_owned()
                } else {
                    join(parent, field)
                },
                seen,
                allowed: allowed.to_owned(),
            },
            other => FieldError {
                path: parent.to_owned(),
                seen: "these values".to_owned(),
                allowed: other.to_string(),
            },
        };
        if self.vocab() > MAX_VOCAB {
            return Err(FieldError {
                path: join(logits_path, "vocab"),
                seen: self.vocab().to_string(),
                allowed: format!("from 1 to {MAX_VOCAB}"),
            });
        }
        self.logits()
            .row()
            .map_err(|error| refuse(logits_path, error))?;
        self.build(0)
            .map(drop)
            .map_err(|error| refuse(process_path, error))
    }
}

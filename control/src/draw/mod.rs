//! The token draw: a counter-based random number and an inverse CDF, both fixed to the last bit.
//!
//! A draw is a function of its key and its logits alone: no generator state exists that a neighbour
//! in the batch, the order of calls or a thread could move.

mod cdf;
mod philox;
mod shape;

pub use philox::{DrawKey, philox4x32, uniform};
pub use shape::LogitShape;

use crate::sensor::SensorError;
use crate::sensor::lanes::Scale;
use cdf::Cdf;

/// Draw a token, or score a given one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pick {
    Key(DrawKey),
    Token(u32),
}

/// A drawn or scored token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    pub token: u32,
    /// Entropy of the distribution drawn from, nats; `None` for a plain temperature, whose entropy the sensor reads.
    pub h_nats: Option<f64>,
    /// −ln p of the token in the distribution drawn from, nats; +inf for a scored token of probability zero.
    pub surprisal_nats: f64,
    /// −ln p of the token at the temperature of the draw, before any cutoff or reshaping, nats.
    pub tempered_surprisal_nats: f64,
    /// −ln p of the token at T = 1, nats.
    pub raw_surprisal_nats: f64,
}

/// Draws or scores one token from `logits`, one F32 value per symbol.
///
/// The draw is the inverse CDF in vocabulary order at [`uniform`] of the key: partial sums over fixed
/// blocks of 256 entries find the block, a running sum inside it finds the token. A token of
/// probability zero is never drawn, and −inf has probability zero under every shape.
///
/// # Errors
/// Those of [`crate::sensor::thermal`], and a scored token outside the vocabulary.
pub fn draw(logits: &[f32], shape: LogitShape, pick: Pick) -> Result<Drawn, SensorError> {
    let scale = Scale::new(logits, shape.u())?;
    let tempered = Cdf::new(logits, scale);
    let row = shape.row(&tempered);
    let shaped = match &row {
        Some((row, u)) => Some(Cdf::new(row, Scale::new(row, *u)?)),
        None => None,
    };
    let from = shaped.as_ref().unwrap_or(&tempered);
    let index = match pick {
        Pick::Key(key) => from.index_at(uniform(key)),
        Pick::Token(token) => index_of(token, logits.len())?,
    };
    let tempered_surprisal_nats = tempered.surprisal_nats(logits[index]);
    let raw_surprisal_nats = if shape.u() == 0.0 {
        tempered_surprisal_nats
    } else {
        let inv_t = 1.0;
        Cdf::new(logits, Scale { inv_t, ..scale }).surprisal_nats(logits[index])
    };
    Ok(Drawn {
        token: index as u32,
        h_nats: shaped.as_ref().map(Cdf::entropy_nats),
        surprisal_nats: from.surprisal_nats(from.logits()[index]),
        tempered_surprisal_nats,
        raw_surprisal_nats,
    })
}

fn index_of(token: u32, vocab: usize) -> Result<usize, SensorError> {
    match usize::try_from(token) {
        Ok(index) if index < vocab => Ok(index),
        _ => Err(SensorError::TokenOutOfRange { token, vocab }),
    }
}

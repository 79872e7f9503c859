//! The token draw: a counter-based random number and an inverse CDF, both fixed to the last bit.
//!
//! A draw is a function of its key and its logits alone: no generator state exists that a neighbour
//! in the batch, the order of calls or a thread could move.

use crate::sensor::SensorError;
use crate::sensor::lanes::{BLOCK, Scale, block_masses, exp_or_zero};

/// Names one draw: the run's seed, the request, and the index of the token within the request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawKey {
    pub seed: u64,
    pub request: u64,
    pub token: u64,
}

/// How logits become the distribution that is drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogitShape {
    /// softmax(z/T) with T = e^`u`.
    Temperature { u: f64 },
}

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
    /// −ln p of the token in the shaped distribution, nats; +inf for a scored token of probability zero.
    pub surprisal_nats: f64,
    /// −ln p of the token at T = 1, nats.
    pub raw_surprisal_nats: f64,
}

/// Draws or scores one token from `logits`, one F32 value per symbol.
///
/// The draw is the inverse CDF in vocabulary order at [`uniform`] of the key: partial sums over fixed
/// blocks of 256 entries find the block, a running sum inside it finds the token. A token of
/// probability zero is never drawn.
///
/// # Errors
/// Those of [`crate::sensor::thermal`], and a scored token outside the vocabulary.
pub fn draw(logits: &[f32], shape: LogitShape, pick: Pick) -> Result<Drawn, SensorError> {
    let LogitShape::Temperature { u } = shape;
    let scale = Scale::new(logits, u)?;
    let masses = block_masses(logits, scale);
    let sum: f64 = masses.iter().sum();
    let index = match pick {
        Pick::Key(key) => locate(logits, scale, &masses, uniform(key) * sum),
        Pick::Token(token) => index_of(token, logits.len())?,
    };
    let raw = Scale {
        inv_t: 1.0,
        ..scale
    };
    let raw_sum = if u == 0.0 {
        sum
    } else {
        block_masses(logits, raw).iter().sum()
    };
    Ok(Drawn {
        token: index as u32,
        surprisal_nats: sum.ln() - scale.y(logits[index]),
        raw_surprisal_nats: raw_sum.ln() - raw.y(logits[index]),
    })
}

fn index_of(token: u32, vocab: usize) -> Result<usize, SensorError> {
    match usize::try_from(token) {
        Ok(index) if index < vocab => Ok(index),
        _ => Err(SensorError::TokenOutOfRange { token, vocab }),
    }
}

/// The first token whose running sum of exponentials exceeds `target`, or the last that has any mass.
fn locate(logits: &[f32], scale: Scale, masses: &[f64], target: f64) -> usize {
    let (mut block, mut start, mut end) = (0, 0.0, 0.0);
    for (index, &mass) in masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
        (block, start) = (index, end);
        end += mass;
        if end > target {
            break;
        }
    }
    let rest = target - start;
    let first = block * BLOCK;
    let mut running = 0.0;
    let mut last_with_mass = first;
    for (index, &logit) in logits.iter().enumerate().skip(first).take(BLOCK) {
        let e = exp_or_zero(scale.y(logit));
        if e > 0.0 {
            last_with_mass = index;
            running += e;
            if running > rest {
                break;
            }
        }
    }
    last_with_mass
}

/// A number in \[0, 1) with 53 random bits, from Philox4x32-10 keyed by `key.seed` at the counter
/// (`key.token`, `key.request`), low words first.
pub fn uniform(key: DrawKey) -> f64 {
    let counter = [
        low(key.token),
        high(key.token),
        low(key.request),
        high(key.request),
    ];
    let out = philox4x32(counter, [low(key.seed), high(key.seed)]);
    let bits = u64::from(out[0]) | u64::from(out[1]) << 32;
    (bits >> 11) as f64 * 2.0_f64.powi(-53)
}

fn low(x: u64) -> u32 {
    x as u32
}

fn high(x: u64) -> u32 {
    (x >> 32) as u32
}

/// Philox4x32 with ten rounds (Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3").
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    const ROUNDS: u32 = 10;
    let mut c = counter;
    for round in 0..ROUNDS {
        let k0 = key[0].wrapping_add(0x9E37_79B9_u32.wrapping_mul(round));
        let k1 = key[1].wrapping_add(0xBB67_AE85_u32.wrapping_mul(round));
        let p0 = 0xD251_1F53_u64 * u64::from(c[0]);
        let p1 = 0xCD9E_8D57_u64 * u64::from(c[2]);
        c = [high(p1) ^ c[1] ^ k0, low(p1), high(p0) ^ c[3] ^ k1, low(p0)];
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_at_the_very_top_ends_on_the_last_token_with_mass() {
        let mut logits = vec![f32::NEG_INFINITY; 3 * BLOCK];
        logits[5] = 0.3;
        logits[BLOCK + 7] = 0.1;
        let scale = Scale::new(&logits, 0.0).expect("a valid row");
        let masses = block_masses(&logits, scale);
        let sum: f64 = masses.iter().sum();
        for target in [sum, sum * (1.0 + 1e-15), 2.0 * sum] {
            assert_eq!(locate(&logits, scale, &masses, target), BLOCK + 7);
        }
        assert_eq!(locate(&logits, scale, &masses, 0.0), 5);
    }
}

//! The distribution softmax(z/T) of one row as partial sums, in vocabulary order.

use crate::sensor::lanes::{BLOCK, Scale, block_masses, exp_or_zero, moments};

/// Σ exp(y) of a row over fixed blocks of 256 entries, y = (z − max z)/T.
pub(super) struct Cdf<'a> {
    logits: &'a [f32],
    scale: Scale,
    masses: Vec<f64>,
    sum: f64,
    ln_sum: f64,
}

impl<'a> Cdf<'a> {
    pub fn new(logits: &'a [f32], scale: Scale) -> Self {
        let masses = block_masses(logits, scale);
        let sum: f64 = masses.iter().sum();
        Cdf {
            ln_sum: sum.ln(),
            logits,
            scale,
            masses,
            sum,
        }
    }

    pub fn logits(&self) -> &'a [f32] {
        self.logits
    }

    /// Whether `logit` is the largest of the row.
    pub fn is_peak(&self, logit: f32) -> bool {
        f64::from(logit) == self.scale.max
    }

    /// p of a symbol with this `logit`.
    pub fn p(&self, logit: f32) -> f64 {
        exp_or_zero(self.scale.y(logit)) / self.sum
    }

    /// −ln p of a symbol with this `logit`, nats; +inf for −inf.
    pub fn surprisal_nats(&self, logit: f32) -> f64 {
        self.ln_sum - self.scale.y(logit)
    }

    /// H of the distribution, nats.
    pub fn entropy_nats(&self) -> f64 {
        let sums = moments(self.logits, self.scale);
        sums.e.ln() - sums.ey / sums.e
    }

    /// The inverse of the distribution function at `part` in \[0, 1): a block by its partial sum, then a token by a
    /// running sum inside it. A token of probability zero is never returned.
    pub fn index_at(&self, part: f64) -> usize {
        self.locate(part * self.sum)
    }

    /// The first token whose running sum of exponentials exceeds `target`, or the last that has any mass.
    fn locate(&self, target: f64) -> usize {
        let (mut block, mut start, mut end) = (0, 0.0, 0.0);
        let masses = self.masses.iter().enumerate();
        for (index, &mass) in masses.filter(|(_, mass)| **mass > 0.0) {
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
        for (index, &logit) in self.logits.iter().enumerate().skip(first).take(BLOCK) {
            let e = exp_or_zero(self.scale.y(logit));
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
        let cdf = Cdf::new(&logits, scale);
        for target in [cdf.sum, cdf.sum * (1.0 + 1e-15), 2.0 * cdf.sum] {
            assert_eq!(cdf.locate(target), BLOCK + 7);
        }
        assert_eq!(cdf.locate(0.0), 5);
    }
}

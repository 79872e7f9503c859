//! The baseline: an interpolated bigram model over the same tokens.
//!
//! P(b | a) = Λ(a) c(a,b)/c(a) + (1 − Λ(a)) P₁(b),  Λ(a) = λ c(a) / (c(a) + κ),
//! P₁(b) = (c(b) + α) / (N + α·vocabulary).
//! κ = 0 is the constant interpolation weight, λ = 1 the Dirichlet prior; all three are chosen on the dev split.

use std::collections::HashMap;

/// λ (no unit), κ and α (pseudo-counts, tokens).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothing {
    pub lambda: f64,
    pub kappa: f64,
    pub alpha: f64,
}

const LAMBDAS: [f64; 8] = [0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0];
const KAPPAS: [f64; 9] = [0.0, 1.0, 3.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0];
const ALPHAS: [f64; 5] = [0.01, 0.1, 0.3, 1.0, 3.0];

pub struct Bigram {
    pairs: HashMap<(u32, u32), f64>,
    contexts: Vec<f64>,
    unigrams: Vec<f64>,
    total: f64,
    pub smoothing: Smoothing,
}

impl Bigram {
    /// Counts on `train`, then the smoothing of lowest loss on `dev`. Ids must be below `vocab_size`.
    pub fn fit(train: &[u32], dev: &[u32], vocab_size: usize) -> Self {
        let mut model = Self {
            pairs: HashMap::new(),
            contexts: vec![0.0; vocab_size],
            unigrams: vec![0.0; vocab_size],
            total: train.len() as f64,
            smoothing: Smoothing {
                lambda: 0.9,
                kappa: 0.0,
                alpha: 1.0,
            },
        };
        for &token in train {
            model.unigrams[token as usize] += 1.0;
        }
        for pair in train.windows(2) {
            *model.pairs.entry((pair[0], pair[1])).or_default() += 1.0;
            model.contexts[pair[0] as usize] += 1.0;
        }
        let mut best = f64::INFINITY;
        for smoothing in grid() {
            let loss = model.loss_with(dev, smoothing);
            if loss < best {
                best = loss;
                model.smoothing = smoothing;
            }
        }
        model
    }

    /// Mean −ln P in nats per token over all tokens but the first.
    pub fn loss_nats(&self, tokens: &[u32]) -> f64 {
        self.loss_with(tokens, self.smoothing)
    }

    fn loss_with(&self, tokens: &[u32], s: Smoothing) -> f64 {
        let nats: f64 = tokens
            .windows(2)
            .map(|pair| -self.probability(pair[0], pair[1], s).ln())
            .sum();
        nats / (tokens.len() - 1) as f64
    }

    fn probability(&self, a: u32, b: u32, s: Smoothing) -> f64 {
        let vocab = self.unigrams.len() as f64;
        let unigram = (self.unigrams[b as usize] + s.alpha) / (self.total + s.alpha * vocab);
        let context = self.contexts[a as usize];
        if context == 0.0 {
            return unigram;
        }
        let pair = self.pairs.get(&(a, b)).copied().unwrap_or(0.0);
        let weight = s.lambda * context / (context + s.kappa);
        weight * pair / context + (1.0 - weight) * unigram
    }
}

fn grid() -> impl Iterator<Item = Smoothing> {
    LAMBDAS.into_iter().flat_map(|lambda| {
        KAPPAS.into_iter().flat_map(move |kappa| {
            ALPHAS.into_iter().map(move |alpha| Smoothing {
                lambda,
                kappa,
                alpha,
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_every_context_sum_to_one() {
        let train = [0, 1, 2, 0, 1, 1, 2, 0, 3, 0, 1];
        let model = Bigram::fit(&train, &[0, 1, 2, 3], 6);
        for s in grid() {
            for a in 0..6 {
                let sum: f64 = (0..6).map(|b| model.probability(a, b, s)).sum();
                assert!((sum - 1.0).abs() < 1e-12, "context {a}, {s:?}: {sum}");
            }
        }
    }

    #[test]
    fn a_deterministic_cycle_is_learnt_and_noise_is_not() {
        let cycle: Vec<u32> = (0..4000).map(|i| i % 4).collect();
        assert!(Bigram::fit(&cycle, &cycle, 4).loss_nats(&cycle) < 0.01);
        let noise: Vec<u32> = (0..40_000u64)
            .map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32 % 4)
            .collect();
        let (seen, unseen) = noise.split_at(20_000);
        let loss = Bigram::fit(seen, unseen, 4).loss_nats(unseen);
        assert!((0.5..1.45).contains(&loss), "{loss}");
    }
}

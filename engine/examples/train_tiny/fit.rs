//! The training loop, the held-out loss and the sample.

use std::time::Instant;

use candle_core::backprop::GradStore;
use candle_core::{Device, Result, Tensor};
use candle_nn::ops;
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::bpe::END_OF_TEXT_ID;
use crate::muon::Muon;
use crate::net::{Dropout, Net, surprisal_nats};
use crate::windows::{Sampler, Windows, spans};

/// Window lengths: every `LONG_EVERY`-th step takes the long one, so that all positions are trained.
pub const SHORT_TOK: usize = 256;
pub const LONG_TOK: usize = 512;
pub const LONG_EVERY: usize = 4;
const EVAL_EVERY_STEPS: usize = 200;
/// First ChaCha stream of the dropout masks; 0 draws the weights, 1 the windows, 2 the sample.
const DROPOUT_STREAMS: u64 = 16;
const EVAL_BATCH: usize = 4;
const CLIP_NORM: f64 = 1.0;
/// Threads, each with an equal part of every step's windows. Part of the arithmetic, so not a setting.
pub const WORKERS: usize = 2;
/// Muon's rate for each unit of AdamW's (0.02 at 3e-3).
const MUON_RATE_RATIO: f64 = 0.02 / 3e-3;

pub struct Schedule {
    pub steps: usize,
    pub warmup_steps: usize,
    pub peak_rate: f64,
    pub final_share: f64,
}

impl Schedule {
    /// Linear warm-up, then half a cosine from the peak down to `final_share` of it.
    pub fn rate(&self, step: usize) -> f64 {
        if step < self.warmup_steps {
            return self.peak_rate * (step + 1) as f64 / self.warmup_steps as f64;
        }
        let rest = (self.steps - self.warmup_steps).max(1) as f64;
        let done = (step - self.warmup_steps) as f64 / rest;
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * done).cos());
        self.peak_rate * (self.final_share + (1.0 - self.final_share) * cosine)
    }
}

pub struct Recipe {
    pub schedule: Schedule,
    pub step_tok: usize,
    pub dropout: f64,
    pub weight_decay: f64,
    pub seed: u64,
}

/// What a run of [`train`] did; the best weights are those given to `keep` last.
pub struct Outcome {
    pub best_step: usize,
    pub best_dev_nats: f64,
    pub seconds: f64,
}

/// Trains `net` on `train`; hands it to `keep` at every new lowest dev loss.
pub fn train(
    net: &Net,
    train: &[u32],
    dev: &[u32],
    recipe: &Recipe,
    mut keep: impl FnMut(&Net) -> Result<()>,
) -> Result<Outcome> {
    let started = Instant::now();
    let mut rng = ChaCha8Rng::seed_from_u64(recipe.seed);
    rng.set_stream(1);
    let mut short = Sampler::new(train, SHORT_TOK);
    let mut long = Sampler::new(train, LONG_TOK);
    let (mut adam, mut muon) = optimizers(net, recipe)?;
    let mut best = Outcome {
        best_step: 0,
        best_dev_nats: f64::INFINITY,
        seconds: 0.0,
    };
    let mut seen_nats = 0.0;
    for step in 0..recipe.schedule.steps {
        let is_long = (step + 1).is_multiple_of(LONG_EVERY);
        let (sampler, window_tok) = match is_long {
            true => (&mut long, LONG_TOK),
            false => (&mut short, SHORT_TOK),
        };
        let batch = (recipe.step_tok / window_tok / WORKERS).max(1);
        let parts = (0..WORKERS)
            .map(|_| sampler.next(batch, &mut rng))
            .collect::<Result<Vec<_>>>()?;
        let (loss_nats, mut grads) = gradients(net, &parts, recipe, step)?;
        clip(net, &mut grads)?;
        let rate = recipe.schedule.rate(step);
        for optimizer in &mut adam {
            optimizer.set_learning_rate(rate);
            optimizer.step(&grads)?;
        }
        muon.step(&grads, rate * MUON_RATE_RATIO, WORKERS)?;
        seen_nats += loss_nats;
        let done = step + 1;
        if !done.is_multiple_of(EVAL_EVERY_STEPS) && done != recipe.schedule.steps {
            continue;
        }
        let since = (done - 1) % EVAL_EVERY_STEPS + 1;
        let dev_nats = held_out_nats(net, dev)?;
        println!(
            "step {done}: train {:.4}, dev {dev_nats:.4} nats/token, {:.0} s",
            seen_nats / since as f64,
            started.elapsed().as_secs_f64()
        );
        seen_nats = 0.0;
        if dev_nats < best.best_dev_nats {
            best.best_dev_nats = dev_nats;
            best.best_step = done;
            keep(net)?;
        }
    }
    best.seconds = started.elapsed().as_secs_f64();
    Ok(best)
}

/// AdamW for the embedding (with decay) and the norm weights (without), Muon for the other matrices.
fn optimizers(net: &Net, recipe: &Recipe) -> Result<([AdamW; 2], Muon)> {
    let (mut embedding, mut vectors, mut matrices) = (Vec::new(), Vec::new(), Vec::new());
    for (name, var) in &net.weights {
        let group = match var.rank() {
            1 => &mut vectors,
            _ if name.contains("embed") => &mut embedding,
            _ => &mut matrices,
        };
        group.push(var.clone());
    }
    let params = |weight_decay| ParamsAdamW {
        beta2: 0.99,
        weight_decay,
        ..ParamsAdamW::default()
    };
    let adam = [
        AdamW::new(embedding, params(recipe.weight_decay))?,
        AdamW::new(vectors, params(0.0))?,
    ];
    Ok((adam, Muon::new(matrices, recipe.weight_decay)?))
}

/// Mean loss in nats and the sum of gradients over `parts`, one thread each, added in order.
fn gradients(
    net: &Net,
    parts: &[Windows],
    recipe: &Recipe,
    step: usize,
) -> Result<(f64, GradStore)> {
    let one = |part: usize| -> Result<(f64, GradStore)> {
        let mut rng = ChaCha8Rng::seed_from_u64(recipe.seed);
        rng.set_stream(DROPOUT_STREAMS + (step * parts.len() + part) as u64);
        let dropout = Dropout {
            rate: recipe.dropout,
            rng: &mut rng,
        };
        let loss = (loss(net, &parts[part], dropout)? / parts.len() as f64)?;
        let grads = loss.backward()?;
        Ok((f64::from(loss.to_scalar::<f32>()?), grads))
    };
    let one = &one;
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parts.len())
            .map(|part| scope.spawn(move || one(part)))
            .collect();
        threads.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    let mut results = results.into_iter();
    let Some((mut loss_nats, mut sum)) = results.next() else {
        candle_core::bail!("a step needs windows");
    };
    for (nats, grads) in results {
        loss_nats += nats;
        for var in net.weights.values() {
            if let (Some(a), Some(b)) = (sum.get(var), grads.get(var)) {
                let added = (a + b)?;
                sum.insert(var, added);
            }
        }
    }
    Ok((loss_nats, sum))
}

/// The thread's result; its panic goes on in this thread.
pub fn join<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn loss(net: &Net, windows: &Windows, dropout: Dropout<'_>) -> Result<Tensor> {
    let logits = net.forward(&windows.inputs, Some(dropout))?;
    surprisal_nats(&logits, &windows.targets.flatten_all()?)?.mean_all()
}

/// Scales all gradients so that their joint Euclidean norm is at most `CLIP_NORM`.
fn clip(net: &Net, grads: &mut GradStore) -> Result<()> {
    let mut square = 0.0;
    for grad in net.weights.values().filter_map(|v| grads.get(v)) {
        square += f64::from(grad.sqr()?.sum_all()?.to_scalar::<f32>()?);
    }
    let norm = square.sqrt();
    if norm <= CLIP_NORM {
        return Ok(());
    }
    for var in net.weights.values() {
        if let Some(grad) = grads.remove(var) {
            grads.insert(var, (grad * (CLIP_NORM / norm))?);
        }
    }
    Ok(())
}

/// Mean −ln P, nats per token, over all tokens but the first, each with up to a long window of context.
pub fn held_out_nats(net: &Net, tokens: &[u32]) -> Result<f64> {
    let window_tok = net.config.max_position_embeddings;
    let mut nats = 0.0;
    let spans = spans(tokens.len(), window_tok);
    for group in spans.chunk_by(|a, b| a.len == b.len) {
        for batch in group.chunks(EVAL_BATCH) {
            let len = batch[0].len;
            let take = |shift: usize| -> Result<Tensor> {
                let ids: Vec<u32> = batch
                    .iter()
                    .flat_map(|s| &tokens[s.start + shift..][..len])
                    .copied()
                    .collect();
                Tensor::from_vec(ids, (batch.len(), len), &Device::Cpu)
            };
            let logits = net.forward(&take(0)?, None)?;
            let rows = surprisal_nats(&logits, &take(1)?.flatten_all()?)?;
            let rows = rows.to_vec1::<f32>()?;
            for (span, rows) in batch.iter().zip(rows.chunks(len)) {
                nats += rows[span.scored_from..]
                    .iter()
                    .map(|&x| f64::from(x))
                    .sum::<f64>();
            }
        }
    }
    Ok(nats / (tokens.len() - 1) as f64)
}

/// Draws `new_tok` tokens after `prompt` at a fixed temperature; prompt and draw must fit the context.
pub fn sample(
    net: &Net,
    prompt: &[u32],
    new_tok: usize,
    temperature: f64,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<u32>> {
    let mut tokens = vec![END_OF_TEXT_ID];
    tokens.extend_from_slice(prompt);
    for _ in 0..new_tok {
        let input = Tensor::from_slice(&tokens, (1, tokens.len()), &Device::Cpu)?;
        let logits = net.forward(&input, None)?.get(tokens.len() - 1)?;
        let weights = ops::softmax(&(logits / temperature)?, 0)?.to_vec1::<f32>()?;
        let mut left = rng.random::<f32>() * weights.iter().sum::<f32>();
        let drawn = weights.iter().position(|w| {
            left -= w;
            left < 0.0
        });
        tokens.push(drawn.unwrap_or(weights.len() - 1) as u32);
    }
    tokens.remove(0);
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tests::small;

    #[test]
    fn the_rate_warms_up_to_its_peak_and_ends_at_its_final_share() {
        let s = Schedule {
            steps: 1000,
            warmup_steps: 100,
            peak_rate: 2e-3,
            final_share: 0.1,
        };
        assert!((s.rate(0) - 2e-5).abs() < 1e-12);
        assert!((s.rate(99) - 2e-3).abs() < 1e-12);
        assert!((s.rate(1000) - 2e-4).abs() < 1e-12);
        assert!((100..999).all(|i| s.rate(i + 1) < s.rate(i)));
    }

    #[test]
    fn a_few_steps_learn_a_cycle_and_repeat_exactly() {
        let mut config = small();
        config.max_position_embeddings = LONG_TOK;
        let tokens: Vec<u32> = (0..2000).map(|i| 1 + i * i % 9).collect();
        let run = || {
            let net = Net::init(config.clone(), &mut ChaCha8Rng::seed_from_u64(5)).unwrap();
            let recipe = Recipe {
                schedule: Schedule {
                    steps: 30,
                    warmup_steps: 5,
                    peak_rate: 3e-3,
                    final_share: 0.1,
                },
                step_tok: 1024,
                dropout: 0.1,
                weight_decay: 0.1,
                seed: 5,
            };
            train(&net, &tokens, &tokens[..600], &recipe, |_| Ok(())).unwrap()
        };
        let first = run();
        assert!(first.best_dev_nats < 1.5, "{}", first.best_dev_nats);
        assert_eq!(first.best_dev_nats, run().best_dev_nats);
    }
}

//! Training windows in a deterministic shuffled order, and the sliding windows of an evaluation.

use candle_core::{Device, Result, Tensor};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::bpe::END_OF_TEXT_ID;

/// Windows of one length: each epoch cuts the text at a new offset and shuffles the pieces.
pub struct Sampler<'a> {
    tokens: &'a [u32],
    window_tok: usize,
    starts: Vec<usize>,
}

/// Inputs and next-token targets, both (batch, window).
pub struct Windows {
    pub inputs: Tensor,
    pub targets: Tensor,
}

impl<'a> Sampler<'a> {
    /// `tokens` must hold two windows and one token at least.
    pub fn new(tokens: &'a [u32], window_tok: usize) -> Self {
        assert!(
            tokens.len() > 2 * window_tok,
            "{} tokens, need more than {}",
            tokens.len(),
            2 * window_tok
        );
        Self {
            tokens,
            window_tok,
            starts: Vec::new(),
        }
    }

    /// The next `batch` windows. Every other one, by chance, opens with the end-of-text token in place of its first.
    pub fn next(&mut self, batch: usize, rng: &mut ChaCha8Rng) -> Result<Windows> {
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for _ in 0..batch {
            let start = self.next_start(rng);
            let at = inputs.len();
            inputs.extend_from_slice(&self.tokens[start..][..self.window_tok]);
            targets.extend_from_slice(&self.tokens[start + 1..][..self.window_tok]);
            if rng.random_bool(0.5) {
                inputs[at] = END_OF_TEXT_ID;
            }
        }
        let shape = (batch, self.window_tok);
        Ok(Windows {
            inputs: Tensor::from_vec(inputs, shape, &Device::Cpu)?,
            targets: Tensor::from_vec(targets, shape, &Device::Cpu)?,
        })
    }

    fn next_start(&mut self, rng: &mut ChaCha8Rng) -> usize {
        loop {
            if let Some(start) = self.starts.pop() {
                return start;
            }
            let offset = rng.random_range(0..self.window_tok);
            let last = self.tokens.len() - self.window_tok;
            self.starts = (offset..last).step_by(self.window_tok).collect();
            self.starts.shuffle(rng);
        }
    }
}

/// One evaluation window: positions `start..start + len` of the input, scored from `scored_from` on.
#[derive(Debug, PartialEq)]
pub struct Span {
    pub start: usize,
    pub len: usize,
    pub scored_from: usize,
}

/// Windows of at most `window_tok` that score each target of `count` tokens (all but the first) exactly once,
/// each with at least half a window of context wherever the text has it.
pub fn spans(count: usize, window_tok: usize) -> Vec<Span> {
    let stride = window_tok / 2;
    let inputs = count - 1;
    let mut spans = Vec::new();
    let mut scored = 0;
    while scored < inputs {
        let start = if scored == 0 { 0 } else { scored - stride };
        let len = window_tok.min(inputs - start);
        spans.push(Span {
            start,
            len,
            scored_from: scored - start,
        });
        scored = start + len;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn every_target_is_scored_once_with_half_a_window_of_context() {
        for count in [2, 9, 10, 31, 64, 65] {
            let mut times = vec![0; count - 1];
            for span in spans(count, 16) {
                assert!(span.start + span.len < count && span.len <= 16);
                assert!(span.start == 0 || span.scored_from == 8);
                for i in span.scored_from..span.len {
                    times[span.start + i] += 1;
                }
            }
            assert!(times.iter().all(|&n| n == 1), "{count}: {times:?}");
        }
    }

    #[test]
    fn an_epoch_covers_the_text_and_targets_follow_inputs() {
        let tokens: Vec<u32> = (1..=1000).collect();
        let mut sampler = Sampler::new(&tokens, 10);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut seen = vec![false; 1001];
        for _ in 0..99 {
            let w = sampler.next(1, &mut rng).unwrap();
            let inputs = w.inputs.to_vec2::<u32>().unwrap().remove(0);
            let targets = w.targets.to_vec2::<u32>().unwrap().remove(0);
            assert_eq!(inputs[1..], targets[..9]);
            assert!(inputs[0] == END_OF_TEXT_ID || inputs[0] + 1 == targets[0]);
            targets.iter().for_each(|&t| seen[t as usize] = true);
        }
        assert!(seen.iter().filter(|&&s| s).count() >= 980);
    }
}

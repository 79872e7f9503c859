//! Exponential average and extra delay on the way from the sensor to a law.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Memory of the filter of one sequence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilterState {
    ema_nats: Option<f64>,
    waiting: VecDeque<(f64, f64)>,
}

impl FilterState {
    /// Passes entropy `h_nats` with varentropy `v` through m' = b m + (1 − b) H (primed with the first H), then
    /// through a delay line of `delay_tok` tokens. `None` until the line is full: the law then holds.
    pub fn push(&mut self, h_nats: f64, v: f64, b: f64, delay_tok: usize) -> Option<(f64, f64)> {
        let smooth_nats = match self.ema_nats {
            Some(m) if b > 0.0 => b * m + (1.0 - b) * h_nats,
            _ => h_nats,
        };
        if b > 0.0 {
            self.ema_nats = Some(smooth_nats);
        }
        if delay_tok == 0 {
            return Some((smooth_nats, v));
        }
        self.waiting.push_back((smooth_nats, v));
        if self.waiting.len() > delay_tok {
            self.waiting.pop_front()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_of_two_tokens_returns_the_sample_from_two_tokens_ago() {
        let mut filter = FilterState::default();
        let out: Vec<_> = (0..5)
            .map(|i| filter.push(f64::from(i), 1.0, 0.0, 2).map(|(h, _)| h))
            .collect();
        assert_eq!(out, [None, None, Some(0.0), Some(1.0), Some(2.0)]);
    }

    #[test]
    fn the_average_starts_at_the_first_sample_and_closes_a_step_geometrically() {
        let mut filter = FilterState::default();
        assert_eq!(filter.push(1.0, 0.0, 0.5, 0), Some((1.0, 0.0)));
        assert_eq!(filter.push(3.0, 0.0, 0.5, 0), Some((2.0, 0.0)));
        assert_eq!(filter.push(3.0, 0.0, 0.5, 0), Some((2.5, 0.0)));
    }
}

//! Text from the engine, token by token, under any temperature law.

use etime_control::config::{Control, Limits, Priority, Pruning, Sensor};
use etime_control::driver::{self, Clock, Job, RunError};
use etime_control::law::TemperatureLaw;
use etime_control::plant::Plant;
use etime_control::serve::Request;
use etime_control::trajectory::Sample;

/// One text to write.
#[derive(Clone, Debug)]
pub struct Ask {
    pub law: TemperatureLaw,
    pub seed: u64,
    pub prompt: Vec<u32>,
    /// Tokens at most.
    pub new_tok: usize,
    /// Tokens that end the text.
    pub stop: Vec<u32>,
}

/// Token slots per KV block of a text that is written alone.
pub const BLOCK_TOK: usize = 16;

/// What one text of `len_tok` tokens needs of an engine.
pub fn limits(len_tok: usize) -> Limits {
    Limits {
        block_tok: BLOCK_TOK,
        ..Limits::roomy(1, len_tok)
    }
}

/// Writes one text; `heard` gets each row as its token is drawn.
pub fn generate<P: Plant + ?Sized>(
    plant: &mut P,
    ask: &Ask,
    heard: &mut dyn FnMut(&Sample),
) -> Result<(), RunError> {
    let control = Control {
        temperature: ask.law.clone(),
        pruning: Pruning::Dense,
        priority: Priority::Fcfs,
        sensor: Sensor::Exact,
        h_min_nats: 0.0,
    };
    let requests = [Request {
        id: 0,
        prompt: ask.prompt.clone(),
        new_tok: ask.new_tok,
        stop: ask.stop.clone(),
        forced: Vec::new(),
    }];
    let job = Job {
        control: &control,
        limits: limits(ask.prompt.len() + ask.new_tok),
        clock: Clock::Steps,
        seed: ask.seed,
        requests: &requests,
    };
    driver::run(plant, &job, &mut |progress| {
        progress.fresh.iter().for_each(&mut *heard)
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etime_sim::{Fixed, Logits};

    fn texts(seed: u64, stop: Vec<u32>) -> Vec<u32> {
        let mut plant = Fixed::new(&Logits::Zipf {
            vocab: 8,
            exponent: 1.0,
        })
        .unwrap();
        let ask = Ask {
            law: TemperatureLaw::Fixed { t: 1.0 },
            seed,
            prompt: vec![0; 40],
            new_tok: 30,
            stop,
        };
        let mut tokens = Vec::new();
        generate(&mut plant, &ask, &mut |sample| tokens.push(sample.token)).unwrap();
        tokens
    }

    #[test]
    fn a_text_depends_on_its_seed_and_ends_at_a_stop_token() {
        let text = texts(1, vec![]);
        assert_eq!(text.len(), 30);
        assert_eq!(text, texts(1, vec![]));
        assert_ne!(text, texts(2, vec![]));
        let stop = text[10];
        let end = text.iter().position(|&token| token == stop).unwrap();
        assert_eq!(texts(1, vec![stop]), text[..=end]);
    }
}

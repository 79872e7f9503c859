//! Prefill and decode, beside the time that reading the weights takes.

use super::{best_s, read_bytes_per_s};
use etime_control::config::Limits;
use etime_control::draw::{DrawKey, LogitShape, Pick};
use etime_control::plant::{Batch, DrawAsk, Plant, PlantError, Row, ThermalAsk, Work};
use etime_control::sensor::Thermal;
use serde::Serialize;
use std::time::Instant;

/// Decoding at one batch size, seconds per step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DecodeRow {
    pub batch: usize,
    /// Of the forward pass.
    pub forward_s: f64,
    /// Of entropy and varentropy at the temperature of the draw and at T = 1.
    pub sensor_s: f64,
    /// Of the draws.
    pub draw_s: f64,
    /// Tokens per second of the forward pass alone.
    pub tok_per_s: f64,
    /// Tokens per second if reading the weights once a step were all the work.
    pub limit_tok_per_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineSpeed {
    pub prefill_tok: usize,
    pub prefill_tok_per_s: f64,
    /// Tokens of context that decoding starts from.
    pub context_tok: usize,
    pub decode: Vec<DecodeRow>,
    pub weight_bytes: u64,
    /// Read bandwidth of all threads, measured in the same run.
    pub read_bytes_per_s: f64,
}

/// What to time.
#[derive(Clone, Debug)]
pub struct EngineAsk {
    pub prefill_tok: usize,
    /// Tokens of context that decoding starts from.
    pub context_tok: usize,
    pub decode_steps: usize,
    pub batches: Vec<usize>,
    pub weight_bytes: u64,
    pub vocab: usize,
    pub threads: usize,
}

/// Token slots per KV block while timing.
const BLOCK_TOK: usize = 16;
/// Log-temperature of the timed draws.
const U: f64 = 0.1;

impl EngineAsk {
    /// The pool that the timing needs.
    pub fn limits(&self) -> Limits {
        let most = self.batches.iter().copied().max().unwrap_or(1);
        Limits {
            block_tok: BLOCK_TOK,
            kv_blocks: most * self.blocks_per_seq(),
            max_seqs: most,
            max_batched_tok: self.prefill_tok.max(most),
        }
    }

    fn blocks_per_seq(&self) -> usize {
        let decoded_tok = self.context_tok + self.decode_steps;
        self.prefill_tok.max(decoded_tok).div_ceil(BLOCK_TOK)
    }

    fn work(&self, seq: usize, start_tok: usize, tokens: usize) -> Work {
        let used = (start_tok + tokens).div_ceil(BLOCK_TOK);
        let first = seq * self.blocks_per_seq();
        Work {
            request: seq as u64,
            tokens: (0..tokens)
                .map(|i| ((start_tok + i) * 31 % self.vocab) as u32)
                .collect(),
            start_tok,
            blocks: (first..first + used).map(|block| block as u32).collect(),
            wants_logits: true,
        }
    }
}

/// Times prefill of one prompt, then decode steps with sensor and draw at each batch size.
pub fn engine<P: Plant + ?Sized>(
    plant: &mut P,
    ask: &EngineAsk,
) -> Result<EngineSpeed, PlantError> {
    let prefill = Batch {
        works: vec![ask.work(0, 0, ask.prefill_tok)],
    };
    let mut failed = None;
    let prefill_s = best_s(|| failed = failed.take().or(plant.forward(&prefill).err()));
    if let Some(error) = failed {
        return Err(error);
    }
    let read_bytes_per_s = read_bytes_per_s(ask.threads);
    let mut decode = Vec::new();
    for &batch in &ask.batches {
        let mut row = decode_row(plant, ask, batch)?;
        row.limit_tok_per_s = batch as f64 * read_bytes_per_s / ask.weight_bytes as f64;
        decode.push(row);
    }
    Ok(EngineSpeed {
        prefill_tok: ask.prefill_tok,
        prefill_tok_per_s: ask.prefill_tok as f64 / prefill_s,
        context_tok: ask.context_tok,
        decode,
        weight_bytes: ask.weight_bytes,
        read_bytes_per_s,
    })
}

fn decode_row<P: Plant + ?Sized>(
    plant: &mut P,
    ask: &EngineAsk,
    batch: usize,
) -> Result<DecodeRow, PlantError> {
    for seq in 0..batch {
        plant.forward(&Batch {
            works: vec![ask.work(seq, 0, ask.context_tok)],
        })?;
    }
    let question = |row, u| ThermalAsk {
        row: Row(row),
        u,
        top_k: None,
    };
    let asks: Vec<ThermalAsk> = (0..batch)
        .flat_map(|row| [U, 0.0].map(|u| question(row, u)))
        .collect();
    let draws: Vec<DrawAsk> = (0..batch)
        .map(|row| DrawAsk {
            row: Row(row),
            shape: LogitShape::Temperature { u: U },
            pick: Pick::Key(DrawKey {
                seed: 0,
                request: row as u64,
                token: 0,
            }),
        })
        .collect();
    let mut out = vec![Thermal::default(); asks.len()];
    let mut spent_s = [0.0; 3];
    for step in 0..ask.decode_steps {
        let works = (0..batch).map(|seq| ask.work(seq, ask.context_tok + step, 1));
        let works = works.collect();
        let start = Instant::now();
        plant.forward(&Batch { works })?;
        let computed = Instant::now();
        plant.thermal(&asks, &mut out)?;
        let measured = Instant::now();
        plant.draw(&draws)?;
        let drawn = Instant::now();
        for (spent_s, part) in
            spent_s
                .iter_mut()
                .zip([computed - start, measured - computed, drawn - measured])
        {
            *spent_s += part.as_secs_f64();
        }
    }
    let [forward_s, sensor_s, draw_s] = spent_s.map(|s| s / ask.decode_steps as f64);
    Ok(DecodeRow {
        batch,
        forward_s,
        sensor_s,
        draw_s,
        tok_per_s: batch as f64 / forward_s,
        limit_tok_per_s: 0.0,
    })
}

impl EngineSpeed {
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "prefill of {} tokens: {:.0} tok/s\ndecode from {} tokens of context:\n{:>6} {:>8} {:>20} {:>10} {:>10}\n",
            self.prefill_tok,
            self.prefill_tok_per_s,
            self.context_tok,
            "batch",
            "tok/s",
            "of the memory limit",
            "sensor",
            "draw"
        );
        for row in &self.decode {
            let share = |s: f64| format!("{:.1} %", 100.0 * s / row.forward_s);
            text += &format!(
                "{:>6} {:>8.1} {:>20} {:>10} {:>10}\n",
                row.batch,
                row.tok_per_s,
                format!("{:.0} %", 100.0 * row.tok_per_s / row.limit_tok_per_s),
                share(row.sensor_s),
                share(row.draw_s),
            );
        }
        if self
            .decode
            .iter()
            .any(|row| row.tok_per_s > row.limit_tok_per_s)
        {
            text += "above 100 %: weights this small stay in the cache\n";
        }
        text + &format!(
            "sensor and draw as shares of the forward pass; weights {:.1} MB, memory read {:.2} GB/s\n",
            self.weight_bytes as f64 / 1e6,
            self.read_bytes_per_s / 1e9
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etime_sim::{Fixed, Logits};

    #[test]
    fn an_engine_is_timed_at_each_batch_size_within_the_limits_it_asked_for() {
        let mut plant = Fixed::new(&Logits::Zipf {
            vocab: 10,
            exponent: 1.0,
        })
        .unwrap();
        let ask = EngineAsk {
            prefill_tok: 20,
            context_tok: 30,
            decode_steps: 13,
            batches: vec![1, 3],
            weight_bytes: 1000,
            vocab: 10,
            threads: 1,
        };
        let blocks = ask.limits().kv_blocks as u32;
        let last = ask.work(2, 42, 1);
        assert!(last.blocks.iter().all(|&block| block < blocks));
        let speed = engine(&mut plant, &ask).unwrap();
        let batches: Vec<usize> = speed.decode.iter().map(|row| row.batch).collect();
        assert_eq!(batches, [1, 3]);
        for row in speed.decode {
            assert!(row.tok_per_s > 0.0 && row.limit_tok_per_s > 0.0);
            assert!(row.forward_s > 0.0 && row.sensor_s > 0.0 && row.draw_s > 0.0);
        }
    }
}

//! How fast, beside the limit of the machine measured in the same run.

use etime_control::config::Limits;
use etime_control::plant::{Batch, Plant, PlantError, Row, ThermalAsk, Work};
use etime_control::sensor::{SensorError, Thermal, thermal};
use serde::Serialize;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Least time that a figure is measured over.
const LEAST: Duration = Duration::from_millis(200);
/// Larger than any cache of a desktop processor.
const READ_BYTES: usize = 256 << 20;

/// Seconds per call: the least of several repetitions, which is what the machine can do.
fn best_s(mut call: impl FnMut()) -> f64 {
    call();
    let start = Instant::now();
    let mut best = f64::INFINITY;
    let mut calls = 0;
    while start.elapsed() < LEAST || calls < 3 {
        let before = Instant::now();
        call();
        best = best.min(before.elapsed().as_secs_f64());
        calls += 1;
    }
    best
}

/// Read bandwidth of the memory, bytes per second, with `threads` threads.
pub fn read_bytes_per_s(threads: usize) -> f64 {
    let threads = threads.max(1);
    let memory = vec![1u64; READ_BYTES / 8];
    let seconds = best_s(|| {
        std::thread::scope(|scope| {
            for part in memory.chunks(memory.len().div_ceil(threads)) {
                scope.spawn(move || black_box(sum(part)));
            }
        });
    });
    READ_BYTES as f64 / seconds
}

/// Eight sums side by side, so that memory and not the additions limits the speed.
fn sum(part: &[u64]) -> u64 {
    let mut lanes = [0u64; 8];
    for chunk in part.chunks_exact(8) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = lane.wrapping_add(*value);
        }
    }
    lanes.iter().fold(0, |a, &b| a.wrapping_add(b))
}

/// One vocabulary size of [`SensorSpeed`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SensorRow {
    pub vocab: usize,
    /// Entropy and varentropy of one row, one thread.
    pub ns_per_logit: f64,
    /// F32 logits read per second.
    pub bytes_per_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SensorSpeed {
    pub rows: Vec<SensorRow>,
    /// Read bandwidth of one thread, measured in the same run.
    pub read_bytes_per_s: f64,
}

/// Times the exact sensor on rows of several vocabulary sizes.
pub fn sensor(vocabs: &[usize]) -> Result<SensorSpeed, SensorError> {
    let mut rows = Vec::new();
    for &vocab in vocabs {
        let logits: Vec<f32> = (0..vocab)
            .map(|i| ((i * 7919) % 1000) as f32 * 0.01 - 5.0)
            .collect();
        thermal(&logits, 0.1, None)?;
        let seconds = best_s(|| {
            // Checked above on the same row.
            let _ = black_box(thermal(black_box(&logits), 0.1, None));
        });
        rows.push(SensorRow {
            vocab,
            ns_per_logit: 1e9 * seconds / vocab as f64,
            bytes_per_s: (size_of::<f32>() * vocab) as f64 / seconds,
        });
    }
    Ok(SensorSpeed {
        rows,
        read_bytes_per_s: read_bytes_per_s(1),
    })
}

/// Decoding at one batch size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DecodeRow {
    pub batch: usize,
    pub tok_per_s: f64,
    /// Tokens per second if reading the weights once a step were all the work.
    pub limit_tok_per_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineSpeed {
    pub prefill_tok: usize,
    pub prefill_tok_per_s: f64,
    pub decode: Vec<DecodeRow>,
    pub weight_bytes: u64,
    /// Read bandwidth of all threads, measured in the same run.
    pub read_bytes_per_s: f64,
}

/// What to time.
#[derive(Clone, Debug)]
pub struct EngineAsk {
    pub prefill_tok: usize,
    pub decode_steps: usize,
    pub batches: Vec<usize>,
    pub weight_bytes: u64,
    pub vocab: usize,
    pub threads: usize,
}

/// Token slots per KV block while timing.
const BLOCK_TOK: usize = 16;

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
        (self.prefill_tok + self.decode_steps).div_ceil(BLOCK_TOK)
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

/// Times prefill of one prompt, then decode steps with the sensor at each batch size.
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
        let seconds = decode_s(plant, ask, batch)?;
        decode.push(DecodeRow {
            batch,
            tok_per_s: (batch * ask.decode_steps) as f64 / seconds,
            limit_tok_per_s: batch as f64 * read_bytes_per_s / ask.weight_bytes as f64,
        });
    }
    Ok(EngineSpeed {
        prefill_tok: ask.prefill_tok,
        prefill_tok_per_s: ask.prefill_tok as f64 / prefill_s,
        decode,
        weight_bytes: ask.weight_bytes,
        read_bytes_per_s,
    })
}

/// Seconds of all decode steps of a batch: forward, and entropy at two temperatures as a law asks for.
fn decode_s<P: Plant + ?Sized>(
    plant: &mut P,
    ask: &EngineAsk,
    batch: usize,
) -> Result<f64, PlantError> {
    for seq in 0..batch {
        plant.forward(&Batch {
            works: vec![ask.work(seq, 0, ask.prefill_tok)],
        })?;
    }
    let asks: Vec<ThermalAsk> = (0..batch)
        .flat_map(|row| {
            [0.1, 0.0].map(|u| ThermalAsk {
                row: Row(row),
                u,
                top_k: None,
            })
        })
        .collect();
    let mut out = vec![Thermal::default(); asks.len()];
    let start = Instant::now();
    for step in 0..ask.decode_steps {
        let works = (0..batch).map(|seq| ask.work(seq, ask.prefill_tok + step, 1));
        plant.forward(&Batch {
            works: works.collect(),
        })?;
        plant.thermal(&asks, &mut out)?;
    }
    Ok(start.elapsed().as_secs_f64())
}

impl SensorSpeed {
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{:>10} {:>14} {:>10}\n",
            "vocabulary", "ns per logit", "GB/s"
        );
        for row in &self.rows {
            text += &format!(
                "{:>10} {:>14.3} {:>10.2}\n",
                row.vocab,
                row.ns_per_logit,
                row.bytes_per_s / 1e9
            );
        }
        text + &format!(
            "memory read, one thread: {:.2} GB/s\n",
            self.read_bytes_per_s / 1e9
        )
    }
}

impl EngineSpeed {
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "prefill of {} tokens: {:.0} tok/s\n{:>6} {:>14} {:>18}\n",
            self.prefill_tok, self.prefill_tok_per_s, "batch", "decode tok/s", "memory limit tok/s"
        );
        for row in &self.decode {
            text += &format!(
                "{:>6} {:>14.0} {:>18.0}\n",
                row.batch, row.tok_per_s, row.limit_tok_per_s
            );
        }
        text + &format!(
            "weights {:.1} MB, memory read {:.2} GB/s\n",
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
    fn every_figure_is_measured_and_positive() {
        let speed = sensor(&[100, 1000]).unwrap();
        assert_eq!(speed.rows.len(), 2);
        assert!(speed.rows.iter().all(|row| row.ns_per_logit > 0.0));
        assert!(speed.read_bytes_per_s > 1e6);
        assert!(sensor(&[0]).is_err());
    }

    #[test]
    fn an_engine_is_timed_at_each_batch_size_within_the_limits_it_asked_for() {
        let mut plant = Fixed::new(&Logits::Zipf {
            vocab: 10,
            exponent: 1.0,
        })
        .unwrap();
        let ask = EngineAsk {
            prefill_tok: 20,
            decode_steps: 13,
            batches: vec![1, 3],
            weight_bytes: 1000,
            vocab: 10,
            threads: 1,
        };
        let blocks = ask.limits().kv_blocks as u32;
        assert!(
            ask.work(2, 32, 1)
                .blocks
                .iter()
                .all(|&block| block < blocks)
        );
        let speed = engine(&mut plant, &ask).unwrap();
        let batches: Vec<usize> = speed.decode.iter().map(|row| row.batch).collect();
        assert_eq!(batches, [1, 3]);
        assert!(
            speed
                .decode
                .iter()
                .all(|row| row.tok_per_s > 0.0 && row.limit_tok_per_s > 0.0)
        );
    }
}

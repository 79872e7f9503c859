//! How fast, beside the limit of the machine measured in the same run.

mod engine;
mod sensor;

pub use engine::{DecodeRow, EngineAsk, EngineSpeed, engine};
pub use sensor::{SensorRow, SensorSpeed, sensor};

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

//! The exact sensor, per logit.

use super::{best_s, read_bytes_per_s};
use etime_control::sensor::{SensorError, thermal};
use serde::Serialize;
use std::hint::black_box;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_measured_and_positive() {
        let speed = sensor(&[100, 1000]).unwrap();
        assert_eq!(speed.rows.len(), 2);
        assert!(speed.rows.iter().all(|row| row.ns_per_logit > 0.0));
        assert!(speed.read_bytes_per_s > 1e6);
        assert!(sensor(&[0]).is_err());
    }
}

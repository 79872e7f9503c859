//! Q6_K: 256 elements in 16 groups of 16, each with a signed 8-bit scale.
//!
//! 128 bytes of lower four bits, 64 bytes of upper two bits, 16 scales, f16 d: x = d · scale · (q − 32).

use super::half::scale;

/// Elements that share 64 + 32 bytes.
const HALF: usize = 128;
const RUN: usize = 32;

pub(super) fn q6_k(block: &[u8], out: &mut [f32]) {
    let (low, rest) = block.split_at(128);
    let (high, rest) = rest.split_at(64);
    let (scales, d) = rest.split_at(16);
    let d = scale(d);
    for half in 0..2 {
        let (low, high) = (&low[64 * half..][..64], &high[32 * half..][..32]);
        for run in 0..4 {
            let out = &mut out[half * HALF + run * RUN..][..RUN];
            // Runs 0 and 1 take the lower halves of the 64 bytes, runs 2 and 3 the upper ones.
            let low = &low[run % 2 * RUN..][..RUN];
            for (l, x) in out.iter_mut().enumerate() {
                let q = low[l] >> (run / 2 * 4) & 15 | (high[l] >> (2 * run) & 3) << 4;
                let s = scales[half * 8 + run * 2 + l / 16] as i8;
                *x = d * f32::from(s) * f32::from(i16::from(q) - 32);
            }
        }
    }
}

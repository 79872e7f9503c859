//! Q4_K and Q5_K: 256 elements in 8 groups of 32, each with a 6-bit scale and a 6-bit minimum.
//!
//! f16 d, f16 d_min, 12 bytes of scales and minima, (Q5_K: 32 bytes of fifth bits,) 128 bytes of quants:
//! x = (d · scale) · q − (d_min · minimum).

use super::half::scale;

const GROUP: usize = 32;
const PAIRS: usize = 4;

pub(super) fn q4_k(block: &[u8], out: &mut [f32]) {
    let (scales, quants) = (&block[4..16], &block[16..]);
    for pair in 0..PAIRS {
        let bytes = &quants[pair * GROUP..][..GROUP];
        for (half, group) in [(0, 2 * pair), (1, 2 * pair + 1)] {
            let (d, m) = stretch(block, scales, group);
            let out = &mut out[group * GROUP..][..GROUP];
            for (x, q) in out.iter_mut().zip(bytes) {
                *x = d * f32::from(q >> (4 * half) & 15) - m;
            }
        }
    }
}

pub(super) fn q5_k(block: &[u8], out: &mut [f32]) {
    let (scales, fifth, quants) = (&block[4..16], &block[16..48], &block[48..]);
    for pair in 0..PAIRS {
        let bytes = &quants[pair * GROUP..][..GROUP];
        for (half, group) in [(0, 2 * pair), (1, 2 * pair + 1)] {
            let (d, m) = stretch(block, scales, group);
            let out = &mut out[group * GROUP..][..GROUP];
            for ((x, q), bits) in out.iter_mut().zip(bytes).zip(fifth) {
                let q = q >> (4 * half) & 15 | (bits >> group & 1) << 4;
                *x = d * f32::from(q) - m;
            }
        }
    }
}

/// Scale and minimum of a group, in F32.
fn stretch(block: &[u8], scales: &[u8], group: usize) -> (f32, f32) {
    let (d, d_min) = (scale(block), scale(&block[2..]));
    let (s, m) = six_bits(scales, group);
    (d * f32::from(s), d_min * f32::from(m))
}

/// Groups 0 to 3 lie in the lower six bits of bytes 0 to 3 (scales) and 4 to 7 (minima); groups 4 to 7 have their lower
/// four bits in bytes 8 to 11 and their upper two in what the others leave.
fn six_bits(scales: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        return (scales[group] & 63, scales[group + 4] & 63);
    }
    let low = scales[group + 4];
    let (s, m) = (scales[group - 4] >> 6, scales[group] >> 6);
    (low & 15 | s << 4, low >> 4 | m << 4)
}

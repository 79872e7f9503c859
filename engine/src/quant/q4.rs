//! Q4_0 and Q4_1: 32 elements of 4 bits; element j is the lower half of byte j, element j + 16 its upper half.

use super::half::scale;

const HALF: usize = 16;

/// f16 scale d, 16 bytes: x = (q − 8) · d.
pub(super) fn q4_0(block: &[u8], out: &mut [f32]) {
    let (d, quants) = (scale(block), &block[2..]);
    let (low, high) = out.split_at_mut(HALF);
    for ((low, high), &q) in low.iter_mut().zip(high).zip(quants) {
        *low = f32::from(i16::from(q & 15) - 8) * d;
        *high = f32::from(i16::from(q >> 4) - 8) * d;
    }
}

/// f16 scale d, f16 minimum m, 16 bytes: x = q · d + m.
pub(super) fn q4_1(block: &[u8], out: &mut [f32]) {
    let (d, m, quants) = (scale(block), scale(&block[2..]), &block[4..]);
    let (low, high) = out.split_at_mut(HALF);
    for ((low, high), &q) in low.iter_mut().zip(high).zip(quants) {
        *low = f32::from(q & 15) * d + m;
        *high = f32::from(q >> 4) * d + m;
    }
}

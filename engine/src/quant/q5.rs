//! Q5_0 and Q5_1: as Q4_0 and Q4_1, with a fifth bit per element in a u32 before the bytes, bit j for element j.

use super::half::scale;

const HALF: usize = 16;

/// f16 scale d, u32, 16 bytes: x = (q − 16) · d.
pub(super) fn q5_0(block: &[u8], out: &mut [f32]) {
    let d = scale(block);
    each(&block[2..], out, |q| f32::from(i16::from(q) - 16) * d);
}

/// f16 scale d, f16 minimum m, u32, 16 bytes: x = q · d + m.
pub(super) fn q5_1(block: &[u8], out: &mut [f32]) {
    let (d, m) = (scale(block), scale(&block[2..]));
    each(&block[4..], out, |q| f32::from(q) * d + m);
}

fn each(bytes: &[u8], out: &mut [f32], value: impl Fn(u8) -> f32) {
    let fifth = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let bit = |element: usize| ((fifth >> element & 1) << 4) as u8;
    for (j, &q) in bytes[4..].iter().enumerate() {
        out[j] = value(q & 15 | bit(j));
        out[j + HALF] = value(q >> 4 | bit(j + HALF));
    }
}

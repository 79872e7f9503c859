//! Q8_0: blocks of 34 bytes, an f16 scale d and 32 signed bytes, x = q · d.

use etime_kernels::cpu::{
    Q8_BLOCK as Q8_0_ELEMENTS, Q8_BLOCK_BYTES as Q8_0_BYTES, f16_to_f32, f32_to_f16,
};

use super::half::scale;

const MAX_QUANT: f32 = 127.0;

pub(super) fn q8_0(block: &[u8], out: &mut [f32]) {
    let d = scale(block);
    for (x, &q) in out.iter_mut().zip(&block[2..]) {
        *x = f32::from(q as i8) * d;
    }
}

/// The scale of a block.
pub(crate) fn scale_of(block: &[u8; Q8_0_BYTES]) -> f32 {
    scale(block)
}

/// The elements of whole blocks.
pub(crate) fn q8_0_row(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.chunks_exact(Q8_0_BYTES);
    for (block, out) in blocks.zip(out.chunks_exact_mut(Q8_0_ELEMENTS)) {
        q8_0(block, out);
    }
}

/// Whole blocks of 32 elements as Q8_0; a rest of fewer is left out.
///
/// The scale is max|x|/127 rounded to f16, the bytes x over that rounded scale, halves away from zero. The error of an
/// element is at most half a scale, where the scale is a normal f16 (max|x| from 0.0078 to 8.3 million). Below, the scale
/// itself is coarse and the error at most half a scale + 127 · 2^−25. Above, it is infinite, which readers must refuse.
pub fn quantise_q8_0(elements: &[f32]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(elements.len() / Q8_0_ELEMENTS * Q8_0_BYTES);
    append(elements, &mut packed);
    packed
}

pub(super) fn append(elements: &[f32], packed: &mut Vec<u8>) {
    for block in elements.as_chunks::<Q8_0_ELEMENTS>().0 {
        // A NaN must reach the scale: `max` would drop it.
        let largest = block.iter().fold(0.0_f32, |m, x| match x.abs() {
            x if x > m || x.is_nan() => x,
            _ => m,
        });
        let bits = f32_to_f16(largest / MAX_QUANT);
        let d = f16_to_f32(bits);
        packed.extend(bits.to_le_bytes());
        packed.extend(block.iter().map(|&x| match d > 0.0 {
            true => (x / d).round().clamp(-MAX_QUANT, MAX_QUANT) as i8 as u8,
            false => 0,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero_and_the_largest_element_is_127() {
        let mut block = [0.0; 32];
        block[..6].copy_from_slice(&[127.0, 0.5, -0.5, 1.5, -126.5, 0.49]);
        let packed = quantise_q8_0(&block);
        assert_eq!(packed.len(), Q8_0_BYTES);
        assert_eq!(packed[..2], 0x3c00_u16.to_le_bytes());
        let quants: Vec<i8> = packed[2..8].iter().map(|&q| q as i8).collect();
        assert_eq!(quants, [127, 1, -1, 2, -127, 0]);
    }

    #[test]
    fn a_block_of_zeros_stays_zero_and_what_is_not_finite_shows_in_the_scale() {
        assert!(quantise_q8_0(&[0.0; 32]).iter().all(|&byte| byte == 0));
        for bad in [f32::NAN, f32::INFINITY, 1e7] {
            let mut block = [1.0; 32];
            block[7] = bad;
            assert!(!scale(&quantise_q8_0(&block)).is_finite(), "{bad}");
        }
    }
}

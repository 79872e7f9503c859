//! F32, F16 and BF16: a block is one element.

pub(super) fn f32(bytes: &[u8], out: &mut [f32]) {
    for (x, &bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *x = f32::from_le_bytes(bytes);
    }
}

pub(super) fn f16(bytes: &[u8], out: &mut [f32]) {
    for (x, &bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *x = f16_to_f32(u16::from_le_bytes(bytes));
    }
}

pub(super) fn bf16(bytes: &[u8], out: &mut [f32]) {
    for (x, &bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *x = bf16_to_f32(u16::from_le_bytes(bytes));
    }
}

/// The half-precision number at the beginning of a block.
pub(super) fn scale(bytes: &[u8]) -> f32 {
    f16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// Exact: the upper half of an F32.
fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Exact: every half-precision number is an F32.
pub fn f16_to_f32(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let sign = (bits & 0x8000) << 16;
    let (exponent, fraction) = (bits >> 10 & 0x1f, bits & 0x3ff);
    let magnitude = match exponent {
        // Subnormal: fraction × 2^−24.
        0 => (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits(),
        0x1f => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// The nearest half-precision number, ties to even; infinity from 65,520 on.
pub fn f32_to_f16(x: f32) -> u16 {
    const SUBNORMAL_BELOW: u32 = 113 << 23; // 2^−14
    const INFINITE_FROM: u32 = 0x477f_f000; // 65,520
    let sign = (x.to_bits() >> 16 & 0x8000) as u16;
    let bits = x.to_bits() & 0x7fff_ffff;
    let magnitude = match bits {
        _ if x.is_nan() => 0x7e00,
        INFINITE_FROM.. => 0x7c00,
        ..SUBNORMAL_BELOW => {
            // Adding 0.5 leaves multiples of 2^−24 in the fraction, rounded by the addition itself.
            let rounded = f32::from_bits(bits) + 0.5;
            (rounded.to_bits() - 0.5_f32.to_bits()) as u16
        }
        _ => {
            let odd = bits >> 13 & 1;
            let rounded = bits - (112 << 23) + 0xfff + odd;
            (rounded >> 13) as u16
        }
    };
    sign | magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers_widen_exactly() {
        for (bits, value) in [
            (0x0000u16, 0.0f32),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x7c00, f32::INFINITY),
            (0x3555, 0.333_251_95),
        ] {
            assert_eq!(f16_to_f32(bits), value, "{bits:#06x}");
        }
        assert!(f16_to_f32(0x7e00).is_nan());
        assert_eq!(f16_to_f32(0x8000).to_bits(), (-0.0f32).to_bits());
    }

    #[test]
    fn every_half_precision_number_survives_the_way_there_and_back() {
        for bits in 0..=u16::MAX {
            let wide = f16_to_f32(bits);
            match wide.is_nan() {
                true => assert!(f16_to_f32(f32_to_f16(wide)).is_nan()),
                false => assert_eq!(f32_to_f16(wide), bits, "{wide}"),
            }
        }
    }

    #[test]
    fn the_nearest_number_wins_and_ties_go_to_the_even_one() {
        let ulp = f32::from_bits(0x3a80_0000); // 2^−10, of 1.0
        for (x, bits) in [
            (1.0 + 0.5 * ulp, 0x3c00),
            (1.0 + 0.51 * ulp, 0x3c01),
            (1.0 + 1.5 * ulp, 0x3c02),
            (65_519.0, 0x7bff),
            (65_520.0, 0x7c00),
            (-1e9, 0xfc00),
            (2.9e-8, 0x0000),
            (3.1e-8, 0x0001),
        ] {
            assert_eq!(f32_to_f16(x), bits, "{x}");
        }
    }
}

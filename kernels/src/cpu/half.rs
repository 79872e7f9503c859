//! Half precision (IEEE 754 binary16), as bits.

/// Exact: every half-precision number is an F32.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = (bits as u32 & 0x8000) << 16;
    let (exponent, fraction) = (bits as u32 >> 10 & 0x1f, bits as u32 & 0x3ff);
    let magnitude = match exponent {
        // Subnormal: fraction × 2^−24.
        0 => (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits(),
        0x1f => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// The nearest half-precision number, ties to even; beyond 65,519.99 it is infinite.
pub fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Adding ½ leaves x in units of 2^−24 in the low bits, rounded to even.
        let shifted = f32::from_bits(magnitude) + 0.5;
        return sign | (shifted.to_bits() - 0x3f00_0000) as u16;
    }
    let odd = magnitude >> 13 & 1;
    sign | ((magnitude + 0xfff + odd - (112 << 23)) >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_precision_number_survives_the_way_there_and_back() {
        for bits in 0..=u16::MAX {
            let x = f16_to_f32(bits);
            if x.is_nan() {
                assert!(f16_to_f32(f32_to_f16(x)).is_nan());
            } else {
                assert_eq!(f32_to_f16(x), bits, "{x}");
            }
        }
    }

    #[test]
    fn numbers_between_two_go_to_the_nearer_and_ties_to_the_even_one() {
        for low in 0..0x7bffu16 {
            let (a, b) = (f16_to_f32(low), f16_to_f32(low + 1));
            let middle = 0.5 * (a + b);
            let even = if low % 2 == 0 { low } else { low + 1 };
            assert_eq!(f32_to_f16(middle), even);
            assert_eq!(f32_to_f16(f32::from_bits(middle.to_bits() - 1)), low);
            assert_eq!(f32_to_f16(f32::from_bits(middle.to_bits() + 1)), low + 1);
        }
        assert_eq!(f32_to_f16(65_519.99), 0x7bff);
        assert_eq!(f32_to_f16(65_520.0), 0x7c00);
        assert_eq!(f32_to_f16(-1e30), 0xfc00);
    }
}

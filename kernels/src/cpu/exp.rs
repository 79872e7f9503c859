//! exp for arguments ≤ 0, the only ones a softmax needs: branch-free, so that it vectorises, and the same bits on
//! every machine, which a system's `expf` does not promise.

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts: the first has so few bits that its product with an integer below 2^8 is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding and subtracting 1.5 · 2^23 rounds an F32 of small size to the nearest integer.
const ROUND: f32 = 12_582_912.0;
/// exp of less underflows the normal numbers and gives 0.
const LOWEST: f32 = -87.3;

/// exp(x) for x ≤ 0, relative error below 2e-7; 0 for x < −87.3 and for −∞; NaN for NaN.
///
/// Cody–Waite reduction x = n ln 2 + r, |r| ≤ ½ ln 2, and the Taylor polynomial of degree 7 in r.
#[inline(always)]
pub fn exp_neg(x: f32) -> f32 {
    // Written so that NaN stays NaN.
    let inside = if x < LOWEST { LOWEST } else { x };
    let shifted = inside.mul_add(LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = (-n).mul_add(LN2_LOW, (-n).mul_add(LN2_HIGH, inside));
    let mut p = 1.0 / 5040.0;
    p = r.mul_add(p, 1.0 / 720.0);
    p = r.mul_add(p, 1.0 / 120.0);
    p = r.mul_add(p, 1.0 / 24.0);
    p = r.mul_add(p, 1.0 / 6.0);
    p = r.mul_add(p, 0.5);
    p = r.mul_add(p, 1.0);
    p = r.mul_add(p, 1.0);
    // 2^n: the low bits of `shifted` hold n, and the mantissa of ROUND has none below bit 22.
    let two_n = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    let y = p * two_n;
    if x < LOWEST { 0.0 } else { y }
}

#[cfg(test)]
mod tests {
    use super::exp_neg;

    #[test]
    fn exp_of_non_positive_numbers_is_within_two_e_minus_seven() {
        let mut worst = 0.0f64;
        for i in 0..=873_000u32 {
            let x = -(i as f32) * 1e-4;
            let exact = (x as f64).exp();
            if exact > f32::MIN_POSITIVE as f64 && x >= super::LOWEST {
                worst = worst.max((exp_neg(x) as f64 / exact - 1.0).abs());
            }
        }
        assert!(worst < 2e-7, "worst relative error {worst:e}");
        assert_eq!(exp_neg(0.0), 1.0);
    }

    #[test]
    fn exp_of_minus_infinity_is_zero_and_nan_stays_nan() {
        assert_eq!(exp_neg(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_neg(-1e30), 0.0);
        assert!(exp_neg(f32::NAN).is_nan());
    }
}

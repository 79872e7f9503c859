//! The inner loops: largest logit, exponentials and their sums, sixteen lanes at a time.
//!
//! Plain Rust that the compiler turns into vector code, dispatched at run time by `pulp`. Lane count,
//! block size and reduction tree are fixed, and multiply and add stay separate operations: the result
//! does not depend on the vector width or on the presence of FMA.

use super::SensorError;
use pulp::{Arch, NullaryFnOnce};
use std::f64::consts::LOG2_E;

const LANES: usize = 16;

/// Entries per partial sum; totals add block sums, so rounding grows with n/256, not with n.
pub(crate) const BLOCK: usize = 256;

/// Exponents below this count as zero: e^−708 is the last one that is surely a normal f64.
const Y_MIN: f64 = -708.0;

/// A row's largest logit and its inverse temperature: y = (z − max)·inv_t ≤ 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub max: f64,
    pub inv_t: f64,
}

impl Scale {
    /// Checks the row and the temperature.
    pub fn new(logits: &[f32], u: f64) -> Result<Self, SensorError> {
        let inv_t = (-u).exp();
        if !(inv_t.is_normal() && u.exp().is_normal()) {
            return Err(SensorError::NonFiniteTemperature { u: u.to_string() });
        }
        Ok(Scale {
            max: f64::from(peak(logits)?),
            inv_t,
        })
    }

    #[inline(always)]
    pub fn y(self, logit: f32) -> f64 {
        (f64::from(logit) - self.max) * self.inv_t
    }
}

/// Σe, Σe·y and Σe·y² over a row, e = exp(y).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub e: f64,
    pub ey: f64,
    pub eyy: f64,
}

/// The largest logit of a valid row.
fn peak(logits: &[f32]) -> Result<f32, SensorError> {
    if logits.is_empty() {
        return Err(SensorError::Empty);
    }
    let (max, nan) = Arch::new().dispatch(MaxAndNan(logits));
    if nan {
        let index = logits.iter().position(|z| z.is_nan()).unwrap_or_default();
        return Err(SensorError::Nan { index });
    }
    if max == f32::INFINITY {
        let index = logits.iter().position(|&z| z == max).unwrap_or_default();
        return Err(SensorError::PosInf { index });
    }
    if max == f32::NEG_INFINITY {
        return Err(SensorError::AllNegInf);
    }
    Ok(max)
}

struct MaxAndNan<'a>(&'a [f32]);

// A type rather than a closure: only then is the body inlined into the function that enables the vector unit.
impl NullaryFnOnce for MaxAndNan<'_> {
    type Output = (f32, bool);

    #[inline(always)]
    fn call(self) -> (f32, bool) {
        let mut max = [f32::NEG_INFINITY; LANES];
        let mut nan = [0_u32; LANES];
        let (rows, rest) = self.0.as_chunks::<LANES>();
        for row in rows {
            for j in 0..LANES {
                max[j] = if row[j] > max[j] { row[j] } else { max[j] };
                nan[j] |= u32::from(row[j].is_nan());
            }
        }
        for &z in rest {
            max[0] = if z > max[0] { z } else { max[0] };
            nan[0] |= u32::from(z.is_nan());
        }
        let max = max.into_iter().fold(f32::NEG_INFINITY, f32::max);
        (max, nan.contains(&1))
    }
}

/// All three sums of a row.
pub(crate) fn moments(logits: &[f32], scale: Scale) -> Sums {
    Arch::new().dispatch(Moments { logits, scale })
}

struct Moments<'a> {
    logits: &'a [f32],
    scale: Scale,
}

impl NullaryFnOnce for Moments<'_> {
    type Output = Sums;

    #[inline(always)]
    fn call(self) -> Sums {
        let [mut e, mut ey, mut eyy] = [[0.0; LANES]; 3];
        for block in self.logits.chunks(BLOCK) {
            let sums = block_moments(block, self.scale);
            for j in 0..LANES {
                e[j] += sums[0][j];
                ey[j] += sums[1][j];
                eyy[j] += sums[2][j];
            }
        }
        Sums {
            e: tree_sum(e),
            ey: tree_sum(ey),
            eyy: tree_sum(eyy),
        }
    }
}

#[inline(always)]
fn block_moments(block: &[f32], scale: Scale) -> [[f64; LANES]; 3] {
    let [mut e_sum, mut ey_sum, mut eyy_sum] = [[0.0; LANES]; 3];
    each_row(
        block,
        #[inline(always)]
        |row| {
            for j in 0..LANES {
                let y = scale.y(row[j]);
                let e = exp_or_zero(y);
                let ey = e * y.max(Y_MIN);
                e_sum[j] += e;
                ey_sum[j] += ey;
                eyy_sum[j] += ey * y.max(Y_MIN);
            }
        },
    );
    [e_sum, ey_sum, eyy_sum]
}

/// Σe of each block of [`BLOCK`] entries, in order.
pub(crate) fn block_masses(logits: &[f32], scale: Scale) -> Vec<f64> {
    let mut masses = vec![0.0; logits.len().div_ceil(BLOCK)];
    Arch::new().dispatch(BlockMasses {
        logits,
        scale,
        masses: &mut masses,
    });
    masses
}

struct BlockMasses<'a> {
    logits: &'a [f32],
    scale: Scale,
    masses: &'a mut [f64],
}

impl NullaryFnOnce for BlockMasses<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (mass, block) in self.masses.iter_mut().zip(self.logits.chunks(BLOCK)) {
            let mut sum = [0.0; LANES];
            each_row(
                block,
                #[inline(always)]
                |row| {
                    for j in 0..LANES {
                        sum[j] += exp_or_zero(self.scale.y(row[j]));
                    }
                },
            );
            *mass = tree_sum(sum);
        }
    }
}

/// Calls `f` with sixteen logits at a time, the last ones filled up with −inf.
#[inline(always)]
fn each_row(block: &[f32], mut f: impl FnMut(&[f32; LANES])) {
    let (rows, rest) = block.as_chunks::<LANES>();
    for row in rows {
        f(row);
    }
    if !rest.is_empty() {
        let mut row = [f32::NEG_INFINITY; LANES];
        row[..rest.len()].copy_from_slice(rest);
        f(&row);
    }
}

/// Sum of the lanes by halving: lane j and lane j + 8, then + 4, + 2, + 1.
#[inline(always)]
fn tree_sum(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for j in 0..half {
            lanes[j] += lanes[j + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// e^y for y ≤ 0, and 0 below [`Y_MIN`]; −inf included, NaN not.
///
/// y = k ln 2 + r with k whole and |r| ≤ ½ ln 2 (ln 2 in two parts, Cody & Waite 1980), then the Taylor
/// polynomial of degree 12 in r (truncation below 2e-16 of the value) and k added to the exponent bits.
#[inline(always)]
pub(crate) fn exp_or_zero(y: f64) -> f64 {
    /// 1.5·2^52: adding it leaves the nearest whole number in the low mantissa bits.
    const TO_WHOLE: f64 = 6_755_399_441_055_744.0;
    /// ln 2 to 32 bits, so that k times it is exact, and what is left of ln 2.
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN_2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
    const TAYLOR: [f64; 13] = {
        let mut c = [1.0; 13];
        let mut i = 1;
        while i < 13 {
            c[i] = c[i - 1] / i as f64;
            i += 1;
        }
        c
    };
    let x = if y > Y_MIN { y } else { Y_MIN };
    let shifted = x * LOG2_E + TO_WHOLE;
    let k = shifted - TO_WHOLE;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    let mut p = TAYLOR[12];
    let mut i = 12;
    while i > 0 {
        i -= 1;
        p = p * r + TAYLOR[i];
    }
    let e = f64::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 52));
    if y >= Y_MIN { e } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_within_four_roundings_of_the_standard_one() {
        let mut worst = 0.0_f64;
        for i in 0..=400_000 {
            let y = -708.0 * f64::from(i) / 400_000.0;
            worst = worst.max((exp_or_zero(y) / y.exp() - 1.0).abs());
        }
        assert!(worst < 4.0 * f64::EPSILON, "{worst:e}");
        assert_eq!(exp_or_zero(0.0), 1.0);
    }

    #[test]
    fn exponents_below_the_floor_give_exactly_zero() {
        assert_eq!(exp_or_zero(-708.000_001), 0.0);
        assert_eq!(exp_or_zero(f64::NEG_INFINITY), 0.0);
        assert!(exp_or_zero(-708.0) > 0.0);
    }

    fn sums(logits: &[f32], scale: Scale) -> [u64; 3] {
        let sums = moments(logits, scale);
        [sums.e, sums.ey, sums.eyy].map(f64::to_bits)
    }

    #[test]
    fn the_dispatched_sums_equal_an_undispatched_evaluation_bit_for_bit() {
        let logits: Vec<f32> = (0..1000).map(|i| ((i * 37) % 101) as f32 * 0.1).collect();
        let scale = Scale::new(&logits, -0.3).expect("a valid row");
        let plain = std::hint::black_box(Moments {
            logits: &logits,
            scale,
        })
        .call();
        let plain = [plain.e, plain.ey, plain.eyy].map(f64::to_bits);
        assert_eq!(plain, sums(&logits, scale));
    }

    #[test]
    fn the_sums_have_pinned_bits_on_every_processor() {
        let logits: Vec<f32> = (0..1000).map(|i| ((i * 37) % 101) as f32 * 0.1).collect();
        let scale = Scale::new(&logits, 0.0).expect("a valid row");
        // Computed apart from this code, in double precision with separate roundings.
        let pinned = [
            4_637_048_631_554_291_898,
            13_860_030_318_572_145_159,
            4_641_147_066_856_158_114,
        ];
        assert_eq!(sums(&logits, scale), pinned);
    }

    #[test]
    fn exponentials_have_pinned_bits_on_every_processor() {
        let bits = |i: u32| exp_or_zero(-0.0137 * f64::from(i)).to_bits();
        let check = (0..1000).map(bits).fold(0, u64::wrapping_add);
        assert_eq!(check, 6_115_159_524_516_283_483);
    }
}

//! Sixteen F32 lanes in registers.
//!
//! Most kernels leave vectorising to the compiler. The tile of a matrix product may not: whether its sums stay in
//! registers then depends on the order of the compiler's passes, and costs a factor of thirty when they do not.

use super::half::f16_to_f32;

pub(super) const LANES: usize = 16;

/// Sixteen lanes at one SIMD level. Implementations for an instruction set may only be used inside `dispatch` at that
/// level.
pub(super) trait Vector: Copy {
    /// How many vectors of this type the registers hold.
    const REGISTERS: usize;
    fn zero() -> Self;
    fn load(x: &[f32; LANES]) -> Self;
    /// From half precision, exactly.
    fn load_f16(x: &[u16; LANES]) -> Self;
    /// From signed bytes, exactly.
    fn load_i8(x: &[i8; LANES]) -> Self;
    fn store(self, to: &mut [f32; LANES]);
    fn mul(self, other: Self) -> Self;
    fn add(self, other: Self) -> Self;
    /// `self + x · w`, rounded once.
    fn add_scaled(self, x: f32, w: Self) -> Self;
}

impl Vector for [f32; LANES] {
    const REGISTERS: usize = 4;

    #[inline(always)]
    fn zero() -> Self {
        [0.0; LANES]
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        *x
    }

    #[inline(always)]
    fn load_f16(x: &[u16; LANES]) -> Self {
        x.map(f16_to_f32)
    }

    #[inline(always)]
    fn load_i8(x: &[i8; LANES]) -> Self {
        x.map(f32::from)
    }

    #[inline(always)]
    fn mul(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self[lane] *= other[lane];
        }
        self
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        *to = self;
    }

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self[lane] += other[lane];
        }
        self
    }

    #[inline(always)]
    fn add_scaled(mut self, x: f32, w: Self) -> Self {
        for lane in 0..LANES {
            self[lane] = x.mul_add(w[lane], self[lane]);
        }
        self
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{LANES, Vector};

    // SAFETY of every block below: `dispatch` uses these types only after it found the instruction set, and loads and
    // stores stay within arrays of sixteen lanes.

    impl Vector for [__m256; 2] {
        const REGISTERS: usize = 8;

        #[inline(always)]
        fn load_f16(x: &[u16; LANES]) -> Self {
            unsafe {
                let x: *const __m128i = x.as_ptr().cast();
                [
                    _mm256_cvtph_ps(_mm_loadu_si128(x)),
                    _mm256_cvtph_ps(_mm_loadu_si128(x.add(1))),
                ]
            }
        }

        #[inline(always)]
        fn load_i8(x: &[i8; LANES]) -> Self {
            unsafe {
                let x = _mm_loadu_si128(x.as_ptr().cast());
                [
                    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)),
                    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128::<8>(x))),
                ]
            }
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            unsafe {
                [
                    _mm256_mul_ps(self[0], other[0]),
                    _mm256_mul_ps(self[1], other[1]),
                ]
            }
        }

        #[inline(always)]
        fn zero() -> Self {
            unsafe { [_mm256_setzero_ps(); 2] }
        }

        #[inline(always)]
        fn load(x: &[f32; LANES]) -> Self {
            unsafe {
                [
                    _mm256_loadu_ps(x.as_ptr()),
                    _mm256_loadu_ps(x.as_ptr().add(8)),
                ]
            }
        }

        #[inline(always)]
        fn store(self, to: &mut [f32; LANES]) {
            unsafe {
                _mm256_storeu_ps(to.as_mut_ptr(), self[0]);
                _mm256_storeu_ps(to.as_mut_ptr().add(8), self[1]);
            }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            unsafe {
                [
                    _mm256_add_ps(self[0], other[0]),
                    _mm256_add_ps(self[1], other[1]),
                ]
            }
        }

        #[inline(always)]
        fn add_scaled(self, x: f32, w: Self) -> Self {
            unsafe {
                let x = _mm256_set1_ps(x);
                [
                    _mm256_fmadd_ps(x, w[0], self[0]),
                    _mm256_fmadd_ps(x, w[1], self[1]),
                ]
            }
        }
    }

    impl Vector for __m512 {
        const REGISTERS: usize = 32;

        #[inline(always)]
        fn load_f16(x: &[u16; LANES]) -> Self {
            unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(x.as_ptr().cast())) }
        }

        #[inline(always)]
        fn load_i8(x: &[i8; LANES]) -> Self {
            unsafe {
                let x = _mm_loadu_si128(x.as_ptr().cast());
                _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x))
            }
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            unsafe { _mm512_mul_ps(self, other) }
        }

        #[inline(always)]
        fn zero() -> Self {
            unsafe { _mm512_setzero_ps() }
        }

        #[inline(always)]
        fn load(x: &[f32; LANES]) -> Self {
            unsafe { _mm512_loadu_ps(x.as_ptr()) }
        }

        #[inline(always)]
        fn store(self, to: &mut [f32; LANES]) {
            unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self) }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            unsafe { _mm512_add_ps(self, other) }
        }

        #[inline(always)]
        fn add_scaled(self, x: f32, w: Self) -> Self {
            unsafe { _mm512_fmadd_ps(_mm512_set1_ps(x), w, self) }
        }
    }
}

//! Run-time choice of the instruction set.
//!
//! A kernel is written once, over fixed-size arrays that the compiler vectorises, and compiled for each level.
//! Fused multiply-add rounds once at every level, so the level changes the speed and never a bit of the result.

use std::sync::LazyLock;

use super::vector::{LANES, Vector};

/// Instruction sets that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimdLevel {
    /// What the target guarantees. On x86-64 before Haswell fused multiply-add is a library call, and slow.
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, VL, DQ and BW.
    Avx512,
}

static LEVEL: LazyLock<SimdLevel> = LazyLock::new(detect);

/// The level that kernels use on this machine.
pub fn simd_level() -> SimdLevel {
    *LEVEL
}

#[cfg(target_arch = "x86_64")]
fn detect() -> SimdLevel {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw");
    match (avx2, avx512) {
        (true, true) => SimdLevel::Avx512,
        (true, false) => SimdLevel::Avx2,
        _ => SimdLevel::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> SimdLevel {
    SimdLevel::Portable
}

/// A kernel body. `run` must be `#[inline(always)]`, and so must all that it calls in its inner loops.
pub(super) trait Kernel {
    fn run<V: Vector>(self);
}

/// Runs `kernel` compiled for the best level of this machine.
pub(super) fn dispatch<K: Kernel>(kernel: K) {
    dispatch_at(simd_level(), kernel)
}

/// Runs `kernel` compiled for `level`, or for the machine's own level where that is lower.
pub(super) fn dispatch_at<K: Kernel>(level: SimdLevel, kernel: K) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m256, __m512};

        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,f16c")]
        fn run_avx512<K: Kernel>(kernel: K) {
            kernel.run::<__m512>()
        }
        #[target_feature(enable = "avx2,fma,f16c")]
        fn run_avx2<K: Kernel>(kernel: K) {
            kernel.run::<[__m256; 2]>()
        }
        match level.min(simd_level()) {
            // SAFETY: `simd_level` found these features on this machine.
            SimdLevel::Avx512 => return unsafe { run_avx512(kernel) },
            // SAFETY: as above.
            SimdLevel::Avx2 => return unsafe { run_avx2(kernel) },
            SimdLevel::Portable => {}
        }
    }
    let _ = level;
    kernel.run::<[f32; LANES]>()
}

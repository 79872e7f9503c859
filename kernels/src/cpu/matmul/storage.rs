//! Panels of each storage, read sixteen weights at a time as exact F32.

use super::packed::Q8_BLOCK;
use super::{PANEL, Packed, PackedMatrix};
use crate::cpu::vector::Vector;

/// A run of panels, `[panel][in][16]`.
///
/// A Q8_0 weight is a signed byte times a half-precision scale: 18 significant bits, so it is exact as F32 too. A
/// product therefore has the same bits in every storage of the same weights.
pub(super) trait Panels: Copy + Sync {
    /// What the weights of one input block share.
    type Scale<V: Vector>: Copy;

    /// Of the inputs `block · 32 ..` of a panel.
    fn scale<V: Vector>(&self, panel: usize, block: usize) -> Self::Scale<V>;

    /// Weights of input `i` of a panel; `scale` is its block's.
    ///
    /// # Safety
    /// `panel` and `i` must lie in the matrix.
    unsafe fn column<V: Vector>(&self, panel: usize, i: usize, scale: Self::Scale<V>) -> V;
}

#[derive(Clone, Copy)]
pub(super) struct F32Panels<'a> {
    pub data: &'a [f32],
    pub n_in: usize,
}

#[derive(Clone, Copy)]
pub(super) struct F16Panels<'a> {
    data: &'a [u16],
    n_in: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Q8Panels<'a> {
    quants: &'a [i8],
    scales: &'a [u16],
    n_in: usize,
}

/// Sixteen elements from `start`.
///
/// # Safety
/// `start + 16 <= data.len()`.
#[inline(always)]
unsafe fn sixteen<T>(data: &[T], start: usize) -> &[T; PANEL] {
    debug_assert!(start + PANEL <= data.len());
    // SAFETY: by contract the range lies in the slice; an array has its elements' alignment.
    unsafe { &*data.as_ptr().add(start).cast() }
}

impl Panels for F32Panels<'_> {
    type Scale<V: Vector> = ();

    #[inline(always)]
    fn scale<V: Vector>(&self, _: usize, _: usize) {}

    #[inline(always)]
    unsafe fn column<V: Vector>(&self, panel: usize, i: usize, (): ()) -> V {
        // SAFETY: the caller keeps `panel` and `i` in the matrix.
        V::load(unsafe { sixteen(self.data, (panel * self.n_in + i) * PANEL) })
    }
}

impl Panels for F16Panels<'_> {
    type Scale<V: Vector> = ();

    #[inline(always)]
    fn scale<V: Vector>(&self, _: usize, _: usize) {}

    #[inline(always)]
    unsafe fn column<V: Vector>(&self, panel: usize, i: usize, (): ()) -> V {
        // SAFETY: the caller keeps `panel` and `i` in the matrix.
        V::load_f16(unsafe { sixteen(self.data, (panel * self.n_in + i) * PANEL) })
    }
}

impl Panels for Q8Panels<'_> {
    type Scale<V: Vector> = V;

    #[inline(always)]
    fn scale<V: Vector>(&self, panel: usize, block: usize) -> V {
        let start = (panel * (self.n_in / Q8_BLOCK) + block) * PANEL;
        let scales = self.scales[start..].first_chunk();
        V::load_f16(scales.unwrap_or(&[0; PANEL]))
    }

    #[inline(always)]
    unsafe fn column<V: Vector>(&self, panel: usize, i: usize, scale: V) -> V {
        // SAFETY: the caller keeps `panel` and `i` in the matrix.
        let quants = unsafe { sixteen(self.quants, (panel * self.n_in + i) * PANEL) };
        V::load_i8(quants).mul(scale)
    }
}

/// A function over whatever storage a matrix has.
pub(super) trait WithPanels {
    fn call<P: Panels>(self, panels: P);
}

impl PackedMatrix {
    pub(super) fn with_panels(&self, f: impl WithPanels) {
        let n_in = self.n_in();
        match &self.data {
            Packed::F32(data) => f.call(F32Panels { data, n_in }),
            Packed::F16(data) => f.call(F16Panels { data, n_in }),
            Packed::Q8_0 { quants, scales } => f.call(Q8Panels {
                quants,
                scales,
                n_in,
            }),
        }
    }
}

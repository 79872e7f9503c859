//! F32, F16 and BF16: a block is one element.

use etime_kernels::cpu::f16_to_f32;

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

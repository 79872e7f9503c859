//! Storing keys and values.

use crate::error::{KernelError, check_len};
use crate::shape::KvShape;

/// Stores row `r` of `k` and `v`, both `[row][kv_head][head_dim]`, in slot `slots[r]` of the pools.
///
/// Slot `s` is slot `s % block_tok` of physical block `s / block_tok`. Pools are laid out as [`KvShape`] says.
/// A slot that is named twice keeps the later row.
pub fn write_kv(
    shape: &KvShape,
    k_pool: &mut [f32],
    v_pool: &mut [f32],
    slots: &[u32],
    k: &[f32],
    v: &[f32],
) -> Result<(), KernelError> {
    shape.check(k_pool.len(), v_pool.len())?;
    let row = shape.n_kv_heads * shape.head_dim;
    check_len("new keys", k.len(), slots.len() * row)?;
    check_len("new values", v.len(), slots.len() * row)?;
    let n_slots = shape.n_slots();
    if let Some(entry) = slots.iter().position(|&s| s as usize >= n_slots) {
        return Err(KernelError::SlotOutOfRange {
            entry,
            slot: slots[entry] as usize,
            n_slots,
        });
    }
    let (hd, bt, run) = (shape.head_dim, shape.block_tok, shape.run());
    for (r, &slot) in slots.iter().enumerate() {
        let (block, offset) = (slot as usize / bt, slot as usize % bt);
        for head in 0..shape.n_kv_heads {
            let source = r * row + head * hd..r * row + (head + 1) * hd;
            let start = (block * shape.n_kv_heads + head) * run;
            let keys = &mut k_pool[start..start + run];
            for (column, &x) in keys.chunks_exact_mut(bt).zip(&k[source.clone()]) {
                column[offset] = x;
            }
            v_pool[start + offset * hd..][..hd].copy_from_slice(&v[source]);
        }
    }
    Ok(())
}

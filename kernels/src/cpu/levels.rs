//! Every SIMD level of this machine gives the same bits.

use super::attention::Item;
use super::dispatch::{SimdLevel, dispatch_at};
use super::matmul::Task;
use super::{PackedMatrix, matmul};
use crate::KvShape;

const LEVELS: [SimdLevel; 3] = [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512];

fn wave(n: usize, rate: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * rate).sin()).collect()
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits())
}

#[test]
fn a_product_has_the_same_bits_at_every_simd_level() {
    let (n_in, n_out, rows) = (300, 32, 13);
    let w = PackedMatrix::stack(&[&wave(n_in * n_out, 0.37)], n_in).unwrap();
    let x = wave(n_in * rows, 0.73);
    let mut wanted = vec![0.0; rows * n_out];
    matmul(&w, &x, &mut wanted).unwrap();
    for level in LEVELS {
        let mut out = vec![0.0; rows * n_out];
        dispatch_at(level, Task::whole(&w, &x, &mut out));
        assert!(same_bits(&out, &wanted), "{level:?}");
    }
}

#[test]
fn attention_has_the_same_bits_at_every_simd_level() {
    let shape = KvShape {
        n_blocks: 3,
        block_tok: 16,
        n_kv_heads: 1,
        head_dim: 80,
    };
    let pool = wave(shape.elements().unwrap(), 0.91);
    let q = wave(2 * 80, 1.7);
    let results = LEVELS.map(|level| {
        let (mut out, mut lse, mut mass) = (vec![0.0; 160], vec![0.0; 2], vec![0.0; 4]);
        dispatch_at(
            level,
            Item {
                shape: &shape,
                kv_head: 0,
                scale: 0.3,
                context_tok: 27,
                physical: &[2, 0],
                logical: &[0, 1],
                k_pool: &pool,
                v_pool: &pool,
                q: &q,
                out: &mut out,
                lse: &mut lse,
                mass: &mut mass,
            },
        );
        [out, lse, mass].concat()
    });
    assert!(same_bits(&results[0], &results[1]) && same_bits(&results[0], &results[2]));
    assert!(results[0].iter().all(|x| x.is_finite()));
}

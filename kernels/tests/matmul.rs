//! Packed matrix product and pointwise kernels against f64.

#[allow(dead_code)]
mod common;

use common::{Random, assert_close};
use etime_kernels::KernelError;
use etime_kernels::cpu::{self, MatrixPart, PackedMatrix, RopeTable, matmul};
use proptest::prelude::*;

fn reference(w: &[f32], x: &[f32], n_in: usize) -> Vec<f64> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| a as f64 * b as f64).sum();
    x.chunks_exact(n_in)
        .flat_map(|row| w.chunks_exact(n_in).map(move |col| dot(row, col)))
        .collect()
}

#[test]
fn a_row_of_a_product_has_the_same_bits_alone_and_among_forty_others() {
    let (n_in, n_out, rows) = (576, 203, 41);
    let mut random = Random(1);
    let w = PackedMatrix::stack(&[MatrixPart::F32(&random.vector(n_in * n_out))], n_in).unwrap();
    let x = random.vector(rows * n_in);
    let mut all = vec![0.0; rows * n_out];
    matmul(&w, &x, &mut all).unwrap();
    for r in 0..rows {
        let mut alone = vec![0.0; n_out];
        matmul(&w, &x[r * n_in..(r + 1) * n_in], &mut alone).unwrap();
        assert!(
            alone
                .iter()
                .zip(&all[r * n_out..])
                .all(|(a, b)| a.to_bits() == b.to_bits()),
            "row {r}"
        );
    }
}

#[test]
fn stacked_matrices_give_the_outputs_of_their_parts_in_order() {
    let mut random = Random(2);
    let (a, b) = (random.vector(5 * 8), random.vector(20 * 8));
    let w = PackedMatrix::stack(&[MatrixPart::F32(&a), MatrixPart::F32(&b)], 8).unwrap();
    assert_eq!((w.n_out(), w.n_in()), (25, 8));
    let mut row = vec![0.0; 8];
    w.copy_row(6, &mut row).unwrap();
    assert_eq!(row, b[8..16]);
    let x = random.vector(3 * 8);
    let mut out = vec![0.0; 3 * 25];
    matmul(&w, &x, &mut out).unwrap();
    assert_close(&out, &reference(&[a, b].concat(), &x, 8), 1e-5, "stacked");
}

#[test]
fn products_of_the_wrong_length_are_refused() {
    let w = PackedMatrix::stack(&[MatrixPart::F32(&[1.0; 6])], 3).unwrap();
    let error = matmul(&w, &[1.0; 4], &mut [0.0; 2]).unwrap_err();
    assert_eq!(
        error,
        KernelError::Length {
            what: "activations",
            seen: 4,
            wanted: 3
        }
    );
    let error = matmul(&w, &[1.0; 3], &mut [0.0; 3]).unwrap_err();
    assert_eq!(
        error,
        KernelError::Length {
            what: "matmul output",
            seen: 3,
            wanted: 2
        }
    );
    assert!(PackedMatrix::stack(&[MatrixPart::F32(&[1.0; 5])], 3).is_err());
    assert!(w.copy_row(2, &mut [0.0; 3]).is_err());
}

#[test]
fn rms_norm_silu_and_rope_match_their_formulas() {
    let mut random = Random(3);
    let (x, weight) = (random.vector(3 * 70), random.vector(70));
    let mut out = vec![0.0; x.len()];
    cpu::rms_norm(&x, &weight, 1e-5, &mut out).unwrap();
    for (row, seen) in x.chunks_exact(70).zip(out.chunks_exact(70)) {
        let mean = row.iter().map(|&v| (v as f64).powi(2)).sum::<f64>() / 70.0;
        let wanted: Vec<f64> = row
            .iter()
            .zip(&weight)
            .map(|(&v, &w)| v as f64 * w as f64 / (mean + 1e-5).sqrt())
            .collect();
        assert_close(seen, &wanted, 1e-6, "norm");
    }

    let gate_up: Vec<f32> = random.vector(2 * 2 * 21).iter().map(|v| v * 30.0).collect();
    let mut out = vec![0.0; 2 * 21];
    cpu::silu_mul(21, &gate_up, &mut out).unwrap();
    for (row, seen) in gate_up.chunks_exact(42).zip(out.chunks_exact(21)) {
        let silu = |g: f64| g / (1.0 + (-g).exp());
        let wanted: Vec<f64> = (0..21)
            .map(|i| silu(row[i] as f64) * row[21 + i] as f64)
            .collect();
        assert_close(seen, &wanted, 2e-4, "silu");
    }

    let table = RopeTable::new(&[1.0, 0.1], 10).unwrap();
    let row = random.vector(10);
    let mut turned = row.clone();
    cpu::rope(&table, &[7], 2, 10, &mut turned).unwrap();
    for head in 0..2 {
        for i in 0..2 {
            let (a, b) = (row[head * 4 + i] as f64, row[head * 4 + 2 + i] as f64);
            let angle = 7.0 * [1.0f64, 0.1][i];
            let seen = [turned[head * 4 + i], turned[head * 4 + 2 + i]];
            let wanted = [
                a * angle.cos() - b * angle.sin(),
                b * angle.cos() + a * angle.sin(),
            ];
            assert_close(&seen, &wanted, 1e-6, "rope");
        }
    }
    assert_eq!(
        turned[8..],
        row[8..],
        "what follows the heads is left alone"
    );
    let error = cpu::rope(&table, &[10], 2, 10, &mut turned).unwrap_err();
    assert_eq!(
        error,
        KernelError::PositionOutOfRange {
            row: 0,
            position: 10,
            n_positions: 10
        }
    );
}

#[test]
fn a_large_gate_saturates_and_does_not_become_nan() {
    let mut out = [0.0; 2];
    cpu::silu_mul(2, &[1e30, -1e30, 1.0, 1.0], &mut out).unwrap();
    assert_eq!(out, [1e30, 0.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn products_of_any_shape_match_f64(
        rows in 1usize..40, n_in in 1usize..700, n_out in 1usize..60, seed in any::<u64>(),
    ) {
        let mut random = Random(seed);
        let (w, x) = (random.vector(n_in * n_out), random.vector(rows * n_in));
        let packed = PackedMatrix::stack(&[MatrixPart::F32(&w)], n_in).unwrap();
        let mut out = vec![f32::NAN; rows * n_out];
        matmul(&packed, &x, &mut out).unwrap();
        assert_close(&out, &reference(&w, &x, n_in), 3e-5, "product");
    }
}

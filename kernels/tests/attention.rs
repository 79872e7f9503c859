//! Paged attention against a token-by-token gather in f64.

mod common;

use common::Case;
use etime_kernels::{AttnRows, BlockLists, KernelError, KvShape, cpu};
use proptest::prelude::*;

#[test]
fn paged_attention_equals_a_gather_in_f64_for_all_head_ratios_and_block_sizes() {
    for (n_heads, n_kv_heads) in [(4, 4), (9, 3), (8, 1), (16, 2)] {
        for block_tok in [16, 32, 5] {
            for head_dim in [32, 64, 80, 6] {
                let case = Case::new(
                    n_heads,
                    n_kv_heads,
                    block_tok,
                    head_dim,
                    &[1, 17, 95, 64],
                    7,
                );
                case.assert_matches_gather();
            }
        }
    }
}

#[test]
fn nan_in_unused_slots_and_unlisted_blocks_never_leaks() {
    // `Case` fills the pools with NaN before it writes the tokens.
    let case = Case::new(9, 3, 16, 64, &[3, 16, 33], 11);
    assert!(case.k_pool.iter().any(|x| x.is_nan()));
    let result = case.run();
    assert!(
        result
            .out
            .iter()
            .chain(&result.lse)
            .chain(&result.mass)
            .all(|x| x.is_finite())
    );
}

#[test]
fn a_kept_list_attends_to_the_listed_blocks_only_at_their_own_positions() {
    let mut case = Case::new(6, 2, 16, 32, &[90, 48], 3);
    case.keep(|seq, logical| seq == 1 || logical % 2 == 1 || logical == 0);
    case.assert_matches_gather();
    let mut without_last = Case::new(6, 2, 16, 32, &[90], 3);
    without_last.keep(|_, logical| logical < 4);
    without_last.assert_matches_gather();
}

#[test]
fn masses_sum_to_one_over_the_listed_blocks() {
    let case = Case::new(8, 2, 16, 32, &[100, 7, 64], 5);
    let result = case.run();
    for (row, masses) in case.masses_by_row(&result.mass).iter().enumerate() {
        for head in masses {
            let sum: f32 = head.iter().sum();
            assert!((sum - 1.0).abs() < 1e-5, "row {row}: {sum}");
        }
    }
}

#[test]
fn a_prefill_chunk_is_bit_equal_to_its_tokens_one_by_one() {
    let case = Case::causal(9, 3, 16, 64, &[70, 33], 13);
    let whole = case.run();
    let row = 9 * 64;
    for r in 0..case.seq.len() {
        let single = case.run_rows(r..r + 1);
        assert_eq!(
            bits(&whole.out[r * row..(r + 1) * row]),
            bits(&single.out),
            "row {r}"
        );
        assert_eq!(
            bits(&whole.lse[r * 9..(r + 1) * 9]),
            bits(&single.lse),
            "row {r}"
        );
    }
}

#[test]
fn results_have_the_same_bits_on_one_thread_and_on_many() {
    let case = Case::causal(8, 2, 32, 64, &[200, 150], 17);
    let pool = |n| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(n)
            .build()
            .unwrap()
    };
    let one = pool(1).install(|| case.run());
    let five = pool(5).install(|| case.run());
    assert_eq!(bits(&one.out), bits(&five.out));
    assert_eq!(bits(&one.mass), bits(&five.mass));
}

#[test]
fn scores_of_a_thousand_neither_overflow_nor_vanish() {
    let mut case = Case::new(4, 2, 16, 32, &[64], 19);
    case.q.iter_mut().for_each(|x| *x *= 400.0);
    case.assert_matches_gather();
}

#[test]
fn bad_arguments_are_errors_that_carry_the_values() {
    let case = Case::new(4, 2, 16, 32, &[20], 1);
    let wrong = |change: fn(&mut Case)| {
        let mut bad = case.clone();
        change(&mut bad);
        bad.try_run().unwrap_err()
    };
    assert_eq!(
        wrong(|c| c.physical[1] = 999),
        KernelError::BlockOutOfRange {
            entry: 1,
            block: 999,
            n_blocks: case.shape.n_blocks
        }
    );
    assert_eq!(
        wrong(|c| c.logical[1] = 0),
        KernelError::ListOrder {
            entry: 1,
            seen: 0,
            previous: 0
        }
    );
    assert_eq!(
        wrong(|c| c.indptr[1] = 1),
        KernelError::Indptr {
            index: 1,
            seen: 1,
            n_entries: 2
        }
    );
    assert_eq!(
        wrong(|c| c.seq[0] = 4),
        KernelError::SeqOutOfRange {
            row: 0,
            seq: 4,
            n_seqs: 1
        }
    );
    assert_eq!(
        wrong(|c| c.context[0] = 0),
        KernelError::EmptyRow {
            row: 0,
            seq: 0,
            context_tok: 0,
            listed_blk: 2
        }
    );
    assert_eq!(
        wrong(|c| c.n_heads = 3),
        KernelError::HeadRatio {
            n_heads: 3,
            n_kv_heads: 2
        }
    );
    assert!(matches!(
        wrong(|c| c.q.truncate(5)),
        KernelError::Length {
            what: "queries",
            seen: 5,
            ..
        }
    ));
    assert!(matches!(
        wrong(|c| c.shape.n_blocks += 1),
        KernelError::Length {
            what: "key pool",
            ..
        }
    ));
    assert_eq!(
        wrong(|c| c.shape.block_tok = 0),
        KernelError::Zero { what: "block_tok" }
    );
    assert_eq!(
        wrong(|c| c.shape.n_blocks = usize::MAX),
        KernelError::Overflow { what: "KV pool" }
    );
}

#[test]
fn writing_outside_the_pool_is_refused_and_writes_nothing() {
    let shape = KvShape {
        n_blocks: 2,
        block_tok: 4,
        n_kv_heads: 1,
        head_dim: 2,
    };
    let (mut k, mut v) = (vec![0.0; 16], vec![0.0; 16]);
    let row = [1.0, 2.0, 3.0, 4.0];
    let error = cpu::write_kv(&shape, &mut k, &mut v, &[0, 8], &row, &row).unwrap_err();
    assert_eq!(
        error,
        KernelError::SlotOutOfRange {
            entry: 1,
            slot: 8,
            n_slots: 8
        }
    );
    assert!(k.iter().chain(&v).all(|&x| x == 0.0));
    cpu::write_kv(&shape, &mut k, &mut v, &[6], &row[..2], &row[2..]).unwrap();
    assert_eq!(
        (k[8 + 2], k[8 + 4 + 2]),
        (1.0, 2.0),
        "keys are [block][head][dim][slot]"
    );
    assert_eq!(
        v[8 + 4..8 + 6],
        [3.0, 4.0],
        "values are [block][head][slot][dim]"
    );
}

#[test]
fn mass_is_counted_for_rows_of_known_sequences() {
    let lists = BlockLists {
        indptr: &[0, 2, 5],
        physical: &[0; 5],
        logical: &[0, 1, 0, 1, 2],
    };
    let rows = AttnRows {
        seq: &[0, 1, 1],
        context_tok: &[1, 1, 1],
    };
    assert_eq!(rows.mass_len(&lists, 4), 4 * (2 + 3 + 3));
}

fn bits(xs: &[f32]) -> Vec<u32> {
    xs.iter().map(|x| x.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_shapes_lists_and_contexts_match_the_gather(
        group in 1usize..9,
        n_kv_heads in 1usize..4,
        block_tok in 1usize..40,
        head_dim in 1usize..70,
        lengths in prop::collection::vec(1usize..120, 1..5),
        seed in any::<u64>(),
        drop_mask in any::<u32>(),
    ) {
        let mut case = Case::new(group * n_kv_heads, n_kv_heads, block_tok, head_dim, &lengths, seed);
        case.keep(|_, logical| logical == 0 || drop_mask & (1 << (logical % 32)) == 0);
        case.assert_matches_gather();
    }
}

//! Kept blocks, attention mass, work counters and refused steps.

mod common;

use common::{Shape, text};
use etime_engine::{KvPool, ModelError, SeqStep, StepFault, Wanted};

const BLOCK: usize = 8;

fn step<'a>(
    tokens: &'a [u32],
    start_tok: usize,
    blocks: &'a [u32],
    kept: Option<&'a [u32]>,
) -> SeqStep<'a> {
    SeqStep {
        tokens,
        start_tok,
        blocks,
        kept,
        logits: Wanted::Last,
    }
}

#[test]
fn keeping_every_block_is_bit_equal_to_dense_and_keeping_few_is_not() {
    let shape = Shape::llama(6, 2, 16, true);
    let mut model = shape.model(1);
    let mut kv = KvPool::new(model.config(), 8, BLOCK).unwrap();
    let tokens = text(50, shape.vocab, 1);
    let blocks = [3, 1, 0, 7, 2, 5, 4];
    model
        .forward(&mut kv, &[step(&tokens[..49], 0, &blocks, None)])
        .unwrap();
    let mut last = |kept| {
        model
            .forward(&mut kv, &[step(&tokens[49..], 49, &blocks, kept)])
            .unwrap()
    };
    let dense = last(None);
    let all = last(Some(&[0, 1, 2, 3, 4, 5, 6]));
    assert_eq!(dense, all);
    let few = last(Some(&[0, 5]));
    assert_ne!(dense.logits, few.logits);
    assert!(
        few.mass[0][1].max == 0.0 && few.mass[0][6].max > 0.0,
        "the written block is always read"
    );
    assert_eq!(
        few.kv_bytes,
        (8 + 8 + 2) * model.config().kv_bytes_per_tok()
    );
    let mean: f64 = few.mass[0].iter().map(|m| m.mean).sum();
    assert!((mean - 1.0).abs() < 1e-5, "{mean}");
}

#[test]
fn attention_mass_is_that_of_the_last_row_of_each_sequence() {
    let shape = Shape::llama(4, 2, 16, true);
    let mut model = shape.model(2);
    let mut kv = KvPool::new(model.config(), 8, BLOCK).unwrap();
    let (a, b) = (text(20, shape.vocab, 1), text(9, shape.vocab, 2));
    let together = model
        .forward(
            &mut kv,
            &[step(&a, 0, &[0, 1, 2, 6], None), step(&b, 0, &[3, 4], None)],
        )
        .unwrap();
    let last = model
        .forward(&mut kv, &[step(&a[19..], 19, &[0, 1, 2, 6], None)])
        .unwrap();
    assert_eq!(together.mass[0], last.mass[0]);
    assert_eq!(
        together.mass[0][3].mean, 0.0,
        "a block past the text has no mass"
    );
    for mass in &together.mass {
        let mean: f64 = mass.iter().map(|m| m.mean).sum();
        assert!((mean - 1.0).abs() < 1e-5);
        assert!(mass.iter().all(|m| m.mean <= m.max && m.max <= 1.0 + 1e-6));
    }
}

#[test]
fn work_is_counted_by_its_formula() {
    let shape = Shape::llama(4, 2, 16, true);
    let mut model = shape.model(2);
    let mut kv = KvPool::new(model.config(), 8, BLOCK).unwrap();
    let tokens = text(3, shape.vocab, 1);
    let out = model
        .forward(&mut kv, &[step(&tokens, 0, &[0], None)])
        .unwrap();
    let (hidden, qkv, ffn) = (64, (4 + 2 * 2) * 16, 80);
    let dense = 3 * 3 * (hidden * qkv + hidden * hidden + 3 * hidden * ffn);
    let attention = 3 * 4 * 16 * 2 * (1 + 2 + 3);
    assert_eq!(out.flops, 2 * (dense + attention + 97 * hidden) as u64);
    assert_eq!(out.kv_bytes, 3 * (2 * 3 * 2 * 16 * 4));
    assert_eq!((out.tokens, out.logits.len()), (3, 97));
    assert_eq!(
        kv.bytes(),
        8 * BLOCK as u64 * model.config().kv_bytes_per_tok()
    );
}

#[test]
fn only_the_rows_asked_for_get_logits() {
    let shape = Shape::llama(4, 2, 16, false);
    let mut model = shape.model(2);
    let mut kv = KvPool::new(model.config(), 8, BLOCK).unwrap();
    let tokens = text(5, shape.vocab, 1);
    let ask = |blocks, logits| SeqStep {
        tokens: &tokens,
        start_tok: 0,
        blocks,
        kept: None,
        logits,
    };
    let steps = [
        ask(&[0], Wanted::None),
        ask(&[1], Wanted::All),
        ask(&[2], Wanted::Last),
    ];
    let out = model.forward(&mut kv, &steps).unwrap();
    assert_eq!(out.rows, [0..0, 0..5, 5..6]);
    assert_eq!(out.logits[4 * 97..5 * 97], out.logits[5 * 97..]);
}

#[test]
fn impossible_steps_are_refused_with_the_values_seen() {
    let shape = Shape::llama(4, 2, 16, true);
    let mut model = shape.model(2);
    let mut kv = KvPool::new(model.config(), 8, BLOCK).unwrap();
    let mut fault = |bad: SeqStep| match model
        .forward(&mut kv, &[step(&[1], 0, &[0], None), bad])
        .unwrap_err()
    {
        ModelError::Step { seq: 1, reason } => reason,
        other => panic!("{other}"),
    };
    assert_eq!(fault(step(&[], 0, &[0], None)), StepFault::Empty);
    assert_eq!(
        fault(step(&[97], 0, &[0], None)),
        StepFault::Token {
            token: 97,
            vocab: 97
        }
    );
    let long = StepFault::Context {
        end_tok: 129,
        context_tok: 128,
    };
    assert_eq!(fault(step(&[1], 128, &[0; 17], None)), long);
    let short = StepFault::Blocks {
        end_tok: 9,
        block_tok: 8,
        needed: 2,
        seen: 1,
    };
    assert_eq!(fault(step(&[1], 8, &[0], None)), short);
    assert_eq!(
        fault(step(&[1], 0, &[8], None)),
        StepFault::Pool {
            block: 8,
            n_blocks: 8
        }
    );
    assert_eq!(
        fault(step(&[1], 0, &[1], Some(&[1]))),
        StepFault::Kept { block: 1, table: 1 }
    );
    let order = StepFault::KeptOrder {
        previous: 1,
        block: 0,
    };
    assert_eq!(fault(step(&[1], 0, &[1, 2], Some(&[1, 0]))), order);
}

#[test]
fn a_cache_larger_than_memory_is_an_error() {
    let config = Shape::llama(4, 2, 16, true).model(1).config().clone();
    let error = KvPool::new(&config, usize::MAX, 16).unwrap_err();
    assert!(matches!(error, ModelError::KvMemory { .. }), "{error}");
    assert!(KvPool::new(&config, 0, 16).is_err());
}

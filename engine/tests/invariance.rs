//! The same token has the same logits however its text is cut up and whatever runs beside it.

mod common;

use common::{Shape, engine_logits, text};
use etime_engine::{KvPool, Model, SeqStep, Wanted};

const BLOCK: usize = 16;

fn bits(rows: &[Vec<f32>]) -> Vec<u32> {
    rows.iter().flatten().map(|x| x.to_bits()).collect()
}

#[test]
fn prefill_chunked_prefill_and_token_by_token_are_bit_equal() {
    for shape in [Shape::llama(9, 3, 16, true), Shape::llama(4, 4, 32, false)] {
        let tokens = text(75, shape.vocab, 3);
        let mut model = shape.model(1);
        let whole = engine_logits(&mut model, &tokens, tokens.len(), BLOCK);
        for chunk in [1, 3, BLOCK - 1, BLOCK, BLOCK + 1] {
            let cut = engine_logits(&mut model, &tokens, chunk, BLOCK);
            assert_eq!(bits(&cut), bits(&whole), "chunk {chunk}");
        }
    }
}

/// Runs each text as a prefill of all but its last three tokens and three decode steps, all texts together.
fn together(model: &mut Model, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let tables: Vec<Vec<u32>> = (0..texts.len() as u32)
        .map(|s| (0..5).map(|b| b * 8 + s).collect())
        .collect();
    let mut kv = KvPool::new(model.config(), 40, BLOCK).unwrap();
    let mut logits = vec![vec![]; texts.len()];
    for stage in 0..4 {
        let mut steps = vec![];
        for (text, blocks) in texts.iter().zip(&tables) {
            let prefill = text.len() - 3;
            let (start_tok, tokens) = match stage {
                0 => (0, &text[..prefill]),
                _ => (
                    prefill + stage - 1,
                    &text[prefill + stage - 1..prefill + stage],
                ),
            };
            steps.push(SeqStep {
                tokens,
                start_tok,
                blocks,
                kept: None,
                logits: Wanted::Last,
            });
        }
        let out = model.forward(&mut kv, &steps).unwrap();
        let vocab = model.config().vocab;
        for (all, rows) in logits.iter_mut().zip(&out.rows) {
            all.extend_from_slice(&out.logits[rows.start * vocab..rows.end * vocab]);
        }
    }
    logits
}

#[test]
fn a_sequence_alone_is_bit_equal_to_the_same_among_seven_others() {
    let shape = Shape::llama(9, 3, 16, true);
    let mut model = shape.model(2);
    let texts: Vec<Vec<u32>> = (0..8)
        .map(|s| text(20 + 7 * s, shape.vocab, s as u64))
        .collect();
    let all = together(&mut model, &texts);
    for (i, one) in texts.iter().enumerate() {
        let alone = together(&mut model, std::slice::from_ref(one));
        assert_eq!(bits(&alone), bits(&all[i..i + 1]), "sequence {i}");
    }
}

#[test]
fn logits_have_the_same_bits_on_one_thread_and_on_four() {
    let shape = Shape::llama(9, 3, 64, true);
    let tokens = text(60, shape.vocab, 8);
    let run = |n| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n)
            .build()
            .unwrap();
        pool.install(|| engine_logits(&mut shape.model(4), &tokens, 32, BLOCK))
    };
    assert_eq!(bits(&run(1)), bits(&run(4)));
}

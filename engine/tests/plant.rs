//! The engine behind the plant interface.

mod common;

use common::{Shape, text};
use etime_control::draw::{DrawKey, LogitShape, Pick, draw};
use etime_control::plant::{Batch, DrawAsk, LogitRows, Plant, PlantError, Row, ThermalAsk, Work};
use etime_control::sensor::{Thermal, thermal};
use etime_engine::{Engine, KvPool, SeqStep, Wanted};

fn work(
    request: u64,
    tokens: Vec<u32>,
    start_tok: usize,
    blocks: &[u32],
    wants_logits: bool,
) -> Work {
    Work {
        request,
        tokens,
        start_tok,
        blocks: blocks.to_vec(),
        wants_logits,
    }
}

#[test]
fn the_plant_answers_from_the_rows_of_the_latest_step() {
    let shape = Shape::llama(6, 2, 16, true);
    let mut engine = Engine::new(shape.model(3), 8, 8).unwrap();
    let tokens = text(12, shape.vocab, 1);
    let works = vec![
        work(7, tokens[..5].to_vec(), 0, &[0], false),
        work(9, tokens.clone(), 0, &[1, 2], true),
    ];
    let report = engine.forward(&Batch { works }).unwrap();
    assert_eq!(report.cost.tokens, 17);
    assert!(report.cost.measured_s.is_some_and(|s| s > 0.0));
    assert_eq!(
        report.block_mass.iter().map(Vec::len).collect::<Vec<_>>(),
        [1, 2]
    );

    let mut model = shape.model(3);
    let mut kv = KvPool::new(model.config(), 2, 8).unwrap();
    let step = SeqStep {
        tokens: &tokens,
        start_tok: 0,
        blocks: &[0, 1],
        kept: None,
        logits: Wanted::Last,
    };
    let alone = model.forward(&mut kv, &[step]).unwrap().logits;
    assert_eq!(engine.logits(Row(1)).unwrap(), alone);

    let mut out = [Thermal::default(); 2];
    let ask = |u| ThermalAsk {
        row: Row(1),
        u,
        top_k: Some(10),
    };
    engine.thermal(&[ask(0.0), ask(-0.5)], &mut out).unwrap();
    assert_eq!(
        out,
        [0.0, -0.5].map(|u| thermal(&alone, u, Some(10)).unwrap())
    );

    let shape = LogitShape::Temperature { u: 0.2 };
    let pick = Pick::Key(DrawKey {
        seed: 1,
        request: 9,
        token: 0,
    });
    let drawn = engine
        .draw(&[DrawAsk {
            row: Row(1),
            shape,
            pick,
        }])
        .unwrap();
    assert_eq!(drawn, [draw(&alone, shape, pick).unwrap()]);
}

#[test]
fn a_row_that_was_not_computed_is_an_error_that_names_it() {
    let shape = Shape::llama(4, 2, 16, true);
    let mut engine = Engine::new(shape.model(3), 8, 8).unwrap();
    assert!(matches!(
        engine.logits(Row(0)),
        Err(PlantError::NoRow { row: 0 })
    ));
    engine
        .forward(&Batch {
            works: vec![work(1, vec![1, 2], 0, &[0], false)],
        })
        .unwrap();
    assert!(matches!(
        engine.logits(Row(0)),
        Err(PlantError::NoRow { row: 0 })
    ));
    engine
        .forward(&Batch {
            works: vec![work(1, vec![3], 2, &[0], true)],
        })
        .unwrap();
    assert!(engine.logits(Row(0)).is_ok());
    let outside = Batch {
        works: vec![work(1, vec![3], 8, &[0], true)],
    };
    let error = engine.forward(&outside).unwrap_err().to_string();
    assert!(
        error.contains("9 tokens need 2 blocks of 8, its table has 1"),
        "{error}"
    );
    assert!(
        engine.logits(Row(0)).is_err(),
        "a failed step leaves no rows"
    );
}

#[test]
fn an_unusable_temperature_names_the_request() {
    let shape = Shape::llama(4, 2, 16, true);
    let mut engine = Engine::new(shape.model(3), 8, 8).unwrap();
    engine
        .forward(&Batch {
            works: vec![work(41, vec![1, 2], 0, &[0], true)],
        })
        .unwrap();
    let ask = ThermalAsk {
        row: Row(0),
        u: f64::NAN,
        top_k: None,
    };
    let error = engine
        .thermal(&[ask], &mut [Thermal::default()])
        .unwrap_err();
    assert!(
        matches!(
            error,
            PlantError::Sensor {
                request: 41,
                position: 2,
                ..
            }
        ),
        "{error}"
    );
}

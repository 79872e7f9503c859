//! Row shapes, and the loop on one row for ever.

mod common;

use common::{corrected, drive, requests};
use etime_control::plant::{Batch, LogitRows, Plant, PlantError, Row, ThermalAsk, Work};
use etime_control::sensor::{Thermal, thermal};
use etime_sim::{Fixed, Logits, SimError};
use proptest::prelude::*;

#[test]
fn shapes_have_the_logits_that_their_names_say() {
    let row = |logits: Logits| logits.row().expect("a valid shape");
    let zipf = row(Logits::Zipf {
        vocab: 1000,
        exponent: 1.5,
    });
    assert_eq!(zipf[0], 0.0);
    assert!((f64::from(zipf[99]) + 1.5 * 100.0_f64.ln()).abs() < 1e-5);
    let spiked = row(Logits::Spiked {
        vocab: 50,
        gap: 4.0,
        spikes: 3,
    });
    assert_eq!(spiked.iter().filter(|z| **z == 4.0).count(), 3);
    assert_eq!(spiked.iter().filter(|z| **z == 0.0).count(), 47);
    let gaussian = |seed| {
        row(Logits::Gaussian {
            vocab: 40_000,
            sd: 2.5,
            seed,
        })
    };
    let square: f64 = gaussian(1).iter().map(|&z| f64::from(z).powi(2)).sum();
    assert!((square / 40_000.0 - 6.25).abs() < 0.2);
    assert_eq!(gaussian(1), gaussian(1));
    assert_ne!(gaussian(1), gaussian(2));
    assert_eq!(row(Logits::Values(vec![1.0, 2.0])), [1.0, 2.0]);
}

#[test]
fn shapes_outside_of_their_range_name_the_field() {
    let field = |logits: Logits| match logits.row() {
        Err(SimError::Field { field, .. }) => field,
        other => panic!("accepted: {other:?}"),
    };
    let zipf = |vocab, exponent| Logits::Zipf { vocab, exponent };
    assert_eq!(field(zipf(0, 1.0)), "vocab");
    assert_eq!(field(zipf(5, f64::NAN)), "exponent");
    let spiked = Logits::Spiked {
        vocab: 2,
        gap: 1.0,
        spikes: 3,
    };
    assert_eq!(field(spiked), "spikes");
    assert_eq!(field(Logits::Values(vec![f32::NAN])), "Values");
    assert_eq!(field(Logits::Values(vec![f32::NEG_INFINITY; 2])), "Values");
    assert_eq!(field(Logits::Values(Vec::new())), "vocab");
}

#[test]
fn rows_that_were_not_asked_for_are_errors() {
    let mut plant = Fixed::new(&Logits::Values(vec![0.0, 1.0])).expect("a valid row");
    let ask = |row| ThermalAsk {
        row: Row(row),
        u: 0.0,
        top_k: None,
    };
    let mut out = [Thermal::default()];
    let before = plant.thermal(&[ask(0)], &mut out);
    assert!(matches!(before, Err(PlantError::NoRow { row: 0 })));
    let work = |wants_logits| Work {
        request: 1,
        tokens: vec![5],
        start_tok: 0,
        blocks: vec![0],
        wants_logits,
    };
    let batch = Batch {
        works: vec![work(false), work(true)],
    };
    let report = plant.forward(&batch).expect("a pass");
    assert_eq!(report.cost.tokens, 2);
    assert!(matches!(
        plant.logits(Row(0)),
        Err(PlantError::NoRow { row: 0 })
    ));
    plant.thermal(&[ask(1)], &mut out).expect("a row");
    assert_eq!(out[0], thermal(&[0.0, 1.0], 0.0, None).expect("valid"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_corrected_loop_settles_on_its_setpoint_on_one_row(
        exponent in 0.6_f64..1.4, t in 0.5_f64..1.8, seed in any::<u64>()
    ) {
        let logits = Logits::Zipf { vocab: 200, exponent };
        let row = logits.row()?;
        let target = thermal(&row, t.ln(), None)?;
        let mut plant = Fixed::new(&logits)?;
        let law = corrected(0.5 / target.v, target.h_nats);
        let run = drive(&mut plant, law, &requests(0..2, 120), seed);
        for u in run.u_end {
            prop_assert!((u - t.ln()).abs() < 1e-6, "u {u}, {}", t.ln());
        }
    }
}

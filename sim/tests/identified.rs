//! The identified plant must predict a closed loop that it never saw, from open-loop recordings alone.

mod common;

use common::{Summary, corrected, drive, entropies, requests, summary, synthetic};
use etime_control::draw::{DrawKey, LogitShape, Pick, draw, uniform};
use etime_control::law::TemperatureLaw;
use etime_control::plant::Plant;
use etime_sim::{
    Bank, BankSpec, Identified, Process, RecordedRequest, RecordedStep, Recorder, Recording,
    SimError,
};
use std::sync::Arc;

const LEN_TOK: usize = 160;

fn process() -> Process {
    Process::Ar1 { phi: 0.9, sd: 0.35 }
}

/// Open-loop recordings at five temperatures, 24 requests each.
fn recordings(feedback_per_nat: f64) -> Vec<Recording> {
    let at = |(t, seed): (f64, u64)| {
        let plant = synthetic(process(), feedback_per_nat, seed);
        let mut recorder = Recorder::new(plant, format!("T = {t}"));
        let law = TemperatureLaw::Fixed { t };
        drive(&mut recorder, law, &requests(0..24, LEN_TOK), seed);
        recorder.finish().1
    };
    [0.5, 0.75, 1.0, 1.3, 1.7]
        .into_iter()
        .zip(1..)
        .map(at)
        .collect()
}

fn bank(recordings: &[Recording]) -> Bank {
    Bank::new(recordings, BankSpec::default()).expect("a bank")
}

/// Entropy under a law that no recording was made with.
fn closed_loop<P: Plant>(plant: &mut P) -> Summary {
    let run = drive(plant, corrected(0.1, 2.2), &requests(100..160, LEN_TOK), 77);
    summary(&entropies(&run, 30))
}

/// The same recordings with the steps of each request in random order.
fn shuffled(mut recordings: Vec<Recording>) -> Vec<Recording> {
    for held in recordings.iter_mut().flat_map(|r| &mut r.requests) {
        for i in (1..held.rows.len()).rev() {
            let key = DrawKey {
                seed: 9,
                request: held.request,
                token: i as u64,
            };
            let j = (uniform(key) * (i + 1) as f64) as usize;
            held.rows.swap(i, j);
            held.steps.swap(i, j);
        }
    }
    recordings
}

#[test]
fn resampling_predicts_mean_spread_and_correlation_of_an_unseen_closed_loop() {
    for feedback_per_nat in [0.0, 0.04] {
        let truth = closed_loop(&mut synthetic(process(), feedback_per_nat, 50));
        let recordings = recordings(feedback_per_nat);
        let seen = closed_loop(&mut Identified::new(&bank(&recordings), 51));
        println!(
            "feedback {feedback_per_nat}: mean {:.3} {:.3}, sd {:.3} {:.3}, lag 1 {:.3} {:.3}",
            truth.mean, seen.mean, truth.sd, seen.sd, truth.lag1, seen.lag1
        );
        assert!((seen.mean - truth.mean).abs() < 0.05);
        assert!((seen.sd / truth.sd - 1.0).abs() < 0.1);
        assert!((seen.lag1 - truth.lag1).abs() < 0.05);

        let control = closed_loop(&mut Identified::new(&bank(&shuffled(recordings)), 51));
        println!("shuffled: sd {:.3}, lag 1 {:.3}", control.sd, control.lag1);
        assert!(control.lag1 < truth.lag1 - 0.3, "{}", control.lag1);
    }
}

#[test]
fn a_sequence_does_not_depend_on_its_neighbours() {
    let bank = bank(&recordings(0.04));
    let run = |ids: Vec<u64>| {
        let mut plant = Identified::new(&bank, 3);
        let run = drive(
            &mut plant,
            corrected(0.1, 2.0),
            &requests(ids.into_iter(), 60),
            3,
        );
        run.of_request(7)
            .map(|s| (s.token, s.h_nats, s.u))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(vec![7]), run(vec![4, 7, 9]));
}

#[test]
fn a_left_out_group_is_never_resampled() {
    let recordings = recordings(0.0);
    let whole = bank(&recordings);
    let part = whole.without_group(1, 6).expect("enough is left");
    assert_eq!(whole.len(), 5 * 24 * LEN_TOK);
    assert_eq!(part.len(), 5 * 20 * LEN_TOK);
    let left_out = |h: f64| {
        let requests = recordings
            .iter()
            .flat_map(|r| r.requests.iter().skip(1).step_by(6));
        let mut rows = requests.flat_map(|held| &held.rows);
        rows.any(|row| {
            etime_control::sensor::thermal(row, 0.0, None)
                .expect("valid")
                .h_nats
                == h
        })
    };
    let draws = |bank: &Bank| {
        let mut plant = Identified::new(bank, 5);
        let run = drive(
            &mut plant,
            TemperatureLaw::Fixed { t: 1.0 },
            &requests(0..8, 20),
            5,
        );
        run.samples
            .iter()
            .filter(|s| left_out(s.h_raw_nats))
            .count()
    };
    assert_eq!(draws(&part), 0);
    assert!(draws(&whole) > 0);
}

#[test]
fn banks_that_cannot_answer_are_refused() {
    let recordings = recordings(0.0);
    let with = |spec| Bank::new(&recordings, spec).map(|bank| bank.len());
    let field = |spec| match with(spec) {
        Err(SimError::Field { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let spec = BankSpec::default();
    assert_eq!(
        field(BankSpec {
            neighbours: 0,
            ..spec
        }),
        "neighbours"
    );
    assert_eq!(
        field(BankSpec {
            position_buckets: 0,
            ..spec
        }),
        "position_buckets"
    );
    assert_eq!(
        field(BankSpec {
            half_life_tok: 0.0,
            ..spec
        }),
        "half_life_tok"
    );
    let many = BankSpec {
        position_buckets: LEN_TOK + 1,
        ..spec
    };
    assert!(matches!(with(many), Err(SimError::EmptyBucket { .. })));
    assert!(matches!(
        Bank::new(&[], spec),
        Err(SimError::EmptyBucket {
            bucket: 0,
            buckets: 4
        })
    ));
    let mut ragged = recordings.clone();
    ragged[1].requests[2].steps.pop();
    let expected = SimError::Ragged {
        request: 2,
        rows: LEN_TOK,
        steps: LEN_TOK - 1,
    };
    assert_eq!(Bank::new(&ragged, spec).err(), Some(expected));
    let mut other = recordings.clone();
    other[1].vocab = 64;
    let expected = SimError::Vocab {
        request: 0,
        seen: 128,
        expected: 64,
    };
    assert_eq!(Bank::new(&other, spec).err(), Some(expected));
    let whole = bank(&recordings);
    assert!(matches!(
        whole.without_group(0, 1),
        Err(SimError::EmptyBucket { .. })
    ));
    assert!(matches!(
        whole.without_group(3, 3),
        Err(SimError::Field { .. })
    ));
}

/// A recording by hand: `next(index, row, token)` says which of `rows` follows.
fn by_hand(rows: &[[f32; 2]], next: impl Fn(usize, usize, u32) -> usize) -> Recording {
    let rows: Vec<Arc<[f32]>> = rows.iter().map(|row| Arc::from(&row[..])).collect();
    let sequence = |request| {
        let mut held = RecordedRequest {
            request,
            prompt_tok: 1,
            ..RecordedRequest::default()
        };
        let mut at = 0;
        for index in 0..80 {
            let key = DrawKey {
                seed: 1,
                request,
                token: index as u64,
            };
            let shape = LogitShape::Temperature { u: 0.0 };
            let drawn = draw(&rows[at], shape, Pick::Key(key)).expect("a valid row");
            held.rows.push(Arc::clone(&rows[at]));
            held.steps.push(RecordedStep {
                token: drawn.token,
                u: 0.0,
                surprisal_nats: drawn.surprisal_nats,
                raw_surprisal_nats: drawn.raw_surprisal_nats,
            });
            at = next(index, at, drawn.token);
        }
        held
    };
    Recording {
        vocab: 2,
        descriptor: "by hand".to_string(),
        requests: (0..100).map(sequence).collect(),
    }
}

/// Raw entropies and tokens of runs on the plant identified from `recording`.
fn resampled(recording: Recording) -> Vec<Vec<(f64, u32)>> {
    let spec = BankSpec {
        neighbours: 4,
        ..BankSpec::default()
    };
    let bank = Bank::new(&[recording], spec).expect("a bank");
    let law = TemperatureLaw::Fixed { t: 1.2 };
    let run = drive(&mut Identified::new(&bank, 2), law, &requests(0..20, 80), 6);
    let of = |id| run.of_request(id).map(|s| (s.h_raw_nats, s.token));
    run.requests()
        .into_iter()
        .map(|id| of(id).collect())
        .collect()
}

#[test]
fn the_drawn_token_decides_the_next_row_where_it_did_in_the_recording() {
    // Token 0 leads to the sharp row, token 1 to the flat one.
    let recording = by_hand(&[[2.0, 0.0], [0.5, 0.0]], |_, _, token| token as usize);
    for text in resampled(recording) {
        for pair in text.windows(2) {
            let ((_, token), (h_nats, _)) = (pair[0], pair[1]);
            assert_eq!(h_nats > 0.5, token == 1);
        }
    }
}

#[test]
fn the_next_row_comes_from_the_same_part_of_the_text() {
    // The last quarter of every recorded text is sharp.
    let rows = [[0.5, 0.0], [0.6, 0.0], [5.0, 0.0]];
    let recording = by_hand(&rows, |index, _, token| match index {
        60.. => 2,
        _ => token as usize,
    });
    for text in resampled(recording) {
        for (index, (h_nats, _)) in text.into_iter().enumerate() {
            assert_eq!(h_nats < 0.4, index > 60, "{index}");
        }
    }
}

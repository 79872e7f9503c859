//! Recording and exact replay.

mod common;

use common::{corrected, drive, requests, synthetic, try_drive};
use etime_control::driver::RunError;
use etime_control::law::TemperatureLaw;
use etime_control::plant::PlantError;
use etime_control::trajectory::Trajectory;
use etime_sim::{Process, Recorder, Recording, Replay, SimError};
use proptest::prelude::*;

const OPEN: TemperatureLaw = TemperatureLaw::Fixed { t: 0.9 };

fn record(law: TemperatureLaw, new_tok: usize, seed: u64) -> (Trajectory, Recording) {
    let plant = synthetic(Process::Ar1 { phi: 0.8, sd: 0.3 }, 0.05, seed);
    let mut recorder = Recorder::new(plant, "dense");
    let run = drive(&mut recorder, law, &requests(0..3, new_tok), seed);
    (run, recorder.finish().1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_same_controller_on_the_recording_gives_the_same_trajectory_bit_for_bit(
        seed in any::<u64>(), eta in 0.01_f64..0.3, target in 1.0_f64..3.0
    ) {
        let (measured, recording) = record(corrected(eta, target), 40, seed);
        let mut plant = Replay::new(&recording);
        let replayed = drive(&mut plant, corrected(eta, target), &requests(0..3, 40), seed);
        prop_assert_eq!(measured, replayed);
    }
}

#[test]
fn a_controller_with_the_wrong_gain_does_not_replay_the_trajectory() {
    let (measured, recording) = record(corrected(0.05, 2.0), 40, 1);
    let mut plant = Replay::new(&recording);
    let wrong = drive(&mut plant, corrected(0.1, 2.0), &requests(0..3, 40), 1);
    assert_ne!(measured, wrong);
    let raw = |run: &Trajectory| run.samples.iter().map(|s| s.h_raw_nats).collect::<Vec<_>>();
    assert_eq!(raw(&measured), raw(&wrong));
}

#[test]
fn a_recording_holds_what_was_drawn_and_from_which_row() {
    let (run, recording) = record(OPEN, 25, 2);
    assert_eq!((recording.vocab, recording.len()), (128, 75));
    assert_eq!(recording.descriptor, "dense");
    for id in 0..3 {
        let held = recording.request(id).expect("recorded");
        assert_eq!(held.prompt_tok, 3);
        assert_eq!(held.rows.len(), held.steps.len());
        for (sample, step) in run.of_request(id).zip(&held.steps) {
            assert_eq!(step.token, sample.token);
            assert_eq!(step.u, sample.u);
            assert_eq!(step.surprisal_nats, sample.surprisal_nats);
            assert_eq!(step.raw_surprisal_nats, sample.surprisal_raw_nats);
        }
    }
    assert_eq!(recording.request(3), None);
}

#[test]
fn a_plant_answers_the_same_with_and_without_a_recorder() {
    let mut bare = synthetic(Process::Ar1 { phi: 0.8, sd: 0.3 }, 0.05, 3);
    let plain = drive(&mut bare, OPEN, &requests(0..3, 30), 3);
    assert_eq!(plain, record(OPEN, 30, 3).0);
}

#[test]
fn a_recording_can_be_replayed_again_and_in_part() {
    let (measured, recording) = record(OPEN, 30, 4);
    let mut plant = Replay::new(&recording);
    drive(&mut plant, OPEN, &requests(0..3, 10), 4);
    assert_eq!(measured, drive(&mut plant, OPEN, &requests(0..3, 30), 4));
}

#[test]
fn requests_and_tokens_beyond_the_recording_are_errors_with_numbers() {
    let (_, recording) = record(OPEN, 5, 5);
    let ask = |ids, new_tok| {
        let mut plant = Replay::new(&recording);
        try_drive(&mut plant, OPEN, &requests(ids, new_tok), 5).expect_err("not recorded")
    };
    let RunError::Plant(PlantError::UnknownRequest { request: 8, held }) = ask(8..9, 5) else {
        panic!("request 8 was found");
    };
    assert_eq!(held, "0, 1, 2");
    assert!(matches!(
        ask(1..2, 6),
        RunError::Plant(PlantError::RecordingEnds {
            request: 1,
            held_tok: 5,
            asked_tok: 6
        })
    ));
}

#[test]
fn a_second_run_into_the_same_recording_is_refused() {
    let plant = synthetic(Process::Iid { sd: 0.1 }, 0.0, 1);
    let mut recorder = Recorder::new(plant, "dense");
    drive(&mut recorder, OPEN, &requests(0..1, 5), 1);
    let again = try_drive(&mut recorder, OPEN, &requests(0..1, 5), 1);
    let Err(RunError::Plant(PlantError::Other(error))) = again else {
        panic!("accepted");
    };
    let expected = SimError::OutOfOrder {
        request: 0,
        seen_tok: 3,
        expected_tok: 8,
    };
    assert_eq!(error.downcast_ref::<SimError>(), Some(&expected));
}

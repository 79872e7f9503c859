//! The sharpness process, its streams and its text feedback.

mod common;

use common::{corrected, drive, requests, summary, synthetic};
use etime_control::law::TemperatureLaw;
use etime_control::plant::{Batch, Plant, Work};
use etime_control::trajectory::{Sample, Trajectory};
use etime_sim::{Logits, Process, Regime, SimError, Synthetic, SyntheticSpec};
use proptest::prelude::*;

const OPEN: TemperatureLaw = TemperatureLaw::Fixed { t: 1.0 };

/// ln sharpness of `sequences` sequences, without any draw and so without feedback.
fn paths(process: Process, sequences: u64, len: usize) -> Vec<Vec<f64>> {
    let mut plant = synthetic(process, 0.0, 5);
    let path = |request| {
        let step = |t| {
            let work = Work {
                request,
                tokens: vec![0],
                start_tok: t,
                blocks: vec![0],
                wants_logits: true,
            };
            let batch = Batch { works: vec![work] };
            plant.forward(&batch).expect("a pass");
            plant.ln_sharpness(request).expect("a state")
        };
        (0..len).map(step).collect()
    };
    (0..sequences).map(path).collect()
}

/// Samples of one request with the step numbers left out: they depend on the batch.
fn text(run: &Trajectory, request: u64) -> Vec<Sample> {
    let samples = run.of_request(request).copied();
    samples
        .map(|s| Sample {
            step: 0,
            time: 0.0,
            ..s
        })
        .collect()
}

#[test]
fn an_autoregressive_sharpness_has_its_standard_deviation_and_correlation() {
    for (phi, sd) in [(0.9, 0.4), (-0.5, 0.2), (0.0, 0.3)] {
        let seen = summary(&paths(Process::Ar1 { phi, sd }, 200, 400));
        assert!(seen.mean.abs() < 0.05 * sd, "{}", seen.mean);
        assert!((seen.sd / sd - 1.0).abs() < 0.03, "{}", seen.sd);
        assert!((seen.lag1 - phi).abs() < 0.02, "{}", seen.lag1);
    }
}

#[test]
fn the_first_state_is_already_stationary() {
    let first = paths(Process::Ar1 { phi: 0.95, sd: 0.5 }, 4000, 1);
    let sd = summary(&first).sd;
    assert!((sd / 0.5 - 1.0).abs() < 0.05, "{sd}");
}

#[test]
fn independent_sharpness_has_no_memory() {
    let seen = summary(&paths(Process::Iid { sd: 0.7 }, 100, 400));
    assert!((seen.sd / 0.7 - 1.0).abs() < 0.03);
    assert!(seen.lag1.abs() < 0.02, "{}", seen.lag1);
}

#[test]
fn regimes_last_as_long_as_they_should_and_share_the_time() {
    let levels = [-1.0, 0.0, 1.0].map(|mean| Regime { mean, sd: 0.0 });
    let process = Process::Regimes {
        stay: 0.9,
        levels: levels.to_vec(),
    };
    let paths = paths(process, 100, 400);
    let pairs: Vec<&[f64]> = paths.iter().flat_map(|p| p.windows(2)).collect();
    let stays = pairs.iter().filter(|w| w[0] == w[1]).count() as f64 / pairs.len() as f64;
    assert!((stays - 0.9).abs() < 0.01, "{stays}");
    for level in levels {
        let all = paths.iter().flatten();
        let share = all.filter(|x| **x == level.mean).count() as f64 / 40_000.0;
        assert!((share - 1.0 / 3.0).abs() < 0.04, "{share}");
    }
}

#[test]
fn every_symbol_is_drawn_equally_often_over_many_tokens() {
    let mut plant = synthetic(Process::Iid { sd: 0.3 }, 0.0, 1);
    let run = drive(&mut plant, OPEN, &requests(0..20, 640), 3);
    let mut counts = [0.0_f64; 128];
    run.samples
        .iter()
        .for_each(|s| counts[s.token as usize] += 1.0);
    let want = 12_800.0 / 128.0;
    let chi_square: f64 = counts.iter().map(|c| (c - want).powi(2) / want).sum();
    // 0.999 quantile of chi-square with 127 degrees of freedom.
    assert!(chi_square < 181.99, "{chi_square}");
}

#[test]
fn text_feedback_moves_the_next_state_and_a_gain_of_zero_does_not() {
    let ar1 = Process::Ar1 { phi: 0.8, sd: 0.2 };
    let run = |gain: f64| {
        let mut plant = synthetic(ar1.clone(), gain, 2);
        drive(&mut plant, OPEN, &requests(0..1, 300), 4)
    };
    let entropies = |gain| {
        run(gain)
            .samples
            .iter()
            .map(|s| s.h_raw_nats)
            .collect::<Vec<_>>()
    };
    let (open, fed) = (entropies(0.0), entropies(0.1));
    // The first surprisal has nothing to be compared with, so the third row is the first to differ.
    assert_eq!(open[..2], fed[..2]);
    assert_ne!(open[2], fed[2]);

    // Sharper after a surprise: the change of H goes against the surprisal before it.
    let slope = |gain| {
        let run = run(gain);
        let pairs = run.samples.windows(2).skip(20);
        pairs
            .map(|w| {
                (w[1].h_raw_nats - w[0].h_raw_nats) * (w[0].surprisal_raw_nats - w[0].h_raw_nats)
            })
            .sum::<f64>()
            / 280.0
    };
    assert!(
        slope(0.1) < slope(0.0) - 0.1,
        "{} {}",
        slope(0.1),
        slope(0.0)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_sequence_does_not_depend_on_its_neighbours_or_on_their_order(
        seed in any::<u64>(), stay in 0.5_f64..1.0, gain in -0.1_f64..0.1, eta in 0.01_f64..0.2
    ) {
        let levels = vec![Regime { mean: -0.3, sd: 0.1 }, Regime { mean: 0.6, sd: 0.2 }];
        let process = Process::Regimes { stay, levels };
        let run = |ids: Vec<u64>| {
            let mut plant = synthetic(process.clone(), gain, seed);
            drive(&mut plant, corrected(eta, 2.0), &requests(ids.into_iter(), 40), seed)
        };
        let alone = text(&run(vec![7]), 7);
        prop_assert_eq!(&alone, &text(&run(vec![1, 7, 3]), 7));
        prop_assert_eq!(&alone, &text(&run(vec![9, 3, 1, 7]), 7));
    }

    #[test]
    fn a_sequence_that_starts_afresh_repeats_itself(seed in any::<u64>(), phi in -0.9_f64..0.9) {
        let mut plant = synthetic(Process::Ar1 { phi, sd: 0.3 }, 0.05, seed);
        let mut run = || drive(&mut plant, OPEN, &requests(2..4, 30), 1);
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn settings_outside_of_their_range_name_the_field() {
    let field = |process: Process, feedback_per_nat: f64| {
        let spec = SyntheticSpec {
            logits: Logits::Values(vec![0.0, 1.0]),
            process,
            feedback_per_nat,
        };
        match Synthetic::new(&spec, 0) {
            Err(SimError::Field { field, .. }) => field,
            Err(other) => panic!("{other}"),
            Ok(_) => "accepted",
        }
    };
    let ar1 = |phi, sd| Process::Ar1 { phi, sd };
    let regimes = |stay, levels| Process::Regimes { stay, levels };
    let flat = Regime { mean: 0.0, sd: 0.0 };
    assert_eq!(field(ar1(1.0, 0.1), 0.0), "phi");
    assert_eq!(field(ar1(f64::NAN, 0.1), 0.0), "phi");
    assert_eq!(field(ar1(0.5, -0.1), 0.0), "sd");
    assert_eq!(field(Process::Iid { sd: f64::NAN }, 0.0), "sd");
    assert_eq!(field(regimes(1.1, vec![flat]), 0.0), "stay");
    assert_eq!(field(regimes(0.5, vec![]), 0.0), "levels");
    assert_eq!(field(ar1(0.5, 0.1), f64::INFINITY), "feedback_per_nat");
    assert_eq!(field(regimes(1.0, vec![flat]), 0.5), "accepted");
}

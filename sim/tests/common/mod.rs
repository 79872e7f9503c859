//! Runs and statistics that the tests share.
#![allow(dead_code)] // Each test file uses its own part.

use etime_control::config::{Control, Limits};
use etime_control::driver::{Clock, Job, RunError, run};
use etime_control::law::{Integral, Measure, TemperatureLaw};
use etime_control::plant::Plant;
use etime_control::serve::Request;
use etime_control::trajectory::Trajectory;
use etime_sim::{Logits, Process, Synthetic, SyntheticSpec};

pub fn corrected(eta_per_nat: f64, target_nats: f64) -> TemperatureLaw {
    TemperatureLaw::Corrected(Integral {
        eta_per_nat,
        target_nats,
        t_min: 0.2,
        t_max: 3.0,
        t_start: 1.0,
        measure: Measure::Tempered,
        ema: 0.0,
        delay_tok: 0,
    })
}

pub fn requests(ids: impl Iterator<Item = u64>, new_tok: usize) -> Vec<Request> {
    ids.map(|id| Request {
        id,
        prompt: vec![1, 2, 3],
        new_tok,
        ..Request::default()
    })
    .collect()
}

pub fn try_drive<P: Plant>(
    plant: &mut P,
    temperature: TemperatureLaw,
    requests: &[Request],
    seed: u64,
) -> Result<Trajectory, RunError> {
    let longest = requests.iter().map(|r| r.prompt.len() + r.new_tok).max();
    let control = Control {
        temperature,
        pruning: Default::default(),
        priority: Default::default(),
        sensor: Default::default(),
        h_min_nats: 0.0,
    };
    let job = Job {
        control: &control,
        limits: Limits::roomy(requests.len(), longest.unwrap_or(1)),
        clock: Clock::Steps,
        seed,
        requests,
    };
    run(plant, &job, &mut |_| {})
}

pub fn drive<P: Plant>(
    plant: &mut P,
    temperature: TemperatureLaw,
    requests: &[Request],
    seed: u64,
) -> Trajectory {
    try_drive(plant, temperature, requests, seed).expect("the run completes")
}

pub fn synthetic(process: Process, feedback_per_nat: f64, seed: u64) -> Synthetic {
    let spec = SyntheticSpec {
        logits: Logits::Zipf {
            vocab: 128,
            exponent: 1.2,
        },
        process,
        feedback_per_nat,
    };
    Synthetic::new(&spec, seed).expect("a valid plant")
}

/// Pooled mean, standard deviation and lag-1 autocorrelation of series of one process.
pub struct Summary {
    pub mean: f64,
    pub sd: f64,
    pub lag1: f64,
}

pub fn summary(series: &[Vec<f64>]) -> Summary {
    let all: Vec<f64> = series.iter().flatten().copied().collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / all.len() as f64;
    let pairs: Vec<f64> = series
        .iter()
        .flat_map(|s| s.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)))
        .collect();
    Summary {
        mean,
        sd: variance.sqrt(),
        lag1: pairs.iter().sum::<f64>() / pairs.len() as f64 / variance,
    }
}

/// Tempered entropies of each request from token `from` on.
pub fn entropies(trajectory: &Trajectory, from: usize) -> Vec<Vec<f64>> {
    let of = |id| trajectory.of_request(id).skip(from).map(|s| s.h_nats);
    let ids = trajectory.requests().into_iter();
    ids.map(|id| of(id).collect()).collect()
}

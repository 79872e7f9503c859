//! Free: only seeds are held. An ensemble predicted from open-loop recordings meets an ensemble that was measured.
//!
//! The predicting plant resamples recordings that were made at fixed temperatures, with other seeds and other prompts
//! than the runs that are judged, so nothing of the closed loop enters the prediction.

use super::exact::record;
use crate::judge::{Comparison, Judged, Verdict, judge};
use crate::seed::derive;
use crate::signal::{Estimate, SequencePath, Signal, estimate};
use crate::tolerance::Tolerance;
use crate::workload::RunRequests;
use etime_control::config::{Control, Limits};
use etime_control::driver::{self, Clock, Job, Progress, RunError};
use etime_control::law::TemperatureLaw;
use etime_control::plant::LogitRows;
use etime_control::serve::Request;
use etime_control::trajectory::Trajectory;
use etime_sim::{Bank, BankSpec, Identified, Recording, SimError, ensemble};

/// What both ensembles share.
#[derive(Clone, Copy, Debug)]
pub struct FreeSetup<'a> {
    pub limits: Limits,
    pub clock: Clock,
    pub seed: u64,
    /// One entry per judged run.
    pub judged: &'a [RunRequests],
}

impl FreeSetup<'_> {
    pub(crate) fn job<'a>(
        &self,
        control: &'a Control,
        seed: u64,
        requests: &'a [Request],
    ) -> Job<'a> {
        Job {
            control,
            limits: self.limits,
            clock: self.clock,
            seed,
            requests,
        }
    }
}

/// Open-loop recordings: one per temperature, over the same requests.
pub fn record_open_loop<P: LogitRows + ?Sized>(
    engine: &mut P,
    setup: &FreeSetup,
    temperatures: &[f64],
    recorded: &RunRequests,
    control: &Control,
    observer: &mut dyn FnMut(Progress),
) -> Result<Vec<(Trajectory, Recording)>, RunError> {
    let one = |(index, &t): (usize, &f64)| {
        let open_loop = Control {
            temperature: TemperatureLaw::Fixed { t },
            ..control.clone()
        };
        let seed = derive(setup.seed, "record", index as u64);
        let job = setup.job(&open_loop, seed, &recorded.requests);
        record(engine, &job, observer)
    };
    temperatures.iter().enumerate().map(one).collect()
}

/// The closed loop on the engine, run by run.
pub fn measure<P: LogitRows + ?Sized>(
    engine: &mut P,
    setup: &FreeSetup,
    control: &Control,
    observer: &mut dyn FnMut(Progress),
) -> Result<Vec<Trajectory>, RunError> {
    let one = |(index, run): (usize, &RunRequests)| {
        let seed = derive(setup.seed, "measure", index as u64);
        driver::run(engine, &setup.job(control, seed, &run.requests), observer)
    };
    setup.judged.iter().enumerate().map(one).collect()
}

#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    #[error("the recordings do not make a plant: {0}")]
    Bank(#[from] SimError),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What the identified plant says before the engine runs.
#[derive(Clone, Debug)]
pub struct Prediction {
    pub runs: Vec<Trajectory>,
    /// The same ensemble from each disjoint part of the recordings alone: how much the recordings decide.
    pub parts: Vec<Vec<Trajectory>>,
}

/// Disjoint parts that the recordings are split into, by prompt.
pub const PARTS: usize = 8;

/// Predicts the judged ensemble under `control` from open-loop recordings.
pub fn predict(
    recordings: &[Recording],
    setup: &FreeSetup,
    control: &Control,
) -> Result<Prediction, PredictError> {
    let runs = simulate(
        &Bank::new(recordings, BankSpec::default())?,
        setup,
        control,
        "predict",
    )?;
    let mut parts = Vec::new();
    for part in 0..PARTS {
        let recordings = part_of(recordings, part);
        if recordings.iter().all(Recording::is_empty) {
            continue;
        }
        let bank = Bank::new(&recordings, BankSpec::default())?;
        parts.push(simulate(&bank, setup, control, &format!("part {part}"))?);
    }
    Ok(Prediction { runs, parts })
}

fn part_of(recordings: &[Recording], part: usize) -> Vec<Recording> {
    let keep = |recording: &Recording| {
        let requests = recording.requests.iter().skip(part).step_by(PARTS);
        Recording {
            requests: requests.cloned().collect(),
            ..recording.clone()
        }
    };
    recordings.iter().map(keep).collect()
}

fn simulate(
    bank: &Bank,
    setup: &FreeSetup,
    control: &Control,
    purpose: &str,
) -> Result<Vec<Trajectory>, RunError> {
    let indices: Vec<u64> = (0..setup.judged.len() as u64).collect();
    ensemble(&indices, |index| {
        let seed = derive(setup.seed, purpose, index);
        let run = &setup.judged[index as usize];
        let mut plant = Identified::new(bank, seed);
        driver::run(
            &mut plant,
            &setup.job(control, seed, &run.requests),
            &mut |_| {},
        )
    })
}

/// The free level, judged.
#[derive(Clone, Debug)]
pub struct Free {
    pub signals: Vec<Judged>,
    /// Signals that neither side determines: an open loop has no gain, a short way no settling.
    pub undetermined: Vec<Signal>,
    /// Mean H, shown and not judged.
    pub mean_h: [Option<Estimate>; 2],
}

impl Free {
    pub fn verdict(&self) -> Verdict {
        Verdict::overall(self.signals.iter().map(|s| s.verdict)).unwrap_or(Verdict::Inconclusive)
    }
}

/// Compares both ensembles signal by signal. `control` is the true one: it says what is being measured.
pub fn compare(
    setup: &FreeSetup,
    prediction: &Prediction,
    measured: &[Trajectory],
    control: &Control,
    tolerance: &Tolerance,
) -> Free {
    let law = &control.temperature;
    let paths = |runs: &[Trajectory]| -> Vec<SequencePath> {
        let pairs = runs.iter().zip(setup.judged);
        pairs
            .flat_map(|(run, requests)| SequencePath::all(run, &requests.prompts, law.measure()))
            .collect()
    };
    // A simulated sequence does not know its prompt: each is a cluster of its own.
    let mut predicted = paths(&prediction.runs);
    (0..)
        .zip(&mut predicted)
        .for_each(|(i, path)| path.cluster = i);
    let measured = paths(measured);
    let parts: Vec<Vec<SequencePath>> = prediction.parts.iter().map(|runs| paths(runs)).collect();

    let judged = Signal::JUDGED.iter().filter(|s| s.applies_to(law));
    let comparisons: Vec<Comparison> = judged
        .map(|&signal| {
            let measured = estimate(signal, &measured, derive(setup.seed, "bootstrap", 0));
            let limits = tolerance.of(signal, law, measured.map(|m| m.value));
            Comparison {
                signal,
                predicted: estimate(signal, &predicted, derive(setup.seed, "bootstrap", 1)),
                u_input: spread(signal, &parts),
                measured,
                tolerance: limits.tolerance,
                u_cap: limits.u_cap,
            }
        })
        .collect();
    let (open, closed): (Vec<_>, Vec<_>) = comparisons
        .into_iter()
        .partition(|c| c.predicted.is_none() && c.measured.is_none());
    Free {
        signals: judge(&closed),
        undetermined: open.iter().map(|c| c.signal).collect(),
        mean_h: [&predicted, &measured].map(|p| estimate(Signal::MeanH, p, setup.seed)),
    }
}

/// Standard error of the mean over predictions from disjoint parts of the recordings.
fn spread(signal: Signal, parts: &[Vec<SequencePath>]) -> f64 {
    let values: Vec<f64> = parts
        .iter()
        .filter_map(|paths| signal.value(&paths.iter().collect::<Vec<_>>()))
        .collect();
    if values.len() < 2 {
        return 0.0;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (square / (n - 1.0) / n).sqrt()
}

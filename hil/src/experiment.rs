//! Hardware in the loop on any engine: predict, measure, judge, level by level.

use crate::judge::Verdict;
use crate::level::exact::{self, Exact};
use crate::level::free::{self, Free, FreeSetup, PredictError, Prediction};
use crate::scenario::Level;
use crate::tolerance::Tolerance;
use crate::workload::RunRequests;
use etime_control::config::{Control, Limits};
use etime_control::driver::{Clock, Job, Progress, RunError};
use etime_control::law::{Band, Fault, FaultError};
use etime_control::plant::LogitRows;
use etime_control::sensor::thermal;
use etime_control::trajectory::Trajectory;
use etime_sim::Recording;
use serde::Serialize;

/// Everything an experiment needs beside the engine.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub control: Control,
    pub limits: Limits,
    pub clock: Clock,
    pub seed: u64,
    pub levels: Vec<Level>,
    pub tolerance: Tolerance,
    /// Put into the predicted controller alone.
    pub fault: Option<Fault>,
    /// One entry per judged run; the first serves replay and forced.
    pub judged: Vec<RunRequests>,
    /// All requests of an open-loop recording at one temperature.
    pub recorded: RunRequests,
    pub temperatures: Vec<f64>,
}

/// What the engine is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The closed loop whose logits are kept.
    Replay,
    /// The same tokens again on another temperature path.
    Forced,
    /// Open-loop recordings at fixed temperatures.
    Record,
    /// The plant made of them predicts.
    Predict,
    /// The judged ensemble.
    Measure,
}

impl Phase {
    pub fn label(self) -> &'static str {
        match self {
            Phase::Replay => "replay: measure",
            Phase::Forced => "forced: measure",
            Phase::Record => "free: record",
            Phase::Predict => "free: predict",
            Phase::Measure => "free: measure",
        }
    }
}

/// Told before each phase (with no tokens yet) and after each of its steps.
#[derive(Clone, Copy, Debug)]
pub struct HilProgress {
    pub phase: Phase,
    /// Tokens drawn in this phase, of all; a plan of 0 means that the phase draws none on the engine.
    pub drawn_tok: usize,
    pub planned_tok: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    #[error(transparent)]
    Fault(#[from] FaultError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Predict(#[from] PredictError),
}

/// Share of recorded rows on which the setpoint can be met within the law's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reachability {
    pub rows: usize,
    /// H(T_min) ≤ H* ≤ H(T_max).
    pub reachable_share: f64,
    /// H(T_min) > H*: T saturates at T_min.
    pub too_uncertain_share: f64,
    /// H(T_max) < H*: T saturates at T_max.
    pub too_certain_share: f64,
}

/// The free level with the ensembles behind it.
#[derive(Clone, Debug)]
pub struct FreeOutcome {
    pub free: Free,
    pub recorded: Vec<Trajectory>,
    pub prediction: Prediction,
    pub measured: Vec<Trajectory>,
}

/// All that was found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The closed loop whose logits were recorded, for replay and forced.
    pub recording: Option<Recording>,
    pub replay: Option<Exact>,
    pub forced: Option<Exact>,
    pub free: Option<FreeOutcome>,
    pub reachability: Option<Reachability>,
}

impl Outcome {
    /// Verdict of each level that ran, in the order of [`Level::ALL`].
    pub fn verdicts(&self) -> Vec<(Level, Verdict)> {
        let replay = self.replay.as_ref().map(|x| (Level::Replay, x.verdict()));
        let forced = self.forced.as_ref().map(|x| (Level::Forced, x.verdict()));
        let free = self.free.as_ref().map(|x| (Level::Free, x.free.verdict()));
        replay.into_iter().chain(forced).chain(free).collect()
    }

    pub fn overall(&self) -> Option<Verdict> {
        Verdict::overall(self.verdicts().into_iter().map(|(_, verdict)| verdict))
    }
}

/// Runs the levels that the experiment asks for.
pub fn run<P: LogitRows + ?Sized>(
    engine: &mut P,
    experiment: &Experiment,
    observer: &mut dyn FnMut(HilProgress),
) -> Result<Outcome, ExperimentError> {
    let mut predicted = experiment.control.clone();
    if let Some(fault) = experiment.fault {
        predicted.temperature = fault.inject(&predicted.temperature)?;
    }
    let mut outcome = Outcome::default();
    let asked = |level| experiment.levels.contains(&level);
    if asked(Level::Replay) || asked(Level::Forced) {
        run_exact(engine, experiment, &predicted, observer, &mut outcome)?;
    }
    if asked(Level::Free) {
        run_free(engine, experiment, &predicted, observer, &mut outcome)?;
    }
    Ok(outcome)
}

/// Turns a driver's progress into a phase's, over as many runs as the phase has.
fn relay<'a>(
    phase: Phase,
    planned_tok: usize,
    observer: &'a mut dyn FnMut(HilProgress),
) -> impl FnMut(Progress) + 'a {
    let mut drawn_tok = 0;
    observer(HilProgress {
        phase,
        drawn_tok,
        planned_tok,
    });
    move |progress: Progress| {
        drawn_tok += progress.fresh.len();
        observer(HilProgress {
            phase,
            drawn_tok,
            planned_tok,
        });
    }
}

fn planned_tok(run: &RunRequests) -> usize {
    run.requests.iter().map(|request| request.new_tok).sum()
}

fn run_exact<P: LogitRows + ?Sized>(
    engine: &mut P,
    experiment: &Experiment,
    predicted: &Control,
    observer: &mut dyn FnMut(HilProgress),
    outcome: &mut Outcome,
) -> Result<(), ExperimentError> {
    let Some(run) = experiment.judged.first() else {
        return Ok(());
    };
    let job = Job {
        control: &experiment.control,
        limits: experiment.limits,
        // Recorded rows carry no costs: both sides count steps.
        clock: Clock::Steps,
        seed: experiment.seed,
        requests: &run.requests,
    };
    let tokens = planned_tok(run);
    let (measured, recording) =
        exact::record(engine, &job, &mut relay(Phase::Replay, tokens, observer))?;
    outcome.reachability = reachability(&recording, experiment.control.temperature.band(), &job);
    if experiment.levels.contains(&Level::Replay) {
        outcome.replay = Some(exact::replay(measured, &recording, &job, predicted)?);
    }
    if experiment.levels.contains(&Level::Forced) {
        let mut relay = relay(Phase::Forced, tokens, observer);
        let forced = exact::forced(engine, &recording, &job, predicted, &mut relay)?;
        outcome.forced = Some(forced);
    }
    outcome.recording = Some(recording);
    Ok(())
}

fn run_free<P: LogitRows + ?Sized>(
    engine: &mut P,
    experiment: &Experiment,
    predicted: &Control,
    observer: &mut dyn FnMut(HilProgress),
    outcome: &mut Outcome,
) -> Result<(), ExperimentError> {
    let setup = FreeSetup {
        limits: experiment.limits,
        clock: experiment.clock,
        seed: experiment.seed,
        judged: &experiment.judged,
    };
    let recorded_tok = planned_tok(&experiment.recorded) * experiment.temperatures.len();
    let open_loop = free::record_open_loop(
        engine,
        &setup,
        &experiment.temperatures,
        &experiment.recorded,
        &experiment.control,
        &mut relay(Phase::Record, recorded_tok, observer),
    )?;
    let (recorded, recordings): (Vec<_>, Vec<_>) = open_loop.into_iter().unzip();
    drop(relay(Phase::Predict, 0, observer));
    let prediction = free::predict(&recordings, &setup, predicted)?;
    let measured_tok = experiment.judged.iter().map(planned_tok).sum();
    let measured = free::measure(
        engine,
        &setup,
        &experiment.control,
        &mut relay(Phase::Measure, measured_tok, observer),
    )?;
    let free = free::compare(
        &setup,
        &prediction,
        &measured,
        &experiment.control,
        &experiment.tolerance,
    );
    if outcome.reachability.is_none() {
        let job = setup.job(&experiment.control, experiment.seed, &[]);
        let band = experiment.control.temperature.band();
        outcome.reachability = recordings.first().and_then(|r| reachability(r, band, &job));
    }
    outcome.free = Some(FreeOutcome {
        free,
        recorded,
        prediction,
        measured,
    });
    Ok(())
}

/// Where the setpoint stands on the recorded rows; `None` for an open loop or an empty recording.
fn reachability(recording: &Recording, band: Option<Band>, job: &Job) -> Option<Reachability> {
    let (band, target) = (band?, job.control.temperature.target_nats()?);
    let mut counts = [0usize; 3];
    for row in recording.requests.iter().flat_map(|held| &held.rows) {
        let h = |u| thermal(row, u, None).map(|now| now.h_nats);
        let (Ok(coldest), Ok(hottest)) = (h(band.u_min), h(band.u_max)) else {
            continue;
        };
        let side = match (coldest > target, hottest < target) {
            (true, _) => 1,
            (_, true) => 2,
            _ => 0,
        };
        counts[side] += 1;
    }
    let rows: usize = counts.iter().sum();
    let share = |count: usize| count as f64 / rows as f64;
    (rows > 0).then(|| Reachability {
        rows,
        reachable_share: share(counts[0]),
        too_uncertain_share: share(counts[1]),
        too_certain_share: share(counts[2]),
    })
}

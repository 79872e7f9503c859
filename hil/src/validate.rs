//! `etime hil`: a scenario on the real engine, predicted, measured, judged, and written to a run directory.

use crate::experiment::{self, Experiment, ExperimentError, HilProgress, Outcome};
use crate::level::free::PARTS;
use crate::pictures::{self, PictureError};
use crate::prompts::{Prompts, read_prompts};
use crate::rundir::{
    About, BoxError, Destination, ModelRef, Phase, Place, RunDir, RunDirError, Side as Plant, Tag,
    Tagged, write_recording, write_requests, write_steps, write_timing, write_trajectory,
};
use crate::scenario::{Hil, Level, Loaded, ScenarioError, Workload};
use crate::summary::{self, ExactSummary, FreeSummary, LoopSummary, Summary};
use crate::workload::{Requests, RunRequests, Side, Texts, WorkloadError};
use etime_control::law::{Fault, FieldError};
use etime_control::trajectory::Trajectory;
use etime_engine::ModelError;
use etime_engine::load::{LoadError, Loaded as LoadedModel};
use etime_engine::settings::EngineConfig;
use etime_engine::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What the command line adds to a scenario.
#[derive(Clone, Debug)]
pub struct HilOptions {
    pub to: Destination,
    /// Put into the predicted controller alone.
    pub fault: Option<Fault>,
    /// Levels to judge in place of the scenario's.
    pub levels: Option<Vec<Level>>,
    /// Whether the recorded logits are written beside the results.
    pub keep_recording: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum HilError {
    #[error("{}: the scenario has no `{section}`: hardware in the loop needs both `engine` and `hil`", path.display())]
    Missing {
        path: PathBuf,
        section: &'static str,
    },
    #[error("{}: the workload has no `prompts`: an engine needs texts to continue", path.display())]
    NoPrompts { path: PathBuf },
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    #[error("the resolved scenario cannot be written as RON: {0}")]
    Ron(#[from] ron::Error),
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    #[error(transparent)]
    Picture(#[from] PictureError),
}

/// A judged scenario.
#[derive(Clone, Debug)]
pub struct HilReport {
    /// The run directory.
    pub path: PathBuf,
    pub summary: Summary,
}

/// Runs the scenario's levels on its engine and writes the run directory.
pub fn validate(
    loaded: &Loaded,
    options: &HilOptions,
    observer: &mut dyn FnMut(HilProgress),
) -> Result<HilReport, HilError> {
    let missing = |section| HilError::Missing {
        path: loaded.path().to_owned(),
        section,
    };
    let scenario = &loaded.scenario;
    let settings = scenario.engine.as_ref().ok_or_else(|| missing("engine"))?;
    let hil = scenario.hil.as_ref().ok_or_else(|| missing("hil"))?;
    let levels = options.levels.clone().unwrap_or_else(|| hil.levels.clone());
    if let Some(fault) = options.fault {
        // Refused before a model is read.
        let injected = fault.inject(&scenario.control.temperature);
        injected.map_err(ExperimentError::from)?;
    }
    if levels.contains(&Level::Free) {
        check_free(loaded, hil.record.runs)?;
    }
    let prompts = loaded.prompts().ok_or_else(|| HilError::NoPrompts {
        path: loaded.path().to_owned(),
    })?;
    let prompts = read_prompts(&prompts)?;
    let store = Store::from_env();
    let source = store.resolve(&settings.model);
    let source = source.map_err(|error| loaded.refuse("engine.model", &error))?;
    let content = source.identity()?;
    let mut source = ModelRef {
        name: source.name.clone(),
        blake3: source.blake3()?,
        weights: BTreeMap::new(),
    };
    let mut resolved = loaded.movable();
    if let Some(hil) = &mut resolved.hil {
        hil.levels = levels.clone();
    }
    let dir = RunDir::create(&Place {
        to: options.to.clone(),
        name: loaded.name(),
        scenario: resolved.to_ron()?,
        prompts: Some(prompts.text.clone()),
        options: format!("hil {:?} {content}", options.fault),
    })?;

    let model = LoadedModel::open(&store, &settings.model, settings.load_options())?;
    source.weights = model.model.holdings().clone();
    loaded.check_vocab(model.config().vocab)?;
    if levels.contains(&Level::Free) {
        check_recordings(loaded, hil, model.config().vocab)?;
    }
    let requests = encode(&scenario.workload, &prompts, &model)?;
    let judged_runs = match levels.contains(&Level::Free) {
        true => hil.runs,
        false => 1,
    };
    let experiment = Experiment {
        control: scenario.control.clone(),
        limits: settings.limits(),
        clock: scenario.clock,
        seed: scenario.seed,
        levels,
        tolerance: hil.tolerance.clone(),
        fault: options.fault,
        judged: (0..judged_runs)
            .map(|run| requests.of_run(Side::Judged, run))
            .collect(),
        recorded: joined((0..hil.record.runs).map(|run| requests.of_run(Side::Recorded, run))),
        temperatures: hil.record.temperatures.clone(),
    };
    let (mut engine, _) = model.into_engine(settings.kv_blocks, settings.block_tok)?;
    let outcome = experiment::run(&mut engine, &experiment, observer)?;

    let summary = summarise(&loaded.name(), &experiment, &outcome);
    write(&dir, &experiment, &outcome, &summary, options)?;
    let path = dir.finish(about(settings, source, scenario.seed))?;
    Ok(HilReport { path, summary })
}

/// Fewest tokens of a text that has a beginning, a middle and an end to resample.
const MIN_FREE_TOK: usize = 8;

/// Checks that the recordings can make a plant, and parts of them too.
fn check_free(loaded: &Loaded, record_runs: usize) -> Result<(), ScenarioError> {
    let workload = &loaded.scenario.workload;
    let refuse = |path: &str, seen: usize, allowed: String| {
        loaded.field_error(FieldError {
            path: path.to_owned(),
            seen: seen.to_string(),
            allowed,
        })
    };
    if workload.new_tok < MIN_FREE_TOK {
        let allowed = format!("at least {MIN_FREE_TOK} where the free level is judged");
        return Err(refuse("workload.new_tok", workload.new_tok, allowed));
    }
    if record_runs * workload.sequences < PARTS {
        let allowed = format!(
            "enough for {PARTS} recorded sequences: {} to a run, and the uncertainty is taken over {PARTS} parts",
            workload.sequences
        );
        return Err(refuse("hil.record.runs", record_runs, allowed));
    }
    Ok(())
}

/// Most bytes that the recorded logits may take; they are held in memory.
const MAX_RECORDED_BYTES: u128 = 16 << 30;

/// Checks that the logits of all recordings fit the memory of a common machine.
fn check_recordings(loaded: &Loaded, hil: &Hil, vocab: usize) -> Result<(), ScenarioError> {
    let workload = &loaded.scenario.workload;
    let rows = hil.record.runs as u128
        * hil.record.temperatures.len() as u128
        * workload.sequences as u128
        * workload.new_tok as u128;
    let bytes = rows * vocab as u128 * 4;
    if bytes <= MAX_RECORDED_BYTES {
        return Ok(());
    }
    Err(loaded.field_error(FieldError {
        path: "hil.record.runs".to_owned(),
        seen: hil.record.runs.to_string(),
        allowed: format!(
            "fewer: {rows} recorded rows of {vocab} logits take {} GiB of memory, and {} are allowed",
            bytes >> 30,
            MAX_RECORDED_BYTES >> 30
        ),
    }))
}

fn encode(
    workload: &Workload,
    prompts: &Prompts,
    model: &LoadedModel,
) -> Result<Requests, HilError> {
    let eos = model.eos_ids();
    let texts = Texts {
        context_tok: model.config().context_tok,
        eos: &eos,
    };
    let encode = |text: &str| -> Result<Vec<u32>, BoxError> { Ok(model.tokenizer.encode(text)?) };
    Ok(Requests::encode(workload, prompts, &texts, &encode)?)
}

fn joined(runs: impl Iterator<Item = RunRequests>) -> RunRequests {
    runs.fold(RunRequests::default(), |mut all, run| {
        all.requests.extend(run.requests);
        all.prompts.extend(run.prompts);
        all
    })
}

fn about(settings: &EngineConfig, model: ModelRef, seed: u64) -> About {
    About {
        device: Some(format!("{:?}", settings.device).to_lowercase()),
        model: Some(model),
        seeds: vec![seed],
    }
}

fn summarise(name: &str, experiment: &Experiment, outcome: &Outcome) -> Summary {
    let law = &experiment.control.temperature;
    let target_nats = law.target_nats();
    Summary {
        scenario: name.to_owned(),
        law: law.name(),
        target_nats,
        fault: experiment.fault,
        verdict: outcome.overall(),
        replay: outcome.replay.as_ref().map(ExactSummary::of),
        forced: outcome.forced.as_ref().map(ExactSummary::of),
        free: outcome.free.as_ref().map(|f| FreeSummary::of(&f.free)),
        reachability: outcome.reachability,
        measured: LoopSummary::of(&measured_loop(outcome)),
        warnings: summary::warnings(outcome, experiment),
    }
}

/// The closed loop that a reader wants statistics of: the judged ensemble, else the replayed run, else the forced one.
fn measured_loop(outcome: &Outcome) -> Vec<&Trajectory> {
    if let Some(free) = &outcome.free {
        return free.measured.iter().collect();
    }
    let exact = outcome.replay.as_ref().or(outcome.forced.as_ref());
    exact.map(|x| &x.measured).into_iter().collect()
}

fn write(
    dir: &RunDir,
    experiment: &Experiment,
    outcome: &Outcome,
    summary: &Summary,
    options: &HilOptions,
) -> Result<(), HilError> {
    let tables = tagged(outcome);
    dir.write("trajectory.parquet", |out| write_trajectory(out, &tables))?;
    dir.write("steps.parquet", |out| write_steps(out, &tables))?;
    dir.write("requests.parquet", |out| write_requests(out, &tables))?;
    dir.write("timing.parquet", |out| write_timing(out, &tables))?;
    dir.write_json("summary.json", summary)?;
    if let (true, Some(recording)) = (options.keep_recording, &outcome.recording) {
        dir.write("recording.safetensors", |out| {
            write_recording(out, recording)
        })?;
    }
    let figures = pictures::of(experiment, outcome);
    pictures::write(dir, &pictures::draw(&figures)?)?;
    Ok(())
}

/// Every trajectory of the outcome with its place in the experiment.
fn tagged(outcome: &Outcome) -> Vec<Tagged<'_>> {
    let mut tables: Vec<Tagged> = Vec::new();
    for (phase, exact) in [
        (Phase::Replay, &outcome.replay),
        (Phase::Forced, &outcome.forced),
    ] {
        if let Some(exact) = exact {
            push(
                &mut tables,
                phase,
                Plant::Predicted,
                std::slice::from_ref(&exact.predicted),
            );
            push(
                &mut tables,
                phase,
                Plant::Measured,
                std::slice::from_ref(&exact.measured),
            );
        }
    }
    if let Some(free) = &outcome.free {
        push(&mut tables, Phase::Record, Plant::Measured, &free.recorded);
        push(
            &mut tables,
            Phase::Free,
            Plant::Predicted,
            &free.prediction.runs,
        );
        push(&mut tables, Phase::Free, Plant::Measured, &free.measured);
    }
    tables
}

fn push<'a>(tables: &mut Vec<Tagged<'a>>, phase: Phase, side: Plant, runs: &'a [Trajectory]) {
    let tag = |run| Tag { phase, side, run };
    let runs = (0..).zip(runs);
    tables.extend(runs.map(|(run, trajectory)| Tagged {
        tag: tag(run),
        trajectory,
    }));
}

//! `etime sim`.

use crate::args;
use crate::failure::Failure;
use crate::progress::{Unit, bar};
use crate::show;
use etime_hil::rundir::{Destination, RunDirError};
use etime_hil::scenario::{Loaded, ScenarioError};
use etime_hil::simulate::{SimulateError, simulate};
use std::path::PathBuf;

/// Reads the scenario with every override in it; `--seed` is one.
pub fn load(args: &args::Scenario, more: &[String]) -> Result<Loaded, ScenarioError> {
    let seed = args.seed.map(|seed| format!("seed={seed}"));
    let sets: Vec<String> = args
        .set
        .iter()
        .cloned()
        .chain(seed)
        .chain(more.iter().cloned())
        .collect();
    Loaded::read(&args.path, &sets)
}

/// The run directory asked for, or one below `runs/`.
pub fn destination(args: &args::Scenario) -> Destination {
    Destination {
        out: args.out.clone(),
        root: PathBuf::from("runs"),
        replace: args.replace,
    }
}

pub fn run(args: &args::Sim) -> Result<(), Failure> {
    let loaded = load(&args.scenario, &[])?;
    let to = destination(&args.scenario);
    let bar = bar(Unit::Count("runs"));
    bar.set_message("simulate");
    let outcome = simulate(&loaded, &to, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let outcome = outcome.map_err(failure)?;
    if args.scenario.json {
        return show::json(&outcome.summary);
    }
    show::text(&format!(
        "{}written to {}\n",
        outcome.summary.to_text(),
        outcome.path.display()
    ))
}

fn failure(error: SimulateError) -> Failure {
    match error {
        SimulateError::NoSim { .. } | SimulateError::Workload(_) | SimulateError::Plant(_) => {
            Failure::input(error)
        }
        SimulateError::RunDir(error) => rundir_failure(error),
        SimulateError::Run(_) | SimulateError::Ron(_) | SimulateError::Picture(_) => {
            Failure::fault(error)
        }
    }
}

/// A place that cannot be written to, or a full disk, is something that the user can change.
pub fn rundir_failure(error: RunDirError) -> Failure {
    match error {
        RunDirError::Twice { .. } => Failure::fault(error),
        _ => Failure::input(error),
    }
}

//! `etime hil`.

use crate::args;
use crate::failure::Failure;
use crate::progress::{Unit, bar};
use crate::show;
use crate::sim::{destination, load, rundir_failure};
use etime_control::law::Fault;
use etime_control::serve::ServeError;
use etime_hil::experiment::{ExperimentError, HilProgress};
use etime_hil::judge::Verdict;
use etime_hil::scenario::Level;
use etime_hil::validate::{HilError, HilOptions, validate};
use indicatif::ProgressBar;

pub fn run(args: &args::Hil) -> Result<(), Failure> {
    let loaded = load(&args.scenario, &[])?;
    let options = HilOptions {
        to: destination(&args.scenario),
        fault: args.negative_control.map(Fault::from),
        levels: levels(&args.level),
        keep_recording: args.keep_recording,
    };
    let bar = bar(Unit::Count("tokens"));
    let report = validate(&loaded, &options, &mut |progress| advance(&bar, progress));
    bar.finish_and_clear();
    let report = report.map_err(failure)?;
    let shown = if args.scenario.json {
        show::json(&report.summary)
    } else {
        let text = report.summary.to_text();
        show::text(&format!("{text}written to {}\n", report.path.display()))
    };
    // A verdict counts whether or not it can be shown.
    match (report.summary.verdict, report.summary.fault) {
        (Some(Verdict::Fail), _) => Err(Failure::Verdict),
        (verdict, Some(fault)) => Err(Failure::fault(format!(
            "the negative control {fault} was not detected: {}, where FAIL was due",
            verdict.map_or("no verdict".to_owned(), |v| v.to_string())
        ))),
        (_, None) => shown,
    }
}

/// Levels given on the command line, each once, in their usual order.
fn levels(given: &[args::LevelArg]) -> Option<Vec<Level>> {
    let mut levels: Vec<Level> = given.iter().map(|&level| level.into()).collect();
    levels.sort();
    levels.dedup();
    (!levels.is_empty()).then_some(levels)
}

fn advance(bar: &ProgressBar, progress: HilProgress) {
    bar.set_message(progress.phase.label());
    bar.set_length(progress.planned_tok as u64);
    bar.set_position(progress.drawn_tok as u64);
}

fn failure(error: HilError) -> Failure {
    match error {
        HilError::RunDir(error) => rundir_failure(error),
        HilError::Ron(_) | HilError::Picture(_) => Failure::fault(error),
        HilError::Experiment(ExperimentError::Fault(error)) => {
            Failure::input(format!("--negative-control: {error}"))
        }
        HilError::Experiment(ExperimentError::Run(etime_control::driver::RunError::Serve(
            error @ ServeError::NeverFits { .. },
        ))) => Failure::input(error),
        HilError::Experiment(_) => Failure::fault(error),
        HilError::Missing { .. }
        | HilError::NoPrompts { .. }
        | HilError::Scenario(_)
        | HilError::Workload(_)
        | HilError::Load(_)
        | HilError::Store(_)
        | HilError::Model(_) => Failure::input(error),
    }
}

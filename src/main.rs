//! The command line of etime: reads arguments, calls the library, prints.
#![forbid(unsafe_code)]

mod args;
mod doctor;
mod failure;
mod generate;
mod hil;
mod model;
mod progress;
mod show;
mod sim;
mod speed;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

/// Exit code of a process that was told to end, as shells count it.
const INTERRUPTED: i32 = 130;

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("ETIME_LOG").unwrap_or_default();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    // Ctrl-C leaves nothing half-written; where no handler can be set, the next run cleans up.
    let _ = ctrlc::set_handler(|| {
        etime_hil::rundir::abandon();
        std::process::exit(INTERRUPTED);
    });
    let cli = Cli::parse();
    match make_threads().and_then(|()| run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                // Nobody is left to tell when this fails too.
                let _ = writeln!(std::io::stderr(), "error: {message}");
            }
            ExitCode::from(failure.code())
        }
    }
}

/// More threads than any machine has use for.
const MAX_THREADS: usize = 1024;

/// Starts the pool that computes, so that a machine that gives no threads says so at once.
fn make_threads() -> Result<(), Failure> {
    let asked = std::env::var("RAYON_NUM_THREADS").ok();
    let asked = asked.and_then(|text| text.trim().parse::<usize>().ok());
    if let Some(threads) = asked.filter(|&threads| threads > MAX_THREADS) {
        return Err(Failure::input(format!(
            "RAYON_NUM_THREADS = {threads} is not allowed; allowed: at most {MAX_THREADS}"
        )));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(asked.unwrap_or(0));
    pool.build_global()
        .map_err(|error| Failure::fault(format!("no threads to compute with: {error}")))
}

fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Sim(args) => sim::run(&args),
        Command::Hil(args) => hil::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Speed(args) => speed::run(&args),
    }
}

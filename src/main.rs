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
    match run(Cli::parse()) {
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

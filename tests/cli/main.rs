//! The command line: help, exit codes, and one clear error for each bad input.

mod bench;
mod generation;
mod hil;
mod models;
mod scenarios;

use bench::{Bench, SIM};
use predicates::prelude::*;

#[test]
fn help_names_every_command_and_each_command_has_help() {
    let bench = Bench::new(SIM);
    for command in ["sim", "hil", "generate", "model", "doctor", "speed"] {
        bench
            .etime(&["--help"])
            .assert()
            .success()
            .stdout(predicate::str::contains(command));
        let help = bench.etime(&[command, "--help"]).assert().success();
        help.stdout(predicate::str::contains("Usage: etime"));
    }
    bench.etime(&["--version"]).assert().success();
    bench
        .etime(&[])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("Usage"));
    bench
        .etime(&["simulate"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("sim"));
}

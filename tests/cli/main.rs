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

#[test]
fn a_full_standard_output_is_told_and_an_absurd_number_of_threads_refused() {
    let bench = Bench::new(SIM);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut doctor = std::process::Command::new(assert_cmd::cargo::cargo_bin!("etime"));
    let output = doctor.arg("doctor").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be written"));
    let mut many = bench.etime(&["doctor"]);
    let told = predicate::str::contains("RAYON_NUM_THREADS = 100000");
    many.env("RAYON_NUM_THREADS", "100000")
        .assert()
        .code(2)
        .stderr(told);
}

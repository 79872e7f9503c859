//! Simulations, their run directories, and scenarios that are refused.

use crate::bench::{Bench, SIM, shipped};
use predicates::prelude::*;

#[test]
fn a_simulation_writes_a_whole_run_directory_and_says_where() {
    let bench = Bench::new(SIM);
    let run = bench
        .etime(&["sim", "bench.ron", "--out", "run"])
        .assert()
        .success();
    run.stdout(predicate::str::contains("written to").and(predicate::str::contains("Corrected")));
    assert_eq!(bench.names(), ["bench.ron", "run"]);
    for name in [
        "scenario.ron",
        "manifest.json",
        "trajectory.parquet",
        "summary.json",
        "figures/temperature.svg",
        "figures/entropy.png",
        "figures/loop_gain.svg",
        "figures/clock.svg",
    ] {
        assert!(bench.path("run").join(name).is_file(), "{name}");
    }
    // The resolved scenario is a scenario that gives the same results.
    let again = ["sim", "run/scenario.ron", "--out", "again"];
    bench.etime(&again).assert().success();
    let bytes = |run: &str| std::fs::read(bench.path(run).join("trajectory.parquet")).unwrap();
    assert_eq!(bytes("run"), bytes("again"));
}

#[test]
fn json_is_json_and_overrides_are_in_the_resolved_scenario() {
    let bench = Bench::new(SIM);
    let sets = [
        "--set",
        "control.temperature.eta_per_nat=0.25",
        "--set",
        "sim.runs=2",
    ];
    let mut args = vec!["sim", "bench.ron", "--json", "--seed", "11", "--out", "run"];
    args.extend(sets);
    let output = bench
        .etime(&args)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let summary: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(summary["runs"], 2);
    let resolved = std::fs::read_to_string(bench.path("run/scenario.ron")).unwrap();
    assert!(
        resolved.contains("eta_per_nat: 0.25") && resolved.contains("seed: 11"),
        "{resolved}"
    );
}

#[test]
fn a_run_without_out_lands_under_runs_with_the_name_of_the_scenario() {
    let bench = Bench::new(SIM);
    bench.etime(&["sim", "bench.ron"]).assert().success();
    let runs: Vec<_> = std::fs::read_dir(bench.path("runs")).unwrap().collect();
    assert_eq!(runs.len(), 1);
    let name = runs[0].as_ref().unwrap().file_name().into_string().unwrap();
    assert!(name.starts_with("bench-"), "{name}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    use std::process::{Command, Stdio};
    let bench = Bench::new(SIM);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("etime"))
        .args(["sim", "bench.ron", "--out", "run"])
        .current_dir(bench.folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stderr.is_empty());
}

#[test]
fn bad_scenarios_are_refused_with_file_line_field_value_and_spelling() {
    let cases: [(&str, &str, &[&str]); 18] = [
        (
            "eta_per_nat",
            "eta_pernat",
            &[
                "bench.ron:5:32: control.temperature.eta_pernat",
                "did you mean `eta_per_nat`?",
            ],
        ),
        (
            "Corrected",
            "Corected",
            &["bench.ron:5:22", "did you mean `Corrected`?"],
        ),
        (
            "new_tok: 16",
            "new_tok: \"many\"",
            &[
                "bench.ron:3:54: workload.new_tok",
                "wrong type",
                "many",
                "whole number",
            ],
        ),
        ("seed: 7,", "", &["seed", "is missing"]),
        ("seed: 7,", "seed: 7", &["bench.ron:2:12", "comma"]),
        ("seed: 7,", "seed: 7, seed: 7,", &["twice"]),
        (
            "t_min: 0.2",
            "t_min: NaN",
            &["control.temperature.t_min", "not a finite number"],
        ),
        (
            "t_max: 2.0",
            "t_max: inf",
            &["control.temperature.t_max", "not a finite number"],
        ),
        (
            "eta_per_nat: 0.05",
            "eta_per_nat: 0",
            &["control.temperature.eta_per_nat", "above 0"],
        ),
        (
            "eta_per_nat: 0.05",
            "eta_per_nat: -1",
            &["control.temperature.eta_per_nat", "above 0"],
        ),
        (
            "t_min: 0.2",
            "t_min: 2.0",
            &["control.temperature.t_min", "less than t_max"],
        ),
        (
            "    ),\n    sim",
            "        h_min_nats: 2.5,\n    ),\n    sim",
            &["control.h_min_nats", "less than target_nats"],
        ),
        (
            "target_nats: 2.0",
            "target_nats: 4.2",
            &["control.temperature.target_nats", "less than ln n"],
        ),
        ("sequences: 2", "sequences: 0", &["workload.sequences"]),
        ("new_tok: 16", "new_tok: 0", &["workload.new_tok"]),
        ("prompt_tok: 4", "prompt_tok: 0", &["workload.prompt_tok"]),
        ("runs: 3", "runs: 99999999999", &["sim.runs"]),
        (
            "sequences: 2",
            "sequences: 2, prompts: \"none.jsonl\"",
            &["workload.prompts", "does not exist"],
        ),
    ];
    for (from, to, words) in cases {
        assert!(SIM.contains(from), "{from}");
        let bench = Bench::new(&SIM.replacen(from, to, 1));
        bench.refuses(&["sim", "bench.ron", "--out", "run"], words);
    }
}

#[test]
fn bad_overrides_name_the_flag_and_the_nearest_path() {
    let bench = Bench::new(SIM);
    let full = "did you mean `control.temperature.eta_per_nat`?";
    let cases: [(&str, &[&str]); 5] = [
        (
            "control.temperature.eta=1",
            &["--set control.temperature.eta=1", full],
        ),
        ("eta_per_nat=1", &[full]),
        ("seed", &["there is no `=`"]),
        ("seed=x", &["--set seed=x", "whole number"]),
        (
            "control.temperature=Fixed(t: 1",
            &["--set control.temperature=Fixed(t: 1"],
        ),
    ];
    for (set, words) in cases {
        bench.refuses(&["sim", "bench.ron", "--set", set, "--out", "run"], words);
    }
}

#[test]
fn files_and_places_that_cannot_be_used_are_named() {
    let bench = Bench::new(SIM);
    bench.refuses(
        &["sim", "bnch.ron"],
        &["bnch.ron", "cannot be read", "did you mean `bench.ron`?"],
    );
    bench.refuses(
        &["sim", "bench.ron", "--out", "bench.ron"],
        &["bench.ron", "is no directory"],
    );
    bench.refuses(
        &["sim", "bench.ron", "--out", "/proc/etime-run"],
        &["/proc/etime-run"],
    );
    bench.refuses(&["hil", "bench.ron", "--out", "run"], &["no `engine`"]);
    bench.refuses(
        &["sim", &shipped("quickstart.ron"), "--out", "run"],
        &["no `sim`", "etime hil"],
    );
}

#[test]
fn a_folder_that_is_no_run_is_left_alone() {
    let bench = Bench::new(SIM);
    std::fs::create_dir(bench.path("mine")).unwrap();
    std::fs::write(bench.path("mine/thesis.txt"), "precious").unwrap();
    let refused = bench
        .etime(&["sim", "bench.ron", "--out", "mine"])
        .assert()
        .code(2);
    refused.stderr(predicate::str::contains("no etime run"));
    assert_eq!(
        std::fs::read_to_string(bench.path("mine/thesis.txt")).unwrap(),
        "precious"
    );
    assert_eq!(bench.names(), ["bench.ron", "mine"]);
}

#[test]
fn a_disk_that_fills_at_any_file_is_told_once_and_leaves_nothing() {
    let bench = Bench::new(SIM);
    // A limit on the size of a file stands for a full disk: the write fails with an error.
    for limit_kib in [0, 1, 4, 16, 40] {
        let script = format!(
            "trap '' XFSZ; ulimit -f {limit_kib}; exec '{}' sim bench.ron --out run",
            assert_cmd::cargo::cargo_bin!("etime").display()
        );
        let output = std::process::Command::new("bash")
            .current_dir(bench.folder.path())
            .args(["-c", &script])
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{limit_kib} KiB: {error}");
        assert!(
            error.starts_with("error: ") && error.contains("cannot be written"),
            "{error}"
        );
        assert_eq!(bench.names(), ["bench.ron"], "{limit_kib} KiB");
    }
}

#[test]
fn absurd_numbers_are_refused_and_extreme_ones_run() {
    let bench = Bench::new(SIM);
    for (set, field) in [
        ("control.temperature.eta_per_nat=1e308", "eta_per_nat"),
        ("control.temperature.t_max=1e300", "t_max"),
        ("control.temperature.t_min=5e-324", "t_min"),
        ("sim.plant.process.sd=1e300", "sim.plant.process.sd"),
        ("sim.plant.feedback_per_nat=1e308", "feedback_per_nat"),
    ] {
        bench.refuses(
            &["sim", "bench.ron", "--set", set, "--out", "run"],
            &[field],
        );
    }
    for sets in [
        [
            "control.temperature.eta_per_nat=1e12",
            "sim.plant.process.sd=1e9",
        ],
        [
            "control.temperature.t_max=1e12",
            "control.temperature.eta_per_nat=1e12",
        ],
        [
            "control.temperature.t_min=1e-12",
            "control.temperature.eta_per_nat=1e12",
        ],
        [
            "sim.plant.feedback_per_nat=1e9",
            "sim.plant.logits.exponent=1e9",
        ],
    ] {
        let mut command = bench.etime(&["sim", "bench.ron", "--out", "run", "--replace"]);
        command.args(sets.iter().flat_map(|set| ["--set", set]));
        command.assert().success();
    }
}

#[test]
fn an_empty_folder_is_taken_and_folders_made_for_a_run_that_failed_go_again() {
    let bench = Bench::new(SIM);
    std::fs::create_dir(bench.path("mine")).unwrap();
    let args = ["sim", "bench.ron", "--out", "mine"];
    bench.etime(&args).assert().success();
    assert!(bench.path("mine/manifest.json").is_file());
    std::fs::remove_dir_all(bench.path("mine")).unwrap();
    bench.refuses(
        &["sim", "bench.ron", "--out", "a/b/.."],
        &["a/b/..", "last component"],
    );
}

#[test]
fn a_scenario_that_is_a_folder_endless_or_of_another_encoding_is_refused() {
    let bench = Bench::new(SIM);
    bench.refuses(&["sim", "/tmp"], &["it is a directory"]);
    bench.refuses(&["sim", "/dev/zero"], &["more than"]);
    let marked = format!("\u{feff}{SIM}");
    std::fs::write(bench.path("bench.ron"), marked).unwrap();
    let args = ["sim", "bench.ron", "--out", "run"];
    bench.etime(&args).assert().success();
}

#[test]
fn another_run_is_replaced_only_where_asked_and_the_same_one_always() {
    let bench = Bench::new(SIM);
    let run = |more: &[&str]| {
        let mut command = bench.etime(&["sim", "bench.ron", "--out", "run"]);
        command.args(more).assert()
    };
    run(&[]).success();
    run(&[]).success();
    let seed = ["--seed", "8"];
    let told = predicate::str::contains("holds another run (bench,");
    run(&seed)
        .code(2)
        .stderr(told.and(predicate::str::contains("--replace")));
    run(&["--seed", "8", "--replace"]).success();
    run(&seed).success();
}

#[test]
fn a_run_keeps_its_name_and_an_interrupted_one_leaves_nothing() {
    let bench = Bench::new(SIM);
    bench
        .etime(&["sim", "bench.ron", "--out", "run"])
        .assert()
        .success();
    let again = bench.etime(&["sim", "run/scenario.ron"]).assert().success();
    again.stdout(
        predicate::str::contains("bench: Corrected").and(predicate::str::contains("runs/bench-")),
    );

    let long = ["--set", "sim.runs=100000", "--out", "long"];
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("etime"))
        .current_dir(bench.folder.path())
        .args(["sim", "bench.ron"])
        .args(long)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let started = || bench.names().iter().any(|name| name.contains("etime-tmp"));
    while !started() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(child.try_wait().unwrap().is_none(), "ended before it began");
    }
    let pid = child.id().to_string();
    std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!started(), "{:?}", bench.names());
}

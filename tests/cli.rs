//! The command line: help, exit codes, and one clear error for each bad input.

use assert_cmd::Command;
use predicates::prelude::*;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SIM: &str = "(
    seed: 7,
    workload: (sequences: 2, prompt_tok: 4, new_tok: 16),
    control: (
        temperature: Corrected(eta_per_nat: 0.05, target_nats: 2.0, t_min: 0.2, t_max: 2.0, t_start: 1.0),
    ),
    sim: (plant: Synthetic(logits: Zipf(vocab: 64, exponent: 1.0), process: Iid(sd: 0.3)), runs: 3),
)
";

/// A folder with a scenario and an empty models folder.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bench.ron"), scenario).unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn etime(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("etime"));
        command.current_dir(self.folder.path()).args(args);
        command.env("ETIME_MODELS", self.path("models"));
        command
    }

    /// Exit code 2, one error with all of `words` on standard error, nothing on standard output, nothing left behind.
    #[track_caller]
    fn refuses(&self, args: &[&str], words: &[&str]) {
        let output = self.etime(args).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}\n{error}");
        assert!(error.starts_with("error: "), "{error}");
        assert_eq!(error.matches("error: ").count(), 1, "{error}");
        assert!(!error.contains("panicked"), "{error}");
        for word in words {
            assert!(error.contains(word), "no {word:?} in:\n{error}");
        }
        assert!(output.stdout.is_empty());
        assert_eq!(
            self.names(),
            ["bench.ron"],
            "{args:?} left something behind"
        );
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scenarios")
        .join(name);
    path.to_str().unwrap().to_owned()
}

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
        &["bench.ron", "is a file"],
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
fn models_that_are_not_here_are_named_with_the_command_that_fetches_them() {
    let bench = Bench::new(SIM);
    let smollm2 = shipped("smollm2.ron");
    bench.refuses(
        &["hil", &smollm2, "--out", "run"],
        &["smollm2", "etime model pull smollm2"],
    );
    bench.refuses(
        &["generate", "smollm2", "--prompt", "x"],
        &["etime model pull smollm2"],
    );
    bench.refuses(&["generate", "tinny", "--prompt", "x"], &["tinny", "tiny"]);
    bench.refuses(&["model", "inspect", "no/such/model"], &["no/such/model"]);
    bench.refuses(&["model", "pull", "tinny"], &["tinny", "tiny"]);
    bench.refuses(&["speed", "engine", "nothing"], &["nothing"]);
}

#[test]
fn a_law_that_a_negative_control_cannot_break_is_refused_before_a_model_is_read() {
    let bench = Bench::new(SIM);
    let (scenario, fault) = (shipped("in_step.ron"), ["--negative-control", "double-eta"]);
    bench.refuses(
        &["hil", &scenario, fault[0], fault[1], "--out", "run"],
        &["--negative-control", "InStep"],
    );
}

#[test]
fn generation_refuses_bad_laws_and_texts_that_do_not_fit() {
    let bench = Bench::new(SIM);
    let cases: [(&[&str], &[&str]); 6] = [
        (
            &["--law", "Fixd(t: 1)"],
            &["--law:1:1", "did you mean `Fixed`?"],
        ),
        (&["--law", "Fixed(t: 0)"], &["--law", "t: ", "above 0"]),
        (&["--set", "tt=1"], &["--set tt=1", "did you mean `t`?"]),
        (&["--new-tok", "0"], &["--new-tok"]),
        (&["--new-tok", "10000000"], &["tokens", "at most"]),
        (&["--prompt", ""], &["empty"]),
    ];
    for (args, words) in cases {
        let mut all = vec!["generate", "tiny"];
        if !args.contains(&"--prompt") {
            all.extend(["--prompt", "ROMEO:"]);
        }
        all.extend(args);
        bench.refuses(&all, words);
    }
}

#[test]
fn generated_text_depends_on_the_seed_and_nothing_else() {
    let bench = Bench::new(SIM);
    let text = |seed: &str| {
        let args = ["generate", "tiny", "--new-tok", "24", "--seed", seed];
        let done = bench
            .etime(&args)
            .write_stdin("ROMEO:\n")
            .assert()
            .success();
        String::from_utf8(done.get_output().stdout.clone()).unwrap()
    };
    assert_eq!(text("1"), text("1"));
    assert_ne!(text("1"), text("2"));
}

#[test]
fn generated_json_has_entropy_and_temperature_of_each_token() {
    let bench = Bench::new(SIM);
    let law = "InStep(target_nats: 2, t_min: 0.1, t_max: 10)";
    let args = [
        "generate",
        "tiny",
        "--prompt",
        "ROMEO:",
        "--new-tok",
        "8",
        "--law",
        law,
        "--json",
    ];
    let done = bench.etime(&args).assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(!rows.is_empty() && rows.len() <= 8);
    for row in rows {
        assert!(
            (row["h_nats"].as_f64().unwrap() - 2.0).abs() < 1e-6,
            "{row}"
        );
        assert!(row["t"].as_f64().unwrap() > 0.1, "{row}");
    }
}

#[test]
fn doctor_and_the_model_list_say_what_is_missing_and_how_to_get_it() {
    let bench = Bench::new(SIM);
    let fix = predicate::str::contains("etime model pull smollm2");
    let here = predicate::str::contains("tiny: bundled");
    bench
        .etime(&["doctor"])
        .assert()
        .success()
        .stdout(fix.clone().and(here));
    bench
        .etime(&["model", "list"])
        .assert()
        .success()
        .stdout(fix);
    let commands: [&[&str]; 3] = [
        &["doctor", "--json"],
        &["model", "list", "--json"],
        &["model", "inspect", "tiny", "--json"],
    ];
    for args in commands {
        let output = bench
            .etime(args)
            .assert()
            .success()
            .get_output()
            .stdout
            .clone();
        let _: serde_json::Value = serde_json::from_slice(&output).unwrap();
    }
    assert_eq!(bench.names(), ["bench.ron"]);
}

/// A small experiment on the bundled model.
const HIL: &str = "(
    seed: 7,
    workload: (prompts: \"prompts.jsonl\", sequences: 4, prompt_tok: 16, new_tok: 48),
    control: (
        temperature: Corrected(eta_per_nat: 0.05, target_nats: 2.0, t_min: 0.2, t_max: 2.0, t_start: 1.5),
    ),
    engine: (model: \"tiny\", kv_blocks: 64, max_seqs: 4),
    hil: (levels: [Replay, Forced, Free], runs: 4, record: (temperatures: [0.6, 1.0, 1.5], runs: 2)),
)
";

fn hil_bench() -> Bench {
    let bench = Bench::new(HIL);
    let prompts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/prompts.jsonl");
    std::fs::copy(prompts, bench.path("prompts.jsonl")).unwrap();
    bench
}

#[test]
fn every_fault_fails_at_each_level_alone_with_exit_code_1() {
    let bench = hil_bench();
    let faults = [
        "wrong-sign",
        "double-eta",
        "extra-delay",
        "bits-measured",
        "bits-gain",
    ];
    for fault in faults {
        for level in ["replay", "forced", "free"] {
            let args = [
                "hil",
                "bench.ron",
                "--out",
                "run",
                "--level",
                level,
                "--negative-control",
                fault,
            ];
            let assert = bench.etime(&args).assert().code(1);
            assert.stdout(predicate::str::contains("FAIL"));
        }
    }
}

#[test]
fn without_a_fault_replay_and_forced_agree_in_every_bit() {
    let bench = hil_bench();
    let args = [
        "hil",
        "bench.ron",
        "--out",
        "run",
        "--level",
        "replay",
        "--level",
        "forced",
    ];
    let equal = predicate::str::contains("equal in every bit").count(2);
    bench.etime(&args).assert().code(0).stdout(equal);
    for file in [
        "manifest.json",
        "trajectory.parquet",
        "figures/panel.svg",
        "figures/entropy.png",
    ] {
        assert!(bench.path("run").join(file).is_file(), "{file}");
    }
}

#[test]
fn a_negative_control_that_is_not_detected_is_no_success() {
    let bench = hil_bench();
    // A delay longer than the text: the law never acts, with the fault or without it.
    let args = [
        "hil",
        "bench.ron",
        "--out",
        "run",
        "--level",
        "replay",
        "--negative-control",
        "extra-delay",
        "--set",
        "control.temperature.delay_tok=500",
    ];
    let told = predicate::str::contains("was not detected");
    bench.etime(&args).assert().code(3).stderr(told);
}

#[test]
fn a_failed_verdict_is_told_even_when_nobody_reads_the_report() {
    let bench = hil_bench();
    let script = format!(
        "'{}' hil bench.ron --out run --level replay --negative-control wrong-sign | true; echo ${{PIPESTATUS[0]}}",
        assert_cmd::cargo::cargo_bin!("etime").display()
    );
    let mut bash = Command::new("bash");
    bash.current_dir(bench.folder.path()).args(["-c", &script]);
    bash.assert().stdout("1\n");
}

#[test]
fn a_free_level_that_its_recordings_cannot_support_is_refused_at_once() {
    let bench = hil_bench();
    let refused = |set: &str, field: &str| {
        let args = ["hil", "bench.ron", "--out", "run", "--set", set];
        let told = predicate::str::contains(field);
        bench.etime(&args).assert().code(2).stderr(told);
        assert!(!bench.path("run").exists());
    };
    refused("workload.new_tok=3", "workload.new_tok");
    refused("hil.record.runs=1", "hil.record.runs");
}

#[test]
fn a_law_whose_setpoint_no_distribution_reaches_is_refused_for_generation_too() {
    let bench = Bench::new(SIM);
    let law = "Corrected(eta_per_nat: 0.05, target_nats: 9, t_min: 0.2, t_max: 2, t_start: 1)";
    bench.refuses(
        &["generate", "tiny", "--prompt", "x", "--law", law],
        &["target_nats", "ln n = 6.2383"],
    );
}

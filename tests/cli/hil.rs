//! `etime hil`: verdicts, exit codes and negative controls.

use crate::bench::{Bench, SIM, shipped};
use assert_cmd::Command;
use predicates::prelude::*;
use std::path::Path;

#[test]
fn a_law_that_a_negative_control_cannot_break_is_refused_before_a_model_is_read() {
    let bench = Bench::new(SIM);
    let (scenario, fault) = (shipped("in_step.ron"), ["--negative-control", "double-eta"]);
    bench.refuses(
        &["hil", &scenario, fault[0], fault[1], "--out", "run"],
        &["--negative-control", "InStep"],
    );
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

/// `etime hil` on the bench's scenario, into `run`.
fn hil(bench: &Bench, more: &[&str]) -> Command {
    let mut command = bench.etime(&["hil", "bench.ron", "--out", "run"]);
    command.args(more);
    command
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
            let more = ["--replace", "--level", level, "--negative-control", fault];
            let assert = hil(&bench, &more).assert().code(1);
            assert.stdout(predicate::str::contains("FAIL"));
        }
    }
}

#[test]
fn without_a_fault_replay_and_forced_agree_in_every_bit() {
    let bench = hil_bench();
    let more = ["--level", "replay", "--level", "forced"];
    let equal = predicate::str::contains("equal in every bit").count(2);
    hil(&bench, &more).assert().code(0).stdout(equal);
    for file in [
        "manifest.json",
        "trajectory.parquet",
        "figures/panel.svg",
        "figures/entropy.png",
    ] {
        assert!(bench.path("run").join(file).is_file(), "{file}");
    }
    let manifest = std::fs::read(bench.path("run/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(
        manifest["model"]["weights"],
        serde_json::json!({ "F32": 38 })
    );
}

#[test]
fn how_weights_are_held_is_stored_or_f32() {
    let bench = hil_bench();
    let set = "engine.weights=F16";
    let more = ["--set", set];
    let told = predicate::str::contains("engine.weights").and(predicate::str::contains("F32"));
    hil(&bench, &more).assert().code(2).stderr(told);
    let set = "engine.weights=F32";
    let more = ["--level", "replay", "--set", set];
    hil(&bench, &more).assert().code(0);
    let written = std::fs::read_to_string(bench.path("run/scenario.ron")).unwrap();
    assert!(written.contains("weights: F32"), "{written}");
}

#[test]
fn a_negative_control_that_is_not_detected_is_no_success() {
    let bench = hil_bench();
    // A delay longer than the text: the law never acts, with the fault or without it.
    let more = [
        "--level",
        "replay",
        "--negative-control",
        "extra-delay",
        "--set",
        "control.temperature.delay_tok=500",
    ];
    let told = predicate::str::contains("was not detected");
    hil(&bench, &more).assert().code(3).stderr(told);
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
        let more = ["--set", set];
        let told = predicate::str::contains(field);
        hil(&bench, &more).assert().code(2).stderr(told);
        assert!(!bench.path("run").exists());
    };
    refused("workload.new_tok=3", "workload.new_tok");
    refused("hil.record.runs=1", "hil.record.runs");
}

#[test]
fn a_run_runs_again_from_its_own_directory_and_gives_the_same_bytes() {
    let bench = hil_bench();
    let first = ["hil", "bench.ron", "--out", "a", "--level", "replay"];
    bench.etime(&first).assert().success();
    std::fs::rename(bench.path("prompts.jsonl"), bench.path("moved.jsonl")).unwrap();
    let again = ["hil", "a/scenario.ron", "--out", "b"];
    bench.etime(&again).assert().success();
    for name in ["trajectory.parquet", "prompts.jsonl", "scenario.ron"] {
        let bytes = |run: &str| std::fs::read(bench.path(run).join(name)).unwrap();
        assert_eq!(bytes("a"), bytes("b"), "{name}");
    }
}

#[test]
fn a_model_that_is_missing_leaves_no_folder_behind() {
    let bench = hil_bench();
    let args = ["hil", "bench.ron", "--set", "engine.model=nowhere"];
    bench.etime(&args).assert().code(2);
    assert_eq!(bench.names(), ["bench.ron", "prompts.jsonl"]);
}

#[test]
fn exact_levels_agree_whatever_the_clock_of_the_scenario() {
    let bench = hil_bench();
    for clock in [
        "Measured",
        "Modelled(fixed_s: 0.01, per_tok_s: 1e-4, per_kv_byte_s: 1e-9)",
    ] {
        let set = format!("clock={clock}");
        let more = ["--replace", "--set", &set];
        let levels = ["--level", "replay", "--level", "forced"];
        hil(&bench, &more).args(levels).assert().code(0);
    }
}

#[test]
fn another_configuration_of_the_same_weights_is_another_run() {
    let bench = hil_bench();
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("engine/models/tiny");
    std::fs::create_dir(bench.path("m")).unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(bundled.join(name), bench.path("m").join(name)).unwrap();
    }
    let args = [
        "hil",
        "bench.ron",
        "--level",
        "replay",
        "--set",
        "engine.model=./m",
    ];
    bench.etime(&args).assert().success();
    let path = bench.path("m/config.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen('{', "{\"note\": 1,", 1)).unwrap();
    bench.etime(&args).assert().success();
    assert_eq!(std::fs::read_dir(bench.path("runs")).unwrap().count(), 2);
}

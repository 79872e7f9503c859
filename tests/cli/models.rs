//! Models that are absent, damaged or do not fit together.

use crate::bench::{Bench, SIM, shipped};
use predicates::prelude::*;
use std::path::Path;

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
    let held = predicate::str::is_match("in memory +38 F32\n").unwrap();
    let inspect = bench.etime(&["model", "inspect", "tiny"]).assert();
    inspect.success().stdout(held);
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

#[test]
fn a_model_of_the_hub_that_is_not_here_or_cannot_be_reached_is_one_clear_error() {
    let bench = Bench::new(SIM);
    bench.refuses(
        &["model", "inspect", "owner/name@v1"],
        &["owner/name@v1", "etime model pull owner/name@v1"],
    );
    let output = bench
        .etime(&["model", "pull", "owner/name"])
        .env("ETIME_MODELS", bench.path("models"))
        // Port 9 discards; nothing listens there.
        .env("HF_ENDPOINT", "http://127.0.0.1:9")
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    let faults = error.lines().filter(|line| line.starts_with("error: "));
    assert_eq!(faults.count(), 1, "{error}");
    assert!(error.contains("cannot fetch `owner/name@main`"), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    let left = std::fs::read_dir(bench.path("models/hub/owner/name")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

/// A copy of the bundled model as a directory that can be damaged.
fn model_bench() -> Bench {
    let bench = Bench::new(SIM);
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("engine/models/tiny");
    std::fs::create_dir(bench.path("model")).unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(bundled.join(name), bench.path("model").join(name)).unwrap();
    }
    bench
}

/// Exit code 2 and one error with all of `words`; the model is not touched.
#[track_caller]
fn refuses_model(bench: &Bench, words: &[&str]) {
    let output = bench
        .etime(&["generate", "model", "--prompt", "KING:"])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error.matches("error: ").count(), 1, "{error}");
    assert!(!error.contains("panicked"), "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in:\n{error}");
    }
    assert_eq!(bench.names(), ["bench.ron", "model"]);
}

#[test]
fn weights_that_are_missing_truncated_misshapen_or_not_finite_are_named() {
    let bench = model_bench();
    let run = bench.etime(&["generate", "model", "--prompt", "KING:", "--new-tok", "2"]);
    { run }.assert().success();
    let path = bench.path("model/model.safetensors");
    let good = std::fs::read(&path).unwrap();

    std::fs::remove_file(&path).unwrap();
    refuses_model(&bench, &["model.safetensors"]);
    for cut in [0, 7, 4096, good.len() / 2, good.len() - 1] {
        std::fs::write(&path, &good[..cut]).unwrap();
        refuses_model(&bench, &["model.safetensors", "bytes"]);
    }
    let mut bad = good.clone();
    bad.truncate(good.len() - 4);
    bad.extend(f32::NAN.to_le_bytes());
    std::fs::write(&path, &bad).unwrap();
    refuses_model(&bench, &["model.safetensors", "not a finite number"]);

    std::fs::write(&path, &good).unwrap();
    let config = bench.path("model/config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ffn = value["intermediate_size"].as_u64().unwrap();
    value["intermediate_size"] = (ffn + 32).into();
    std::fs::write(&config, value.to_string()).unwrap();
    refuses_model(&bench, &["has shape", "wanted"]);
    value["intermediate_size"] = "wide".into();
    std::fs::write(&config, value.to_string()).unwrap();
    refuses_model(&bench, &["config.json: intermediate_size: invalid type"]);
}

#[test]
fn a_tokenizer_of_another_vocabulary_or_with_two_spellings_of_one_id_is_refused() {
    let bench = model_bench();
    let path = bench.path("model/tokenizer.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();

    let mut larger = value.clone();
    let vocab = larger["model"]["vocab"].as_object_mut().unwrap();
    let (first, size) = (vocab.keys().next().unwrap().clone(), vocab.len());
    vocab.insert("ĠetimeĠ".to_owned(), (size + 40).into());
    std::fs::write(&path, larger.to_string()).unwrap();
    refuses_model(&bench, &["the tokenizer has", "tokens and the model"]);

    let mut twice = value.clone();
    let vocab = twice["model"]["vocab"].as_object_mut().unwrap();
    let id = vocab[&first].clone();
    vocab.insert("ĠetimeĠ".to_owned(), id);
    std::fs::write(&path, twice.to_string()).unwrap();
    refuses_model(&bench, &["has two spellings"]);

    std::fs::remove_file(&path).unwrap();
    refuses_model(&bench, &["tokenizer.json"]);
}

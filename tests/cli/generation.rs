//! `etime generate`.

use crate::bench::{Bench, SIM};

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
fn a_law_whose_setpoint_no_distribution_reaches_is_refused_for_generation_too() {
    let bench = Bench::new(SIM);
    let law = "Corrected(eta_per_nat: 0.05, target_nats: 9, t_min: 0.2, t_max: 2, t_start: 1)";
    bench.refuses(
        &["generate", "tiny", "--prompt", "x", "--law", law],
        &["target_nats", "ln n = 6.2383"],
    );
}

#[test]
fn a_stop_text_ends_the_text_before_itself_and_chat_needs_a_template() {
    let bench = Bench::new(SIM);
    let text = |more: &[&str]| {
        let mut command = bench.etime(&["generate", "tiny", "--prompt", "ROMEO:", "--seed", "3"]);
        let done = command.args(more).assert().success();
        String::from_utf8(done.get_output().stdout.clone()).unwrap()
    };
    let whole = text(&["--new-tok", "64"]);
    let middle: String = whole.chars().skip(20).take(7).collect();
    let cut = text(&["--new-tok", "64", "--stop", &middle]);
    assert_eq!(
        cut.trim_end_matches('\n'),
        &whole[..whole.find(&middle).unwrap()]
    );
    let chat = ["generate", "tiny", "--prompt", "Hello", "--chat"];
    bench.refuses(&chat, &["tiny has no chat template"]);
}

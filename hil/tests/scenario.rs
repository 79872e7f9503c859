//! Scenarios: what is read, what is refused, and in which words.

use etime_control::law::TemperatureLaw;
use etime_hil::scenario::{Level, Loaded, Place, Scenario, ScenarioError, parse_law};
use std::path::Path;

const TEXT: &str = r#"// A scenario that has everything.
Scenario(
    seed: 7,
    workload: Workload(sequences: 8, prompt_tok: 32, new_tok: 128, arrivals: AtOnce),
    control: Control(
        temperature: Corrected(
            eta_per_nat: 0.05, target_nats: 2.0, t_min: 0.2, t_max: 2.0, t_start: 1.0,
            measure: Tempered,
        ),
    ),
    sim: Sim(
        plant: Synthetic(
            logits: Zipf(vocab: 512, exponent: 1.2),
            process: Ar1(phi: 0.8, sd: 0.3),
        ),
        runs: 4,
    ),
)
"#;

const HIL: &str =
    "hil=(levels: [Replay, Free], runs: 16, record: (temperatures: [0.5, 1], runs: 4))";

fn read(text: &str, sets: &[&str]) -> Result<Loaded, ScenarioError> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    Loaded::from_text(Path::new("scenarios/all.ron"), text.to_owned(), &sets)
}

fn scenario(sets: &[&str]) -> Scenario {
    read(TEXT, sets).unwrap().scenario
}

fn refused(sets: &[&str]) -> ScenarioError {
    read(TEXT, sets).unwrap_err()
}

/// `from` replaced by `to` in the text; the error must have all of `words`.
#[track_caller]
fn refused_text(from: &str, to: &str, words: &[&str]) {
    assert!(TEXT.contains(from), "{from}");
    let error = read(&TEXT.replacen(from, to, 1), &[])
        .unwrap_err()
        .to_string();
    for word in words {
        assert!(error.contains(word), "no {word:?} in:\n{error}");
    }
}

#[test]
fn the_full_scenario_reads_and_defaults_fill_what_it_leaves_out() {
    let loaded = read(TEXT, &[]).unwrap();
    assert_eq!(loaded.name(), "all");
    let TemperatureLaw::Corrected(law) = &loaded.scenario.control.temperature else {
        panic!("another law");
    };
    assert_eq!((law.eta_per_nat, law.delay_tok), (0.05, 0));
    assert_eq!(loaded.scenario.engine, None);
}

#[test]
fn overrides_reach_every_kind_of_field() {
    let seen = scenario(&[
        "seed=9",
        "control.temperature.eta_per_nat=0.1",
        "control.temperature.delay_tok=2",
        "sim.plant.process.phi=-0.25",
        "sim.plant.logits=Spiked(vocab: 100, gap: 3, spikes: 4)",
        "control.sensor=TopK(k: 40)",
        "clock=Measured",
        HIL,
        "hil.levels=[Replay]",
        "hil.tolerance.mean_u=0.2",
    ]);
    assert_eq!(seen.seed, 9);
    let TemperatureLaw::Corrected(law) = &seen.control.temperature else {
        panic!("another law");
    };
    assert_eq!((law.eta_per_nat, law.delay_tok), (0.1, 2));
    assert_eq!(seen.sim.as_ref().map(|sim| sim.plant.vocab()), Some(100));
    let hil = seen.hil.unwrap();
    assert_eq!(hil.levels, [Level::Replay]);
    assert_eq!(hil.tolerance.mean_u, 0.2);
    let fixed = scenario(&[
        "control.temperature=Fixed(t: 1.0)",
        "control.temperature.t=0.7",
    ]);
    assert_eq!(fixed.control.temperature, TemperatureLaw::Fixed { t: 0.7 });
}

#[test]
fn a_text_needs_no_quotes_in_an_override() {
    for value in ["tiny", "\"tiny\"", " tiny "] {
        let model = format!("engine.model={value}");
        let error = refused(&["engine=(model: \"x\", kv_blocks: 512, max_seqs: 8)", &model]);
        assert_eq!(error.field, "workload.prompts", "{error}");
    }
    let error = refused(&["workload.prompts=no/such file.jsonl"]);
    assert!(error.seen.as_ref().unwrap().ends_with("no/such file.jsonl"));
    let error = refused(&["workload.prompts=123"]);
    assert!(error.seen.as_ref().unwrap().ends_with("123"));
}

#[test]
fn a_resolved_scenario_reads_back_as_itself() {
    for sets in [
        &[][..],
        &[
            HIL,
            "control.temperature=Fixed(t: 1e-7)",
            "clock=Modelled(fixed_s: 1e-300, per_tok_s: 0, per_kv_byte_s: 3)",
        ],
    ] {
        let first = scenario(sets);
        let text = first.to_ron().unwrap();
        let again = read(&text, &[]).unwrap().scenario;
        assert_eq!(first, again, "{text}");
        assert_eq!(text, again.to_ron().unwrap());
    }
}

#[test]
fn an_unknown_field_is_named_with_its_place_and_the_nearest_spelling() {
    refused_text(
        "eta_per_nat: 0.05",
        "eta_pernat: 0.05",
        &[
            "scenarios/all.ron:7:13: control.temperature.eta_pernat",
            "target_nats, t_min",
            "did you mean `eta_per_nat`?",
        ],
    );
    refused_text(
        "seed: 7",
        "sed: 7",
        &["all.ron:3:5: sed", "did you mean `seed`?"],
    );
    refused_text(
        "phi: 0.8",
        "phi: 0.8, rho: 1",
        &["all.ron:14:36: sim.plant.process.rho"],
    );
}

#[test]
fn an_unknown_variant_is_named_with_all_that_exist() {
    refused_text(
        "Corrected(",
        "Correct(",
        &[
            "all.ron:6:22: control.temperature",
            "Published, Corrected",
            "did you mean `Corrected`?",
        ],
    );
    refused_text(
        "Tempered",
        "Warm",
        &["control.temperature.measure", "Tempered, Raw"],
    );
    refused_text(
        "Tempered",
        "3",
        &[
            "control.temperature.measure: there is no variant `3`",
            "Tempered, Raw",
        ],
    );
    refused_text("AtOnce", "\"AtOnce\"", &["workload.arrivals", "AtOnce"]);
}

#[test]
fn a_wrong_type_shows_the_value_and_what_is_allowed() {
    for (from, to, field, allowed) in [
        (
            "new_tok: 128",
            "new_tok: 1.5",
            "workload.new_tok",
            "a whole number",
        ),
        (
            "new_tok: 128",
            "new_tok: -3",
            "workload.new_tok",
            "a whole number",
        ),
        (
            "new_tok: 128",
            "new_tok: \"many\"",
            "workload.new_tok",
            "a whole number",
        ),
        (
            "new_tok: 128",
            "new_tok: 1e3",
            "workload.new_tok",
            "a whole number",
        ),
        (
            "new_tok: 128",
            "new_tok: 99999999999999999999999",
            "workload.new_tok",
            "a whole number",
        ),
        (
            "new_tok: 128",
            "new_tok: (1)",
            "workload.new_tok",
            "a whole number",
        ),
        (
            "t_min: 0.2",
            "t_min: \"cold\"",
            "control.temperature.t_min",
            "a number",
        ),
        (
            "t_min: 0.2",
            "t_min: 0.2.1",
            "control.temperature.t_min",
            "a number",
        ),
        (
            "t_min: 0.2",
            "t_min: true",
            "control.temperature.t_min",
            "a number",
        ),
        (
            "arrivals: AtOnce",
            "stop_at_eos: 1",
            "workload.stop_at_eos",
            "true or false",
        ),
        (
            "arrivals: AtOnce",
            "prompts: 3",
            "workload.prompts",
            "a text in double quotes",
        ),
        ("AtOnce", "AtOnce(3)", "workload.arrivals", "a bare name"),
        (
            "Ar1(phi: 0.8, sd: 0.3)",
            "Ar1",
            "sim.plant.process",
            "fields in parentheses",
        ),
        (
            "Ar1(phi: 0.8, sd: 0.3)",
            "Regimes(stay: 0.5, levels: 3)",
            "sim.plant.process.levels",
            "a list",
        ),
    ] {
        let line = format!(": {field}: this value has the wrong type");
        let value = to.split_once(": ").map_or(to, |(_, value)| value);
        refused_text(from, to, &["scenarios/all.ron:", &line, allowed]);
        if !to.starts_with("Regimes") {
            refused_text(from, to, &[value]);
        }
    }
    refused_text(
        "Scenario(",
        "Experiment(",
        &["all.ron:2:1: this value has the wrong type", "Scenario(…)"],
    );
}

#[test]
fn a_missing_field_is_named_with_the_struct_that_lacks_it() {
    refused_text(
        "eta_per_nat: 0.05, ",
        "",
        &[
            "all.ron:6:22: control.temperature.eta_per_nat",
            "is missing",
        ],
    );
    refused_text("seed: 7,", "", &["all.ron:2:1: seed", "is missing"]);
    refused_text("runs: 4,", "", &["all.ron:11:10: sim.runs", "is missing"]);
}

#[test]
fn numbers_that_are_not_finite_are_refused_everywhere() {
    for bad in [
        "NaN", "inf", "-inf", "+NaN", "inff64", "1e999", "-1e999", "1_0e9_99",
    ] {
        for from in ["t_min: 0.2", "phi: 0.8", "exponent: 1.2"] {
            let name = from.split(':').next().unwrap();
            refused_text(
                from,
                &format!("{name}: {bad}"),
                &["not a finite number", bad, name],
            );
        }
        let error = refused(&[&format!("control.h_min_nats={bad}")]);
        assert!(matches!(error.place, Place::Flag(_)), "{error}");
        assert_eq!(error.field, "control.h_min_nats");
    }
}

#[test]
fn broken_text_is_refused_where_it_breaks() {
    refused_text("seed: 7,", "seed: 7", &["all.ron:3:12", "comma"]);
    refused_text("seed: 7,", "seed: 7, seed: 8,", &["all.ron:3:14", "twice"]);
    refused_text("runs: 4,\n    ),", "runs: 4,\n    ", &["all.ron:"]);
    assert!(read("", &[]).is_err());
}

#[test]
fn values_that_make_no_sense_are_refused_with_their_line() {
    let engine = "engine=(model: \"tiny\", kv_blocks: 4, max_seqs: 8)";
    for (sets, field, allowed) in [
        (
            &["control.temperature.eta_per_nat=0"][..],
            "control.temperature.eta_per_nat",
            "above 0",
        ),
        (
            &["control.temperature.t_min=2"],
            "control.temperature.t_min",
            "less than t_max",
        ),
        (
            &["control.temperature.t_start=3"],
            "control.temperature.t_start",
            "within",
        ),
        (
            &["control.h_min_nats=2"],
            "control.h_min_nats",
            "less than target_nats",
        ),
        (
            &["control.temperature.target_nats=7"],
            "control.temperature.target_nats",
            "less than ln n",
        ),
        (&["workload.sequences=0"], "workload.sequences", "from 1"),
        (&["workload.prompt_tok=0"], "workload.prompt_tok", "from 1"),
        (&["workload.new_tok=0"], "workload.new_tok", "from 1"),
        (&["sim.runs=0"], "sim.runs", "from 1"),
        (
            &["workload.sequences=1000000", "workload.new_tok=1000000"],
            "workload.sequences",
            "fewer",
        ),
        (
            &["workload.sequences=18446744073709551615"],
            "workload.sequences",
            "from 1",
        ),
        (&["sim.runs=1000000"], "sim.runs", "fewer"),
        (
            &["sim.plant.logits.vocab=0"],
            "sim.plant.logits.vocab",
            "from 1",
        ),
        (&["sim.plant.process.phi=1.5"], "sim.plant.process.phi", ""),
        (
            &["clock=Modelled(fixed_s: -1, per_tok_s: 0, per_kv_byte_s: 0)"],
            "clock.fixed_s",
            "from 0 to",
        ),
        (
            &["workload.prompts=none.jsonl"],
            "workload.prompts",
            "does not exist",
        ),
        (&[engine], "engine.kv_blocks", "at least 10"),
        (
            &[engine, "engine.kv_blocks=10"],
            "workload.prompts",
            "the engine needs text",
        ),
        (
            &[engine, "engine.kv_blocks=0"],
            "engine.kv_blocks",
            "1 or more",
        ),
        (
            &[engine, "engine.kv_blocks=4294967295"],
            "engine.kv_blocks",
            "at most",
        ),
        (
            &[engine, "engine.kv_blocks=10", "engine.model="],
            "engine.model",
            "",
        ),
        (&[HIL, "hil.levels=[]"], "hil.levels", "at least one"),
        (&[HIL, "hil.levels=[Free, Free]"], "hil.levels", "once"),
        (&[HIL, "hil.runs=0"], "hil.runs", "from 1"),
        (&[HIL, "hil.record.runs=0"], "hil.record.runs", "from 1"),
        (
            &[HIL, "hil.record.temperatures=[]"],
            "hil.record.temperatures",
            "at least one",
        ),
        (
            &[HIL, "hil.record.temperatures=[1, 0]"],
            "hil.record.temperatures",
            "above 0",
        ),
        (
            &[HIL, "hil.record.temperatures=[1, 1.0]"],
            "hil.record.temperatures",
            "once",
        ),
        (
            &[HIL, "hil.tolerance.mean_u=-1"],
            "hil.tolerance.mean_u",
            "above 0",
        ),
    ] {
        let error = refused(sets);
        assert_eq!(error.field, field, "{error}");
        assert!(error.to_string().contains(allowed), "{error}");
    }
    refused_text(
        "t_min: 0.2",
        "t_min: 2",
        &[
            "all.ron:7:57: control.temperature.t_min",
            "seen:    2",
            "less than t_max = 2",
        ],
    );
}

#[test]
fn a_bad_override_names_the_flag_and_the_nearest_path() {
    for (set, words) in [
        (
            "control.temperature.eta=0.1",
            &[
                "--set control.temperature.eta=0.1: control.temperature.eta",
                "did you mean `control.temperature.eta_per_nat`?",
            ][..],
        ),
        (
            "eta_per_nat=0.1",
            &["did you mean `control.temperature.eta_per_nat`?"],
        ),
        (
            "control.temprature.t_min=1",
            &["control.temprature", "did you mean `control.temperature`?"],
        ),
        ("seed.x=1", &["`seed` has no fields", "seen:    7"]),
        ("seed", &["there is no `=`"]),
        ("=1", &["not a path"]),
        ("seed=", &["--set seed="]),
        ("seed=(1", &["--set seed=(1"]),
        ("seed=x", &["--set seed=x: seed", "a whole number"]),
        (
            "seed=1, workload: 2",
            &["--set seed=1, workload: 2", "a whole number"],
        ),
        (
            "control.temperature=Fixed(t: 1",
            &["--set control.temperature=Fixed(t: 1"],
        ),
        (
            "control.temperature=Fixed(u: 1)",
            &["control.temperature.u", "allowed: t"],
        ),
    ] {
        let error = refused(&[set]).to_string();
        for word in words {
            assert!(error.contains(word), "no {word:?} in:\n{error}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named_with_the_nearest_one_that_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("quickstart.ron"), TEXT).unwrap();
    let error = Loaded::read(&folder.path().join("quickstrat.ron"), &[]).unwrap_err();
    assert!(error.to_string().contains("quickstart.ron`?"), "{error}");
    assert!(Loaded::read(&folder.path().join("quickstart.ron"), &[]).is_ok());
}

#[test]
fn a_law_on_the_command_line_is_checked_like_one_in_a_file() {
    let sets = ["t=0.5".to_owned()];
    assert_eq!(
        parse_law("--law", "Fixed(t: 1.0)", &sets).unwrap(),
        TemperatureLaw::Fixed { t: 0.5 }
    );
    for (text, word) in [
        ("Fixd(t: 1)", "Fixed"),
        ("Fixed(t: 0)", "above 0"),
        ("Fixed(t: NaN)", "finite"),
        ("Fixed(", "ends"),
    ] {
        let error = parse_law("--law", text, &[]).unwrap_err().to_string();
        assert!(
            error.contains(word) && error.starts_with("--law"),
            "{error}"
        );
    }
    let sets = ["tt=0.5".to_owned()];
    let error = parse_law("--law", "Fixed(t: 1.0)", &sets)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("--set tt=0.5: tt: there is no field"),
        "{error}"
    );
}

#[test]
fn every_shipped_scenario_reads_opens_with_a_comment_and_reads_back_as_itself() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "ron") {
            continue;
        }
        let loaded = Loaded::read(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        let text = std::fs::read_to_string(&path).unwrap();
        let command = format!("scenarios/{}.ron", loaded.name());
        assert!(text.starts_with("// "), "{command}");
        assert!(
            text.contains(&command),
            "{command} does not say how it is run"
        );
        let again = loaded.scenario.to_ron().unwrap();
        let again = Loaded::from_text(&path, again, &[]).unwrap();
        assert_eq!(again.scenario, loaded.scenario);
        names.push(loaded.name());
    }
    names.sort();
    assert_eq!(
        names,
        [
            "corrected",
            "in_step",
            "published_sign",
            "quickstart",
            "raw_measure",
            "smollm2"
        ]
    );
}

mod round_trip {
    use super::*;
    use etime_control::config::{Control, Priority, Pruning, Sensor};
    use etime_control::driver::Clock;
    use etime_control::law::{InStep, Integral, Measure, Normalised};
    use etime_hil::scenario::{Arrivals, Hil, Record, Sim, SimPlant, Workload};
    use etime_hil::tolerance::Tolerance;
    use etime_sim::{Logits, Process, Regime, SyntheticSpec};
    use proptest::prelude::*;

    fn positive() -> impl Strategy<Value = f64> {
        prop_oneof![1e-300..1e-3, 1e-3..1e3, 1e3..1e300]
    }

    fn law() -> impl Strategy<Value = TemperatureLaw> {
        let numbers = (positive(), 1e-3..0.9, 0.0..1.0, 0usize..9, any::<bool>());
        (0..5, numbers, proptest::option::of(positive())).prop_map(
            |(kind, (gain, low, ema, delay_tok, raw), step)| {
                let integral = Integral {
                    eta_per_nat: gain,
                    target_nats: 2.0 + low,
                    t_min: low,
                    t_max: 1.0 + low,
                    t_start: 1.0,
                    measure: if raw { Measure::Raw } else { Measure::Tempered },
                    ema,
                    delay_tok,
                };
                match kind {
                    0 => TemperatureLaw::Fixed { t: gain },
                    1 => TemperatureLaw::Published(integral),
                    2 => TemperatureLaw::Corrected(integral),
                    3 => TemperatureLaw::Normalised(Normalised {
                        kappa: gain,
                        target_nats: 2.0 + low,
                        v_floor: gain,
                        max_step: step,
                        t_min: low,
                        t_max: 1.0 + low,
                        t_start: 1.0,
                        ema,
                        delay_tok,
                    }),
                    _ => TemperatureLaw::InStep(InStep {
                        target_nats: 2.0 + low,
                        t_min: low,
                        t_max: 1.0 + low,
                        tol_nats: gain,
                    }),
                }
            },
        )
    }

    fn plant() -> impl Strategy<Value = SimPlant> {
        let logits = prop_oneof![
            (1usize..5000, 0.0..3.0).prop_map(|(vocab, exponent)| Logits::Zipf { vocab, exponent }),
            (1usize..50, -1e30..1e30, any::<u64>())
                .prop_map(|(vocab, sd, seed)| Logits::Gaussian { vocab, sd, seed }),
            proptest::collection::vec(-1e30f32..1e30, 1..9).prop_map(Logits::Values),
        ];
        let process = prop_oneof![
            positive().prop_map(|sd| Process::Iid { sd }),
            (-0.99..0.99, positive()).prop_map(|(phi, sd)| Process::Ar1 { phi, sd }),
            (0.0..1.0, -5.0..5.0, positive()).prop_map(|(stay, mean, sd)| Process::Regimes {
                stay,
                levels: vec![Regime { mean, sd }, Regime { mean: 0.0, sd }],
            }),
        ];
        (logits, process, -1.0..1.0, any::<bool>()).prop_map(
            |(logits, process, feedback_per_nat, fixed)| match fixed {
                true => SimPlant::Fixed(logits),
                false => SimPlant::Synthetic(SyntheticSpec {
                    logits,
                    process,
                    feedback_per_nat,
                }),
            },
        )
    }

    fn hil() -> impl Strategy<Value = Hil> {
        let levels = proptest::sample::subsequence(Level::ALL.to_vec(), 1..=3);
        (levels, 1usize..99, positive()).prop_map(|(levels, runs, t)| Hil {
            levels,
            runs,
            record: Record {
                temperatures: vec![t, 2.0 * t],
                runs,
            },
            tolerance: Tolerance {
                mean_u: t,
                ..Tolerance::default()
            },
        })
    }

    fn scenarios() -> impl Strategy<Value = Scenario> {
        let clock = prop_oneof![
            Just(Clock::Steps),
            Just(Clock::Measured),
            positive().prop_map(|fixed_s| Clock::Modelled {
                fixed_s,
                per_tok_s: 0.0,
                per_kv_byte_s: fixed_s,
            }),
        ];
        let work = (1usize..9, 1usize..99, 1usize..99, any::<bool>());
        let parts = (proptest::option::of(plant()), proptest::option::of(hil()));
        (any::<u64>(), law(), clock, work, parts).prop_map(
            |(seed, temperature, clock, work, (plant, hil))| Scenario {
                seed,
                workload: Workload {
                    prompts: None,
                    sequences: work.0,
                    prompt_tok: work.1,
                    new_tok: work.2,
                    arrivals: Arrivals::AtOnce,
                    stop_at_eos: work.3,
                },
                control: Control {
                    temperature,
                    pruning: Pruning::Dense,
                    priority: Priority::Fcfs,
                    sensor: Sensor::Exact,
                    h_min_nats: 0.0,
                },
                clock,
                sim: plant.map(|plant| Sim { plant, runs: 3 }),
                engine: None,
                hil,
            },
        )
    }

    proptest! {
        #[test]
        fn any_scenario_is_written_so_that_it_reads_back_as_itself(scenario in scenarios()) {
            let text = scenario.to_ron().unwrap();
            match read(&text, &[]) {
                Ok(again) => prop_assert_eq!(again.scenario, scenario, "{}", text),
                // What does not pass the checks was still read: a refusal of a value names its field.
                Err(error) => prop_assert!(error.problem.contains("not allowed"), "{}\n{}", error, text),
            }
        }
    }
}

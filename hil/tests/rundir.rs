//! The run directory: whole or absent, and the same bytes every time.

use etime_control::plant::Cost;
use etime_control::trajectory::{Bound, Sample, Step, Trajectory};
use etime_hil::rundir::*;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn place(root: &Path, out: Option<PathBuf>) -> Place {
    Place {
        to: Destination {
            out,
            root: root.to_path_buf(),
            replace: false,
        },
        name: "quick".to_string(),
        scenario: "Scenario(seed: 7)".to_string(),
        prompts: None,
        options: "sim".to_string(),
    }
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// `rows` samples with values that test the bits: negative zero, subnormals, infinities, NaN.
fn trajectory(rows: u64, salt: f64) -> Trajectory {
    let odd = [
        -0.0,
        f64::MIN_POSITIVE / 3.0,
        f64::INFINITY,
        f64::NAN,
        1.0 / 3.0,
    ];
    let sample = |i: u64| {
        let x = salt + i as f64;
        Sample {
            step: i,
            time: x * 0.5,
            request: u64::MAX - i,
            index_tok: i,
            u: (x * 0.37).sin(),
            h_nats: odd[(i % 5) as usize],
            v: x.sqrt(),
            h_raw_nats: x + 0.1,
            v_raw: x + 0.2,
            h_lower_nats: x + 0.3,
            h_upper_nats: x + 0.4,
            fed_nats: x + 0.5,
            clip_u: -x,
            loop_gain: x + 0.6,
            bound: [Bound::Inside, Bound::AtMin, Bound::AtMax][(i % 3) as usize],
            token: u32::MAX - i as u32,
            surprisal_nats: x + 0.7,
            surprisal_raw_nats: x + 0.8,
            tau_nats: x + 0.9,
            tau_raw_nats: x + 1.1,
        }
    };
    let step = |i: u64| Step {
        time: i as f64,
        sequences: 3,
        drawn: i,
        cost: Cost {
            tokens: i + 1,
            kv_bytes: i * 1000,
            flops: u64::MAX - i,
            measured_s: (i % 2 == 1).then_some(i as f64 * 1e-3),
        },
    };
    Trajectory {
        samples: (0..rows).map(sample).collect(),
        steps: (0..rows).map(step).collect(),
        u_end: vec![salt, -salt],
    }
}

fn tag(phase: Phase, side: Side, run: u32) -> Tag {
    Tag { phase, side, run }
}

fn bytes_of(
    write: fn(&mut (dyn Write + Send), &[Tagged]) -> Result<(), BoxError>,
    runs: &[Tagged],
) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, runs).unwrap();
    out
}

fn table_of(bytes: &[u8]) -> Table {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table.parquet");
    fs::write(&path, bytes).unwrap();
    Table::read(&path).unwrap()
}

/// Every bit of a sample, so that NaN and -0.0 count.
fn bits(s: &Sample) -> Vec<u64> {
    let numbers = [
        s.time,
        s.u,
        s.h_nats,
        s.v,
        s.h_raw_nats,
        s.v_raw,
        s.h_lower_nats,
        s.h_upper_nats,
        s.fed_nats,
        s.clip_u,
        s.loop_gain,
        s.surprisal_nats,
        s.surprisal_raw_nats,
        s.tau_nats,
        s.tau_raw_nats,
    ];
    let mut all = vec![
        s.step,
        s.request,
        s.index_tok,
        s.bound as u64,
        u64::from(s.token),
    ];
    all.extend(numbers.map(f64::to_bits));
    all
}

#[test]
fn a_trajectory_comes_back_bit_for_bit_across_row_groups() {
    let long = trajectory(70_000, 1.0);
    let short = trajectory(5, 1e9);
    let runs = [
        Tagged {
            tag: tag(Phase::Free, Side::Measured, 3),
            trajectory: &long,
        },
        Tagged {
            tag: tag(Phase::Replay, Side::Predicted, u32::MAX),
            trajectory: &short,
        },
    ];
    let table = table_of(&bytes_of(write_trajectory, &runs));
    let read = read_samples(&table).unwrap();
    let written: Vec<(Tag, Sample)> = runs
        .iter()
        .flat_map(|run| run.trajectory.samples.iter().map(|s| (run.tag, *s)))
        .collect();
    assert_eq!(read.len(), written.len());
    for ((tag_read, read), (tag_written, written)) in read.iter().zip(&written) {
        assert_eq!(tag_read, tag_written);
        assert_eq!(bits(read), bits(written));
    }
    let t = table.f64("t").unwrap();
    assert!(
        t.iter()
            .zip(&written)
            .all(|(t, (_, s))| t.to_bits() == s.u.exp().to_bits())
    );
}

#[test]
fn every_column_names_its_unit_and_the_file_its_version() {
    let run = trajectory(3, 0.5);
    let runs = [Tagged {
        tag: tag(Phase::Sim, Side::Predicted, 0),
        trajectory: &run,
    }];
    for write in [write_trajectory, write_steps, write_timing, write_requests] {
        let table = table_of(&bytes_of(write, &runs));
        assert_eq!(table.metadata["etime.version"], VERSION);
        for (name, _) in &table.columns {
            assert!(
                table.metadata.contains_key(&format!("unit.{name}")),
                "{name}"
            );
        }
    }
    let table = table_of(&bytes_of(write_trajectory, &runs));
    assert_eq!(table.metadata["unit.h_nats"], "nats");
    assert_eq!(table.metadata["unit.v"], "nats^2");
}

#[test]
fn only_the_timing_table_holds_measured_seconds() {
    let quick = trajectory(9, 0.5);
    let mut slow = quick.clone();
    for step in &mut slow.steps {
        step.cost.measured_s = step.cost.measured_s.map(|s| s * 3.0);
    }
    let of = |t| {
        [Tagged {
            tag: tag(Phase::Sim, Side::Predicted, 0),
            trajectory: t,
        }]
    };
    for write in [write_trajectory, write_steps, write_requests] {
        assert_eq!(bytes_of(write, &of(&quick)), bytes_of(write, &of(&slow)));
    }
    let timing = table_of(&bytes_of(write_timing, &of(&slow)));
    assert_eq!(timing.u64("step").unwrap(), [1, 3, 5, 7]);
    assert_eq!(timing.f64("measured_s").unwrap()[1], 3.0 * 3e-3);
}

#[test]
fn a_run_without_rows_still_gives_readable_tables() {
    let table = table_of(&bytes_of(write_trajectory, &[]));
    assert_eq!((table.rows, table.columns.len()), (0, 24));
    assert!(read_samples(&table).unwrap().is_empty());
}

#[test]
fn a_missing_or_mistyped_column_is_named_with_those_that_are_there() {
    let table = table_of(&bytes_of(write_requests, &[]));
    for error in [
        table.f64("h_nats").unwrap_err(),
        table.u32("u_end").unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains("u_end: f64"), "{text}");
    }
}

#[test]
fn a_truncated_table_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("half.parquet");
    let run = trajectory(100, 0.5);
    let bytes = bytes_of(
        write_trajectory,
        &[Tagged {
            tag: tag(Phase::Sim, Side::Predicted, 0),
            trajectory: &run,
        }],
    );
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let text = Table::read(&path).unwrap_err().to_string();
    assert!(text.contains("half.parquet"), "{text}");
}

fn whole_run(place: &Place) -> PathBuf {
    let run = RunDir::create(place).unwrap();
    let of = trajectory(50, 2.0);
    let runs = [Tagged {
        tag: tag(Phase::Sim, Side::Predicted, 0),
        trajectory: &of,
    }];
    run.write("trajectory.parquet", |out| write_trajectory(out, &runs))
        .unwrap();
    run.write_json("summary.json", &[1, 2]).unwrap();
    run.write_text("figures/t.svg", "<svg/>").unwrap();
    let about = About {
        device: Some("cpu".to_string()),
        model: None,
        seeds: vec![7],
    };
    run.finish(about).unwrap()
}

#[test]
fn a_finished_run_is_whole_and_leaves_nothing_beside_it() {
    let root = tempfile::tempdir().unwrap();
    let path = whole_run(&place(root.path(), None));
    assert_eq!(entries(root.path()).len(), 1);
    assert_eq!(
        entries(&path),
        [
            "figures",
            "manifest.json",
            "scenario.ron",
            "summary.json",
            "trajectory.parquet"
        ]
    );
    let manifest: Manifest =
        serde_json::from_slice(&fs::read(path.join("manifest.json")).unwrap()).unwrap();
    let listed: Vec<&str> = manifest.files.keys().map(String::as_str).collect();
    assert_eq!(
        listed,
        [
            "figures/t.svg",
            "scenario.ron",
            "summary.json",
            "trajectory.parquet"
        ]
    );
    for (name, file) in &manifest.files {
        let bytes = fs::read(path.join(name)).unwrap();
        assert_eq!(file.bytes, bytes.len() as u64);
        assert_eq!(file.blake3, blake3::hash(&bytes).to_hex().as_str());
    }
    assert_eq!(
        manifest.scenario_blake3,
        manifest.files["scenario.ron"].blake3
    );
    assert_eq!(manifest.seeds, [7]);
}

#[test]
fn two_equal_runs_write_equal_bytes_but_for_times() {
    let roots = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [a, b] = roots
        .each_ref()
        .map(|root| whole_run(&place(root.path(), None)));
    assert_eq!(a.file_name(), b.file_name());
    let manifest = |dir: &Path| -> Manifest {
        let mut m: Manifest =
            serde_json::from_slice(&fs::read(dir.join("manifest.json")).unwrap()).unwrap();
        m.started.clear();
        m.wall_s = 0.0;
        m
    };
    assert_eq!(manifest(&a), manifest(&b));
}

#[test]
fn the_same_run_again_replaces_the_first_in_whole() {
    let root = tempfile::tempdir().unwrap();
    let first = whole_run(&place(root.path(), None));
    let before = fs::read(first.join("manifest.json")).unwrap();
    let second = whole_run(&place(root.path(), None));
    assert_eq!(first, second);
    assert_ne!(fs::read(second.join("manifest.json")).unwrap(), before);
    assert_eq!(entries(root.path()).len(), 1);
}

#[test]
fn a_run_that_is_dropped_leaves_nothing_and_spares_its_predecessor() {
    let root = tempfile::tempdir().unwrap();
    let first = whole_run(&place(root.path(), None));
    let before = fs::read(first.join("manifest.json")).unwrap();
    let run = RunDir::create(&place(root.path(), None)).unwrap();
    run.write_text("summary.json", "half").unwrap();
    assert_eq!(entries(root.path()).len(), 2);
    drop(run);
    assert_eq!(entries(root.path()).len(), 1);
    assert_eq!(fs::read(first.join("manifest.json")).unwrap(), before);
}

#[test]
fn an_out_that_is_foreign_is_refused_and_left_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "mine").unwrap();
    let other = root.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("manifest.json"), "{\"name\": \"an extension\"}").unwrap();
    for (out, part) in [(&file, "is no directory"), (&other, "no etime run")] {
        let Err(error) = RunDir::create(&place(root.path(), Some(out.clone()))) else {
            panic!("{} was accepted", out.display());
        };
        let text = error.to_string();
        assert!(
            text.contains(part) && text.contains(out.to_str().unwrap()),
            "{text}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert_eq!(entries(root.path()), ["file", "other"]);
}

#[test]
fn an_out_that_is_a_run_is_replaced_even_through_a_link() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("mine");
    whole_run(&place(root.path(), Some(out.clone())));
    let first = fs::read(out.join("manifest.json")).unwrap();
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&out, &link).unwrap();
    whole_run(&place(root.path(), Some(link)));
    assert_ne!(fs::read(out.join("manifest.json")).unwrap(), first);
    assert_eq!(entries(root.path()), ["link", "mine"]);
}

#[test]
fn a_run_directory_that_somebody_put_a_file_into_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("mine");
    whole_run(&place(root.path(), Some(out.clone())));
    fs::create_dir_all(out.join("figures/extra")).unwrap();
    fs::write(out.join("figures/extra/notes.txt"), "mine").unwrap();
    let Err(error) = RunDir::create(&place(root.path(), Some(out.clone()))) else {
        panic!("accepted");
    };
    assert!(
        error.to_string().contains("figures/extra/notes.txt"),
        "{error}"
    );
    assert_eq!(
        fs::read(out.join("figures/extra/notes.txt")).unwrap(),
        b"mine"
    );
}

#[test]
fn an_unwritable_parent_is_named() {
    for out in ["/proc/etime-run", "/dev/null/run"] {
        let Err(error) = RunDir::create(&place(Path::new("."), Some(PathBuf::from(out)))) else {
            panic!("{out} was accepted");
        };
        let text = error.to_string();
        assert!(text.contains(out), "{text}");
    }
    let Err(error) = RunDir::create(&place(Path::new("."), Some(PathBuf::from("/")))) else {
        panic!("/ was accepted");
    };
    assert!(error.to_string().starts_with("/: "), "{error}");
}

#[test]
fn a_full_disk_is_one_error_that_names_the_file_and_nothing_is_left() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDir::create(&place(root.path(), None)).unwrap();
    let final_path = run.path().to_path_buf();
    let of = trajectory(50, 2.0);
    let runs = [Tagged {
        tag: tag(Phase::Sim, Side::Predicted, 0),
        trajectory: &of,
    }];
    let error = run
        .write("trajectory.parquet", |out| {
            let mut full = fs::OpenOptions::new().write(true).open("/dev/full")?;
            out.write_all(b"PAR1")?;
            write_trajectory(&mut full, &runs)
        })
        .unwrap_err();
    let text = error.to_string();
    let name = final_path.join("trajectory.parquet");
    assert!(text.contains(name.to_str().unwrap()), "{text}");
    assert!(text.contains("No space left on device"), "{text}");
    drop(run);
    assert!(entries(root.path()).is_empty());
}

#[test]
fn a_file_is_written_once() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDir::create(&place(root.path(), None)).unwrap();
    run.write_text("summary.json", "1").unwrap();
    let text = run.write_text("summary.json", "2").unwrap_err().to_string();
    assert!(
        text.contains("summary.json") && text.contains("twice"),
        "{text}"
    );
}

const VICTIM_ROOT: &str = "ETIME_TEST_VICTIM_ROOT";

/// Run alone as a child of the next test: writes half a run and waits to be killed.
#[test]
fn victim_of_the_kill_test() {
    let Some(root) = std::env::var_os(VICTIM_ROOT) else {
        return;
    };
    let run = RunDir::create(&place(Path::new(&root), None)).unwrap();
    run.write_text("summary.json", "half").unwrap();
    println!("\nready");
    std::thread::sleep(std::time::Duration::from_secs(120));
    drop(run);
}

#[test]
fn a_killed_run_leaves_no_final_directory_and_the_next_run_cleans_up() {
    let root = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim_of_the_kill_test", "--nocapture"])
        .env(VICTIM_ROOT, root.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));

    // While it lives, another run beside it must not touch it.
    let beside = RunDir::create(&place(root.path(), None)).unwrap();
    assert_eq!(entries(root.path()).len(), 2);
    drop(beside);

    child.kill().unwrap();
    child.wait().unwrap();
    let left = entries(root.path());
    assert_eq!(left.len(), 1);
    assert!(left[0].starts_with(".quick-"), "{left:?}");

    let path = whole_run(&place(root.path(), None));
    assert_eq!(
        entries(root.path()),
        [path.file_name().unwrap().to_str().unwrap()]
    );
}

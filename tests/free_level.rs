//! The error rate of the free level: how often a prediction without a fault is called wrong.

use assert_cmd::Command;

/// Repetitions, and the most of them that may fail. A level that fails 5 % of the time fails more than 4 of 40 times
/// in 5 % of all cases.
const REPETITIONS: u64 = 40;
const MOST_FAILS: u64 = 4;

#[test]
#[ignore = "about ten minutes; the full gate runs it"]
fn predictions_without_a_fault_are_seldom_called_wrong() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/quickstart.ron");
    let folder = tempfile::tempdir().unwrap();
    let (mut fails, mut unsure) = (0, 0);
    for seed in 100..100 + REPETITIONS {
        let mut etime = Command::new(assert_cmd::cargo::cargo_bin!("etime"));
        etime.current_dir(folder.path());
        etime.args([
            "hil",
            scenario,
            "--level",
            "free",
            "--out",
            "run",
            "--replace",
            "--json",
        ]);
        let output = etime.args(["--seed", &seed.to_string()]).output().unwrap();
        let code = output.status.code().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            code == 0 || code == 1,
            "seed {seed}: exit code {code}\n{error}"
        );
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let verdict = summary["verdict"].as_str().unwrap();
        println!("seed {seed}: {verdict}");
        fails += u64::from(code == 1);
        unsure += u64::from(verdict == "INCONCLUSIVE");
    }
    println!("{fails} FAIL and {unsure} INCONCLUSIVE of {REPETITIONS}");
    assert!(fails <= MOST_FAILS, "{fails} of {REPETITIONS} failed");
}

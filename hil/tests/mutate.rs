//! What the scenario's fuzzer drives, driven by seeded damage; and the fuzzer's seeds.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[path = "../../fuzz/entries/scenario.rs"]
mod entry;
#[path = "../../fuzz/entries/mutate.rs"]
mod mutator;

const BUDGET: Duration = Duration::from_secs(30);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The scenarios that ship, by name.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(root().join("scenarios")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|p| p.extension().is_some_and(|e| e == "ron"))
        .collect();
    paths.sort();
    let named = |path: PathBuf| {
        let name = path.file_name().unwrap().display().to_string();
        (name, fs::read(path).unwrap())
    };
    paths.into_iter().map(named).collect()
}

#[test]
#[ignore = "half a minute; the full gate runs it"]
fn mutations_of_the_scenarios_do_not_panic_and_survive_being_written() {
    let seeds = seeds();
    let (start, mut cases) = (Instant::now(), 0_u64);
    while start.elapsed() < BUDGET {
        let (name, seed) = &seeds[(cases % seeds.len() as u64) as usize];
        let bytes = mutator::Mutator(cases).damage(seed, seed.len());
        let ended = catch_unwind(|| entry::scenario(&bytes));
        assert!(
            ended.is_ok(),
            "case {cases}, from {name}:\n{}",
            String::from_utf8_lossy(&bytes)
        );
        cases += 1;
    }
    println!("scenarios: {cases} mutations");
}

#[test]
fn the_scenarios_that_ship_survive_being_written() {
    let seeds = seeds();
    assert!(seeds.len() >= 5);
    for (_, seed) in seeds {
        entry::scenario(&seed);
    }
}

#[test]
#[ignore = "writes into fuzz/corpus, which git ignores"]
fn seeds_of_the_fuzzer_of_scenarios_are_written() {
    let folder = root().join("fuzz/corpus/scenario");
    fs::create_dir_all(&folder).unwrap();
    for (name, seed) in seeds() {
        fs::write(folder.join(name), seed).unwrap();
    }
}

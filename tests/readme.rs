//! The README stays true: the gate runs each of its commands, or lists it as one that it does not run.

use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Lines of the `sh` blocks.
fn readme_commands() -> Vec<String> {
    let text = read("README.md");
    let blocks = text.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or("").lines());
    lines
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Entries of a shell array in the gate.
fn gate_list(name: &str) -> Vec<String> {
    let text = read(".ci/run");
    let start = text
        .find(&format!("{name}=("))
        .unwrap_or_else(|| panic!("no {name} in the gate"));
    let body = text[start..].split("\n)").next().unwrap_or("");
    let entries = body
        .lines()
        .filter_map(|line| line.trim().strip_prefix('\''));
    entries
        .map(|line| line.trim_end_matches('\'').to_owned())
        .collect()
}

#[test]
fn every_command_of_the_readme_is_run_or_listed_by_the_gate() {
    let commands = readme_commands();
    assert!(commands.len() >= 2, "the README has lost its commands");
    let (run, listed) = (gate_list("README_RUN"), gate_list("README_LISTED"));
    for command in &commands {
        assert!(
            run.contains(command) || listed.contains(command),
            "`{command}` is neither run nor listed by .ci/run"
        );
    }
    for command in run.iter().chain(&listed) {
        assert!(
            commands.contains(command),
            "`{command}` is in .ci/run but not in the README"
        );
    }
}

#[test]
fn only_pulls_and_peer_benchmarks_are_listed_without_being_run() {
    for command in gate_list("README_LISTED") {
        let excused = command.contains(" pull ") || command.contains("peer");
        assert!(excused, "`{command}` has to be run");
    }
}

#[test]
fn every_file_that_the_readme_links_to_exists() {
    for part in read("README.md").split("](").skip(1) {
        let target = part.split(')').next().unwrap_or("");
        let local = !target.starts_with("http");
        assert!(
            !local || Path::new(env!("CARGO_MANIFEST_DIR")).join(target).exists(),
            "{target}"
        );
    }
}

//! A folder to run commands in.

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub const SIM: &str = "(
    seed: 7,
    workload: (sequences: 2, prompt_tok: 4, new_tok: 16),
    control: (
        temperature: Corrected(eta_per_nat: 0.05, target_nats: 2.0, t_min: 0.2, t_max: 2.0, t_start: 1.0),
    ),
    sim: (plant: Synthetic(logits: Zipf(vocab: 64, exponent: 1.0), process: Iid(sd: 0.3)), runs: 3),
)
";

/// A folder with a scenario and an empty models folder.
pub struct Bench {
    pub folder: TempDir,
}

impl Bench {
    pub fn new(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bench.ron"), scenario).unwrap();
        Bench { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn etime(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("etime"));
        command.current_dir(self.folder.path()).args(args);
        command.env("ETIME_MODELS", self.path("models"));
        command
    }

    /// Exit code 2, one error with all of `words` on standard error, nothing on standard output, nothing left behind.
    #[track_caller]
    pub fn refuses(&self, args: &[&str], words: &[&str]) {
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

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Path of a scenario of this repository.
pub fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scenarios")
        .join(name);
    path.to_str().unwrap().to_owned()
}

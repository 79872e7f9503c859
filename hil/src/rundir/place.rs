//! Where a run goes: a chosen directory, or one named by what the run is made from.

use super::manifest::VERSION;
use std::path::PathBuf;

/// Hexadecimal digits of the identity in a directory name.
const SHORT_HEX: usize = 8;

/// Where a person wants a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The directory itself; `None` for `root/<name>-<short hash>`.
    pub out: Option<PathBuf>,
    /// Parent of the directories that name themselves.
    pub root: PathBuf,
    /// Whether another run that is there may be removed.
    pub replace: bool,
}

/// What decides the directory of a run.
#[derive(Clone, Debug)]
pub struct Place {
    pub to: Destination,
    /// Name of the scenario.
    pub name: String,
    /// The resolved scenario, as it is written to `scenario.ron`.
    pub scenario: String,
    /// The prompts that the scenario names, as they are written to `prompts.jsonl`.
    pub prompts: Option<String>,
    /// Whatever else decides the result, as text: command, fault, content of the model.
    pub options: String,
}

impl Place {
    /// blake3 of version, scenario, prompts and options, hexadecimal.
    pub fn identity(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let prompts = self.prompts.as_deref().unwrap_or_default();
        for part in [VERSION, &self.scenario, prompts, &self.options] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The directory that the run will have in the end.
    pub fn path(&self) -> PathBuf {
        match &self.to.out {
            Some(out) => out.clone(),
            None => self.to.root.join(format!(
                "{}-{}",
                plain(&self.name),
                &self.identity()[..SHORT_HEX]
            )),
        }
    }
}

/// `name` with letters, digits, `.`, `_` and `-` kept and everything else replaced; never hidden, never empty.
fn plain(name: &str) -> String {
    let kept: String = name
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => c,
            _ => '-',
        })
        .collect();
    match kept.trim_start_matches('.') {
        "" => "run".to_string(),
        kept => kept.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, scenario: &str, options: &str) -> Place {
        Place {
            to: Destination {
                out: None,
                root: PathBuf::from("runs"),
                replace: false,
            },
            name: name.to_string(),
            scenario: scenario.to_string(),
            prompts: None,
            options: options.to_string(),
        }
    }

    #[test]
    fn the_name_follows_every_part_and_their_boundary() {
        let paths: std::collections::BTreeSet<PathBuf> = [
            place("a", "xy", "z"),
            place("a", "x", "yz"),
            place("a", "xy", ""),
            place("b", "xy", "z"),
        ]
        .iter()
        .map(Place::path)
        .collect();
        assert_eq!(paths.len(), 4);
        assert_eq!(place("a", "x", "y").path(), place("a", "x", "y").path());
    }

    #[test]
    fn a_hostile_scenario_name_stays_one_plain_component() {
        for name in ["../../etc", ".hidden", "", "a b/c", "…"] {
            let path = place(name, "", "").path();
            assert_eq!(path.parent(), Some(std::path::Path::new("runs")), "{name}");
            let last = path.file_name().unwrap().to_str().unwrap();
            assert!(!last.starts_with('.') && last.is_ascii(), "{last}");
        }
    }
}

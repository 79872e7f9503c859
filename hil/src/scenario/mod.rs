//! Scenarios: the whole of an experiment in one RON file, with overrides, checks and errors that point.

mod check;
mod error;
mod hil;
mod nearest;
mod plant;
mod read;
mod scan;
mod source;
mod text;

pub use error::{Details, Place, ScenarioError};
pub use hil::{Hil, Level, Record};
pub use nearest::nearest;
pub use plant::SimPlant;
pub use read::parse_law;

use crate::rundir::{Found, PROMPTS};
use crate::text::read_text;
use etime_control::config::Control;
use etime_control::driver::Clock;
use etime_control::law::FieldError;
use etime_engine::settings::EngineConfig;
use serde::{Deserialize, Serialize};
use source::Source;
use std::path::{Path, PathBuf};

/// Larger than any scenario that a person writes.
const MAX_BYTES: u64 = 64 << 10;

/// An experiment: what is asked of the model, what controls it, and the plants that it runs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Every random number follows from it.
    pub seed: u64,
    pub workload: Workload,
    pub control: Control,
    #[serde(default)]
    pub clock: Clock,
    /// The simulated plant.
    #[serde(default)]
    pub sim: Option<Sim>,
    /// The real plant.
    #[serde(default)]
    pub engine: Option<EngineConfig>,
    /// Prediction against measurement.
    #[serde(default)]
    pub hil: Option<Hil>,
}

/// The requests of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// JSON lines of prompts, relative to the scenario file. Simulated plants need none.
    #[serde(default)]
    pub prompts: Option<PathBuf>,
    /// Requests per run.
    pub sequences: usize,
    /// Prompts are cut to this many tokens.
    pub prompt_tok: usize,
    /// Tokens to generate per request.
    pub new_tok: usize,
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Whether the model's end-of-text token ends a request.
    #[serde(default)]
    pub stop_at_eos: bool,
}

/// When requests arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Arrivals {
    /// All before the first step.
    #[default]
    AtOnce,
}

/// An ensemble on a simulated plant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sim {
    pub plant: SimPlant,
    /// Runs, each with its own seed.
    pub runs: usize,
}

/// A scenario with the text that it was read from, so that later errors can still point into it.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub scenario: Scenario,
    source: Source,
}

impl Loaded {
    /// Reads and checks a scenario file under `--set` overrides, applied in order.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place in the file or the override that brought it in.
    pub fn read(path: &Path, sets: &[String]) -> Result<Self, ScenarioError> {
        let text = read_text(path, MAX_BYTES).map_err(|error| unreadable(path, &error))?;
        Self::from_text(path, text, sets)
    }

    /// As [`Loaded::read`] on a text; `path` names it in errors, and its folder is where prompts are looked for.
    pub fn from_text(path: &Path, text: String, sets: &[String]) -> Result<Self, ScenarioError> {
        let (scenario, source) = read::read(Source::new(path, text), sets)?;
        let loaded = Loaded { scenario, source };
        loaded.check()?;
        Ok(loaded)
    }

    /// Path of the scenario file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Name of the scenario: its file's, without the ending; in a run directory, the name that the run had.
    pub fn name(&self) -> String {
        let beside = self.path().parent().and_then(Found::in_dir);
        if let Some(found) = beside.filter(|found| !found.scenario.is_empty()) {
            return found.scenario;
        }
        let stem = self.path().file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Where the prompts are, if the scenario has any.
    pub fn prompts(&self) -> Option<PathBuf> {
        let folder = self.path().parent().unwrap_or(Path::new(""));
        self.scenario
            .workload
            .prompts
            .as_ref()
            .map(|path| folder.join(path))
    }

    /// The scenario as it reads beside a copy of its prompts: what a run leaves, to run again from where it lies.
    pub fn movable(&self) -> Scenario {
        let mut scenario = self.scenario.clone();
        if let Some(prompts) = &mut scenario.workload.prompts {
            *prompts = PathBuf::from(PROMPTS);
        }
        scenario
    }

    /// An error that points at the field; the path is relative to the scenario.
    pub fn field_error(&self, error: FieldError) -> ScenarioError {
        read::field_error(&self.source, error)
    }

    /// An error about what the field at `path` names.
    pub fn refuse(&self, path: &str, problem: &dyn std::fmt::Display) -> ScenarioError {
        ScenarioError::new(self.source.place_of(path), path, problem.to_string())
    }

    /// Checks what depends on the model's or plant's vocabulary of `vocab` tokens.
    pub fn check_vocab(&self, vocab: usize) -> Result<(), ScenarioError> {
        let within_control = |error: FieldError| FieldError {
            path: format!("control.{}", error.path),
            ..error
        };
        let checked = self.scenario.control.check_vocab(vocab);
        checked.map_err(|error| self.field_error(within_control(error)))
    }
}

impl Scenario {
    /// The scenario as RON text that reads back as the same scenario.
    pub fn to_ron(&self) -> Result<String, ron::Error> {
        let pretty = ron::ser::PrettyConfig::new().struct_names(true);
        let mut text = read::options().to_string_pretty(self, pretty)?;
        text.push('\n');
        Ok(text)
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> ScenarioError {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new(".")))
        .into_iter()
        .flatten();
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let wanted = path.file_stem().unwrap_or_default().to_string_lossy();
    let stems = names.filter_map(|name| Some(name.strip_suffix(".ron")?.to_owned()));
    let near = match error.kind() {
        std::io::ErrorKind::NotFound => nearest(&wanted, stems),
        _ => None,
    };
    let near = near.map(|stem| path.with_file_name(stem + ".ron"));
    let problem = format!("the scenario cannot be read: {error}");
    ScenarioError::new(Place::Whole(path.to_owned()), "", problem)
        .hint(near.map(|path| format!("did you mean `{}`?", path.display())))
}

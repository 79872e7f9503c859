//! One clear error: where, which field, what was seen, what is allowed, what was probably meant.

use std::fmt;
use std::path::PathBuf;

/// Where the offending text stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// One-based line and column of a file.
    File {
        path: PathBuf,
        line: usize,
        column: usize,
    },
    /// A `--set` argument, as given.
    Flag(String),
    /// A file as a whole.
    Whole(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Place::Flag(text) => write!(f, "--set {text}"),
            Place::Whole(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A scenario that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError(Box<Details>);

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    pub place: Place,
    /// Dotted path of the field; empty where the text has none.
    pub field: String,
    pub problem: String,
    pub seen: Option<String>,
    pub allowed: Option<String>,
    pub hint: Option<String>,
}

impl ScenarioError {
    pub fn new(place: Place, field: impl Into<String>, problem: impl Into<String>) -> Self {
        ScenarioError(Box::new(Details {
            place,
            field: field.into(),
            problem: problem.into(),
            seen: None,
            allowed: None,
            hint: None,
        }))
    }

    /// The value as written, cut where it is long.
    pub fn seen(mut self, text: &str) -> Self {
        const LONGEST: usize = 60;
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(LONGEST).collect();
        let dots = if short.len() < line.len() { "…" } else { "" };
        self.0.seen = Some(format!("{short}{dots}"));
        self
    }

    pub fn allowed(mut self, text: impl Into<String>) -> Self {
        self.0.allowed = Some(text.into());
        self
    }

    pub fn hint(mut self, text: Option<String>) -> Self {
        self.0.hint = text;
        self
    }
}

impl std::ops::Deref for ScenarioError {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.problem)?;
        for (label, text) in [
            ("seen:   ", &self.seen),
            ("allowed:", &self.allowed),
            ("hint:   ", &self.hint),
        ] {
            if let Some(text) = text {
                write!(f, "\n  {label} {text}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

use std::path::PathBuf;

use crate::gguf::GgufError;

/// What can be wrong with a model's files, or with fetching them.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing says where models live.
    #[error("no folder for models: set ETIME_MODELS (or XDG_CACHE_HOME, or HOME)")]
    NoHome,
    /// Neither a known name nor a path.
    #[error(
        "unknown model `{seen}`{}; allowed: {known}, a directory with config.json, tokenizer.json and model.safetensors, a .gguf file, or a hub id owner/name@revision",
        nearest.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
    )]
    UnknownModel {
        /// What was asked for.
        seen: String,
        /// The nearest known name, if one is near.
        nearest: Option<&'static str>,
        /// All known names.
        known: String,
    },
    /// Known, but not fetched yet.
    #[error("model `{name}` is not here ({}); run `etime model pull {name}`", path.display())]
    Absent {
        /// The model.
        name: String,
        /// Where it would be.
        path: PathBuf,
    },
    /// A file of another size.
    #[error(
        "model `{name}` is damaged: {} has {seen_bytes} bytes, expected {expected_bytes}; run `etime model pull {name}`",
        path.display()
    )]
    Damaged {
        /// The model.
        name: String,
        /// Its file.
        path: PathBuf,
        /// Size of the right file.
        expected_bytes: u64,
        /// Size seen.
        seen_bytes: u64,
    },
    /// A path to nothing.
    #[error("no model at {}: no such file or directory", path.display())]
    NoSuchPath {
        /// The path.
        path: PathBuf,
    },
    /// A file that is no model.
    #[error(
        "{} is not a model; allowed: a .gguf file, or a directory with config.json, tokenizer.json and model.safetensors",
        path.display()
    )]
    NotAModel {
        /// The path.
        path: PathBuf,
    },
    /// A directory without all of its parts.
    #[error("the model directory {} lacks {missing}", path.display())]
    Incomplete {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        missing: String,
    },
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// No room for the model.
    #[error(
        "the disk that holds {} is full; the model needs {needed_bytes} bytes, and about twice that while it is fetched. Free some space, or set ETIME_MODELS to a folder elsewhere",
        path.display()
    )]
    DiskFull {
        /// The models folder of the model.
        path: PathBuf,
        /// Size of the model.
        needed_bytes: u64,
    },
    /// No source gave the right file.
    #[error("cannot fetch `{name}`{}", lines(attempts))]
    Pull {
        /// The model.
        name: String,
        /// What was tried, in order.
        attempts: Vec<Attempt>,
    },
    /// Weights that are cut short or are none.
    #[error("{file} does not hold weights: {reason}")]
    Tensors {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A GGUF file that is none.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// A config that is not JSON.
    #[error("{file} is not a model's config: {reason}")]
    Config {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
}

/// A source that was tried, and why it gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The source.
    pub mirror: String,
    /// Why it failed.
    pub reason: String,
}

fn lines(attempts: &[Attempt]) -> String {
    attempts
        .iter()
        .map(|attempt| format!("\n  from {}: {}", attempt.mirror, attempt.reason))
        .collect()
}

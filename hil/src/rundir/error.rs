//! What can go wrong with a run directory; every message names the path.

use std::io;
use std::path::PathBuf;

/// An error of whoever produced the content of a file.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    #[error("{path}: not a path that can be created: it has no last component")]
    NoName { path: PathBuf },
    #[error("{path}: is no directory; a run needs one of its own")]
    NoDirectory { path: PathBuf },
    #[error(
        "{path}: exists and is no etime run (it has no manifest.json of one), so it is left alone; name a new directory or remove it"
    )]
    NotARun { path: PathBuf },
    #[error(
        "{path}: holds another run ({scenario}, with other settings, prompts or weights); name a new directory, or let --replace remove it"
    )]
    OtherRun { path: PathBuf, scenario: String },
    #[error(
        "{path}: holds `{file}`, which the run that is there did not write, so it is left alone; move that file or name a new directory"
    )]
    HoldsOthers { path: PathBuf, file: String },
    #[error("{path}: no run directory can be created there: {source}")]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{path}: the file was to be written twice in one run")]
    Twice { path: PathBuf },
    #[error("{path}: cannot be written: {source}; nothing of this run is kept")]
    Write { path: PathBuf, source: BoxError },
    #[error("{path}: cannot be read: {source}")]
    Read { path: PathBuf, source: BoxError },
    #[error("{path}: no column `{column}` of type {wanted} (its columns: {held})")]
    NoColumn {
        path: PathBuf,
        column: String,
        wanted: &'static str,
        held: String,
    },
    #[error("{path}, row {row}: column `{column}` holds `{seen}`, allowed are {allowed}")]
    Value {
        path: PathBuf,
        row: usize,
        column: &'static str,
        seen: String,
        allowed: &'static str,
    },
}

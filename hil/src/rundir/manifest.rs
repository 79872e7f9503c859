//! `manifest.json`: what a run was made from, and checksums of what it left.

use super::Host;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Version of this package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Revision of the source, "-dirty" where it was changed since; "unknown" outside a checkout.
pub const GIT: &str = env!("ETIME_GIT");

/// Name of the manifest inside a run directory.
pub(super) const MANIFEST: &str = "manifest.json";
/// What tells a run's manifest from any other file of that name.
const KIND: &str = "etime run";

/// A model by name and content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRef {
    pub name: String,
    /// Of the weights, hexadecimal.
    pub blake3: String,
    /// Number of tensors by what they are stored as and were held as: `F32`, `Q4_1 → Q8_0`.
    #[serde(default)]
    pub weights: BTreeMap<String, usize>,
}

/// A file of the run by content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    pub bytes: u64,
    /// Hexadecimal.
    pub blake3: String,
}

/// What only the caller knows about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Where the plant computed, as in `cpu`; `None` without an engine.
    pub device: Option<String>,
    pub model: Option<ModelRef>,
    pub seeds: Vec<u64>,
}

/// Fields `started` and `wall_s`, and the checksum of `timing.parquet`, differ between equal runs; no other does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub kind: String,
    /// Name of the scenario.
    pub scenario: String,
    pub etime: String,
    pub git: String,
    pub host: Host,
    pub device: Option<String>,
    pub model: Option<ModelRef>,
    pub seeds: Vec<u64>,
    /// blake3 of `scenario.ron`, hexadecimal.
    pub scenario_blake3: String,
    /// blake3 of scenario, options and version: equal for runs that must agree.
    pub identity_blake3: String,
    /// RFC 3339, UTC.
    pub started: String,
    pub wall_s: f64,
    /// Every file but this one, by path inside the directory.
    pub files: BTreeMap<String, FileRef>,
}

impl Manifest {
    pub(super) fn new(about: About, started: String, wall_s: f64) -> Self {
        Manifest {
            kind: KIND.to_string(),
            scenario: String::new(),
            etime: VERSION.to_string(),
            git: GIT.to_string(),
            host: Host::here(),
            device: about.device,
            model: about.model,
            seeds: about.seeds,
            scenario_blake3: String::new(),
            identity_blake3: String::new(),
            started,
            wall_s,
            files: BTreeMap::new(),
        }
    }
}

/// What any version's manifest says about the run beside it.
#[derive(Deserialize)]
pub(crate) struct Found {
    kind: String,
    #[serde(default)]
    pub scenario: String,
    #[serde(default)]
    pub identity_blake3: String,
    #[serde(default)]
    files: BTreeMap<String, IgnoredAny>,
}

impl Found {
    /// `None` where no etime run is.
    pub fn in_dir(dir: &Path) -> Option<Self> {
        let text = std::fs::read(dir.join(MANIFEST)).ok()?;
        let found: Found = serde_json::from_slice(&text).ok()?;
        (found.kind == KIND).then_some(found)
    }

    /// The files that the run wrote, its manifest among them.
    pub fn files(self) -> BTreeSet<String> {
        let manifest = std::iter::once(MANIFEST.to_string());
        self.files.into_keys().chain(manifest).collect()
    }
}

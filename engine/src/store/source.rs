//! A model's files, wherever they are.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::catalogue::KNOWN;
use super::nearest::nearest;

/// A model that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSource {
    /// The known name, or the path as it was given.
    pub name: String,
    /// Licence (SPDX) of a known model.
    pub licence: Option<&'static str>,
    /// Its files.
    pub files: ModelFiles,
}

/// The files of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelFiles {
    /// Inside the program.
    Bundled(Bundled),
    /// The layout of the `transformers` library.
    Directory {
        /// `config.json`.
        config: PathBuf,
        /// `tokenizer.json`.
        tokenizer: PathBuf,
        /// `model.safetensors`, or the shards that its index names, in the order of their names.
        weights: Vec<PathBuf>,
    },
    /// One file with config, tokenizer and weights.
    Gguf(PathBuf),
}

/// The contents of a bundled model's files.
#[derive(Clone, PartialEq, Eq)]
pub struct Bundled {
    /// `config.json`.
    pub config: &'static [u8],
    /// `tokenizer.json`.
    pub tokenizer: &'static [u8],
    /// `model.safetensors`.
    pub weights: &'static [u8],
}

impl std::fmt::Debug for Bundled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bundled({} bytes of weights)", self.weights.len())
    }
}

impl ModelSource {
    /// BLAKE3 of the weights in hexadecimal, for the manifest of a run: of the file, or of the
    /// files' contents joined in the order of their names.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn blake3(&self) -> Result<String, StoreError> {
        let mut hasher = blake3::Hasher::new();
        match &self.files {
            ModelFiles::Bundled(bundled) => {
                hasher.update(bundled.weights);
            }
            ModelFiles::Directory { weights, .. } => {
                for path in weights {
                    each_chunk(path, |chunk| {
                        hasher.update(chunk);
                    })?;
                }
            }
            ModelFiles::Gguf(path) => each_chunk(path, |chunk| {
                hasher.update(chunk);
            })?,
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// BLAKE3 of everything that decides the model's output: weights, configuration and tokenizer.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn identity(&self) -> Result<String, StoreError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.blake3()?.as_bytes());
        match &self.files {
            ModelFiles::Bundled(bundled) => {
                hasher.update(bundled.config);
                hasher.update(bundled.tokenizer);
            }
            ModelFiles::Directory {
                config, tokenizer, ..
            } => {
                for path in [config, tokenizer] {
                    each_chunk(path, |chunk| {
                        hasher.update(chunk);
                    })?;
                }
            }
            ModelFiles::Gguf(_) => {}
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Size of the weights.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn weight_bytes(&self) -> Result<u64, StoreError> {
        let size = |path: &PathBuf| match std::fs::metadata(path) {
            Ok(meta) => Ok(meta.len()),
            Err(source) => Err(read_error(path, source)),
        };
        match &self.files {
            ModelFiles::Bundled(bundled) => Ok(bundled.weights.len() as u64),
            ModelFiles::Directory { weights, .. } => weights.iter().map(size).sum(),
            ModelFiles::Gguf(path) => size(path),
        }
    }
}

pub(super) fn from_path(spec: &str) -> Result<ModelSource, StoreError> {
    let path = Path::new(spec);
    let is_gguf = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("gguf"));
    let files = match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => directory(path)?,
        Ok(_) if is_gguf => ModelFiles::Gguf(path.to_path_buf()),
        Ok(_) => {
            return Err(StoreError::NotAModel {
                path: path.to_path_buf(),
            });
        }
        Err(_) if is_gguf || spec.contains(std::path::MAIN_SEPARATOR) => {
            return Err(StoreError::NoSuchPath {
                path: path.to_path_buf(),
            });
        }
        Err(_) => return Err(unknown(spec)),
    };
    Ok(ModelSource {
        name: spec.to_owned(),
        licence: None,
        files,
    })
}

pub(super) fn unknown(spec: &str) -> StoreError {
    StoreError::UnknownModel {
        seen: spec.to_owned(),
        nearest: nearest(spec, KNOWN.iter().map(|known| known.name)),
        known: KNOWN.map(|known| format!("`{}`", known.name)).join(", "),
    }
}

pub(super) fn directory(path: &Path) -> Result<ModelFiles, StoreError> {
    let config = path.join("config.json");
    let tokenizer = path.join("tokenizer.json");
    let weights = weight_files(path)?;
    let missing: Vec<String> = [&config, &tokenizer]
        .into_iter()
        .chain(&weights)
        .filter(|file| !file.is_file())
        .map(|file| file.file_name().unwrap_or_default().display().to_string())
        .collect();
    if missing.is_empty() {
        return Ok(ModelFiles::Directory {
            config,
            tokenizer,
            weights,
        });
    }
    Err(StoreError::Incomplete {
        path: path.to_path_buf(),
        missing: missing.join(", "),
    })
}

/// The shards that the index names, else `model.safetensors`.
fn weight_files(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let index = path.join("model.safetensors.index.json");
    match index.is_file() {
        true => shards(path, &index),
        false => Ok(vec![path.join("model.safetensors")]),
    }
}

pub(super) fn shards(path: &Path, index: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let bad = |reason: String| StoreError::Config {
        file: index.display().to_string(),
        reason,
    };
    let bytes = std::fs::read(index).map_err(|source| read_error(index, source))?;
    let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    let map = json
        .get("weight_map")
        .and_then(serde_json::Value::as_object)
        .ok_or_else(|| bad("no `weight_map` from tensors to files".to_owned()))?;
    let mut files = BTreeSet::new();
    for (tensor, file) in map {
        let name = file.as_str().map(Path::new).and_then(Path::file_name);
        let name = name.ok_or_else(|| bad(format!("tensor `{tensor}` names no file")))?;
        files.insert(path.join(name));
    }
    Ok(files.into_iter().collect())
}

pub(super) fn read_error(path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    }
}

/// Reads a file piece by piece: models are larger than what should be held twice.
pub(super) fn each_chunk(path: &Path, mut take: impl FnMut(&[u8])) -> Result<(), StoreError> {
    let failed = |source| read_error(path, source);
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut chunk = vec![0_u8; 1 << 20];
    loop {
        match file.read(&mut chunk).map_err(failed)? {
            0 => return Ok(()),
            n => take(&chunk[..n]),
        }
    }
}

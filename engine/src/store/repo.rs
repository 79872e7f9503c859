//! Models of the hub: fetched file by file, kept as one folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::error::{Attempt, StoreError};
use super::fetch::{FetchError, Listing, Repository};
use super::hub_id::HubId;
use super::pull::{PullEvent, Pulled, SCRATCH, Scratch, digest, install, lock};
use super::source::{self, ModelSource, read_error};
use super::tensors;
use crate::config::ModelConfig;

/// What was fetched: one line `sha256  name` for each file, as `sha256sum --check` reads it.
const CHECKSUMS: &str = "sha256.txt";
const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const GENERATION: &str = "generation_config.json";
const INDEX: &str = "model.safetensors.index.json";
const WHOLE: &str = "model.safetensors";

/// Where a model of the hub lives.
fn folder_of(id: &HubId, root: &Path) -> PathBuf {
    let repo = root.join("hub").join(&id.owner).join(&id.name);
    repo.join(&id.revision)
}

/// A model that was pulled.
pub(super) fn resolve(id: &HubId, root: &Path) -> Result<ModelSource, StoreError> {
    let path = folder_of(id, root);
    if !path.join(CHECKSUMS).is_file() {
        return Err(StoreError::Absent {
            name: id.to_string(),
            path,
        });
    }
    Ok(ModelSource {
        name: id.to_string(),
        licence: None,
        files: source::directory(&path)?,
    })
}

pub(super) fn pull(
    id: &HubId,
    root: &Path,
    from: &dyn Repository,
    events: &mut dyn FnMut(PullEvent<'_>),
) -> Result<Pulled, StoreError> {
    let target = folder_of(id, root);
    let repo = target.parent().unwrap_or(root);
    let failed = |action, source: io::Error| StoreError::Io {
        action,
        path: repo.to_path_buf(),
        source,
    };
    fs::create_dir_all(repo).map_err(|e| failed("create", e))?;
    let _lock = lock(repo, events).map_err(|e| failed("lock", e))?;
    events(PullEvent::Verifying);
    if intact(&target)? {
        return Ok(Pulled::AlreadyPresent(target));
    }
    let scratch = Scratch::create(repo.join(SCRATCH)).map_err(|e| failed("write in", e))?;
    let mirror = format!("the Hugging Face hub ({})", id.repo());
    events(PullEvent::Trying { mirror: &mirror });
    let model = scratch.0.join("model");
    fs::create_dir(&model).map_err(|e| failed("write in", e))?;
    if let Err(fault) = fetch(id, from, &scratch.0, &model, events) {
        let reason = match fault {
            Fault::Store(error) => return Err(error),
            Fault::Fetch(FetchError::DiskFull) => "the disk is full".to_owned(),
            Fault::Fetch(FetchError::NotFetched(reason)) => reason,
        };
        events(PullEvent::Failed {
            mirror: &mirror,
            reason: &reason,
        });
        return Err(StoreError::Pull {
            name: id.to_string(),
            attempts: vec![Attempt { mirror, reason }],
        });
    }
    events(PullEvent::Verifying);
    record(&model)?;
    if target.exists() {
        // A damaged folder is replaced; a rename onto it would fail.
        fs::rename(&target, scratch.0.join("old")).map_err(|e| failed("write in", e))?;
    }
    install(&model, &target).map_err(|e| failed("write in", e))?;
    Ok(Pulled::Fetched {
        path: target,
        mirror,
    })
}

enum Fault {
    Fetch(FetchError),
    Store(StoreError),
}

impl From<FetchError> for Fault {
    fn from(error: FetchError) -> Self {
        Self::Fetch(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Fetch(error.into())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Puts the model's files into `model`, the small ones first: they may say that the rest is of no use.
fn fetch(
    id: &HubId,
    from: &dyn Repository,
    scratch: &Path,
    model: &Path,
    events: &mut dyn FnMut(PullEvent<'_>),
) -> Result<(), Fault> {
    let listing = from.list(id, scratch)?;
    let mut before_bytes = 0;
    let mut get = |file: &str| -> Result<PathBuf, Fault> {
        let mut report = |done: u64, total: u64| {
            events(PullEvent::Fetched {
                done_bytes: before_bytes + done.min(total),
                total_bytes: before_bytes + total,
            });
        };
        let fetched = from.fetch(id, &listing.commit, file, scratch, &mut report)?;
        let path = model.join(file);
        fs::rename(fetched, &path)?;
        before_bytes += fs::metadata(&path)?.len();
        Ok(path)
    };
    for file in small_files(&listing)? {
        get(file)?;
    }
    let json = fs::read(model.join(CONFIG))?;
    let supported = ModelConfig::from_hf_json(&json, Path::new(CONFIG));
    supported.map_err(|error| FetchError::NotFetched(error.to_string()))?;
    let weights: Vec<PathBuf> = weight_files(&listing, model)?
        .iter()
        .map(|file| get(file))
        .collect::<Result<_, _>>()?;
    // The headers say how long the files are, so a short one shows.
    tensors::of_safetensors_files(&weights)?;
    Ok(())
}

fn small_files(listing: &Listing) -> Result<Vec<&'static str>, FetchError> {
    let has = |file: &str| listing.files.iter().any(|listed| listed == file);
    for needed in [CONFIG, TOKENIZER] {
        if !has(needed) {
            let reason = format!("the repository has no {needed}");
            return Err(FetchError::NotFetched(reason));
        }
    }
    if !has(WHOLE) && !has(INDEX) {
        let reason = format!("the repository has neither {WHOLE} nor {INDEX}");
        return Err(FetchError::NotFetched(reason));
    }
    let all = [CONFIG, TOKENIZER, GENERATION, INDEX];
    Ok(all.into_iter().filter(|file| has(file)).collect())
}

/// The shards that the fetched index names, else the one file.
fn weight_files(listing: &Listing, model: &Path) -> Result<Vec<String>, Fault> {
    let index = model.join(INDEX);
    if !index.is_file() {
        return Ok(vec![WHOLE.to_owned()]);
    }
    let files: BTreeSet<String> = source::shards(model, &index)?
        .iter()
        .filter_map(|path| path.file_name())
        .map(|name| name.display().to_string())
        .collect();
    match files.iter().find(|file| !listing.files.contains(file)) {
        None => Ok(files.into_iter().collect()),
        Some(file) => {
            let reason = format!("the index names {file}, which the repository lacks");
            Err(FetchError::NotFetched(reason).into())
        }
    }
}

/// Writes the checksum of every file.
fn record(model: &Path) -> Result<(), StoreError> {
    let failed = |source| read_error(model, source);
    let mut sums = BTreeMap::new();
    for entry in fs::read_dir(model).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().display().to_string();
        sums.insert(name, digest(&path)?.1);
    }
    let lines = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n"));
    let path = model.join(CHECKSUMS);
    fs::write(&path, lines.collect::<String>()).map_err(|source| StoreError::Io {
        action: "write",
        path,
        source,
    })
}

/// Whether a folder holds every file that was fetched into it, unchanged.
fn intact(folder: &Path) -> Result<bool, StoreError> {
    let path = folder.join(CHECKSUMS);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(read_error(&path, source)),
        Ok(text) => text,
    };
    for line in text.lines() {
        let Some((sum, name)) = line.split_once("  ") else {
            return Ok(false);
        };
        let file = folder.join(name);
        if !file.is_file() || digest(&file)?.1 != sum {
            return Ok(false);
        }
    }
    Ok(!text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUNDLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny");

    /// A hub with the bundled model in it, some of its files changed.
    struct Fake {
        without: &'static [&'static str],
        cut: &'static str,
    }

    impl Repository for Fake {
        fn list(&self, _: &HubId, _: &Path) -> Result<Listing, FetchError> {
            let files = [CONFIG, TOKENIZER, WHOLE, "README.md"];
            let here = files.iter().filter(|file| !self.without.contains(file));
            Ok(Listing {
                commit: "abc".to_owned(),
                files: here.map(|file| file.to_string()).collect(),
            })
        }

        fn fetch(
            &self,
            _: &HubId,
            commit: &str,
            file: &str,
            scratch: &Path,
            report: &mut dyn FnMut(u64, u64),
        ) -> Result<PathBuf, FetchError> {
            assert_eq!(commit, "abc");
            let mut bytes = fs::read(Path::new(BUNDLED).join(file))?;
            if file == self.cut {
                bytes.truncate(bytes.len() - 3);
            }
            let path = scratch.join("fetched");
            fs::write(&path, &bytes)?;
            report(bytes.len() as u64, bytes.len() as u64);
            Ok(path)
        }
    }

    struct Dead;

    impl Repository for Dead {
        fn list(&self, _: &HubId, _: &Path) -> Result<Listing, FetchError> {
            Err(FetchError::NotFetched("no route to host".to_owned()))
        }

        fn fetch(
            &self,
            _: &HubId,
            _: &str,
            _: &str,
            _: &Path,
            _: &mut dyn FnMut(u64, u64),
        ) -> Result<PathBuf, FetchError> {
            unreachable!("nothing is fetched from a list that was not given")
        }
    }

    fn id() -> HubId {
        HubId::parse("owner/name@v1").unwrap()
    }

    fn run(root: &Path, from: &dyn Repository) -> Result<Pulled, String> {
        pull(&id(), root, from, &mut |_| ()).map_err(|e| e.to_string())
    }

    fn left_in(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root.join("hub/owner/name")).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    const WHOLE_MODEL: Fake = Fake {
        without: &[],
        cut: "",
    };

    #[test]
    fn a_model_is_fetched_recorded_found_and_fetched_again_only_when_damaged() {
        let root = tempfile::tempdir().unwrap();
        let absent = resolve(&id(), root.path()).unwrap_err().to_string();
        assert!(
            absent.contains("etime model pull owner/name@v1"),
            "{absent}"
        );
        let pulled = run(root.path(), &WHOLE_MODEL).unwrap();
        assert!(matches!(pulled, Pulled::Fetched { .. }), "{pulled:?}");
        assert_eq!(left_in(root.path()), [".lock", "v1"]);
        let found = resolve(&id(), root.path()).unwrap();
        assert_eq!(found.name, "owner/name@v1");
        let folder = folder_of(&id(), root.path());
        let sums = fs::read_to_string(folder.join(CHECKSUMS)).unwrap();
        assert_eq!(sums.lines().count(), 3, "{sums}");

        let again = run(root.path(), &Dead).unwrap();
        assert_eq!(again, Pulled::AlreadyPresent(folder.clone()));
        fs::write(folder.join(CONFIG), "{}").unwrap();
        let repaired = run(root.path(), &WHOLE_MODEL).unwrap();
        assert!(matches!(repaired, Pulled::Fetched { .. }), "{repaired:?}");
        assert_eq!(run(root.path(), &Dead), Ok(Pulled::AlreadyPresent(folder)));
    }

    #[test]
    fn a_pull_that_fails_says_why_and_leaves_nothing() {
        let lacking = |without| Fake { without, cut: "" };
        let cases: [(&dyn Repository, &str); 5] = [
            (&Dead, "no route to host"),
            (
                &lacking(&[TOKENIZER]),
                "the repository has no tokenizer.json",
            ),
            (&lacking(&[WHOLE]), "neither model.safetensors nor"),
            (
                &Fake {
                    without: &[],
                    cut: WHOLE,
                },
                "its header describes",
            ),
            (
                &Fake {
                    without: &[],
                    cut: CONFIG,
                },
                "config.json: not valid JSON",
            ),
        ];
        for (from, words) in cases {
            let root = tempfile::tempdir().unwrap();
            let error = run(root.path(), from).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert_eq!(left_in(root.path()), [".lock"]);
        }
    }
}

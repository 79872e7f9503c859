//! Fetching a model: whole or not at all.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::catalogue::Download;
use super::error::{Attempt, StoreError};
use super::fetch::{FetchError, Mirror};
use super::source::each_chunk;

/// Fetched files stay in here until they are verified; what a killed pull left is removed by the next.
pub(super) const SCRATCH: &str = ".partial";
const LOCK: &str = ".lock";

/// What happens during a pull.
#[derive(Debug)]
pub enum PullEvent<'a> {
    /// Another process pulls the same model; this one waits for it.
    Waiting,
    /// A source is tried.
    Trying {
        /// The source.
        mirror: &'a str,
    },
    /// More bytes have arrived. From one source they only grow, and never exceed the total.
    Fetched {
        /// Bytes so far; a source that packs the model, or keeps a copy, makes this a rough figure.
        done_bytes: u64,
        /// Size of the model.
        total_bytes: u64,
    },
    /// The file's hash is computed.
    Verifying,
    /// A source gave nothing; the next one follows.
    Failed {
        /// The source.
        mirror: &'a str,
        /// Why.
        reason: &'a str,
    },
}

/// How a pull ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pulled {
    /// The model is part of the program.
    Bundled,
    /// The right file was there already.
    AlreadyPresent(PathBuf),
    /// The file was fetched and verified.
    Fetched {
        /// Where it is now.
        path: PathBuf,
        /// Where it came from.
        mirror: String,
    },
}

pub(super) fn pull(
    name: &'static str,
    download: &Download,
    folder: &Path,
    mirrors: &[&dyn Mirror],
    events: &mut dyn FnMut(PullEvent<'_>),
) -> Result<Pulled, StoreError> {
    let target = folder.join(download.file);
    let full = || StoreError::DiskFull {
        path: folder.to_path_buf(),
        needed_bytes: download.bytes,
    };
    let failed = |action, source: io::Error| match source.kind() {
        ErrorKind::StorageFull => full(),
        _ => StoreError::Io {
            action,
            path: folder.to_path_buf(),
            source,
        },
    };
    fs::create_dir_all(folder).map_err(|e| failed("create", e))?;
    let _lock = lock(folder, events).map_err(|e| failed("lock", e))?;
    if target.is_file() {
        events(PullEvent::Verifying);
        if verify(&target, download)?.is_ok() {
            return Ok(Pulled::AlreadyPresent(target));
        }
    }
    let scratch = Scratch::create(folder.join(SCRATCH)).map_err(|e| failed("write in", e))?;
    let mut attempts = Vec::new();
    for mirror in mirrors {
        let mirror_name = mirror.name(download);
        events(PullEvent::Trying {
            mirror: &mirror_name,
        });
        let mut high_bytes = 0;
        let mut report = |seen_bytes: u64| {
            let done_bytes = seen_bytes.min(download.bytes);
            if done_bytes > high_bytes {
                high_bytes = done_bytes;
                events(PullEvent::Fetched {
                    done_bytes,
                    total_bytes: download.bytes,
                });
            }
        };
        let reason = match mirror.fetch(download, &scratch.0, &mut report) {
            Ok(file) => {
                events(PullEvent::Verifying);
                match verify(&file, download)? {
                    Ok(()) => {
                        install(&file, &target).map_err(|e| failed("write in", e))?;
                        return Ok(Pulled::Fetched {
                            path: target,
                            mirror: mirror_name,
                        });
                    }
                    Err(reason) => reason,
                }
            }
            Err(FetchError::DiskFull) => return Err(full()),
            Err(FetchError::NotFetched(reason)) => reason,
        };
        events(PullEvent::Failed {
            mirror: &mirror_name,
            reason: &reason,
        });
        attempts.push(Attempt {
            mirror: mirror_name,
            reason,
        });
    }
    Err(StoreError::Pull {
        name: name.to_owned(),
        attempts,
    })
}

/// The system drops the lock with the process, however that ends.
pub(super) fn lock(folder: &Path, events: &mut dyn FnMut(PullEvent<'_>)) -> io::Result<File> {
    let file = File::create(folder.join(LOCK))?;
    if file.try_lock().is_err() {
        events(PullEvent::Waiting);
        file.lock()?;
    }
    Ok(file)
}

/// Ok, or what differs. The outer error is the system's.
fn verify(path: &Path, download: &Download) -> Result<Result<(), String>, StoreError> {
    let (bytes, seen) = digest(path)?;
    if bytes != download.bytes {
        return Ok(Err(format!(
            "the file has {bytes} bytes, expected {}",
            download.bytes
        )));
    }
    if seen != download.sha256 {
        return Ok(Err(format!(
            "the file has sha256 {seen}, expected {}",
            download.sha256
        )));
    }
    Ok(Ok(()))
}

/// Length and SHA-256 in hexadecimal.
pub(super) fn digest(path: &Path) -> Result<(u64, String), StoreError> {
    let mut hasher = Sha256::new();
    let mut bytes = 0;
    each_chunk(path, |chunk| {
        hasher.update(chunk);
        bytes += chunk.len() as u64;
    })?;
    let digest = hasher.finalize();
    Ok((bytes, digest.iter().map(|b| format!("{b:02x}")).collect()))
}

/// A rename is atomic, and lasting only after both the file and its folder are on disk.
pub(super) fn install(file: &Path, target: &Path) -> io::Result<()> {
    File::open(file)?.sync_all()?;
    fs::rename(file, target)?;
    if let Some(folder) = target.parent().filter(|_| cfg!(unix)) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// An empty folder that vanishes with its owner.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        match fs::remove_dir_all(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => fs::create_dir(&path)?,
        }
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next pull.
        fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: &[u8] = b"weights";
    struct Gives(&'static [u8]);

    impl Mirror for Gives {
        fn name(&self, _: &Download) -> String {
            format!("a mirror of {} bytes", self.0.len())
        }

        fn fetch(
            &self,
            _: &Download,
            scratch: &Path,
            report: &mut dyn FnMut(u64),
        ) -> Result<PathBuf, FetchError> {
            let path = scratch.join("fetched");
            fs::write(&path, self.0).unwrap();
            for bytes in [1, 0, 3, 900] {
                report(bytes);
            }
            Ok(path)
        }
    }

    struct Fails(fn() -> FetchError);

    impl Mirror for Fails {
        fn name(&self, _: &Download) -> String {
            "a dead mirror".to_owned()
        }

        fn fetch(
            &self,
            _: &Download,
            scratch: &Path,
            _: &mut dyn FnMut(u64),
        ) -> Result<PathBuf, FetchError> {
            fs::write(scratch.join("half"), b"wei").unwrap();
            Err(self.0())
        }
    }

    fn download() -> Download {
        let digest = Sha256::digest(CONTENT);
        let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
        Download {
            file: "m.gguf",
            bytes: CONTENT.len() as u64,
            sha256: hex.leak(),
            params: 1,
            hub_repo: "",
            pypi: "",
        }
    }

    fn run(folder: &Path, mirrors: &[&dyn Mirror]) -> (Result<Pulled, StoreError>, Vec<String>) {
        let mut seen = Vec::new();
        let mut events = |event: PullEvent<'_>| seen.push(format!("{event:?}"));
        let result = pull("m", &download(), folder, mirrors, &mut events);
        (result, seen)
    }

    fn left_in(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|n| n.into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn dead() -> FetchError {
        FetchError::NotFetched("no route".to_owned())
    }

    #[test]
    fn the_second_mirror_serves_when_the_first_is_dead_or_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let wrong_size = Gives(b"weight");
        let wrong_hash = Gives(b"Weights");
        let mirrors: [&dyn Mirror; 4] = [&Fails(dead), &wrong_size, &wrong_hash, &Gives(CONTENT)];
        let (result, events) = run(folder.path(), &mirrors);
        assert!(matches!(result, Ok(Pulled::Fetched { .. })), "{result:?}");
        assert_eq!(fs::read(folder.path().join("m.gguf")).unwrap(), CONTENT);
        assert_eq!(left_in(folder.path()), [".lock", "m.gguf"]);
        let failures: Vec<_> = events.iter().filter(|e| e.starts_with("Failed")).collect();
        assert_eq!(failures.len(), 3, "{events:?}");
        assert!(failures[1].contains("6 bytes, expected 7"), "{failures:?}");
        assert!(failures[2].contains("sha256"), "{failures:?}");
    }

    #[test]
    fn the_bytes_that_are_reported_only_grow_and_stay_within_the_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut seen = Vec::new();
        let mut events = |event: PullEvent<'_>| {
            if let PullEvent::Fetched { done_bytes, .. } = event {
                seen.push(done_bytes);
            }
        };
        pull(
            "m",
            &download(),
            folder.path(),
            &[&Gives(CONTENT)],
            &mut events,
        )
        .unwrap();
        assert_eq!(seen, [1, 3, 7]);
    }

    #[test]
    fn a_model_that_is_there_is_kept_and_no_mirror_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("m.gguf"), CONTENT).unwrap();
        let (result, events) = run(folder.path(), &[&Fails(dead)]);
        assert!(
            matches!(result, Ok(Pulled::AlreadyPresent(_))),
            "{result:?}"
        );
        assert_eq!(events, ["Verifying"]);
    }

    #[test]
    fn a_damaged_model_of_the_right_size_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("m.gguf"), b"WEIGHTS").unwrap();
        let (result, _) = run(folder.path(), &[&Gives(CONTENT)]);
        assert!(matches!(result, Ok(Pulled::Fetched { .. })), "{result:?}");
        assert_eq!(fs::read(folder.path().join("m.gguf")).unwrap(), CONTENT);
    }

    #[test]
    fn a_failed_pull_names_every_attempt_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (result, _) = run(folder.path(), &[&Fails(dead), &Gives(b"other")]);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("a dead mirror: no route"), "{error}");
        assert!(error.contains("5 bytes, expected 7"), "{error}");
        assert_eq!(left_in(folder.path()), [".lock"]);
    }

    #[test]
    fn what_a_killed_pull_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = folder.path().join(SCRATCH);
        fs::create_dir_all(scratch.join("hub")).unwrap();
        fs::write(scratch.join("fetched"), b"half").unwrap();
        let (result, _) = run(folder.path(), &[&Gives(CONTENT)]);
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(left_in(folder.path()), [".lock", "m.gguf"]);
    }

    #[test]
    fn a_full_disk_ends_the_pull_with_the_size_that_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let (result, _) = run(
            folder.path(),
            &[&Fails(|| FetchError::DiskFull), &Gives(CONTENT)],
        );
        let error = result.unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::DiskFull {
                    needed_bytes: 7,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(left_in(folder.path()), [".lock"]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_with_its_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (result, _) = run(&file.path().join("sub"), &[&Gives(CONTENT)]);
        let error = result.unwrap_err().to_string();
        assert!(
            error.contains(&file.path().display().to_string()),
            "{error}"
        );
    }

    #[test]
    fn two_pulls_at_once_fetch_once() {
        let folder = tempfile::tempdir().unwrap();
        let results: Vec<Pulled> = std::thread::scope(|scope| {
            let one = || run(folder.path(), &[&Gives(CONTENT)]).0.unwrap();
            let threads = [scope.spawn(one), scope.spawn(one)];
            threads.map(|t| t.join().unwrap()).into()
        });
        let fetched = results
            .iter()
            .filter(|r| matches!(r, Pulled::Fetched { .. }));
        assert_eq!(fetched.count(), 1, "{results:?}");
    }
}

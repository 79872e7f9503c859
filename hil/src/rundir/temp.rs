//! Temporary names beside a run directory, and what dead processes left under them.
//!
//! A directory in the making is `.<name>.etime-tmp-<process>-<n>`, a predecessor moved aside `.<name>.etime-old-<process>-<n>`.
//! Its maker holds a file lock on the directory itself, so that the system frees it however the maker ends:
//! whoever gets the lock may clean up.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAKING: &str = ".etime-tmp-";
const ASIDE: &str = ".etime-old-";

/// Directories in the making of this process.
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn live() -> MutexGuard<'static, Vec<PathBuf>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what unfinished runs of this process have written: for a process that is asked to end.
pub fn abandon() {
    for path in live().drain(..) {
        let _ = fs::remove_dir_all(path);
    }
}

/// Says that `path` is finished or gone.
pub(super) fn release(path: &Path) {
    live().retain(|other| other != path);
}

/// Lock on a directory, for as long as it lives; `None` where the file system has no locks.
pub(super) struct Held(Option<File>);

/// Takes the lock of `dir`, or `None` if somebody has it.
pub(super) fn hold(dir: &Path) -> Option<Held> {
    let Ok(file) = File::open(dir) else {
        return Some(Held(None));
    };
    match file.try_lock() {
        Ok(()) => Some(Held(Some(file))),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(_)) => Some(Held(None)),
    }
}

fn fresh_name(name: &OsStr, mark: &str) -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut fresh = OsString::from(".");
    fresh.push(name);
    fresh.push(format!("{mark}{}-{n}", std::process::id()));
    fresh
}

/// A name beside `path` to move it aside to.
pub(super) fn aside_of(path: &Path, name: &OsStr) -> PathBuf {
    path.with_file_name(fresh_name(name, ASIDE))
}

/// Creates and locks an empty directory for `name` in `parent`.
pub(super) fn create(parent: &Path, name: &OsStr) -> io::Result<(PathBuf, Held)> {
    loop {
        let path = parent.join(fresh_name(name, MAKING));
        match fs::create_dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        }
        // A cleaner that saw the directory before it was locked has taken it: try the next name.
        if let Some(held) = hold(&path)
            && path.is_dir()
        {
            live().push(path.clone());
            return Ok((path, held));
        }
    }
}

/// Removes from `parent` what dead processes left, and puts back a predecessor whose successor never came.
///
/// What cannot be removed stays: it is litter, not a reason to refuse a run.
pub(super) fn clean(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((of, mark)) = name.to_str().and_then(parse) else {
            continue;
        };
        let path = entry.path();
        let Some(Held(Some(_lock))) = hold(&path) else {
            continue;
        };
        let home = parent.join(of);
        if mark == ASIDE && !home.exists() {
            let _ = fs::rename(&path, home);
        } else {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// The final name and the mark in a temporary name.
fn parse(name: &str) -> Option<(&str, &'static str)> {
    let hidden = name.strip_prefix('.')?;
    let (of, numbers, mark) = [MAKING, ASIDE].into_iter().find_map(|mark| {
        let (of, numbers) = hidden.rsplit_once(mark)?;
        Some((of, numbers, mark))
    })?;
    let (process, n) = numbers.split_once('-')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (!of.is_empty() && number(process) && number(n)).then_some((of, mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_module_are_taken_for_temporary() {
        assert_eq!(parse(".a-1.etime-tmp-12-0"), Some(("a-1", MAKING)));
        assert_eq!(parse(".a.etime-old-12-3"), Some(("a", ASIDE)));
        for other in [
            "a.etime-tmp-12-0",
            ".a.etime-tmp-12",
            ".a.etime-tmp-x-0",
            ".etime-tmp-1-2",
            ".a.tmp-1-2",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_predecessor_moved_aside_by_a_dead_process_comes_back() {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join(".a.etime-old-1-0")).unwrap();
        clean(parent.path());
        assert!(parent.path().join("a").is_dir());
    }

    #[test]
    fn a_held_directory_survives_cleaning_and_a_freed_one_does_not() {
        let parent = tempfile::tempdir().unwrap();
        let (path, held) = create(parent.path(), OsStr::new("a")).unwrap();
        clean(parent.path());
        assert!(path.is_dir());
        drop(held);
        clean(parent.path());
        assert!(!path.exists());
    }
}

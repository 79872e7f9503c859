//! A run directory in the making.

use super::error::{BoxError, RunDirError};
use super::manifest::{About, FileRef, Found, MANIFEST, Manifest};
use super::{Place, temp, time};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

const SCENARIO: &str = "scenario.ron";
/// Name of the prompts inside a run directory, and in the scenario beside them.
pub const PROMPTS: &str = "prompts.jsonl";
/// Times that a rename is tried against another process that finishes the same run.
const RENAMES: usize = 16;

/// Written beside its final place; [`RunDir::finish`] makes it appear there, dropping it removes it.
pub struct RunDir {
    place: PathBuf,
    temp: PathBuf,
    held: Option<temp::Held>,
    /// Folders that had to be made to hold the run, outermost first.
    made: Vec<PathBuf>,
    name: String,
    scenario_blake3: String,
    identity: String,
    replace: bool,
    started: SystemTime,
    clock: Instant,
}

impl RunDir {
    /// Checks the place, cleans up what dead processes left beside it, and writes `scenario.ron`.
    ///
    /// A run that is already there is replaced on [`RunDir::finish`] if it is the same run, or any run where
    /// [`Destination::replace`](super::Destination) says so; anything else is refused here.
    pub fn create(place: &Place) -> Result<RunDir, RunDirError> {
        let path = resolve(place.path())?;
        let unwritable = |source| RunDirError::Unwritable {
            path: path.clone(),
            source,
        };
        let name = path
            .file_name()
            .ok_or_else(|| RunDirError::NoName { path: path.clone() })?;
        let parent = parent_of(&path);
        let made = create_parents(&parent).map_err(unwritable)?;
        temp::clean(&parent);
        let identity = place.identity();
        refuse_foreign(&path, &identity, place.to.replace)?;
        let created = temp::create(&parent, name);
        if created.is_err() {
            remove_empty(&made);
        }
        let (temp, held) = created.map_err(unwritable)?;
        let run = RunDir {
            made,
            temp,
            held: Some(held),
            name: place.name.clone(),
            scenario_blake3: blake3::hash(place.scenario.as_bytes()).to_hex().to_string(),
            identity,
            replace: place.to.replace,
            started: SystemTime::now(),
            clock: Instant::now(),
            place: path,
        };
        run.write_text(SCENARIO, &place.scenario)?;
        if let Some(prompts) = &place.prompts {
            run.write_text(PROMPTS, prompts)?;
        }
        Ok(run)
    }

    /// The directory that the run will have in the end.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// Where the file `name` (`/` between folders) is written until the run is finished.
    fn stage(&self, name: &str) -> Result<PathBuf, RunDirError> {
        let path = self.temp.join(name);
        if path.exists() {
            return Err(RunDirError::Twice {
                path: self.place.join(name),
            });
        }
        let folder = parent_of(&path);
        fs::create_dir_all(folder).map_err(|e| self.failed(name, e.into()))?;
        Ok(path)
    }

    /// Writes the file `name` with `content`, which gets a buffered writer.
    pub fn write(
        &self,
        name: &str,
        content: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), BoxError>,
    ) -> Result<(), RunDirError> {
        let path = self.stage(name)?;
        let written = || -> Result<(), BoxError> {
            let mut out = BufWriter::new(File::create(path)?);
            content(&mut out)?;
            Ok(out.flush()?)
        };
        written().map_err(|e| self.failed(name, e))
    }

    pub fn write_text(&self, name: &str, text: &str) -> Result<(), RunDirError> {
        self.write(name, |out| Ok(out.write_all(text.as_bytes())?))
    }

    /// Pretty JSON with a final newline. JSON has no NaN and no infinity: they become null.
    pub fn write_json<T: Serialize + ?Sized>(
        &self,
        name: &str,
        value: &T,
    ) -> Result<(), RunDirError> {
        self.write(name, |out| {
            serde_json::to_writer_pretty(&mut *out, value)?;
            Ok(out.write_all(b"\n")?)
        })
    }

    /// Writes the manifest, forces everything to disk and renames the directory to its final place, which is returned.
    pub fn finish(mut self, about: About) -> Result<PathBuf, RunDirError> {
        refuse_foreign(&self.place, &self.identity, self.replace)?;
        let started = time::rfc3339(self.started);
        let mut manifest = Manifest::new(about, started, self.clock.elapsed().as_secs_f64());
        manifest.scenario = std::mem::take(&mut self.name);
        manifest.scenario_blake3 = std::mem::take(&mut self.scenario_blake3);
        manifest.identity_blake3 = self.identity.clone();
        seal(&self.temp, "", &mut manifest.files)
            .map_err(|(name, e)| self.failed(&name, e.into()))?;
        self.write_json(MANIFEST, &manifest)?;
        sync(&self.temp.join(MANIFEST))
            .and_then(|()| sync(&self.temp))
            .and_then(|()| self.appear())
            .map_err(|e| self.failed("", e.into()))?;
        self.held = None;
        temp::release(&self.temp);
        Ok(self.place.clone())
    }

    /// Takes the final place, moving a predecessor aside first and removing it last.
    fn appear(&self) -> io::Result<()> {
        for _ in 0..RENAMES {
            let aside = self.move_aside()?;
            match fs::rename(&self.temp, &self.place) {
                Ok(()) => {
                    if let Some((old, _held)) = aside {
                        // The new run is in place: an old one that resists is litter, cleaned up by a later run.
                        let _ = fs::remove_dir_all(old);
                    }
                    return sync(&parent_of(&self.place));
                }
                Err(e) => {
                    if let Some((old, _held)) = aside {
                        let _ = fs::rename(old, &self.place);
                    }
                    // Another process has finished the same run in between.
                    let taken = [
                        io::ErrorKind::DirectoryNotEmpty,
                        io::ErrorKind::AlreadyExists,
                    ];
                    if !taken.contains(&e.kind()) {
                        return Err(e);
                    }
                }
            }
        }
        Err(io::Error::other("another process keeps writing this run"))
    }

    fn move_aside(&self) -> io::Result<Option<(PathBuf, Option<temp::Held>)>> {
        let Some(name) = self.place.file_name() else {
            return Ok(None);
        };
        let held = temp::hold(&self.place);
        let old = temp::aside_of(&self.place, name);
        match fs::rename(&self.place, &old) {
            Ok(()) => Ok(Some((old, held))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn failed(&self, name: &str, source: BoxError) -> RunDirError {
        let path = match name {
            "" => self.place.clone(),
            name => self.place.join(name),
        };
        RunDirError::Write { path, source }
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if self.held.is_some() {
            // Nothing is left to report to; the next run cleans up what stays.
            let _ = fs::remove_dir_all(&self.temp);
            temp::release(&self.temp);
            remove_empty(&self.made);
        }
    }
}

/// Removes those of `folders` (outermost first) that hold nothing.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// Creates `parent` and what it needs; the folders that were not there before, outermost first.
fn create_parents(parent: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = parent.ancestors().take_while(|folder| !folder.exists());
    let mut made: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    made.reverse();
    fs::create_dir_all(parent)?;
    Ok(made)
}

/// `path` with links and `.` resolved where it exists, and its parent where only that does.
fn resolve(path: PathBuf) -> Result<PathBuf, RunDirError> {
    if let Ok(real) = fs::canonicalize(&path) {
        return Ok(real);
    }
    match path.file_name() {
        Some(_) => Ok(path),
        None => Err(RunDirError::NoName { path }),
    }
}

fn refuse_foreign(path: &Path, identity: &str, replace: bool) -> Result<(), RunDirError> {
    let path = path.to_path_buf();
    match fs::symlink_metadata(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(RunDirError::Unwritable { path, source }),
        Ok(found) if !found.is_dir() => Err(RunDirError::NoDirectory { path }),
        Ok(_) if is_empty(&path).map_err(|source| unreadable(&path, source))? => Ok(()),
        Ok(_) => {
            let Some(found) = Found::in_dir(&path) else {
                return Err(RunDirError::NotARun { path });
            };
            if !replace && found.identity_blake3 != identity {
                let scenario = found.scenario;
                return Err(RunDirError::OtherRun { path, scenario });
            }
            let foreign = first_other(&path, "", &found.files());
            match foreign.map_err(|source| unreadable(&path, source))? {
                Some(file) => Err(RunDirError::HoldsOthers { path, file }),
                None => Ok(()),
            }
        }
    }
}

fn is_empty(dir: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(dir)?.next().is_none())
}

fn unreadable(path: &Path, source: io::Error) -> RunDirError {
    RunDirError::Unwritable {
        path: path.to_path_buf(),
        source,
    }
}

/// A file below `dir` that is not among `written`.
fn first_other(dir: &Path, prefix: &str, written: &BTreeSet<String>) -> io::Result<Option<String>> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let other = match entry.file_type()?.is_dir() {
            true => first_other(&entry.path(), &format!("{name}/"), written)?,
            false => (!written.contains(&name)).then_some(name),
        };
        if other.is_some() {
            return Ok(other);
        }
    }
    Ok(None)
}

/// The folder that holds `path`; `.` for a bare name.
fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Forces a file or a directory to disk.
fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Forces every file under `dir` to disk and lists it; an error comes with the name of its file.
fn seal(
    dir: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, FileRef>,
) -> Result<(), (String, io::Error)> {
    let at_dir = |e| (prefix.trim_end_matches('/').to_string(), e);
    for entry in fs::read_dir(dir).map_err(at_dir)? {
        let entry = entry.map_err(at_dir)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        if path.is_dir() {
            seal(&path, &format!("{name}/"), files)?;
            sync(&path).map_err(|e| (name, e))?;
            continue;
        }
        let file = checksum(&path).map_err(|e| (name.clone(), e))?;
        files.insert(name, file);
    }
    Ok(())
}

fn checksum(path: &Path) -> io::Result<FileRef> {
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path)?;
    file.sync_all()?;
    let bytes = io::copy(&mut file, &mut hasher)?;
    Ok(FileRef {
        bytes,
        blake3: hasher.finalize().to_hex().to_string(),
    })
}

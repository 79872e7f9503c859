//! `etime doctor`: what this machine has, and how to get what is missing.

use crate::args;
use crate::failure::Failure;
use crate::model::presence;
use crate::show;
use etime_engine::store::{Presence, Store};
use etime_hil::rundir::{GIT, Host, VERSION};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct Report {
    version: String,
    git: String,
    host: Host,
    /// Instruction sets that the sensors and kernels can use.
    cpu_features: Vec<&'static str>,
    memory_bytes: Option<u64>,
    /// The CUDA driver library; this build computes on the CPU in any case.
    cuda_driver: Option<PathBuf>,
    models_folder: Option<PathBuf>,
    models_folder_problem: Option<String>,
    models: Vec<ModelLine>,
    /// What is missing, and the command that gets it.
    missing: Vec<Missing>,
}

#[derive(Serialize)]
struct ModelLine {
    name: &'static str,
    state: String,
}

#[derive(Serialize)]
struct Missing {
    what: String,
    fix: String,
}

pub fn run(args: &args::Doctor) -> Result<(), Failure> {
    let report = examine()?;
    match args.json {
        true => show::json(&report),
        false => show::text(&report.to_text()),
    }
}

fn examine() -> Result<Report, Failure> {
    let store = Store::from_env();
    let entries = store.list().map_err(Failure::fault)?;
    let mut missing = Vec::new();
    for entry in &entries {
        let what = match &entry.presence {
            Presence::Bundled | Presence::Present(_) => continue,
            Presence::Absent => format!("model {} is not here", entry.name),
            Presence::Damaged(path) => {
                format!("model {} is damaged: {}", entry.name, path.display())
            }
        };
        let fix = format!("etime model pull {}", entry.name);
        missing.push(Missing { what, fix });
    }
    let folder = store.root().map(Path::to_owned);
    let problem = match &folder {
        Ok(folder) => unwritable(folder),
        Err(error) => Some(error.to_string()),
    };
    if let Some(problem) = &problem {
        missing.push(Missing {
            what: format!("models cannot be kept: {problem}"),
            fix: "export ETIME_MODELS=<a folder that you can write to>".to_owned(),
        });
    }
    Ok(Report {
        version: VERSION.to_owned(),
        git: GIT.to_owned(),
        host: Host::here(),
        cpu_features: cpu_features(),
        memory_bytes: std::fs::read_to_string("/proc/meminfo")
            .ok()
            .and_then(|text| memory_bytes(&text)),
        cuda_driver: cuda_driver(),
        models_folder: folder.ok(),
        models_folder_problem: problem,
        models: entries
            .iter()
            .map(|entry| ModelLine {
                name: entry.name,
                state: presence(entry),
            })
            .collect(),
        missing,
    })
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<&'static str> {
    [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("f16c", is_x86_feature_detected!("f16c")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
    ]
    .iter()
    .filter_map(|&(name, found)| found.then_some(name))
    .collect()
}

#[cfg(target_arch = "aarch64")]
fn cpu_features() -> Vec<&'static str> {
    // Every 64-bit Arm processor has it.
    vec!["neon"]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_features() -> Vec<&'static str> {
    Vec::new()
}

/// `MemTotal` of `/proc/meminfo`.
fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Where Linux distributions, WSL and containers keep the library of the CUDA driver.
fn cuda_driver() -> Option<PathBuf> {
    const FOLDERS: [&str; 7] = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/lib/wsl/lib",
        "/usr/local/nvidia/lib64",
        "/run/opengl-driver/lib",
    ];
    let mut paths = FOLDERS
        .iter()
        .map(|folder| Path::new(folder).join("libcuda.so.1"));
    paths.find(|path| path.exists())
}

/// Why nothing can be written to `folder`, or to the nearest folder above it that exists.
fn unwritable(folder: &Path) -> Option<String> {
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    let probe = existing.join(format!(".etime-doctor-{}", std::process::id()));
    match std::fs::File::create_new(&probe) {
        Ok(_) => {
            let removed = std::fs::remove_file(&probe);
            removed
                .err()
                .map(|error| format!("{}: {error}", probe.display()))
        }
        Err(error) => Some(format!("{}: {error}", existing.display())),
    }
}

impl Report {
    fn to_text(&self) -> String {
        let features = match self.cpu_features.is_empty() {
            true => "none that are used".to_owned(),
            false => self.cpu_features.join(" "),
        };
        let memory = self.memory_bytes.map_or("unknown".to_owned(), show::bytes);
        let cuda = match &self.cuda_driver {
            Some(path) => format!(
                "driver at {}; this build computes on the CPU",
                path.display()
            ),
            None => "no driver; everything runs on the CPU".to_owned(),
        };
        let folder = match (&self.models_folder, &self.models_folder_problem) {
            (_, Some(problem)) => format!("cannot be written to: {problem}"),
            (Some(folder), None) => folder.display().to_string(),
            (None, None) => "none".to_owned(),
        };
        let mut lines = vec![
            ("etime", format!("{} ({})", self.version, self.git)),
            ("system", format!("{} {}", self.host.os, self.host.arch)),
            (
                "processor",
                format!("{}, {} threads", self.host.cpu, self.host.cores),
            ),
            ("features", features),
            ("memory", memory),
            ("CUDA", cuda),
            ("models", folder),
        ];
        for model in &self.models {
            lines.push(("", format!("{}: {}", model.name, model.state)));
        }
        let mut text: String = lines
            .iter()
            .map(|(label, value)| format!("{label:<11}{value}\n"))
            .collect();
        if self.missing.is_empty() {
            return text + "\nNothing is missing.\n";
        }
        text += "\nMissing:\n";
        for missing in &self.missing {
            text += &format!("  {}\n    {}\n", missing.what, missing.fix);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(
            memory_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"),
            Some(16384 * 1024)
        );
        assert_eq!(memory_bytes("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn a_folder_that_is_yet_to_be_made_is_judged_by_the_one_above_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(unwritable(&folder.path().join("a/b")), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

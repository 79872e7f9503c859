//! Tells the crate which revision of the source it was built from: `ETIME_GIT`, or "unknown" outside a checkout.

use std::process::Command;

/// Sources whose changes make a build differ from its revision.
const SOURCES: [&str; 6] = [
    "control/src",
    "sim/src",
    "engine/src",
    "kernels/src",
    "hil/src",
    "Cargo.lock",
];

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}

/// The short revision, with "-dirty" where tracked sources differ from it.
fn revision() -> Option<String> {
    let revision = git(&["rev-parse", "--short=12", "HEAD"])?;
    let mut status = vec![
        "-C",
        "..",
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
    ];
    status.extend(SOURCES);
    let clean = git(&status)?.is_empty();
    Some(if clean {
        revision
    } else {
        format!("{revision}-dirty")
    })
}

fn main() {
    let head = git(&["rev-parse", "--git-path", "HEAD"]);
    let branch = git(&["symbolic-ref", "-q", "HEAD"])
        .and_then(|name| git(&["rev-parse", "--git-path", &name]));
    for path in head.into_iter().chain(branch) {
        println!("cargo:rerun-if-changed={path}");
    }
    for path in SOURCES {
        println!("cargo:rerun-if-changed=../{path}");
    }
    println!(
        "cargo:rustc-env=ETIME_GIT={}",
        revision().unwrap_or_else(|| "unknown".to_string())
    );
}

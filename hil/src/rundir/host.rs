//! The machine that a run was made on.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub os: String,
    pub arch: String,
    /// Model name of the processor; "unknown" where the system does not say.
    pub cpu: String,
    /// Threads that this process may run at once.
    pub cores: usize,
}

impl Host {
    /// This machine.
    pub fn here() -> Self {
        Host {
            os: std::env::consts::OS.to_string(),
            arch: std::env::consts::ARCH.to_string(),
            cpu: std::fs::read_to_string("/proc/cpuinfo")
                .ok()
                .and_then(|text| cpu_model(&text))
                .unwrap_or_else(|| "unknown".to_string()),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
        }
    }
}

/// The first `model name` of `/proc/cpuinfo`.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    let (_, model) = line.split_once(':')?;
    Some(model.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_model_is_the_first_one_listed() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 3.00GHz\nmodel name\t: Other\n";
        assert_eq!(cpu_model(text).as_deref(), Some("Some CPU @ 3.00GHz"));
        assert_eq!(cpu_model("processor : 0\n"), None);
    }
}

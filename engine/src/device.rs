//! Where a model runs.

use serde::{Deserialize, Serialize};

use crate::error::ModelError;

/// A compute device. `Cuda` is named so that scenarios can; asking for it in a build without it is an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Device {
    #[default]
    Cpu,
    Cuda,
}

impl Device {
    /// An error if this build cannot use the device.
    pub fn check(self) -> Result<(), ModelError> {
        match self {
            Device::Cpu => Ok(()),
            Device::Cuda => Err(ModelError::Device { device: "cuda" }),
        }
    }
}

//! The run directory: everything that a run leaves on disk, whole or not at all.
//!
//! | file | content |
//! |---|---|
//! | `scenario.ron` | the resolved scenario: it runs again from here |
//! | `prompts.jsonl` | the prompts that it names |
//! | `manifest.json` | version, revision, host, device, model, seeds, wall time, checksums of the other files |
//! | `trajectory.parquet` | one row per step and sequence that drew a token |
//! | `steps.parquet` | one row per step |
//! | `requests.parquet` | one row per request: where its log-temperature ended |
//! | `timing.parquet` | measured seconds per step; the only table that differs between equal runs |
//! | `recording.safetensors` | the logit rows of a recorded run, if one was kept |
//! | `summary.json` | results |
//! | `figures/` | pictures |
//!
//! All of it is written beside its final place under a temporary name and renamed once it is complete.

mod columns;
mod dir;
mod error;
mod host;
mod manifest;
mod place;
mod recording;
mod table;
mod temp;
mod time;

pub use columns::{
    Phase, Side, Tag, Tagged, read_samples, write_requests, write_steps, write_timing,
    write_trajectory,
};
pub use dir::{PROMPTS, RunDir};
pub use error::{BoxError, RunDirError};
pub use host::Host;
pub(crate) use manifest::Found;
pub use manifest::{About, FileRef, GIT, Manifest, ModelRef, VERSION};
pub use place::{Destination, Place};
pub use recording::{read_recording, write_recording};
pub use table::{Table, Values};
pub use temp::abandon;

//! Experiments: the whole scenario, the run directory, prediction against measurement, verdicts, figures.
#![forbid(unsafe_code)]

pub mod experiment;
pub mod figures;
pub mod generate;
pub mod judge;
pub mod level;
pub mod pictures;
pub mod prompts;
pub mod rundir;
pub mod scenario;
pub mod seed;
pub mod signal;
pub mod simulate;
pub mod speed;
pub mod summary;
mod text;
pub mod tolerance;
pub mod validate;
pub mod workload;

//! Experiments: the whole scenario, the run directory, prediction against measurement, verdicts, figures.
#![forbid(unsafe_code)]

pub mod figures;
pub mod rundir;

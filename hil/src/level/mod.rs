//! The three levels of hardware in the loop: how much of the engine is held while prediction meets measurement.

pub mod columns;
pub mod exact;
pub mod free;

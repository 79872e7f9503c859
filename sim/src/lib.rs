//! Plants that are models: they answer what an engine would, from logit rows that they make up, remember or resample.
//!
//! Every plant here is a [`RowSource`]: it says which row comes next. [`InMemory`] turns a source into a
//! [`Plant`](etime_control::plant::Plant), with the same sensor and the same draw that any other plant uses.
//! Random streams are keyed by (seed, request), so that a sequence does not depend on its neighbours in a batch.
#![forbid(unsafe_code)]

pub mod bank;
pub mod ensemble;
pub mod fixed;
pub mod identified;
pub mod logits;
pub mod memory;
pub mod recording;
pub mod replay;
pub mod synthetic;

mod error;
mod nearest;

pub use bank::{Bank, BankSpec};
pub use ensemble::ensemble;
pub use error::SimError;
pub use fixed::Fixed;
pub use identified::Identified;
pub use logits::Logits;
pub use memory::{InMemory, RowSource};
pub use recording::{RecordedRequest, RecordedStep, Recorder, Recording};
pub use replay::Replay;
pub use synthetic::{Process, Regime, Synthetic, SyntheticSpec};

//! Serving: which sequence computes how many tokens in a step, and in which KV blocks.

mod pool;
mod schedule;

pub use pool::BlockPool;
pub use schedule::{Request, Scheduled, Scheduler, ServeError};

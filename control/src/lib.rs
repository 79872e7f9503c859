//! Everything that decides, as pure state machines on `f64` and integers.
//!
//! Sensors read entropy from logits, laws turn entropy into temperature, the scheduler fills a step,
//! and one [`driver`] runs them against any [`plant::Plant`]: a model of an engine or a real one.
//! Nothing here touches a tensor, a file, a thread or a wall clock. Entropies are in nats throughout.
#![forbid(unsafe_code)]

pub mod clock;
pub mod config;
pub mod draw;
pub mod driver;
pub mod law;
pub mod plant;
pub mod sensor;
pub mod serve;
pub mod trajectory;

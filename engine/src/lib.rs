//! The real plant: a language model with a paged KV cache on the CPU.
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | the shape of a model, from `config.json` or GGUF metadata |
//! | [`gguf`] | the headers of GGUF files |
//! | [`quant`] | numbers as files store them |
//! | [`model`] | weights and the forward pass |
//! | [`kv`] | the block pool of keys and values |
//! | [`step`] | what a pass is asked and what it returns |
//! | [`plant`] | the engine as `etime-control` sees it |
//! | [`store`] | where models live, and how one is fetched |
//! | [`chat`] | the prompt that a chat model was tuned on |
//! | [`tokenizer`] | text to token ids and back |
//!
//! The engine computes; every decision (which sequence, which blocks, which temperature, which token) is made in
//! `etime-control`.

#![forbid(unsafe_code)]

pub mod chat;
pub mod config;
mod config_gguf;
mod config_hf;
mod device;
mod error;
pub mod gguf;
pub mod kv;
pub mod load;
pub mod model;
pub mod plant;
pub mod quant;
pub mod settings;
pub mod step;
pub mod store;
pub mod tokenizer;
mod weights;

pub use config::{ModelConfig, RopeScaling};
pub use device::Device;
pub use error::{ModelError, StepFault};
pub use kv::KvPool;
pub use model::Model;
pub use plant::Engine;
pub use settings::{LoadOptions, WeightStorage};
pub use step::{Mass, SeqStep, StepOutput, Wanted};
pub use weights::Holdings;

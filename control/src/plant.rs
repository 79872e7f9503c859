//! What the driver asks of a plant, and nothing more: compute a step, report entropies, draw tokens.

use crate::draw::{Drawn, LogitShape, Pick};
use crate::sensor::{SensorError, Thermal};

/// One sequence's share of a step: its next `tokens`, at positions `start_tok..start_tok + tokens.len()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The request that owns the sequence.
    pub request: u64,
    /// Tokens to compute, never empty: a prefill chunk or the one token of a decode.
    pub tokens: Vec<u32>,
    /// Position of the first of `tokens`; 0 starts a sequence afresh.
    pub start_tok: usize,
    /// The block table: physical blocks in logical order, enough to hold every position so far.
    pub blocks: Vec<u32>,
    /// Whether the logits after the last token are wanted (the sequence has caught up with its text).
    pub wants_logits: bool,
}

impl Work {
    /// Tokens in the sequence once this work is done.
    pub fn end_tok(&self) -> usize {
        self.start_tok + self.tokens.len()
    }
}

/// All that a plant computes in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub works: Vec<Work>,
}

/// Handle of a logit row of the latest forward pass: the index of its [`Work`] in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row(pub usize);

/// What one step consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Tokens computed.
    pub tokens: u64,
    /// Bytes of keys and values read by attention.
    pub kv_bytes: u64,
    /// Floating-point operations (a multiply-add counts as two).
    pub flops: u64,
    /// Wall time of the pass where the plant has one, seconds.
    pub measured_s: Option<f64>,
}

/// Attention mass that one block of a sequence received from its last query row, over layers and heads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockMass {
    pub mean: f64,
    pub max: f64,
}

/// The result of one forward pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepReport {
    pub cost: Cost,
    /// Per work, per block of its table; empty where the plant has no attention.
    pub block_mass: Vec<Vec<BlockMass>>,
}

/// A question for the entropy sensor: H and V of `row` at temperature e^`u`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThermalAsk {
    pub row: Row,
    /// Log-temperature ln T; 0 asks for the raw distribution.
    pub u: f64,
    /// Head size of the top-k bracket, or `None` for the exact sensor alone.
    pub top_k: Option<usize>,
}

/// A question for the sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawAsk {
    pub row: Row,
    pub shape: LogitShape,
    pub pick: Pick,
}

#[derive(Debug, thiserror::Error)]
pub enum PlantError {
    #[error("step has no logits for row {row}: its work did not ask for any, or no pass has run")]
    NoRow { row: usize },
    #[error("request {request}, position {position}: {source}")]
    Sensor {
        request: u64,
        position: usize,
        source: SensorError,
    },
    #[error("request {request} is not in the recording (it holds {held})")]
    UnknownRequest { request: u64, held: String },
    #[error(
        "request {request}: the recording ends after {held_tok} tokens, token {asked_tok} was asked for"
    )]
    RecordingEnds {
        request: u64,
        held_tok: usize,
        asked_tok: usize,
    },
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// A language model behind a batch interface, real or simulated. It computes; it decides nothing.
pub trait Plant {
    /// Runs one step. The rows of works that want logits stay valid until the next call.
    fn forward(&mut self, batch: &Batch) -> Result<StepReport, PlantError>;

    /// Entropy and varentropy at the asked temperatures, all in one call; `out` has one slot per ask.
    fn thermal(&mut self, asks: &[ThermalAsk], out: &mut [Thermal]) -> Result<(), PlantError>;

    /// Draws, or scores, one token per ask.
    fn draw(&mut self, asks: &[DrawAsk]) -> Result<Vec<Drawn>, PlantError>;
}

/// A plant whose logit rows can be read, so that they can be recorded.
pub trait LogitRows: Plant {
    /// The F32 logits of `row`, one per symbol of the vocabulary.
    fn logits(&self, row: Row) -> Result<&[f32], PlantError>;
}

impl<P: Plant + ?Sized> Plant for &mut P {
    fn forward(&mut self, batch: &Batch) -> Result<StepReport, PlantError> {
        (**self).forward(batch)
    }

    fn thermal(&mut self, asks: &[ThermalAsk], out: &mut [Thermal]) -> Result<(), PlantError> {
        (**self).thermal(asks, out)
    }

    fn draw(&mut self, asks: &[DrawAsk]) -> Result<Vec<Drawn>, PlantError> {
        (**self).draw(asks)
    }
}

impl<P: LogitRows + ?Sized> LogitRows for &mut P {
    fn logits(&self, row: Row) -> Result<&[f32], PlantError> {
        (**self).logits(row)
    }
}

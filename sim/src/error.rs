use etime_control::plant::PlantError;
use etime_control::sensor::SensorError;

/// A plant that cannot be built, or a recording that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    #[error("{field} is {seen}; it must be {allowed}")]
    Field {
        field: &'static str,
        seen: String,
        allowed: &'static str,
    },
    #[error("request {request}, recorded step {step}: {source}")]
    Row {
        request: u64,
        step: usize,
        source: SensorError,
    },
    #[error("request {request}, step {step}: the raw surprisal is {seen}, not a number of nats")]
    Surprisal {
        request: u64,
        step: usize,
        seen: f64,
    },
    #[error(
        "request {request} drew from position {seen_tok}, position {expected_tok} was due: one recording holds one run"
    )]
    OutOfOrder {
        request: u64,
        seen_tok: usize,
        expected_tok: usize,
    },
    #[error("request {request} has a row of {seen} logits in a recording of {expected}")]
    Vocab {
        request: u64,
        seen: usize,
        expected: usize,
    },
    #[error(
        "request {request} has {rows} recorded rows and {steps} steps; each row needs its step"
    )]
    Ragged {
        request: u64,
        rows: usize,
        steps: usize,
    },
    #[error(
        "position bucket {bucket} of {buckets} holds no recorded step with a successor: record longer texts, or use fewer buckets"
    )]
    EmptyBucket { bucket: usize, buckets: usize },
    #[error("request {request} asked for a row before its last one was drawn from")]
    NotDrawn { request: u64 },
}

impl SimError {
    pub(crate) fn field(field: &'static str, seen: impl ToString, allowed: &'static str) -> Self {
        SimError::Field {
            field,
            seen: seen.to_string(),
            allowed,
        }
    }
}

impl From<SimError> for PlantError {
    fn from(error: SimError) -> Self {
        PlantError::Other(Box::new(error))
    }
}

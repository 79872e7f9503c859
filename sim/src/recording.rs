//! Recordings: every logit row that a run drew from, with what was drawn.

use crate::SimError;
use etime_control::draw::Drawn;
use etime_control::plant::{
    Batch, DrawAsk, LogitRows, Plant, PlantError, Row, StepReport, ThermalAsk,
};
use etime_control::sensor::Thermal;
use std::sync::Arc;

/// What one run of a plant showed, request by request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Logits per row.
    pub vocab: usize,
    /// The conditions of the run (law, pruner) in words: rows under one pruner say nothing about another.
    pub descriptor: String,
    /// In order of first draw.
    pub requests: Vec<RecordedRequest>,
}

/// One recorded sequence; `rows` and `steps` have the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRequest {
    pub request: u64,
    /// Tokens before the first draw.
    pub prompt_tok: usize,
    /// The F32 logits that each token was drawn from.
    pub rows: Vec<Arc<[f32]>>,
    pub steps: Vec<RecordedStep>,
}

/// What was drawn from a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedStep {
    pub token: u32,
    /// Log-temperature of the draw.
    pub u: f64,
    /// −ln p in the distribution drawn from, nats.
    pub surprisal_nats: f64,
    /// −ln p at T = 1, nats.
    pub raw_surprisal_nats: f64,
}

impl Recording {
    /// The sequence of a request.
    pub fn request(&self, request: u64) -> Option<&RecordedRequest> {
        self.requests.iter().find(|held| held.request == request)
    }

    /// Whether every row has `vocab` logits and every request as many rows as steps: for recordings read from a file.
    pub fn check(&self) -> Result<(), SimError> {
        for held in &self.requests {
            if held.rows.len() != held.steps.len() {
                return Err(SimError::Ragged {
                    request: held.request,
                    rows: held.rows.len(),
                    steps: held.steps.len(),
                });
            }
            if let Some(row) = held.rows.iter().find(|row| row.len() != self.vocab) {
                return Err(SimError::Vocab {
                    request: held.request,
                    seen: row.len(),
                    expected: self.vocab,
                });
            }
        }
        Ok(())
    }

    /// Recorded steps of all requests together.
    pub fn len(&self) -> usize {
        self.requests.iter().map(|held| held.steps.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A plant that answers as `P` does and keeps every row that a token is drawn from.
#[derive(Debug)]
pub struct Recorder<P> {
    plant: P,
    recording: Recording,
    /// Request and length of the text, per work of the latest pass.
    works: Vec<(u64, usize)>,
}

impl<P: LogitRows> Recorder<P> {
    pub fn new(plant: P, descriptor: impl Into<String>) -> Self {
        Recorder {
            plant,
            recording: Recording {
                descriptor: descriptor.into(),
                ..Recording::default()
            },
            works: Vec::new(),
        }
    }

    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The plant and what it showed.
    pub fn finish(self) -> (P, Recording) {
        (self.plant, self.recording)
    }

    fn keep(&mut self, ask: &DrawAsk, drawn: &Drawn) -> Result<(), PlantError> {
        let (request, end_tok) = *self
            .works
            .get(ask.row.0)
            .ok_or(PlantError::NoRow { row: ask.row.0 })?;
        let row: Arc<[f32]> = self.plant.logits(ask.row)?.into();
        if self.recording.vocab == 0 {
            self.recording.vocab = row.len();
        }
        if self.recording.vocab != row.len() {
            return Err(SimError::Vocab {
                request,
                seen: row.len(),
                expected: self.recording.vocab,
            }
            .into());
        }
        let requests = &mut self.recording.requests;
        let at = match requests.iter().position(|held| held.request == request) {
            Some(at) => at,
            None => {
                requests.push(RecordedRequest {
                    request,
                    prompt_tok: end_tok,
                    ..RecordedRequest::default()
                });
                requests.len() - 1
            }
        };
        let held = &mut requests[at];
        let expected_tok = held.prompt_tok + held.rows.len();
        if end_tok != expected_tok {
            return Err(SimError::OutOfOrder {
                request,
                seen_tok: end_tok,
                expected_tok,
            }
            .into());
        }
        held.rows.push(row);
        held.steps.push(RecordedStep {
            token: drawn.token,
            u: ask.shape.u(),
            surprisal_nats: drawn.surprisal_nats,
            raw_surprisal_nats: drawn.raw_surprisal_nats,
        });
        Ok(())
    }
}

impl<P: LogitRows> Plant for Recorder<P> {
    fn forward(&mut self, batch: &Batch) -> Result<StepReport, PlantError> {
        let works = batch.works.iter();
        self.works = works.map(|work| (work.request, work.end_tok())).collect();
        self.plant.forward(batch)
    }

    fn thermal(&mut self, asks: &[ThermalAsk], out: &mut [Thermal]) -> Result<(), PlantError> {
        self.plant.thermal(asks, out)
    }

    fn draw(&mut self, asks: &[DrawAsk]) -> Result<Vec<Drawn>, PlantError> {
        let drawn = self.plant.draw(asks)?;
        for (ask, drawn) in asks.iter().zip(&drawn) {
            self.keep(ask, drawn)?;
        }
        Ok(drawn)
    }
}

impl<P: LogitRows> LogitRows for Recorder<P> {
    fn logits(&self, row: Row) -> Result<&[f32], PlantError> {
        self.plant.logits(row)
    }
}

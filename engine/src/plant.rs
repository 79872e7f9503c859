//! The engine as a plant of the control loop.

use std::time::Instant;

use etime_control::draw::{Drawn, draw};
use etime_control::plant::{
    Batch, BlockMass, Cost, DrawAsk, LogitRows, Plant, PlantError, Row, StepReport, ThermalAsk,
    Work,
};
use etime_control::sensor::{SensorError, Thermal, thermal};
use rayon::prelude::*;

use crate::error::ModelError;
use crate::kv::KvPool;
use crate::model::Model;
use crate::step::{SeqStep, StepOutput, Wanted};

/// A model, its KV pool and the logit rows of the latest step.
///
/// Blocks are named by the caller; the engine writes where it is told and decides nothing. Questions about rows are
/// answered by `etime-control`'s own sensor and draw.
#[derive(Debug)]
pub struct Engine {
    model: Model,
    kv: KvPool,
    last: StepOutput,
    /// Request and length of each work of the latest step, for error messages.
    works: Vec<(u64, usize)>,
}

impl Engine {
    /// A pool of `n_blocks` blocks of `block_tok` tokens beside the model.
    pub fn new(model: Model, n_blocks: usize, block_tok: usize) -> Result<Self, ModelError> {
        let kv = KvPool::new(model.config(), n_blocks, block_tok)?;
        Ok(Self {
            model,
            kv,
            last: StepOutput::default(),
            works: vec![],
        })
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    pub fn kv(&self) -> &KvPool {
        &self.kv
    }

    fn row(&self, row: Row) -> Result<&[f32], PlantError> {
        let vocab = self.model.config().vocab;
        match self.last.rows.get(row.0) {
            Some(rows) if !rows.is_empty() => {
                Ok(&self.last.logits[(rows.end - 1) * vocab..rows.end * vocab])
            }
            _ => Err(PlantError::NoRow { row: row.0 }),
        }
    }

    fn sensor_error(&self, row: Row, source: SensorError) -> PlantError {
        let (request, position) = self.works[row.0];
        PlantError::Sensor {
            request,
            position,
            source,
        }
    }

    /// Answers asks in parallel, each from its own row; the first error in order of the asks wins.
    fn answer<A: Sync, T: Send>(
        &self,
        asks: &[A],
        row: fn(&A) -> Row,
        answer: fn(&[f32], &A) -> Result<T, SensorError>,
    ) -> Result<Vec<T>, PlantError> {
        let one = |ask: &A| {
            let logits = self.row(row(ask))?;
            answer(logits, ask).map_err(|source| self.sensor_error(row(ask), source))
        };
        let answers: Vec<Result<T, PlantError>> = asks.par_iter().map(one).collect();
        answers.into_iter().collect()
    }
}

impl Plant for Engine {
    /// `measured_s` is the wall time of the pass. A failed pass leaves no rows.
    fn forward(&mut self, batch: &Batch) -> Result<StepReport, PlantError> {
        let start = Instant::now();
        self.works = batch
            .works
            .iter()
            .map(|w| (w.request, w.end_tok()))
            .collect();
        self.last = StepOutput::default();
        let steps: Vec<SeqStep> = batch.works.iter().map(seq_step).collect();
        let (model, kv) = (&mut self.model, &mut self.kv);
        // On a thread of the pool: from outside, each of its hundreds of parallel calls would wait to be let in.
        let out = rayon::scope(|_| model.forward(kv, &steps));
        self.last = out.map_err(|e| PlantError::Other(Box::new(e)))?;
        let mass = |m: &crate::step::Mass| BlockMass {
            mean: m.mean,
            max: m.max,
        };
        Ok(StepReport {
            cost: Cost {
                tokens: self.last.tokens,
                kv_bytes: self.last.kv_bytes,
                flops: self.last.flops,
                measured_s: Some(start.elapsed().as_secs_f64()),
            },
            block_mass: self
                .last
                .mass
                .iter()
                .map(|m| m.iter().map(mass).collect())
                .collect(),
        })
    }

    fn thermal(&mut self, asks: &[ThermalAsk], out: &mut [Thermal]) -> Result<(), PlantError> {
        if asks.len() != out.len() {
            return Err(PlantError::Other(
                format!("{} questions for {} answers", asks.len(), out.len()).into(),
            ));
        }
        let answers = self.answer(asks, |a| a.row, |logits, a| thermal(logits, a.u, a.top_k))?;
        out.copy_from_slice(&answers);
        Ok(())
    }

    fn draw(&mut self, asks: &[DrawAsk]) -> Result<Vec<Drawn>, PlantError> {
        self.answer(asks, |a| a.row, |logits, a| draw(logits, a.shape, a.pick))
    }
}

impl LogitRows for Engine {
    fn logits(&self, row: Row) -> Result<&[f32], PlantError> {
        self.row(row)
    }
}

fn seq_step(work: &Work) -> SeqStep<'_> {
    SeqStep {
        tokens: &work.tokens,
        start_tok: work.start_tok,
        blocks: &work.blocks,
        kept: None,
        logits: if work.wants_logits {
            Wanted::Last
        } else {
            Wanted::None
        },
    }
}

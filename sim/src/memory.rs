//! Plants whose logit rows lie in memory: one implementation of measuring and drawing for all of them.

use etime_control::draw::{Drawn, draw};
use etime_control::plant::{
    Batch, Cost, DrawAsk, LogitRows, Plant, PlantError, Row, StepReport, ThermalAsk,
};
use etime_control::sensor::{SensorError, Thermal, thermal};
use std::sync::Arc;

/// Says which logit row each sequence meets next.
pub trait RowSource {
    /// The sequence of `request` starts afresh, at its first token.
    fn restart(&mut self, request: u64);

    /// The row after the text so far: F32 logits, one per symbol.
    fn next_row(&mut self, request: u64) -> Result<Arc<[f32]>, PlantError>;

    /// A token was drawn from the latest row of `request`.
    fn heard(&mut self, request: u64, drawn: &Drawn);
}

/// A plant around a source of rows. Its cost is the tokens computed; it has no attention and reads no KV.
#[derive(Clone, Debug)]
pub struct InMemory<S> {
    pub(crate) source: S,
    slots: Vec<Option<Slot>>,
}

#[derive(Clone, Debug)]
struct Slot {
    request: u64,
    position: usize,
    logits: Arc<[f32]>,
}

impl Slot {
    fn fault(&self, source: SensorError) -> PlantError {
        PlantError::Sensor {
            request: self.request,
            position: self.position,
            source,
        }
    }
}

impl<S: RowSource> InMemory<S> {
    pub fn from_source(source: S) -> Self {
        InMemory {
            source,
            slots: Vec::new(),
        }
    }

    fn slot(&self, row: Row) -> Result<&Slot, PlantError> {
        self.slots
            .get(row.0)
            .and_then(Option::as_ref)
            .ok_or(PlantError::NoRow { row: row.0 })
    }
}

impl<S: RowSource> Plant for InMemory<S> {
    fn forward(&mut self, batch: &Batch) -> Result<StepReport, PlantError> {
        self.slots.clear();
        let mut cost = Cost::default();
        for work in &batch.works {
            cost.tokens += work.tokens.len() as u64;
            if work.start_tok == 0 {
                self.source.restart(work.request);
            }
            let slot = match work.wants_logits {
                true => Some(Slot {
                    request: work.request,
                    position: work.end_tok(),
                    logits: self.source.next_row(work.request)?,
                }),
                false => None,
            };
            self.slots.push(slot);
        }
        Ok(StepReport {
            cost,
            block_mass: vec![Vec::new(); batch.works.len()],
        })
    }

    fn thermal(&mut self, asks: &[ThermalAsk], out: &mut [Thermal]) -> Result<(), PlantError> {
        for (ask, out) in asks.iter().zip(out) {
            let slot = self.slot(ask.row)?;
            *out = thermal(&slot.logits, ask.u, ask.top_k).map_err(|e| slot.fault(e))?;
        }
        Ok(())
    }

    fn draw(&mut self, asks: &[DrawAsk]) -> Result<Vec<Drawn>, PlantError> {
        let mut all = Vec::with_capacity(asks.len());
        for ask in asks {
            let slot = self.slot(ask.row)?;
            let request = slot.request;
            let drawn = draw(&slot.logits, ask.shape, ask.pick).map_err(|e| slot.fault(e))?;
            self.source.heard(request, &drawn);
            all.push(drawn);
        }
        Ok(all)
    }
}

impl<S: RowSource> LogitRows for InMemory<S> {
    fn logits(&self, row: Row) -> Result<&[f32], PlantError> {
        self.slot(row).map(|slot| &*slot.logits)
    }
}

//! One logit row for ever: the plant of bifurcation and stability analysis.

use crate::{InMemory, Logits, RowSource, SimError};
use etime_control::draw::Drawn;
use etime_control::plant::PlantError;
use std::sync::Arc;

/// A plant that answers every step of every sequence with the same row.
pub type Fixed = InMemory<FixedRow>;

#[derive(Clone, Debug)]
pub struct FixedRow(Arc<[f32]>);

impl Fixed {
    pub fn new(logits: &Logits) -> Result<Self, SimError> {
        Ok(InMemory::from_source(FixedRow(logits.row()?.into())))
    }
}

impl RowSource for FixedRow {
    fn restart(&mut self, _request: u64) {}

    fn next_row(&mut self, _request: u64) -> Result<Arc<[f32]>, PlantError> {
        Ok(Arc::clone(&self.0))
    }

    fn heard(&mut self, _request: u64, _drawn: &Drawn) {}
}

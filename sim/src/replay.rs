//! Recorded rows in recorded order: the same controller must give the same trajectory, bit for bit.

use crate::{InMemory, Recording, RowSource};
use etime_control::draw::Drawn;
use etime_control::plant::PlantError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A plant that answers the k-th row a request asks for (since its first token) with its k-th recorded row,
/// whatever is drawn.
pub type Replay<'a> = InMemory<ReplayRows<'a>>;

#[derive(Clone, Debug)]
pub struct ReplayRows<'a> {
    rows: BTreeMap<u64, &'a [Arc<[f32]>]>,
    asked: BTreeMap<u64, usize>,
}

impl<'a> Replay<'a> {
    pub fn new(recording: &'a Recording) -> Self {
        let requests = recording.requests.iter();
        InMemory::from_source(ReplayRows {
            rows: requests.map(|held| (held.request, &*held.rows)).collect(),
            asked: BTreeMap::new(),
        })
    }
}

impl RowSource for ReplayRows<'_> {
    fn restart(&mut self, request: u64) {
        self.asked.insert(request, 0);
    }

    fn next_row(&mut self, request: u64) -> Result<Arc<[f32]>, PlantError> {
        let rows = self
            .rows
            .get(&request)
            .ok_or_else(|| PlantError::UnknownRequest {
                request,
                held: held(&self.rows),
            })?;
        let asked = self.asked.entry(request).or_insert(0);
        *asked += 1;
        let row = rows.get(*asked - 1);
        row.map(Arc::clone).ok_or(PlantError::RecordingEnds {
            request,
            held_tok: rows.len(),
            asked_tok: *asked,
        })
    }

    fn heard(&mut self, _request: u64, _drawn: &Drawn) {}
}

/// The first request ids, for an error text.
fn held(rows: &BTreeMap<u64, &[Arc<[f32]>]>) -> String {
    const SHOWN: usize = 8;
    let mut text: Vec<String> = rows.keys().take(SHOWN).map(u64::to_string).collect();
    if rows.len() > SHOWN {
        text.push(format!("... {} in all", rows.len()));
    }
    match text.is_empty() {
        true => "none".to_string(),
        false => text.join(", "),
    }
}

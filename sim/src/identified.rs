//! A plant identified from open-loop recordings: the next row is resampled given the state of the text.

use crate::bank::Seen;
use crate::{Bank, InMemory, RowSource, SimError};
use etime_control::draw::Drawn;
use etime_control::plant::PlantError;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Conditional resampling: the row after a drawn token is the recorded successor of one of the K recorded steps
/// whose state is nearest, picked at random. The first row is a recorded first row.
///
/// The state holds the surprisal of the drawn token and its recent average, so text feedback is in it: another
/// temperature draws other tokens and meets other rows.
pub type Identified = InMemory<IdentifiedRows>;

#[derive(Clone, Debug)]
pub struct IdentifiedRows {
    bank: Bank,
    firsts: Vec<u32>,
    seed: u64,
    sequences: BTreeMap<u64, Sequence>,
}

#[derive(Clone, Debug)]
struct Sequence {
    rng: ChaCha8Rng,
    index_tok: usize,
    step: Option<u32>,
    raw_surprisal_nats: Option<f64>,
    average_nats: Option<f64>,
}

impl Identified {
    /// `seed` keys the random streams together with the request.
    pub fn new(bank: &Bank, seed: u64) -> Self {
        InMemory::from_source(IdentifiedRows {
            bank: bank.clone(),
            firsts: bank.firsts(),
            seed,
            sequences: BTreeMap::new(),
        })
    }
}

impl Sequence {
    fn new(seed: u64, request: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(request);
        Sequence {
            rng,
            index_tok: 0,
            step: None,
            raw_surprisal_nats: None,
            average_nats: None,
        }
    }

    /// The state that the next row depends on, once a token was drawn from the last one.
    fn seen(&self, step: u32) -> Option<Seen> {
        Some(Seen {
            step,
            index_tok: self.index_tok,
            raw_surprisal_nats: self.raw_surprisal_nats?,
            average_nats: self.average_nats?,
        })
    }
}

impl RowSource for IdentifiedRows {
    fn restart(&mut self, request: u64) {
        let fresh = Sequence::new(self.seed, request);
        self.sequences.insert(request, fresh);
    }

    fn next_row(&mut self, request: u64) -> Result<Arc<[f32]>, PlantError> {
        let seed = self.seed;
        let sequence = self
            .sequences
            .entry(request)
            .or_insert_with(|| Sequence::new(seed, request));
        let step = match sequence.step {
            None => self.firsts[sequence.rng.random_range(0..self.firsts.len())],
            Some(step) => {
                let seen = sequence.seen(step).ok_or(SimError::NotDrawn { request })?;
                if !seen.raw_surprisal_nats.is_finite() {
                    return Err(SimError::Surprisal {
                        request,
                        step: seen.index_tok,
                        seen: seen.raw_surprisal_nats,
                    }
                    .into());
                }
                let similar = self.bank.similar(&seen);
                sequence.index_tok += 1;
                similar[sequence.rng.random_range(0..similar.len())] + 1
            }
        };
        sequence.step = Some(step);
        sequence.raw_surprisal_nats = None;
        Ok(Arc::clone(self.bank.row(step)))
    }

    fn heard(&mut self, request: u64, drawn: &Drawn) {
        let Some(sequence) = self.sequences.get_mut(&request) else {
            return;
        };
        let surprisal_nats = drawn.raw_surprisal_nats;
        let average_nats = self
            .bank
            .spec()
            .average(sequence.average_nats, surprisal_nats);
        sequence.raw_surprisal_nats = Some(surprisal_nats);
        sequence.average_nats = Some(average_nats);
    }
}

//! A bank of recorded steps, indexed by the state in which each of them was taken.

use crate::nearest::{Nearest, Point};
use crate::{RecordedRequest, Recording, SimError};
use etime_control::sensor::thermal;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a bank compares states.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BankSpec {
    /// Recorded steps that the next one is picked among.
    pub neighbours: usize,
    /// Equal parts of the longest recorded text; neighbours come from the same part.
    pub position_buckets: usize,
    /// Half-life of the average of raw surprisals, tokens.
    pub half_life_tok: f64,
}

impl Default for BankSpec {
    fn default() -> Self {
        BankSpec {
            neighbours: 16,
            position_buckets: 4,
            half_life_tok: 8.0,
        }
    }
}

/// Recorded steps with their features: raw entropy of the row, raw surprisal of the token drawn from it, and the
/// exponential average of raw surprisals up to it. Features are standardised over the steps that have a successor.
///
/// Cheap to clone; rows are shared with the recordings.
#[derive(Clone, Debug)]
pub struct Bank {
    core: Arc<Core>,
    without: Option<Group>,
}

/// The recorded requests whose index in their recording is `index` modulo `groups`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    index: usize,
    groups: usize,
}

#[derive(Debug)]
struct Core {
    spec: BankSpec,
    steps: Vec<Step>,
    /// Steps that open a recorded sequence.
    firsts: Vec<u32>,
    /// Steps with a successor, by position.
    buckets: Vec<Nearest>,
    scale: [Scale; 3],
    longest_tok: usize,
}

/// One recorded step; the successor of a step follows it.
#[derive(Debug)]
struct Step {
    row: Arc<[f32]>,
    h_raw_nats: f64,
    /// Index of the request in its recording.
    request_index: usize,
}

#[derive(Clone, Copy, Debug)]
struct Scale {
    mean: f64,
    sd: f64,
}

/// What a simulated sequence knows when its next row is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The step whose row was drawn from.
    pub step: u32,
    /// Its index in the simulated text.
    pub index_tok: usize,
    pub raw_surprisal_nats: f64,
    pub average_nats: f64,
}

impl Bank {
    /// Indexes open-loop recordings, best of several fixed temperatures.
    ///
    /// Recordings of the same prompts must hold their requests in the same order for [`Bank::without_group`] to
    /// leave out a prompt at every temperature.
    ///
    /// # Errors
    /// A setting outside of its range, a row without an entropy, a surprisal that is not finite, rows of
    /// different lengths, a part of the text without any step that has a successor.
    pub fn new(recordings: &[Recording], spec: BankSpec) -> Result<Self, SimError> {
        spec.check()?;
        check_rows(recordings)?;
        let sequences = || {
            recordings
                .iter()
                .flat_map(|r| r.requests.iter().enumerate())
        };
        let lengths = sequences().map(|(_, held)| held.rows.len());
        let longest_tok = lengths.max().unwrap_or(0);
        let mut steps = Vec::new();
        let mut firsts = Vec::new();
        let mut raw: Vec<Vec<(Point, u32)>> = vec![Vec::new(); spec.position_buckets];
        for (request_index, held) in sequences() {
            let entropies = raw_entropies(held)?;
            let mut average_nats = None;
            for (index_tok, (row, step)) in held.rows.iter().zip(&held.steps).enumerate() {
                let surprisal = step.raw_surprisal_nats;
                if !surprisal.is_finite() {
                    return Err(SimError::Surprisal {
                        request: held.request,
                        step: index_tok,
                        seen: surprisal,
                    });
                }
                let id = steps.len() as u32;
                if index_tok == 0 {
                    firsts.push(id);
                }
                let average = spec.average(average_nats, surprisal);
                average_nats = Some(average);
                if index_tok + 1 < held.rows.len() {
                    let point = [entropies[index_tok], surprisal, average];
                    raw[bucket(index_tok, longest_tok, spec.position_buckets)].push((point, id));
                }
                steps.push(Step {
                    row: Arc::clone(row),
                    h_raw_nats: entropies[index_tok],
                    request_index,
                });
            }
        }
        let scale = [0, 1, 2].map(|j| Scale::of(raw.iter().flatten().map(move |(p, _)| p[j])));
        let standardise = |(point, id): (Point, u32)| (standardised(&scale, point), id);
        let buckets = raw.into_iter();
        let buckets = buckets.map(|b| Nearest::new(b.into_iter().map(standardise).collect()));
        let bank = Bank {
            core: Arc::new(Core {
                spec,
                steps,
                firsts,
                buckets: buckets.collect(),
                scale,
                longest_tok,
            }),
            without: None,
        };
        bank.check()
    }

    /// The same bank without every `groups`-th recorded request, counted from `index`: one fold of a delete-a-group
    /// jackknife. Standardisation stays that of the whole bank.
    ///
    /// # Errors
    /// `index` not below `groups`, or nothing left in a part of the text.
    pub fn without_group(&self, index: usize, groups: usize) -> Result<Self, SimError> {
        if index >= groups {
            return Err(SimError::field("group index", index, "below groups"));
        }
        let bank = Bank {
            core: Arc::clone(&self.core),
            without: Some(Group { index, groups }),
        };
        bank.check()
    }

    /// Recorded steps, left-out ones not counted.
    pub fn len(&self) -> usize {
        let ids = 0..self.core.steps.len() as u32;
        ids.filter(|&id| self.keeps(id)).count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn spec(&self) -> BankSpec {
        self.core.spec
    }

    /// Steps that open a recorded sequence, never empty.
    pub(crate) fn firsts(&self) -> Vec<u32> {
        let firsts = self.core.firsts.iter().copied();
        firsts.filter(|&id| self.keeps(id)).collect()
    }

    pub(crate) fn row(&self, step: u32) -> &Arc<[f32]> {
        &self.core.steps[step as usize].row
    }

    /// Steps in the most similar states, never empty; each has a successor, the next id.
    pub(crate) fn similar(&self, seen: &Seen) -> Vec<u32> {
        let core = &self.core;
        let h_raw_nats = core.steps[seen.step as usize].h_raw_nats;
        let point = [h_raw_nats, seen.raw_surprisal_nats, seen.average_nats];
        let at = standardised(&core.scale, point);
        let bucket = bucket(seen.index_tok, core.longest_tok, core.buckets.len());
        core.buckets[bucket].query(&at, core.spec.neighbours, |id| self.keeps(id))
    }

    fn keeps(&self, step: u32) -> bool {
        self.without.is_none_or(|group| {
            self.core.steps[step as usize].request_index % group.groups != group.index
        })
    }

    /// The bank itself if every part of the text has a step to resample.
    fn check(self) -> Result<Self, SimError> {
        let buckets = self.core.buckets.len();
        for (bucket, nearest) in self.core.buckets.iter().enumerate() {
            if !nearest.ids().any(|id| self.keeps(id)) {
                return Err(SimError::EmptyBucket { bucket, buckets });
            }
        }
        Ok(self)
    }
}

impl BankSpec {
    fn check(&self) -> Result<(), SimError> {
        if self.neighbours == 0 {
            return Err(SimError::field("neighbours", 0, "at least 1"));
        }
        if self.position_buckets == 0 {
            return Err(SimError::field("position_buckets", 0, "at least 1"));
        }
        if !(self.half_life_tok > 0.0 && self.half_life_tok.is_finite()) {
            let seen = self.half_life_tok;
            return Err(SimError::field("half_life_tok", seen, "finite and above 0"));
        }
        Ok(())
    }

    /// m' = a·m + (1 − a)·s with a = 2^(−1/half-life), started at the first s.
    pub(crate) fn average(&self, last_nats: Option<f64>, surprisal_nats: f64) -> f64 {
        let keep = (-1.0 / self.half_life_tok).exp2();
        last_nats.map_or(surprisal_nats, |last| {
            keep * last + (1.0 - keep) * surprisal_nats
        })
    }
}

impl Scale {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (mut n, mut mean, mut square) = (0.0, 0.0, 0.0);
        for x in values {
            n += 1.0;
            let gap = x - mean;
            mean += gap / n;
            square += gap * (x - mean);
        }
        let sd = (square / f64::max(n, 1.0)).sqrt();
        // A feature that never varies separates nothing, whatever its scale.
        Scale {
            mean,
            sd: if sd > 0.0 { sd } else { 1.0 },
        }
    }
}

fn standardised(scale: &[Scale; 3], point: Point) -> Point {
    [0, 1, 2].map(|j| (point[j] - scale[j].mean) / scale[j].sd)
}

/// Every recording is whole, and all have the vocabulary of the first.
fn check_rows(recordings: &[Recording]) -> Result<(), SimError> {
    let expected = recordings.first().map_or(0, |r| r.vocab);
    for recording in recordings {
        recording.check()?;
        if recording.vocab != expected {
            return Err(SimError::Vocab {
                request: recording.requests.first().map_or(0, |held| held.request),
                seen: recording.vocab,
                expected,
            });
        }
    }
    Ok(())
}

/// Entropy of every row at T = 1, nats.
fn raw_entropies(held: &RecordedRequest) -> Result<Vec<f64>, SimError> {
    let entropy = |(step, row): (usize, &Arc<[f32]>)| match thermal(row, 0.0, None) {
        Ok(seen) => Ok(seen.h_nats),
        Err(source) => Err(SimError::Row {
            request: held.request,
            step,
            source,
        }),
    };
    // Collected whole first, so that the error is that of the first bad row at any number of threads.
    let all: Vec<_> = held.rows.par_iter().enumerate().map(entropy).collect();
    all.into_iter().collect()
}

/// Which part of the text an index lies in; later than anything recorded counts as the last.
fn bucket(index_tok: usize, longest_tok: usize, buckets: usize) -> usize {
    (index_tok * buckets / longest_tok.max(1)).min(buckets - 1)
}

//! What a reader makes of one damaged file, and the tally of them all.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

use etime_engine::Model;

use crate::MEMORY;
use crate::common::engine_logits;

/// What a load may hold at its highest, as a multiple of the file, plus what does not grow with it.
const MOST_FILES: usize = 6;
const MOST_FIXED_BYTES: usize = 16 << 10;

/// Allocations of one test would count for another.
static ALONE: Mutex<()> = Mutex::new(());

#[derive(Default)]
pub struct Tally {
    refused: usize,
    /// Changes that leave a model: number of cases by what was changed.
    pub harmless: BTreeMap<String, usize>,
    largest_bytes: usize,
    /// Largest peak over the size of its file.
    largest_ratio: f64,
}

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Tally {
    pub fn cases(&self) -> usize {
        self.refused + self.harmless.values().sum::<usize>()
    }

    /// Loads `bytes`; `what` was changed in them, as `case` says in full.
    pub fn judge(
        &mut self,
        what: &str,
        case: &str,
        bytes: &[u8],
        load: impl Fn(&[u8]) -> Result<Model, String>,
    ) {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let loaded = catch_unwind(AssertUnwindSafe(|| load(bytes)));
        let peak = MEMORY.peak_usage().saturating_sub(before);
        let loaded = loaded.unwrap_or_else(|_| panic!("{case}: the reader panicked"));
        let most = MOST_FILES * bytes.len() + MOST_FIXED_BYTES;
        assert!(
            peak <= most,
            "{case}: {peak} bytes held for a file of {}",
            bytes.len()
        );
        self.largest_bytes = self.largest_bytes.max(peak);
        let ratio = peak as f64 / bytes.len().max(4096) as f64;
        self.largest_ratio = self.largest_ratio.max(ratio);
        match loaded {
            Ok(mut model) => {
                assert_finite(&mut model, case);
                *self.harmless.entry(what.to_owned()).or_default() += 1;
            }
            Err(error) => {
                assert!(
                    !error.is_empty() && !error.contains('\n'),
                    "{case}: {error}"
                );
                self.refused += 1;
            }
        }
    }

    pub fn print(&self, format: &str) {
        println!(
            "{format}: {} cases, {} refused, {} harmless; at most {} KiB held, {:.1} times the file",
            self.cases(),
            self.refused,
            self.cases() - self.refused,
            self.largest_bytes >> 10,
            self.largest_ratio
        );
        for (what, cases) in &self.harmless {
            println!("  harmless {cases:>5}: {what}");
        }
    }
}

fn assert_finite(model: &mut Model, case: &str) {
    let (vocab, context_tok) = (model.config().vocab, model.config().context_tok);
    let tokens: Vec<u32> = (0..context_tok.min(3) as u32)
        .map(|token| token % vocab as u32)
        .collect();
    let logits = engine_logits(model, &tokens, tokens.len(), 4);
    let finite = logits.iter().flatten().all(|x| x.is_finite());
    assert!(finite, "{case}: loads, but its logits are not finite");
}

//! What the tensors of a model are stored as, and what they are held as.

use std::collections::BTreeMap;

use super::data::Held;
use super::{Part, TensorSource, names};
use crate::config::ModelConfig;
use crate::settings::WeightStorage;

/// Number of tensors of each kind: `F32` where they are held as they are stored, `Q4_1 → Q8_0` where they are not.
pub type Holdings = BTreeMap<String, usize>;

/// What `part` is held as: a vector as F32, stacked matrices alike.
pub(super) fn held(source: &dyn TensorSource, part: Part, weights: WeightStorage) -> Held {
    let stacked = part.stack();
    let kinds = stacked.iter().filter_map(|&part| source.stored(part));
    let kinds = kinds.map(|stored| Held::of(stored, weights));
    kinds.reduce(Held::together).unwrap_or(Held::F32)
}

/// How the tensors of a model are held. A tensor that is missing is left out.
pub(super) fn holdings(
    config: &ModelConfig,
    source: &dyn TensorSource,
    weights: WeightStorage,
) -> Holdings {
    let mut holdings = Holdings::new();
    for part in names::parts(config) {
        let Some(stored) = source.stored(part) else {
            continue;
        };
        let stored = format!("{stored:?}");
        let held = format!("{:?}", held(source, part, weights));
        let kind = match stored == held {
            true => stored,
            false => format!("{stored} → {held}"),
        };
        *holdings.entry(kind).or_default() += 1;
    }
    holdings
}

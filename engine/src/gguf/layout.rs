//! Where the tensors lie, checked against each other and the length of the file.

use std::collections::BTreeMap;
use std::io::Read;

use super::bounded::Bounded;
use super::{GgufError, TensorInfo, TensorType};

/// A tensor as its entry says.
pub(super) struct Described {
    /// Fastest first.
    pub(super) dims: Vec<u64>,
    pub(super) stored: TensorType,
    /// From the beginning of the data.
    pub(super) offset: u64,
}

/// The tensors inside the file, after the entries that `from` has read.
pub(super) fn place<R: Read>(
    from: &Bounded<R>,
    described: BTreeMap<String, Described>,
    alignment: u64,
) -> Result<BTreeMap<String, TensorInfo>, GgufError> {
    let data_start = from.at_bytes.next_multiple_of(alignment);
    let mut tensors = BTreeMap::new();
    for (name, entry) in described {
        let info = place_one(from, &name, entry, data_start, alignment)?;
        tensors.insert(name, info);
    }
    refuse_gaps(from, &tensors, data_start, alignment)?;
    Ok(tensors)
}

fn place_one<R: Read>(
    from: &Bounded<R>,
    name: &str,
    entry: Described,
    data_start: u64,
    alignment: u64,
) -> Result<TensorInfo, GgufError> {
    let what = format!("tensor {name:?}");
    let Described {
        dims,
        stored,
        offset,
    } = entry;
    let block = stored.block();
    if dims.contains(&0) {
        let seen = format!("{dims:?}");
        return Err(from.refuse(format!("the shape of {what}"), seen, "dimensions above 0"));
    }
    if dims[0] % block.elements as u64 != 0 {
        let allowed = format!("a multiple of {} for {stored:?}", block.elements);
        return Err(from.refuse(format!("the row length of {what}"), dims[0], allowed));
    }
    if offset % alignment != 0 {
        let allowed = format!("a multiple of the alignment {alignment}");
        return Err(from.refuse(format!("the offset of {what}"), offset, allowed));
    }
    let elements = dims.iter().try_fold(1_u64, |n, &dim| n.checked_mul(dim));
    let blocks = elements.map(|n| n / block.elements as u64);
    let len_bytes = blocks.and_then(|n| n.checked_mul(block.bytes as u64));
    let start_bytes = data_start.checked_add(offset);
    let end_bytes = start_bytes
        .zip(len_bytes)
        .and_then(|(s, n)| s.checked_add(n));
    let fits = end_bytes.is_some_and(|end| end <= from.file_bytes);
    let shape = dims.iter().rev().map(|&dim| usize::try_from(dim).ok());
    let shape: Option<Vec<usize>> = shape.collect();
    match (fits, start_bytes, len_bytes.map(usize::try_from), shape) {
        (true, Some(start_bytes), Some(Ok(len_bytes)), Some(shape)) => Ok(TensorInfo {
            shape,
            stored,
            start_bytes,
            len_bytes,
        }),
        _ => {
            let seen = format!("{dims:?} of {stored:?} at offset {offset}");
            let allowed = format!(
                "what lies in the {} bytes of data: truncated or damaged",
                from.file_bytes.saturating_sub(data_start)
            );
            Err(from.refuse(what, seen, allowed))
        }
    }
}

/// Tensors follow each other, with padding up to the alignment and nothing else between or behind them. ggml demands it,
/// and a wrong type or offset shows in it.
fn refuse_gaps<R: Read>(
    from: &Bounded<R>,
    tensors: &BTreeMap<String, TensorInfo>,
    data_start: u64,
    alignment: u64,
) -> Result<(), GgufError> {
    let mut order: Vec<(&String, &TensorInfo)> = tensors.iter().collect();
    order.sort_by_key(|(_, info)| info.start_bytes);
    let mut next = data_start;
    for (name, info) in order {
        if info.start_bytes != next {
            let what = format!("the first byte of tensor {name:?}");
            let allowed = format!("{next}, where the one before ends");
            return Err(from.refuse(what, info.start_bytes, allowed));
        }
        next = (info.start_bytes + info.len_bytes as u64).next_multiple_of(alignment);
    }
    if from.file_bytes > next {
        let allowed = format!("at most {next}, where the last tensor ends");
        return Err(from.refuse("the length of the file", from.file_bytes, allowed));
    }
    Ok(())
}

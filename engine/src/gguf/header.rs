//! From the first byte to the last tensor's entry.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read;

use super::bounded::Bounded;
use super::layout::{Described, place};
use super::{Gguf, GgufError, List, Metadata, TensorType, Value};

const MAGIC: [u8; 4] = *b"GGUF";
const ALIGNMENT: &str = "general.alignment";
const DEFAULT_ALIGNMENT: u64 = 32;
/// Limit of the format.
const MAX_KEY_BYTES: u64 = 65_535;
/// Limit of ggml.
const MAX_NAME_BYTES: u64 = 64;
/// Limit of ggml.
const MAX_DIMS: u32 = 4;
/// Lists of lists of lists: no file goes deeper.
const MAX_DEPTH: usize = 4;
/// Far beyond the few dozen keys of any model; bounds what a file of empty values takes.
const MAX_KEYS: u64 = 1 << 16;
/// The length of a name or key, one byte of it, a type and a value of one byte.
const LEAST_KEY_BYTES: usize = 8 + 1 + 4 + 1;
/// The length of a name, one byte of it, one dimension, a type and an offset.
const LEAST_TENSOR_BYTES: usize = 8 + 1 + 4 + 8 + 4 + 8;
/// The type of an item and the number of them.
const LIST_HEAD_BYTES: usize = 4 + 8;
const VALUE_TYPES: &str = "0 to 12";

pub(super) fn read<R: Read>(mut from: Bounded<R>) -> Result<Gguf, GgufError> {
    let from = &mut from;
    let magic = from.array("the magic number")?;
    if magic != MAGIC {
        let seen = format!("{:?}", String::from_utf8_lossy(&magic));
        return Err(from.refuse("the magic number", seen, "\"GGUF\": not a GGUF file"));
    }
    let version = from.u32("the version")?;
    if matches!(version.swap_bytes(), 1..=3) {
        return Err(from.refuse("the byte order", "big endian", "little endian"));
    }
    if !matches!(version, 2 | 3) {
        return Err(from.refuse("the version", version, "2, 3"));
    }
    let tensors = from.u64("the number of tensors")?;
    let keys = from.u64("the number of keys")?;
    let tensors = from.count("the list of tensors", tensors, LEAST_TENSOR_BYTES)?;
    let keys = from.count("the list of keys", keys, LEAST_KEY_BYTES)?;
    if keys as u64 > MAX_KEYS {
        return Err(from.refuse("the number of keys", keys, format!("at most {MAX_KEYS}")));
    }
    let metadata = read_metadata(from, keys)?;
    let alignment = alignment(from, &metadata)?;
    let described = read_tensors(from, tensors)?;
    let tensors = place(from, described, alignment)?;
    Ok(Gguf {
        version,
        metadata,
        tensors,
    })
}

fn read_metadata<R: Read>(from: &mut Bounded<R>, keys: usize) -> Result<Metadata, GgufError> {
    let mut metadata = Metadata::new();
    for index in 0..keys {
        let key = from.text(&format!("key {index}"), MAX_KEY_BYTES)?;
        let what = format!("key {key:?}");
        if key.is_empty() {
            return Err(from.refuse(format!("key {index}"), "empty", "a name"));
        }
        let kind = from.u32(&format!("the type of {what}"))?;
        let value = read_value(from, &what, kind)?;
        match metadata.entry(key) {
            Entry::Vacant(entry) => entry.insert(value),
            Entry::Occupied(_) => return Err(from.refuse(what, "given twice", "once")),
        };
    }
    Ok(metadata)
}

fn read_value<R: Read>(from: &mut Bounded<R>, what: &str, kind: u32) -> Result<Value, GgufError> {
    Ok(match kind {
        0 => Value::U8(u8::from_le_bytes(from.array(what)?)),
        1 => Value::I8(i8::from_le_bytes(from.array(what)?)),
        2 => Value::U16(u16::from_le_bytes(from.array(what)?)),
        3 => Value::I16(i16::from_le_bytes(from.array(what)?)),
        4 => Value::U32(from.u32(what)?),
        5 => Value::I32(i32::from_le_bytes(from.array(what)?)),
        6 => Value::F32(f32::from_le_bytes(from.array(what)?)),
        7 => Value::Bool(read_bool(from, what)?),
        8 => Value::Text(from.text(what, u64::MAX)?),
        9 => Value::List(read_list(from, what, 1)?),
        10 => Value::U64(from.u64(what)?),
        11 => Value::I64(i64::from_le_bytes(from.array(what)?)),
        12 => Value::F64(f64::from_le_bytes(from.array(what)?)),
        _ => return Err(from.refuse(format!("the type of {what}"), kind, VALUE_TYPES)),
    })
}

fn read_list<R: Read>(from: &mut Bounded<R>, what: &str, depth: usize) -> Result<List, GgufError> {
    let kind = from.u32(&format!("the item type of {what}"))?;
    let n = from.u64(&format!("the number of items of {what}"))?;
    Ok(match kind {
        0 => List::U8(from.items(what, n, u8::from_le_bytes)?),
        1 => List::I8(from.items(what, n, i8::from_le_bytes)?),
        2 => List::U16(from.items(what, n, u16::from_le_bytes)?),
        3 => List::I16(from.items(what, n, i16::from_le_bytes)?),
        4 => List::U32(from.items(what, n, u32::from_le_bytes)?),
        5 => List::I32(from.items(what, n, i32::from_le_bytes)?),
        6 => List::F32(from.items(what, n, f32::from_le_bytes)?),
        7 => {
            let count = from.count(what, n, 1)?;
            List::Bool(
                (0..count)
                    .map(|_| read_bool(from, what))
                    .collect::<Result<_, _>>()?,
            )
        }
        8 => {
            let count = from.count(what, n, size_of::<u64>())?;
            let mut texts = Vec::with_capacity(count);
            for _ in 0..count {
                texts.push(from.text(what, u64::MAX)?);
            }
            List::Text(texts)
        }
        9 if depth == MAX_DEPTH => {
            let seen = format!("nested more than {MAX_DEPTH} deep");
            return Err(from.refuse(
                what,
                seen,
                format!("at most {MAX_DEPTH} lists in each other"),
            ));
        }
        9 => {
            let count = from.count(what, n, LIST_HEAD_BYTES)?;
            let mut lists = Vec::with_capacity(count);
            for _ in 0..count {
                lists.push(read_list(from, what, depth + 1)?);
            }
            List::List(lists)
        }
        10 => List::U64(from.items(what, n, u64::from_le_bytes)?),
        11 => List::I64(from.items(what, n, i64::from_le_bytes)?),
        12 => List::F64(from.items(what, n, f64::from_le_bytes)?),
        _ => return Err(from.refuse(format!("the item type of {what}"), kind, VALUE_TYPES)),
    })
}

fn read_bool<R: Read>(from: &mut Bounded<R>, what: &str) -> Result<bool, GgufError> {
    match from.array(what)? {
        [0] => Ok(false),
        [1] => Ok(true),
        [seen] => Err(from.refuse(what, format!("a truth value of {seen}"), "0, 1")),
    }
}

fn alignment<R: Read>(from: &Bounded<R>, metadata: &Metadata) -> Result<u64, GgufError> {
    let Some(value) = metadata.get(ALIGNMENT) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    match value {
        Value::U32(alignment) if alignment.is_power_of_two() => Ok(u64::from(*alignment)),
        other => Err(from.refuse(ALIGNMENT, other.describe(), "a power of two (u32)")),
    }
}

fn read_tensors<R: Read>(
    from: &mut Bounded<R>,
    tensors: usize,
) -> Result<BTreeMap<String, Described>, GgufError> {
    let mut described = BTreeMap::new();
    for index in 0..tensors {
        let name = from.text(&format!("the name of tensor {index}"), MAX_NAME_BYTES)?;
        let what = format!("tensor {name:?}");
        if name.is_empty() {
            return Err(from.refuse(format!("the name of tensor {index}"), "empty", "a name"));
        }
        let entry = read_tensor(from, &what)?;
        match described.entry(name) {
            Entry::Vacant(place) => place.insert(entry),
            Entry::Occupied(_) => return Err(from.refuse(what, "given twice", "once")),
        };
    }
    Ok(described)
}

fn read_tensor<R: Read>(from: &mut Bounded<R>, what: &str) -> Result<Described, GgufError> {
    let n_dims = from.u32(&format!("the number of dimensions of {what}"))?;
    if n_dims == 0 || n_dims > MAX_DIMS {
        let field = format!("the number of dimensions of {what}");
        return Err(from.refuse(field, n_dims, format!("1 to {MAX_DIMS}")));
    }
    let dims = (0..n_dims).map(|_| from.u64(&format!("a dimension of {what}")));
    let dims: Vec<u64> = dims.collect::<Result<_, _>>()?;
    let id = from.u32(&format!("the type of {what}"))?;
    let Some(stored) = TensorType::of(id) else {
        let allowed = "a type of ggml: 0 to 3, 6 to 30, 34, 35, 39";
        return Err(from.refuse(format!("the type of {what}"), id, allowed));
    };
    let offset = from.u64(&format!("the offset of {what}"))?;
    Ok(Described {
        dims,
        stored,
        offset,
    })
}

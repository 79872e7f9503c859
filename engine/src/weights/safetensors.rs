//! Safetensors files, read tensor by tensor through a buffer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::Deserialize;

use super::{Part, TensorSource, finite};
use crate::error::ModelError;

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// The limit that the format's own library sets on a header.
const MAX_HEADER_BYTES: u64 = 100_000_000;
const SUPPORTED_DTYPES: &str = "F32, F16, BF16";

trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// One file, its header read and checked against its length.
struct Shard<'a> {
    file: PathBuf,
    reader: Box<dyn ReadSeek + 'a>,
    data_start: u64,
    metadata: Metadata,
}

/// The files of a checkpoint, and which of them holds each tensor.
pub(super) struct Shards<'a> {
    /// What errors about a missing tensor name.
    root: PathBuf,
    shards: Vec<Shard<'a>>,
    shard_of: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl<'a> Shards<'a> {
    pub(super) fn open(directory: &Path) -> Result<Self, ModelError> {
        let index = directory.join(INDEX);
        if !index.is_file() {
            let file = directory.join(SINGLE);
            return Self::single(Shard::open(&file)?, file);
        }
        let json = std::fs::read(&index).map_err(|source| ModelError::Read {
            file: index.clone(),
            source,
        })?;
        let parsed: Index = serde_json::from_slice(&json).map_err(|source| ModelError::Json {
            file: index.clone(),
            source,
        })?;
        let names: BTreeSet<&String> = parsed.weight_map.values().collect();
        let names: Vec<&String> = names.into_iter().collect();
        let mut shards = Vec::with_capacity(names.len());
        for name in &names {
            // A shard is a sibling of its index; a path that leads elsewhere is not followed.
            if name.contains(['/', '\\']) {
                return Err(ModelError::Format {
                    file: index,
                    reason: format!("shard name {name:?} is not a plain file name"),
                });
            }
            shards.push(Shard::open(&directory.join(name))?);
        }
        let mut shard_of = BTreeMap::new();
        for (tensor, name) in &parsed.weight_map {
            let Ok(shard) = names.binary_search(&name) else {
                continue; // `names` holds every value of the map.
            };
            if shards[shard].metadata.info(tensor).is_none() {
                return Err(ModelError::Format {
                    file: index,
                    reason: format!(
                        "tensor {tensor} is said to be in {name}, which does not hold it"
                    ),
                });
            }
            shard_of.insert(tensor.clone(), shard);
        }
        Ok(Self {
            root: index,
            shards,
            shard_of,
        })
    }

    pub(super) fn from_bytes(file: &Path, bytes: &'a [u8]) -> Result<Self, ModelError> {
        let shard = Shard::new(file, Box::new(Cursor::new(bytes)), bytes.len() as u64)?;
        Self::single(shard, file.to_path_buf())
    }

    fn single(shard: Shard<'a>, root: PathBuf) -> Result<Self, ModelError> {
        let shard_of = shard
            .metadata
            .tensors()
            .into_keys()
            .map(|name| (name, 0))
            .collect();
        Ok(Self {
            root,
            shards: vec![shard],
            shard_of,
        })
    }
}

impl TensorSource for Shards<'_> {
    fn read(&mut self, part: Part, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let tensor = part.hf_name();
        match self.shard_of.get(&tensor) {
            Some(&shard) => self.shards[shard].read(&tensor, shape),
            None => Err(ModelError::Missing {
                file: self.root.clone(),
                tensor,
                wanted: shape.to_vec(),
            }),
        }
    }

    fn refuse_others(&self, wanted: &[Part]) -> Result<(), ModelError> {
        let wanted: BTreeSet<String> = wanted.iter().map(|p| p.hf_name()).collect();
        // Old checkpoints store the rotary frequencies; tied ones may store the head twice.
        let ignored =
            |name: &str| name.ends_with("rotary_emb.inv_freq") || name == Part::Head.hf_name();
        match self
            .shard_of
            .iter()
            .find(|(name, _)| !wanted.contains(*name) && !ignored(name))
        {
            Some((name, &shard)) => Err(ModelError::Unexpected {
                file: self.shards[shard].file.clone(),
                tensor: name.clone(),
            }),
            None => Ok(()),
        }
    }
}

impl<'a> Shard<'a> {
    fn open(file: &Path) -> Result<Self, ModelError> {
        let read = |source| ModelError::Read {
            file: file.to_path_buf(),
            source,
        };
        let handle = File::open(file).map_err(read)?;
        let bytes = handle.metadata().map_err(read)?.len();
        Self::new(file, Box::new(handle), bytes)
    }

    fn new(
        file: &Path,
        mut reader: Box<dyn ReadSeek + 'a>,
        file_bytes: u64,
    ) -> Result<Self, ModelError> {
        let format = |reason: String| ModelError::Format {
            file: file.to_path_buf(),
            reason,
        };
        let read = |source| ModelError::Read {
            file: file.to_path_buf(),
            source,
        };
        if file_bytes < 8 {
            return Err(format(format!(
                "{file_bytes} bytes is too short for a safetensors header"
            )));
        }
        let mut length = [0u8; 8];
        reader.read_exact(&mut length).map_err(read)?;
        let header_bytes = u64::from_le_bytes(length);
        if header_bytes > MAX_HEADER_BYTES || header_bytes > file_bytes - 8 {
            return Err(format(format!(
                "header of {header_bytes} bytes in a file of {file_bytes}: not a safetensors file, or truncated"
            )));
        }
        let mut header = vec![0u8; header_bytes as usize];
        reader.read_exact(&mut header).map_err(read)?;
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|e| format(format!("the safetensors header cannot be read: {e}")))?;
        let data_start = 8 + header_bytes;
        let data_end = metadata
            .tensors()
            .values()
            .map(|t| t.data_offsets.1 as u64)
            .max();
        let wanted_bytes = data_start.saturating_add(data_end.unwrap_or(0));
        if wanted_bytes != file_bytes {
            return Err(ModelError::Size {
                file: file.to_path_buf(),
                seen_bytes: file_bytes,
                wanted_bytes,
            });
        }
        Ok(Self {
            file: file.to_path_buf(),
            reader,
            data_start,
            metadata,
        })
    }

    fn read(&mut self, tensor: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let file = self.file.clone();
        let Some(TensorInfo {
            dtype,
            shape: seen,
            data_offsets,
        }) = self.metadata.info(tensor)
        else {
            return Err(ModelError::Missing {
                file,
                tensor: tensor.into(),
                wanted: shape.to_vec(),
            });
        };
        if seen != shape {
            return Err(ModelError::Shape {
                file,
                tensor: tensor.into(),
                seen: seen.clone(),
                wanted: shape.to_vec(),
            });
        }
        let decode: fn(&[u8]) -> Vec<f32> = match dtype {
            Dtype::F32 => decode_f32,
            Dtype::F16 => decode_f16,
            Dtype::BF16 => decode_bf16,
            other => {
                return Err(ModelError::Dtype {
                    file,
                    tensor: tensor.into(),
                    seen: format!("{other:?}"),
                    supported: SUPPORTED_DTYPES,
                });
            }
        };
        let width = if *dtype == Dtype::F32 { 4 } else { 2 };
        let (start, end) = *data_offsets;
        let elements = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let wanted = elements.and_then(|n| n.checked_mul(width));
        // `new` checked that every offset lies in the file, so this also bounds the allocation.
        if end.checked_sub(start) != wanted {
            return Err(ModelError::Tensor {
                file,
                tensor: tensor.into(),
                reason: format!("bytes {start}..{end} do not hold shape {shape:?} as {dtype:?}"),
            });
        }
        let mut bytes = vec![0u8; end - start];
        let from = SeekFrom::Start(self.data_start + start as u64);
        self.reader
            .seek(from)
            .and_then(|_| self.reader.read_exact(&mut bytes))
            .map_err(|source| ModelError::Read {
                file: file.clone(),
                source,
            })?;
        finite(&file, tensor, decode(&bytes))
    }
}

fn decode_f32(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&b| f32::from_le_bytes(b))
        .collect()
}

fn decode_bf16(bytes: &[u8]) -> Vec<f32> {
    let widen = |&b: &[u8; 2]| f32::from_bits((u16::from_le_bytes(b) as u32) << 16);
    bytes.as_chunks().0.iter().map(widen).collect()
}

fn decode_f16(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&b| f16_to_f32(u16::from_le_bytes(b)))
        .collect()
}

/// Exact: every half-precision number is an F32.
fn f16_to_f32(bits: u16) -> f32 {
    let sign = (bits as u32 & 0x8000) << 16;
    let (exponent, fraction) = (bits as u32 >> 10 & 0x1f, bits as u32 & 0x3ff);
    let magnitude = match exponent {
        // Subnormal: fraction × 2^−24.
        0 => (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits(),
        0x1f => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers_widen_exactly() {
        for (bits, value) in [
            (0x0000u16, 0.0f32),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x7c00, f32::INFINITY),
            (0x3555, 0.333_251_95),
        ] {
            assert_eq!(f16_to_f32(bits), value, "{bits:#06x}");
        }
        assert!(f16_to_f32(0x7e00).is_nan());
        assert_eq!(f16_to_f32(0x8000).to_bits(), (-0.0f32).to_bits());
    }
}

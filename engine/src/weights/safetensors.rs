//! Safetensors files, read tensor by tensor through a buffer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Cursor, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::Deserialize;

use super::data::Held;
use super::{Part, ReadSeek, TensorData, TensorSource, names};
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::gguf::TensorType;

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// The limit that the format's own library sets on a header.
const MAX_HEADER_BYTES: u64 = 100_000_000;
const SUPPORTED_DTYPES: &str = "F32, F16, BF16";

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

    fn read(&mut self, part: Part, shape: &[usize], held: Held) -> Result<TensorData, ModelError> {
        let tensor = part.hf_name();
        match self.shard_of.get(&tensor) {
            Some(&shard) => self.shards[shard].read(&tensor, shape, held),
            None => Err(ModelError::Missing {
                file: self.root.clone(),
                tensor,
                wanted: shape.to_vec(),
            }),
        }
    }
}

impl TensorSource for Shards<'_> {
    fn stored(&self, part: Part) -> Option<TensorType> {
        let tensor = part.hf_name();
        let shard = &self.shards[*self.shard_of.get(&tensor)?];
        tensor_type(shard.metadata.info(&tensor)?.dtype)
    }

    fn matrix(
        &mut self,
        part: Part,
        shape: [usize; 2],
        held: Held,
    ) -> Result<TensorData, ModelError> {
        self.read(part, &shape, held)
    }

    fn vector(&mut self, part: Part, len: usize) -> Result<Vec<f32>, ModelError> {
        Ok(self.read(part, &[len], Held::F32)?.into_f32())
    }

    fn refuse_others(&self, config: &ModelConfig) -> Result<(), ModelError> {
        // Names that are here: a wrong number of layers must not make a list of names that are not.
        let wanted: BTreeSet<String> = names::parts(config)
            .map(Part::hf_name)
            .filter(|name| self.shard_of.contains_key(name))
            .collect();
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
        let data_end = check_ranges(&metadata).map_err(format)?;
        let wanted_bytes = data_start.saturating_add(data_end);
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

    fn read(
        &mut self,
        tensor: &str,
        shape: &[usize],
        held: Held,
    ) -> Result<TensorData, ModelError> {
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
        let Some(stored) = tensor_type(*dtype) else {
            return Err(ModelError::Dtype {
                file,
                tensor: tensor.into(),
                seen: format!("{dtype:?}"),
                supported: SUPPORTED_DTYPES,
            });
        };
        let (start, end) = *data_offsets;
        let elements = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let wanted = elements.and_then(|n| n.checked_mul(stored.block().bytes));
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
        TensorData::read(&file, tensor, stored, bytes, held)
    }
}

/// The end of the data, if the tensors follow each other without holes, as the format wants; else what is wrong.
fn check_ranges(metadata: &Metadata) -> Result<u64, String> {
    let tensors = metadata.tensors();
    let mut ranges: Vec<(usize, usize, &String)> = tensors
        .iter()
        .map(|(name, tensor)| (tensor.data_offsets.0, tensor.data_offsets.1, name))
        .collect();
    ranges.sort_unstable();
    let mut at = 0;
    for (start, end, name) in ranges {
        if start != at || end < start {
            return Err(format!(
                "tensor {name} is at bytes {start} to {end} of the data, allowed: from {at}, where the one before ends"
            ));
        }
        at = end;
    }
    Ok(at as u64)
}

fn tensor_type(dtype: Dtype) -> Option<TensorType> {
    match dtype {
        Dtype::F32 => Some(TensorType::F32),
        Dtype::F16 => Some(TensorType::F16),
        Dtype::BF16 => Some(TensorType::BF16),
        _ => None,
    }
}

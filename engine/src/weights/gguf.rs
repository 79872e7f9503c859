//! The tensors of GGUF files.
//!
//! GGUF stores the rows of the query and key projections of a llama in interleaved rotary order: row 2i + j of a head is
//! row i + j·head_dim/2 of the original. They are put back, so that one rotation serves every file. Those of other
//! architectures are as in the original.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Cursor, SeekFrom};
use std::path::{Path, PathBuf};

use super::data::Held;
use super::{LayerPart, Part, ReadSeek, TensorData, TensorSource, names};
use crate::config::{ModelConfig, RopeScaling};
use crate::config_gguf::ROPE_DIVISORS;
use crate::error::ModelError;
use crate::gguf::{Gguf, TensorType};

pub(super) struct GgufSource<'a> {
    file: PathBuf,
    reader: Box<dyn ReadSeek + 'a>,
    gguf: Gguf,
    /// Rows of a head that lie interleaved; set by `config`, `None` where none do.
    interleaved: Option<usize>,
}

impl<'a> GgufSource<'a> {
    pub(super) fn open(file: &Path) -> Result<Self, ModelError> {
        let gguf = Gguf::open(file)?;
        let handle = File::open(file).map_err(|source| ModelError::Read {
            file: file.to_path_buf(),
            source,
        })?;
        Ok(Self::new(file, Box::new(BufReader::new(handle)), gguf))
    }

    pub(super) fn from_bytes(file: &Path, bytes: &'a [u8]) -> Result<Self, ModelError> {
        let gguf = Gguf::read(bytes, file, bytes.len() as u64)?;
        Ok(Self::new(file, Box::new(Cursor::new(bytes)), gguf))
    }

    fn new(file: &Path, reader: Box<dyn ReadSeek + 'a>, gguf: Gguf) -> Self {
        Self {
            file: file.to_path_buf(),
            reader,
            gguf,
            interleaved: None,
        }
    }

    /// The model's shape from the file's metadata.
    pub(super) fn config(&mut self) -> Result<ModelConfig, ModelError> {
        let mut config = ModelConfig::from_gguf(&self.gguf, &self.file)?;
        self.interleaved = (config.architecture == "llama").then_some(config.head_dim);
        if self.gguf.tensors.contains_key(ROPE_DIVISORS) {
            let divisors = self.read(ROPE_DIVISORS, &[config.head_dim / 2], Held::F32)?;
            config.rope_scaling = RopeScaling::Divisors(divisors.into_f32());
        }
        config.check(&self.file)
    }

    fn read(
        &mut self,
        tensor: &str,
        shape: &[usize],
        held: Held,
    ) -> Result<TensorData, ModelError> {
        let file = self.file.clone();
        let Some(info) = self.gguf.tensors.get(tensor) else {
            return Err(ModelError::Missing {
                file,
                tensor: tensor.into(),
                wanted: shape.to_vec(),
            });
        };
        if info.shape != shape {
            return Err(ModelError::Shape {
                file,
                tensor: tensor.into(),
                seen: info.shape.clone(),
                wanted: shape.to_vec(),
            });
        }
        // The header's reader checked that the tensor lies in the file, so this bounds the allocation.
        let mut bytes = vec![0; info.len_bytes];
        self.reader
            .seek(SeekFrom::Start(info.start_bytes))
            .and_then(|_| self.reader.read_exact(&mut bytes))
            .map_err(|source| ModelError::Read {
                file: file.clone(),
                source,
            })?;
        TensorData::read(&file, tensor, info.stored, bytes, held)
    }
}

impl TensorSource for GgufSource<'_> {
    fn stored(&self, part: Part) -> Option<TensorType> {
        let info = self.gguf.tensors.get(&part.gguf_name())?;
        Some(info.stored)
    }

    fn matrix(
        &mut self,
        part: Part,
        shape: [usize; 2],
        held: Held,
    ) -> Result<TensorData, ModelError> {
        let stored = self.read(&part.gguf_name(), &shape, held)?;
        Ok(match (part, self.interleaved) {
            (Part::Layer(_, LayerPart::Q | LayerPart::K), Some(head_dim)) => {
                stored.half_split(shape[1], head_dim)
            }
            _ => stored,
        })
    }

    fn vector(&mut self, part: Part, len: usize) -> Result<Vec<f32>, ModelError> {
        let stored = self.read(&part.gguf_name(), &[len], Held::F32)?;
        Ok(stored.into_f32())
    }

    fn refuse_others(&self, config: &ModelConfig) -> Result<(), ModelError> {
        let tensors = &self.gguf.tensors;
        // Names that are here: a wrong number of layers must not make a list of names that are not.
        let wanted: BTreeSet<String> = names::parts(config)
            .map(Part::gguf_name)
            .filter(|name| tensors.contains_key(name))
            .collect();
        let mut others = tensors
            .keys()
            .filter(|name| !wanted.contains(*name) && *name != ROPE_DIVISORS);
        match others.next() {
            Some(name) => Err(ModelError::Unexpected {
                file: self.file.clone(),
                tensor: name.clone(),
            }),
            None => Ok(()),
        }
    }
}

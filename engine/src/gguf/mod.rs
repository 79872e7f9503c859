//! GGUF files: header, metadata and where each tensor lies. Versions 2 and 3, little endian.
//!
//! | part | layout |
//! |---|---|
//! | header | `GGUF`, version (u32), number of tensors (u64), number of keys (u64) |
//! | key | name (text), type (u32), value |
//! | tensor | name (text), number of dimensions (u32), dimensions (u64, fastest first), type (u32), offset (u64) |
//! | data | from the next multiple of `general.alignment` (32 where absent); offsets count from there |
//!
//! A text is its length in bytes (u64) and UTF-8; a list is the type of its items (u32), their number (u64) and the
//! items. Source: the format's specification in ggml, `docs/gguf.md`.
//!
//! Every length is compared with the bytes that are left before anything is allocated, so that what is held stays below
//! about ten times the bytes read (reached by a file of nothing but keys with values of one byte).

mod bounded;
mod error;
mod header;
mod layout;
mod tensor_type;
mod value;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

pub use error::GgufError;
pub use tensor_type::TensorType;
pub use value::{List, Value};

/// Keys and values of a file.
pub type Metadata = BTreeMap<String, Value>;

/// Where a tensor lies and how it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Slowest first: a matrix is `[out, in]`.
    pub shape: Vec<usize>,
    pub stored: TensorType,
    /// From the beginning of the file.
    pub start_bytes: u64,
    pub len_bytes: usize,
}

/// A file without its data.
#[derive(Debug, Clone, PartialEq)]
pub struct Gguf {
    pub version: u32,
    pub metadata: Metadata,
    pub tensors: BTreeMap<String, TensorInfo>,
}

impl Gguf {
    /// Reads up to where the data begins. `file` is the name in errors, `file_bytes` the length of all.
    ///
    /// # Errors
    /// A file that is cut short, of another format, version or byte order, or that contradicts itself or the format.
    pub fn read(reader: impl Read, file: &Path, file_bytes: u64) -> Result<Self, GgufError> {
        header::read(bounded::Bounded::new(reader, file, file_bytes))
    }

    /// The same from a file on disk.
    ///
    /// # Errors
    /// Those of [`Self::read`], and a file that cannot be opened.
    pub fn open(file: &Path) -> Result<Self, GgufError> {
        let failed = |source| GgufError::Read {
            file: file.to_path_buf(),
            source,
        };
        let handle = File::open(file).map_err(failed)?;
        let file_bytes = handle.metadata().map_err(failed)?.len();
        Self::read(BufReader::new(handle), file, file_bytes)
    }
}

//! A reader that knows how many bytes are left.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::GgufError;
use super::value::quoted;

pub(super) struct Bounded<R> {
    reader: R,
    pub(super) file: PathBuf,
    pub(super) file_bytes: u64,
    pub(super) at_bytes: u64,
}

impl<R: Read> Bounded<R> {
    pub(super) fn new(reader: R, file: &Path, file_bytes: u64) -> Self {
        Self {
            reader,
            file: file.to_path_buf(),
            file_bytes,
            at_bytes: 0,
        }
    }

    pub(super) fn left_bytes(&self) -> u64 {
        self.file_bytes - self.at_bytes
    }

    /// An error for a value that the format does not allow.
    pub(super) fn refuse(
        &self,
        what: impl Into<String>,
        seen: impl ToString,
        allowed: impl Into<String>,
    ) -> GgufError {
        GgufError::Value {
            file: self.file.clone(),
            what: what.into(),
            seen: seen.to_string(),
            allowed: allowed.into(),
        }
    }

    /// `count` items of at least `item_bytes` each, if the file can still hold them.
    pub(super) fn count(
        &self,
        what: &str,
        count: u64,
        item_bytes: usize,
    ) -> Result<usize, GgufError> {
        let wanted = u128::from(count) * item_bytes as u128;
        match usize::try_from(count) {
            Ok(count) if wanted <= u128::from(self.left_bytes()) => Ok(count),
            _ => Err(self.short(what, wanted)),
        }
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], GgufError> {
        self.count(what, 1, N)?;
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// `count` items of `N` bytes.
    pub(super) fn items<const N: usize, T>(
        &mut self,
        what: &str,
        count: u64,
        item: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, GgufError> {
        let count = self.count(what, count, N)?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self.array(what)?));
        }
        Ok(items)
    }

    /// A text of at most `max_bytes`.
    pub(super) fn text(&mut self, what: &str, max_bytes: u64) -> Result<String, GgufError> {
        let len = self.u64(what)?;
        let len = self.count(what, len, 1)?;
        if len as u64 > max_bytes {
            let allowed = format!("at most {max_bytes}");
            return Err(self.refuse(format!("the length of {what}"), len, allowed));
        }
        let mut bytes = vec![0; len];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|error| {
            let seen = quoted(&String::from_utf8_lossy(error.as_bytes()));
            self.refuse(what, seen, "UTF-8")
        })
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), GgufError> {
        let read = self.reader.read_exact(bytes);
        read.map_err(|source| GgufError::Read {
            file: self.file.clone(),
            source,
        })?;
        self.at_bytes += bytes.len() as u64;
        Ok(())
    }

    fn short(&self, what: &str, wanted_bytes: u128) -> GgufError {
        GgufError::Short {
            file: self.file.clone(),
            what: what.to_owned(),
            at_bytes: self.at_bytes,
            wanted_bytes: wanted_bytes.to_string(),
            left_bytes: self.left_bytes(),
        }
    }
}

//! What the headers of weight files say, without reading the weights.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use serde_json::Value;

use super::StoreError;
use super::source::read_error;
use crate::gguf::Gguf;

/// A header beyond this is not one: large models stay below 1 MB.
const MAX_HEADER_BYTES: u64 = 100 << 20;

/// Sums over the tensors of one or more files.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) params: u64,
    pub(super) tensors: usize,
    pub(super) dtypes: BTreeMap<String, usize>,
}

impl Summary {
    fn add(&mut self, dtype: String, params: u64) {
        self.params += params;
        self.tensors += 1;
        *self.dtypes.entry(dtype).or_default() += 1;
    }
}

pub(super) fn of_gguf(gguf: &Gguf) -> Summary {
    let mut summary = Summary::default();
    for info in gguf.tensors.values() {
        // The reader of the header has bounded the product by the length of the file.
        let params = info.shape.iter().map(|&dim| dim as u64).product();
        summary.add(format!("{:?}", info.stored), params);
    }
    summary
}

pub(super) fn of_safetensors_files(paths: &[std::path::PathBuf]) -> Result<Summary, StoreError> {
    let mut summary = Summary::default();
    for path in paths {
        let failed = |source| read_error(path, source);
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        add_safetensors(&mut summary, file, bytes, &path.display().to_string())?;
    }
    Ok(summary)
}

pub(super) fn of_safetensors_bytes(bytes: &[u8]) -> Result<Summary, StoreError> {
    let mut summary = Summary::default();
    add_safetensors(&mut summary, bytes, bytes.len() as u64, "the bundled model")?;
    Ok(summary)
}

/// Layout: length of the header (u64, little-endian), header (JSON: tensor → dtype, shape, range of
/// bytes), data.
fn add_safetensors(
    summary: &mut Summary,
    mut reader: impl Read,
    file_bytes: u64,
    file: &str,
) -> Result<(), StoreError> {
    let bad = |reason: String| StoreError::Tensors {
        file: file.to_owned(),
        reason,
    };
    let mut length = [0_u8; 8];
    reader
        .read_exact(&mut length)
        .map_err(|e| bad(e.to_string()))?;
    let header_bytes = u64::from_le_bytes(length);
    if header_bytes > MAX_HEADER_BYTES.min(file_bytes) {
        return Err(bad(format!(
            "a header of {header_bytes} bytes in a file of {file_bytes}"
        )));
    }
    let mut header = Vec::new();
    reader
        .take(header_bytes)
        .read_to_end(&mut header)
        .map_err(|e| bad(e.to_string()))?;
    let header: BTreeMap<String, Value> =
        serde_json::from_slice(&header).map_err(|e| bad(format!("header: {e}")))?;
    let mut end = 0;
    for (name, tensor) in header.iter().filter(|(name, _)| *name != "__metadata__") {
        let (dtype, params, tensor_end) =
            tensor_entry(tensor).ok_or_else(|| bad(format!("tensor `{name}` is {tensor}")))?;
        summary.add(dtype, params);
        end = end.max(tensor_end);
    }
    let expected = 8 + header_bytes + end;
    if expected != file_bytes {
        return Err(bad(format!(
            "it has {file_bytes} bytes, its header describes {expected}"
        )));
    }
    Ok(())
}

fn tensor_entry(tensor: &Value) -> Option<(String, u64, u64)> {
    let dtype = tensor.get("dtype")?.as_str()?.to_owned();
    let dims = tensor.get("shape")?.as_array()?;
    let params = dims
        .iter()
        .try_fold(1_u64, |product, dim| product.checked_mul(dim.as_u64()?))?;
    let end = tensor.get("data_offsets")?.get(1)?.as_u64()?;
    (end <= u64::MAX / 2).then_some((dtype, params, end))
}

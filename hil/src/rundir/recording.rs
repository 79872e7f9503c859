//! `recording.safetensors`: the logit rows of a run, for any tool that reads the format.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `request`, `prompt_tok`, `steps` | U64 | \[requests\] |
//! | `u`, `surprisal_nats`, `raw_surprisal_nats` | F64 | \[rows\] |
//! | `logits` | F32 | \[rows, vocab\] |
//! | `token` | U32 | \[rows\] |
//!
//! Rows stand request by request, `steps` rows each. Metadata: `descriptor`, the conditions of the run, and
//! `etime.version`. Rows are streamed both ways: a recording is never held twice.

use super::error::{BoxError, RunDirError};
use super::manifest::VERSION;
use etime_sim::{RecordedRequest, RecordedStep, Recording};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// The largest header that the format allows.
const HEADER_BYTES: u64 = 100_000_000;

/// Writes `recording`, whose rows must agree with its vocabulary and its steps.
pub fn write_recording(
    out: &mut (dyn Write + Send),
    recording: &Recording,
) -> Result<(), BoxError> {
    recording.check()?;
    let header = header(recording);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let requests = &recording.requests;
    for request in requests {
        out.write_all(&request.request.to_le_bytes())?;
    }
    for request in requests {
        out.write_all(&(request.prompt_tok as u64).to_le_bytes())?;
    }
    for request in requests {
        out.write_all(&(request.steps.len() as u64).to_le_bytes())?;
    }
    let steps = || requests.iter().flat_map(|request| &request.steps);
    let numbers: [fn(&RecordedStep) -> f64; 3] =
        [|s| s.u, |s| s.surprisal_nats, |s| s.raw_surprisal_nats];
    for number in numbers {
        for step in steps() {
            out.write_all(&number(step).to_le_bytes())?;
        }
    }
    for row in requests.iter().flat_map(|request| &request.rows) {
        let bytes: Vec<u8> = row.iter().flat_map(|z| z.to_le_bytes()).collect();
        out.write_all(&bytes)?;
    }
    for step in steps() {
        out.write_all(&step.token.to_le_bytes())?;
    }
    Ok(())
}

/// The JSON header, padded so that the data is aligned to 8 bytes.
fn header(recording: &Recording) -> String {
    let requests = recording.requests.len();
    let rows = recording.len();
    let tensors = [
        ("request", "U64", 8, vec![requests]),
        ("prompt_tok", "U64", 8, vec![requests]),
        ("steps", "U64", 8, vec![requests]),
        ("u", "F64", 8, vec![rows]),
        ("surprisal_nats", "F64", 8, vec![rows]),
        ("raw_surprisal_nats", "F64", 8, vec![rows]),
        ("logits", "F32", 4, vec![rows, recording.vocab]),
        ("token", "U32", 4, vec![rows]),
    ];
    let mut fields = Map::new();
    let metadata = json!({ "descriptor": recording.descriptor, "etime.version": VERSION });
    fields.insert("__metadata__".to_string(), metadata);
    let mut start = 0;
    for (name, dtype, size_bytes, shape) in tensors {
        let end = start + size_bytes * shape.iter().product::<usize>();
        let tensor = json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] });
        fields.insert(name.to_string(), tensor);
        start = end;
    }
    let mut text = Value::Object(fields).to_string();
    text.extend(std::iter::repeat_n(
        ' ',
        text.len().next_multiple_of(8) - text.len(),
    ));
    text
}

/// Reads a recording and checks that its parts fit each other and the length of the file.
pub fn read_recording(path: &Path) -> Result<Recording, RunDirError> {
    Reader::open(path)
        .and_then(Reader::recording)
        .map_err(|source| RunDirError::Read {
            path: path.to_path_buf(),
            source,
        })
}

/// The header with its offsets checked against its shapes, which parsing alone does not do.
fn validated(parsed: Metadata) -> Result<Metadata, BoxError> {
    let tensors = parsed.offset_keys().into_iter();
    let tensors = tensors.filter_map(|name| Some((name.clone(), parsed.info(&name)?.clone())));
    Metadata::new(parsed.metadata().clone(), tensors.collect())
        .map_err(|e| format!("header: {e}").into())
}

struct Reader {
    file: BufReader<File>,
    data_start: u64,
    metadata: Metadata,
}

impl Reader {
    fn open(path: &Path) -> Result<Reader, BoxError> {
        let file = File::open(path)?;
        let held_bytes = file.metadata()?.len();
        let mut file = BufReader::new(file);
        let truncated = |need_bytes: u64| {
            format!("truncated recording: {held_bytes} bytes are there, {need_bytes} are needed")
        };
        if held_bytes < 8 {
            return Err(truncated(8).into());
        }
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        let header_bytes = u64::from_le_bytes(length);
        if header_bytes > HEADER_BYTES {
            return Err(format!(
                "not a recording: its header would have {header_bytes} bytes, at most {HEADER_BYTES} are allowed"
            )
            .into());
        }
        let data_start = 8 + header_bytes;
        if held_bytes < data_start {
            return Err(truncated(data_start).into());
        }
        let mut header = vec![0; usize::try_from(header_bytes)?];
        file.read_exact(&mut header)?;
        let metadata: Metadata =
            serde_json::from_slice(&header).map_err(|e| format!("header: {e}"))?;
        let metadata = validated(metadata)?;
        let need_bytes = data_start + metadata.data_len() as u64;
        if held_bytes < need_bytes {
            return Err(truncated(need_bytes).into());
        }
        if held_bytes > need_bytes {
            return Err(format!(
                "misshapen recording: {held_bytes} bytes are there, its tensors end after {need_bytes}"
            )
            .into());
        }
        Ok(Reader {
            file,
            data_start,
            metadata,
        })
    }

    fn info(&self, name: &str, dtype: Dtype, rank: usize) -> Result<&TensorInfo, BoxError> {
        let info = self
            .metadata
            .info(name)
            .ok_or_else(|| format!("misshapen recording: it has no tensor `{name}`"))?;
        if info.dtype != dtype || info.shape.len() != rank {
            return Err(format!(
                "misshapen recording: tensor `{name}` is {:?} {:?}, expected {dtype:?} of rank {rank}",
                info.dtype, info.shape
            )
            .into());
        }
        Ok(info)
    }

    /// Goes to the first byte of a tensor.
    fn seek(&mut self, name: &str, dtype: Dtype, rank: usize) -> Result<Vec<usize>, BoxError> {
        let info = self.info(name, dtype, rank)?;
        let (shape, start) = (info.shape.clone(), info.data_offsets.0 as u64);
        self.file.seek(SeekFrom::Start(self.data_start + start))?;
        Ok(shape)
    }

    /// A vector of `len` numbers of `N` bytes.
    fn vector<const N: usize, T>(
        &mut self,
        (name, dtype): (&str, Dtype),
        len: Option<usize>,
        decode: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, BoxError> {
        let seen = self.seek(name, dtype, 1)?[0];
        if let Some(expected) = len
            && seen != expected
        {
            return Err(format!(
                "misshapen recording: tensor `{name}` has length {seen}, expected {expected}"
            )
            .into());
        }
        (0..seen).map(|_| self.number(decode)).collect()
    }

    fn number<const N: usize, T>(&mut self, decode: fn([u8; N]) -> T) -> Result<T, BoxError> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        Ok(decode(bytes))
    }

    fn recording(mut self) -> Result<Recording, BoxError> {
        let request = self.vector(("request", Dtype::U64), None, u64::from_le_bytes)?;
        let requests = Some(request.len());
        let prompt_tok = self.vector(("prompt_tok", Dtype::U64), requests, u64::from_le_bytes)?;
        let steps = self.vector(("steps", Dtype::U64), requests, u64::from_le_bytes)?;
        let u = self.vector(("u", Dtype::F64), None, f64::from_le_bytes)?;
        let rows = Some(u.len());
        let surprisal = self.vector(("surprisal_nats", Dtype::F64), rows, f64::from_le_bytes)?;
        let raw = self.vector(("raw_surprisal_nats", Dtype::F64), rows, f64::from_le_bytes)?;
        let token = self.vector(("token", Dtype::U32), rows, u32::from_le_bytes)?;
        let declared = steps.iter().try_fold(0u64, |sum, &n| sum.checked_add(n));
        if declared != Some(u.len() as u64) {
            return Err(format!(
                "misshapen recording: its requests have {steps:?} steps, its rows are {}",
                u.len()
            )
            .into());
        }
        let shape = self.seek("logits", Dtype::F32, 2)?;
        if shape[0] != u.len() {
            return Err(format!(
                "misshapen recording: tensor `logits` has shape {shape:?}, expected [{}, vocab]",
                u.len()
            )
            .into());
        }
        let mut at = 0;
        let mut held = Vec::with_capacity(request.len());
        for ((&request, &prompt_tok), &count) in request.iter().zip(&prompt_tok).zip(&steps) {
            let range = at..at + usize::try_from(count)?;
            at = range.end;
            held.push(RecordedRequest {
                request,
                prompt_tok: usize::try_from(prompt_tok)?,
                rows: range
                    .clone()
                    .map(|_| self.row(shape[1]))
                    .collect::<Result<_, _>>()?,
                steps: range
                    .map(|i| RecordedStep {
                        token: token[i],
                        u: u[i],
                        surprisal_nats: surprisal[i],
                        raw_surprisal_nats: raw[i],
                    })
                    .collect(),
            });
        }
        let descriptor = self.metadata.metadata().as_ref();
        let recording = Recording {
            vocab: shape[1],
            descriptor: descriptor
                .and_then(|m| m.get("descriptor").cloned())
                .ok_or("misshapen recording: its metadata has no `descriptor`")?,
            requests: held,
        };
        recording.check()?;
        Ok(recording)
    }

    fn row(&mut self, vocab: usize) -> Result<Arc<[f32]>, BoxError> {
        let mut bytes = vec![0; vocab * 4];
        self.file.read_exact(&mut bytes)?;
        let (numbers, _) = bytes.as_chunks::<4>();
        Ok(numbers.iter().map(|&z| f32::from_le_bytes(z)).collect())
    }
}

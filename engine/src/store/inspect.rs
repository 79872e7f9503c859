//! What a model's files say about it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::source::read_error;
use super::{ModelFiles, ModelSource, StoreError, tensors};
use crate::error::ModelError;
use crate::gguf::Gguf;
use crate::settings::WeightStorage;
use crate::weights::{self, Holdings};

/// A model's description, from its config (or GGUF metadata) and the headers of its weights. A field
/// that the files do not say is `None`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Inspection {
    /// The known name or the path.
    pub name: String,
    /// `safetensors` or `gguf`.
    pub format: &'static str,
    /// Licence (SPDX).
    pub licence: Option<String>,
    /// E.g. `llama`.
    pub architecture: Option<String>,
    /// Transformer layers.
    pub layers: Option<u64>,
    /// Size of a hidden state.
    pub hidden: Option<u64>,
    /// Inner size of the feed-forward part.
    pub ffn: Option<u64>,
    /// Query heads.
    pub heads: Option<u64>,
    /// Key and value heads.
    pub kv_heads: Option<u64>,
    /// Longest sequence.
    pub context_tok: Option<u64>,
    /// Rows of the vocabulary.
    pub vocab: Option<u64>,
    /// Elements over all tensors; a tied head counts once.
    pub params: u64,
    /// Number of tensors.
    pub tensors: usize,
    /// Number of tensors of each storage type.
    pub dtypes: BTreeMap<String, usize>,
    /// Number of tensors by what they are stored as and held as by default (`Q4_1 → Q8_0`); empty where the engine
    /// cannot load the model.
    pub held: Holdings,
    /// Why the engine cannot load the model, as far as its headers tell.
    pub unsupported: Option<String>,
    /// Size of the weights.
    pub bytes: u64,
    /// BLAKE3 of the weights.
    pub blake3: String,
}

pub(super) fn inspect(source: &ModelSource) -> Result<Inspection, StoreError> {
    let stored = WeightStorage::Stored;
    match &source.files {
        ModelFiles::Bundled(bundled) => {
            let summary = tensors::of_safetensors_bytes(bundled.weights)?;
            let config = parse(bundled.config, "the bundled config.json")?;
            let name = &source.name;
            let held = weights::holdings_of_bytes(name, bundled.config, bundled.weights, stored);
            from_config(source, summary, held, &config)
        }
        ModelFiles::Directory {
            config, weights, ..
        } => {
            let folder = config.parent().unwrap_or(Path::new("."));
            let summary = tensors::of_safetensors_files(weights)?;
            let parsed = parse(&read(config)?, &config.display().to_string())?;
            let held = weights::holdings_of_directory(folder, stored);
            from_config(source, summary, held, &parsed)
        }
        ModelFiles::Gguf(path) => {
            let gguf = Gguf::open(path)?;
            let summary = tensors::of_gguf(&gguf);
            let held = weights::holdings_of_gguf(path, stored);
            from_gguf(source, summary, held, &gguf)
        }
    }
}

/// How the tensors are held, or why the model cannot be loaded.
fn split(held: Result<Holdings, ModelError>) -> (Holdings, Option<String>) {
    match held {
        Ok(held) => (held, None),
        Err(error) => (Holdings::new(), Some(error.to_string())),
    }
}

fn from_config(
    source: &ModelSource,
    summary: tensors::Summary,
    held: Result<Holdings, ModelError>,
    config: &Value,
) -> Result<Inspection, StoreError> {
    let number = |key: &str| config.get(key).and_then(Value::as_u64);
    let heads = number("num_attention_heads");
    let (held, unsupported) = split(held);
    Ok(Inspection {
        name: source.name.clone(),
        format: "safetensors",
        licence: source.licence.map(str::to_owned),
        architecture: config
            .get("model_type")
            .and_then(Value::as_str)
            .map(str::to_owned),
        layers: number("num_hidden_layers"),
        hidden: number("hidden_size"),
        ffn: number("intermediate_size"),
        heads,
        kv_heads: number("num_key_value_heads").or(heads),
        context_tok: number("max_position_embeddings"),
        vocab: number("vocab_size"),
        params: summary.params,
        tensors: summary.tensors,
        dtypes: summary.dtypes,
        held,
        unsupported,
        bytes: source.weight_bytes()?,
        blake3: source.blake3()?,
    })
}

fn from_gguf(
    source: &ModelSource,
    summary: tensors::Summary,
    held: Result<Holdings, ModelError>,
    gguf: &Gguf,
) -> Result<Inspection, StoreError> {
    let (held, unsupported) = split(held);
    let text = |key: &str| {
        let value = gguf.metadata.get(key)?;
        value.as_text().map(str::to_owned)
    };
    let architecture = text("general.architecture");
    let number = |key: &str| {
        let key = format!("{}.{key}", architecture.as_deref()?);
        gguf.metadata.get(&key)?.as_u64()
    };
    let tokens = || {
        let tokens = gguf.metadata.get("tokenizer.ggml.tokens")?;
        tokens.as_list().map(|tokens| tokens.len() as u64)
    };
    let heads = number("attention.head_count");
    Ok(Inspection {
        name: source.name.clone(),
        format: "gguf",
        licence: source
            .licence
            .map(str::to_owned)
            .or_else(|| text("general.license")),
        layers: number("block_count"),
        hidden: number("embedding_length"),
        ffn: number("feed_forward_length"),
        heads,
        kv_heads: number("attention.head_count_kv").or(heads),
        context_tok: number("context_length"),
        vocab: number("vocab_size").or_else(tokens),
        params: summary.params,
        tensors: summary.tensors,
        dtypes: summary.dtypes,
        held,
        unsupported,
        bytes: source.weight_bytes()?,
        blake3: source.blake3()?,
        architecture: architecture.clone(),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).map_err(|source| read_error(path, source))
}

fn parse(bytes: &[u8], file: &str) -> Result<Value, StoreError> {
    serde_json::from_slice(bytes).map_err(|e| StoreError::Config {
        file: file.to_owned(),
        reason: e.to_string(),
    })
}

//! A model ready to run: weights, tokenizer and where they came from.

use crate::config::ModelConfig;
use crate::device::Device;
use crate::error::ModelError;
use crate::model::Model;
use crate::plant::Engine;
use crate::store::{ModelFiles, ModelSource, Store, StoreError};
use crate::tokenizer::{Tokenizer, TokenizerError};
use candle_core::quantized::gguf_file;
use std::path::Path;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("{name}: {source}")]
    Tokenizer {
        name: String,
        source: TokenizerError,
    },
    #[error("{path}: the metadata cannot be read: {source}")]
    Metadata {
        path: String,
        source: candle_core::Error,
    },
}

/// A model with its tokenizer.
#[derive(Debug)]
pub struct Loaded {
    pub model: Model,
    pub tokenizer: Tokenizer,
    pub source: ModelSource,
}

impl Loaded {
    /// Finds `spec` in the store, reads it, and checks that its parts belong together.
    ///
    /// # Errors
    /// A model that is not there, files that are damaged or do not fit each other, a tokenizer whose ids do not fit
    /// the vocabulary.
    pub fn open(store: &Store, spec: &str, device: Device) -> Result<Self, LoadError> {
        device.check()?;
        let source = store.resolve(spec)?;
        let named = |error| LoadError::Tokenizer {
            name: source.name.clone(),
            source: error,
        };
        let (model, tokenizer) = match &source.files {
            ModelFiles::Bundled(files) => {
                let model = Model::from_bytes(&source.name, files.config, files.weights, device)?;
                (
                    model,
                    Tokenizer::from_json_bytes(files.tokenizer).map_err(named)?,
                )
            }
            ModelFiles::Directory {
                config, tokenizer, ..
            } => {
                let folder = config.parent().unwrap_or(Path::new("."));
                let model = Model::load(folder, device)?;
                (model, Tokenizer::from_file(tokenizer).map_err(named)?)
            }
            ModelFiles::Gguf(path) => {
                let model = Model::load(path, device)?;
                (model, gguf_tokenizer(path)?.map_err(named)?)
            }
        };
        let vocab = model.config().vocab;
        tokenizer.check_against(vocab).map_err(named)?;
        Ok(Loaded {
            model,
            tokenizer,
            source,
        })
    }

    pub fn config(&self) -> &ModelConfig {
        self.model.config()
    }

    /// Tokens that end a text: the tokenizer's, and those that the configuration adds.
    pub fn eos_ids(&self) -> Vec<u32> {
        let mut ids = self.tokenizer.eos_ids().to_vec();
        ids.extend(&self.config().eos);
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The engine around this model, with a pool of `kv_blocks` blocks of `block_tok` tokens.
    pub fn into_engine(
        self,
        kv_blocks: usize,
        block_tok: usize,
    ) -> Result<(Engine, Tokenizer), ModelError> {
        let engine = Engine::new(self.model, kv_blocks, block_tok)?;
        Ok((engine, self.tokenizer))
    }
}

type TokenizerResult = Result<Tokenizer, TokenizerError>;

fn gguf_tokenizer(path: &Path) -> Result<TokenizerResult, LoadError> {
    let unreadable = |source| LoadError::Metadata {
        path: path.display().to_string(),
        source,
    };
    let file = std::fs::File::open(path).map_err(|e| unreadable(e.into()))?;
    let mut reader = std::io::BufReader::new(file);
    let content = gguf_file::Content::read(&mut reader).map_err(unreadable)?;
    Ok(Tokenizer::from_gguf(&content.metadata))
}

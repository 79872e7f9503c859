//! A model ready to run: weights, tokenizer and where they came from.

use crate::chat::{ChatError, ChatTemplate, Message};
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::gguf::{Gguf, GgufError};
use crate::model::Model;
use crate::plant::Engine;
use crate::settings::LoadOptions;
use crate::store::{ModelFiles, ModelSource, Store, StoreError};
use crate::tokenizer::{SpecialIds, Tokenizer, TokenizerError};
use std::io::ErrorKind;
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
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error(transparent)]
    Chat(#[from] ChatError),
}

/// A model with its tokenizer.
#[derive(Debug)]
pub struct Loaded {
    pub model: Model,
    pub tokenizer: Tokenizer,
    pub chat: Option<ChatTemplate>,
    pub source: ModelSource,
}

impl Loaded {
    /// Finds `spec` in the store, reads it, and checks that its parts belong together.
    ///
    /// # Errors
    /// A model that is not there, files that are damaged or do not fit each other, a tokenizer whose ids do not fit
    /// the vocabulary.
    pub fn open(store: &Store, spec: &str, options: LoadOptions) -> Result<Self, LoadError> {
        options.device.check()?;
        let source = store.resolve(spec)?;
        let named = |error| LoadError::Tokenizer {
            name: source.name.clone(),
            source: error,
        };
        let (model, tokenizer, chat) = match &source.files {
            ModelFiles::Bundled(files) => {
                let model = Model::from_bytes(&source.name, files.config, files.weights, options)?;
                let tokenizer = Tokenizer::from_json_bytes(files.tokenizer).map_err(named)?;
                (model, tokenizer, None)
            }
            ModelFiles::Directory {
                config, tokenizer, ..
            } => {
                let folder = config.parent().unwrap_or(Path::new("."));
                let model = Model::load(folder, options)?;
                let tokenizer = Tokenizer::from_file(tokenizer).map_err(named)?;
                let special = generation_ids(&folder.join("generation_config.json"))?;
                let tokenizer = tokenizer.with_special_ids(special).map_err(named)?;
                (model, tokenizer, ChatTemplate::in_directory(folder)?)
            }
            ModelFiles::Gguf(path) => {
                let model = Model::load(path, options)?;
                let metadata = Gguf::open(path)?.metadata;
                let tokenizer = Tokenizer::from_gguf(&metadata).map_err(named)?;
                (model, tokenizer, ChatTemplate::in_gguf(&metadata))
            }
        };
        let vocab = model.config().vocab;
        tokenizer.check_against(vocab).map_err(named)?;
        Ok(Loaded {
            model,
            tokenizer,
            chat,
            source,
        })
    }

    /// The prompt for `messages`, in the form that the model was tuned on.
    pub fn chat_prompt(&self, messages: &[Message]) -> Result<String, ChatError> {
        let name = &self.source.name;
        let missing = || ChatError::Missing { name: name.clone() };
        let template = self.chat.as_ref().ok_or_else(missing)?;
        template.render(name, messages, &self.tokenizer)
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

/// The beginning and ends of a text that a `generation_config.json` adds to `config.json`; none where there is no file.
fn generation_ids(file: &Path) -> Result<SpecialIds, LoadError> {
    let named = |source| LoadError::Tokenizer {
        name: file.display().to_string(),
        source,
    };
    let text = match std::fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(SpecialIds::default()),
        Err(source) => {
            return Err(named(TokenizerError::Unreadable {
                path: file.to_path_buf(),
                source,
            }));
        }
        Ok(text) => text,
    };
    let config = serde_json::from_slice(&text).map_err(|error| TokenizerError::Config {
        reason: error.to_string(),
    });
    SpecialIds::from_config(&config.map_err(named)?).map_err(named)
}

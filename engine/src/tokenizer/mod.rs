//! Text to token ids and back, from a `tokenizer.json` or from the metadata of a GGUF file.

mod error;
mod gguf;
mod pre;
mod special;
mod stop;
mod stream;
mod supported;

use std::collections::HashMap;
use std::path::Path;

use tokenizers::DecoderWrapper;

use crate::gguf::Metadata;

pub use error::TokenizerError;
pub use special::SpecialIds;
pub use stop::StopTexts;
pub use stream::TextStream;

/// Share of rows that a model's vocabulary may hold beyond its tokenizer's: padding of the
/// embedding to a round size (Qwen2: 151,936 rows for 151,665 tokens).
const MAX_PADDING_PERCENT: usize = 1;

/// A tokenizer with the ids that a decode loop needs.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    special: SpecialIds,
    control_ids: Vec<u32>,
    add_bos: bool,
    vocab_size: usize,
    missing_bytes: Vec<u8>,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`. It names no beginning or end of text: see [`Self::with_special_ids`].
    ///
    /// # Errors
    /// [`TokenizerError::Json`] when the bytes are not a tokenizer that the `tokenizers` crate reads.
    pub fn from_json_bytes(bytes: &[u8]) -> Result<Self, TokenizerError> {
        let json = |e: tokenizers::Error| TokenizerError::Json {
            reason: e.to_string(),
        };
        let value = serde_json::from_slice(bytes).map_err(|e| json(e.into()))?;
        let value = supported::checked(value)?;
        let text = value.to_string();
        let mut inner = tokenizers::Tokenizer::from_bytes(text.as_bytes()).map_err(json)?;
        // A length limit or padding stored for training would change prompts in silence.
        inner.with_truncation(None).map_err(json)?;
        inner.with_padding(None);
        Self::assemble(inner, SpecialIds::default(), false)
    }

    /// Reads a `tokenizer.json` file.
    ///
    /// # Errors
    /// [`TokenizerError::Unreadable`] and those of [`Self::from_json_bytes`].
    pub fn from_file(path: &Path) -> Result<Self, TokenizerError> {
        let bytes = std::fs::read(path).map_err(|source| TokenizerError::Unreadable {
            path: path.to_path_buf(),
            source,
        })?;
        Self::from_json_bytes(&bytes)
    }

    /// Builds the tokenizer from GGUF metadata (`tokenizer.ggml.*`).
    ///
    /// # Errors
    /// A missing or mistyped key, a tokenizer model or pre-tokenizer that is not supported (the
    /// message lists those that are), or a vocabulary that contradicts itself.
    pub fn from_gguf(metadata: &Metadata) -> Result<Self, TokenizerError> {
        let vocabulary = gguf::Vocabulary::read(metadata)?;
        let (special, add_bos) = (vocabulary.special.clone(), vocabulary.add_bos);
        Self::assemble(vocabulary.build()?, SpecialIds::default(), add_bos)?
            .with_special_ids(special)
    }

    fn assemble(
        inner: tokenizers::Tokenizer,
        special: SpecialIds,
        add_bos: bool,
    ) -> Result<Self, TokenizerError> {
        let vocab = inner.get_vocab(true);
        check_distinct(&vocab)?;
        // Ids may have holes: the size is what an id must stay below.
        let vocab_size = vocab.values().max().map_or(0, |&id| id as usize + 1);
        let mut control_ids: Vec<u32> = inner
            .get_added_tokens_decoder()
            .iter()
            .filter(|(_, token)| token.special)
            .map(|(&id, _)| id)
            .collect();
        control_ids.sort_unstable();
        let missing_bytes = match inner.get_decoder() {
            Some(DecoderWrapper::ByteLevel(_)) => pre::missing_bytes(|s| vocab.contains_key(s)),
            _ => Vec::new(),
        };
        Ok(Self {
            inner,
            special,
            control_ids,
            add_bos,
            vocab_size,
            missing_bytes,
        })
    }

    /// Sets the ids that begin and end a text.
    ///
    /// # Errors
    /// [`TokenizerError::SpecialOutOfRange`] when one is not below [`Self::vocab_size`].
    pub fn with_special_ids(mut self, special: SpecialIds) -> Result<Self, TokenizerError> {
        special.check(self.vocab_size)?;
        self.special = special;
        Ok(self)
    }

    /// Token ids of `text`. A special token spelled in the text becomes that token; a beginning of
    /// text is put in front where the model's files ask for it.
    ///
    /// # Errors
    /// [`TokenizerError::Unencodable`] for a character with a byte that the vocabulary lacks
    /// (SmolLM2 lacks six control characters): dropping it would change the prompt in silence.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.check_bytes(text)?;
        let encoding = self
            .inner
            .encode_fast(text, true)
            .map_err(|e| TokenizerError::Encode {
                reason: e.to_string(),
            })?;
        // A post-processor may add ids that its own file does not define.
        let ids = encoding.get_ids();
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.vocab_size) {
            let vocab_size = self.vocab_size;
            return Err(TokenizerError::UnknownId { id, vocab_size });
        }
        let bos = self.special.bos.filter(|_| self.add_bos);
        Ok(bos.into_iter().chain(ids.iter().copied()).collect())
    }

    /// Text of `ids`, special tokens spelled out: the inverse of [`Self::encode`]. Bytes that are
    /// not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`TokenizerError::UnknownId`] for an id that is not below [`Self::vocab_size`].
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.vocab_size) {
            return Err(TokenizerError::UnknownId {
                id,
                vocab_size: self.vocab_size,
            });
        }
        self.inner
            .decode(ids, false)
            .map_err(|e| TokenizerError::Decode {
                reason: e.to_string(),
            })
    }

    /// A decoder that takes one id at a time and never gives part of a character.
    pub fn text_stream(&self) -> TextStream<'_> {
        TextStream::new(self)
    }

    /// One more than the largest id.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// The id that begins a text.
    pub fn bos_id(&self) -> Option<u32> {
        self.special.bos
    }

    /// The ids that end a text; empty when the model's files name none.
    pub fn eos_ids(&self) -> &[u32] {
        &self.special.eos
    }

    /// Ids of the control tokens, ascending.
    pub fn special_ids(&self) -> &[u32] {
        &self.control_ids
    }

    /// Checks that every token has a row in a model of `model_vocab` rows, and that rows beyond the
    /// tokenizer's are at most 1 % (padding).
    ///
    /// # Errors
    /// [`TokenizerError::VocabularyMismatch`].
    pub fn check_against(&self, model_vocab: usize) -> Result<(), TokenizerError> {
        let padding_max = model_vocab * MAX_PADDING_PERCENT / 100;
        match model_vocab.checked_sub(self.vocab_size) {
            Some(padding) if padding <= padding_max => Ok(()),
            _ => Err(TokenizerError::VocabularyMismatch {
                tokenizer: self.vocab_size,
                model: model_vocab,
                padding_max,
            }),
        }
    }

    fn check_bytes(&self, text: &str) -> Result<(), TokenizerError> {
        if self.missing_bytes.is_empty() {
            return Ok(());
        }
        let mut buffer = [0_u8; 4];
        for (offset_bytes, character) in text.char_indices() {
            let bytes = character.encode_utf8(&mut buffer).bytes();
            for byte in bytes {
                if self.missing_bytes.contains(&byte) {
                    return Err(TokenizerError::Unencodable {
                        character,
                        byte,
                        offset_bytes,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Every id spells one token, or decoding would lose text in silence.
fn check_distinct(vocab: &HashMap<String, u32>) -> Result<(), TokenizerError> {
    let mut by_id: Vec<(u32, &String)> = vocab.iter().map(|(token, &id)| (id, token)).collect();
    by_id.sort_unstable();
    match by_id.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        None => Ok(()),
        Some(pair) => Err(TokenizerError::DuplicateId {
            id: pair[0].0,
            first: pair[0].1.clone(),
            second: pair[1].1.clone(),
        }),
    }
}

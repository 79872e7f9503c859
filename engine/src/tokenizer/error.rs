use std::path::PathBuf;

/// What can be wrong with a tokenizer's files, with a text, or with an id.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The file could not be read.
    #[error("cannot read the tokenizer {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Not a `tokenizer.json`.
    #[error("not a tokenizer.json: {reason}")]
    Json {
        /// The parser's reason.
        reason: String,
    },
    /// A config that is not JSON.
    #[error("not valid JSON: {reason}")]
    Config {
        /// The parser's reason.
        reason: String,
    },
    /// A config whose `bos_token_id` or `eos_token_id` is neither an id nor a list of ids.
    #[error("{key} is {seen}; allowed: a token id, a list of token ids, or null")]
    ConfigId {
        /// The field.
        key: &'static str,
        /// The value seen.
        seen: String,
    },
    /// A GGUF file lacks a key.
    #[error("the GGUF file has no `{key}`; the tokenizer is built from it")]
    MissingKey {
        /// The metadata key.
        key: &'static str,
    },
    /// A GGUF key holds another type.
    #[error("GGUF `{key}` holds {seen}; expected {expected}")]
    KeyType {
        /// The metadata key.
        key: &'static str,
        /// The type that is needed.
        expected: &'static str,
        /// The type seen.
        seen: String,
    },
    /// A kind of tokenizer other than byte-level BPE.
    #[error(
        "GGUF `tokenizer.ggml.model` is `{seen}`; supported: `gpt2` (byte-level BPE). Use a directory with config.json, tokenizer.json and safetensors instead"
    )]
    UnsupportedModel {
        /// The model named in the file.
        seen: String,
    },
    /// A pre-tokenizer that this project has no pipeline for.
    #[error(
        "GGUF `tokenizer.ggml.pre` is `{seen}`; supported: {supported}. Use a directory with config.json, tokenizer.json and safetensors instead"
    )]
    UnsupportedPre {
        /// The pre-tokenizer named in the file.
        seen: String,
        /// The names with a pipeline.
        supported: String,
    },
    /// A part of `tokenizer.json` that this project does not run.
    #[error("tokenizer.json: {path} is {seen}; allowed: {allowed}")]
    Unsupported {
        /// The field.
        path: String,
        /// Its value.
        seen: String,
        /// What may stand there.
        allowed: &'static str,
    },
    /// One spelling with two ids.
    #[error("the vocabulary spells token {first} and token {second} alike: {token:?}")]
    DuplicateToken {
        /// The spelling.
        token: String,
        /// The smaller id.
        first: u32,
        /// The larger id.
        second: u32,
    },
    /// One id with two spellings.
    #[error("token {id} has two spellings: {first:?} and {second:?}")]
    DuplicateId {
        /// The id.
        id: u32,
        /// The spelling that sorts first.
        first: String,
        /// The other one.
        second: String,
    },
    /// A merge that is not two tokens with a space between.
    #[error("merge {index} is {seen:?}; expected two tokens with one space between")]
    MalformedMerge {
        /// Position in the list.
        index: usize,
        /// The entry.
        seen: String,
    },
    /// Token types for another number of tokens.
    #[error("the GGUF file has {tokens} tokens and {types} token types")]
    TypeCount {
        /// Number of tokens.
        tokens: usize,
        /// Number of types.
        types: usize,
    },
    /// The parts do not make a tokenizer, e.g. a merge of a token that the vocabulary lacks.
    #[error("the vocabulary and its merges do not fit together: {reason}")]
    Build {
        /// The reason.
        reason: String,
    },
    /// A beginning or end of text beyond the vocabulary.
    #[error("{name} is {id}, but the tokenizer has {vocab_size} tokens")]
    SpecialOutOfRange {
        /// `bos` or `eos`.
        name: &'static str,
        /// The id.
        id: u32,
        /// Tokens in the vocabulary.
        vocab_size: usize,
    },
    /// An id beyond the vocabulary.
    #[error("token id {id} is not in the vocabulary of {vocab_size} tokens")]
    UnknownId {
        /// The id.
        id: u32,
        /// Tokens in the vocabulary.
        vocab_size: usize,
    },
    /// A character that the vocabulary has no bytes for.
    #[error(
        "the vocabulary has no token for byte 0x{byte:02x} of character {character:?} (U+{:04X}) at byte {offset_bytes} of the text; remove the character",
        u32::from(*character)
    )]
    Unencodable {
        /// The character.
        character: char,
        /// Its byte that is missing.
        byte: u8,
        /// Where it stands in the text.
        offset_bytes: usize,
    },
    /// The tokenizer belongs to another model.
    #[error(
        "the tokenizer has {tokenizer} tokens and the model {model} rows; allowed: at most {padding_max} rows of padding, and no token without a row"
    )]
    VocabularyMismatch {
        /// Tokens in the tokenizer.
        tokenizer: usize,
        /// Rows in the model's vocabulary.
        model: usize,
        /// Rows without a token that would be accepted.
        padding_max: usize,
    },
    /// The `tokenizers` crate refused the text.
    #[error("cannot encode the text: {reason}")]
    Encode {
        /// The crate's reason.
        reason: String,
    },
    /// The `tokenizers` crate refused the ids.
    #[error("cannot decode the tokens: {reason}")]
    Decode {
        /// The crate's reason.
        reason: String,
    },
}

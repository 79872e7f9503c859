//! The tokenizer that a GGUF file carries in its metadata.

use tokenizers::AddedToken;
use tokenizers::models::bpe::{BPE, Vocab};

use super::pre::{self, Recipe};
use super::{SpecialIds, TokenizerError};
use crate::gguf::{List, Metadata, Value};

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";
const TOKEN_TYPE: &str = "tokenizer.ggml.token_type";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";
const EOT: &str = "tokenizer.ggml.eot_token_id";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";

/// Undefined, normal, unknown, control, user-defined, unused, byte.
const TYPES: std::ops::RangeInclusive<i64> = 0..=6;
const TYPE_CONTROL: i64 = 3;
const TYPE_USER_DEFINED: i64 = 4;

/// The `tokenizer.ggml.*` metadata, checked.
pub(super) struct Vocabulary {
    recipe: Recipe,
    tokens: Vec<String>,
    merges: Vec<(String, String)>,
    added: Vec<AddedToken>,
    pub(super) special: SpecialIds,
    pub(super) add_bos: bool,
}

impl Vocabulary {
    pub(super) fn read(metadata: &Metadata) -> Result<Self, TokenizerError> {
        let model = text(metadata, MODEL)?;
        if model != "gpt2" {
            return Err(TokenizerError::UnsupportedModel {
                seen: model.to_owned(),
            });
        }
        let recipe = Recipe::of(text(metadata, PRE)?)?;
        let tokens = texts(metadata, TOKENS)?;
        let merges = texts(metadata, MERGES)?
            .iter()
            .enumerate()
            .map(|(index, merge)| split_merge(index, merge))
            .collect::<Result<_, _>>()?;
        let added = added_tokens(metadata, tokens)?;
        let mut eos = Vec::new();
        for key in [EOS, EOT] {
            eos.extend(id(metadata, key)?.filter(|id| !eos.contains(id)));
        }
        let special = SpecialIds {
            bos: id(metadata, BOS)?,
            eos,
        };
        let add_bos = flag(metadata, ADD_BOS)?.unwrap_or(recipe.adds_bos);
        if add_bos && special.bos.is_none() {
            return Err(TokenizerError::MissingKey { key: BOS });
        }
        Ok(Self {
            recipe,
            tokens: tokens.to_vec(),
            merges,
            added,
            special,
            add_bos,
        })
    }

    pub(super) fn build(self) -> Result<tokenizers::Tokenizer, TokenizerError> {
        let build = |e: tokenizers::Error| TokenizerError::Build {
            reason: e.to_string(),
        };
        let vocab = ids_by_token(self.tokens)?;
        let bpe = BPE::builder()
            .vocab_and_merges(vocab, self.merges)
            .ignore_merges(self.recipe.ignore_merges)
            .build()
            .map_err(build)?;
        let mut tokenizer = tokenizers::Tokenizer::new(bpe);
        tokenizer
            .with_normalizer(self.recipe.normaliser())
            .map_err(build)?;
        tokenizer.with_pre_tokenizer(Some(self.recipe.pre_tokeniser()?));
        tokenizer.with_decoder(Some(pre::byte_level()));
        tokenizer.add_tokens(self.added).map_err(build)?;
        Ok(tokenizer)
    }
}

fn ids_by_token(tokens: Vec<String>) -> Result<Vocab, TokenizerError> {
    let mut ids = Vocab::with_capacity(tokens.len());
    for (second, token) in (0_u32..).zip(tokens) {
        if let Some(&first) = ids.get(&token) {
            return Err(TokenizerError::DuplicateToken {
                token,
                first,
                second,
            });
        }
        ids.insert(token, second);
    }
    Ok(ids)
}

fn split_merge(index: usize, merge: &str) -> Result<(String, String), TokenizerError> {
    match merge.split_once(' ') {
        Some((left, right)) if !left.is_empty() && !right.is_empty() && !right.contains(' ') => {
            Ok((left.to_owned(), right.to_owned()))
        }
        _ => Err(TokenizerError::MalformedMerge {
            index,
            seen: merge.to_owned(),
        }),
    }
}

/// Control tokens are special; user-defined tokens are matched whole, but are plain text.
fn added_tokens(metadata: &Metadata, tokens: &[String]) -> Result<Vec<AddedToken>, TokenizerError> {
    let Some(value) = metadata.get(TOKEN_TYPE) else {
        return Err(TokenizerError::MissingKey { key: TOKEN_TYPE });
    };
    let Value::List(types) = value else {
        return Err(wrong_type(TOKEN_TYPE, "a list of integers", value));
    };
    if types.len() != tokens.len() {
        return Err(TokenizerError::TypeCount {
            tokens: tokens.len(),
            types: types.len(),
        });
    }
    let mut added = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let kind = types.integer(index).filter(|kind| TYPES.contains(kind));
        let kind =
            kind.ok_or_else(|| wrong_type(TOKEN_TYPE, "a list of integers, 0 to 6", value))?;
        if kind == TYPE_CONTROL || kind == TYPE_USER_DEFINED {
            added.push(AddedToken::from(token.as_str(), kind == TYPE_CONTROL).normalized(false));
        }
    }
    Ok(added)
}

fn text<'a>(metadata: &'a Metadata, key: &'static str) -> Result<&'a str, TokenizerError> {
    match metadata.get(key) {
        Some(Value::Text(text)) => Ok(text),
        Some(other) => Err(wrong_type(key, "text", other)),
        None => Err(TokenizerError::MissingKey { key }),
    }
}

fn texts<'a>(metadata: &'a Metadata, key: &'static str) -> Result<&'a [String], TokenizerError> {
    match metadata.get(key) {
        Some(Value::List(List::Text(items))) => Ok(items),
        Some(other) => Err(wrong_type(key, "a list of texts", other)),
        None => Err(TokenizerError::MissingKey { key }),
    }
}

fn id(metadata: &Metadata, key: &'static str) -> Result<Option<u32>, TokenizerError> {
    let Some(value) = metadata.get(key) else {
        return Ok(None);
    };
    match value.as_u64().and_then(|v| u32::try_from(v).ok()) {
        Some(id) => Ok(Some(id)),
        None => Err(wrong_type(key, "a token id", value)),
    }
}

fn flag(metadata: &Metadata, key: &'static str) -> Result<Option<bool>, TokenizerError> {
    match metadata.get(key) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(wrong_type(key, "a truth value", other)),
    }
}

fn wrong_type(key: &'static str, expected: &'static str, seen: &Value) -> TokenizerError {
    TokenizerError::KeyType {
        key,
        expected,
        seen: seen.describe(),
    }
}

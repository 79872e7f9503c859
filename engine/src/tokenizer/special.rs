//! Ids that begin and end a text.

use serde_json::Value;

use super::TokenizerError;

/// Ids that begin and end a text. `tokenizer.json` does not say them; `config.json` and GGUF do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Beginning of text.
    pub bos: Option<u32>,
    /// Ends of text or of turn: any of them stops a decode.
    pub eos: Vec<u32>,
}

impl SpecialIds {
    /// Reads `bos_token_id` and `eos_token_id` (an id, a list of ids, null or absent) from the
    /// object in `config.json` or `generation_config.json`.
    ///
    /// # Errors
    /// [`TokenizerError::ConfigId`] for a value of another kind.
    pub fn from_config(config: &Value) -> Result<Self, TokenizerError> {
        Ok(Self {
            bos: ids(config, "bos_token_id")?.first().copied(),
            eos: ids(config, "eos_token_id")?,
        })
    }

    pub(super) fn check(&self, vocab_size: usize) -> Result<(), TokenizerError> {
        let bos = self.bos.iter().map(|&id| ("bos", id));
        let eos = self.eos.iter().map(|&id| ("eos", id));
        match bos.chain(eos).find(|&(_, id)| id as usize >= vocab_size) {
            Some((name, id)) => Err(TokenizerError::SpecialOutOfRange {
                name,
                id,
                vocab_size,
            }),
            None => Ok(()),
        }
    }
}

fn ids(config: &Value, key: &'static str) -> Result<Vec<u32>, TokenizerError> {
    let value = match config.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(value) => value,
    };
    let one = |v: &Value| v.as_u64().and_then(|id| u32::try_from(id).ok());
    let parsed = match value {
        Value::Array(items) => items.iter().map(one).collect(),
        other => one(other).map(|id| vec![id]),
    };
    parsed.ok_or_else(|| TokenizerError::ConfigId {
        key,
        seen: value.to_string(),
    })
}

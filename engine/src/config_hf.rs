//! `config.json` of Hugging Face checkpoints.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;

use crate::config::{ModelConfig, RopeScaling, SUPPORTED};
use crate::error::ModelError;

/// The fields that matter; others are ignored, as every library adds its own.
#[derive(Debug, Deserialize)]
struct Raw {
    model_type: Option<String>,
    architectures: Option<Vec<String>>,
    vocab_size: Option<usize>,
    hidden_size: Option<usize>,
    intermediate_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    max_position_embeddings: Option<usize>,
    rms_norm_eps: Option<f64>,
    rope_theta: Option<f64>,
    rope_scaling: Option<Rope>,
    rope_parameters: Option<Rope>,
    hidden_act: Option<String>,
    tie_word_embeddings: Option<bool>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    sliding_window: Option<usize>,
    use_sliding_window: Option<bool>,
    bos_token_id: Option<Value>,
    eos_token_id: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Rope {
    #[serde(alias = "type")]
    rope_type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<usize>,
}

impl ModelConfig {
    /// Parses the text of `file`, whose name is used in errors.
    pub fn from_hf_json(json: &[u8], file: &Path) -> Result<Self, ModelError> {
        let reader = &mut serde_json::Deserializer::from_slice(json);
        let raw: Raw = serde_path_to_error::deserialize(&mut *reader).map_err(|error| {
            let field = error.path().to_string();
            let (file, source) = (file.to_path_buf(), error.into_inner());
            match source.classify() {
                Category::Data => ModelError::FieldType {
                    file,
                    field,
                    source,
                },
                _ => ModelError::Json { file, source },
            }
        })?;
        reader.end().map_err(|source| ModelError::Json {
            file: file.to_path_buf(),
            source,
        })?;
        resolve(raw, &Fields { file })
    }
}

struct Fields<'a> {
    file: &'a Path,
}

impl Fields<'_> {
    fn refuse<T>(&self, field: &str, seen: impl ToString, allowed: &str) -> Result<T, ModelError> {
        Err(ModelError::Field {
            file: self.file.to_path_buf(),
            field: field.into(),
            seen: seen.to_string(),
            allowed: allowed.into(),
        })
    }

    fn need<T>(&self, field: &str, value: Option<T>) -> Result<T, ModelError> {
        value.map_or_else(|| self.refuse(field, "missing", "a number"), Ok)
    }

    fn ids(&self, field: &str, value: Option<Value>) -> Result<Vec<u32>, ModelError> {
        let list = match value {
            None | Some(Value::Null) => return Ok(vec![]),
            Some(Value::Array(list)) => list,
            Some(single) => vec![single],
        };
        list.iter()
            .map(|v| match v.as_u64().and_then(|id| u32::try_from(id).ok()) {
                Some(id) => Ok(id),
                None => self.refuse(field, v, "a token id or a list of them"),
            })
            .collect()
    }
}

fn resolve(raw: Raw, fields: &Fields) -> Result<ModelConfig, ModelError> {
    let architecture = raw
        .model_type
        .or_else(|| raw.architectures.and_then(|a| a.into_iter().next()))
        .unwrap_or_else(|| "none named".into());
    let known = ["llama", "mistral", "qwen2", "qwen3"];
    let Some(architecture) = known
        .into_iter()
        .find(|k| architecture == *k || architecture.to_lowercase() == format!("{k}forcausallm"))
    else {
        return Err(ModelError::Architecture {
            file: fields.file.to_path_buf(),
            seen: architecture,
            supported: SUPPORTED,
        });
    };
    let activation = raw.hidden_act.as_deref().unwrap_or("silu");
    if activation != "silu" {
        return fields.refuse("hidden_act", activation, "silu");
    }
    if raw.attention_bias == Some(true) && architecture != "qwen2" {
        return fields.refuse("attention_bias", true, "false for this architecture");
    }
    if raw.mlp_bias == Some(true) {
        return fields.refuse("mlp_bias", true, "false");
    }
    let context_tok = fields.need("max_position_embeddings", raw.max_position_embeddings)?;
    // Qwen keeps the window in the file and turns it on with a switch; elsewhere its presence is the switch.
    let windowed = raw
        .use_sliding_window
        .unwrap_or(!architecture.starts_with("qwen"));
    if let Some(window) = raw.sliding_window.filter(|&w| windowed && w < context_tok) {
        let allowed = format!(
            "at least the context of {context_tok} tokens: windowed attention is not supported"
        );
        return fields.refuse("sliding_window", window, &allowed);
    }
    let hidden = fields.need("hidden_size", raw.hidden_size)?;
    let n_heads = fields.need("num_attention_heads", raw.num_attention_heads)?;
    let head_dim = match raw.head_dim {
        Some(head_dim) => head_dim,
        None if n_heads > 0 && hidden.is_multiple_of(n_heads) => hidden / n_heads,
        None => {
            return fields.refuse(
                "num_attention_heads",
                n_heads,
                "a divisor of hidden_size, or head_dim given",
            );
        }
    };
    let rope = raw.rope_parameters.or(raw.rope_scaling);
    let nested_theta = rope.as_ref().and_then(|r| r.rope_theta);
    ModelConfig {
        architecture: architecture.into(),
        vocab: fields.need("vocab_size", raw.vocab_size)?,
        hidden,
        ffn: fields.need("intermediate_size", raw.intermediate_size)?,
        n_layers: fields.need("num_hidden_layers", raw.num_hidden_layers)?,
        n_heads,
        n_kv_heads: raw.num_key_value_heads.unwrap_or(n_heads),
        head_dim,
        context_tok,
        rms_eps: fields.need("rms_norm_eps", raw.rms_norm_eps)?,
        rope_theta: raw.rope_theta.or(nested_theta).unwrap_or(10_000.0),
        rope_scaling: rope_scaling(rope, fields)?,
        qkv_bias: architecture == "qwen2",
        qk_norm: architecture == "qwen3",
        tied: raw.tie_word_embeddings.unwrap_or(false),
        bos: fields
            .ids("bos_token_id", raw.bos_token_id)?
            .first()
            .copied(),
        eos: fields.ids("eos_token_id", raw.eos_token_id)?,
    }
    .check(fields.file)
}

fn rope_scaling(rope: Option<Rope>, fields: &Fields) -> Result<RopeScaling, ModelError> {
    let Some(rope) = rope else {
        return Ok(RopeScaling::None);
    };
    match rope.rope_type.as_deref().unwrap_or("default") {
        "default" => Ok(RopeScaling::None),
        "linear" => Ok(RopeScaling::Linear {
            factor: fields.need("rope_scaling.factor", rope.factor)?,
        }),
        "llama3" => Ok(RopeScaling::Llama3 {
            factor: fields.need("rope_scaling.factor", rope.factor)?,
            low_freq_factor: fields.need("rope_scaling.low_freq_factor", rope.low_freq_factor)?,
            high_freq_factor: fields
                .need("rope_scaling.high_freq_factor", rope.high_freq_factor)?,
            original_context_tok: fields.need(
                "rope_scaling.original_max_position_embeddings",
                rope.original_max_position_embeddings,
            )?,
        }),
        other => fields.refuse("rope_scaling.rope_type", other, "default, linear, llama3"),
    }
}

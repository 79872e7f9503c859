//! The shape of a model: one set of switches for the llama family.

use std::f64::consts::PI;
use std::path::Path;

use crate::error::ModelError;

/// More layers than any model has: a damaged file must not make the reader list millions of tensors.
const MAX_LAYERS: usize = 4096;

/// What [`ModelConfig`] can describe, for error messages.
pub(crate) const SUPPORTED: &str = "llama, mistral, qwen2, qwen3";

/// How rotary frequencies are stretched for contexts longer than those of training.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    None,
    /// Every frequency divided by `factor`.
    Linear {
        factor: f64,
    },
    /// Llama 3: long wavelengths divided by `factor`, short ones kept, a linear blend between.
    Llama3 {
        factor: f64,
        low_freq_factor: f64,
        high_freq_factor: f64,
        original_context_tok: usize,
    },
    /// A divisor for each of the head_dim/2 frequencies, as GGUF files carry in `rope_freqs.weight`.
    Divisors(Vec<f32>),
}

/// A decoder of the llama family. Sizes are counts of elements unless a name says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// llama, mistral, qwen2 or qwen3. Only the switches below decide what is computed.
    pub architecture: String,
    pub vocab: usize,
    pub hidden: usize,
    pub ffn: usize,
    pub n_layers: usize,
    pub n_heads: usize,
    pub n_kv_heads: usize,
    pub head_dim: usize,
    /// Longest sequence that the model was made for.
    pub context_tok: usize,
    pub rms_eps: f64,
    pub rope_theta: f64,
    pub rope_scaling: RopeScaling,
    /// Biases on the query, key and value projections (qwen2).
    pub qkv_bias: bool,
    /// RMS norm over each query and key head before rotation (qwen3).
    pub qk_norm: bool,
    /// The output head is the embedding matrix.
    pub tied: bool,
    pub bos: Option<u32>,
    /// Tokens that end a text, possibly none.
    pub eos: Vec<u32>,
}

impl ModelConfig {
    /// Query, key and value outputs of a layer.
    pub fn qkv(&self) -> usize {
        (self.n_heads + 2 * self.n_kv_heads) * self.head_dim
    }

    /// Multiply-adds per token in the dense layers, without attention and without the head.
    pub fn macs_per_tok(&self) -> u64 {
        let layer = self.hidden * self.qkv()
            + self.n_heads * self.head_dim * self.hidden
            + 3 * self.hidden * self.ffn;
        (self.n_layers * layer) as u64
    }

    /// Bytes of keys and values that one token adds over all layers, F32.
    pub fn kv_bytes_per_tok(&self) -> u64 {
        (2 * self.n_layers * self.n_kv_heads * self.head_dim * size_of::<f32>()) as u64
    }

    /// Angular frequencies in radians per token, θ^(−2i/head_dim) scaled; formed in F32 like the reference codes.
    pub fn inv_freq(&self) -> Vec<f32> {
        let theta = self.rope_theta as f32;
        let plain =
            (0..self.head_dim / 2).map(|i| 1.0 / theta.powf((2 * i) as f32 / self.head_dim as f32));
        match &self.rope_scaling {
            RopeScaling::None => plain.collect(),
            RopeScaling::Linear { factor } => plain.map(|f| f / *factor as f32).collect(),
            RopeScaling::Divisors(divisors) => plain.zip(divisors).map(|(f, d)| f / d).collect(),
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_context_tok,
            } => {
                let (low, high) = (*low_freq_factor, *high_freq_factor);
                let context = *original_context_tok as f64;
                plain
                    .map(|f| {
                        let turns = context * f as f64 / (2.0 * PI);
                        let keep = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                        (f as f64 * (keep + (1.0 - keep) / factor)) as f32
                    })
                    .collect()
            }
        }
    }

    /// Refuses sizes that no model has, naming the field of `file`.
    pub(crate) fn check(self, file: &Path) -> Result<Self, ModelError> {
        let bad = |field: &str, seen: String, allowed: &str| {
            Err(ModelError::Field {
                file: file.to_path_buf(),
                field: field.into(),
                seen,
                allowed: allowed.into(),
            })
        };
        let sizes = [
            ("vocabulary size", self.vocab),
            ("hidden size", self.hidden),
            ("feed-forward size", self.ffn),
            ("layer count", self.n_layers),
            ("head count", self.n_heads),
            ("key-value head count", self.n_kv_heads),
            ("context length", self.context_tok),
        ];
        for (field, seen) in sizes {
            if seen == 0 || seen > 1 << 32 {
                return bad(field, seen.to_string(), "1 to 2^32");
            }
        }
        if self.n_layers > MAX_LAYERS {
            let allowed = format!("1 to {MAX_LAYERS}");
            return bad("layer count", self.n_layers.to_string(), &allowed);
        }
        if !self.n_heads.is_multiple_of(self.n_kv_heads) {
            return bad(
                "key-value head count",
                self.n_kv_heads.to_string(),
                &format!("a divisor of the head count {}", self.n_heads),
            );
        }
        if self.head_dim == 0 || self.head_dim % 2 == 1 || self.head_dim > 1 << 16 {
            return bad("head size", self.head_dim.to_string(), "even, 2 to 65536");
        }
        // Angles are formed in F32.
        if !(1.0..=1e30).contains(&self.rope_theta) {
            return bad("rope theta", self.rope_theta.to_string(), "from 1 to 1e30");
        }
        if !(self.rms_eps >= 0.0 && self.rms_eps.is_finite()) {
            return bad(
                "norm epsilon",
                self.rms_eps.to_string(),
                "finite, at least 0",
            );
        }
        if let RopeScaling::Linear { factor } | RopeScaling::Llama3 { factor, .. } =
            self.rope_scaling
            && !(1e-6..=1e6).contains(&factor)
        {
            return bad(
                "rope scaling factor",
                factor.to_string(),
                "from 1e-6 to 1e6",
            );
        }
        if let RopeScaling::Divisors(divisors) = &self.rope_scaling
            && let Some(seen) = divisors.iter().find(|&&d| !(d > 0.0 && d.is_finite()))
        {
            return bad("rope divisor", seen.to_string(), "finite and above 0");
        }
        if let RopeScaling::Llama3 {
            low_freq_factor: low,
            high_freq_factor: high,
            ..
        } = self.rope_scaling
            && !(low > 0.0 && high > low && high.is_finite())
        {
            return bad(
                "rope frequency factors",
                format!("{low} and {high}"),
                "0 < low < high",
            );
        }
        // θ near 0 or a tiny factor: an angle that is not a number spoils every logit.
        if let Some(seen) = self.inv_freq().iter().find(|f| !f.is_finite()) {
            let allowed = "finite: check the rope theta and its scaling";
            return bad("rope frequency", seen.to_string(), allowed);
        }
        Ok(self)
    }
}

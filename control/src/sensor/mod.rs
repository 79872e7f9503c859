//! Entropy sensors: exact entropy H and varentropy V of a softmax, and its bracket from a top-k head.
//!
//! For logits z of length n and log-temperature u, with T = e^u:
//! p = softmax(z/T), s = −ln p, H = E_p\[s\] in nats, V = Var_p\[s\] in nats².
//! V is also the thermal response dH/du = dH/d ln T, so one pass gives a law its signal and its gain.

mod bound;
mod head;
pub(crate) mod lanes;

pub use bound::n_bound;
pub use head::{bracket_from_head, largest_descending};

/// Entropy and varentropy of one logit row at one temperature.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thermal {
    /// Entropy H, nats, in \[0, ln n\].
    pub h_nats: f64,
    /// Varentropy V = dH/d ln T, nats², in \[0, [`n_bound`]\].
    pub v: f64,
    /// Log-sum-exp of logits/T, nats.
    pub ln_z: f64,
    /// Largest probability.
    pub p_max: f64,
    /// Symbols n of the row.
    pub n: usize,
    /// Bounds on H from the top-k head alone, where a head was asked for.
    pub bracket: Option<Bracket>,
}

/// The tightest interval that holds H given the k largest probabilities and n.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    pub lower_nats: f64,
    pub upper_nats: f64,
}

/// A row, temperature, head or token that has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SensorError {
    #[error("the logit row is empty; it needs at least one logit")]
    Empty,
    #[error("logit {index} is NaN; every logit must be finite or -inf")]
    Nan { index: usize },
    #[error("logit {index} is +inf; every logit must be finite or -inf")]
    PosInf { index: usize },
    #[error("every logit is -inf; at least one must be finite")]
    AllNegInf,
    #[error("log-temperature {u} is not usable; e^u and e^-u must be finite and positive")]
    NonFiniteTemperature { u: String },
    #[error("a head of {k} probabilities over {n} symbols; it needs at least one of each")]
    BadHead { k: usize, n: usize },
    #[error("token {token} is outside the vocabulary of {vocab}")]
    TokenOutOfRange { token: u32, vocab: usize },
}

/// Exact H, V, ln Z and p_max of softmax(`logits`/T) at T = e^`u`, and the top-k bracket if asked for.
///
/// `logits` has one F32 value per symbol; −inf is a symbol of probability zero and adds exactly
/// nothing. All arithmetic is f64: one pass finds the largest logit, one takes the exponentials and
/// the sums Σe, Σe·y, Σe·y² with y = (z − max z)/T. Symbols with y < −708 (p < 1e-307) count as zero.
/// Only multiplications and additions in a fixed order are used, never a fused multiply-add, so that
/// every processor returns the same bits.
///
/// With `top_k` = k < n the bracket is [`bracket_from_head`] of the k largest probabilities; with
/// k ≥ n both ends are H.
///
/// # Errors
/// Empty, NaN, +inf or all −inf rows (with the first offending index), a temperature whose e^±u
/// overflows or vanishes, `top_k` = 0.
pub fn thermal(logits: &[f32], u: f64, top_k: Option<usize>) -> Result<Thermal, SensorError> {
    let scale = lanes::Scale::new(logits, u)?;
    let sums = lanes::moments(logits, scale);
    let mean = sums.ey / sums.e;
    let h_nats = sums.e.ln() - mean;
    let bracket = top_k
        .map(|k| bracket(logits, scale, sums.e, h_nats, k))
        .transpose()?;
    Ok(Thermal {
        h_nats,
        v: (sums.eyy / sums.e - mean * mean).max(0.0),
        ln_z: scale.max * scale.inv_t + sums.e.ln(),
        p_max: 1.0 / sums.e,
        n: logits.len(),
        bracket,
    })
}

fn bracket(
    logits: &[f32],
    scale: lanes::Scale,
    sum_e: f64,
    h_nats: f64,
    k: usize,
) -> Result<Bracket, SensorError> {
    let n = logits.len();
    if k == 0 {
        return Err(SensorError::BadHead { k, n });
    }
    if k >= n {
        return Ok(Bracket {
            lower_nats: h_nats,
            upper_nats: h_nats,
        });
    }
    let head: Vec<f64> = largest_descending(logits, k)
        .into_iter()
        .map(|z| lanes::exp_or_zero(scale.y(z)) / sum_e)
        .collect();
    Ok(bracket_from_head(&head, n))
}

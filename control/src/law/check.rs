//! What a law's parameters may be.

use super::{AdaptiveP, Dynatemp, Edt, Integral, MirostatV2, Normalised, TemperatureLaw};
use crate::config::{Control, Limits, Sensor};

/// A field whose value is not allowed. `path` is the field's path below the struct that was checked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{path} = {seen} is not allowed; allowed: {allowed}")]
pub struct FieldError {
    pub path: String,
    pub seen: String,
    pub allowed: String,
}

/// Refuses the field at `path`, whose value is `seen`, unless `ok`.
pub fn ensure(
    ok: bool,
    path: &str,
    seen: impl ToString,
    allowed: impl Into<String>,
) -> Result<(), FieldError> {
    if ok {
        return Ok(());
    }
    Err(FieldError {
        path: path.to_owned(),
        seen: seen.to_string(),
        allowed: allowed.into(),
    })
}

/// Magnitudes within which no formula here overflows or vanishes; every use lies far inside.
const SMALLEST: f64 = 1e-12;
const LARGEST: f64 = 1e12;

/// Refuses a number that is not above 0, or of an absurd magnitude.
pub fn positive(path: &str, value: f64) -> Result<(), FieldError> {
    ensure(
        (SMALLEST..=LARGEST).contains(&value),
        path,
        shown(value),
        format!("a number above 0, from {SMALLEST:e} to {LARGEST:e}"),
    )
}

/// As [`positive`], with 0 allowed.
pub fn not_negative(path: &str, value: f64) -> Result<(), FieldError> {
    ensure(
        (0.0..=LARGEST).contains(&value),
        path,
        shown(value),
        format!("a number from 0 to {LARGEST:e}"),
    )
}

/// A number as a person would write it, without hundreds of zeros.
pub fn shown(value: f64) -> String {
    let plain = value == 0.0 || !value.is_finite() || (1e-4..1e7).contains(&value.abs());
    match plain {
        true => value.to_string(),
        false => format!("{value:e}"),
    }
}

/// Tokens of delay past which a loop is a mistake in a scenario rather than an experiment.
const MAX_DELAY_TOK: usize = 1024;

struct Loop {
    target_nats: f64,
    t_min: f64,
    t_max: f64,
    t_start: Option<f64>,
}

impl Loop {
    fn check(&self) -> Result<(), FieldError> {
        check_band(self.t_min, ("t_max", self.t_max))?;
        if let Some(t_start) = self.t_start {
            positive("temperature.t_start", t_start)?;
            ensure(
                (self.t_min..=self.t_max).contains(&t_start),
                "temperature.t_start",
                t_start,
                format!("within [t_min, t_max] = [{}, {}]", self.t_min, self.t_max),
            )?;
        }
        positive("temperature.target_nats", self.target_nats)
    }
}

/// Bounds of T; the upper one has a `name`.
fn check_band(t_min: f64, (name, t_max): (&str, f64)) -> Result<(), FieldError> {
    positive("temperature.t_min", t_min)?;
    positive(&format!("temperature.{name}"), t_max)?;
    ensure(
        t_min < t_max,
        "temperature.t_min",
        t_min,
        format!("less than {name} = {t_max}"),
    )
}

fn check_ema(ema: f64) -> Result<(), FieldError> {
    ensure(
        (0.0..1.0).contains(&ema),
        "temperature.ema",
        ema,
        "a number in [0, 1); 0 switches the average off",
    )
}

fn check_filter(ema: f64, delay_tok: usize) -> Result<(), FieldError> {
    check_ema(ema)?;
    ensure(
        delay_tok <= MAX_DELAY_TOK,
        "temperature.delay_tok",
        delay_tok,
        format!("at most {MAX_DELAY_TOK} tokens"),
    )
}

fn check_integral(law: &Integral) -> Result<(), FieldError> {
    positive("temperature.eta_per_nat", law.eta_per_nat)?;
    Loop {
        target_nats: law.target_nats,
        t_min: law.t_min,
        t_max: law.t_max,
        t_start: Some(law.t_start),
    }
    .check()?;
    check_filter(law.ema, law.delay_tok)
}

fn check_normalised(law: &Normalised) -> Result<(), FieldError> {
    positive("temperature.kappa", law.kappa)?;
    positive("temperature.v_floor", law.v_floor)?;
    if let Some(limit) = law.max_step {
        positive("temperature.max_step", limit)?;
    }
    Loop {
        target_nats: law.target_nats,
        t_min: law.t_min,
        t_max: law.t_max,
        t_start: Some(law.t_start),
    }
    .check()?;
    check_filter(law.ema, law.delay_tok)
}

fn check_mirostat(law: &MirostatV2) -> Result<(), FieldError> {
    positive("temperature.tau_bits", law.tau_bits)?;
    positive("temperature.eta", law.eta)?;
    positive("temperature.t", law.t)
}

fn check_dynatemp(law: &Dynatemp) -> Result<(), FieldError> {
    positive("temperature.exponent", law.exponent)?;
    check_band(law.t_min, ("t_max", law.t_max))
}

fn check_edt(law: &Edt) -> Result<(), FieldError> {
    positive("temperature.theta_nats", law.theta_nats)?;
    positive("temperature.base", law.base)?;
    ensure(
        law.base < 1.0,
        "temperature.base",
        law.base,
        "less than 1: T rises with the entropy",
    )?;
    check_band(law.t_min, ("t_0", law.t_0))
}

fn check_adaptive_p(law: &AdaptiveP) -> Result<(), FieldError> {
    positive("temperature.target_p", law.target_p)?;
    ensure(
        law.target_p < 1.0,
        "temperature.target_p",
        law.target_p,
        "less than 1: a mean of probabilities",
    )?;
    check_ema(law.ema)?;
    positive("temperature.t", law.t)
}

impl TemperatureLaw {
    /// Checks every parameter by itself and against the others.
    pub fn check(&self) -> Result<(), FieldError> {
        match self {
            TemperatureLaw::Fixed { t } => positive("temperature.t", *t),
            TemperatureLaw::Published(law) | TemperatureLaw::Corrected(law) => check_integral(law),
            TemperatureLaw::Normalised(law) => check_normalised(law),
            TemperatureLaw::InStep(law) => {
                positive("temperature.tol_nats", law.tol_nats)?;
                Loop {
                    target_nats: law.target_nats,
                    t_min: law.t_min,
                    t_max: law.t_max,
                    t_start: None,
                }
                .check()
            }
            TemperatureLaw::MirostatV2(law) => check_mirostat(law),
            TemperatureLaw::Dynatemp(law) => check_dynatemp(law),
            TemperatureLaw::Edt(law) => check_edt(law),
            TemperatureLaw::AdaptiveP(law) => check_adaptive_p(law),
        }
    }

    /// Checks that the setpoint is below ln n, the entropy of a uniform draw from `vocab` tokens.
    pub fn check_vocab(&self, vocab: usize) -> Result<(), FieldError> {
        let ln_n = (vocab as f64).ln();
        if let TemperatureLaw::MirostatV2(law) = self {
            let log2_n = (vocab as f64).log2();
            return ensure(
                law.tau_bits < log2_n,
                "temperature.tau_bits",
                law.tau_bits,
                format!(
                    "less than log2 n = {log2_n:.4} bits, the entropy of a uniform draw from {vocab} tokens"
                ),
            );
        }
        if let Some(target) = self.target_nats() {
            ensure(
                target < ln_n,
                "temperature.target_nats",
                target,
                format!(
                    "less than ln n = {ln_n:.4} nats, the entropy of a uniform draw from {vocab} tokens"
                ),
            )?;
        }
        Ok(())
    }
}

impl Control {
    /// Checks the controllers' parameters; paths are relative to `control`.
    pub fn check(&self) -> Result<(), FieldError> {
        self.temperature.check()?;
        not_negative("h_min_nats", self.h_min_nats)?;
        if let Some(target) = self.temperature.target_nats() {
            ensure(
                self.h_min_nats < target,
                "h_min_nats",
                self.h_min_nats,
                format!(
                    "less than target_nats = {target}: a floor at or above the setpoint drives T to T_min for ever"
                ),
            )?;
        }
        if let Sensor::TopK { k } = self.sensor {
            ensure(k >= 1, "sensor.k", k, "1 or more")?;
            let exact_only = matches!(
                self.temperature,
                TemperatureLaw::Normalised(_) | TemperatureLaw::InStep(_)
            );
            ensure(
                !exact_only,
                "sensor",
                format!("TopK(k: {k})"),
                format!(
                    "Exact: the law {} needs the varentropy of the whole vocabulary",
                    self.temperature.name()
                ),
            )?;
            ensure(
                !self.temperature.reads_surprisal(),
                "sensor",
                format!("TopK(k: {k})"),
                format!(
                    "Exact: the law {} reads the surprisal of the drawn token, no entropy",
                    self.temperature.name()
                ),
            )?;
        }
        Ok(())
    }

    /// Checks what depends on the vocabulary: H* must lie in (0, ln n) and the head must fit.
    pub fn check_vocab(&self, vocab: usize) -> Result<(), FieldError> {
        self.temperature.check_vocab(vocab)?;
        if let Sensor::TopK { k } = self.sensor {
            ensure(
                k <= vocab,
                "sensor.k",
                k,
                format!("at most the vocabulary, {vocab}"),
            )?;
        }
        Ok(())
    }

    /// The signal that a law is fed for `thermal`: the sensor's reading, never below the floor.
    pub fn read_nats(&self, thermal: &crate::sensor::Thermal) -> f64 {
        let reading = match thermal.bracket {
            Some(bracket) => bracket.upper_nats,
            None => thermal.h_nats,
        };
        reading.max(self.h_min_nats)
    }
}

impl Limits {
    /// Checks the serving limits; paths are bare field names.
    pub fn check(&self) -> Result<(), FieldError> {
        for (path, value) in [
            ("block_tok", self.block_tok),
            ("kv_blocks", self.kv_blocks),
            ("max_seqs", self.max_seqs),
            ("max_batched_tok", self.max_batched_tok),
        ] {
            ensure(value >= 1, path, value, "1 or more")?;
        }
        ensure(
            self.block_tok <= 256,
            "block_tok",
            self.block_tok,
            "at most 256",
        )?;
        ensure(
            self.kv_blocks <= u32::MAX as usize,
            "kv_blocks",
            self.kv_blocks,
            format!("at most {}", u32::MAX),
        )?;
        ensure(
            self.max_batched_tok >= self.max_seqs,
            "max_batched_tok",
            self.max_batched_tok,
            format!(
                "at least max_seqs = {}: every running sequence decodes one token a step",
                self.max_seqs
            ),
        )
    }
}

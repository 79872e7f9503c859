//! Temperature laws: pure maps (state, observation) → (state, action) in u = ln T.
//!
//! A law is data ([`TemperatureLaw`]), its memory is data ([`LawState`]), and [`TemperatureLaw::observe`]
//! consumes one state and returns the next, so that two requests cannot share memory.

mod adaptive_p;
mod check;
mod dynatemp;
mod edt;
mod fault;
mod filter;
mod in_step;
mod integral;
mod mirostat;
mod normalised;

pub use adaptive_p::AdaptiveP;
pub use check::{FieldError, ensure, not_negative, positive, shown};
pub use dynatemp::Dynatemp;
pub use edt::Edt;
pub use fault::{Fault, FaultError};
pub use filter::FilterState;
pub use in_step::{InStep, Solution, SolveStatus, Solver};
pub use integral::{Integral, Sign};
pub use mirostat::{MirostatV2, SurprisalOf};
pub use normalised::Normalised;

use crate::draw::LogitShape;
use serde::{Deserialize, Serialize};

/// Which distribution's entropy is fed back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Measure {
    /// softmax(z/T): the temperature acts on the measured signal directly.
    #[default]
    Tempered,
    /// softmax(z): the only feedback is through the text that was drawn.
    Raw,
}

/// How the temperature of a sequence follows its entropy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum TemperatureLaw {
    /// u' = u: the open loop.
    Fixed { t: f64 },
    /// u' = clip(u + η (H − H*)): the law as printed in the paper. Positive feedback; bounded by the clip alone.
    Published(Integral),
    /// u' = clip(u − η (H − H*)): negative feedback, locally stable for 0 < η V(u*) < 2.
    Corrected(Integral),
    /// u' = clip(u − κ (H − H*) / max(V, V_floor)): a damped Newton step.
    Normalised(Normalised),
    /// Solves H_t(u) = H* on the current logits before the draw: the dead-beat oracle.
    InStep(InStep),
    /// μ' = μ − η (−log2 p(x) − τ), drawing from the tokens with −log2 p ≤ μ.
    MirostatV2(MirostatV2),
    /// T = T_min + (T_max − T_min) (H_raw/ln n)^x on the current logits: an open loop.
    Dynatemp(Dynatemp),
    /// T = T_0 · N^(θ/H_raw) on the current logits, N < 1: memoryless, in the direction of `Published`.
    Edt(Edt),
    /// Draws tokens of a probability near a target, which leans against the average of the probabilities drawn.
    AdaptiveP(AdaptiveP),
}

/// Bounds of the log-temperature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    pub u_min: f64,
    pub u_max: f64,
}

impl Band {
    fn from_t(t_min: f64, t_max: f64) -> Self {
        Band {
            u_min: t_min.ln(),
            u_max: t_max.ln(),
        }
    }

    /// `u` projected onto the band. Non-expansive: |clip(a) − clip(b)| ≤ |a − b|.
    pub fn clip(&self, u: f64) -> f64 {
        u.clamp(self.u_min, self.u_max)
    }
}

/// The memory of a law for one sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LawState {
    /// Log-temperature of the next draw.
    pub u: f64,
    pub filter: FilterState,
    /// μ of `MirostatV2`, bits; 0 elsewhere.
    pub mu_bits: f64,
    /// Average of the probabilities drawn, of `AdaptiveP`; 0 elsewhere.
    pub mean_p: f64,
}

/// What a law sees of one step, in nats, as the sensor reports it (floor and bound included).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// Entropy at the temperature of the draw.
    pub h_nats: f64,
    /// Entropy at T = 1.
    pub h_raw_nats: f64,
    /// Varentropy at the temperature of the draw, nats².
    pub v: f64,
    /// −ln p of the drawn token in the distribution drawn from, nats.
    pub surprisal_nats: f64,
    /// −ln p of the drawn token at the temperature of the draw, before any cutoff or reshaping, nats.
    pub tempered_surprisal_nats: f64,
}

/// What a law did with one observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Action {
    /// The signal that entered the law before filter and delay, nats.
    pub fed_nats: f64,
    /// What the clip added to the unclipped update, in u.
    pub clip_u: f64,
}

impl Action {
    fn hold(fed_nats: f64) -> Self {
        Action {
            fed_nats,
            clip_u: 0.0,
        }
    }
}

impl TemperatureLaw {
    /// Name of the variant, as a scenario spells it.
    pub fn name(&self) -> &'static str {
        match self {
            TemperatureLaw::Fixed { .. } => "Fixed",
            TemperatureLaw::Published(_) => "Published",
            TemperatureLaw::Corrected(_) => "Corrected",
            TemperatureLaw::Normalised(_) => "Normalised",
            TemperatureLaw::InStep(_) => "InStep",
            TemperatureLaw::MirostatV2(_) => "MirostatV2",
            TemperatureLaw::Dynatemp(_) => "Dynatemp",
            TemperatureLaw::Edt(_) => "Edt",
            TemperatureLaw::AdaptiveP(_) => "AdaptiveP",
        }
    }

    /// The state of a fresh sequence; also how a law is reset.
    pub fn start(&self) -> LawState {
        let t = match self {
            TemperatureLaw::Fixed { t } => *t,
            TemperatureLaw::Published(law) | TemperatureLaw::Corrected(law) => law.t_start,
            TemperatureLaw::Normalised(law) => law.t_start,
            TemperatureLaw::InStep(law) => 1.0_f64.clamp(law.t_min, law.t_max),
            TemperatureLaw::MirostatV2(law) => law.t,
            TemperatureLaw::Dynatemp(law) => law.t_max,
            TemperatureLaw::Edt(law) => law.t_0,
            TemperatureLaw::AdaptiveP(law) => law.t,
        };
        LawState {
            u: t.ln(),
            filter: FilterState::default(),
            mu_bits: match self {
                TemperatureLaw::MirostatV2(law) => law.mu_start_bits(),
                _ => 0.0,
            },
            mean_p: match self {
                TemperatureLaw::AdaptiveP(law) => law.target_p,
                _ => 0.0,
            },
        }
    }

    /// One step of the law.
    pub fn observe(&self, state: LawState, seen: Observation) -> (LawState, Action) {
        match self {
            TemperatureLaw::Fixed { .. } => (state, Action::hold(seen.h_nats)),
            TemperatureLaw::Published(law) => law.step(Sign::Plus, state, seen),
            TemperatureLaw::Corrected(law) => law.step(Sign::Minus, state, seen),
            TemperatureLaw::Normalised(law) => law.step(state, seen),
            TemperatureLaw::InStep(_) => (state, Action::hold(seen.h_nats)),
            TemperatureLaw::MirostatV2(law) => law.step(state, seen),
            TemperatureLaw::Dynatemp(_) | TemperatureLaw::Edt(_) => {
                (state, Action::hold(seen.h_raw_nats))
            }
            TemperatureLaw::AdaptiveP(law) => law.step(state, seen),
        }
    }

    /// How the next token is drawn; `u` is where a law that acts before the draw has left it.
    pub fn shape(&self, state: &LawState, u: f64) -> LogitShape {
        match self {
            TemperatureLaw::MirostatV2(law) => law.shape(state),
            TemperatureLaw::AdaptiveP(law) => law.shape(state),
            _ => LogitShape::Temperature { u },
        }
    }

    /// Whether the law sets u from the raw entropy of the current logits, by [`TemperatureLaw::feed_forward`].
    pub fn feeds_forward(&self) -> bool {
        matches!(self, TemperatureLaw::Dynatemp(_) | TemperatureLaw::Edt(_))
    }

    /// The u of a draw from logits of raw entropy `h_raw_nats` over n symbols; `u` itself for every other law.
    pub fn feed_forward(&self, u: f64, h_raw_nats: f64, ln_n: f64) -> f64 {
        match self {
            TemperatureLaw::Dynatemp(law) => law.u(h_raw_nats, ln_n),
            TemperatureLaw::Edt(law) => law.u(h_raw_nats),
            _ => u,
        }
    }

    /// The solver that picks u on the current logits, for laws that act before the draw.
    pub fn solver(&self, state: &LawState) -> Option<Solver> {
        match self {
            TemperatureLaw::InStep(law) => Some(law.solver(state.u)),
            _ => None,
        }
    }

    /// Whether the law is fed the surprisal of the drawn token in place of an entropy.
    pub fn reads_surprisal(&self) -> bool {
        matches!(
            self,
            TemperatureLaw::MirostatV2(_) | TemperatureLaw::AdaptiveP(_)
        )
    }

    /// Setpoint H*, nats; `None` for an open loop and for a setpoint that is no entropy.
    pub fn target_nats(&self) -> Option<f64> {
        match self {
            TemperatureLaw::Fixed { .. }
            | TemperatureLaw::Dynatemp(_)
            | TemperatureLaw::Edt(_)
            | TemperatureLaw::MirostatV2(_)
            | TemperatureLaw::AdaptiveP(_) => None,
            TemperatureLaw::Published(law) | TemperatureLaw::Corrected(law) => {
                Some(law.target_nats)
            }
            TemperatureLaw::Normalised(law) => Some(law.target_nats),
            TemperatureLaw::InStep(law) => Some(law.target_nats),
        }
    }

    /// Bounds of u; `None` where u does not move.
    pub fn band(&self) -> Option<Band> {
        match self {
            TemperatureLaw::Fixed { .. }
            | TemperatureLaw::MirostatV2(_)
            | TemperatureLaw::AdaptiveP(_) => None,
            TemperatureLaw::Dynatemp(law) => Some(law.band()),
            TemperatureLaw::Edt(law) => Some(law.band()),
            TemperatureLaw::Published(law) | TemperatureLaw::Corrected(law) => Some(law.band()),
            TemperatureLaw::Normalised(law) => Some(law.band()),
            TemperatureLaw::InStep(law) => Some(law.band()),
        }
    }

    /// Slope of −Δu on H in the unclipped linear regime at varentropy `v`, 1/nat; signed, so that positive
    /// means negative feedback. `None` where the law has no such gain.
    pub fn gain_per_nat(&self, v: f64) -> Option<f64> {
        match self {
            TemperatureLaw::Published(law) => Some(-law.eta_per_nat),
            TemperatureLaw::Corrected(law) => Some(law.eta_per_nat),
            TemperatureLaw::Normalised(law) => Some(law.kappa / v.max(law.v_floor)),
            TemperatureLaw::Fixed { .. }
            | TemperatureLaw::InStep(_)
            | TemperatureLaw::MirostatV2(_)
            | TemperatureLaw::Dynatemp(_)
            | TemperatureLaw::Edt(_)
            | TemperatureLaw::AdaptiveP(_) => None,
        }
    }

    /// Which distribution the law listens to.
    pub fn measure(&self) -> Measure {
        match self {
            TemperatureLaw::Published(law) | TemperatureLaw::Corrected(law) => law.measure,
            TemperatureLaw::Dynatemp(_) | TemperatureLaw::Edt(_) => Measure::Raw,
            _ => Measure::Tempered,
        }
    }
}

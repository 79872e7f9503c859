//! How far a measurement may be from its prediction and still count as agreement.

use crate::signal::Signal;
use etime_control::law::TemperatureLaw;
use serde::{Deserialize, Serialize};

/// Largest |prediction − measurement| of each kind of signal, and the largest u_val that allows a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tolerance {
    /// Mean of u = ln T: 0.1 is 10 % of T.
    pub mean_u: f64,
    /// Standard deviation of u.
    pub sd_u: f64,
    /// Share of draws on a bound.
    pub saturation: f64,
    /// Standard deviation of H and mean surprisal, nats.
    pub nats: f64,
    /// Autocorrelation of H.
    pub acf: f64,
    /// Time constant, as a share of what was measured.
    pub settling_share: f64,
    /// Time constant, tokens: the least that the share comes to.
    pub settling_tok: f64,
    /// Slope of Δu on H, as a share of what was measured.
    pub gain_share: f64,
    /// Lag of Δu behind H, tokens.
    pub lag_tok: f64,
    /// Largest u_val of signals in u.
    pub u_val_u: f64,
    /// Largest u_val of signals in nats.
    pub u_val_nats: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Tolerance {
            mean_u: 0.10,
            sd_u: 0.06,
            saturation: 0.05,
            nats: 0.10,
            acf: 0.10,
            settling_share: 0.5,
            settling_tok: 8.0,
            gain_share: 0.05,
            lag_tok: 0.5,
            u_val_u: 0.03,
            u_val_nats: 0.05,
        }
    }
}

/// Limits of one signal, in its own unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalLimits {
    pub tolerance: f64,
    pub u_cap: f64,
}

impl Tolerance {
    /// The limits of `signal`; relative ones are taken of the measured value, or of the law's gain.
    pub fn of(&self, signal: Signal, law: &TemperatureLaw, measured: Option<f64>) -> SignalLimits {
        let half = |tolerance: f64| SignalLimits {
            tolerance,
            u_cap: 0.5 * tolerance,
        };
        match signal {
            Signal::MeanU => SignalLimits {
                tolerance: self.mean_u,
                u_cap: self.u_val_u,
            },
            Signal::SdU => SignalLimits {
                tolerance: self.sd_u,
                u_cap: self.u_val_u,
            },
            Signal::SdH | Signal::Surprisal | Signal::MeanH => SignalLimits {
                tolerance: self.nats,
                u_cap: self.u_val_nats,
            },
            Signal::Saturation => half(self.saturation),
            Signal::AcfH => half(self.acf),
            Signal::Settling => {
                let share = self.settling_share * measured.unwrap_or(0.0);
                half(share.max(self.settling_tok))
            }
            Signal::Gain => {
                let scale = measured.or(law.gain_per_nat(1.0)).unwrap_or(0.0);
                half(self.gain_share * scale.abs())
            }
            Signal::Lag => half(self.lag_tok),
        }
    }
}

//! Faults for negative controls: a law that is wrong in one known way.

use super::{Dynatemp, Edt, InStep, Integral, MirostatV2, Normalised, TemperatureLaw};
use serde::{Deserialize, Serialize};
use std::f64::consts::LN_2;

/// One way to get a temperature loop wrong. A validator that passes any of these validates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The feedback has the other sign.
    WrongSign,
    /// The gain is twice what it should be.
    DoubleEta,
    /// The law acts one token late.
    ExtraDelay,
    /// Entropy is measured in bits, the setpoint is in nats.
    BitsMeasured,
    /// Entropy and setpoint are both in bits: the gain is off by 1/ln 2.
    BitsGain,
}

impl std::fmt::Display for Fault {
    /// As the command line spells it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Fault::WrongSign => "wrong-sign",
            Fault::DoubleEta => "double-eta",
            Fault::ExtraDelay => "extra-delay",
            Fault::BitsMeasured => "bits-measured",
            Fault::BitsGain => "bits-gain",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} has no meaning for the law {law}; it applies to {applies}")]
pub struct FaultError {
    pub fault: Fault,
    pub law: &'static str,
    pub applies: &'static str,
}

impl Fault {
    pub const ALL: [Fault; 5] = [
        Fault::WrongSign,
        Fault::DoubleEta,
        Fault::ExtraDelay,
        Fault::BitsMeasured,
        Fault::BitsGain,
    ];

    /// `law` with this fault in it. Bits are exact changes of parameters: with H in bits,
    /// η (H/ln 2 − H*) = (η/ln 2)(H − H* ln 2), and H/V in bits is ln 2 times H/V in nats.
    pub fn inject(self, law: &TemperatureLaw) -> Result<TemperatureLaw, FaultError> {
        let applies = match law {
            TemperatureLaw::Published(l) if self == Fault::WrongSign => {
                return Ok(TemperatureLaw::Corrected(l.clone()));
            }
            TemperatureLaw::Corrected(l) if self == Fault::WrongSign => {
                return Ok(TemperatureLaw::Published(l.clone()));
            }
            TemperatureLaw::Published(l) => return Ok(TemperatureLaw::Published(self.integral(l))),
            TemperatureLaw::Corrected(l) => return Ok(TemperatureLaw::Corrected(self.integral(l))),
            TemperatureLaw::Normalised(l) => {
                return Ok(TemperatureLaw::Normalised(self.normalised(l)));
            }
            TemperatureLaw::InStep(l) if self == Fault::BitsMeasured => {
                let target_nats = l.target_nats * LN_2;
                return Ok(TemperatureLaw::InStep(InStep {
                    target_nats,
                    ..l.clone()
                }));
            }
            TemperatureLaw::MirostatV2(l) => match self.mirostat(l) {
                Some(faulty) => return Ok(TemperatureLaw::MirostatV2(faulty)),
                None => "laws with a delay and a gain per nat (Published, Corrected, Normalised)",
            },
            TemperatureLaw::Dynatemp(l) if self == Fault::BitsMeasured => {
                // (H/ln 2)^x stretches the response to the normalised entropy by ln 2 to the −x.
                let stretched = (l.t_max - l.t_min) * LN_2.powf(-l.exponent);
                return Ok(TemperatureLaw::Dynatemp(Dynatemp {
                    t_max: l.t_min + stretched,
                    ..l.clone()
                }));
            }
            TemperatureLaw::Edt(l) if self == Fault::BitsMeasured => {
                let theta_nats = l.theta_nats * LN_2;
                return Ok(TemperatureLaw::Edt(Edt {
                    theta_nats,
                    ..l.clone()
                }));
            }
            TemperatureLaw::InStep(_) => "laws with a gain (Published, Corrected, Normalised)",
            TemperatureLaw::Fixed { .. }
            | TemperatureLaw::Dynatemp(_)
            | TemperatureLaw::Edt(_)
            | TemperatureLaw::AdaptiveP(_) => {
                "laws that close a loop around an entropy or a surprisal"
            }
        };
        Err(FaultError {
            fault: self,
            law: law.name(),
            applies,
        })
    }

    /// The fault in an integral law; the sign is the variant's, not the parameters'.
    fn integral(self, law: &Integral) -> Integral {
        let mut law = law.clone();
        match self {
            Fault::WrongSign => {}
            Fault::DoubleEta => law.eta_per_nat *= 2.0,
            Fault::ExtraDelay => law.delay_tok += 1,
            Fault::BitsGain => law.eta_per_nat /= LN_2,
            Fault::BitsMeasured => {
                law.eta_per_nat /= LN_2;
                law.target_nats *= LN_2;
            }
        }
        law
    }

    /// A law in bits takes a setpoint in nats for one in bits; it has no delay line, and its gain carries no unit.
    fn mirostat(self, law: &MirostatV2) -> Option<MirostatV2> {
        let mut law = law.clone();
        match self {
            Fault::WrongSign => law.eta = -law.eta,
            Fault::DoubleEta => law.eta *= 2.0,
            Fault::BitsMeasured => law.tau_bits *= LN_2,
            Fault::ExtraDelay | Fault::BitsGain => return None,
        }
        Some(law)
    }

    fn normalised(self, law: &Normalised) -> Normalised {
        let mut law = law.clone();
        match self {
            Fault::WrongSign => law.kappa = -law.kappa,
            Fault::DoubleEta => law.kappa *= 2.0,
            Fault::ExtraDelay => law.delay_tok += 1,
            Fault::BitsGain | Fault::BitsMeasured => {
                law.kappa *= LN_2;
                law.v_floor *= LN_2 * LN_2;
            }
        }
        if self == Fault::BitsMeasured {
            law.target_nats *= LN_2;
        }
        law
    }
}

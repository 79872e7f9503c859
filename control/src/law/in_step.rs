//! The dead-beat oracle: solve H_t(u) = H* on the current logits, then draw.

use super::Band;
use serde::{Deserialize, Serialize};

/// Zero tracking error wherever H(T_min) ≤ H* ≤ H(T_max) on the current logits, the nearest bound elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InStep {
    /// Setpoint H*, nats.
    pub target_nats: f64,
    pub t_min: f64,
    pub t_max: f64,
    /// Largest |H − H*| that counts as solved, nats.
    #[serde(default = "default_tol_nats")]
    pub tol_nats: f64,
}

fn default_tol_nats() -> f64 {
    1e-9
}

impl InStep {
    pub fn band(&self) -> Band {
        Band::from_t(self.t_min, self.t_max)
    }

    pub(super) fn solver(&self, guess: f64) -> Solver {
        let band = self.band();
        Solver {
            target_nats: self.target_nats,
            tol_nats: self.tol_nats,
            lo: band.u_min,
            hi: band.u_max,
            lo_told: false,
            hi_told: false,
            band,
            ask: band.clip(guess),
            asked: 0,
        }
    }
}

/// How a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolveStatus {
    /// |H − H*| ≤ tolerance.
    Converged,
    /// H(T_min) > H*: the coldest allowed distribution is still too uncertain.
    BelowBand,
    /// H(T_max) < H*: the hottest allowed distribution is still too certain.
    AboveBand,
    /// The bracket shrank to rounding before the tolerance was met.
    RoundingLimited,
}

/// The temperature that a solve found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solution {
    pub u: f64,
    pub status: SolveStatus,
}

/// Newton in u, safeguarded by a bracket. H increases with u (slope V), so each answer moves one end.
///
/// The caller asks its plant for H and V at [`Solver::ask`], and hands them to [`Solver::tell`], until that returns
/// a solution; many solvers can thus share each call to a plant.
#[derive(Clone, Debug, PartialEq)]
pub struct Solver {
    target_nats: f64,
    tol_nats: f64,
    lo: f64,
    hi: f64,
    lo_told: bool,
    hi_told: bool,
    band: Band,
    ask: f64,
    asked: u32,
}

/// Newton needs about 5 steps, bisection alone 53; past this the bracket is at rounding.
const MAX_ASKS: u32 = 128;

impl Solver {
    /// Where H and V are wanted next.
    pub fn ask(&self) -> f64 {
        self.ask
    }

    /// Takes H and V at [`Solver::ask`]; the last temperature told is the one of the solution.
    pub fn tell(&mut self, h_nats: f64, v: f64) -> Option<Solution> {
        let u = self.ask;
        let done = |status| Some(Solution { u, status });
        let error = h_nats - self.target_nats;
        if error.abs() <= self.tol_nats {
            return done(SolveStatus::Converged);
        }
        if error > 0.0 && u <= self.band.u_min {
            return done(SolveStatus::BelowBand);
        }
        if error < 0.0 && u >= self.band.u_max {
            return done(SolveStatus::AboveBand);
        }
        if error > 0.0 {
            (self.hi, self.hi_told) = (u, true);
        } else {
            (self.lo, self.lo_told) = (u, true);
        }
        self.asked += 1;
        let next = self.next_ask(u, error, v);
        if next == u || self.asked >= MAX_ASKS {
            return done(SolveStatus::RoundingLimited);
        }
        self.ask = next;
        None
    }

    fn next_ask(&self, u: f64, error: f64, v: f64) -> f64 {
        let newton = u - error / v;
        if newton.is_finite()
            && newton > self.lo
            && newton < self.hi
            && !self.asked.is_multiple_of(8)
        {
            return newton;
        }
        // A bound that was never asked must be asked itself, or "unreachable" could not be told.
        if error > 0.0 && !self.lo_told && newton <= self.lo {
            return self.lo;
        }
        if error < 0.0 && !self.hi_told && newton >= self.hi {
            return self.hi;
        }
        0.5 * (self.lo + self.hi)
    }
}

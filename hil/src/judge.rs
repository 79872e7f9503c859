//! Verdicts: equivalence within a stated tolerance, by interval, never by a point.
//!
//! With E = prediction − measurement and u_val² = u_num² + u_input² + u_D² (ASME V&V 20), a signal passes when the
//! 95 % one-sided bounds of E lie within ± its tolerance (two one-sided tests), fails when E lies outside by a test
//! at 5 % corrected over all signals (Holm), and is inconclusive otherwise, or when u_val exceeds its cap.

use crate::signal::{Estimate, Signal};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    Pass,
    Inconclusive,
    Fail,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Verdict::Pass => "PASS",
            Verdict::Inconclusive => "INCONCLUSIVE",
            Verdict::Fail => "FAIL",
        })
    }
}

impl Verdict {
    /// The verdict over several: one failure fails, one doubt leaves a doubt.
    pub fn overall(verdicts: impl IntoIterator<Item = Verdict>) -> Option<Verdict> {
        verdicts.into_iter().max_by_key(|v| match v {
            Verdict::Pass => 0,
            Verdict::Inconclusive => 1,
            Verdict::Fail => 2,
        })
    }
}

/// What one signal of the free level is compared on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    pub signal: Signal,
    pub predicted: Option<Estimate>,
    /// Standard uncertainty of the prediction from the finite recordings.
    pub u_input: f64,
    pub measured: Option<Estimate>,
    /// Largest |E| that still counts as agreement.
    pub tolerance: f64,
    /// Largest u_val at which a verdict other than FAIL may be given.
    pub u_cap: f64,
}

/// A judged signal of the free level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    pub signal: Signal,
    pub label: &'static str,
    pub predicted: Option<f64>,
    pub measured: Option<f64>,
    /// Prediction − measurement.
    pub error: Option<f64>,
    pub u_num: Option<f64>,
    pub u_input: Option<f64>,
    pub u_measured: Option<f64>,
    pub u_val: Option<f64>,
    pub tolerance: f64,
    pub verdict: Verdict,
    pub why: String,
}

/// Level of the tests.
const ALPHA: f64 = 0.05;
/// One-sided 95 % quantile of the standard normal.
pub const Z_95: f64 = 1.644_853_626_951_472_7;

fn normal_tail(z: f64) -> f64 {
    0.5 * statrs::function::erf::erfc(z / std::f64::consts::SQRT_2)
}

struct Measured {
    error: f64,
    u_val: f64,
    /// Chance of an excess over the tolerance this large if |E| were just the tolerance.
    p_fail: f64,
}

/// Judges all signals of one experiment together, since the correction is over all of them.
pub fn judge(comparisons: &[Comparison]) -> Vec<Judged> {
    let measured: Vec<Option<Measured>> = comparisons.iter().map(measure).collect();
    let failed = holm(
        &measured
            .iter()
            .map(|m| m.as_ref().map(|m| m.p_fail))
            .collect::<Vec<_>>(),
    );
    let judged = comparisons.iter().zip(&measured).zip(failed);
    judged
        .map(|((c, m), failed)| {
            let (verdict, why) = decide(c, m.as_ref(), failed);
            Judged {
                signal: c.signal,
                label: c.signal.label(),
                predicted: c.predicted.map(|e| e.value),
                measured: c.measured.map(|e| e.value),
                error: m.as_ref().map(|m| m.error),
                u_num: c.predicted.map(|e| e.u),
                u_input: c.predicted.map(|_| c.u_input),
                u_measured: c.measured.map(|e| e.u),
                u_val: m.as_ref().map(|m| m.u_val),
                tolerance: c.tolerance,
                verdict,
                why,
            }
        })
        .collect()
}

fn measure(c: &Comparison) -> Option<Measured> {
    let (predicted, measured) = (c.predicted?, c.measured?);
    let error = predicted.value - measured.value;
    let u_val = (predicted.u.powi(2) + c.u_input.powi(2) + measured.u.powi(2)).sqrt();
    let excess = error.abs() - c.tolerance;
    let p_fail = if u_val > 0.0 {
        normal_tail(excess / u_val)
    } else {
        f64::from(u8::from(excess <= 0.0))
    };
    Some(Measured {
        error,
        u_val,
        p_fail,
    })
}

/// Holm's step-down: which hypotheses are rejected at family-wise level [`ALPHA`].
fn holm(p: &[Option<f64>]) -> Vec<bool> {
    let mut order: Vec<(usize, f64)> = p
        .iter()
        .enumerate()
        .filter_map(|(i, p)| p.map(|p| (i, p)))
        .collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut rejected = vec![false; p.len()];
    for (rank, &(i, p)) in order.iter().enumerate() {
        if p > ALPHA / (order.len() - rank) as f64 {
            break;
        }
        rejected[i] = true;
    }
    rejected
}

fn decide(c: &Comparison, m: Option<&Measured>, failed: bool) -> (Verdict, String) {
    let Some(m) = m else {
        return undetermined(c);
    };
    if failed {
        return (
            Verdict::Fail,
            format!(
                "|E| = {:.4} exceeds the tolerance {:.4} beyond doubt",
                m.error.abs(),
                c.tolerance
            ),
        );
    }
    if m.u_val > c.u_cap {
        return (
            Verdict::Inconclusive,
            format!(
                "u_val = {:.4} is above {:.4}, most of it {}",
                m.u_val,
                c.u_cap,
                source(c)
            ),
        );
    }
    if m.error.abs() + Z_95 * m.u_val <= c.tolerance {
        let why = if m.error == 0.0 && m.u_val == 0.0 {
            "equal"
        } else if m.error.abs() <= m.u_val {
            "within tolerance; noise-limited"
        } else {
            "within tolerance"
        };
        return (Verdict::Pass, why.to_owned());
    }
    (
        Verdict::Inconclusive,
        format!(
            "the interval of E, {:.4} ± {:.4}, straddles the tolerance {:.4}",
            m.error,
            Z_95 * m.u_val,
            c.tolerance
        ),
    )
}

/// Where most of u_val comes from, and what lowers it.
fn source(c: &Comparison) -> String {
    let of = |estimate: Option<Estimate>| estimate.map_or(0.0, |e| e.u);
    let sources = [
        (
            of(c.measured),
            "from the measured runs",
            "more hil.runs, or more prompts: runs over one prompt are not independent",
        ),
        (
            c.u_input,
            "from the recordings",
            "more hil.record.runs, or more prompts",
        ),
        (of(c.predicted), "from the predicted runs", "more hil.runs"),
    ];
    let largest = sources.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    largest.map_or(String::new(), |(u, from, remedy)| {
        format!("{from} ({u:.4}): {remedy}")
    })
}

fn undetermined(c: &Comparison) -> (Verdict, String) {
    let why = match (c.predicted, c.measured) {
        (None, None) => "neither the prediction nor the measurement determines it",
        (None, Some(_)) => "measured, but the prediction does not determine it",
        (Some(_), _) => "predicted, but the measurement does not determine it",
    };
    (Verdict::Inconclusive, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(error: f64, u: f64) -> Comparison {
        Comparison {
            signal: Signal::MeanU,
            predicted: Some(Estimate {
                value: error,
                u: 0.0,
            }),
            u_input: 0.0,
            measured: Some(Estimate { value: 0.0, u }),
            tolerance: 0.1,
            u_cap: 0.05,
        }
    }

    fn verdict(error: f64, u: f64) -> Verdict {
        judge(&[comparison(error, u)])[0].verdict
    }

    #[test]
    fn small_errors_known_well_pass_and_large_ones_fail() {
        assert_eq!(verdict(0.02, 0.02), Verdict::Pass);
        assert_eq!(verdict(-0.3, 0.02), Verdict::Fail);
        assert_eq!(verdict(0.0, 0.0), Verdict::Pass);
        assert_eq!(verdict(0.11, 0.0), Verdict::Fail);
    }

    #[test]
    fn too_few_runs_cannot_pass() {
        assert_eq!(verdict(0.0, 0.06), Verdict::Inconclusive);
        assert_eq!(verdict(0.09, 0.02), Verdict::Inconclusive);
        assert_eq!(verdict(0.12, 0.02), Verdict::Inconclusive);
    }

    #[test]
    fn one_certain_failure_among_many_signals_still_fails() {
        let mut many = vec![comparison(0.0, 0.01); 8];
        many.push(comparison(0.2, 0.01));
        let verdicts = judge(&many).into_iter().map(|j| j.verdict);
        assert_eq!(Verdict::overall(verdicts), Some(Verdict::Fail));
    }

    #[test]
    fn a_perfect_prediction_at_the_edge_of_tolerance_fails_at_most_five_times_in_a_hundred() {
        // E sits exactly on the tolerance in all nine signals: the family-wise error is at its largest.
        let mut failures = 0;
        for trial in 0..1000u64 {
            let signals: Vec<_> = (0..9u64)
                .map(|i| {
                    let key = |token| etime_control::draw::DrawKey {
                        seed: 11,
                        request: trial,
                        token,
                    };
                    let a = etime_control::draw::uniform(key(2 * i)).max(1e-300);
                    let b = etime_control::draw::uniform(key(2 * i + 1));
                    let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
                    comparison(0.1 + 0.02 * normal, 0.02)
                })
                .collect();
            let verdicts = judge(&signals).into_iter().map(|j| j.verdict);
            failures += u32::from(Verdict::overall(verdicts) == Some(Verdict::Fail));
        }
        assert!((20..=80).contains(&failures), "{failures} of 1000");
    }
}

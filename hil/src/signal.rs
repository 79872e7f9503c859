//! Statistics of an ensemble that a prediction is judged by, and their uncertainty.

use etime_control::law::{Measure, TemperatureLaw};
use etime_control::trajectory::{Bound, Trajectory};
use serde::Serialize;

/// One sequence of a closed-loop run, reduced to what signals read.
#[derive(Clone, Debug, PartialEq)]
pub struct SequencePath {
    /// Sequences that share a prompt are not independent: uncertainty is taken over clusters.
    pub cluster: u64,
    /// Log-temperature before each draw, and after the last update: one more than `h_nats`.
    pub u: Vec<f64>,
    /// The entropy that the law listens to, nats.
    pub h_nats: Vec<f64>,
    pub surprisal_nats: Vec<f64>,
    pub at_bound: Vec<bool>,
}

impl SequencePath {
    /// The sequences of a run in order of submission; `clusters` has one entry per request.
    pub fn all(trajectory: &Trajectory, clusters: &[u64], measure: Measure) -> Vec<SequencePath> {
        let mut ids = trajectory.requests();
        ids.sort_unstable();
        let paths = ids.iter().zip(clusters).zip(&trajectory.u_end);
        paths
            .map(|((&id, &cluster), &u_end)| {
                let rows: Vec<_> = trajectory.of_request(id).collect();
                SequencePath {
                    cluster,
                    u: rows.iter().map(|s| s.u).chain([u_end]).collect(),
                    h_nats: rows
                        .iter()
                        .map(|s| match measure {
                            Measure::Tempered => s.h_nats,
                            Measure::Raw => s.h_raw_nats,
                        })
                        .collect(),
                    surprisal_nats: rows.iter().map(|s| s.surprisal_nats).collect(),
                    at_bound: rows.iter().map(|s| s.bound != Bound::Inside).collect(),
                }
            })
            .collect()
    }

    fn du(&self) -> impl Iterator<Item = f64> {
        self.u.windows(2).map(|w| w[1] - w[0])
    }

    /// Whether the update after token `t` ran free of the clip. What follows the last draw is not seen, so an update
    /// that starts on a bound there counts as clipped.
    fn is_free(&self, t: usize) -> bool {
        !self.at_bound.get(t + 1).unwrap_or(&self.at_bound[t])
    }
}

/// A statistic of an ensemble of sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Mean of u = ln T over sequences and tokens.
    MeanU,
    /// Standard deviation of u within a sequence, averaged.
    SdU,
    /// Share of draws with T on a clip bound.
    Saturation,
    /// Standard deviation of H within a sequence, averaged, nats.
    SdH,
    /// Lag-one autocorrelation of H within a sequence, averaged.
    AcfH,
    /// Mean surprisal −ln p of the drawn tokens at their temperature, nats.
    Surprisal,
    /// Tokens until the ensemble mean of u has closed three quarters of its way and stays there.
    Settling,
    /// Slope of Δu on H over unclipped steps, 1/nat: −η for the corrected law. Sign, gain and unit in one figure.
    Gain,
    /// Lag k ≥ 0 of the largest |corr(Δu_t, H_{t−k})|, tokens: the delay of the loop.
    Lag,
    /// Mean H, nats. An integral law nulls its error by algebra, so it checks code and judges nothing.
    MeanH,
}

impl Signal {
    pub const JUDGED: [Signal; 9] = [
        Signal::MeanU,
        Signal::SdU,
        Signal::Saturation,
        Signal::SdH,
        Signal::AcfH,
        Signal::Surprisal,
        Signal::Settling,
        Signal::Gain,
        Signal::Lag,
    ];

    /// Whether the signal says anything about `law`: only a law that integrates has a gain, a lag and a settling.
    pub fn applies_to(self, law: &TemperatureLaw) -> bool {
        match self {
            Signal::Gain | Signal::Lag | Signal::Settling => law.gain_per_nat(1.0).is_some(),
            _ => true,
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Signal::MeanU => "mean of u = ln T",
            Signal::SdU => "sd of u",
            Signal::Saturation => "share of draws on a bound",
            Signal::SdH => "sd of H (nats)",
            Signal::AcfH => "autocorrelation of H, lag 1",
            Signal::Surprisal => "mean surprisal (nats)",
            Signal::Settling => "settling (tokens)",
            Signal::Gain => "slope of Δu on H (1/nat)",
            Signal::Lag => "lag of Δu behind H (tokens)",
            Signal::MeanH => "mean of H (nats)",
        }
    }

    /// The value over `paths`; `None` where they do not determine it.
    pub fn value(self, paths: &[&SequencePath]) -> Option<f64> {
        match self {
            Signal::MeanU => mean(paths.iter().flat_map(|p| draws_u(p).iter().copied())),
            Signal::SdU => mean(paths.iter().filter_map(|p| sd(draws_u(p)))),
            Signal::Saturation => {
                mean(paths.iter().flat_map(|p| p.at_bound.iter().map(|&b| f64::from(u8::from(b)))))
            }
            Signal::SdH => mean(paths.iter().filter_map(|p| sd(&p.h_nats))),
            Signal::AcfH => mean(paths.iter().filter_map(|p| acf_1(&p.h_nats))),
            Signal::Surprisal => {
                mean(paths.iter().flat_map(|p| p.surprisal_nats.iter().copied()))
            }
            Signal::Settling => settling(paths),
            Signal::Gain => regression(&pairs(paths, 0)).map(|fit| fit.slope),
            Signal::Lag => lag(paths),
            Signal::MeanH => mean(paths.iter().flat_map(|p| p.h_nats.iter().copied())),
        }
    }
}

fn draws_u(path: &SequencePath) -> &[f64] {
    &path.u[..path.h_nats.len()]
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), x| (sum + x, count + 1));
    (count > 0).then(|| sum / count as f64)
}

fn sd(values: &[f64]) -> Option<f64> {
    let centre = mean(values.iter().copied())?;
    let squares: f64 = values.iter().map(|x| (x - centre) * (x - centre)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Lag-one autocorrelation; `None` for a constant signal.
fn acf_1(values: &[f64]) -> Option<f64> {
    let centre = mean(values.iter().copied())?;
    let dev = |x: &f64| x - centre;
    let power: f64 = values.iter().map(|x| dev(x) * dev(x)).sum();
    let cross: f64 = values.windows(2).map(|w| dev(&w[0]) * dev(&w[1])).sum();
    // Rounding alone leaves about 1e-16 of the level; below that there is no signal to correlate.
    (power > 1e-20 * (1.0 + centre * centre) * values.len() as f64).then(|| cross / power)
}

/// Pairs (H_{t−lag}, Δu_t) over unclipped steps.
fn pairs(paths: &[&SequencePath], lag: usize) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    for path in paths {
        for (t, du) in path.du().enumerate().skip(lag) {
            if path.is_free(t) {
                out.push((path.h_nats[t - lag], du));
            }
        }
    }
    out
}

struct Fit {
    slope: f64,
    correlation: f64,
}

/// Fewest pairs that say anything about a slope.
const MIN_PAIRS: usize = 16;

/// Least squares of y on x; `None` for too few pairs or a constant side.
fn regression(pairs: &[(f64, f64)]) -> Option<Fit> {
    if pairs.len() < MIN_PAIRS {
        return None;
    }
    let mx = mean(pairs.iter().map(|p| p.0))?;
    let my = mean(pairs.iter().map(|p| p.1))?;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for &(x, y) in pairs {
        xx += (x - mx) * (x - mx);
        xy += (x - mx) * (y - my);
        yy += (y - my) * (y - my);
    }
    let floor = 1e-20 * pairs.len() as f64;
    (xx > floor && yy > floor).then(|| Fit {
        slope: xy / xx,
        correlation: xy / (xx * yy).sqrt(),
    })
}

/// Longest lag looked at, tokens.
const MAX_LAG_TOK: usize = 8;

fn lag(paths: &[&SequencePath]) -> Option<f64> {
    let mut best: Option<(f64, usize)> = None;
    for k in 0..=MAX_LAG_TOK {
        let strength = regression(&pairs(paths, k))?.correlation.abs();
        if best.is_none_or(|(top, _)| strength > top) {
            best = Some((strength, k));
        }
    }
    best.map(|(_, k)| k as f64)
}

/// Share of the way from u_0 to its final level that counts as settled.
const SETTLED_SHARE: f64 = 0.75;
/// Smallest way, in u, whose settling can be told from noise.
const MIN_WAY_U: f64 = 0.1;

/// Settling of the ensemble mean of u; its final level is the mean over the last half.
fn settling(paths: &[&SequencePath]) -> Option<f64> {
    let len = paths.iter().map(|p| p.h_nats.len()).min()?;
    if len < 8 {
        return None;
    }
    let path: Vec<f64> = (0..len)
        .map(|t| paths.iter().map(|p| p.u[t]).sum::<f64>() / paths.len() as f64)
        .collect();
    let level = mean(path[len / 2..].iter().copied())?;
    let way = level - path[0];
    if way.abs() < MIN_WAY_U {
        return None;
    }
    let band = (1.0 - SETTLED_SHARE) * way.abs();
    let last_outside = path.iter().rposition(|u| (u - level).abs() > band)?;
    Some((last_outside + 1) as f64)
}

/// A value with its standard uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub value: f64,
    /// Standard uncertainty (one sigma).
    pub u: f64,
}

/// Resamples per bootstrap: 2.5 % standard error of a standard error.
const RESAMPLES: u64 = 400;

/// The signal over all paths, with the standard error of a bootstrap over clusters. Deterministic in `seed`.
pub fn estimate(signal: Signal, paths: &[SequencePath], seed: u64) -> Option<Estimate> {
    let all: Vec<&SequencePath> = paths.iter().collect();
    let value = signal.value(&all)?;
    let mut clusters: std::collections::BTreeMap<u64, Vec<&SequencePath>> = Default::default();
    for path in paths {
        clusters.entry(path.cluster).or_default().push(path);
    }
    let clusters: Vec<_> = clusters.into_values().collect();
    let draws: Vec<f64> = (0..RESAMPLES)
        .filter_map(|resample| {
            let chosen: Vec<&SequencePath> = (0..clusters.len() as u64)
                .flat_map(|slot| {
                    let key = etime_control::draw::DrawKey {
                        seed,
                        request: resample,
                        token: slot,
                    };
                    let at = etime_control::draw::uniform(key) * clusters.len() as f64;
                    clusters[(at as usize).min(clusters.len() - 1)].iter().copied()
                })
                .collect();
            signal.value(&chosen)
        })
        .collect();
    // A signal that most resamples cannot determine is not determined.
    if (draws.len() as u64) < RESAMPLES / 2 {
        return None;
    }
    Some(Estimate {
        value,
        u: sd(&draws)?,
    })
}

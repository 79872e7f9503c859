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
    /// Time constant of the ensemble mean of u on its way from T_start, tokens.
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

    /// Whether the signal says anything about `law`: a fixed temperature has a known u, and only a law that integrates
    /// has a gain, a lag and a time constant.
    pub fn applies_to(self, law: &TemperatureLaw) -> bool {
        match self {
            Signal::Gain | Signal::Lag | Signal::Settling => law.gain_per_nat(1.0).is_some(),
            Signal::MeanU | Signal::SdU | Signal::Saturation => law.band().is_some(),
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
            Signal::Settling => "time constant (tokens)",
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
            Signal::Saturation => mean(
                paths
                    .iter()
                    .flat_map(|p| p.at_bound.iter().map(|&b| f64::from(u8::from(b)))),
            ),
            Signal::SdH => mean(paths.iter().filter_map(|p| sd(&p.h_nats))),
            Signal::AcfH => mean(paths.iter().filter_map(|p| acf_1(&p.h_nats))),
            Signal::Surprisal => mean(paths.iter().flat_map(|p| p.surprisal_nats.iter().copied())),
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

/// Smallest way, in u, whose settling can be told from noise.
const MIN_WAY_U: f64 = 0.3;
/// Least share of the swept area that lies on one side of the level.
const MIN_ONE_SIDED: f64 = 0.5;

/// Settling of the ensemble mean of u from its start to its mean over the last half: the area between path and final
/// level over the first half, divided by the way. For u_t = u_∞ + (u_0 − u_∞) e^(−t/k) it is k to within a token.
fn settling(paths: &[&SequencePath]) -> Option<f64> {
    let len = paths.iter().map(|p| p.h_nats.len()).min()?;
    if len < 8 {
        return None;
    }
    let path: Vec<f64> = (0..len)
        .map(|t| paths.iter().map(|p| p.u[t]).sum::<f64>() / paths.len() as f64)
        .collect();
    let (early, late) = path.split_at(len / 2);
    let level = mean(late.iter().copied())?;
    let way = path[0] - level;
    let area: f64 = early.iter().map(|u| u - level).sum();
    let swept: f64 = early.iter().map(|u| (u - level).abs()).sum();
    // A path that rings or runs away crosses its level: its signed area says nothing.
    let one_sided = area * way > 0.0 && area.abs() >= MIN_ONE_SIDED * swept;
    (way.abs() >= MIN_WAY_U && one_sided).then(|| area / way)
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
                    clusters[(at as usize).min(clusters.len() - 1)]
                        .iter()
                        .copied()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The corrected law with gain `eta` on entropies that answer u at once, H = 2 + u + noise, started at `u_0`.
    fn path(cluster: u64, eta: f64, u_0: f64) -> SequencePath {
        let noise = |t: u64| {
            let key = etime_control::draw::DrawKey {
                seed: 5,
                request: cluster,
                token: t,
            };
            etime_control::draw::uniform(key) - 0.5
        };
        let (mut u, mut h_nats) = (vec![u_0], Vec::new());
        for t in 0..200 {
            let h = 2.0 + u[t] + noise(t as u64);
            h_nats.push(h);
            u.push(u[t] - eta * (h - 2.0));
        }
        SequencePath {
            cluster,
            u,
            surprisal_nats: h_nats.clone(),
            at_bound: vec![false; 200],
            h_nats,
        }
    }

    fn ensemble(eta: f64, u_0: f64) -> Vec<SequencePath> {
        (0..32).map(|cluster| path(cluster, eta, u_0)).collect()
    }

    fn value(signal: Signal, paths: &[SequencePath]) -> Option<f64> {
        signal.value(&paths.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_gain_is_minus_eta_and_the_lag_zero_for_the_law_itself() {
        let paths = ensemble(0.1, 1.0);
        assert!((value(Signal::Gain, &paths).unwrap() + 0.1).abs() < 1e-12);
        assert_eq!(value(Signal::Lag, &paths), Some(0.0));
    }

    #[test]
    fn a_token_of_delay_moves_the_lag_to_one() {
        let mut paths = ensemble(0.1, 1.0);
        for path in &mut paths {
            path.u.insert(0, 1.0);
            path.u.pop();
        }
        assert_eq!(value(Signal::Lag, &paths), Some(1.0));
    }

    #[test]
    fn settling_is_the_time_constant_and_a_short_way_has_none() {
        // u' − u_∞ = (1 − η)(u − u_∞): the geometric sum is 1/η.
        let settling = value(Signal::Settling, &ensemble(0.1, 1.0)).unwrap();
        assert!((settling - 10.0).abs() < 1.5, "{settling}");
        assert_eq!(value(Signal::Settling, &ensemble(0.1, 0.1)), None);
    }

    #[test]
    fn clipped_steps_do_not_enter_the_gain() {
        let mut paths = ensemble(0.1, 1.0);
        for path in &mut paths {
            path.u[101] = 5.0;
            path.at_bound[101] = true;
            path.u[102] = 5.0;
            path.at_bound[102] = true;
            path.u[103] = 5.0 - 0.1 * (path.h_nats[102] - 2.0);
            path.h_nats[103] = 2.0 + (path.u[103] - path.u[104]) / 0.1;
        }
        assert!((value(Signal::Gain, &paths).unwrap() + 0.1).abs() < 1e-9);
    }

    #[test]
    fn the_bootstrap_error_of_a_mean_is_its_standard_error_over_clusters() {
        let paths = ensemble(0.1, 0.0);
        let estimate = estimate(Signal::MeanH, &paths, 3).unwrap();
        let means: Vec<f64> = paths
            .iter()
            .map(|p| mean(p.h_nats.iter().copied()).unwrap())
            .collect();
        let expected = sd(&means).unwrap() / (means.len() as f64).sqrt();
        assert!(
            (estimate.u / expected - 1.0).abs() < 0.2,
            "{} {expected}",
            estimate.u
        );
    }
}

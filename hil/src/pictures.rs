//! Which figures an experiment leaves, and what is drawn in them.

use crate::experiment::{Experiment, Outcome};
use crate::figures::{
    self, Bounds, Clock, Distribution, Drawn, Entropy, Figure, FigureError, LoopGain, Mark,
    SignalRow, Temperature, Verdicts,
};
use crate::judge::{Judged, Verdict, Z_95};
use crate::rundir::{RunDir, RunDirError};
use etime_control::clock::surrogate_tau;
use etime_control::config::Sensor;
use etime_control::law::{Fault, TemperatureLaw};
use etime_control::trajectory::{Sample, Trajectory};

#[derive(Debug, thiserror::Error)]
#[error("a figure cannot be drawn: {0}")]
pub struct PictureError(#[from] FigureError);

/// Figures on the sheet that shows a run at a glance.
const AT_A_GLANCE: usize = 4;

/// Draws every figure, and the first plots on one sheet called `panel`.
pub fn draw(
    figures: &[(&'static str, Figure)],
) -> Result<Vec<(&'static str, Drawn)>, PictureError> {
    let mut drawn = Vec::with_capacity(figures.len() + 1);
    for (name, figure) in figures {
        drawn.push((*name, figures::draw(figure)?));
    }
    // A table of verdicts needs more width than a cell has.
    let plots = figures.iter().map(|(_, figure)| figure);
    let plots = plots.filter(|figure| !matches!(figure, Figure::Verdicts(_)));
    let first: Vec<Figure> = plots.take(AT_A_GLANCE).cloned().collect();
    if !first.is_empty() {
        drawn.push(("panel", figures::panel(&first)?));
    }
    Ok(drawn)
}

/// Writes each picture as SVG and PNG below `figures/`.
pub fn write(dir: &RunDir, pictures: &[(&'static str, Drawn)]) -> Result<(), RunDirError> {
    for (name, drawn) in pictures {
        dir.write_text(&format!("figures/{name}.svg"), &drawn.svg)?;
        dir.write(&format!("figures/{name}.png"), |out| {
            Ok(out.write_all(&drawn.png)?)
        })?;
    }
    Ok(())
}

/// Both sides of the comparison that is drawn: the free ensembles, else the replayed run, else the forced one.
struct Sides<'a> {
    predicted: Vec<&'a Trajectory>,
    measured: Vec<&'a Trajectory>,
    what: &'static str,
}

fn sides(outcome: &Outcome) -> Option<Sides<'_>> {
    if let Some(free) = &outcome.free {
        return Some(Sides {
            predicted: free.prediction.runs.iter().collect(),
            measured: free.measured.iter().collect(),
            what: "free",
        });
    }
    let exact = outcome.replay.as_ref().map(|x| (x, "replay"));
    let exact = exact.or(outcome.forced.as_ref().map(|x| (x, "forced")));
    exact.map(|(x, what)| Sides {
        predicted: vec![&x.predicted],
        measured: vec![&x.measured],
        what,
    })
}

/// One line per sequence.
pub(crate) fn paths(runs: &[&Trajectory], read: fn(&Sample) -> f64) -> Vec<Vec<f64>> {
    let one = |run: &&Trajectory| {
        let mut of: std::collections::BTreeMap<u64, Vec<f64>> = Default::default();
        for sample in &run.samples {
            of.entry(sample.request).or_default().push(read(sample));
        }
        of.into_values().collect::<Vec<_>>()
    };
    runs.iter().flat_map(one).collect()
}

/// Mean over sequences, token by token, as far as the shortest goes.
pub(crate) fn mean_path(paths: &[Vec<f64>]) -> Vec<f64> {
    let len = paths.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |t: usize| paths.iter().map(|p| p[t]).sum::<f64>() / paths.len() as f64;
    (0..len).map(mean).collect()
}

/// Shuffles of the surrogate: its mean is then good to a few parts in a hundred of its spread.
const SHUFFLES: usize = 32;
/// Points of the surrogate's curve.
const SURROGATE_POINTS: usize = 16;

/// τ of shuffled entropies, at growing lengths, drawn as a curve over all tokens.
pub(crate) fn surrogate_path(entropies: &[Vec<f64>], seed: u64) -> Vec<f64> {
    let len = entropies.iter().map(Vec::len).min().unwrap_or(0);
    let at = |len: usize| {
        let of = |h: &Vec<f64>| surrogate_tau(&h[..len], seed, SHUFFLES);
        entropies.iter().map(of).sum::<f64>() / entropies.len() as f64
    };
    let stride = len.div_ceil(SURROGATE_POINTS).max(1);
    let mut path = Vec::with_capacity(len);
    let mut from = at(1.min(len));
    for start in (0..len).step_by(stride) {
        let end = (start + stride).min(len);
        let to = at(end);
        for t in start..end {
            path.push(from + (to - from) * (t + 1 - start) as f64 / (end - start) as f64);
        }
        from = to;
    }
    path
}

/// What a title says of a negative control.
fn wrong(fault: Fault) -> &'static str {
    match fault {
        Fault::WrongSign => ", predicted with the wrong sign",
        Fault::DoubleEta => ", predicted with twice the gain",
        Fault::ExtraDelay => ", predicted one token late",
        Fault::BitsMeasured => ", predicted with H in bits",
        Fault::BitsGain => ", predicted with the gain in bits",
    }
}

/// The signed loop gain as the law defines it, for the label of its axis.
pub(crate) fn gain_formula(law: &TemperatureLaw) -> &'static str {
    match law {
        TemperatureLaw::Published(_) => "−ηV",
        TemperatureLaw::Corrected(_) => "ηV",
        TemperatureLaw::Normalised(_) => "κV/max(V, V_floor)",
        _ => "",
    }
}

/// File stems and figures, in the order of a reader's questions.
pub fn of(experiment: &Experiment, outcome: &Outcome) -> Vec<(&'static str, Figure)> {
    let Some(sides) = sides(outcome) else {
        return Vec::new();
    };
    let law = &experiment.control.temperature;
    let band = law.band();
    let fault = experiment.fault.map_or("", wrong);
    let title = |quantity: &str| {
        format!(
            "{quantity}, {} law{fault}, {} level",
            law.name(),
            sides.what
        )
    };
    let both =
        |read: fn(&Sample) -> f64| (paths(&sides.measured, read), paths(&sides.predicted, read));
    let mut out = Vec::new();

    let (measured, predicted) = both(|s| s.u.exp());
    let temperature = Temperature {
        title: title("Temperature"),
        measured,
        predicted,
        t_min: band.map(|b| b.u_min.exp()),
        t_max: band.map(|b| b.u_max.exp()),
    };
    out.push(("temperature", Figure::Temperature(temperature)));

    let (measured, predicted) = both(|s| s.h_nats);
    let measured_h = measured.clone();
    let entropy = Entropy {
        title: title("Entropy"),
        measured,
        predicted,
        target_nats: law.target_nats(),
        bounds: bounds(experiment, &sides),
    };
    out.push(("entropy", Figure::Entropy(entropy)));

    if law.gain_per_nat(1.0).is_some() {
        let (measured, predicted) = both(|s| s.loop_gain);
        let gain = LoopGain {
            title: title("Loop gain"),
            formula: gain_formula(law).to_owned(),
            measured,
            predicted,
        };
        out.push(("loop_gain", Figure::LoopGain(gain)));
    }

    let first_h: Vec<f64> = measured_h
        .iter()
        .filter_map(|h| h.first().copied())
        .collect();
    let h_0 = first_h.iter().sum::<f64>() / first_h.len().max(1) as f64;
    let net_drop_nats = mean_path(&measured_h).iter().map(|h| h_0 - h).collect();
    let (tau, tau_predicted) = both(|s| s.tau_nats);
    let clock = Clock {
        title: title("Entropic clock τ"),
        tau_nats: mean_path(&tau),
        tau_raw_nats: mean_path(&paths(&sides.measured, |s| s.tau_raw_nats)),
        surrogate_nats: surrogate_path(&measured_h, experiment.seed),
        net_drop_nats,
        predicted_nats: mean_path(&tau_predicted),
    };
    out.push(("clock", Figure::Clock(clock)));

    if let Some(free) = &outcome.free {
        let verdicts = Verdicts {
            title: title("Prediction against measurement"),
            rows: free.free.signals.iter().map(row).collect(),
        };
        out.push(("verdicts", Figure::Verdicts(verdicts)));
        let flat = |runs: &[&Trajectory]| paths(runs, |s| s.h_nats).concat();
        let distribution = Distribution {
            title: title("Distribution of entropy"),
            quantity: "entropy H, nats".to_owned(),
            measured: flat(&sides.measured),
            predicted: flat(&sides.predicted),
        };
        out.push(("entropy_distribution", Figure::Distribution(distribution)));
    }
    out
}

/// The estimator's bracket around the first measured sequence, where the sensor has one.
fn bounds(experiment: &Experiment, sides: &Sides) -> Option<Bounds> {
    let first = |read| paths(&sides.measured, read).into_iter().next();
    match experiment.control.sensor {
        Sensor::Exact => None,
        Sensor::TopK { .. } => Some(Bounds {
            lower_nats: first(|s| s.h_lower_nats)?,
            upper_nats: first(|s| s.h_upper_nats)?,
        }),
    }
}

fn row(judged: &Judged) -> SignalRow {
    SignalRow {
        label: judged.label.to_owned(),
        unit: String::new(),
        error: judged.error.zip(judged.u_val.map(|u| Z_95 * u)),
        tolerance: judged.tolerance,
        mark: match judged.verdict {
            Verdict::Pass => Mark::Pass,
            Verdict::Inconclusive => Mark::Inconclusive,
            Verdict::Fail => Mark::Fail,
        },
    }
}

//! What an experiment found, as JSON for machines and as a table for people.

use crate::experiment::{Experiment, Outcome, Reachability};
use crate::judge::{Judged, Verdict, Z_95};
use crate::level::columns::ColumnVerdict;
use crate::level::exact::Exact;
use crate::level::free::Free;
use crate::scenario::Level;
use crate::signal::Signal;
use etime_control::law::Fault;
use etime_control::trajectory::{Bound, Trajectory};
use serde::Serialize;
use std::fmt::Write;

/// `summary.json` of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub scenario: String,
    pub law: &'static str,
    pub target_nats: Option<f64>,
    pub fault: Option<Fault>,
    pub verdict: Option<Verdict>,
    pub replay: Option<ExactSummary>,
    pub forced: Option<ExactSummary>,
    pub free: Option<FreeSummary>,
    pub reachability: Option<Reachability>,
    /// Statistics of the measured closed loop.
    pub measured: Option<LoopSummary>,
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ExactSummary {
    pub verdict: Verdict,
    pub columns: Vec<ColumnVerdict>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FreeSummary {
    pub verdict: Verdict,
    pub signals: Vec<Judged>,
    pub undetermined: Vec<Signal>,
    /// Predicted and measured mean H: an integral law nulls its error by algebra, so it judges nothing.
    pub mean_h_predicted_nats: Option<f64>,
    pub mean_h_measured_nats: Option<f64>,
}

/// Statistics of a closed loop over all its rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopSummary {
    pub rows: usize,
    pub mean_t: f64,
    pub mean_h_nats: f64,
    pub sd_h_nats: f64,
    pub at_t_min_share: f64,
    pub at_t_max_share: f64,
    pub mean_loop_gain: f64,
    pub min_loop_gain: f64,
    pub max_loop_gain: f64,
    /// Mean over requests of τ at the end of the text, tempered and at T = 1.
    pub tau_nats: f64,
    pub tau_raw_nats: f64,
}

impl LoopSummary {
    /// `None` for a run without rows.
    pub fn of(runs: &[&Trajectory]) -> Option<Self> {
        let samples: Vec<_> = runs.iter().flat_map(|run| &run.samples).collect();
        let n = samples.len() as f64;
        let mean = |read: &dyn Fn(usize) -> f64| (0..samples.len()).map(read).sum::<f64>() / n;
        let mean_h_nats = mean(&|i| samples[i].h_nats);
        let square = mean(&|i| (samples[i].h_nats - mean_h_nats).powi(2));
        let share = |bound| mean(&|i| f64::from(u8::from(samples[i].bound == bound)));
        let ends: Vec<_> = runs
            .iter()
            .flat_map(|run| run.requests().into_iter().map(move |id| (run, id)))
            .filter_map(|(run, id)| run.of_request(id).last())
            .collect();
        let requests = ends.len() as f64;
        (!samples.is_empty()).then(|| LoopSummary {
            rows: samples.len(),
            mean_t: mean(&|i| samples[i].u.exp()),
            mean_h_nats,
            sd_h_nats: square.sqrt(),
            at_t_min_share: share(Bound::AtMin),
            at_t_max_share: share(Bound::AtMax),
            mean_loop_gain: mean(&|i| samples[i].loop_gain),
            min_loop_gain: samples.iter().map(|s| s.loop_gain).fold(f64::MAX, f64::min),
            max_loop_gain: samples.iter().map(|s| s.loop_gain).fold(f64::MIN, f64::max),
            tau_nats: ends.iter().map(|s| s.tau_nats).sum::<f64>() / requests,
            tau_raw_nats: ends.iter().map(|s| s.tau_raw_nats).sum::<f64>() / requests,
        })
    }
}

impl LoopSummary {
    /// One line: temperature, entropy and its distance from the setpoint, bounds, loop gain where there is one.
    pub fn to_text(&self, target_nats: Option<f64>) -> String {
        let mut text = format!(
            "mean T {:.3}, H {:.3} ± {:.3} nats",
            self.mean_t, self.mean_h_nats, self.sd_h_nats
        );
        if let Some(target_nats) = target_nats {
            let off_nats = self.mean_h_nats - target_nats;
            text += &format!(
                ", H − H* {off_nats:+.3} on average and {:.3} rms",
                off_nats.hypot(self.sd_h_nats)
            );
        }
        text += &format!(
            ", on T_min {:.1} %, on T_max {:.1} %",
            100.0 * self.at_t_min_share,
            100.0 * self.at_t_max_share
        );
        if self.min_loop_gain != 0.0 || self.max_loop_gain != 0.0 {
            text += &format!(
                ", loop gain {:.3} to {:.3}, mean {:.3}",
                self.min_loop_gain, self.max_loop_gain, self.mean_loop_gain
            );
        }
        text
    }
}

/// Share of unreachable rows from which on a reader should know that the loop saturates.
const SATURATES_SHARE: f64 = 0.5;

/// Share of draws outside the recorded temperatures from which on a prediction is an extrapolation.
const EXTRAPOLATES_SHARE: f64 = 0.1;

/// Warnings that an outcome calls for.
pub fn warnings(outcome: &Outcome, experiment: &Experiment) -> Vec<String> {
    let target_nats = experiment.control.temperature.target_nats();
    let saturates = outcome.reachability.zip(target_nats);
    let saturates = saturates.and_then(|(reach, target)| saturation_warning(&reach, target));
    let extrapolates = outcome.free.as_ref();
    let extrapolates = extrapolates
        .and_then(|free| extrapolation_warning(&free.measured, &experiment.temperatures));
    saturates.into_iter().chain(extrapolates).collect()
}

fn saturation_warning(reach: &Reachability, target_nats: f64) -> Option<String> {
    let out_of_reach = 1.0 - reach.reachable_share;
    (out_of_reach >= SATURATES_SHARE).then(|| {
        format!(
            "saturates: H* = {target_nats} nats is out of reach on {:.0} % of {} observed rows ({:.0} % too uncertain at T_min, {:.0} % too certain at T_max)",
            100.0 * out_of_reach,
            reach.rows,
            100.0 * reach.too_uncertain_share,
            100.0 * reach.too_certain_share,
        )
    })
}

/// A plant made of recordings knows the texts of the temperatures that it was recorded at, and no others.
fn extrapolation_warning(measured: &[Trajectory], temperatures: &[f64]) -> Option<String> {
    let lo = temperatures.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = temperatures.iter().copied().fold(0.0, f64::max);
    let draws: Vec<f64> = measured
        .iter()
        .flat_map(|run| &run.samples)
        .map(|s| s.u.exp())
        .collect();
    let outside = draws.iter().filter(|&&t| t < lo || t > hi).count();
    let share = outside as f64 / draws.len().max(1) as f64;
    (share > EXTRAPOLATES_SHARE).then(|| {
        format!(
            "extrapolates: {:.0} % of the measured draws lie outside the recorded temperatures {lo} to {hi}: add to hil.record.temperatures",
            100.0 * share
        )
    })
}

impl ExactSummary {
    pub fn of(exact: &Exact) -> Self {
        ExactSummary {
            verdict: exact.verdict(),
            columns: exact.columns.clone(),
        }
    }
}

impl FreeSummary {
    pub fn of(free: &Free) -> Self {
        let [predicted, measured] = free.mean_h.map(|estimate| estimate.map(|e| e.value));
        FreeSummary {
            verdict: free.verdict(),
            signals: free.signals.clone(),
            undetermined: free.undetermined.clone(),
            mean_h_predicted_nats: predicted,
            mean_h_measured_nats: measured,
        }
    }
}

impl Summary {
    /// The verdicts as text, most important first.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_text(&mut out);
        out
    }

    fn write_text(&self, out: &mut String) -> std::fmt::Result {
        let target = self
            .target_nats
            .map_or(String::new(), |h| format!(", H* = {h} nats"));
        writeln!(out, "{}: {}{target}", self.scenario, self.law)?;
        if let Some(fault) = self.fault {
            writeln!(
                out,
                "negative control: {fault} in the prediction alone; it has to FAIL"
            )?;
        }
        for (level, exact) in [(Level::Replay, &self.replay), (Level::Forced, &self.forced)] {
            if let Some(exact) = exact {
                write_exact(out, level, exact)?;
            }
        }
        if let Some(free) = &self.free {
            write_free(out, free)?;
        }
        if let Some(m) = &self.measured {
            writeln!(out, "\nmeasured loop: {}", m.to_text(self.target_nats))?;
        }
        if let Some(reach) = self.reachability {
            writeln!(
                out,
                "H* is within reach on {:.1} % of {} recorded rows",
                100.0 * reach.reachable_share,
                reach.rows
            )?;
        }
        for warning in &self.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        if let Some(verdict) = self.verdict {
            writeln!(out, "\n{verdict}{}", meaning(verdict, self.fault))?;
        }
        Ok(())
    }
}

fn meaning(verdict: Verdict, fault: Option<Fault>) -> &'static str {
    match (verdict, fault) {
        (Verdict::Pass, None) => ": measured as predicted",
        (Verdict::Inconclusive, None) => {
            ": too uncertain to tell; the reasons stand beside the signals"
        }
        (Verdict::Fail, None) => ": the measurement contradicts the prediction",
        (Verdict::Fail, Some(_)) => ", as a negative control has to",
        (_, Some(_)) => ", where a negative control has to FAIL",
    }
}

fn write_exact(out: &mut String, level: Level, exact: &ExactSummary) -> std::fmt::Result {
    let rows = exact.columns.first().map_or(0, |c| c.rows);
    let columns = exact.columns.len();
    writeln!(out, "\n{:<7} {}", level.name(), exact.verdict)?;
    let mut failed: Vec<_> = exact
        .columns
        .iter()
        .filter(|c| c.verdict != Verdict::Pass)
        .collect();
    // What differs first is the likeliest cause of the rest.
    failed.sort_by_key(|c| c.first.as_ref().map_or(u64::MAX, |first| first.index_tok));
    if failed.is_empty() {
        return writeln!(out, "  {columns} columns × {rows} rows equal in every bit");
    }
    for c in failed {
        write!(
            out,
            "  {:<20} differs in {} of {} rows",
            c.column, c.rows_that_differ, c.rows
        )?;
        if let Some(first) = &c.first {
            write!(
                out,
                ", first in request {} token {}: predicted {}, measured {}",
                first.request,
                first.index_tok,
                number(first.predicted),
                number(first.measured)
            )?;
            // The distance between two token ids means nothing.
            if c.column != "token" {
                write!(out, "; at most {} apart", number(c.max_error))?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Whole numbers without decimals, others with six.
fn number(x: f64) -> String {
    match x.fract() == 0.0 && x.abs() < 1e15 {
        true => format!("{x:.0}"),
        false => format!("{x:.6}"),
    }
}

fn write_free(out: &mut String, free: &FreeSummary) -> std::fmt::Result {
    writeln!(out, "\n{:<7} {}", Level::Free.name(), free.verdict)?;
    writeln!(
        out,
        "  {:<28} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "signal", "predicted", "measured", "E", "± (90 %)", "tolerance"
    )?;
    let cell = |x: Option<f64>| x.map_or("–".to_owned(), |x| format!("{x:.4}"));
    for s in &free.signals {
        writeln!(
            out,
            "  {:<28} {:>10} {:>10} {:>10} {:>9} {:>9.4}  {:<12}  {}",
            s.label,
            cell(s.predicted),
            cell(s.measured),
            cell(s.error),
            cell(s.u_val.map(|u| Z_95 * u)),
            s.tolerance,
            s.verdict,
            s.why
        )?;
    }
    writeln!(
        out,
        "  {:<28} {:>10} {:>10}   checks code, judges nothing",
        Signal::MeanH.label(),
        cell(free.mean_h_predicted_nats),
        cell(free.mean_h_measured_nats)
    )?;
    for signal in &free.undetermined {
        writeln!(
            out,
            "  {:<28} not determined by either side{}",
            signal.label(),
            match signal {
                Signal::Settling => ": ln T moves too little, or swings",
                _ => "",
            }
        )?;
    }
    Ok(())
}

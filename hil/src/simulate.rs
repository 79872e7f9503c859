//! An ensemble on a simulated plant, and its run directory.

use crate::figures::{Clock, Entropy, Figure, LoopGain, Temperature};
use crate::pictures::{self, PictureError, gain_formula, mean_path, paths, surrogate_path};
use crate::prompts::read_prompts_text;
use crate::rundir::{
    About, Destination, Phase, Place, RunDir, RunDirError, Side, Tag, Tagged, write_requests,
    write_steps, write_trajectory,
};
use crate::scenario::{Loaded, Sim};
use crate::seed::derive;
use crate::summary::LoopSummary;
use crate::workload::{self, Requests, WorkloadError};
use etime_control::config::{Control, Limits};
use etime_control::driver::{self, Job, RunError};
use etime_control::trajectory::Trajectory;
use etime_sim::{SimError, ensemble};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    #[error("{}: the scenario has no `sim`: it names no simulated plant\n  hint: etime hil runs it on its engine", path.display())]
    NoSim { path: PathBuf },
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Plant(#[from] SimError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the resolved scenario cannot be written as RON: {0}")]
    Ron(#[from] ron::Error),
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    #[error(transparent)]
    Picture(#[from] PictureError),
}

/// `summary.json` of a simulation.
#[derive(Clone, Debug, Serialize)]
pub struct SimSummary {
    pub scenario: String,
    pub law: &'static str,
    pub target_nats: Option<f64>,
    pub runs: usize,
    /// Statistics over all rows of all runs.
    pub simulated: Option<LoopSummary>,
}

/// A finished simulation.
#[derive(Clone, Debug)]
pub struct SimOutcome {
    /// The run directory.
    pub path: PathBuf,
    pub summary: SimSummary,
    /// One per run, in order.
    pub runs: Vec<Trajectory>,
}

/// Runs the ensemble in parallel and writes its run directory. `progress` gets runs done and runs in all.
///
/// Every number depends on the scenario alone: run r draws with its own seed, derived from the scenario's.
pub fn simulate(
    loaded: &Loaded,
    to: &Destination,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<SimOutcome, SimulateError> {
    let scenario = &loaded.scenario;
    let sim = scenario.sim.as_ref().ok_or_else(|| SimulateError::NoSim {
        path: loaded.path().to_owned(),
    })?;
    let prompts = loaded.prompts().map(|path| read_prompts_text(&path));
    let prompts = prompts.transpose()?;
    let dir = RunDir::create(&Place {
        to: to.clone(),
        name: loaded.name(),
        scenario: loaded.movable().to_ron()?,
        prompts,
        options: "sim".to_owned(),
    })?;
    let indices: Vec<u64> = (0..sim.runs as u64).collect();
    let done = AtomicUsize::new(0);
    progress(0, sim.runs);
    let runs = ensemble(&indices, |index| {
        let run = one(loaded, sim, index);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, sim.runs);
        run
    })?;
    let summary = SimSummary {
        scenario: loaded.name(),
        law: scenario.control.temperature.name(),
        target_nats: scenario.control.temperature.target_nats(),
        runs: runs.len(),
        simulated: LoopSummary::of(&runs.iter().collect::<Vec<_>>()),
    };
    write(&dir, &runs, &summary)?;
    let figures = figures(&scenario.control, scenario.seed, &runs);
    pictures::write(&dir, &pictures::draw(&figures)?)?;
    let path = dir.finish(About {
        device: None,
        model: None,
        seeds: indices
            .iter()
            .map(|&index| draw_seed(scenario.seed, index))
            .collect(),
    })?;
    Ok(SimOutcome {
        path,
        summary,
        runs,
    })
}

fn draw_seed(seed: u64, index: u64) -> u64 {
    derive(seed, "sim draw", index)
}

fn one(loaded: &Loaded, sim: &Sim, index: u64) -> Result<Trajectory, SimulateError> {
    let scenario = &loaded.scenario;
    let work = &scenario.workload;
    let roomy = Limits::roomy(work.sequences, work.prompt_tok + work.new_tok);
    let limits = scenario
        .engine
        .as_ref()
        .map_or(roomy, |engine| engine.limits());
    let requests = Requests::without_text(work).of_run(workload::Side::Judged, index as usize);
    let mut plant = sim.plant.build(derive(scenario.seed, "sim plant", index))?;
    let job = Job {
        control: &scenario.control,
        limits,
        clock: scenario.clock,
        seed: draw_seed(scenario.seed, index),
        requests: &requests.requests,
    };
    Ok(driver::run(plant.as_mut(), &job, &mut |_| {})?)
}

fn write(dir: &RunDir, runs: &[Trajectory], summary: &SimSummary) -> Result<(), RunDirError> {
    let tag = |run| Tag {
        phase: Phase::Sim,
        side: Side::Predicted,
        run,
    };
    let tagged: Vec<Tagged> = (0..)
        .zip(runs)
        .map(|(run, trajectory)| Tagged {
            tag: tag(run),
            trajectory,
        })
        .collect();
    dir.write("trajectory.parquet", |out| write_trajectory(out, &tagged))?;
    dir.write("steps.parquet", |out| write_steps(out, &tagged))?;
    dir.write("requests.parquet", |out| write_requests(out, &tagged))?;
    dir.write_json("summary.json", summary)
}

/// Temperature, entropy, loop gain and entropic clock of the ensemble.
fn figures(control: &Control, seed: u64, runs: &[Trajectory]) -> Vec<(&'static str, Figure)> {
    let law = &control.temperature;
    let title = |quantity: &str| format!("{quantity}, {} law, simulated", law.name());
    let all: Vec<&Trajectory> = runs.iter().collect();
    let entropies = paths(&all, |s| s.h_nats);
    let mean_h = mean_path(&entropies);
    let start_nats = mean_h.first().copied().unwrap_or(0.0);
    let temperature = Temperature {
        title: title("Temperature"),
        measured: Vec::new(),
        predicted: paths(&all, |s| s.u.exp()),
        t_min: law.band().map(|band| band.u_min.exp()),
        t_max: law.band().map(|band| band.u_max.exp()),
    };
    let clock = Clock {
        title: title("Entropic clock τ"),
        tau_nats: Vec::new(),
        tau_raw_nats: mean_path(&paths(&all, |s| s.tau_raw_nats)),
        surrogate_nats: surrogate_path(&entropies, seed),
        net_drop_nats: mean_h.iter().map(|h| start_nats - h).collect(),
        predicted_nats: mean_path(&paths(&all, |s| s.tau_nats)),
    };
    let entropy = Entropy {
        title: title("Entropy"),
        measured: Vec::new(),
        predicted: entropies,
        target_nats: law.target_nats(),
        bounds: None,
    };
    let gain = law.gain_per_nat(1.0).map(|_| LoopGain {
        title: title("Loop gain"),
        formula: gain_formula(law).to_owned(),
        measured: Vec::new(),
        predicted: paths(&all, |s| s.loop_gain),
    });
    let mut figures = vec![
        ("temperature", Figure::Temperature(temperature)),
        ("entropy", Figure::Entropy(entropy)),
    ];
    figures.extend(gain.map(|gain| ("loop_gain", Figure::LoopGain(gain))));
    figures.push(("clock", Figure::Clock(clock)));
    figures
}

impl SimSummary {
    /// The statistics as text.
    pub fn to_text(&self) -> String {
        let target = self
            .target_nats
            .map_or(String::new(), |h| format!(", H* = {h} nats"));
        let mut text = format!(
            "{}: {}{target}, {} runs\n",
            self.scenario, self.law, self.runs
        );
        let Some(m) = &self.simulated else {
            return text;
        };
        text += &format!(
            "  T      mean {:.3}; on T_min {:.1} %, on T_max {:.1} % of {} draws\n",
            m.mean_t,
            100.0 * m.at_t_min_share,
            100.0 * m.at_t_max_share,
            m.rows
        );
        text += &format!("  H      {:.3} ± {:.3} nats\n", m.mean_h_nats, m.sd_h_nats);
        if m.mean_loop_gain != 0.0 {
            text += &format!(
                "  gain   {:.3} to {:.3}, mean {:.3} (stable at fixed logits between 0 and 2)\n",
                m.min_loop_gain, m.max_loop_gain, m.mean_loop_gain
            );
        }
        text + &format!(
            "  τ      {:.1} nats per request, {:.1} at T = 1\n",
            m.tau_nats, m.tau_raw_nats
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const TEXT: &str = "(seed: 3, workload: (sequences: 2, prompt_tok: 4, new_tok: 20),
        control: (temperature: Corrected(eta_per_nat: 0.2, target_nats: 2, t_min: 0.2, t_max: 3, t_start: 1)),
        sim: (plant: Synthetic(logits: Zipf(vocab: 64, exponent: 1), process: Ar1(phi: 0.5, sd: 0.3), feedback_per_nat: 0.1), runs: 5))";

    fn run(out: &Path, threads: usize) -> SimOutcome {
        let loaded = Loaded::from_text(Path::new("test.ron"), TEXT.to_owned(), &[]).unwrap();
        let to = Destination {
            out: Some(out.to_owned()),
            root: PathBuf::new(),
            replace: false,
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| simulate(&loaded, &to, &|_, _| {})).unwrap()
    }

    #[test]
    fn the_same_bytes_come_out_at_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let (one, three) = (
            run(&folder.path().join("a"), 1),
            run(&folder.path().join("b"), 3),
        );
        assert_eq!(one.runs, three.runs);
        for name in [
            "scenario.ron",
            "trajectory.parquet",
            "steps.parquet",
            "requests.parquet",
            "summary.json",
            "figures/entropy.png",
        ] {
            let read = |outcome: &SimOutcome| std::fs::read(outcome.path.join(name)).unwrap();
            assert_eq!(read(&one), read(&three), "{name}");
        }
    }

    #[test]
    fn runs_differ_from_each_other_and_reach_the_setpoint() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = run(&folder.path().join("a"), 1);
        assert_eq!(outcome.runs.len(), 5);
        assert_ne!(outcome.runs[0].samples, outcome.runs[1].samples);
        let simulated = outcome.summary.simulated.as_ref().unwrap();
        assert_eq!(simulated.rows, 5 * 2 * 20);
        assert!(
            outcome
                .summary
                .to_text()
                .contains("Corrected, H* = 2 nats, 5 runs")
        );
    }
}

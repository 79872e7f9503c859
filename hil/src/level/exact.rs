//! Replay and forced: the same logits on both sides, so prediction and measurement must agree in every bit.
//!
//! *Replay* records the engine's logit rows in a closed loop and runs the predicted controller on them. *Forced* runs
//! the engine once more over the same tokens along another temperature path, which the controller on the recording
//! must predict: it shows that the recorded logits do not depend on the temperature that they were recorded at.

use super::columns::{ColumnVerdict, compare};
use crate::judge::Verdict;
use etime_control::config::Control;
use etime_control::driver::{self, Job, Progress, RunError};
use etime_control::law::{InStep, TemperatureLaw};
use etime_control::plant::LogitRows;
use etime_control::serve::Request;
use etime_control::trajectory::Trajectory;
use etime_sim::{Recorder, Recording, Replay};

/// One exact level, judged.
#[derive(Clone, Debug)]
pub struct Exact {
    pub predicted: Trajectory,
    pub measured: Trajectory,
    pub columns: Vec<ColumnVerdict>,
}

impl Exact {
    fn new(predicted: Trajectory, measured: Trajectory) -> Self {
        Exact {
            columns: compare(&predicted, &measured),
            predicted,
            measured,
        }
    }

    /// FAIL if any column differs anywhere.
    pub fn verdict(&self) -> Verdict {
        Verdict::overall(self.columns.iter().map(|c| c.verdict)).unwrap_or(Verdict::Fail)
    }
}

/// A closed loop on the engine with every logit row kept.
pub fn record<P: LogitRows + ?Sized>(
    engine: &mut P,
    job: &Job,
    observer: &mut dyn FnMut(Progress),
) -> Result<(Trajectory, Recording), RunError> {
    let descriptor = format!("{:?}", job.control.pruning);
    let mut recorder = Recorder::new(engine, descriptor);
    let measured = driver::run(&mut recorder, job, observer)?;
    Ok((measured, recorder.finish().1))
}

/// The predicted controller on the recorded rows, against the run they were recorded in.
pub fn replay(
    measured: Trajectory,
    recording: &Recording,
    job: &Job,
    predicted: &Control,
) -> Result<Exact, RunError> {
    let requests = as_long_as_recorded(job.requests, recording);
    let job = Job {
        control: predicted,
        requests: &requests,
        ..job.clone()
    };
    let trajectory = driver::run(&mut Replay::new(recording), &job, &mut |_| {})?;
    Ok(Exact::new(trajectory, measured))
}

/// The engine over the recorded tokens along another temperature path, against the prediction of that path.
pub fn forced<P: LogitRows + ?Sized>(
    engine: &mut P,
    recording: &Recording,
    job: &Job,
    predicted: &Control,
    observer: &mut dyn FnMut(Progress),
) -> Result<Exact, RunError> {
    let mut requests = as_long_as_recorded(job.requests, recording);
    for request in &mut requests {
        request.forced = tokens(recording, request.id);
    }
    let truth = elsewhere(job.control);
    let job = Job {
        control: &truth,
        requests: &requests,
        ..job.clone()
    };
    let measured = driver::run(engine, &job, observer)?;
    let predicted = elsewhere(predicted);
    let job = Job {
        control: &predicted,
        ..job
    };
    let trajectory = driver::run(&mut Replay::new(recording), &job, &mut |_| {})?;
    Ok(Exact::new(trajectory, measured))
}

/// A faulty controller may draw other tokens than those recorded, so only the length can end a replayed request.
fn as_long_as_recorded(requests: &[Request], recording: &Recording) -> Vec<Request> {
    let cut = |request: &Request| Request {
        stop: Vec::new(),
        new_tok: tokens(recording, request.id).len(),
        ..request.clone()
    };
    requests.iter().map(cut).collect()
}

fn tokens(recording: &Recording, request: u64) -> Vec<u32> {
    let steps = recording
        .request(request)
        .map_or(&[][..], |held| &held.steps);
    steps.iter().map(|step| step.token).collect()
}

/// Ratio of the other path's start to the scenario's, or of its setpoint where a law has no start.
const ELSEWHERE: f64 = 0.8;

/// `control` on another temperature path: another start, or another setpoint for laws without memory.
fn elsewhere(control: &Control) -> Control {
    let moved = |t: f64, t_min: f64, t_max: f64| {
        let colder = t * ELSEWHERE;
        if colder >= t_min {
            colder
        } else {
            (t / ELSEWHERE).min(t_max)
        }
    };
    let mut control = control.clone();
    match &mut control.temperature {
        TemperatureLaw::Fixed { t } => *t *= ELSEWHERE,
        TemperatureLaw::Published(law) | TemperatureLaw::Corrected(law) => {
            law.t_start = moved(law.t_start, law.t_min, law.t_max);
        }
        TemperatureLaw::Normalised(law) => {
            law.t_start = moved(law.t_start, law.t_min, law.t_max);
        }
        TemperatureLaw::InStep(InStep { target_nats, .. }) => *target_nats *= ELSEWHERE,
        TemperatureLaw::MirostatV2(law) => law.t *= ELSEWHERE,
        TemperatureLaw::AdaptiveP(law) => law.t *= ELSEWHERE,
        TemperatureLaw::Dynatemp(law) => law.exponent /= ELSEWHERE,
        TemperatureLaw::Edt(law) => law.theta_nats /= ELSEWHERE,
    }
    control
}

//! The one loop: schedule, forward, measure, act, draw, observe, against any [`Plant`].

use crate::clock::EntropicClock;
use crate::config::{Control, Limits};
use crate::draw::{DrawKey, Drawn, Pick};
use crate::law::{LawState, Observation, SolveStatus, Solver};
use crate::plant::{Batch, Cost, DrawAsk, Plant, PlantError, Row, ThermalAsk, Work};
use crate::sensor::Thermal;
use crate::serve::{Request, Scheduled, Scheduler, ServeError};
use crate::trajectory::{Bound, Sample, Step, Trajectory};
use serde::{Deserialize, Serialize};

/// What time is, for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Clock {
    /// Each step takes 1.
    #[default]
    Steps,
    /// A step takes `fixed_s` + `per_tok_s` · tokens + `per_kv_byte_s` · KV bytes read.
    Modelled {
        fixed_s: f64,
        per_tok_s: f64,
        per_kv_byte_s: f64,
    },
    /// A step takes what the plant measured; 0 where it measures nothing.
    Measured,
}

impl Clock {
    fn duration(&self, cost: &Cost) -> f64 {
        match *self {
            Clock::Steps => 1.0,
            Clock::Modelled {
                fixed_s,
                per_tok_s,
                per_kv_byte_s,
            } => fixed_s + per_tok_s * cost.tokens as f64 + per_kv_byte_s * cost.kv_bytes as f64,
            Clock::Measured => cost.measured_s.unwrap_or(0.0),
        }
    }
}

/// A run to do.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    pub control: &'a Control,
    pub limits: Limits,
    pub clock: Clock,
    /// Keys every draw together with the request and the token index.
    pub seed: u64,
    pub requests: &'a [Request],
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Plant(#[from] PlantError),
}

/// What an observer sees after each step.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Rows that this step added.
    pub fresh: &'a [Sample],
    /// Tokens drawn so far.
    pub drawn_tok: usize,
    /// Requests that are done, of all.
    pub done: usize,
    pub requests: usize,
}

/// Everything the controllers remember of one sequence.
#[derive(Clone, Debug)]
struct Sequence {
    text: Vec<u32>,
    drawn_tok: usize,
    law: LawState,
    clock: EntropicClock,
    clock_raw: EntropicClock,
}

/// A row that draws in this step.
struct Turn {
    index: usize,
    row: Row,
    u: f64,
    status: Option<SolveStatus>,
    tempered: Thermal,
    raw: Thermal,
}

/// Runs every request to its end.
pub fn run<P: Plant + ?Sized>(
    plant: &mut P,
    job: &Job,
    observer: &mut dyn FnMut(Progress),
) -> Result<Trajectory, RunError> {
    let mut driver = Driver::new(job)?;
    while !driver.scheduler.is_drained() {
        driver.step(plant, observer)?;
    }
    driver.trajectory.u_end = driver.sequences.iter().map(|s| s.law.u).collect();
    Ok(driver.trajectory)
}

struct Driver<'a> {
    job: &'a Job<'a>,
    scheduler: Scheduler,
    sequences: Vec<Sequence>,
    trajectory: Trajectory,
    time: f64,
    done: usize,
}

impl<'a> Driver<'a> {
    fn new(job: &'a Job<'a>) -> Result<Self, ServeError> {
        let mut scheduler = Scheduler::new(job.limits);
        let mut ids = std::collections::BTreeSet::new();
        for request in job.requests {
            if !ids.insert(request.id) {
                return Err(ServeError::DuplicateId { id: request.id });
            }
            scheduler.submit(request)?;
        }
        let fresh = |request: &Request| Sequence {
            text: request.prompt.clone(),
            drawn_tok: 0,
            law: job.control.temperature.start(),
            clock: EntropicClock::default(),
            clock_raw: EntropicClock::default(),
        };
        Ok(Driver {
            job,
            scheduler,
            sequences: job.requests.iter().map(fresh).collect(),
            trajectory: Trajectory::default(),
            time: 0.0,
            done: 0,
        })
    }

    fn step<P: Plant + ?Sized>(
        &mut self,
        plant: &mut P,
        observer: &mut dyn FnMut(Progress),
    ) -> Result<(), RunError> {
        let step = self.scheduler.schedule();
        let batch = self.batch(&step);
        let report = plant.forward(&batch)?;
        let mut turns = self.turns(&step);
        self.settle(plant, &mut turns)?;
        let asks: Vec<DrawAsk> = turns.iter().map(|turn| self.draw_ask(turn)).collect();
        let drawn = plant.draw(&asks)?;
        let first = self.trajectory.samples.len();
        for (turn, drawn) in turns.iter().zip(&drawn) {
            self.advance(turn, drawn);
        }
        self.trajectory.steps.push(Step {
            time: self.time,
            sequences: step.len() as u64,
            drawn: turns.len() as u64,
            cost: report.cost,
        });
        self.time += self.job.clock.duration(&report.cost);
        observer(Progress {
            fresh: &self.trajectory.samples[first..],
            drawn_tok: self.trajectory.samples.len(),
            done: self.done,
            requests: self.sequences.len(),
        });
        Ok(())
    }

    fn batch(&self, step: &[Scheduled]) -> Batch {
        let work = |s: &Scheduled| {
            let end_tok = s.start_tok + s.tokens;
            Work {
                request: self.job.requests[s.index].id,
                tokens: self.sequences[s.index].text[s.start_tok..end_tok].to_vec(),
                start_tok: s.start_tok,
                blocks: self.scheduler.block_table(s.index, end_tok).to_vec(),
                wants_logits: s.catches_up,
            }
        };
        Batch {
            works: step.iter().map(work).collect(),
        }
    }

    fn turns(&self, step: &[Scheduled]) -> Vec<Turn> {
        let due = step.iter().enumerate().filter(|(_, s)| s.catches_up);
        due.map(|(row, s)| Turn {
            index: s.index,
            row: Row(row),
            u: self.sequences[s.index].law.u,
            status: None,
            tempered: Thermal::default(),
            raw: Thermal::default(),
        })
        .collect()
    }

    /// Measures every row at its temperature and at T = 1; laws that act before the draw settle on all rows together.
    /// Those that act on the raw entropy hear it first.
    fn settle<P: Plant + ?Sized>(&self, plant: &mut P, turns: &mut [Turn]) -> Result<(), RunError> {
        let law = &self.job.control.temperature;
        let top_k = self.job.control.sensor.top_k();
        let mut solvers: Vec<Option<Solver>> = turns
            .iter()
            .map(|turn| law.solver(&self.sequences[turn.index].law))
            .collect();
        let mut open: Vec<usize> = (0..turns.len()).collect();
        let mut first = true;
        if law.feeds_forward() {
            self.feed_forward(plant, turns)?;
            first = false;
        }
        while !open.is_empty() {
            let tempered = open.iter().map(|&i| ThermalAsk {
                row: turns[i].row,
                u: solvers[i].as_ref().map_or(turns[i].u, Solver::ask),
                top_k,
            });
            let raw = turns.iter().filter(|_| first).map(|turn| ThermalAsk {
                row: turn.row,
                u: 0.0,
                top_k,
            });
            let asks: Vec<ThermalAsk> = tempered.chain(raw).collect();
            let mut out = vec![Thermal::default(); asks.len()];
            plant.thermal(&asks, &mut out)?;
            let (tempered, raw) = out.split_at(open.len());
            for (turn, raw) in turns.iter_mut().zip(raw) {
                turn.raw = *raw;
            }
            for ((&i, ask), thermal) in open.iter().zip(&asks).zip(tempered) {
                turns[i].u = ask.u;
                turns[i].tempered = *thermal;
            }
            open.retain(|&i| {
                let Some(solver) = &mut solvers[i] else {
                    return false;
                };
                let seen = &turns[i].tempered;
                let solution = solver.tell(seen.h_nats, seen.v);
                turns[i].status = solution.map(|s| s.status);
                solution.is_none()
            });
            first = false;
        }
        Ok(())
    }

    /// Measures every row at T = 1 and sets its temperature by that.
    fn feed_forward<P: Plant + ?Sized>(
        &self,
        plant: &mut P,
        turns: &mut [Turn],
    ) -> Result<(), RunError> {
        let control = self.job.control;
        let ask = |turn: &Turn| ThermalAsk {
            row: turn.row,
            u: 0.0,
            top_k: control.sensor.top_k(),
        };
        let asks: Vec<ThermalAsk> = turns.iter().map(ask).collect();
        let mut out = vec![Thermal::default(); asks.len()];
        plant.thermal(&asks, &mut out)?;
        for (turn, raw) in turns.iter_mut().zip(out) {
            let ln_n = (raw.n as f64).ln();
            let reading = control.read_nats(&raw);
            turn.u = control.temperature.feed_forward(turn.u, reading, ln_n);
            turn.raw = raw;
        }
        Ok(())
    }

    fn draw_ask(&self, turn: &Turn) -> DrawAsk {
        let request = &self.job.requests[turn.index];
        let index_tok = self.sequences[turn.index].drawn_tok;
        let pick = match request.forced.get(index_tok) {
            Some(&token) => Pick::Token(token),
            None => Pick::Key(DrawKey {
                seed: self.job.seed,
                request: request.id,
                token: index_tok as u64,
            }),
        };
        let law = &self.job.control.temperature;
        DrawAsk {
            row: turn.row,
            shape: law.shape(&self.sequences[turn.index].law, turn.u),
            pick,
        }
    }

    /// Lets the law observe, records the row, and appends the token.
    fn advance(&mut self, turn: &Turn, drawn: &Drawn) {
        let control = self.job.control;
        let law = &control.temperature;
        let request = &self.job.requests[turn.index];
        let seq = &mut self.sequences[turn.index];
        let seen = Observation {
            h_nats: control.read_nats(&turn.tempered),
            h_raw_nats: control.read_nats(&turn.raw),
            v: turn.tempered.v,
            surprisal_nats: drawn.surprisal_nats,
            tempered_surprisal_nats: drawn.tempered_surprisal_nats,
        };
        // A law that acted before the draw carries its temperature into the next guess.
        seq.law.u = turn.u;
        let (next, action) = law.observe(seq.law.clone(), seen);
        seq.law = next;
        let h_nats = drawn.h_nats.unwrap_or(turn.tempered.h_nats);
        seq.clock.push(h_nats);
        seq.clock_raw.push(turn.raw.h_nats);
        let bracket = turn.tempered.bracket;
        self.trajectory.samples.push(Sample {
            step: self.trajectory.steps.len() as u64,
            time: self.time,
            request: request.id,
            index_tok: seq.drawn_tok as u64,
            u: turn.u,
            h_nats,
            v: turn.tempered.v,
            h_raw_nats: turn.raw.h_nats,
            v_raw: turn.raw.v,
            h_lower_nats: bracket.map_or(h_nats, |b| b.lower_nats),
            h_upper_nats: bracket.map_or(h_nats, |b| b.upper_nats),
            fed_nats: action.fed_nats,
            clip_u: action.clip_u,
            loop_gain: law.gain_per_nat(turn.tempered.v).unwrap_or(0.0) * turn.tempered.v,
            bound: law.band().map_or(Bound::Inside, |band| match turn.status {
                Some(SolveStatus::BelowBand) => Bound::AtMin,
                Some(SolveStatus::AboveBand) => Bound::AtMax,
                Some(_) => Bound::Inside,
                None if turn.u <= band.u_min => Bound::AtMin,
                None if turn.u >= band.u_max => Bound::AtMax,
                None => Bound::Inside,
            }),
            token: drawn.token,
            surprisal_nats: drawn.surprisal_nats,
            surprisal_raw_nats: drawn.raw_surprisal_nats,
            tau_nats: seq.clock.tau(),
            tau_raw_nats: seq.clock_raw.tau(),
        });
        seq.drawn_tok += 1;
        seq.text.push(drawn.token);
        if seq.drawn_tok == request.new_tok || request.stop.contains(&drawn.token) {
            self.scheduler.finish(turn.index);
            self.done += 1;
        } else {
            self.scheduler.append(turn.index);
        }
    }
}

//! The tables of a run: which columns, in which units, and how they become trajectories again.

use super::error::{BoxError, RunDirError};
use super::table::{Cell, Column, Table, write_table};
use etime_control::trajectory::{Bound, Sample, Step, Trajectory};
use std::io::Write;

/// The part of an experiment that a run belongs to; column `level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Simulation alone.
    Sim,
    Replay,
    Forced,
    Free,
    /// Open-loop recording for identification.
    Record,
}

impl Phase {
    const ALL: [Phase; 5] = [
        Phase::Sim,
        Phase::Replay,
        Phase::Forced,
        Phase::Free,
        Phase::Record,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Sim => "sim",
            Phase::Replay => "replay",
            Phase::Forced => "forced",
            Phase::Free => "free",
            Phase::Record => "record",
        }
    }
}

/// Which plant a run was made on; column `side`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// A model.
    Predicted,
    /// The engine.
    Measured,
}

impl Side {
    const ALL: [Side; 2] = [Side::Predicted, Side::Measured];

    pub fn name(self) -> &'static str {
        match self {
            Side::Predicted => "predicted",
            Side::Measured => "measured",
        }
    }
}

/// Where a run stands in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    pub phase: Phase,
    pub side: Side,
    /// Number of the run within its phase and side.
    pub run: u32,
}

/// A trajectory and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Tagged<'a> {
    pub tag: Tag,
    pub trajectory: &'a Trajectory,
}

/// A row of a table: its run, its index within the run's part of the table, its content.
struct RowOf<T> {
    tag: Tag,
    index: u64,
    of: T,
}

fn rows<'a, T: 'a>(
    runs: &'a [Tagged<'a>],
    part: fn(&'a Trajectory) -> &'a [T],
) -> impl Iterator<Item = RowOf<&'a T>> {
    runs.iter().flat_map(move |run| {
        part(run.trajectory)
            .iter()
            .enumerate()
            .map(|(index, of)| RowOf {
                tag: run.tag,
                index: index as u64,
                of,
            })
    })
}

fn column<R>(name: &'static str, unit: &'static str, cell: Cell<R>) -> Column<R> {
    Column { name, unit, cell }
}

/// `level`, `side`, `run`, then `rest`.
fn tagged<T>(rest: Vec<Column<RowOf<T>>>) -> Vec<Column<RowOf<T>>> {
    let mut columns = vec![
        column("level", "", Cell::Text(|r: &RowOf<T>| r.tag.phase.name())),
        column("side", "", Cell::Text(|r: &RowOf<T>| r.tag.side.name())),
        column("run", "1", Cell::U32(|r: &RowOf<T>| r.tag.run)),
    ];
    columns.extend(rest);
    columns
}

/// `trajectory.parquet`: the fields of [`Sample`] under their own names, and `t` = e^`u` after `u`.
pub fn write_trajectory(out: &mut (dyn Write + Send), runs: &[Tagged]) -> Result<(), BoxError> {
    let columns = tagged::<&Sample>(vec![
        column("step", "1", Cell::U64(|r| r.of.step)),
        column(
            "time",
            "steps, or seconds of the driver's clock",
            Cell::F64(|r| r.of.time),
        ),
        column("request", "1", Cell::U64(|r| r.of.request)),
        column("index_tok", "tokens", Cell::U64(|r| r.of.index_tok)),
        column("u", "1", Cell::F64(|r| r.of.u)),
        column("t", "1", Cell::F64(|r| r.of.u.exp())),
        column("h_nats", "nats", Cell::F64(|r| r.of.h_nats)),
        column("v", "nats^2", Cell::F64(|r| r.of.v)),
        column("h_raw_nats", "nats", Cell::F64(|r| r.of.h_raw_nats)),
        column("v_raw", "nats^2", Cell::F64(|r| r.of.v_raw)),
        column("h_lower_nats", "nats", Cell::F64(|r| r.of.h_lower_nats)),
        column("h_upper_nats", "nats", Cell::F64(|r| r.of.h_upper_nats)),
        column("fed_nats", "nats", Cell::F64(|r| r.of.fed_nats)),
        column("clip_u", "1", Cell::F64(|r| r.of.clip_u)),
        column("loop_gain", "1", Cell::F64(|r| r.of.loop_gain)),
        column("bound", "", Cell::Text(|r| bound_name(r.of.bound))),
        column("token", "1", Cell::U32(|r| r.of.token)),
        column("surprisal_nats", "nats", Cell::F64(|r| r.of.surprisal_nats)),
        column(
            "surprisal_raw_nats",
            "nats",
            Cell::F64(|r| r.of.surprisal_raw_nats),
        ),
        column("tau_nats", "nats", Cell::F64(|r| r.of.tau_nats)),
        column("tau_raw_nats", "nats", Cell::F64(|r| r.of.tau_raw_nats)),
    ]);
    write_table(out, &columns, rows(runs, |t| &t.samples))
}

/// `steps.parquet`: the fields of [`Step`] but the measured seconds.
pub fn write_steps(out: &mut (dyn Write + Send), runs: &[Tagged]) -> Result<(), BoxError> {
    let columns = tagged::<&Step>(vec![
        column("step", "1", Cell::U64(|r| r.index)),
        column(
            "time",
            "steps, or seconds of the driver's clock",
            Cell::F64(|r| r.of.time),
        ),
        column("sequences", "1", Cell::U64(|r| r.of.sequences)),
        column("drawn_tok", "tokens", Cell::U64(|r| r.of.drawn)),
        column("computed_tok", "tokens", Cell::U64(|r| r.of.cost.tokens)),
        column("kv_bytes", "bytes", Cell::U64(|r| r.of.cost.kv_bytes)),
        column("flops", "1", Cell::U64(|r| r.of.cost.flops)),
    ]);
    write_table(out, &columns, rows(runs, |t| &t.steps))
}

/// `timing.parquet`: wall seconds of the steps whose plant measured them.
pub fn write_timing(out: &mut (dyn Write + Send), runs: &[Tagged]) -> Result<(), BoxError> {
    let columns = tagged::<f64>(vec![
        column("step", "1", Cell::U64(|r| r.index)),
        column("measured_s", "seconds", Cell::F64(|r| r.of)),
    ]);
    let timed = rows(runs, |t| &t.steps).filter_map(|row| {
        Some(RowOf {
            tag: row.tag,
            index: row.index,
            of: row.of.cost.measured_s?,
        })
    });
    write_table(out, &columns, timed)
}

/// `requests.parquet`: log-temperature after the last update of each request, in order of submission.
pub fn write_requests(out: &mut (dyn Write + Send), runs: &[Tagged]) -> Result<(), BoxError> {
    let columns = tagged::<&f64>(vec![
        column("index", "1", Cell::U64(|r| r.index)),
        column("u_end", "1", Cell::F64(|r| *r.of)),
    ]);
    write_table(out, &columns, rows(runs, |t| &t.u_end))
}

/// The rows of a `trajectory.parquet`, in file order.
pub fn read_samples(table: &Table) -> Result<Vec<(Tag, Sample)>, RunDirError> {
    let level = table.text("level")?;
    let side = table.text("side")?;
    let run = table.u32("run")?;
    let bound = table.text("bound")?;
    let token = table.u32("token")?;
    let [step, request, index_tok] = ["step", "request", "index_tok"].map(|name| table.u64(name));
    let (step, request, index_tok) = (step?, request?, index_tok?);
    macro_rules! numbers {
        ($($name:ident),*) => { $(let $name = table.f64(stringify!($name))?;)* };
    }
    numbers!(
        time,
        u,
        h_nats,
        v,
        h_raw_nats,
        v_raw,
        h_lower_nats,
        h_upper_nats,
        fed_nats,
        clip_u
    );
    numbers!(
        loop_gain,
        surprisal_nats,
        surprisal_raw_nats,
        tau_nats,
        tau_raw_nats
    );
    (0..table.rows)
        .map(|i| {
            let refuse = |column, seen: &String, allowed| RunDirError::Value {
                path: table.path().to_path_buf(),
                row: i,
                column,
                seen: seen.clone(),
                allowed,
            };
            let tag = Tag {
                phase: Phase::ALL
                    .into_iter()
                    .find(|p| p.name() == level[i])
                    .ok_or_else(|| {
                        refuse("level", &level[i], "sim, replay, forced, free, record")
                    })?,
                side: Side::ALL
                    .into_iter()
                    .find(|s| s.name() == side[i])
                    .ok_or_else(|| refuse("side", &side[i], "predicted, measured"))?,
                run: run[i],
            };
            let sample = Sample {
                step: step[i],
                time: time[i],
                request: request[i],
                index_tok: index_tok[i],
                u: u[i],
                h_nats: h_nats[i],
                v: v[i],
                h_raw_nats: h_raw_nats[i],
                v_raw: v_raw[i],
                h_lower_nats: h_lower_nats[i],
                h_upper_nats: h_upper_nats[i],
                fed_nats: fed_nats[i],
                clip_u: clip_u[i],
                loop_gain: loop_gain[i],
                bound: bound_of(&bound[i])
                    .ok_or_else(|| refuse("bound", &bound[i], "inside, at_min, at_max"))?,
                token: token[i],
                surprisal_nats: surprisal_nats[i],
                surprisal_raw_nats: surprisal_raw_nats[i],
                tau_nats: tau_nats[i],
                tau_raw_nats: tau_raw_nats[i],
            };
            Ok((tag, sample))
        })
        .collect()
}

fn bound_name(bound: Bound) -> &'static str {
    match bound {
        Bound::Inside => "inside",
        Bound::AtMin => "at_min",
        Bound::AtMax => "at_max",
    }
}

fn bound_of(name: &str) -> Option<Bound> {
    [Bound::Inside, Bound::AtMin, Bound::AtMax]
        .into_iter()
        .find(|&bound| bound_name(bound) == name)
}

//! Bit-for-bit comparison of two trajectories, column by column.

use crate::judge::Verdict;
use etime_control::trajectory::{Bound, Sample, Trajectory};
use serde::Serialize;

/// A column that must agree in every bit.
#[derive(Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    read: fn(&Sample) -> f64,
}

fn bound_code(bound: Bound) -> f64 {
    match bound {
        Bound::AtMin => -1.0,
        Bound::Inside => 0.0,
        Bound::AtMax => 1.0,
    }
}

const fn column(name: &'static str, read: fn(&Sample) -> f64) -> Column {
    Column { name, read }
}

/// Every column of a [`Sample`] but its keys. Integers up to 2^53 are exact in `f64`.
pub const COLUMNS: [Column; 18] = [
    column("step", |s| s.step as f64),
    column("time", |s| s.time),
    column("u", |s| s.u),
    column("h_nats", |s| s.h_nats),
    column("v", |s| s.v),
    column("h_raw_nats", |s| s.h_raw_nats),
    column("v_raw", |s| s.v_raw),
    column("h_lower_nats", |s| s.h_lower_nats),
    column("h_upper_nats", |s| s.h_upper_nats),
    column("fed_nats", |s| s.fed_nats),
    column("clip_u", |s| s.clip_u),
    column("loop_gain", |s| s.loop_gain),
    column("bound", |s| bound_code(s.bound)),
    column("token", |s| f64::from(s.token)),
    column("surprisal_nats", |s| s.surprisal_nats),
    column("surprisal_raw_nats", |s| s.surprisal_raw_nats),
    column("tau_nats", |s| s.tau_nats),
    column("tau_raw_nats", |s| s.tau_raw_nats),
];

/// How far one column agrees.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnVerdict {
    pub column: &'static str,
    pub verdict: Verdict,
    pub rows: usize,
    pub rows_that_differ: usize,
    /// Largest |predicted − measured|.
    pub max_error: f64,
    /// First row that differs.
    pub first: Option<Mismatch>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mismatch {
    pub request: u64,
    pub index_tok: u64,
    pub predicted: f64,
    pub measured: f64,
}

/// Compares two runs of the same requests. Rows are paired by (request, token); a missing row is a mismatch of
/// every column.
pub fn compare(predicted: &Trajectory, measured: &Trajectory) -> Vec<ColumnVerdict> {
    let key = |s: &Sample| (s.request, s.index_tok);
    let pairs: std::collections::BTreeMap<_, _> =
        predicted.samples.iter().map(|s| (key(s), s)).collect();
    let missing = predicted.samples.len().abs_diff(measured.samples.len());
    let one = |column: &Column| {
        let mut out = ColumnVerdict {
            column: column.name,
            verdict: Verdict::Pass,
            rows: measured.samples.len(),
            rows_that_differ: missing,
            max_error: 0.0,
            first: None,
        };
        for m in &measured.samples {
            let measured = (column.read)(m);
            let predicted = pairs.get(&key(m)).map_or(f64::NAN, |p| (column.read)(p));
            if predicted.to_bits() == measured.to_bits() {
                continue;
            }
            out.rows_that_differ += 1;
            out.max_error = out.max_error.max((predicted - measured).abs());
            out.first.get_or_insert(Mismatch {
                request: m.request,
                index_tok: m.index_tok,
                predicted,
                measured,
            });
        }
        if out.rows_that_differ > 0 || out.rows == 0 {
            out.verdict = Verdict::Fail;
        }
        out
    };
    COLUMNS.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(index_tok: u64) -> Sample {
        Sample {
            step: index_tok,
            time: 0.0,
            request: 3,
            index_tok,
            u: 0.1,
            h_nats: 2.0,
            v: 1.0,
            h_raw_nats: 2.0,
            v_raw: 1.0,
            h_lower_nats: 2.0,
            h_upper_nats: 2.0,
            fed_nats: 2.0,
            clip_u: 0.0,
            loop_gain: 0.1,
            bound: Bound::Inside,
            token: 5,
            surprisal_nats: 1.0,
            surprisal_raw_nats: 1.0,
            tau_nats: 0.0,
            tau_raw_nats: 0.0,
        }
    }

    fn run(edit: impl Fn(&mut Sample)) -> Trajectory {
        let mut samples: Vec<_> = (0..4).map(sample).collect();
        samples.iter_mut().for_each(edit);
        Trajectory {
            samples,
            ..Trajectory::default()
        }
    }

    #[test]
    fn the_last_bit_of_one_value_in_any_column_is_noticed() {
        let clean = run(|_| {});
        let same = compare(&clean, &clean);
        assert!(same.iter().all(|c| c.verdict == Verdict::Pass));
        let nudged = run(|s| {
            if s.index_tok == 2 {
                s.v = f64::from_bits(s.v.to_bits() + 1);
            }
        });
        let verdicts = compare(&nudged, &clean);
        let failed: Vec<_> = verdicts
            .iter()
            .filter(|c| c.verdict == Verdict::Fail)
            .map(|c| {
                let first = c.first.as_ref().map(|m| m.index_tok);
                (c.column, c.rows_that_differ, first)
            })
            .collect();
        assert_eq!(failed, [("v", 1, Some(2))]);
    }

    #[test]
    fn a_missing_row_or_an_empty_run_fails_every_column() {
        let all_fail = |a: &Trajectory, b: &Trajectory| {
            compare(a, b).iter().all(|c| c.verdict == Verdict::Fail)
        };
        let clean = run(|_| {});
        let mut short = clean.clone();
        short.samples.pop();
        assert!(all_fail(&short, &clean));
        let empty = Trajectory::default();
        assert!(all_fail(&empty, &empty));
    }
}

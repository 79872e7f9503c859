//! Where numbers go on an axis, and which of them are written beside it.

/// Numbers below this are 0 to a linear axis.
const TINY: f64 = 1e-100;

/// An axis from `lo` to `hi`, both in the scale of `log`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    lo: f64,
    hi: f64,
    log: bool,
    /// Values and their labels, inside the axis.
    pub ticks: Vec<(f64, String)>,
}

/// Smallest and largest of `values`; `None` without any.
pub(super) fn extent<'a>(values: impl IntoIterator<Item = &'a f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |range, &v| match range {
        None => Some((v, v)),
        Some((lo, hi)) => Some((v.min(lo), v.max(hi))),
    })
}

impl Axis {
    /// A linear axis around `lo..hi` with about `count` ticks and a little air; none below a `lo` of 0.
    pub fn linear((lo, hi): (f64, f64), count: usize) -> Axis {
        let (lo, hi) = widen(lo, hi);
        let air = 0.04 * (hi - lo);
        let lo = if lo == 0.0 { 0.0 } else { lo - air };
        Axis::exact((lo, hi + air), count)
    }

    /// A linear axis of just `lo..hi`.
    pub fn exact((lo, hi): (f64, f64), count: usize) -> Axis {
        let (lo, hi) = widen(lo, hi);
        let (step, decimals) = step((hi - lo) / count.max(1) as f64);
        let ticks = multiples(lo, hi, step)
            .map(|v| (v, number(v, decimals)))
            .collect();
        Axis {
            lo,
            hi,
            log: false,
            ticks,
        }
    }

    /// An axis of whole numbers from `first` to `last`.
    pub fn index(first: f64, last: f64) -> Axis {
        let hi = if last > first { last } else { first + 1.0 };
        let (step, _) = step(((hi - first) / 8.0).max(1.0));
        let step = step.max(1.0).round();
        Axis {
            lo: first,
            hi,
            log: false,
            ticks: multiples(first, hi, step)
                .map(|v| (v, number(v, 0)))
                .collect(),
        }
    }

    /// A logarithmic axis around `lo..hi`, both above 0, with a little air.
    pub fn log((lo, hi): (f64, f64)) -> Axis {
        // A range of no width gets half a factor of 2 to both sides.
        let (lo, hi) = if hi / lo < 1.0 + 1e-9 {
            (lo / 1.5, hi * 1.5)
        } else {
            (lo, hi)
        };
        let air = (hi / lo).powf(0.05);
        let (lo, hi) = (lo / air, hi * air);
        Axis {
            lo: lo.ln(),
            hi: hi.ln(),
            log: true,
            ticks: log_ticks(lo, hi),
        }
    }

    /// Drops ticks until the labels, `size` long each, stand clear of each other on `length`; a tick at 0 stays.
    pub fn thin(&mut self, length: f64, size: impl Fn(&str) -> f64) {
        let zero = self.ticks.iter().position(|&(v, _)| v == 0.0).unwrap_or(0);
        let kept = |every: usize| (zero % every..self.ticks.len()).step_by(every);
        let clear = |every: usize| {
            let spans = kept(every).map(|i| {
                let (value, label) = &self.ticks[i];
                (self.part(*value) * length, 0.5 * size(label))
            });
            let spans: Vec<(f64, f64)> = spans.collect();
            spans.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0 - w[1].1)
        };
        // Steps that turn 1, 2, 5 · 10^k into round numbers again.
        let every = [1, 2, 4, 5, 10].into_iter().find(|&every| clear(every));
        let every = every.unwrap_or(self.ticks.len().max(1));
        self.ticks = kept(every).map(|i| self.ticks[i].clone()).collect();
    }

    /// Where `value` lies, 0 at the low end and 1 at the high end.
    pub fn part(&self, value: f64) -> f64 {
        let value = if self.log { value.ln() } else { value };
        (value - self.lo) / (self.hi - self.lo)
    }

    /// The ends, in values.
    pub fn ends(&self) -> (f64, f64) {
        match self.log {
            true => (self.lo.exp(), self.hi.exp()),
            false => (self.lo, self.hi),
        }
    }
}

/// A range of some width around one of none.
fn widen(lo: f64, hi: f64) -> (f64, f64) {
    let size = lo.abs().max(hi.abs());
    if hi - lo > (1e-9 * size).max(TINY) {
        (lo, hi)
    } else {
        let half = if size > TINY { 0.25 * size } else { 0.5 };
        (lo - half, hi + half)
    }
}

/// The nearest of 1, 2, 5 · 10^k to `raw` by ratio, and the decimals that it needs.
fn step(raw: f64) -> (f64, usize) {
    let power = raw.log10().floor();
    let lead = raw / 10f64.powf(power);
    let (factor, power) = [(1.4, 1.0), (3.2, 2.0), (7.1, 5.0)]
        .into_iter()
        .find(|&(below, _)| lead < below)
        .map_or((1.0, power + 1.0), |(_, factor)| (factor, power));
    (factor * 10f64.powf(power), (-power).max(0.0) as usize)
}

fn multiples(lo: f64, hi: f64, step: f64) -> impl Iterator<Item = f64> {
    let slack = 1e-9;
    let first = (lo / step - slack).ceil() as i64;
    let last = (hi / step + slack).floor() as i64;
    (first..=last).map(move |i| i as f64 * step)
}

/// Ticks at 1, 2, 5 · 10^k while they are few, at 10^k once they are many, linear ones within an octave or so.
fn log_ticks(lo: f64, hi: f64) -> Vec<(f64, String)> {
    let (first, last) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
    let of = |factors: &[f64]| -> Vec<(f64, String)> {
        (first..=last)
            .flat_map(|power| factors.iter().map(move |&factor| (factor, power)))
            .map(|(factor, power)| {
                let decimals = (-power).max(0) as usize;
                let value = factor * 10f64.powi(power);
                (value, number(value, decimals))
            })
            .filter(|(value, _)| (lo..=hi).contains(value))
            .collect()
    };
    let powers = of(&[1.0]);
    if powers.len() > 4 {
        let every = powers.len().div_ceil(6);
        return powers.into_iter().step_by(every).collect();
    }
    let fine = of(&[1.0, 2.0, 5.0]);
    if fine.len() >= 3 {
        return fine;
    }
    let (step, decimals) = step((hi - lo) / 5.0);
    multiples(lo, hi, step)
        .filter(|&v| v > 0.0)
        .map(|v| (v, number(v, decimals)))
        .collect()
}

/// `value` with a true minus sign; in scientific form where it would be long.
pub(super) fn number(value: f64, decimals: usize) -> String {
    let text = if value != 0.0 && (value.abs() >= 1e6 || decimals > 5) {
        let text = format!("{value:.2e}");
        match text.split_once('e') {
            Some((lead, power)) => {
                let lead = lead.trim_end_matches('0').trim_end_matches('.');
                format!("{lead}e{power}")
            }
            None => text,
        }
    } else {
        format!("{value:.decimals$}")
    };
    // A rounded −0 is 0.
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_string(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

/// `value` to `digits` significant digits, without needless zeros.
pub(super) fn short(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let power = value.abs().log10().floor() as i32;
    if !(-4..6).contains(&power) {
        let digits = digits.saturating_sub(1);
        return format!("{value:.digits$e}").replacen('-', "\u{2212}", usize::from(value < 0.0));
    }
    let decimals = (digits as i32 - 1 - power).max(0) as usize;
    let text = number(value, decimals);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers_inside_the_axis() {
        assert_eq!(
            labels(&Axis::exact((0.0, 2.2), 5)),
            ["0.0", "0.5", "1.0", "1.5", "2.0"]
        );
        assert_eq!(
            labels(&Axis::exact((-0.3, 0.3), 3)),
            ["\u{2212}0.2", "0.0", "0.2"]
        );
        assert_eq!(
            labels(&Axis::index(0.0, 127.0)),
            ["0", "20", "40", "60", "80", "100", "120"]
        );
        assert_eq!(labels(&Axis::log((0.2, 2.0))), ["0.2", "0.5", "1", "2"]);
        assert_eq!(
            labels(&Axis::log((1e-3, 1e3))),
            ["0.001", "0.1", "10", "1000"]
        );
        assert_eq!(labels(&Axis::exact((0.0, 2e6), 4))[3], "1.5e6");
    }

    #[test]
    fn every_range_gives_at_least_two_ticks_and_room_for_its_values() {
        let sizes = [1e-7, 0.03, 1.0, 7.0, 123.0, 4e5, 1e9];
        for (i, &a) in sizes.iter().enumerate() {
            for &b in &sizes[i..] {
                for axis in [
                    Axis::linear((a, b), 5),
                    Axis::linear((-b, a), 5),
                    Axis::log((a, b)),
                    Axis::index(0.0, b.ceil()),
                ] {
                    assert!(axis.ticks.len() >= 2, "{a} {b} {axis:?}");
                    assert!(axis.ticks.len() <= 16, "{a} {b} {axis:?}");
                    let inside = |v: f64| (-1e-9..=1.0 + 1e-9).contains(&axis.part(v));
                    assert!(axis.ticks.iter().all(|(v, _)| inside(*v)), "{axis:?}");
                }
                let axis = Axis::log((a, b));
                assert!(axis.part(a) > 0.0 && axis.part(b) < 1.0);
            }
        }
    }

    #[test]
    fn ticks_are_thinned_until_their_labels_stand_clear() {
        let thinned = |length: f64| {
            let mut axis = Axis::exact((-1.6, 1.6), 6);
            axis.thin(length, |label| 8.0 * label.chars().count() as f64);
            axis.ticks.into_iter().map(|(v, _)| v).collect::<Vec<_>>()
        };
        assert_eq!(thinned(400.0), [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5]);
        assert_eq!(thinned(100.0), [-1.0, 0.0, 1.0]);
        assert_eq!(thinned(10.0), [0.0]);
    }

    #[test]
    fn numbers_are_written_short() {
        assert_eq!(short(0.05, 2), "0.05");
        assert_eq!(short(-1.2345, 3), "\u{2212}1.23");
        assert_eq!(short(1200.0, 2), "1200");
        assert_eq!(short(2.0, 3), "2");
        assert_eq!(number(-0.0001, 2), "0.00");
    }
}

//! Errors of a prediction against their tolerances, one signal a row.

use super::axis::{Axis, number, short};
use super::canvas::{Align, Canvas, Rect, Stroke};
use super::error::{FigureError, check_values};
use super::frame::{MARGIN, thin, title};
use super::palette::*;
use plotters::prelude::DrawingBackend;
use plotters::style::RGBColor;

/// A verdict, as it is drawn: by colour, by shape and in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A disc.
    Pass,
    /// A cross.
    Fail,
    /// A diamond.
    Inconclusive,
}

impl Mark {
    fn look(self) -> (&'static str, RGBColor) {
        match self {
            Mark::Pass => ("PASS", GREEN),
            Mark::Fail => ("FAIL", VERMILLION),
            Mark::Inconclusive => ("INCONCLUSIVE", AMBER),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SignalRow {
    pub label: String,
    /// Of error, uncertainty and tolerance; may be empty.
    pub unit: String,
    /// E = prediction − measurement and half of its 90 % interval; `None` where there is nothing to compare.
    pub error: Option<(f64, f64)>,
    /// Largest |error| that counts as agreement, above 0.
    pub tolerance: f64,
    pub mark: Mark,
}

/// E of every signal with its 90 % interval, the one that is judged, in units of the signal's own tolerance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    pub title: String,
    pub rows: Vec<SignalRow>,
}

const ROW: f64 = 36.0;
const HEAD: f64 = 84.0;
const FOOT: f64 = 66.0;
/// Above E, half of its interval and the tolerance, in words.
const WORDS_TITLE: &str = "E ± 90 % interval (tolerance)";
/// Farthest tolerance that is drawn; what lies beyond becomes an arrow at the edge.
const FARTHEST: f64 = 4.0;

impl Verdicts {
    pub(super) fn height(&self) -> f64 {
        (HEAD + FOOT + ROW * self.rows.len() as f64).max(260.0)
    }

    pub(super) fn check(&self) -> Result<(), FigureError> {
        if self.rows.is_empty() {
            return Err(FigureError::Empty {
                figure: self.title.clone(),
                series: "the list of signals".to_string(),
            });
        }
        for (index, row) in self.rows.iter().enumerate() {
            let (error, half) = row.error.unwrap_or((0.0, 0.0));
            check_values(&self.title, &row.label, &[error, half, row.tolerance])?;
            if row.tolerance < 1e-100 {
                return Err(FigureError::NotPositive {
                    figure: self.title.clone(),
                    series: format!("tolerance of {}", row.label),
                    index,
                    value: row.tolerance,
                });
            }
        }
        Ok(())
    }

    /// Half width of the axis, in tolerances.
    fn reach(&self) -> f64 {
        let ends = self.rows.iter().filter_map(|row| {
            let (error, half) = row.error?;
            Some((error.abs() + half) / row.tolerance)
        });
        (1.08 * ends.fold(1.5, f64::max)).min(FARTHEST)
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let mut left = 0f64;
        let mut right = canvas.width(WORDS_TITLE, LABEL_EM)?;
        let mut verdict = 0f64;
        for row in &self.rows {
            left = left.max(canvas.width(&row.label, LABEL_EM)?);
            right = right.max(canvas.width(&in_words(row), LABEL_EM)?);
            verdict = verdict.max(canvas.width(row.mark.look().0, LABEL_EM)?);
        }
        let plot = Rect {
            left: cell.left + MARGIN + left + 16.0,
            top: cell.top + HEAD,
            right: cell.right - MARGIN - right - verdict - 32.0,
            bottom: cell.top + HEAD + ROW * self.rows.len() as f64,
        };
        let reach = self.reach();
        let mut axis = Axis::exact((-reach, reach), 6);
        thin(canvas, &mut axis, plot.width())?;
        let x = |value: f64| plot.left + axis.part(value) * plot.width();

        let title_base = cell.top + MARGIN + 0.8 * TITLE_EM;
        let title_at = (cell.left + MARGIN, title_base);
        title(canvas, &self.title, title_at, cell.width() - 2.0 * MARGIN)?;
        let head_base = plot.top - 12.0;
        let words_at = plot.right + 16.0;
        let verdict_at = words_at + right + 16.0;
        let quiet = (LABEL_EM, QUIET);
        canvas.text(WORDS_TITLE, (words_at, head_base), Align::Left, quiet)?;
        let within = Rect {
            left: x(-1.0),
            right: x(1.0),
            ..plot
        };
        canvas.fill(within, CALM_WASH)?;
        canvas.text(
            "within tolerance",
            (x(0.0), head_base),
            Align::Centre,
            (TICK_EM, GREEN),
        )?;
        for (value, label) in &axis.ticks {
            let at = x(*value);
            let line = [(at, plot.top), (at, plot.bottom)];
            canvas.line(&line, Stroke::full(GRID, THIN))?;
            let base = plot.bottom + 8.0 + 0.8 * TICK_EM;
            canvas.text(label, (at, base), Align::Centre, (TICK_EM, QUIET))?;
        }
        for value in [-1.0, 1.0] {
            let line = [(x(value), plot.top), (x(value), plot.bottom)];
            canvas.line(&line, Stroke::dashed(GREEN, 1.2, 5.0, 4.0))?;
        }
        let zero = [(x(0.0), plot.top), (x(0.0), plot.bottom)];
        canvas.line(&zero, Stroke::full(AXIS, THIN))?;
        let x_title = "error E = predicted − measured and its 90 % interval, in tolerances";
        let foot_base = plot.bottom + 16.0 + TICK_EM + LABEL_EM;
        // Longer than a narrow axis, it moves inwards before it leaves the cell.
        let half = 0.5 * canvas.width(x_title, LABEL_EM)?;
        let middle = x(0.0)
            .min(cell.right - MARGIN - half)
            .max(cell.left + MARGIN + half);
        canvas.text(x_title, (middle, foot_base), Align::Centre, quiet)?;

        for (i, row) in self.rows.iter().enumerate() {
            let y = plot.top + (i as f64 + 0.5) * ROW;
            let (word, color) = row.mark.look();
            canvas.text_beside(
                &row.label,
                (plot.left - 16.0, y),
                Align::Right,
                (LABEL_EM, INK),
            )?;
            canvas.text_beside(&in_words(row), (words_at, y), Align::Left, (LABEL_EM, INK))?;
            canvas.text_beside(word, (verdict_at, y), Align::Left, (LABEL_EM, color))?;
            let Some((error, half)) = row.error else {
                continue;
            };
            let (at, half) = (error / row.tolerance, half / row.tolerance);
            let cut = |value: f64| x(value.clamp(-reach, reach));
            if at.abs() - half < reach {
                let whisker = [(cut(at - half), y), (cut(at + half), y)];
                canvas.line(&whisker, Stroke::full(color, THICK))?;
            }
            if at.abs() > reach {
                arrow(canvas, (x(reach.copysign(at)), y), at.signum(), color)?;
            } else {
                shape(canvas, row.mark, (x(at), y), color)?;
            }
        }
        Ok(())
    }
}

/// Share of a tolerance below which a number is written as 0.
const ROUNDING: f64 = 1e-4;

/// E ± half of its interval and the tolerance of a row, to the digits that the interval or the tolerance deserves.
fn in_words(row: &SignalRow) -> String {
    let tolerance = short(row.tolerance, 2);
    let unit = match row.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let Some((error, half)) = row.error else {
        return format!("nothing to compare ({tolerance}){unit}");
    };
    let nought = |value: f64| value.abs() < ROUNDING * row.tolerance;
    if nought(error) && nought(half) {
        return format!("0 ({tolerance}){unit}");
    }
    let finest = match nought(half) {
        true => row.tolerance,
        false => row.tolerance.min(half),
    };
    let decimals = (1.0 - finest.log10().floor()).clamp(0.0, 5.0) as usize;
    let digits = |value: f64| {
        let text = number(value, decimals);
        match text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
            true => text,
            false if nought(value) => "0".to_string(),
            false => short(value, 1),
        }
    };
    let plus = if error > 0.0 && !nought(error) {
        "+"
    } else {
        ""
    };
    format!(
        "{plus}{} ± {} ({tolerance}){unit}",
        digits(error),
        digits(half)
    )
}

fn shape<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    mark: Mark,
    (x, y): (f64, f64),
    color: RGBColor,
) -> Result<(), FigureError> {
    match mark {
        Mark::Pass => canvas.disc((x, y), 6.5, color),
        Mark::Fail => {
            let r = 6.5;
            let stroke = Stroke::full(color, 3.6);
            canvas.line(&[(x - r, y - r), (x + r, y + r)], stroke)?;
            canvas.line(&[(x - r, y + r), (x + r, y - r)], stroke)
        }
        Mark::Inconclusive => {
            let diamond = |r: f64| [(x - r, y), (x, y - r), (x + r, y), (x, y + r)];
            canvas.polygon(&diamond(9.0), color)?;
            canvas.polygon(&diamond(5.0), PAPER)
        }
    }
}

fn arrow<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    (x, y): (f64, f64),
    sign: f64,
    color: RGBColor,
) -> Result<(), FigureError> {
    let back = x - sign * 14.0;
    canvas.polygon(&[(x, y), (back, y - 8.0), (back, y + 8.0)], color)
}

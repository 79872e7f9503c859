//! Title, legend, axes and grid around a plot; the legend has a line of its own, so that it covers no data.

use super::axis::Axis;
use super::canvas::{Align, Canvas, Rect, Stroke};
use super::error::FigureError;
use super::palette::*;
use plotters::prelude::DrawingBackend;
use plotters::style::RGBColor;

/// How a legend shows a series.
#[derive(Clone, Copy)]
pub(super) enum Swatch {
    Line(Stroke),
    Band(RGBColor),
    /// A line on a band.
    Both(Stroke, RGBColor),
    /// A line between the edges of a band.
    Edges(Stroke, Stroke),
}

pub(super) struct Key {
    pub swatch: Swatch,
    pub label: String,
}

impl Key {
    pub fn line(label: impl Into<String>, stroke: Stroke) -> Key {
        Key {
            swatch: Swatch::Line(stroke),
            label: label.into(),
        }
    }
}

/// A label to the right of the plot, at the height of `y`.
pub(super) struct SideLabel {
    pub y: f64,
    pub label: String,
    pub color: RGBColor,
}

/// What surrounds a plot.
pub(super) struct Look<'a> {
    pub title: &'a str,
    pub x_title: &'a str,
    pub y_title: &'a str,
    pub legend: Vec<Key>,
    pub side: Vec<SideLabel>,
}

/// A plot whose surroundings are drawn.
pub(super) struct Frame {
    pub x: Axis,
    pub y: Axis,
    pub plot: Rect,
}

const SWATCH: f64 = 26.0;
const GAP: f64 = 8.0;
const KEY_GAP: f64 = 22.0;
const MARGIN: f64 = 18.0;
const LINE_HEIGHT: f64 = 1.2;

impl Frame {
    /// Lays the plot out in `cell` and draws title, legend, side labels; [`Frame::grid`] comes next.
    pub fn new<DB: DrawingBackend>(
        canvas: &Canvas<DB>,
        cell: Rect,
        look: &Look,
        (x, y): (Axis, Axis),
    ) -> Result<Frame, FigureError> {
        let mut y_ticks = 0f64;
        for (_, label) in &y.ticks {
            y_ticks = y_ticks.max(canvas.width(label, TICK_EM)?);
        }
        let mut side = 0f64;
        for label in &look.side {
            side = side.max(canvas.width(&label.label, LABEL_EM)? + GAP);
        }
        let title_base = cell.top + MARGIN + 0.8 * TITLE_EM;
        let head_base = title_base + TITLE_EM * 0.5 + LABEL_EM * LINE_HEIGHT;
        let plot = Rect {
            left: cell.left + MARGIN + y_ticks + GAP,
            top: head_base + 14.0,
            right: cell.right - MARGIN - side,
            bottom: cell.bottom - MARGIN - TICK_EM - LABEL_EM * LINE_HEIGHT - 8.0,
        };
        let frame = Frame { x, y, plot };
        let left = cell.left + MARGIN;
        canvas.text(look.title, (left, title_base), Align::Left, (TITLE_EM, INK))?;
        canvas.text(
            look.y_title,
            (left, head_base),
            Align::Left,
            (LABEL_EM, QUIET),
        )?;
        legend(canvas, &look.legend, (cell.right - MARGIN, head_base))?;
        let x_base = cell.bottom - MARGIN;
        let x_mid = (plot.left + plot.right) / 2.0;
        canvas.text(
            look.x_title,
            (x_mid, x_base),
            Align::Centre,
            (LABEL_EM, QUIET),
        )?;
        frame.side_labels(canvas, &look.side)?;
        Ok(frame)
    }

    /// Draws grid, axes and tick labels; whatever should lie below the grid is drawn before.
    pub fn grid<DB: DrawingBackend>(&self, canvas: &Canvas<DB>) -> Result<(), FigureError> {
        let plot = self.plot;
        for (value, label) in &self.y.ticks {
            let y = self.y(*value);
            canvas.line(&[(plot.left, y), (plot.right, y)], Stroke::full(GRID, THIN))?;
            canvas.text_beside(label, (plot.left - GAP, y), Align::Right, (TICK_EM, QUIET))?;
        }
        for (value, label) in &self.x.ticks {
            let x = self.x(*value);
            let tick = [(x, plot.bottom), (x, plot.bottom + 5.0)];
            canvas.line(&tick, Stroke::full(AXIS, THIN))?;
            let base = plot.bottom + 8.0 + 0.8 * TICK_EM;
            canvas.text(label, (x, base), Align::Centre, (TICK_EM, QUIET))?;
        }
        let foot = [(plot.left, plot.bottom), (plot.right, plot.bottom)];
        canvas.line(&foot, Stroke::full(AXIS, THIN))
    }

    pub fn x(&self, value: f64) -> f64 {
        self.plot.left + self.x.part(value) * self.plot.width()
    }

    pub fn y(&self, value: f64) -> f64 {
        self.plot.bottom - self.y.part(value) * self.plot.height()
    }

    pub fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x(x), self.y(y))
    }

    /// `values` at indices 0, 1, 2, ….
    pub fn series<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        values: &[f64],
        stroke: Stroke,
    ) -> Result<(), FigureError> {
        let points: Vec<(f64, f64)> = indexed(values).map(|p| self.point(p)).collect();
        canvas.line(&points, stroke)
    }

    /// The area between two series over the same indices.
    pub fn band<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        (low, high): (&[f64], &[f64]),
        color: RGBColor,
    ) -> Result<(), FigureError> {
        let back: Vec<(f64, f64)> = indexed(low).collect();
        let outline: Vec<(f64, f64)> = indexed(high)
            .chain(back.into_iter().rev())
            .map(|p| self.point(p))
            .collect();
        canvas.polygon(&outline, color)
    }

    /// A line across the plot at `value`.
    pub fn level<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        value: f64,
        stroke: Stroke,
    ) -> Result<(), FigureError> {
        let y = self.y(value);
        canvas.line(&[(self.plot.left, y), (self.plot.right, y)], stroke)
    }

    /// Fills the plot between two values of y, cut at its edges.
    pub fn wash<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        (low, high): (f64, f64),
        color: RGBColor,
    ) -> Result<(), FigureError> {
        let cut = |value: f64| self.y(value).clamp(self.plot.top, self.plot.bottom);
        let (top, bottom) = (cut(high), cut(low));
        if bottom <= top {
            return Ok(());
        }
        let rect = Rect {
            top,
            bottom,
            ..self.plot
        };
        canvas.fill(rect, color)
    }

    /// Side labels, moved apart where they would overlap.
    fn side_labels<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        labels: &[SideLabel],
    ) -> Result<(), FigureError> {
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_by(|&a, &b| labels[b].y.total_cmp(&labels[a].y));
        let wanted: Vec<f64> = order.iter().map(|&i| self.y(labels[i].y)).collect();
        let limits = (self.plot.top, self.plot.bottom);
        let placed = apart(&wanted, LABEL_EM * LINE_HEIGHT, limits);
        for (&i, &y) in order.iter().zip(&placed) {
            let at = (self.plot.right + GAP, y);
            let label = &labels[i];
            canvas.text_beside(&label.label, at, Align::Left, (LABEL_EM, label.color))?;
        }
        Ok(())
    }
}

pub(super) fn indexed(values: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    values.iter().enumerate().map(|(i, &v)| (i as f64, v))
}

/// The legend on one line, ending at `right`.
fn legend<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    keys: &[Key],
    (right, base): (f64, f64),
) -> Result<(), FigureError> {
    let mut x = right;
    for (n, key) in keys.iter().rev().enumerate() {
        x -= canvas.width(&key.label, LABEL_EM)? + if n > 0 { KEY_GAP } else { 0.0 };
        canvas.text(&key.label, (x, base), Align::Left, (LABEL_EM, INK))?;
        x -= GAP + SWATCH;
        let y = base - 0.33 * LABEL_EM;
        if let Swatch::Band(color) | Swatch::Both(_, color) = key.swatch {
            let rect = Rect {
                left: x,
                top: y - 6.0,
                right: x + SWATCH,
                bottom: y + 6.0,
            };
            canvas.fill(rect, color)?;
        }
        if let Swatch::Edges(_, edge) = key.swatch {
            for y in [y - 6.0, y + 6.0] {
                canvas.line(&[(x, y), (x + SWATCH, y)], edge)?;
            }
        }
        if let Swatch::Line(stroke) | Swatch::Both(stroke, _) | Swatch::Edges(stroke, _) =
            key.swatch
        {
            canvas.line(&[(x, y), (x + SWATCH, y)], stroke)?;
        }
    }
    Ok(())
}

/// Positions at least `gap` apart, near the `wanted` ones (in ascending order) and inside `limits` where they fit.
fn apart(wanted: &[f64], gap: f64, (first, last): (f64, f64)) -> Vec<f64> {
    let mut placed = wanted.to_vec();
    for i in 1..placed.len() {
        placed[i] = placed[i].max(placed[i - 1] + gap);
    }
    let mut ceiling = last;
    for y in placed.iter_mut().rev() {
        *y = y.min(ceiling);
        ceiling = *y - gap;
    }
    let overshoot = placed.first().map_or(0.0, |&y| (first - y).max(0.0));
    placed.iter().map(|y| y + overshoot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_moved_apart_and_stay_inside() {
        assert_eq!(apart(&[10.0, 50.0], 5.0, (0.0, 100.0)), [10.0, 50.0]);
        assert_eq!(apart(&[10.0, 11.0], 5.0, (0.0, 100.0)), [10.0, 15.0]);
        assert_eq!(apart(&[98.0, 99.0], 5.0, (0.0, 100.0)), [95.0, 100.0]);
    }
}

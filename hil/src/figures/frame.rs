//! Title, legend, axes and grid around a plot; the legend has rows of its own, so that it covers nothing.

use super::axis::Axis;
use super::canvas::{Align, Canvas, Rect, Stroke};
use super::error::FigureError;
use super::palette::*;
use plotters::prelude::DrawingBackend;
use plotters::style::RGBColor;
use std::ops::Range;

/// How a legend shows a series: a line, between edges, on a band, as far as there are any.
#[derive(Clone, Copy, Default)]
pub(super) struct Swatch {
    pub line: Option<Stroke>,
    /// Above and below.
    pub edge: Option<[Stroke; 2]>,
    pub fill: Option<RGBColor>,
}

impl Swatch {
    pub fn line(stroke: Stroke) -> Swatch {
        Swatch {
            line: Some(stroke),
            ..Swatch::default()
        }
    }
}

pub(super) struct Key {
    pub swatch: Swatch,
    pub label: String,
}

impl Key {
    pub fn new(label: impl Into<String>, swatch: Swatch) -> Key {
        Key {
            swatch,
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
pub(super) const MARGIN: f64 = 18.0;
const LINE_HEIGHT: f64 = 1.2;

impl Frame {
    /// Lays the plot out in `cell` and draws title, legend, side labels; [`Frame::grid`] comes next.
    pub fn new<DB: DrawingBackend>(
        canvas: &Canvas<DB>,
        cell: Rect,
        look: &Look,
        (x, y): (Axis, Axis),
    ) -> Result<Frame, FigureError> {
        let top = head(canvas, cell, look)? + 14.0;
        let bottom = cell.bottom - MARGIN - TICK_EM - LABEL_EM * LINE_HEIGHT - 8.0;
        let (mut x, mut y) = (x, y);
        y.thin(bottom - top, |_| TICK_EM * LINE_HEIGHT);
        let y_ticks = widest(canvas, y.ticks.iter().map(|(_, label)| label), TICK_EM)?;
        let side = widest(canvas, look.side.iter().map(|side| &side.label), LABEL_EM)?;
        let side = if side > 0.0 { side + GAP } else { 0.0 };
        let plot = Rect {
            left: cell.left + MARGIN + y_ticks + GAP,
            top,
            right: cell.right - MARGIN - side,
            bottom,
        };
        thin(canvas, &mut x, plot.width())?;
        let frame = Frame { x, y, plot };
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
        let limits = (self.plot.top + 0.5 * LABEL_EM, self.plot.bottom);
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

/// The widest of some labels.
pub(super) fn widest<'a, DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    labels: impl IntoIterator<Item = &'a String>,
    em: f64,
) -> Result<f64, FigureError> {
    let mut labels = labels.into_iter();
    labels.try_fold(0f64, |most, label| Ok(most.max(canvas.width(label, em)?)))
}

/// Thins the ticks of a horizontal axis out by the width of their labels.
pub(super) fn thin<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    axis: &mut Axis,
    length: f64,
) -> Result<(), FigureError> {
    let labels = axis.ticks.iter().map(|(_, label)| label);
    // Labels of one axis differ little in width.
    let size = widest(canvas, labels, TICK_EM)? + GAP;
    axis.thin(length, |_| size);
    Ok(())
}

/// A title on the baseline through `at`, in smaller letters where it is longer than `room`.
pub(super) fn title<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    text: &str,
    at: (f64, f64),
    room: f64,
) -> Result<(), FigureError> {
    let width = canvas.width(text, TITLE_EM)?;
    let em = TITLE_EM * (room / width.max(1.0)).min(1.0);
    canvas.text(text, at, Align::Left, (em, INK))
}

/// Draws title, legend and title of the y axis at the top of `cell`; the last baseline.
pub(super) fn head<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    cell: Rect,
    look: &Look,
) -> Result<f64, FigureError> {
    let (left, right) = (cell.left + MARGIN, cell.right - MARGIN);
    let mut base = cell.top + MARGIN;
    if !look.title.is_empty() {
        base += 0.8 * TITLE_EM;
        title(canvas, look.title, (left, base), right - left)?;
        base += 0.5 * TITLE_EM;
    }
    let y_title = canvas.width(look.y_title, LABEL_EM)?;
    let mut widths = Vec::with_capacity(look.legend.len());
    for key in &look.legend {
        widths.push(SWATCH + GAP + canvas.width(&key.label, LABEL_EM)?);
    }
    let rows = rows(&widths, right - left - y_title - KEY_GAP);
    let long = rows.iter().map(|row| length(&widths[row.clone()]));
    let start = right - long.fold(0.0, f64::max);
    for row in &rows {
        base += LABEL_EM * LINE_HEIGHT;
        let mut x = start;
        for i in row.clone() {
            key(canvas, &look.legend[i], (x, base))?;
            x += widths[i] + KEY_GAP;
        }
    }
    if rows.is_empty() && !look.y_title.is_empty() {
        base += LABEL_EM * LINE_HEIGHT;
    }
    canvas.text(look.y_title, (left, base), Align::Left, (LABEL_EM, QUIET))?;
    Ok(base)
}

/// Length of a row of keys.
fn length(widths: &[f64]) -> f64 {
    widths.iter().sum::<f64>() + KEY_GAP * widths.len().saturating_sub(1) as f64
}

/// Keys in their order on as few rows as fit into `room`.
fn rows(widths: &[f64], room: f64) -> Vec<Range<usize>> {
    let mut rows: Vec<Range<usize>> = Vec::new();
    for i in 0..widths.len() {
        match rows.last_mut() {
            Some(row) if length(&widths[row.start..=i]) <= room => row.end = i + 1,
            _ => rows.push(i..i + 1),
        }
    }
    rows
}

/// A swatch and its label, from `x` on.
fn key<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    key: &Key,
    (x, base): (f64, f64),
) -> Result<(), FigureError> {
    let y = base - 0.33 * LABEL_EM;
    let (left, right) = (x, x + SWATCH);
    if let Some(color) = key.swatch.fill {
        let (top, bottom) = (y - 6.0, y + 6.0);
        let rect = Rect {
            left,
            top,
            right,
            bottom,
        };
        canvas.fill(rect, color)?;
    }
    let across = |y: f64| [(left, y), (right, y)];
    if let Some([above, below]) = key.swatch.edge {
        // Without a band between them they are a pair of lines.
        let half = if key.swatch.fill.is_some() { 6.0 } else { 3.0 };
        canvas.line(&across(y - half), above)?;
        canvas.line(&across(y + half), below)?;
    }
    if let Some(stroke) = key.swatch.line {
        canvas.line(&across(y), stroke)?;
    }
    let at = (right + GAP, base);
    canvas.text(&key.label, at, Align::Left, (LABEL_EM, INK))
}

/// Positions at least `gap` apart, near the `wanted` ones (in ascending order) and inside `limits` where they fit.
fn apart(wanted: &[f64], gap: f64, (first, last): (f64, f64)) -> Vec<f64> {
    let mut placed: Vec<f64> = wanted.iter().map(|y| y.max(first)).collect();
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
    fn keys_go_to_the_next_row_where_they_do_not_fit() {
        let lengths = |room: f64| -> Vec<usize> {
            let rows = rows(&[100.0, 100.0, 50.0, 300.0], room);
            rows.into_iter().map(|row| row.len()).collect()
        };
        assert_eq!(lengths(1000.0), [4]);
        assert_eq!(lengths(2.0 * 100.0 + KEY_GAP), [2, 1, 1]);
        assert_eq!(lengths(10.0), [1, 1, 1, 1]);
        assert!(rows(&[], 10.0).is_empty());
    }

    #[test]
    fn labels_are_moved_apart_and_stay_inside() {
        assert_eq!(apart(&[10.0, 50.0], 5.0, (0.0, 100.0)), [10.0, 50.0]);
        assert_eq!(apart(&[10.0, 11.0], 5.0, (0.0, 100.0)), [10.0, 15.0]);
        assert_eq!(apart(&[-9.0, 50.0], 5.0, (0.0, 100.0)), [0.0, 50.0]);
        assert_eq!(apart(&[98.0, 99.0], 5.0, (0.0, 100.0)), [95.0, 100.0]);
    }
}

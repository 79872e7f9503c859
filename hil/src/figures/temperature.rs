//! Temperature against the token index.

use super::axis::{Axis, extent, short};
use super::canvas::{Canvas, Rect, Stroke};
use super::error::{FigureError, check_positive};
use super::frame::{Frame, Look, SideLabel};
use super::pair::{self, Pair, X_TITLE};
use super::palette::*;
use plotters::prelude::DrawingBackend;

/// T of every sequence, on a logarithmic axis, between its bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Temperature {
    pub title: String,
    /// T per sequence, per token.
    pub measured: Vec<Vec<f64>>,
    pub predicted: Vec<Vec<f64>>,
    /// Bounds of the law; `None` for an open loop.
    pub t_min: Option<f64>,
    pub t_max: Option<f64>,
}

impl Temperature {
    fn bounds(&self) -> impl Iterator<Item = (&'static str, &f64)> {
        let named = [("min", &self.t_min), ("max", &self.t_max)];
        named
            .into_iter()
            .filter_map(|(name, t)| Some((name, t.as_ref()?)))
    }

    pub(super) fn check(&self) -> Result<(), FigureError> {
        pair::check(&self.title, &self.measured, &self.predicted)?;
        for (name, t) in self.bounds() {
            check_positive(&self.title, &format!("T {name}"), &[*t])?;
        }
        for sequence in self.measured.iter().chain(&self.predicted) {
            check_positive(&self.title, "temperature", sequence)?;
        }
        Ok(())
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let pair = Pair::new(&self.measured, &self.predicted);
        let values = pair.drawn().chain(self.bounds().map(|(_, t)| t));
        let range = extent(values).unwrap_or((1.0, 1.0));
        let look = Look {
            title: &self.title,
            x_title: X_TITLE,
            y_title: "T, log scale",
            legend: pair.keys(),
            side: self
                .bounds()
                .map(|(name, &t)| SideLabel {
                    y: t,
                    label: format!("{name} {}", short(t, 3)),
                    color: QUIET,
                })
                .collect(),
        };
        let axes = (Axis::index(0.0, pair.last()), Axis::log(range));
        let frame = Frame::new(canvas, cell, &look, axes)?;
        pair.draw_bands(canvas, &frame)?;
        frame.grid(canvas)?;
        for (_, &t) in self.bounds() {
            frame.level(canvas, t, Stroke::dashed(QUIET, THIN, 4.0, 4.0))?;
        }
        pair.draw_lines(canvas, &frame)
    }
}

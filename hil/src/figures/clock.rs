//! The entropic clock against the token index.

use super::axis::{Axis, extent, short};
use super::canvas::{Canvas, Rect, Stroke};
use super::error::{FigureError, check_series, check_values};
use super::frame::{Frame, Look, SideLabel};
use super::pair::X_TITLE;
use super::palette::*;
use plotters::prelude::DrawingBackend;

/// τ beside what it must be read against; each curve per token, nats, empty where it is not wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    pub title: String,
    /// τ of the tempered entropy.
    pub tau_nats: Vec<f64>,
    /// τ of the entropy at T = 1.
    pub tau_raw_nats: Vec<f64>,
    /// Mean τ of the same entropies in random order.
    pub surrogate_nats: Vec<f64>,
    /// H_0 − H_n.
    pub net_drop_nats: Vec<f64>,
    /// τ of the tempered entropy, as predicted.
    pub predicted_nats: Vec<f64>,
}

impl Clock {
    fn curves(&self) -> Vec<(&'static str, &[f64], Stroke)> {
        let all: [(_, &[f64], _); 5] = [
            ("net drop", &self.net_drop_nats, Stroke::full(QUIET, LINE)),
            (
                "shuffled",
                &self.surrogate_nats,
                Stroke::dashed(PURPLE, LINE, 2.0, 4.0),
            ),
            ("raw", &self.tau_raw_nats, Stroke::full(GREEN, LINE)),
            ("tempered", &self.tau_nats, Stroke::full(MEASURED, THICK)),
            (
                "predicted",
                &self.predicted_nats,
                Stroke::dashed(PREDICTED, THICK, 9.0, 5.0),
            ),
        ];
        all.into_iter()
            .filter(|(_, values, _)| !values.is_empty())
            .collect()
    }

    pub(super) fn check(&self) -> Result<(), FigureError> {
        check_series(&self.title, "τ", &self.tau_nats)?;
        self.curves()
            .iter()
            .try_for_each(|(name, values, _)| check_values(&self.title, name, values))
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let curves = self.curves();
        let values = curves.iter().flat_map(|(_, values, _)| values.iter());
        let range = extent(values.chain(&[0.0])).unwrap_or((0.0, 1.0));
        let last = curves.iter().map(|(_, values, _)| values.len() - 1).max();
        let side = curves.iter().filter_map(|(name, values, stroke)| {
            let &end = values.last()?;
            Some(SideLabel {
                y: end,
                label: format!("{name} {}", short(end, 3)),
                color: stroke.color,
            })
        });
        let look = Look {
            title: &self.title,
            x_title: X_TITLE,
            y_title: "entropic time τ, nats",
            legend: Vec::new(),
            side: side.collect(),
        };
        let x = Axis::index(0.0, last.unwrap_or(0) as f64);
        let frame = Frame::new(canvas, cell, &look, (x, Axis::linear(range, 5)))?;
        frame.grid(canvas)?;
        if range.0 < 0.0 {
            frame.level(canvas, 0.0, Stroke::full(AXIS, THIN))?;
        }
        curves
            .iter()
            .try_for_each(|(_, values, stroke)| frame.series(canvas, values, *stroke))
    }
}

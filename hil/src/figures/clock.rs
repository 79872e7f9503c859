//! The entropic clock against the token index.

use super::axis::{Axis, extent, short};
use super::canvas::{Canvas, Rect, Stroke};
use super::error::{FigureError, check_values};
use super::frame::{Frame, Key, Look, SideLabel, Swatch};
use super::pair::X_TITLE;
use super::palette::*;
use plotters::prelude::DrawingBackend;

/// τ beside what it must be read against, each a mean over sequences, per token, nats; empty where it is not wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    pub title: String,
    /// τ of the tempered entropy, as measured.
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

/// A curve with its name and, for the legend, what that means.
struct Curve<'a> {
    name: &'static str,
    meaning: &'static str,
    values: &'a [f64],
    stroke: Stroke,
}

impl Clock {
    /// The curves that are wanted, in the order of the legend.
    fn curves(&self) -> Vec<Curve<'_>> {
        let curve = |name, meaning, values, stroke| Curve {
            name,
            meaning,
            values,
            stroke,
        };
        let mut all = vec![
            curve(
                "measured",
                "measured",
                &self.tau_nats[..],
                Stroke::full(MEASURED, THICK),
            ),
            curve(
                "predicted",
                "predicted",
                &self.predicted_nats,
                Stroke::dashed(PREDICTED, THICK, 9.0, 5.0),
            ),
            curve(
                "raw",
                "raw: τ of H at T = 1",
                &self.tau_raw_nats,
                Stroke::full(GREEN, LINE),
            ),
            curve(
                "shuffled",
                "shuffled: τ of H in random order",
                &self.surrogate_nats,
                Stroke::dashed(PURPLE, LINE, 2.0, 4.0),
            ),
            curve(
                "net drop",
                "net drop: H₀ − H_t",
                &self.net_drop_nats,
                Stroke::full(QUIET, LINE),
            ),
        ];
        all.retain(|curve| !curve.values.is_empty());
        all
    }

    pub(super) fn check(&self) -> Result<(), FigureError> {
        if self.tau_nats.is_empty() && self.predicted_nats.is_empty() {
            return Err(FigureError::Empty {
                figure: self.title.clone(),
                series: "measured and predicted τ together".to_string(),
            });
        }
        let mut curves = self.curves().into_iter();
        curves.try_for_each(|curve| check_values(&self.title, curve.name, curve.values))
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let curves = self.curves();
        let values = curves.iter().flat_map(|curve| curve.values);
        let range = extent(values.chain(&[0.0])).unwrap_or((0.0, 1.0));
        let last = curves.iter().map(|curve| curve.values.len() - 1).max();
        let side = curves.iter().filter_map(|curve| {
            let &end = curve.values.last()?;
            Some(SideLabel {
                y: end,
                label: format!("{} {}", curve.name, short(end, 3)),
                color: curve.stroke.color,
            })
        });
        let keys = curves
            .iter()
            .map(|curve| Key::new(curve.meaning, Swatch::line(curve.stroke)));
        let look = Look {
            title: &self.title,
            x_title: X_TITLE,
            y_title: "mean τ, nats",
            legend: keys.collect(),
            side: side.collect(),
        };
        let x = Axis::index(0.0, last.unwrap_or(0) as f64);
        let frame = Frame::new(canvas, cell, &look, (x, Axis::linear(range, 5)))?;
        frame.grid(canvas)?;
        if range.0 < 0.0 {
            frame.level(canvas, 0.0, Stroke::full(AXIS, THIN))?;
        }
        // τ itself, in thick strokes, lies above what it is read against.
        let mut upwards: Vec<&Curve> = curves.iter().collect();
        upwards.sort_by(|a, b| a.stroke.width.total_cmp(&b.stroke.width));
        let mut upwards = upwards.into_iter();
        upwards.try_for_each(|curve| frame.series(canvas, curve.values, curve.stroke))
    }
}

//! Entropy against the token index.

use super::axis::{Axis, extent, short};
use super::canvas::{Canvas, Rect, Stroke};
use super::error::{FigureError, check_series, check_values};
use super::frame::{Frame, Key, Look, SideLabel, Swatch};
use super::pair::{self, Pair, X_TITLE};
use super::palette::*;
use plotters::prelude::DrawingBackend;

/// Share of the largest value below which the axis starts at 0.
const FAR: f64 = 0.4;
/// Shortest axis, nats.
const NARROWEST_NATS: f64 = 0.2;

/// H with its setpoint: of one sequence with the bounds of the estimator, or the 5–95 % bands of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entropy {
    pub title: String,
    /// H per sequence, per token, nats.
    pub measured: Vec<Vec<f64>>,
    pub predicted: Vec<Vec<f64>>,
    /// H*, nats; `None` for an open loop.
    pub target_nats: Option<f64>,
    /// Of the one measured sequence; not drawn beside several.
    pub bounds: Option<Bounds>,
}

/// What the estimator guarantees about H, per token, nats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    pub lower_nats: Vec<f64>,
    pub upper_nats: Vec<f64>,
}

impl Entropy {
    /// The bounds, where they are drawn.
    fn drawn_bounds(&self) -> Option<&Bounds> {
        self.bounds.as_ref().filter(|_| self.measured.len() == 1)
    }

    pub(super) fn check(&self) -> Result<(), FigureError> {
        pair::check(&self.title, &self.measured, &self.predicted)?;
        check_values(&self.title, "setpoint", self.target_nats.as_slice())?;
        let Some(bounds) = self.drawn_bounds() else {
            return Ok(());
        };
        for (name, values) in [
            ("lower bound", &bounds.lower_nats),
            ("upper bound", &bounds.upper_nats),
        ] {
            check_series(&self.title, name, values)?;
            if values.len() != self.measured[0].len() {
                return Err(FigureError::Length {
                    figure: self.title.clone(),
                    series: name.to_string(),
                    seen: values.len(),
                    expected: self.measured[0].len(),
                });
            }
        }
        Ok(())
    }

    /// Ends of the axis: what is drawn and the setpoint, and 0 unless all of it lies far from there.
    fn range(&self, pair: &Pair) -> (f64, f64) {
        let bounds = self.drawn_bounds().into_iter();
        let bounds = bounds.flat_map(|b| b.lower_nats.iter().chain(&b.upper_nats));
        let values = pair.drawn().chain(bounds).chain(&self.target_nats);
        let (low, high) = extent(values).unwrap_or((0.0, 1.0));
        if low < FAR * high {
            return (low.min(0.0), high);
        }
        // Never so near that the last digits of H fill the figure.
        let pad = (0.5 * (NARROWEST_NATS - (high - low))).max(0.0);
        ((low - pad).max(low.min(0.0)), high + pad)
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let pair = Pair::new(&self.measured, &self.predicted);
        let mut legend = pair.keys();
        if self.drawn_bounds().is_some() {
            let swatch = Swatch {
                fill: Some(BLUE_BAND),
                ..Swatch::default()
            };
            legend.push(Key::new("bounds of the estimator", swatch));
        }
        let look = Look {
            title: &self.title,
            x_title: X_TITLE,
            y_title: "entropy H, nats",
            legend,
            side: self
                .target_nats
                .iter()
                .map(|&h| SideLabel {
                    y: h,
                    label: format!("H* {}", short(h, 3)),
                    color: INK,
                })
                .collect(),
        };
        let y = Axis::linear(self.range(&pair), 5);
        let axes = (Axis::index(0.0, pair.last()), y);
        let frame = Frame::new(canvas, cell, &look, axes)?;
        if let Some(bounds) = self.drawn_bounds() {
            frame.band(canvas, (&bounds.lower_nats, &bounds.upper_nats), BLUE_BAND)?;
        }
        pair.draw_bands(canvas, &frame)?;
        frame.grid(canvas)?;
        pair.draw_lines(canvas, &frame)?;
        match self.target_nats {
            Some(h) => frame.level(canvas, h, Stroke::dashed(INK, 1.4, 2.0, 4.0)),
            None => Ok(()),
        }
    }
}

//! Entropy against the token index.

use super::axis::{Axis, extent, short};
use super::canvas::{Canvas, Rect, Stroke};
use super::error::{FigureError, check_series, check_values};
use super::frame::{Frame, Key, Look, SideLabel, Swatch};
use super::pair::{Pair, X_TITLE};
use super::palette::*;
use super::stats::Band;
use plotters::prelude::DrawingBackend;

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
    fn pair(&self) -> Pair<'_> {
        Pair {
            measured: &self.measured,
            predicted: &self.predicted,
        }
    }

    /// The bounds, where they are drawn.
    fn drawn_bounds(&self) -> Option<&Bounds> {
        self.bounds.as_ref().filter(|_| self.measured.len() == 1)
    }

    pub(super) fn check(&self) -> Result<(), FigureError> {
        self.pair().check(&self.title)?;
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

    /// Smallest and largest value on the axis, 0 included: bands where there are bands, else every value.
    fn range(&self, band: Option<&Band>) -> (f64, f64) {
        let pair = self.pair();
        let bounds = self.drawn_bounds().into_iter();
        let values: Vec<f64> = match band {
            Some(band) => band.low.iter().chain(&band.high).copied().collect(),
            None => self.measured.iter().flatten().copied().collect(),
        };
        let predicted = super::stats::band(pair.predicted);
        let values = values
            .iter()
            .chain(&predicted.low)
            .chain(&predicted.high)
            .chain(bounds.flat_map(|b| b.lower_nats.iter().chain(&b.upper_nats)))
            .chain(&self.target_nats);
        extent(values.chain(&[0.0])).unwrap_or((0.0, 1.0))
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let pair = self.pair();
        let band = pair.measured_band();
        let mut legend = pair.band_keys();
        if self.drawn_bounds().is_some() {
            legend.push(Key {
                swatch: Swatch::Band(BLUE_BAND),
                label: "bounds of the estimator".to_string(),
            });
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
        let y = Axis::linear(self.range(band.as_ref()), 5);
        let axes = (Axis::index(0.0, pair.last()), y);
        let frame = Frame::new(canvas, cell, &look, axes)?;
        if let Some(bounds) = self.drawn_bounds() {
            frame.band(canvas, (&bounds.lower_nats, &bounds.upper_nats), BLUE_BAND)?;
        }
        if let Some(band) = &band {
            frame.band(canvas, (&band.low, &band.high), BLUE_BAND)?;
        }
        frame.grid(canvas)?;
        pair.draw_medians(canvas, &frame)?;
        match self.target_nats {
            Some(h) => frame.level(canvas, h, Stroke::dashed(INK, 1.4, 2.0, 4.0)),
            None => Ok(()),
        }
    }
}

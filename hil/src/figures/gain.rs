//! Loop gain against the token index.

use super::axis::{Axis, extent};
use super::canvas::{Canvas, Rect, Stroke};
use super::error::FigureError;
use super::frame::{Frame, Look, SideLabel};
use super::pair::{self, Pair, X_TITLE};
use super::palette::*;
use plotters::prelude::DrawingBackend;

/// Below 0 an error grows, above 2 it is overcorrected until it grows.
const STABLE: (f64, f64) = (0.0, 2.0);
/// From this gain on the upper limit is near enough to be drawn.
const NEAR: f64 = 1.3;

/// The signed loop gain of every sequence against the interval in which the loop is stable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopGain {
    pub title: String,
    /// What the law's loop gain is, as in "ηV".
    pub formula: String,
    /// Gain per sequence, per token.
    pub measured: Vec<Vec<f64>>,
    pub predicted: Vec<Vec<f64>>,
}

impl LoopGain {
    pub(super) fn check(&self) -> Result<(), FigureError> {
        pair::check(&self.title, &self.measured, &self.predicted)
    }

    /// Whether any sequence comes near the upper limit, drawn or not.
    fn near_limit(&self) -> bool {
        let mut values = self.measured.iter().chain(&self.predicted).flatten();
        values.any(|&gain| gain > NEAR)
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let pair = Pair::new(&self.measured, &self.predicted);
        let near = self.near_limit();
        let limits: &[f64] = if near {
            &[STABLE.0, STABLE.1]
        } else {
            &[STABLE.0]
        };
        let (low, high) = extent(pair.drawn().chain(limits)).unwrap_or(STABLE);
        let air = 0.10 * (high - low);
        let y = Axis::exact((low - air, high + air), 5);
        let (bottom, top) = y.ends();
        let side = |y: f64, label: &str| SideLabel {
            y,
            label: label.to_string(),
            color: QUIET,
        };
        let upper = match near {
            true => side(STABLE.1, "unstable > 2"),
            false => side(top, "limit 2 is above"),
        };
        let y_title = format!("loop gain {}", self.formula);
        let look = Look {
            title: &self.title,
            x_title: X_TITLE,
            y_title: y_title.trim_end(),
            legend: pair.keys(),
            side: vec![upper, side(STABLE.0, "unstable < 0")],
        };
        let frame = Frame::new(canvas, cell, &look, (Axis::index(0.0, pair.last()), y))?;
        frame.wash(canvas, (STABLE.1, top), GREY_WASH)?;
        frame.wash(canvas, (bottom, STABLE.0), GREY_WASH)?;
        pair.draw_bands(canvas, &frame)?;
        frame.grid(canvas)?;
        for &limit in limits {
            frame.level(canvas, limit, Stroke::dashed(QUIET, 1.4, 6.0, 4.0))?;
        }
        pair.draw_lines(canvas, &frame)
    }
}

//! Loop gain against the token index.

use super::axis::{Axis, extent};
use super::canvas::{Canvas, Rect, Stroke};
use super::error::FigureError;
use super::frame::{Frame, Look, SideLabel};
use super::pair::{Pair, X_TITLE};
use super::palette::*;
use plotters::prelude::DrawingBackend;

/// Below 0 an error grows, above 2 it is overcorrected until it grows.
const STABLE: (f64, f64) = (0.0, 2.0);

/// The signed loop gain ηV of every sequence against the interval in which the loop is stable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopGain {
    pub title: String,
    /// ηV per sequence, per token.
    pub measured: Vec<Vec<f64>>,
    pub predicted: Vec<Vec<f64>>,
}

impl LoopGain {
    fn pair(&self) -> Pair<'_> {
        Pair {
            measured: &self.measured,
            predicted: &self.predicted,
        }
    }

    pub(super) fn check(&self) -> Result<(), FigureError> {
        self.pair().check(&self.title)
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let pair = self.pair();
        let (low, high) = extent(pair.values().chain(&[STABLE.0, STABLE.1])).unwrap_or(STABLE);
        let air = 0.10 * (high - low);
        let look = Look {
            title: &self.title,
            x_title: X_TITLE,
            y_title: "loop gain ηV",
            legend: pair.threads_keys(),
            side: [(STABLE.1, "unstable > 2"), (STABLE.0, "unstable < 0")]
                .map(|(y, label)| SideLabel {
                    y,
                    label: label.to_string(),
                    color: VERMILLION,
                })
                .into(),
        };
        let y = Axis::exact((low - air, high + air), 5);
        let frame = Frame::new(canvas, cell, &look, (Axis::index(0.0, pair.last()), y))?;
        let (bottom, top) = frame.y.ends();
        frame.wash(canvas, (STABLE.1, top), WARM_WASH)?;
        frame.wash(canvas, (bottom, STABLE.0), WARM_WASH)?;
        frame.grid(canvas)?;
        pair.draw_threads(canvas, &frame)?;
        for limit in [STABLE.0, STABLE.1] {
            frame.level(canvas, limit, Stroke::dashed(VERMILLION, 1.4, 6.0, 4.0))?;
        }
        Ok(())
    }
}

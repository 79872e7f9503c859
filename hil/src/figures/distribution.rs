//! Two samples of one quantity: histograms and distribution functions.

use super::axis::{Axis, extent};
use super::canvas::{Canvas, Rect, Stroke};
use super::error::{FigureError, check_series};
use super::frame::{Frame, Key, Look, MARGIN, Swatch, head};
use super::palette::*;
use super::stats::{bin_edges, density, ecdf};
use plotters::prelude::DrawingBackend;

/// Predicted and measured values of a quantity over an ensemble.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    pub title: String,
    /// Name and unit of the quantity, as in "time-averaged H, nats".
    pub quantity: String,
    pub measured: Vec<f64>,
    pub predicted: Vec<f64>,
}

impl Distribution {
    pub(super) fn check(&self) -> Result<(), FigureError> {
        check_series(&self.title, "measured", &self.measured)?;
        check_series(&self.title, "predicted", &self.predicted)
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let measured = Swatch {
            fill: Some(BLUE_BAND),
            ..Swatch::line(Self::stroke_measured())
        };
        let measured = Key::new(
            format!("measured: {} values", self.measured.len()),
            measured,
        );
        let predicted = Swatch::line(Self::stroke_predicted());
        let predicted = Key::new(
            format!("predicted: {} values", self.predicted.len()),
            predicted,
        );
        let look = Look {
            title: &self.title,
            x_title: "",
            y_title: "",
            legend: vec![measured, predicted],
            side: Vec::new(),
        };
        // One head over both plots, whose own heads hold the titles of their axes.
        let top = head(canvas, cell, &look)? - MARGIN;
        let middle = cell.left + 0.5 * cell.width();
        let left = Rect {
            top,
            right: middle,
            ..cell
        };
        let right = Rect {
            top,
            left: middle,
            ..cell
        };
        self.draw_histogram(canvas, left)?;
        self.draw_ecdf(canvas, right)
    }

    fn stroke_measured() -> Stroke {
        Stroke::full(MEASURED, LINE)
    }

    fn stroke_predicted() -> Stroke {
        Stroke::dashed(PREDICTED, LINE, 9.0, 5.0)
    }

    /// What surrounds one of the two plots.
    fn look(&self, y_title: &'static str) -> Look<'_> {
        Look {
            title: "",
            x_title: &self.quantity,
            y_title,
            legend: Vec::new(),
            side: Vec::new(),
        }
    }

    fn draw_histogram<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let edges = bin_edges(&self.measured, &self.predicted);
        let measured = density(&self.measured, &edges);
        let predicted = density(&self.predicted, &edges);
        let (_, highest) = extent(measured.iter().chain(&predicted)).unwrap_or((0.0, 1.0));
        let look = self.look("density");
        let x = Axis::linear((edges[0], edges[edges.len() - 1]), 5);
        let frame = Frame::new(canvas, cell, &look, (x, Axis::linear((0.0, highest), 5)))?;
        for (bin, &d) in measured.iter().enumerate() {
            let (x0, y) = frame.point((edges[bin], d));
            let rect = Rect {
                left: x0,
                top: y,
                right: frame.x(edges[bin + 1]),
                bottom: frame.plot.bottom,
            };
            canvas.fill(rect, BLUE_BAND)?;
        }
        frame.grid(canvas)?;
        for (densities, stroke) in [
            (&measured, Self::stroke_measured()),
            (&predicted, Self::stroke_predicted()),
        ] {
            let mut outline = vec![(edges[0], 0.0)];
            for (bin, &d) in densities.iter().enumerate() {
                outline.extend([(edges[bin], d), (edges[bin + 1], d)]);
            }
            outline.push((edges[edges.len() - 1], 0.0));
            let outline: Vec<(f64, f64)> = outline.into_iter().map(|p| frame.point(p)).collect();
            canvas.line(&outline, stroke)?;
        }
        Ok(())
    }

    fn draw_ecdf<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        cell: Rect,
    ) -> Result<(), FigureError> {
        let values = self.measured.iter().chain(&self.predicted);
        let x = Axis::linear(extent(values).unwrap_or((0.0, 1.0)), 5);
        let look = self.look("share below");
        let ends = x.ends();
        let frame = Frame::new(canvas, cell, &look, (x, Axis::exact((0.0, 1.0), 5)))?;
        frame.grid(canvas)?;
        for (values, stroke) in [
            (&self.measured, Self::stroke_measured()),
            (&self.predicted, Self::stroke_predicted()),
        ] {
            let corners = ecdf(values, ends);
            let corners: Vec<(f64, f64)> = corners.into_iter().map(|p| frame.point(p)).collect();
            canvas.line(&corners, stroke)?;
        }
        Ok(())
    }
}

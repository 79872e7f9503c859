//! Measured and predicted sequences over the token index, as three figures draw them.

use super::canvas::{Canvas, Stroke};
use super::error::{FigureError, check_series};
use super::frame::{Frame, Key, Swatch};
use super::palette::*;
use super::stats::{Band, band};
use plotters::prelude::DrawingBackend;

/// Measured sequences drawn one by one; the band speaks for the rest.
const DRAWN: usize = 24;

pub(super) const X_TITLE: &str = "index of the generated token";

pub(super) struct Pair<'a> {
    pub measured: &'a [Vec<f64>],
    pub predicted: &'a [Vec<f64>],
}

impl Pair<'_> {
    /// At least one side has a sequence; every sequence has finite values.
    pub fn check(&self, figure: &str) -> Result<(), FigureError> {
        if self.measured.is_empty() && self.predicted.is_empty() {
            return Err(FigureError::Empty {
                figure: figure.to_string(),
                series: "measured and predicted together".to_string(),
            });
        }
        for (side, sequences) in [("measured", self.measured), ("predicted", self.predicted)] {
            for (i, sequence) in sequences.iter().enumerate() {
                check_series(figure, &format!("{side} sequence {i}"), sequence)?;
            }
        }
        Ok(())
    }

    /// Every value of both sides.
    pub fn values(&self) -> impl Iterator<Item = &f64> {
        self.measured.iter().chain(self.predicted).flatten()
    }

    /// Index of the last token of the longest sequence.
    pub fn last(&self) -> f64 {
        let longest = self.measured.iter().chain(self.predicted).map(Vec::len);
        longest.max().unwrap_or(1).saturating_sub(1) as f64
    }

    fn stroke_measured() -> Stroke {
        Stroke::full(MEASURED, LINE)
    }

    fn stroke_predicted() -> Stroke {
        Stroke::dashed(PREDICTED, THICK, 9.0, 5.0)
    }

    fn edge_predicted() -> Stroke {
        Stroke::full(VERMILLION_LIGHT, 1.3)
    }

    fn predicted_key(&self) -> Option<Key> {
        let (line, edge) = (Self::stroke_predicted(), Self::edge_predicted());
        match self.predicted.len() {
            0 => None,
            1 => Some(Key::line("predicted", line)),
            n => Some(Key {
                swatch: Swatch::Edges(line, edge),
                label: format!("predicted ({n}), 5–95 %"),
            }),
        }
    }

    /// Of sequences that are drawn one by one.
    pub fn threads_keys(&self) -> Vec<Key> {
        let threads = Stroke::full(BLUE_LIGHT, LINE);
        let measured = match self.measured.len() {
            0 => None,
            1 => Some(Key::line("measured", Self::stroke_measured())),
            n if n <= DRAWN => Some(Key::line(format!("measured ({n})"), threads)),
            n => {
                let drawn = n.div_ceil(n.div_ceil(DRAWN));
                Some(Key::line(format!("measured ({drawn} of {n})"), threads))
            }
        };
        measured.into_iter().chain(self.predicted_key()).collect()
    }

    /// Measured sequences as threads, the prediction above them.
    pub fn draw_threads<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        frame: &Frame,
    ) -> Result<(), FigureError> {
        let thread = match self.measured.len() {
            1 => Self::stroke_measured(),
            _ => Stroke::full(BLUE_LIGHT, THIN),
        };
        let every = self.measured.len().div_ceil(DRAWN).max(1);
        for sequence in self.measured.iter().step_by(every) {
            frame.series(canvas, sequence, thread)?;
        }
        self.draw_predicted(canvas, frame)
    }

    /// Of sequences that are drawn as a median on a band.
    pub fn band_keys(&self) -> Vec<Key> {
        let line = Self::stroke_measured();
        let measured = match self.measured.len() {
            0 => None,
            1 => Some(Key::line("measured", line)),
            n => Some(Key {
                swatch: Swatch::Both(line, BLUE_BAND),
                label: format!("measured ({n})"),
            }),
        };
        measured.into_iter().chain(self.predicted_key()).collect()
    }

    pub fn measured_band(&self) -> Option<Band> {
        (self.measured.len() > 1).then(|| band(self.measured))
    }

    /// The measured median, or the one sequence, and the prediction above it.
    pub fn draw_medians<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        frame: &Frame,
    ) -> Result<(), FigureError> {
        match self.measured_band() {
            Some(band) => frame.series(canvas, &band.median, Self::stroke_measured())?,
            None => {
                for sequence in self.measured {
                    frame.series(canvas, sequence, Self::stroke_measured())?;
                }
            }
        }
        self.draw_predicted(canvas, frame)
    }

    fn draw_predicted<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        frame: &Frame,
    ) -> Result<(), FigureError> {
        let band = band(self.predicted);
        if self.predicted.len() > 1 {
            frame.series(canvas, &band.low, Self::edge_predicted())?;
            frame.series(canvas, &band.high, Self::edge_predicted())?;
        }
        frame.series(canvas, &band.median, Self::stroke_predicted())
    }
}

//! Measured and predicted sequences over the token index, as three figures draw them: the median on the band of 5–95 %,
//! with a few single sequences behind.

use super::canvas::{Canvas, Stroke};
use super::error::{FigureError, check_series};
use super::frame::{Frame, Key, Swatch};
use super::palette::*;
use super::stats::{Band, band};
use plotters::prelude::DrawingBackend;
use plotters::style::RGBColor;

/// Sequences of a side that are drawn one by one.
const SHOWN: usize = 2;

pub(super) const X_TITLE: &str = "index of the generated token";

/// How a side is drawn.
struct Look {
    name: &'static str,
    line: Stroke,
    /// A single sequence among several.
    thread: Stroke,
    fill: RGBColor,
    /// Around the band, where another band may cover it.
    edge: Option<Stroke>,
}

fn measured_look() -> Look {
    Look {
        name: "measured",
        line: Stroke::full(MEASURED, LINE),
        thread: Stroke::full(BLUE_LIGHT, FINE),
        fill: BLUE_BAND,
        edge: None,
    }
}

fn predicted_look() -> Look {
    Look {
        name: "predicted",
        line: Stroke::dashed(PREDICTED, THICK, 9.0, 5.0),
        thread: Stroke::full(VERMILLION_LIGHT, FINE),
        fill: VERMILLION_BAND,
        edge: Some(Stroke::full(VERMILLION_EDGE, 1.3)),
    }
}

struct Side<'a> {
    look: Look,
    sequences: &'a [Vec<f64>],
    band: Band,
}

impl Side<'_> {
    /// Some sequences, evenly among all; none where there is but one, since the line is that one.
    fn threads(&self) -> Vec<&Vec<f64>> {
        let (all, shown) = (self.sequences.len(), self.sequences.len().min(SHOWN));
        match all {
            0 | 1 => Vec::new(),
            _ => (0..shown)
                .map(|i| &self.sequences[i * all / shown])
                .collect(),
        }
    }

    fn key(&self) -> Option<Key> {
        let line = Swatch::line(self.look.line);
        let name = self.look.name;
        match self.sequences.len() {
            0 => None,
            1 => Some(Key::new(name, line)),
            _ => Some(Key::new(
                format!("{name}: median, 5–95 %"),
                Swatch {
                    fill: Some(self.look.fill),
                    edge: self.look.edge.map(|edge| [edge, edge]),
                    ..line
                },
            )),
        }
    }

    fn count(&self) -> Option<String> {
        let (all, shown) = (self.sequences.len(), self.threads().len());
        match shown {
            0 => None,
            _ if shown == all => Some(format!("{all}")),
            _ => Some(format!("{shown} of {all}")),
        }
    }
}

/// At least one side has a sequence; every sequence has finite values.
pub(super) fn check(
    figure: &str,
    measured: &[Vec<f64>],
    predicted: &[Vec<f64>],
) -> Result<(), FigureError> {
    if measured.is_empty() && predicted.is_empty() {
        return Err(FigureError::Empty {
            figure: figure.to_string(),
            series: "measured and predicted together".to_string(),
        });
    }
    for (side, sequences) in [("measured", measured), ("predicted", predicted)] {
        for (i, sequence) in sequences.iter().enumerate() {
            check_series(figure, &format!("{side} sequence {i}"), sequence)?;
        }
    }
    Ok(())
}

pub(super) struct Pair<'a> {
    measured: Side<'a>,
    predicted: Side<'a>,
}

impl<'a> Pair<'a> {
    pub fn new(measured: &'a [Vec<f64>], predicted: &'a [Vec<f64>]) -> Pair<'a> {
        let side = |look, sequences| Side {
            look,
            sequences,
            band: band(sequences),
        };
        Pair {
            measured: side(measured_look(), measured),
            predicted: side(predicted_look(), predicted),
        }
    }

    fn sides(&self) -> [&Side<'a>; 2] {
        [&self.measured, &self.predicted]
    }

    /// Every value that is drawn.
    pub fn drawn(&self) -> impl Iterator<Item = &f64> {
        self.sides().into_iter().flat_map(|side| {
            let threads = side.threads().into_iter().flatten();
            threads.chain(&side.band.low).chain(&side.band.high)
        })
    }

    /// Index of the last token of the longest sequence.
    pub fn last(&self) -> f64 {
        let longest = self.sides().map(|side| side.band.median.len());
        longest[0].max(longest[1]).saturating_sub(1) as f64
    }

    pub fn keys(&self) -> Vec<Key> {
        let sides = self.sides();
        let mut keys: Vec<Key> = sides.iter().filter_map(|side| side.key()).collect();
        let mut counts: Vec<String> = sides.iter().filter_map(|side| side.count()).collect();
        counts.dedup();
        if !counts.is_empty() {
            let threads = sides.iter().filter(|side| !side.threads().is_empty());
            let threads: Vec<Stroke> = threads.map(|side| side.look.thread).collect();
            let swatch = match threads[..] {
                [one, other] => Swatch {
                    edge: Some([one, other]),
                    ..Swatch::default()
                },
                _ => Swatch::line(threads[0]),
            };
            keys.push(Key::new(
                format!("{} sequences", counts.join(" and ")),
                swatch,
            ));
        }
        keys
    }

    /// The bands; the grid comes next, then [`Pair::draw_lines`].
    pub fn draw_bands<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        frame: &Frame,
    ) -> Result<(), FigureError> {
        for side in [&self.predicted, &self.measured] {
            if side.sequences.len() > 1 {
                let band = (&side.band.low[..], &side.band.high[..]);
                frame.band(canvas, band, side.look.fill)?;
            }
        }
        Ok(())
    }

    /// Single sequences, edges of bands and, above them, medians.
    pub fn draw_lines<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<DB>,
        frame: &Frame,
    ) -> Result<(), FigureError> {
        for side in self.sides() {
            for thread in side.threads() {
                frame.series(canvas, thread, side.look.thread)?;
            }
        }
        for side in self.sides() {
            if let (Some(edge), true) = (side.look.edge, side.sequences.len() > 1) {
                frame.series(canvas, &side.band.low, edge)?;
                frame.series(canvas, &side.band.high, edge)?;
            }
        }
        for side in self.sides() {
            frame.series(canvas, &side.band.median, side.look.line)?;
        }
        Ok(())
    }
}

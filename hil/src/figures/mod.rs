//! Figures of a run: plain numbers in, SVG and PNG out, both from one drawing function.
//!
//! Every figure checks its numbers first: an empty series or a number that is not finite is an error. Equal numbers
//! give equal bytes. Prediction and measurement differ by colour and by stroke, verdicts by colour, shape and word;
//! the colours are those of Okabe and Ito, which colour-blind readers can tell apart.

mod axis;
mod canvas;
mod clock;
mod distribution;
mod entropy;
mod error;
mod frame;
mod gain;
mod output;
mod pair;
mod palette;
mod raster;
mod stats;
mod temperature;
mod verdicts;

pub use clock::Clock;
pub use distribution::Distribution;
pub use entropy::{Bounds, Entropy};
pub use error::FigureError;
pub use gain::LoopGain;
pub use output::{Drawn, draw, panel, svg};
pub use temperature::Temperature;
pub use verdicts::{Mark, SignalRow, Verdicts};

use canvas::{Canvas, Rect};
use plotters::prelude::DrawingBackend;

/// A picture to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    Temperature(Temperature),
    Entropy(Entropy),
    LoopGain(LoopGain),
    Clock(Clock),
    Verdicts(Verdicts),
    Distribution(Distribution),
}

impl Figure {
    fn check(&self) -> Result<(), FigureError> {
        match self {
            Figure::Temperature(f) => f.check(),
            Figure::Entropy(f) => f.check(),
            Figure::LoopGain(f) => f.check(),
            Figure::Clock(f) => f.check(),
            Figure::Verdicts(f) => f.check(),
            Figure::Distribution(f) => f.check(),
        }
    }

    /// Width and height that the figure wants, in units of the drawing.
    fn size(&self) -> (f64, f64) {
        match self {
            Figure::Verdicts(f) => (1000.0, f.height()),
            _ => (1000.0, 560.0),
        }
    }

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<DB>, cell: Rect) -> Result<(), FigureError> {
        match self {
            Figure::Temperature(f) => f.draw(canvas, cell),
            Figure::Entropy(f) => f.draw(canvas, cell),
            Figure::LoopGain(f) => f.draw(canvas, cell),
            Figure::Clock(f) => f.draw(canvas, cell),
            Figure::Verdicts(f) => f.draw(canvas, cell),
            Figure::Distribution(f) => f.draw(canvas, cell),
        }
    }
}

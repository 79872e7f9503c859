//! Lines, shapes and text in units of the drawing, on any backend.

use super::error::FigureError;
use super::palette::INK;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::sync::OnceLock;

/// Families in order of preference; the first is the one that is drawn into bitmaps.
pub(super) const FONT: &str = "Ubuntu, Helvetica, Arial, sans-serif";

/// Makes the font known to the bitmap backend, once.
pub(super) fn register_font() -> Result<(), FigureError> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let done = DONE.get_or_init(|| {
        let bytes = epaint_default_fonts::UBUNTU_LIGHT;
        plotters::style::register_font(FONT, FontStyle::Normal, bytes).is_ok()
    });
    if *done {
        Ok(())
    } else {
        Err(FigureError::Font)
    }
}

/// How a backend turns a font size into letters.
#[derive(Clone, Copy)]
pub(super) struct TextScale {
    /// Size to ask for, per em wanted.
    pub size_per_em: f64,
    /// From the top anchor down to the baseline, per em.
    pub ascent_em: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Rect {
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Align {
    Left,
    Centre,
    Right,
}

#[derive(Clone, Copy)]
pub(super) struct Stroke {
    pub color: RGBColor,
    pub width: f64,
    /// Lengths on and off; `None` for a full line.
    pub dash: Option<(f64, f64)>,
}

impl Stroke {
    pub fn full(color: RGBColor, width: f64) -> Self {
        Stroke {
            color,
            width,
            dash: None,
        }
    }

    pub fn dashed(color: RGBColor, width: f64, on: f64, off: f64) -> Self {
        Stroke {
            color,
            width,
            dash: Some((on, off)),
        }
    }
}

pub(super) struct Canvas<DB: DrawingBackend> {
    pub area: DrawingArea<DB, Shift>,
    /// Pixels of the backend per unit.
    pub scale: f64,
    pub text: TextScale,
}

impl<DB: DrawingBackend> Canvas<DB> {
    fn at(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let px = |v: f64| (v * self.scale).round() as i32;
        (px(x), px(y))
    }

    fn draw_error(e: impl std::fmt::Display) -> FigureError {
        FigureError::Draw(e.to_string())
    }

    pub fn fill(&self, rect: Rect, color: RGBColor) -> Result<(), FigureError> {
        let corners = [
            self.at((rect.left, rect.top)),
            self.at((rect.right, rect.bottom)),
        ];
        self.area
            .draw(&Rectangle::new(corners, color.filled()))
            .map_err(Self::draw_error)
    }

    pub fn polygon(&self, points: &[(f64, f64)], color: RGBColor) -> Result<(), FigureError> {
        let points: Vec<(i32, i32)> = points.iter().map(|&p| self.at(p)).collect();
        self.area
            .draw(&Polygon::new(points, color.filled()))
            .map_err(Self::draw_error)
    }

    pub fn disc(
        &self,
        centre: (f64, f64),
        radius: f64,
        color: RGBColor,
    ) -> Result<(), FigureError> {
        let radius = (radius * self.scale).round().max(1.0) as u32;
        self.area
            .draw(&Circle::new(self.at(centre), radius, color.filled()))
            .map_err(Self::draw_error)
    }

    pub fn line(&self, points: &[(f64, f64)], stroke: Stroke) -> Result<(), FigureError> {
        match stroke.dash {
            None => self.path(points, stroke),
            Some((on, off)) => dashes(points, on, off)
                .iter()
                .try_for_each(|dash| self.path(dash, stroke)),
        }
    }

    /// A full line through the corners of `points`.
    fn path(&self, points: &[(f64, f64)], stroke: Stroke) -> Result<(), FigureError> {
        let pixels = corners(points.iter().map(|&p| self.at(p)));
        if pixels.len() < 2 {
            return match points.first() {
                Some(&point) => self.disc(point, stroke.width / 2.0, stroke.color),
                None => Ok(()),
            };
        }
        let width = (stroke.width * self.scale).round().max(1.0) as u32;
        let style = stroke.color.stroke_width(width);
        self.area
            .draw(&PathElement::new(pixels, style))
            .map_err(Self::draw_error)
    }

    /// `text` on the baseline that goes through `at`.
    pub fn text(
        &self,
        text: &str,
        at: (f64, f64),
        align: Align,
        (em, color): (f64, RGBColor),
    ) -> Result<(), FigureError> {
        let h_pos = match align {
            Align::Left => HPos::Left,
            Align::Centre => HPos::Center,
            Align::Right => HPos::Right,
        };
        let style = self.font(em).color(&color).pos(Pos::new(h_pos, VPos::Top));
        let top = at.1 - self.text.ascent_em * em;
        self.area
            .draw_text(text, &style, self.at((at.0, top)))
            .map_err(Self::draw_error)
    }

    /// `text` with the middle of its small letters at the height of `at`.
    pub fn text_beside(
        &self,
        text: &str,
        at: (f64, f64),
        align: Align,
        (em, color): (f64, RGBColor),
    ) -> Result<(), FigureError> {
        self.text(text, (at.0, at.1 + 0.33 * em), align, (em, color))
    }

    /// Width of `text`, with room for viewers that have another font.
    pub fn width(&self, text: &str, em: f64) -> Result<f64, FigureError> {
        const ROOM: f64 = 1.08;
        let (width, _) = self
            .area
            .estimate_text_size(text, &self.font(em))
            .map_err(Self::draw_error)?;
        Ok(f64::from(width) / self.scale * ROOM)
    }

    fn font(&self, em: f64) -> TextStyle<'static> {
        let size = em * self.text.size_per_em * self.scale;
        TextStyle::from((FONT, size).into_font()).color(&INK)
    }
}

/// `points` without repetitions, which have no direction to draw in, and without those inside a straight stretch,
/// where the bitmap backend would make a thick line bulge.
fn corners(points: impl Iterator<Item = (i32, i32)>) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::new();
    for point in points {
        if kept.last() == Some(&point) {
            continue;
        }
        if let [.., a, b] = kept[..] {
            let step = |from: (i32, i32), to: (i32, i32)| {
                (i64::from(to.0 - from.0), i64::from(to.1 - from.1))
            };
            let (p, q) = (step(a, b), step(b, point));
            let straight = p.0 * q.1 == p.1 * q.0 && p.0 * q.0 + p.1 * q.1 > 0;
            if straight {
                kept.pop();
            }
        }
        kept.push(point);
    }
    kept
}

/// The pieces of a dashed line along `points`.
fn dashes(points: &[(f64, f64)], on: f64, off: f64) -> Vec<Vec<(f64, f64)>> {
    let mut pieces = Vec::new();
    let mut piece: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    let (mut drawing, mut left) = (true, on);
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).hypot(y1 - y0);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let part = done / length;
            let point = (x0 + part * (x1 - x0), y0 + part * (y1 - y0));
            if drawing {
                piece.push(point);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![point];
            }
            drawing = !drawing;
            left = if drawing { on } else { off };
        }
        left -= length - done;
        if drawing {
            piece.push((x1, y1));
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_corners_and_its_reversals_alone() {
        let points = [(0, 0), (0, 0), (1, 1), (2, 2), (2, 5), (2, 3), (3, 3)];
        let kept = corners(points.into_iter());
        assert_eq!(kept, [(0, 0), (2, 2), (2, 5), (2, 3), (3, 3)]);
    }

    #[test]
    fn dashes_cover_their_share_of_a_line_and_turn_its_corners() {
        let pieces = dashes(&[(0.0, 0.0), (10.0, 0.0)], 3.0, 1.0);
        let expected = [[0.0, 3.0], [4.0, 7.0], [8.0, 10.0]];
        assert_eq!(pieces.len(), 3);
        for (piece, [from, to]) in pieces.iter().zip(expected) {
            assert_eq!(piece, &[(from, 0.0), (to, 0.0)]);
        }
        let corner = dashes(&[(0.0, 0.0), (2.0, 0.0), (2.0, 5.0)], 4.0, 9.0);
        assert_eq!(corner, [[(0.0, 0.0), (2.0, 0.0), (2.0, 2.0)]]);
    }
}

//! The bitmap backend with letters where their font puts them: the one of plotters drops each letter's left bearing.

use super::error::FigureError;
use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use plotters::backend::{BitMapBackend, DrawingBackend};
use plotters_backend::text_anchor::HPos;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind,
};

pub(super) struct Raster<'a> {
    bitmap: BitMapBackend<'a>,
    font: FontRef<'static>,
}

impl<'a> Raster<'a> {
    pub fn new(bitmap: BitMapBackend<'a>) -> Result<Self, FigureError> {
        let font = FontRef::try_from_slice(epaint_default_fonts::UBUNTU_LIGHT);
        Ok(Raster {
            bitmap,
            font: font.map_err(|_| FigureError::Font)?,
        })
    }
}

type Failed<'a> = DrawingErrorKind<<BitMapBackend<'a> as DrawingBackend>::ErrorType>;

impl<'a> DrawingBackend for Raster<'a> {
    type ErrorType = <BitMapBackend<'a> as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.bitmap.get_size()
    }

    fn ensure_prepared(&mut self) -> Result<(), Failed<'a>> {
        self.bitmap.ensure_prepared()
    }

    fn present(&mut self) -> Result<(), Failed<'a>> {
        self.bitmap.present()
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> Result<(), Failed<'a>> {
        self.bitmap.draw_pixel(at, color)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Result<(), Failed<'a>> {
        self.bitmap.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Result<(), Failed<'a>> {
        self.bitmap.draw_rect(upper_left, bottom_right, style, fill)
    }

    /// Text whose top (ascender) lies at `at`, in the font of the figures whatever `style` names.
    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        at: BackendCoord,
    ) -> Result<(), Failed<'a>> {
        let scale = PxScale::from(style.size() as f32);
        let scaled = self.font.as_scaled(scale);
        let advance = |c: char| scaled.h_advance(scaled.glyph_id(c));
        let width: f32 = text.chars().map(advance).sum();
        let mut x = at.0 as f32
            - match style.anchor().h_pos {
                HPos::Left => 0.0,
                HPos::Center => width / 2.0,
                HPos::Right => width,
            };
        let baseline = at.1 as f32 + scaled.ascent();
        let BackendColor { alpha, rgb } = style.color();
        for c in text.chars() {
            let glyph = scaled
                .glyph_id(c)
                .with_scale_and_position(scale, point(x, baseline));
            x += advance(c);
            let Some(outline) = self.font.outline_glyph(glyph) else {
                continue;
            };
            let corner = outline.px_bounds().min;
            let mut dots = Vec::new();
            outline.draw(|dx, dy, cover| dots.push((dx, dy, cover)));
            for (dx, dy, cover) in dots {
                let dot = (corner.x as i32 + dx as i32, corner.y as i32 + dy as i32);
                let color = BackendColor {
                    alpha: alpha * f64::from(cover),
                    rgb,
                };
                self.bitmap.draw_pixel(dot, color)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_every_letter_that_the_figures_use() {
        let font = FontRef::try_from_slice(epaint_default_fonts::UBUNTU_LIGHT).unwrap();
        let missing = font.glyph_id('\u{e123}');
        for c in (' '..='~').chain("ηΔτσκ±≥≤*−–²·₀".chars()) {
            assert_ne!(font.glyph_id(c), missing, "{c}");
        }
    }
}

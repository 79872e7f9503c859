//! From a figure to SVG text and to the bytes of a PNG file.

use super::Figure;
use super::canvas::{Canvas, Rect, TextScale, register_font};
use super::error::FigureError;
use super::palette::PAPER;
use super::raster::Raster;
use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::drawing::IntoDrawingArea;

/// A picture in both formats, not yet written anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    pub svg: String,
    pub png: Vec<u8>,
}

/// Units of the SVG's inner coordinates per unit of the drawing: they are whole numbers, so fine ones.
const SVG_SCALE: u32 = 10;
const SVG_TEXT: TextScale = TextScale {
    size_per_em: 1.24,
    ascent_em: 0.76,
};

/// Pixels of the PNG per unit, and finer pixels per pixel and direction that are averaged.
const PNG_SCALE: u32 = 2;
const FINER: u32 = 2;
/// Sizes of the font go from ascender to descender, 1.121 em.
const PNG_TEXT: TextScale = TextScale {
    size_per_em: 1.121,
    ascent_em: 0.932,
};

/// One or several figures on a sheet.
struct Sheet<'a> {
    cells: Vec<(&'a Figure, Rect)>,
    width: u32,
    height: u32,
}

fn single(figure: &Figure) -> Sheet<'_> {
    let (right, bottom) = figure.size();
    let whole = Rect {
        left: 0.0,
        top: 0.0,
        right,
        bottom,
    };
    Sheet {
        cells: vec![(figure, whole)],
        width: right.ceil() as u32,
        height: bottom.ceil() as u32,
    }
}

/// The figure as an SVG document of its natural size; text stays text.
pub fn svg(figure: &Figure) -> Result<String, FigureError> {
    sheet_svg(&single(figure))
}

/// The figure as SVG and as PNG (2 pixels per unit).
pub fn draw(figure: &Figure) -> Result<Drawn, FigureError> {
    drawn(&single(figure))
}

/// Several figures on one sheet of two columns; the last of an odd number takes both.
pub fn panel(figures: &[Figure]) -> Result<Drawn, FigureError> {
    drawn(&sheet(figures))
}

fn sheet(figures: &[Figure]) -> Sheet<'_> {
    const CELL: (f64, f64) = (720.0, 440.0);
    let cell = |i: usize| {
        let (column, row) = ((i % 2) as f64, (i / 2) as f64);
        let alone = i.is_multiple_of(2) && i + 1 == figures.len();
        let columns = if alone { 2.0 } else { 1.0 };
        Rect {
            left: column * CELL.0,
            top: row * CELL.1,
            right: (column + columns) * CELL.0,
            bottom: (row + 1.0) * CELL.1,
        }
    };
    let cells = figures.iter().enumerate().map(|(i, f)| (f, cell(i)));
    Sheet {
        cells: cells.collect(),
        width: (2.0 * CELL.0) as u32,
        height: (figures.len().div_ceil(2) as f64 * CELL.1) as u32,
    }
}

/// The one drawing function, on whichever backend.
fn draw_on<DB: DrawingBackend>(
    sheet: &Sheet,
    backend: DB,
    scale: u32,
    text: TextScale,
) -> Result<(), FigureError> {
    register_font()?;
    sheet
        .cells
        .iter()
        .try_for_each(|(figure, _)| figure.check())?;
    let canvas = Canvas {
        area: backend.into_drawing_area(),
        scale: f64::from(scale),
        text,
    };
    let paper = Rect {
        left: 0.0,
        top: 0.0,
        right: f64::from(sheet.width),
        bottom: f64::from(sheet.height),
    };
    canvas.fill(paper, PAPER)?;
    for (figure, cell) in &sheet.cells {
        figure.draw(&canvas, *cell)?;
    }
    canvas
        .area
        .present()
        .map_err(|e| FigureError::Draw(e.to_string()))
}

fn sheet_svg(sheet: &Sheet) -> Result<String, FigureError> {
    let mut text = String::new();
    let (width, height) = (sheet.width * SVG_SCALE, sheet.height * SVG_SCALE);
    let backend = SVGBackend::with_string(&mut text, (width, height));
    draw_on(sheet, backend, SVG_SCALE, SVG_TEXT)?;
    // The viewer's size is in units, the inner coordinates stay fine.
    let fine = format!("<svg width=\"{width}\" height=\"{height}\" ");
    let coarse = format!(
        "<svg width=\"{}\" height=\"{}\" ",
        sheet.width, sheet.height
    );
    Ok(text.replacen(&fine, &coarse, 1))
}

/// Red, green and blue of every pixel, row by row, averaged from finer ones.
fn sheet_pixels(sheet: &Sheet) -> Result<(Vec<u8>, (u32, u32)), FigureError> {
    let size = (sheet.width * PNG_SCALE, sheet.height * PNG_SCALE);
    let fine = (size.0 * FINER, size.1 * FINER);
    let mut pixels = vec![255u8; (fine.0 * fine.1 * 3) as usize];
    let backend = Raster::new(BitMapBackend::with_buffer(&mut pixels, fine))?;
    draw_on(sheet, backend, PNG_SCALE * FINER, PNG_TEXT)?;
    Ok((average(&pixels, size), size))
}

/// `fine`, of `FINER` times `size`, brought down to `size`.
fn average(fine: &[u8], (width, height): (u32, u32)) -> Vec<u8> {
    let (width, height, n) = (width as usize, height as usize, FINER as usize);
    let stride = width * n * 3;
    let mut out = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let corner = y * n * stride + x * n * 3 + channel;
                let sum: usize = (0..n * n)
                    .map(|i| usize::from(fine[corner + i / n * stride + i % n * 3]))
                    .sum();
                out.push(((sum + n * n / 2) / (n * n)) as u8);
            }
        }
    }
    out
}

fn drawn(sheet: &Sheet) -> Result<Drawn, FigureError> {
    Ok(Drawn {
        svg: sheet_svg(sheet)?,
        png: sheet_png(sheet)?,
    })
}

fn sheet_png(sheet: &Sheet) -> Result<Vec<u8>, FigureError> {
    let failed = |e: png::EncodingError| FigureError::Draw(e.to_string());
    let (pixels, (width, height)) = sheet_pixels(sheet)?;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

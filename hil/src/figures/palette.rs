//! Colours, widths and sizes, in units of the drawing.

use plotters::style::RGBColor;

pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
pub(super) const QUIET: RGBColor = RGBColor(92, 92, 92);
pub(super) const GRID: RGBColor = RGBColor(229, 229, 229);
pub(super) const AXIS: RGBColor = RGBColor(150, 150, 150);

// Okabe and Ito.
pub(super) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(super) const VERMILLION: RGBColor = RGBColor(213, 94, 0);
pub(super) const GREEN: RGBColor = RGBColor(0, 158, 115);
pub(super) const PURPLE: RGBColor = RGBColor(170, 85, 140);
pub(super) const AMBER: RGBColor = RGBColor(200, 140, 0);

/// One of many predicted sequences, the band of them and its edges.
pub(super) const VERMILLION_LIGHT: RGBColor = RGBColor(242, 192, 155);
pub(super) const VERMILLION_BAND: RGBColor = RGBColor(252, 236, 224);
pub(super) const VERMILLION_EDGE: RGBColor = RGBColor(228, 144, 82);
/// One of many measured sequences, and the band of them.
pub(super) const BLUE_LIGHT: RGBColor = RGBColor(150, 196, 223);
pub(super) const BLUE_BAND: RGBColor = RGBColor(217, 234, 244);
/// Where a loop is unstable, or an error within its tolerance.
pub(super) const GREY_WASH: RGBColor = RGBColor(242, 242, 242);
pub(super) const CALM_WASH: RGBColor = RGBColor(231, 244, 240);

pub(super) const MEASURED: RGBColor = BLUE;
pub(super) const PREDICTED: RGBColor = VERMILLION;

pub(super) const FINE: f64 = 0.8;
pub(super) const THIN: f64 = 1.0;
pub(super) const LINE: f64 = 1.8;
pub(super) const THICK: f64 = 2.6;

pub(super) const TITLE_EM: f64 = 20.0;
pub(super) const LABEL_EM: f64 = 16.0;
pub(super) const TICK_EM: f64 = 15.0;

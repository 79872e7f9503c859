//! Progress bars, on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar on standard error; invisible where that is no terminal.
pub fn bar(unit: Unit) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(0), target);
    let template = match unit {
        Unit::Count(name) => format!("{{msg:<18}} {{bar:32}} {{pos}}/{{len}} {name} {{eta}}"),
        Unit::Bytes => "{msg:<18} {bar:32} {bytes}/{total_bytes} {eta}".to_owned(),
    };
    // A template of this program's own that does not parse leaves the plain bar.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}

/// What a bar counts.
pub enum Unit {
    Count(&'static str),
    Bytes,
}

//! Standard output: text for people, JSON for machines.

use crate::failure::Failure;
use serde::Serialize;
use std::io::Write;

pub fn text(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Pretty JSON and a newline.
pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::fault)?;
    self::text(&(text + "\n"))
}

/// One line of JSON.
pub fn json_line<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::fault)?;
    self::text(&(text + "\n"))
}

/// Bytes with a decimal unit.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_shown_with_the_unit_that_keeps_them_short() {
        for (count, text) in [
            (999, "999 B"),
            (2_500_000, "2.5 MB"),
            (98_362_432, "98.4 MB"),
            (3 << 30, "3.2 GB"),
        ] {
            assert_eq!(super::bytes(count), text);
        }
    }
}

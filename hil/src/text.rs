//! Reads a text file that a person named: UTF-8 and of bounded size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The text of `path`, without the mark that some editors put in front.
///
/// # Errors
/// A directory, a text of more than `most_bytes`, bytes that are not UTF-8, or whatever the system says.
pub fn read_text(path: &Path, most_bytes: u64) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let allowed_kib = most_bytes >> 10;
        return Err(io::Error::other(format!(
            "it has more than {allowed_kib} KiB"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        io::Error::other(format!("byte {valid} is not UTF-8"))
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_whole_or_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_text(&path, 1024).map_err(|error| error.to_string())
        };
        assert_eq!(read("\u{feff}é".as_bytes()).unwrap(), "é");
        assert_eq!(read(&[b'x'; 1024]).unwrap().len(), 1024);
        assert_eq!(read(&[b'x'; 1025]).unwrap_err(), "it has more than 1 KiB");
        assert_eq!(read(b"ab\xff").unwrap_err(), "byte 2 is not UTF-8");
        let error = read_text(folder.path(), 9).unwrap_err();
        assert_eq!(error.to_string(), "it is a directory");
    }
}

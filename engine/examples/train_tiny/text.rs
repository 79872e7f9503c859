//! The training text: its digest and its three splits.

use sha2::{Digest, Sha256};

/// Shares of the text, by position, that end the train and the dev split.
const CUTS: [f64; 2] = [0.90, 0.95];

/// The three splits of one text, in text order; together they are the whole text.
pub struct Splits<'a> {
    pub train: &'a str,
    pub dev: &'a str,
    pub test: &'a str,
}

/// Cuts by position at 90 % and 95 %, each cut moved on to the next blank line so that no speech is torn.
pub fn split(text: &str) -> Splits<'_> {
    let [a, b] = CUTS.map(|share| next_block(text, (text.len() as f64 * share) as usize));
    Splits {
        train: &text[..a],
        dev: &text[a..b],
        test: &text[b..],
    }
}

fn next_block(text: &str, from: usize) -> usize {
    let from = text.ceil_char_boundary(from);
    text[from..]
        .find("\n\n")
        .map_or(text.len(), |found| from + found + 2)
}

/// Lower-case hexadecimal SHA-256 of the file's bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_join_to_the_text_and_start_at_speeches() {
        let text = "A:\nwords é here\n\n".repeat(100);
        let s = split(&text);
        assert_eq!([s.train, s.dev, s.test].concat(), text);
        for part in [s.train, s.dev, s.test] {
            assert!(part.starts_with("A:\n"));
        }
    }

    #[test]
    fn digest_of_abc_is_the_published_one() {
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}

//! What happens to a text before its pieces are merged: one pipeline per `tokenizer.ggml.pre`.

use tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;

use super::TokenizerError;

type Pipeline = fn() -> PreTokenizerWrapper;

const PIPELINES: [(&str, Pipeline); 1] = [("smollm", single_digits_then_gpt2)];

/// The pipeline of a `tokenizer.ggml.pre` name.
pub(super) fn pipeline(name: &str) -> Result<PreTokenizerWrapper, TokenizerError> {
    let known = PIPELINES.iter().find(|(known, _)| *known == name);
    match known {
        Some((_, build)) => Ok(build()),
        None => Err(TokenizerError::UnsupportedPre {
            seen: name.to_owned(),
            supported: PIPELINES.map(|(known, _)| format!("`{known}`")).join(", "),
        }),
    }
}

fn single_digits_then_gpt2() -> PreTokenizerWrapper {
    let digits = PreTokenizerWrapper::Digits(Digits::new(true));
    Sequence::new(vec![digits, PreTokenizerWrapper::ByteLevel(byte_level())]).into()
}

/// Bytes as symbols; splits by the GPT-2 expression; no space is put in front.
pub(super) fn byte_level() -> ByteLevel {
    ByteLevel::new(false, false, true)
}

/// The bytes that a byte-level vocabulary cannot spell, ascending.
pub(super) fn missing_bytes(has: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut buffer = [0_u8; 4];
    symbols()
        .filter(|(_, symbol)| !has(symbol.encode_utf8(&mut buffer)))
        .map(|(byte, _)| byte)
        .collect()
}

/// GPT-2's spelling of the 256 bytes: printable Latin-1 stands for itself, the others take the code
/// points from U+0100 in order.
fn symbols() -> impl Iterator<Item = (u8, char)> {
    let mut next = 0x100_u32..;
    (0..=u8::MAX).map(move |byte| match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => (byte, char::from(byte)),
        _ => {
            let code = next.next().unwrap_or(0xfffd);
            (
                byte,
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_symbols_are_the_alphabet_of_the_tokenizers_crate() {
        let ours: std::collections::BTreeSet<char> = symbols().map(|(_, c)| c).collect();
        let theirs: std::collections::BTreeSet<char> = ByteLevel::alphabet().into_iter().collect();
        assert_eq!(ours.len(), 256);
        assert_eq!(ours, theirs);
    }

    #[test]
    fn a_space_is_spelled_with_a_dotted_capital_g() {
        assert!(symbols().any(|pair| pair == (b' ', 'Ġ')));
        assert!(symbols().any(|pair| pair == (b'\n', 'Ċ')));
    }
}

//! What happens to a text before its pieces are merged: one recipe per `tokenizer.ggml.pre`.
//!
//! | name | splits | digits | bos | other |
//! |---|---|---|---|---|
//! | gpt-2 | GPT-2's expression | in one piece, a space in front | no | |
//! | smollm | single digits, then GPT-2's | one by one | no | |
//! | llama-bpe | Llama 3's expression | up to three | yes | a piece that is a token is taken whole, merges or not |
//! | qwen2 | Qwen 2's expression | one by one | no | text in normal form C |
//!
//! Source: the `tokenizer.json` files of the models' makers, and the table of the same names in llama.cpp.

use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior};

use super::TokenizerError;

const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// How texts are prepared, and what else the name implies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recipe {
    name: &'static str,
    splits: Splits,
    /// A piece that is a token stays whole although no merges lead to it.
    pub(super) ignore_merges: bool,
    /// A beginning of text is put in front unless the file says otherwise.
    pub(super) adds_bos: bool,
    /// Texts are brought into Unicode normal form C.
    composes: bool,
}

#[derive(Debug, Clone, Copy)]
enum Splits {
    Gpt2,
    DigitsThenGpt2,
    Expression(&'static str),
}

const RECIPES: [Recipe; 4] = [
    Recipe {
        name: "gpt-2",
        splits: Splits::Gpt2,
        ignore_merges: false,
        adds_bos: false,
        composes: false,
    },
    Recipe {
        name: "smollm",
        splits: Splits::DigitsThenGpt2,
        ignore_merges: false,
        adds_bos: false,
        composes: false,
    },
    Recipe {
        name: "llama-bpe",
        splits: Splits::Expression(LLAMA3),
        ignore_merges: true,
        adds_bos: true,
        composes: false,
    },
    Recipe {
        name: "qwen2",
        splits: Splits::Expression(QWEN2),
        ignore_merges: false,
        adds_bos: false,
        composes: true,
    },
];

impl Recipe {
    /// The recipe of a `tokenizer.ggml.pre` name.
    pub(super) fn of(name: &str) -> Result<Self, TokenizerError> {
        let known = RECIPES.into_iter().find(|recipe| recipe.name == name);
        known.ok_or_else(|| TokenizerError::UnsupportedPre {
            seen: name.to_owned(),
            supported: RECIPES
                .map(|recipe| format!("`{}`", recipe.name))
                .join(", "),
        })
    }

    pub(super) fn normaliser(&self) -> Option<NormalizerWrapper> {
        self.composes.then_some(NormalizerWrapper::NFC(NFC))
    }

    /// Splits a text into pieces and spells their bytes as symbols.
    pub(super) fn pre_tokeniser(&self) -> Result<PreTokenizerWrapper, TokenizerError> {
        let first = match self.splits {
            Splits::Gpt2 => return Ok(PreTokenizerWrapper::ByteLevel(byte_level())),
            Splits::DigitsThenGpt2 => {
                let digits = PreTokenizerWrapper::Digits(Digits::new(true));
                let gpt2 = PreTokenizerWrapper::ByteLevel(byte_level());
                return Ok(Sequence::new(vec![digits, gpt2]).into());
            }
            Splits::Expression(expression) => SplitPattern::Regex(expression.to_owned()),
        };
        let split = Split::new(first, SplitDelimiterBehavior::Isolated, false);
        let split = split.map_err(|e| TokenizerError::Build {
            reason: e.to_string(),
        })?;
        let spell = byte_level().use_regex(false);
        Ok(Sequence::new(vec![
            PreTokenizerWrapper::Split(split),
            PreTokenizerWrapper::ByteLevel(spell),
        ])
        .into())
    }
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
    use tokenizers::tokenizer::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    #[test]
    fn the_byte_symbols_are_the_alphabet_of_the_tokenizers_crate() {
        let ours: std::collections::BTreeSet<char> = symbols().map(|(_, c)| c).collect();
        let theirs: std::collections::BTreeSet<char> = ByteLevel::alphabet().into_iter().collect();
        assert_eq!(ours.len(), 256);
        assert_eq!(ours, theirs);
    }

    /// The pieces of a text as they stand in it.
    fn pieces<'a>(name: &str, text: &'a str) -> Vec<&'a str> {
        let recipe = Recipe::of(name).unwrap();
        let mut split = PreTokenizedString::from(text);
        let pre = recipe.pre_tokeniser().unwrap();
        pre.pre_tokenize(&mut split).unwrap();
        let splits = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.iter().map(|(_, (a, b), _)| &text[*a..*b]).collect()
    }

    #[track_caller]
    fn assert_pieces(name: &str, cases: &[(&str, &[&str])]) {
        for (text, wanted) in cases {
            assert_eq!(pieces(name, text), *wanted, "{name}: {text:?}");
        }
    }

    #[test]
    fn gpt2_takes_digits_with_their_space_and_only_lower_case_contractions() {
        assert_pieces(
            "gpt-2",
            &[
                ("I'm 1234 times", &["I", "'m", " 1234", " times"]),
                ("I'M", &["I", "'", "M"]),
                ("they'll've", &["they", "'ll", "'ve"]),
                ("a   b ", &["a", "  ", " b", " "]),
                ("x\n\n y\r\n", &["x", "\n\n", " y", "\r\n"]),
                ("f(x)=-2.5", &["f", "(", "x", ")=-", "2", ".", "5"]),
                ("你好，世界", &["你好", "，", "世界"]),
                ("ok 😀😃!", &["ok", " 😀😃!"]),
            ],
        );
    }

    #[test]
    fn smollm_takes_every_digit_alone_and_the_rest_as_gpt2() {
        assert_pieces(
            "smollm",
            &[
                ("I'm 12 times", &["I", "'m", " ", "1", "2", " times"]),
                ("x=007", &["x", "=", "0", "0", "7"]),
                ("a   b ", &["a", "  ", " b", " "]),
                ("x\n\n y", &["x", "\n\n", " y"]),
                ("你好，世界", &["你好", "，", "世界"]),
                ("ok 😀😃!", &["ok", " 😀😃!"]),
            ],
        );
    }

    #[test]
    fn llama3_takes_three_digits_any_contraction_and_a_mark_before_a_word() {
        assert_pieces(
            "llama-bpe",
            &[
                (
                    "I'm 1234567 times",
                    &["I", "'m", " ", "123", "456", "7", " times"],
                ),
                ("I'M SHE'LL", &["I", "'M", " SHE", "'LL"]),
                ("a   b ", &["a", "  ", " b", " "]),
                ("x\n\n y", &["x", "\n\n", " y"]),
                (
                    "done!!\n\nnext  \n z",
                    &["done", "!!\n\n", "next", "  \n", " z"],
                ),
                ("foo(bar) $x", &["foo", "(bar", ")", " $", "x"]),
                ("\tif", &["\tif"]),
                ("你好，世界", &["你好", "，世界"]),
                ("ok 😀😃!", &["ok", " 😀😃!"]),
            ],
        );
    }

    #[test]
    fn qwen2_splits_as_llama3_but_takes_every_digit_alone() {
        assert_pieces(
            "qwen2",
            &[
                (
                    "I'M 1234 times",
                    &["I", "'M", " ", "1", "2", "3", "4", " times"],
                ),
                ("done!!\n\nnext", &["done", "!!\n\n", "next"]),
                ("a   b ", &["a", "  ", " b", " "]),
                ("foo(bar)", &["foo", "(bar", ")"]),
                ("你好，世界", &["你好", "，世界"]),
                ("ok 😀😃!", &["ok", " 😀😃!"]),
            ],
        );
    }

    #[test]
    fn a_space_is_spelled_with_a_dotted_capital_g() {
        assert!(symbols().any(|pair| pair == (b' ', 'Ġ')));
        assert!(symbols().any(|pair| pair == (b'\n', 'Ċ')));
    }
}

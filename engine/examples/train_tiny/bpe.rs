//! Byte-level BPE: every UTF-8 text has an encoding, and decoding gives it back.

use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, PreTokenizerWrapper, Result, Tokenizer};

/// The one special token: first in the vocabulary, so its id is [`END_OF_TEXT_ID`].
pub const END_OF_TEXT: &str = "<|endoftext|>";
pub const END_OF_TEXT_ID: u32 = 0;

/// Trains on `text`: one special token, the 256 bytes, then merges up to `vocab_size` entries.
pub fn train(text: &str, vocab_size: usize) -> Result<Tokenizer> {
    let byte_level = ByteLevel::new(false, true, true);
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(PreTokenizerWrapper::ByteLevel(byte_level)));
    tokenizer.with_decoder(Some(DecoderWrapper::ByteLevel(byte_level)));
    let mut trainer = TrainerWrapper::from(
        BpeTrainer::builder()
            .vocab_size(vocab_size)
            .show_progress(false)
            .special_tokens(vec![AddedToken::from(END_OF_TEXT, true)])
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .build(),
    );
    tokenizer.train(&mut trainer, std::iter::once(text))?;
    Ok(tokenizer)
}

/// Token ids of `text`; no special token is added.
pub fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>> {
    Ok(tokenizer.encode(text, false)?.get_ids().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "the thane of the thanes then thought the other thing, and the father with them";

    #[test]
    fn any_utf8_text_comes_back_from_its_tokens() {
        let tokenizer = train(TEXT, 280).unwrap();
        for text in ["the thane", "  two\n\n spaces ", "naïve — 漢字 🎭\t\0", ""] {
            let ids = encode(&tokenizer, text).unwrap();
            assert_eq!(tokenizer.decode(&ids, false).unwrap(), text);
        }
    }

    #[test]
    fn training_twice_gives_the_same_file() {
        let file = || train(TEXT, 280).unwrap().to_string(true).unwrap();
        assert_eq!(file(), file());
    }

    #[test]
    fn end_of_text_is_id_zero_and_one_token() {
        let tokenizer = train(TEXT, 280).unwrap();
        assert_eq!(tokenizer.get_vocab_size(true), 280);
        assert_eq!(encode(&tokenizer, END_OF_TEXT).unwrap(), [END_OF_TEXT_ID]);
    }
}

//! Text from token ids, one at a time, without parts of characters.

use super::{Tokenizer, TokenizerError};

/// Decodes a sequence id by id. The pieces and [`TextStream::finish`] together spell what
/// [`Tokenizer::decode`] gives for all ids at once.
#[derive(Debug)]
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    /// Ids since the last token that ended on a character, that one's piece included: decoders that
    /// treat the first token apart (a dropped leading space) then see a later one.
    window: Vec<u32>,
    /// Where in the window the piece that is not yet clean begins.
    piece_start_tok: usize,
    /// Bytes of the window's text that were given out.
    given_bytes: usize,
}

impl<'a> TextStream<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        Self {
            tokenizer,
            window: Vec::new(),
            piece_start_tok: 0,
            given_bytes: 0,
        }
    }

    /// Takes the next id; gives the text that is certain now, possibly empty. A U+FFFD at the end is
    /// held back: the next token may complete the character.
    ///
    /// # Errors
    /// [`TokenizerError::UnknownId`]; the stream is then unchanged.
    pub fn push(&mut self, id: u32) -> Result<String, TokenizerError> {
        self.window.push(id);
        let text = match self.tokenizer.decode(&self.window) {
            Ok(text) => text,
            Err(error) => {
                self.window.pop();
                return Err(error);
            }
        };
        let certain = text
            .strip_suffix(char::REPLACEMENT_CHARACTER)
            .unwrap_or(&text);
        let piece = certain.get(self.given_bytes..).unwrap_or("").to_owned();
        self.given_bytes += piece.len();
        if certain.len() == text.len() {
            self.slide()?;
        }
        Ok(piece)
    }

    /// The text that was held back: U+FFFD where the sequence ends inside a character.
    ///
    /// # Errors
    /// Those of [`Tokenizer::decode`].
    pub fn finish(self) -> Result<String, TokenizerError> {
        let text = self.tokenizer.decode(&self.window)?;
        Ok(text.get(self.given_bytes..).unwrap_or("").to_owned())
    }

    fn slide(&mut self) -> Result<(), TokenizerError> {
        self.window.drain(..self.piece_start_tok);
        self.piece_start_tok = self.window.len();
        self.given_bytes = self.tokenizer.decode(&self.window)?.len();
        Ok(())
    }
}

//! Texts that end a generation, wherever the tokens cut them.

/// Passes text on until one of some stop texts appears; what may still become one is held back.
#[derive(Debug, Clone)]
pub struct StopTexts {
    stops: Vec<String>,
    held: String,
    ended: bool,
}

impl StopTexts {
    /// Empty stop texts are left out: they would end every text at once.
    pub fn new(stops: &[String]) -> Self {
        StopTexts {
            stops: stops
                .iter()
                .filter(|stop| !stop.is_empty())
                .cloned()
                .collect(),
            held: String::new(),
            ended: false,
        }
    }

    /// Whether a stop text has appeared.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Takes the next piece; gives the text that no stop text can reach any more. Of several stop texts the one that
    /// begins first ends the text; it is not given out, and nothing after it.
    pub fn push(&mut self, piece: &str) -> String {
        if self.ended {
            return String::new();
        }
        self.held += piece;
        let first = self
            .stops
            .iter()
            .filter_map(|stop| self.held.find(stop.as_str()))
            .min();
        if let Some(at) = first {
            self.ended = true;
            self.held.truncate(at);
            return std::mem::take(&mut self.held);
        }
        let kept = self.stops.iter().map(|stop| begun(&self.held, stop)).max();
        let tail = self.held.split_off(self.held.len() - kept.unwrap_or(0));
        std::mem::replace(&mut self.held, tail)
    }

    /// The text that was held back and came to nothing.
    pub fn finish(self) -> String {
        self.held
    }
}

/// Length of the longest end of `text` that `stop` begins with, bytes.
fn begun(text: &str, stop: &str) -> usize {
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = starts
        .map(|at| &text[at..])
        .filter(|end| end.len() < stop.len());
    ends.filter(|end| stop.starts_with(end))
        .map(str::len)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn through(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|&stop| stop.to_owned()).collect();
        let mut filter = StopTexts::new(&stops);
        let mut out: String = pieces.iter().map(|piece| filter.push(piece)).collect();
        let ended = filter.ended();
        out += &filter.finish();
        (out, ended)
    }

    #[test]
    fn a_stop_text_that_several_tokens_spell_never_shows() {
        assert_eq!(
            through(&["\n\nUser:"], &["Hi", "\n", "\nUs", "er: more"]),
            ("Hi".into(), true)
        );
        assert_eq!(
            through(&["\n\nUser:"], &["Hi", "\n", "\nUs", "ually"]),
            ("Hi\n\nUsually".into(), false)
        );
        assert_eq!(
            through(&["aab"], &["a", "a", "a", "b", "c"]),
            ("a".into(), true)
        );
        assert_eq!(through(&["c", "bc"], &["ab", "c"]), ("a".into(), true));
        assert_eq!(through(&[""], &["a"]), ("a".into(), false));
        assert_eq!(
            through(&["é!"], &["caf", "é", "?"]),
            ("café?".into(), false)
        );
    }

    proptest! {
        #[test]
        fn the_cuts_between_pieces_change_nothing(
            text in "[ab]{0,40}", stops in prop::collection::vec("[ab]{1,4}", 0..3), cuts in prop::collection::vec(0usize..40, 0..10),
        ) {
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            let (out, ended) = through(&stops, &pieces);
            let first = stops.iter().filter_map(|stop| text.find(stop)).min();
            prop_assert_eq!(ended, first.is_some());
            prop_assert_eq!(out, &text[..first.unwrap_or(text.len())]);
        }
    }
}

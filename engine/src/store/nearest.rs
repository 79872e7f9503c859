/// The candidate with the fewest single-letter edits to `word`, if at most a third of its letters
/// (and at least two) differ.
pub(super) fn nearest(
    word: &str,
    candidates: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    candidates
        .map(|name| (edits(&word.to_lowercase(), name), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(2))
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein distance in characters.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_and_another_word_does_not() {
        let names = || ["tiny", "smollm2"].into_iter();
        assert_eq!(nearest("tny", names()), Some("tiny"));
        assert_eq!(nearest("SmolLM2", names()), Some("smollm2"));
        assert_eq!(nearest("smollm-2", names()), Some("smollm2"));
        assert_eq!(nearest("mistral", names()), None);
    }

    #[test]
    fn the_distance_counts_single_edits() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
    }
}

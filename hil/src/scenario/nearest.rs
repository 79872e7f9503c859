//! The nearest valid spelling.

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substituted = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substituted.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The candidate closest to `word`, if it begins with `word` or is at most a third of it apart.
pub fn nearest<S: AsRef<str>>(
    word: &str,
    candidates: impl IntoIterator<Item = S>,
) -> Option<String> {
    let lower = word.to_lowercase();
    let score = |candidate: &str| {
        let other = candidate.to_lowercase();
        let is_prefix = lower.len() >= 2 && other.starts_with(&lower);
        let apart = distance(&lower, &other);
        let close = apart <= lower.chars().count().max(3) / 3;
        (is_prefix || close).then_some((!is_prefix, apart, candidate.to_owned()))
    };
    candidates
        .into_iter()
        .filter_map(|candidate| score(candidate.as_ref()))
        .min()
        .map(|(.., candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_edits_and_swaps() {
        for (a, b, d) in [
            ("", "abc", 3),
            ("eta", "eat", 1),
            ("kitten", "sitting", 3),
            ("é", "e", 1),
        ] {
            assert_eq!(distance(a, b), d, "{a} {b}");
            assert_eq!(distance(b, a), d, "{b} {a}");
        }
    }

    #[test]
    fn the_nearest_spelling_is_offered_and_a_wild_one_is_not() {
        let fields = ["eta_per_nat", "target_nats", "t_min", "t_max"];
        assert_eq!(nearest("eta", fields).as_deref(), Some("eta_per_nat"));
        assert_eq!(nearest("tmin", fields).as_deref(), Some("t_min"));
        assert_eq!(
            nearest("Target_nat", fields).as_deref(),
            Some("target_nats")
        );
        assert_eq!(nearest("pressure", fields), None);
    }
}

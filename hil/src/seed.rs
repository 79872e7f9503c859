//! Independent seeds from one: a stream is named by what it is for and its index.

/// The seed of stream (`purpose`, `index`) under `seed`.
pub fn derive(seed: u64, purpose: &str, index: u64) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&index.to_le_bytes());
    hasher.update(purpose.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::derive;

    #[test]
    fn streams_differ_in_each_of_seed_purpose_and_index() {
        let base = derive(7, "measure", 0);
        assert_eq!(base, derive(7, "measure", 0));
        for other in [
            derive(8, "measure", 0),
            derive(7, "predict", 0),
            derive(7, "measure", 1),
        ] {
            assert_ne!(base, other);
        }
    }
}

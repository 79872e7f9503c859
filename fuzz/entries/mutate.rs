//! Seeded damage, for machines without a fuzzer.

/// Changes of one case, at most.
const MOST_EDITS: u64 = 8;

/// SplitMix64.
pub struct Mutator(pub u64);

impl Mutator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// A damaged copy of `seed`. Half of the edits fall into its first `header` bytes.
    pub fn damage(&mut self, seed: &[u8], header: usize) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.next() % MOST_EDITS {
            let within = match self.next() & 1 {
                0 => bytes.len().min(header),
                _ => bytes.len(),
            };
            let at = self.below(within);
            self.edit(&mut bytes, at, seed);
        }
        bytes
    }

    fn edit(&mut self, bytes: &mut Vec<u8>, at: usize, seed: &[u8]) {
        const EDGES: [u64; 8] = [0, 1, 7, 32, 1 << 31, 1 << 32, 1 << 63, u64::MAX];
        let kind = self.next() % 7;
        let (from, len) = (self.below(seed.len()), 1 + self.below(32));
        let piece = &seed[from..(from + len).min(seed.len())];
        let end = (at + len).min(bytes.len());
        match kind {
            0 if at < bytes.len() => bytes[at] ^= 1 << (self.next() % 8),
            1 if at < bytes.len() => bytes[at] = self.next() as u8,
            2 => {
                let edge = EDGES[self.below(EDGES.len())].to_le_bytes();
                let room = bytes.len().saturating_sub(at).min(8);
                bytes[at..at + room].copy_from_slice(&edge[..room]);
            }
            3 => drop(bytes.drain(at..end)),
            4 => drop(bytes.splice(at..at, piece.iter().copied())),
            5 => drop(bytes.splice(at..end, piece.iter().copied())),
            _ if self.next().is_multiple_of(8) => bytes.truncate(at),
            _ => {}
        }
    }
}

//! The pool of KV blocks: O(1) take and give, last in first out.

/// Hands out physical block numbers `0..total`.
#[derive(Clone, Debug)]
pub struct BlockPool {
    /// Given back, the next one to take last.
    free: Vec<u32>,
    /// Blocks from here on were never taken.
    fresh: usize,
    total: usize,
}

impl BlockPool {
    pub fn new(total: usize) -> Self {
        BlockPool {
            free: Vec::new(),
            fresh: 0,
            total,
        }
    }

    pub fn free_blk(&self) -> usize {
        self.free.len() + (self.total - self.fresh)
    }

    pub fn total_blk(&self) -> usize {
        self.total
    }

    /// `count` blocks, or `None` (and nothing taken) when fewer are free.
    pub fn take(&mut self, count: usize) -> Option<Vec<u32>> {
        if count > self.free_blk() {
            return None;
        }
        let keep = self.free.len().saturating_sub(count);
        let mut taken = self.free.split_off(keep);
        taken.reverse();
        let end = self.fresh + (count - taken.len());
        taken.extend((self.fresh..end).map(|block| block as u32));
        self.fresh = end;
        Some(taken)
    }

    /// Returns blocks that [`BlockPool::take`] handed out.
    pub fn give(&mut self, blocks: &[u32]) {
        self.free.extend(blocks.iter().rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_given_back_are_the_next_ones_taken_and_none_is_lost() {
        let mut pool = BlockPool::new(5);
        let a = pool.take(2).unwrap();
        let b = pool.take(3).unwrap();
        assert_eq!((a.as_slice(), b.as_slice()), (&[0, 1][..], &[2, 3, 4][..]));
        assert!(pool.take(1).is_none());
        pool.give(&a);
        assert_eq!(pool.take(2).unwrap(), a);
        pool.give(&a);
        pool.give(&b);
        assert_eq!(pool.free_blk(), pool.total_blk());
    }

    #[test]
    fn a_take_that_cannot_be_met_takes_nothing() {
        let mut pool = BlockPool::new(2);
        assert!(pool.take(3).is_none());
        assert_eq!(pool.free_blk(), 2);
    }
}

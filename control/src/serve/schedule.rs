//! Continuous batching without phases: every running sequence catches up with its own text under one token budget,
//! running first, then the waiting in order of arrival.
//!
//! A request is admitted once all the blocks that it can ever need are free, so no sequence is ever preempted.

use super::BlockPool;
use crate::config::Limits;
use std::collections::{BTreeMap, VecDeque};

/// One request to a language model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Keys the random stream of the request; unique within a run.
    pub id: u64,
    /// Prompt, never empty.
    pub prompt: Vec<u32>,
    /// Tokens to generate at most.
    pub new_tok: usize,
    /// Tokens that end the text when drawn.
    pub stop: Vec<u32>,
    /// Tokens to take in place of draws, in order (teacher forcing); draws follow when they run out.
    pub forced: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeError {
    #[error("request {id} has an empty prompt: a sequence needs at least one token to start from")]
    EmptyPrompt { id: u64 },
    #[error("request {id} asks for 0 new tokens: at least 1 is needed")]
    NothingToDo { id: u64 },
    #[error("request id {id} appears twice: ids key the random streams and must differ")]
    DuplicateId { id: u64 },
    #[error(
        "request {id} needs {needed_blk} KV blocks of {block_tok} tokens ({prompt_tok} prompt + {new_tok} new tokens), the pool holds {total_blk}"
    )]
    NeverFits {
        id: u64,
        needed_blk: usize,
        block_tok: usize,
        prompt_tok: usize,
        new_tok: usize,
        total_blk: usize,
    },
}

/// A sequence's part of a step: compute its next `tokens`, starting at `start_tok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Index of the request in submission order.
    pub index: usize,
    pub start_tok: usize,
    pub tokens: usize,
    /// Whether the sequence has then caught up and a token is due.
    pub catches_up: bool,
}

#[derive(Clone, Debug)]
struct Sequence {
    /// Tokens of prompt and text so far.
    len_tok: usize,
    computed_tok: usize,
    blocks: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Waiting {
    index: usize,
    prompt_tok: usize,
    needed_blk: usize,
}

/// First come, first served.
#[derive(Clone, Debug)]
pub struct Scheduler {
    limits: Limits,
    pool: BlockPool,
    waiting: VecDeque<Waiting>,
    /// By index, which is the order of admission too.
    running: BTreeMap<usize, Sequence>,
    submitted: usize,
}

impl Scheduler {
    pub fn new(limits: Limits) -> Self {
        Scheduler {
            pool: BlockPool::new(limits.kv_blocks),
            limits,
            waiting: VecDeque::new(),
            running: BTreeMap::new(),
            submitted: 0,
        }
    }

    /// Queues a request, or rejects one that could never run.
    pub fn submit(&mut self, request: &Request) -> Result<(), ServeError> {
        if request.prompt.is_empty() {
            return Err(ServeError::EmptyPrompt { id: request.id });
        }
        if request.new_tok == 0 {
            return Err(ServeError::NothingToDo { id: request.id });
        }
        // The last token is drawn but never computed, so it takes no slot.
        let len_tok = request
            .prompt
            .len()
            .saturating_add(request.new_tok)
            .saturating_sub(1);
        let needed_blk = len_tok.div_ceil(self.limits.block_tok);
        if needed_blk > self.pool.total_blk() {
            return Err(ServeError::NeverFits {
                id: request.id,
                needed_blk,
                block_tok: self.limits.block_tok,
                prompt_tok: request.prompt.len(),
                new_tok: request.new_tok,
                total_blk: self.pool.total_blk(),
            });
        }
        self.waiting.push_back(Waiting {
            index: self.submitted,
            prompt_tok: request.prompt.len(),
            needed_blk,
        });
        self.submitted += 1;
        Ok(())
    }

    /// Whether every request is done.
    pub fn is_drained(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// The next step, in order of admission. Empty only when drained.
    pub fn schedule(&mut self) -> Vec<Scheduled> {
        self.admit();
        let mut budget_tok = self.limits.max_batched_tok;
        let mut step = Vec::with_capacity(self.running.len());
        for (&index, seq) in &mut self.running {
            let tokens = (seq.len_tok - seq.computed_tok).min(budget_tok);
            if tokens == 0 {
                break;
            }
            step.push(Scheduled {
                index,
                start_tok: seq.computed_tok,
                tokens,
                catches_up: seq.computed_tok + tokens == seq.len_tok,
            });
            seq.computed_tok += tokens;
            budget_tok -= tokens;
        }
        step
    }

    fn admit(&mut self) {
        while self.running.len() < self.limits.max_seqs {
            let Some(next) = self.waiting.front() else {
                return;
            };
            let Some(blocks) = self.pool.take(next.needed_blk) else {
                return;
            };
            let fresh = Sequence {
                len_tok: next.prompt_tok,
                computed_tok: 0,
                blocks,
            };
            self.running.insert(next.index, fresh);
            self.waiting.pop_front();
        }
    }

    /// The block table of a running sequence, cut to what `len_tok` positions need.
    pub fn block_table(&self, index: usize, len_tok: usize) -> &[u32] {
        let used = len_tok.div_ceil(self.limits.block_tok);
        self.running
            .get(&index)
            .map_or(&[], |seq| &seq.blocks[..used])
    }

    /// Records that a token was appended to a running sequence.
    pub fn append(&mut self, index: usize) {
        if let Some(seq) = self.running.get_mut(&index) {
            seq.len_tok += 1;
        }
    }

    /// Ends a sequence and frees its blocks.
    pub fn finish(&mut self, index: usize) {
        if let Some(seq) = self.running.remove(&index) {
            self.pool.give(&seq.blocks);
        }
    }

    /// Blocks that are free now.
    pub fn free_blk(&self) -> usize {
        self.pool.free_blk()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(kv_blocks: usize, max_seqs: usize, max_batched_tok: usize) -> Limits {
        Limits {
            block_tok: 4,
            kv_blocks,
            max_seqs,
            max_batched_tok,
        }
    }

    fn request(id: u64, prompt_tok: usize, new_tok: usize) -> Request {
        Request {
            id,
            prompt: vec![1; prompt_tok],
            new_tok,
            ..Request::default()
        }
    }

    /// Runs to the end; returns each step and checks what must hold in all of them.
    fn drain(limits: Limits, requests: &[Request]) -> Vec<Vec<Scheduled>> {
        let mut scheduler = Scheduler::new(limits);
        for request in requests {
            scheduler.submit(request).unwrap();
        }
        let mut drawn = vec![0; requests.len()];
        let mut steps = Vec::new();
        while !scheduler.is_drained() {
            let step = scheduler.schedule();
            assert!(!step.is_empty(), "a step that computes nothing would hang");
            let tokens: usize = step.iter().map(|s| s.tokens).sum();
            assert!(tokens <= limits.max_batched_tok);
            assert!(step.len() <= limits.max_seqs);
            let mut used = std::collections::BTreeSet::new();
            for s in &step {
                for &block in scheduler.block_table(s.index, s.start_tok + s.tokens) {
                    assert!(used.insert(block), "block {block} belongs to two sequences");
                }
            }
            for s in step.iter().filter(|s| s.catches_up) {
                drawn[s.index] += 1;
                if drawn[s.index] == requests[s.index].new_tok {
                    scheduler.finish(s.index);
                } else {
                    scheduler.append(s.index);
                }
            }
            steps.push(step);
        }
        assert_eq!(scheduler.free_blk(), limits.kv_blocks);
        assert!(drawn.iter().zip(requests).all(|(&d, r)| d == r.new_tok));
        steps
    }

    #[test]
    fn a_long_prompt_is_computed_in_chunks_under_the_budget() {
        let steps = drain(limits(8, 2, 5), &[request(0, 12, 2)]);
        let chunks: Vec<_> = steps
            .iter()
            .map(|s| (s[0].start_tok, s[0].tokens))
            .collect();
        assert_eq!(chunks, [(0, 5), (5, 5), (10, 2), (12, 1)]);
    }

    #[test]
    fn running_sequences_are_served_before_waiting_ones_and_blocks_return() {
        let requests: Vec<_> = (0..7).map(|id| request(id, 3 + id as usize, 4)).collect();
        let steps = drain(limits(6, 3, 8), &requests);
        let first: Vec<_> = steps[0].iter().map(|s| s.index).collect();
        assert_eq!(first, [0, 1, 2]);
        assert_eq!(steps[0][2].tokens, 1, "the budget cuts the third prompt");
    }

    #[test]
    fn a_request_that_can_never_fit_is_rejected_with_the_reason() {
        let mut scheduler = Scheduler::new(limits(2, 1, 8));
        assert!(scheduler.submit(&request(0, 5, 4)).is_ok());
        let error = scheduler.submit(&request(1, 5, 5)).unwrap_err();
        assert!(error.to_string().contains("needs 3 KV blocks"), "{error}");
        assert_eq!(
            scheduler.submit(&request(2, 0, 5)),
            Err(ServeError::EmptyPrompt { id: 2 })
        );
        assert_eq!(
            scheduler.submit(&request(3, 1, 0)),
            Err(ServeError::NothingToDo { id: 3 })
        );
    }
}

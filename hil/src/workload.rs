//! From prompts and a scenario's workload to the requests of each run.
//!
//! Prompts are split by their place in the file: those at even places (0, 2, …) are judged, those at odd places feed
//! the open-loop recordings, so that a prediction never rests on a text that it is judged on.

use crate::prompts::Prompts;
use crate::scenario::Workload;
use etime_control::serve::Request;
use std::path::PathBuf;

/// What a prompt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Closed-loop runs that a prediction is compared with.
    Judged,
    /// Open-loop recordings that a prediction is made from.
    Recorded,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("{}: the prompts cannot be read: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "{}:{line}: not a prompt: {problem}\n  allowed: one JSON object a line with the texts id, kind, prompt and reference",
        path.display()
    )]
    Line {
        path: PathBuf,
        line: usize,
        problem: String,
    },
    #[error("{}:{line}: the id `{id}` is taken by line {first}: ids must differ", path.display())]
    DuplicateId {
        path: PathBuf,
        line: usize,
        id: String,
        first: usize,
    },
    #[error("{}: {held} prompts, at least 2 are needed: one to judge, one to record", path.display())]
    TooFew { path: PathBuf, held: usize },
    #[error("{}:{line}: prompt `{id}`: {problem}", path.display())]
    Prompt {
        path: PathBuf,
        line: usize,
        id: String,
        problem: PromptProblem,
    },
}

/// Why a model cannot continue a prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptProblem {
    #[error("it cannot be turned into tokens: {0}")]
    Encode(BoxError),
    #[error("it has no tokens: a sequence needs at least one to start from")]
    Empty,
    #[error(
        "its {prompt_tok} tokens and workload.new_tok = {new_tok} make {} tokens: longer than the model's context of {context_tok}",
        prompt_tok + new_tok
    )]
    TooLong {
        prompt_tok: usize,
        new_tok: usize,
        context_tok: usize,
    },
}

/// Requests of one run, and the place in the file of the prompt that each continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRequests {
    pub requests: Vec<Request>,
    /// One prompt number per request.
    pub prompts: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Encoded {
    number: u64,
    tokens: Vec<u32>,
}

/// A workload with its prompts as tokens: makes the requests of any run.
#[derive(Clone, Debug)]
pub struct Requests {
    judged: Vec<Encoded>,
    recorded: Vec<Encoded>,
    sequences: usize,
    new_tok: usize,
    stop: Vec<u32>,
}

/// What a model says about the texts that it takes.
#[derive(Clone, Debug, Default)]
pub struct Texts<'a> {
    /// Longest prompt and continuation together, tokens.
    pub context_tok: usize,
    /// Tokens that end a text.
    pub eos: &'a [u32],
}

impl Requests {
    /// Turns prompts into tokens, cuts them to `workload.prompt_tok`, and checks that they fit the context.
    pub fn encode(
        workload: &Workload,
        prompts: &Prompts,
        texts: &Texts,
        encode: &dyn Fn(&str) -> Result<Vec<u32>, BoxError>,
    ) -> Result<Self, WorkloadError> {
        let mut all = Vec::with_capacity(prompts.list.len());
        for (number, prompt) in (0..).zip(&prompts.list) {
            let refuse = |problem| WorkloadError::Prompt {
                path: prompts.path.clone(),
                line: prompt.line,
                id: prompt.id.clone(),
                problem,
            };
            let tokens = encode(&prompt.prompt);
            let mut tokens = tokens.map_err(|error| refuse(PromptProblem::Encode(error)))?;
            tokens.truncate(workload.prompt_tok);
            if tokens.is_empty() {
                return Err(refuse(PromptProblem::Empty));
            }
            if tokens.len() + workload.new_tok > texts.context_tok {
                return Err(refuse(PromptProblem::TooLong {
                    prompt_tok: tokens.len(),
                    new_tok: workload.new_tok,
                    context_tok: texts.context_tok,
                }));
            }
            all.push(Encoded { number, tokens });
        }
        let (judged, recorded) = all
            .into_iter()
            .partition(|prompt: &Encoded| prompt.number.is_multiple_of(2));
        Ok(Requests {
            judged,
            recorded,
            sequences: workload.sequences,
            new_tok: workload.new_tok,
            stop: if workload.stop_at_eos {
                texts.eos.to_vec()
            } else {
                Vec::new()
            },
        })
    }

    /// Requests for a simulated plant, which reads no text: each prompt is `workload.prompt_tok` zeros.
    pub fn without_text(workload: &Workload) -> Self {
        let blank = vec![Encoded {
            number: 0,
            tokens: vec![0; workload.prompt_tok],
        }];
        Requests {
            judged: blank.clone(),
            recorded: blank,
            sequences: workload.sequences,
            new_tok: workload.new_tok,
            stop: Vec::new(),
        }
    }

    /// The requests of run `run`: request i takes prompt (`run` · sequences + i) mod the prompts of its side.
    ///
    /// Ids differ between all runs of both sides, because they key the random streams.
    pub fn of_run(&self, side: Side, run: usize) -> RunRequests {
        const RECORDED_IDS: u64 = 1 << 63;
        let (prompts, first_id) = match side {
            Side::Judged => (&self.judged, 0),
            Side::Recorded => (&self.recorded, RECORDED_IDS),
        };
        let places = run * self.sequences..(run + 1) * self.sequences;
        let mut made = RunRequests::default();
        for (place, prompt) in places.clone().zip(
            prompts
                .iter()
                .cycle()
                .skip(places.start % prompts.len().max(1)),
        ) {
            made.prompts.push(prompt.number);
            made.requests.push(Request {
                id: first_id + place as u64,
                prompt: prompt.tokens.clone(),
                new_tok: self.new_tok,
                stop: self.stop.clone(),
                forced: Vec::new(),
            });
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompts::Prompt;
    use crate::scenario::Arrivals;
    use std::collections::BTreeSet;

    fn workload(sequences: usize, prompt_tok: usize, new_tok: usize) -> Workload {
        Workload {
            prompts: None,
            sequences,
            prompt_tok,
            new_tok,
            arrivals: Arrivals::AtOnce,
            stop_at_eos: false,
        }
    }

    fn prompts(texts: &[&str]) -> Prompts {
        let prompt = |(i, text): (usize, &&str)| Prompt {
            id: format!("p{i}"),
            kind: "test".to_owned(),
            prompt: (*text).to_owned(),
            reference: String::new(),
            line: i + 1,
        };
        Prompts {
            path: PathBuf::from("p.jsonl"),
            text: String::new(),
            list: texts.iter().enumerate().map(prompt).collect(),
        }
    }

    fn bytes(text: &str) -> Result<Vec<u32>, BoxError> {
        Ok(text.bytes().map(u32::from).collect())
    }

    const ROOM: Texts = Texts {
        context_tok: 100,
        eos: &[7],
    };

    #[test]
    fn judged_and_recorded_prompts_never_meet_and_every_prompt_is_used() {
        let made = Requests::encode(
            &workload(3, 9, 4),
            &prompts(&["a", "b", "c", "d", "e"]),
            &ROOM,
            &bytes,
        )
        .unwrap();
        let used = |side| {
            (0..4)
                .flat_map(|run| made.of_run(side, run).prompts)
                .collect::<Vec<u64>>()
        };
        assert_eq!(used(Side::Judged), [0, 2, 4, 0, 2, 4, 0, 2, 4, 0, 2, 4]);
        assert_eq!(used(Side::Recorded), [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3]);
    }

    #[test]
    fn no_two_requests_share_an_id() {
        let made = Requests::encode(
            &workload(3, 9, 4),
            &prompts(&["a", "b", "c"]),
            &ROOM,
            &bytes,
        )
        .unwrap();
        let mut ids = BTreeSet::new();
        for side in [Side::Judged, Side::Recorded] {
            for run in 0..5 {
                for request in made.of_run(side, run).requests {
                    assert!(ids.insert(request.id), "{} twice", request.id);
                }
            }
        }
        assert_eq!(ids.len(), 30);
    }

    #[test]
    fn prompts_are_cut_and_stop_tokens_are_kept_only_when_asked_for() {
        let texts = prompts(&["abcdef", "gh"]);
        let plain = Requests::encode(&workload(1, 4, 2), &texts, &ROOM, &bytes).unwrap();
        let request = &plain.of_run(Side::Judged, 0).requests[0];
        assert_eq!(request.prompt, [97, 98, 99, 100]);
        assert!(request.stop.is_empty());
        let stopping = Workload {
            stop_at_eos: true,
            ..workload(1, 4, 2)
        };
        let stopping = Requests::encode(&stopping, &texts, &ROOM, &bytes).unwrap();
        assert_eq!(stopping.of_run(Side::Judged, 0).requests[0].stop, [7]);
        let blank = Requests::without_text(&workload(2, 3, 2)).of_run(Side::Recorded, 1);
        assert_eq!(blank.requests[1].prompt, [0, 0, 0]);
    }

    #[test]
    fn a_prompt_that_does_not_fit_names_itself_and_the_context() {
        let error = Requests::encode(
            &workload(1, 60, 41),
            &prompts(&["a", &"b".repeat(99)]),
            &ROOM,
            &bytes,
        );
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("p.jsonl:2: prompt `p1`: its 60 tokens")
                && text.contains("make 101 tokens")
                && text.contains("of 100"),
            "{text}"
        );
        let error =
            Requests::encode(&workload(1, 60, 4), &prompts(&["a", ""]), &ROOM, &bytes).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("p.jsonl:2: prompt `p1`: it has no tokens")
        );
    }
}

//! `etime generate`.

use crate::args;
use crate::failure::Failure;
use crate::show;
use etime_control::trajectory::Sample;
use etime_engine::LoadOptions;
use etime_engine::chat::Message;
use etime_engine::load::Loaded;
use etime_engine::store::Store;
use etime_engine::tokenizer::{StopTexts, TextStream};
use etime_hil::generate::{Ask, generate, limits};
use etime_hil::prompts::MAX_PROMPT_BYTES;
use etime_hil::scenario::parse_law;
use serde::Serialize;
use std::io::{IsTerminal, Read};

/// One line of `--json`.
#[derive(Serialize)]
struct Row {
    index_tok: u64,
    token: u32,
    text: String,
    h_nats: f64,
    v: f64,
    t: f64,
    surprisal_nats: f64,
    tau_nats: f64,
}

pub fn run(args: &args::Generate) -> Result<(), Failure> {
    let law = parse_law("--law", &args.law, &args.set)?;
    if args.new_tok == 0 {
        return Err(Failure::input("--new-tok 0: at least 1 token is needed"));
    }
    let prompt = prompt(args)?;
    let loaded = Loaded::open(&Store::from_env(), &args.model, LoadOptions::default())
        .map_err(Failure::input)?;
    let fits = law.check_vocab(loaded.config().vocab);
    fits.map_err(|error| {
        let error = error.to_string();
        Failure::input(format!(
            "--law: {}",
            error.trim_start_matches("temperature.")
        ))
    })?;
    let prompt = match args.chat {
        true => {
            let messages = messages(args.system.as_deref(), prompt);
            loaded.chat_prompt(&messages).map_err(Failure::input)?
        }
        false => prompt,
    };
    let tokens = loaded.tokenizer.encode(&prompt).map_err(Failure::input)?;
    let context_tok = loaded.config().context_tok;
    let len_tok = tokens.len().saturating_add(args.new_tok);
    if tokens.is_empty() {
        return Err(Failure::input(
            "the prompt is empty: a text needs at least one token to start from",
        ));
    }
    if len_tok > context_tok {
        return Err(Failure::input(format!(
            "the prompt of {} tokens and --new-tok {} make {len_tok} tokens: {} takes at most {context_tok}",
            tokens.len(),
            args.new_tok,
            args.model
        )));
    }
    let ask = Ask {
        law,
        seed: args.seed,
        prompt: tokens,
        new_tok: args.new_tok,
        stop: loaded.eos_ids(),
    };
    let room = limits(len_tok);
    let (mut engine, tokenizer) = loaded
        .into_engine(room.kv_blocks, room.block_tok)
        .map_err(Failure::input)?;
    let mut writer = Writer {
        stream: tokenizer.text_stream(),
        stops: StopTexts::new(&args.stop),
        stop: &ask.stop,
        json: args.json,
        failed: None,
    };
    let written = generate(&mut engine, &ask, &mut |sample| writer.hear(sample));
    written.map_err(Failure::fault)?;
    writer.finish()
}

fn messages(system: Option<&str>, prompt: String) -> Vec<Message> {
    let system = system.map(|text| Message {
        role: "system",
        content: text.to_owned(),
    });
    let user = Message {
        role: "user",
        content: prompt,
    };
    system.into_iter().chain([user]).collect()
}

fn prompt(args: &args::Generate) -> Result<String, Failure> {
    if let Some(prompt) = &args.prompt {
        return Ok(prompt.clone());
    }
    let stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        return Err(Failure::input(
            "no prompt: give --prompt TEXT, or pipe text in",
        ));
    }
    let mut text = String::new();
    let most = MAX_PROMPT_BYTES as u64;
    let read = stdin.take(most + 1).read_to_string(&mut text);
    read.map_err(|error| {
        Failure::input(format!(
            "the prompt on standard input cannot be read: {error}"
        ))
    })?;
    if text.len() as u64 > most {
        return Err(Failure::input(format!(
            "the prompt on standard input has more than {} KiB",
            most >> 10
        )));
    }
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Prints tokens as they are drawn; the first thing that fails is kept and the rest is skipped.
struct Writer<'a> {
    stream: TextStream<'a>,
    stops: StopTexts,
    stop: &'a [u32],
    json: bool,
    failed: Option<Failure>,
}

impl Writer<'_> {
    fn hear(&mut self, sample: &Sample) {
        if self.failed.is_some() {
            return;
        }
        self.failed = self.print(sample).err();
        if self.stops.ended() && self.failed.is_none() && !self.json {
            self.failed = show::text("\n").err();
        }
        let gone = matches!(self.failed, Some(Failure::BrokenPipe));
        if gone || self.stops.ended() && self.failed.is_none() {
            // A driver has no other way to stop early.
            std::process::exit(0);
        }
    }

    fn print(&mut self, sample: &Sample) -> Result<(), Failure> {
        let ends = self.stop.contains(&sample.token);
        let text = match ends {
            true => String::new(),
            false => {
                let piece = self.stream.push(sample.token).map_err(Failure::fault)?;
                self.stops.push(&piece)
            }
        };
        if !self.json {
            return show::text(&text);
        }
        show::json_line(&Row {
            index_tok: sample.index_tok,
            token: sample.token,
            text,
            h_nats: sample.h_nats,
            v: sample.v,
            t: sample.u.exp(),
            surprisal_nats: sample.surprisal_nats,
            tau_nats: sample.tau_nats,
        })
    }

    fn finish(mut self) -> Result<(), Failure> {
        if let Some(failure) = self.failed {
            return Err(failure);
        }
        if self.json {
            return Ok(());
        }
        let rest = self.stream.finish().map_err(Failure::fault)?;
        let rest = self.stops.push(&rest) + &self.stops.finish();
        show::text(&(rest + "\n"))
    }
}

//! `etime speed`.

use crate::args::{self, SpeedCommand};
use crate::failure::Failure;
use crate::show;
use etime_engine::LoadOptions;
use etime_engine::load::Loaded;
use etime_engine::store::Store;
use etime_hil::speed::{self, EngineAsk};

/// From a byte-level vocabulary to the largest in use.
const VOCABS: [usize; 5] = [512, 4_096, 32_000, 49_152, 151_936];

pub fn run(args: &args::Speed) -> Result<(), Failure> {
    match &args.command {
        SpeedCommand::Sensor { json } => {
            let measured = speed::sensor(&VOCABS).map_err(Failure::fault)?;
            match json {
                true => show::json(&measured),
                false => show::text(&measured.to_text()),
            }
        }
        SpeedCommand::Engine { model, json } => engine(model, *json),
    }
}

fn engine(model: &str, json: bool) -> Result<(), Failure> {
    let loaded =
        Loaded::open(&Store::from_env(), model, LoadOptions::default()).map_err(Failure::input)?;
    let context_tok = loaded.config().context_tok;
    let ask = EngineAsk {
        prefill_tok: (context_tok / 2).min(512),
        context_tok: (context_tok / 4).min(64),
        decode_steps: (context_tok / 4).min(64),
        batches: vec![1, 4, 8, 16],
        weight_bytes: loaded.model.weight_bytes(),
        vocab: loaded.config().vocab,
        threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
    };
    let limits = ask.limits();
    let (mut engine, _) = loaded
        .into_engine(limits.kv_blocks, limits.block_tok)
        .map_err(Failure::input)?;
    let measured = speed::engine(&mut engine, &ask).map_err(Failure::fault)?;
    match json {
        true => show::json(&measured),
        false => show::text(&format!("{model} on the CPU\n{}", measured.to_text())),
    }
}

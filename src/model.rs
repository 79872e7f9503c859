//! `etime model`.

use crate::args::{self, ModelCommand};
use crate::failure::Failure;
use crate::progress::{Unit, bar};
use crate::show;
use etime_engine::store::{Entry, Inspection, Presence, PullEvent, Pulled, Store};
use indicatif::ProgressBar;
use std::collections::BTreeMap;

pub fn run(args: &args::Model) -> Result<(), Failure> {
    let store = Store::from_env();
    match &args.command {
        ModelCommand::List { json } => list(&store, *json),
        ModelCommand::Pull { name, json } => pull(&store, name, *json),
        ModelCommand::Inspect { model, json } => inspect(&store, model, *json),
    }
}

fn list(store: &Store, json: bool) -> Result<(), Failure> {
    let entries = store.list().map_err(Failure::fault)?;
    if json {
        return show::json(&entries);
    }
    let lines: String = entries.iter().map(line).collect();
    show::text(&lines)
}

fn line(entry: &Entry) -> String {
    format!(
        "{:<10} {:>7.1} M parameters {:>10}  {:<12} {}\n{:10} {}\n",
        entry.name,
        entry.params as f64 / 1e6,
        show::bytes(entry.bytes),
        entry.licence,
        presence(entry),
        "",
        entry.about
    )
}

/// Whether a model is here, and the command that changes that.
pub fn presence(entry: &Entry) -> String {
    match &entry.presence {
        Presence::Bundled => "bundled".to_owned(),
        Presence::Present(path) => format!("in {}", path.display()),
        Presence::Absent => format!("not here: etime model pull {}", entry.name),
        Presence::Damaged(path) => {
            format!(
                "damaged ({}): etime model pull {}",
                path.display(),
                entry.name
            )
        }
    }
}

fn pull(store: &Store, name: &str, json: bool) -> Result<(), Failure> {
    let bar = bar(Unit::Bytes);
    let pulled = store.pull(name, &mut |event| show_event(&bar, &event));
    bar.finish_and_clear();
    let pulled = pulled.map_err(Failure::input)?;
    let (state, path, mirror) = match &pulled {
        Pulled::Bundled => ("bundled", None, None),
        Pulled::AlreadyPresent(path) => ("present", Some(path), None),
        Pulled::Fetched { path, mirror } => ("fetched", Some(path), Some(mirror)),
    };
    if json {
        let path = path.map(|path| path.display().to_string());
        let fields = [
            ("state", Some(state)),
            ("path", path.as_deref()),
            ("from", mirror.map(String::as_str)),
        ];
        return show::json(&BTreeMap::from(fields));
    }
    show::text(&match pulled {
        Pulled::Bundled => format!("{name} is part of this program\n"),
        Pulled::AlreadyPresent(path) => {
            format!("{name} is here already, and whole: {}\n", path.display())
        }
        Pulled::Fetched { path, mirror } => {
            format!(
                "{name} fetched from {mirror}, checked: {}\n",
                path.display()
            )
        }
    })
}

fn show_event(bar: &ProgressBar, event: &PullEvent) {
    match event {
        PullEvent::Waiting => bar.println("another process fetches this model; waiting for it"),
        PullEvent::Trying { mirror } => bar.set_message(format!("from {mirror}")),
        PullEvent::Fetched {
            done_bytes,
            total_bytes,
        } => {
            bar.set_length(*total_bytes);
            bar.set_position(*done_bytes);
        }
        PullEvent::Verifying => bar.set_message("checking"),
        PullEvent::Failed { mirror, reason } => bar.println(format!("{mirror}: {reason}")),
    }
}

fn inspect(store: &Store, model: &str, json: bool) -> Result<(), Failure> {
    let found = store.inspect(model).map_err(Failure::input)?;
    match json {
        true => show::json(&found),
        false => show::text(&describe(&found)),
    }
}

fn describe(found: &Inspection) -> String {
    let number = |x: Option<u64>| x.map_or("not said".to_owned(), |x| x.to_string());
    let text = |x: &Option<String>| x.clone().unwrap_or("not said".to_owned());
    let counts = |kinds: &BTreeMap<String, usize>| {
        let counts: Vec<String> = kinds
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        counts.join(", ")
    };
    let held = match &found.unsupported {
        None => counts(&found.held),
        Some(reason) => format!("cannot be loaded: {reason}"),
    };
    let lines = [
        ("name", found.name.clone()),
        ("format", found.format.to_owned()),
        ("licence", text(&found.licence)),
        ("architecture", text(&found.architecture)),
        ("layers", number(found.layers)),
        ("hidden", number(found.hidden)),
        ("feed-forward", number(found.ffn)),
        ("heads", number(found.heads)),
        ("KV heads", number(found.kv_heads)),
        ("context", format!("{} tokens", number(found.context_tok))),
        ("vocabulary", number(found.vocab)),
        ("parameters", found.params.to_string()),
        (
            "tensors",
            format!("{} ({})", found.tensors, counts(&found.dtypes)),
        ),
        ("in memory", held),
        ("weights", show::bytes(found.bytes)),
        ("blake3", found.blake3.clone()),
    ];
    lines
        .iter()
        .map(|(label, value)| format!("{label:<14}{value}\n"))
        .collect()
}

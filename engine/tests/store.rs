//! Models by name and by path.

use std::fs;
use std::path::Path;

use etime_engine::store::{ModelFiles, Presence, Pulled, Store, StoreError};

const SMOLLM2: &str = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

fn empty() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    (folder, store)
}

fn message(result: Result<impl std::fmt::Debug, StoreError>) -> String {
    result.unwrap_err().to_string()
}

fn write(folder: &Path, files: &[&str]) {
    for file in files {
        fs::write(folder.join(file), b"{}").unwrap();
    }
}

/// One F32 tensor of 2 × 3.
fn safetensors() -> Vec<u8> {
    let header = br#"{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend([0; 24]);
    bytes
}

#[test]
fn tiny_is_always_there_with_its_three_files() {
    let (_folder, store) = empty();
    let source = store.resolve("tiny").unwrap();
    let ModelFiles::Bundled(bundled) = &source.files else {
        panic!("{source:?}");
    };
    assert_eq!(source.weight_bytes().unwrap(), bundled.weights.len() as u64);
    let hash = blake3::hash(bundled.weights).to_hex();
    assert_eq!(source.blake3().unwrap(), hash.as_str());
    let config: serde_json::Value = serde_json::from_slice(bundled.config).unwrap();
    let seen = store.inspect("tiny").unwrap();
    assert_eq!(seen.vocab, config["vocab_size"].as_u64());
    assert_eq!(seen.architecture.as_deref(), Some("llama"));
    assert_eq!(seen.blake3, hash.as_str());
    assert!(seen.params > 0 && seen.bytes >= 2 * seen.params);
}

#[test]
fn pulling_a_bundled_model_needs_nothing() {
    let (folder, store) = empty();
    assert_eq!(store.pull("tiny", &mut |_| ()).unwrap(), Pulled::Bundled);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_model_that_was_not_pulled_names_the_command_that_pulls_it() {
    let (_folder, store) = empty();
    let error = message(store.resolve("smollm2"));
    assert!(error.contains("`etime model pull smollm2`"), "{error}");
}

#[test]
fn a_model_cut_short_is_damaged_and_listed_as_such() {
    let (folder, store) = empty();
    let path = folder.path().join(SMOLLM2);
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, b"GGUF").unwrap();
    let error = message(store.resolve("smollm2"));
    assert!(error.contains("has 4 bytes, expected 98362432"), "{error}");
    let list = store.list().unwrap();
    assert_eq!(list[1].presence, Presence::Damaged(path));
}

#[test]
fn the_list_says_what_is_here() {
    let (_folder, store) = empty();
    let list = store.list().unwrap();
    let names: Vec<_> = list.iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["tiny", "smollm2"]);
    assert_eq!(list[0].presence, Presence::Bundled);
    assert_eq!(list[1].presence, Presence::Absent);
    assert_eq!((list[1].params, list[1].bytes), (134_515_008, 98_362_432));
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let (_folder, store) = empty();
    let error = message(store.resolve("smolm2"));
    assert!(error.contains("did you mean `smollm2`?"), "{error}");
    let error = message(store.resolve("gpt-five"));
    assert!(!error.contains("did you mean"), "{error}");
    assert!(error.contains("`tiny`, `smollm2`"), "{error}");
    let error = message(store.pull("tinny", &mut |_| ()));
    assert!(error.contains("did you mean `tiny`?"), "{error}");
}

#[test]
fn a_path_that_leads_nowhere_or_to_another_file_says_so() {
    let (folder, store) = empty();
    let error = message(store.resolve("/nonexistent/model"));
    assert!(error.contains("no such file or directory"), "{error}");
    let error = message(store.resolve("absent.gguf"));
    assert!(error.contains("no such file or directory"), "{error}");
    let text = folder.path().join("notes.txt");
    fs::write(&text, b"x").unwrap();
    let error = message(store.resolve(text.to_str().unwrap()));
    assert!(error.contains("allowed: a .gguf file"), "{error}");
}

#[test]
fn a_directory_needs_all_of_its_parts() {
    let (folder, store) = empty();
    let spec = folder.path().to_str().unwrap();
    let error = message(store.resolve(spec));
    assert!(
        error.ends_with("lacks config.json, tokenizer.json, model.safetensors"),
        "{error}"
    );
    write(
        folder.path(),
        &["config.json", "tokenizer.json", "model.safetensors"],
    );
    let ModelFiles::Directory { weights, .. } = store.resolve(spec).unwrap().files else {
        panic!();
    };
    assert_eq!(weights, [folder.path().join("model.safetensors")]);
}

#[test]
fn the_index_names_the_shards_and_a_missing_one_is_named() {
    let (folder, store) = empty();
    let spec = folder.path().to_str().unwrap();
    write(
        folder.path(),
        &[
            "config.json",
            "tokenizer.json",
            "s1.safetensors",
            "x.safetensors",
        ],
    );
    let index = folder.path().join("model.safetensors.index.json");
    fs::write(
        &index,
        r#"{"weight_map":{"a":"s2.safetensors","b":"s1.safetensors"}}"#,
    )
    .unwrap();
    let error = message(store.resolve(spec));
    assert!(error.ends_with("lacks s2.safetensors"), "{error}");
    write(folder.path(), &["s2.safetensors"]);
    let ModelFiles::Directory { weights, .. } = store.resolve(spec).unwrap().files else {
        panic!();
    };
    let expected = ["s1.safetensors", "s2.safetensors"].map(|f| folder.path().join(f));
    assert_eq!(weights, expected);
    fs::write(&index, b"[]").unwrap();
    let error = message(store.resolve(spec));
    assert!(error.contains("weight_map"), "{error}");
}

#[test]
fn a_directory_is_inspected_and_cut_weights_are_refused() {
    let (folder, store) = empty();
    let spec = folder.path().to_str().unwrap();
    let weights = folder.path().join("model.safetensors");
    write(folder.path(), &["tokenizer.json"]);
    let config = r#"{"model_type":"llama","num_attention_heads":4,"hidden_size":2}"#;
    fs::write(folder.path().join("config.json"), config).unwrap();
    fs::write(&weights, safetensors()).unwrap();
    let seen = store.inspect(spec).unwrap();
    assert_eq!((seen.params, seen.tensors, seen.dtypes["F32"]), (6, 1, 1));
    assert_eq!(
        (seen.heads, seen.kv_heads, seen.hidden),
        (Some(4), Some(4), Some(2))
    );
    assert_eq!(seen.blake3, blake3::hash(&safetensors()).to_hex().as_str());
    let whole = safetensors();
    fs::write(&weights, &whole[..whole.len() - 1]).unwrap();
    let error = message(store.inspect(spec));
    assert!(error.contains("its header describes"), "{error}");
    fs::write(&weights, b"not weights at all").unwrap();
    let error = message(store.inspect(spec));
    assert!(error.contains("does not hold weights"), "{error}");
}

#[test]
fn a_file_that_is_no_gguf_is_refused_when_inspected() {
    let (folder, store) = empty();
    let path = folder.path().join("m.gguf");
    fs::write(&path, b"GGUX and more").unwrap();
    let error = message(store.inspect(path.to_str().unwrap()));
    assert!(error.contains("not a GGUF file"), "{error}");
}

#[test]
fn smollm2_is_what_the_catalogue_says() {
    let store = Store::from_env();
    let seen = match store.inspect("smollm2") {
        Ok(seen) => seen,
        Err(StoreError::Absent { .. } | StoreError::NoHome) => {
            println!("skipped: smollm2 is absent; `etime model pull smollm2` fetches it");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!((seen.params, seen.bytes), (134_515_008, 98_362_432));
    assert_eq!(
        (seen.layers, seen.hidden, seen.ffn),
        (Some(30), Some(576), Some(1536))
    );
    assert_eq!((seen.heads, seen.kv_heads), (Some(9), Some(3)));
    assert_eq!((seen.context_tok, seen.vocab), (Some(8192), Some(49_152)));
    let dtypes: Vec<_> = seen.dtypes.iter().map(|(k, n)| (k.as_str(), *n)).collect();
    assert_eq!(dtypes, [("F32", 61), ("Q4_1", 210), ("Q8_0", 1)]);
    let again = store.pull("smollm2", &mut |_| ()).unwrap();
    assert!(matches!(again, Pulled::AlreadyPresent(_)), "{again:?}");
}

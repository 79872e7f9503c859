//! A directory with its tokenizer: what ends a text.

use std::fs;
use std::path::Path;

use etime_engine::LoadOptions;
use etime_engine::load::Loaded;
use etime_engine::store::Store;
use serde_json::{Value, json};

/// A copy of the bundled model, with these ends of a text in its two configs.
fn ends(config: Value, generation: Option<&str>) -> Result<Vec<u32>, String> {
    let folder = tempfile::tempdir().unwrap();
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny");
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        fs::copy(bundled.join(name), folder.path().join(name)).unwrap();
    }
    let file = folder.path().join("config.json");
    let mut parsed: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    parsed["eos_token_id"] = config;
    fs::write(&file, parsed.to_string()).unwrap();
    if let Some(generation) = generation {
        fs::write(folder.path().join("generation_config.json"), generation).unwrap();
    }
    let store = Store::at(folder.path());
    let loaded = Loaded::open(
        &store,
        folder.path().to_str().unwrap(),
        LoadOptions::default(),
    );
    loaded
        .map(|loaded| loaded.eos_ids())
        .map_err(|error| error.to_string())
}

#[test]
fn the_ends_of_a_text_are_those_of_both_configs_together() {
    assert_eq!(ends(json!(5), None).unwrap(), [5]);
    assert_eq!(ends(json!([7, 5]), None).unwrap(), [5, 7]);
    let both = ends(json!(5), Some(r#"{"eos_token_id": [9, 5]}"#));
    assert_eq!(both.unwrap(), [5, 9]);
    let none = ends(json!(null), Some(r#"{"temperature": 0.7}"#));
    assert_eq!(none.unwrap(), [] as [u32; 0]);
}

#[test]
fn a_generation_config_that_cannot_be_read_is_named_with_its_fault() {
    let error = ends(json!(5), Some(r#"{"eos_token_id": "end"}"#)).unwrap_err();
    assert!(
        error.contains("generation_config.json: eos_token_id is \"end\""),
        "{error}"
    );
    let error = ends(json!(5), Some("{")).unwrap_err();
    assert!(
        error.contains("generation_config.json: not valid JSON"),
        "{error}"
    );
    let error = ends(json!(5), Some(r#"{"eos_token_id": 1000000}"#)).unwrap_err();
    assert!(error.contains("eos is 1000000"), "{error}");
}

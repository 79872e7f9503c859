use etime_engine::gguf::{List, Metadata, Value};
use etime_engine::tokenizer::{SpecialIds, Tokenizer, TokenizerError};
use proptest::prelude::*;

use crate::strings::STRINGS;

/// GPT-2's spelling of a byte.
fn symbol(byte: u8) -> char {
    let printable = |b: &u8| matches!(*b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(&byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|b| !printable(b)).count() as u32;
    char::from_u32(0x100 + before).unwrap()
}

fn text(s: &str) -> Value {
    Value::Text(s.to_owned())
}

fn texts<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Value {
    Value::List(List::Text(
        items.into_iter().map(|s| s.as_ref().to_owned()).collect(),
    ))
}

/// 256 bytes, four merged tokens, a control token, a user-defined token.
fn metadata() -> Metadata {
    let mut tokens: Vec<String> = (0..=255).map(|b| symbol(b).to_string()).collect();
    tokens.extend(["Ġt", "Ġth", "19", "he", "<|end|>", "<note>"].map(str::to_owned));
    let mut types = vec![1; tokens.len()];
    types[260] = 3;
    types[261] = 4;
    let entries = [
        ("model", text("gpt2")),
        ("pre", text("smollm")),
        ("tokens", texts(tokens)),
        ("merges", texts(["Ġ t", "Ġt h", "1 9", "h e"])),
        ("token_type", Value::List(List::I32(types))),
        ("bos_token_id", Value::U32(260)),
        ("eos_token_id", Value::U32(260)),
    ];
    let key = |k: &str| format!("tokenizer.ggml.{k}");
    entries.into_iter().map(|(k, v)| (key(k), v)).collect()
}

fn tokenizer() -> Tokenizer {
    Tokenizer::from_gguf(&metadata()).unwrap()
}

fn with(key: &str, value: Value) -> Result<Tokenizer, TokenizerError> {
    let mut metadata = metadata();
    metadata.insert(format!("tokenizer.ggml.{key}"), value);
    Tokenizer::from_gguf(&metadata)
}

fn byte(b: u8) -> u32 {
    b.into()
}

#[test]
fn merges_are_applied_in_their_order() {
    let ids = tokenizer().encode("a the").unwrap();
    assert_eq!(ids, [byte(b'a'), 257, byte(b'e')]);
}

#[test]
fn digits_stand_alone_though_a_merge_would_join_them() {
    let ids = tokenizer().encode("19").unwrap();
    assert_eq!(ids, [byte(b'1'), byte(b'9')]);
}

#[test]
fn no_space_is_put_in_front() {
    assert_eq!(tokenizer().encode("t").unwrap(), [byte(b't')]);
    assert_eq!(tokenizer().encode(" t").unwrap(), [256]);
}

#[test]
fn control_tokens_are_special_and_user_tokens_are_not() {
    let tokenizer = tokenizer();
    assert_eq!(
        tokenizer.encode("he<|end|><note>").unwrap(),
        [259, 260, 261]
    );
    assert_eq!(tokenizer.special_ids(), [260]);
    assert_eq!(tokenizer.bos_id(), Some(260));
    assert_eq!(tokenizer.eos_ids(), [260]);
    assert_eq!(tokenizer.vocab_size(), 262);
}

#[test]
fn a_beginning_of_text_is_added_only_on_request() {
    let tokenizer = with("add_bos_token", Value::Bool(true)).unwrap();
    assert_eq!(tokenizer.encode("he").unwrap(), [260, 259]);
}

#[test]
fn fifty_strings_round_trip() {
    let tokenizer = tokenizer();
    for s in STRINGS {
        let ids = tokenizer.encode(s).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), s);
    }
}

#[test]
fn a_missing_byte_is_an_error_that_names_the_character() {
    let mut tokens: Vec<String> = (0..=255).map(|b| symbol(b).to_string()).collect();
    tokens[7] = "bell".to_owned();
    let mut metadata = metadata();
    let types = vec![1; tokens.len()];
    metadata.insert("tokenizer.ggml.tokens".to_owned(), texts(tokens));
    metadata.insert("tokenizer.ggml.merges".to_owned(), texts::<&str>([]));
    metadata.insert(
        "tokenizer.ggml.token_type".to_owned(),
        Value::List(List::I32(types)),
    );
    metadata.retain(|key, _| !key.ends_with("_token_id"));
    let tokenizer = Tokenizer::from_gguf(&metadata).unwrap();
    let error = tokenizer.encode("ding\u{7}").unwrap_err();
    assert!(
        matches!(
            error,
            TokenizerError::Unencodable {
                character: '\u{7}',
                byte: 7,
                offset_bytes: 4
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("U+0007"), "{error}");
}

#[test]
fn an_unknown_pre_tokenizer_is_an_error_with_the_supported_ones() {
    for unknown in ["default", "deepseek-llm", ""] {
        let error = with("pre", text(unknown)).unwrap_err().to_string();
        let names = ["gpt-2", "smollm", "llama-bpe", "qwen2"];
        let all = names.iter().chain([&unknown]);
        for name in all {
            assert!(error.contains(&format!("`{name}`")), "{error}");
        }
    }
}

#[test]
fn llama3_takes_a_piece_that_is_a_token_whole_and_begins_a_text() {
    let mut tokens: Vec<String> = (0..=255).map(|b| symbol(b).to_string()).collect();
    tokens.extend(["Ġt", "Ġth", "19", "he", "<|end|>", "whole"].map(str::to_owned));
    let mut metadata = metadata();
    metadata.insert("tokenizer.ggml.pre".to_owned(), text("llama-bpe"));
    metadata.insert("tokenizer.ggml.tokens".to_owned(), texts(tokens));
    let types = vec![1; 262];
    let types = Value::List(List::I32(types));
    metadata.insert("tokenizer.ggml.token_type".to_owned(), types);
    let tokenizer = Tokenizer::from_gguf(&metadata).unwrap();
    assert_eq!(tokenizer.encode("whole 19").unwrap(), [260, 261, 32, 258]);

    metadata.insert(
        "tokenizer.ggml.add_bos_token".to_owned(),
        Value::Bool(false),
    );
    let silent = Tokenizer::from_gguf(&metadata).unwrap();
    assert_eq!(silent.encode("whole").unwrap(), [261]);

    metadata.remove("tokenizer.ggml.add_bos_token");
    metadata.remove("tokenizer.ggml.bos_token_id");
    let error = Tokenizer::from_gguf(&metadata).unwrap_err().to_string();
    assert!(
        error.contains("no `tokenizer.ggml.bos_token_id`"),
        "{error}"
    );
}

#[test]
fn qwen2_composes_characters_and_gpt2_does_not() {
    let (parts, whole) = ("cafe\u{301}", "caf\u{e9}");
    let ids = |pre: &str, s: &str| with("pre", text(pre)).unwrap().encode(s).unwrap();
    assert_eq!(ids("qwen2", parts), ids("qwen2", whole));
    assert_ne!(ids("gpt-2", parts), ids("gpt-2", whole));
}

#[test]
fn ends_of_text_and_of_turn_both_end_a_text() {
    let tokenizer = with("eot_token_id", Value::U32(261)).unwrap();
    assert_eq!(tokenizer.eos_ids(), [260, 261]);
    let tokenizer = with("eot_token_id", Value::U32(260)).unwrap();
    assert_eq!(tokenizer.eos_ids(), [260]);
}

#[test]
fn a_sentencepiece_model_is_an_error_with_the_supported_one() {
    let error = with("model", text("llama")).unwrap_err().to_string();
    assert!(
        error.contains("`llama`") && error.contains("`gpt2`"),
        "{error}"
    );
}

#[test]
fn faults_in_the_metadata_are_named() {
    let cases = [
        (with("pre", Value::U32(3)), "`tokenizer.ggml.pre` holds 3"),
        (
            with("merges", texts(["th e", "lonely"])),
            "merge 1 is \"lonely\"",
        ),
        (with("merges", texts(["q z"])), "do not fit together"),
        (
            with("token_type", Value::List(List::I32(vec![1]))),
            "262 tokens and 1 token types",
        ),
        (
            with("eos_token_id", Value::U32(900)),
            "eos is 900, but the tokenizer has 262",
        ),
        (
            with("tokens", texts(["a", "b", "a"])),
            "3 tokens and 262 token types",
        ),
    ];
    for (result, expected) in cases {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error} | {expected}");
    }
    let mut metadata = metadata();
    metadata.remove("tokenizer.ggml.merges");
    let error = Tokenizer::from_gguf(&metadata).unwrap_err().to_string();
    assert!(error.contains("no `tokenizer.ggml.merges`"), "{error}");
}

#[test]
fn two_tokens_of_one_spelling_are_an_error() {
    let mut tokens: Vec<String> = (0..=255).map(|b| symbol(b).to_string()).collect();
    tokens.extend(["he", "th", "!", "x1", "x2", "x3"].map(str::to_owned));
    let error = with("tokens", texts(tokens)).unwrap_err().to_string();
    assert!(error.contains("token 33 and token 258 alike"), "{error}");
}

#[test]
fn a_tokenizer_of_another_model_is_refused_and_padding_is_not() {
    let tokenizer = tokenizer();
    assert!(tokenizer.check_against(262).is_ok());
    assert!(tokenizer.check_against(264).is_ok());
    assert!(tokenizer.check_against(261).is_err());
    assert!(tokenizer.check_against(265).is_err());
    let error = tokenizer.check_against(49_152).unwrap_err().to_string();
    assert!(error.contains("262") && error.contains("49152"), "{error}");
}

#[test]
fn an_id_beyond_the_vocabulary_is_an_error() {
    let error = tokenizer().decode(&[1, 262]).unwrap_err();
    assert!(matches!(
        error,
        TokenizerError::UnknownId {
            id: 262,
            vocab_size: 262
        }
    ));
}

#[test]
fn a_stream_never_gives_part_of_a_character() {
    let tokenizer = tokenizer();
    for s in STRINGS {
        let mut stream = tokenizer.text_stream();
        let mut spelled = String::new();
        for id in tokenizer.encode(s).unwrap() {
            let piece = stream.push(id).unwrap();
            assert!(
                !piece.contains(char::REPLACEMENT_CHARACTER),
                "{s:?}: {piece:?}"
            );
            spelled += &piece;
            assert!(s.starts_with(&spelled));
        }
        assert_eq!(stream.finish().unwrap(), "");
        assert_eq!(spelled, s);
    }
}

#[test]
fn a_stream_gives_a_character_with_its_last_byte() {
    let tokenizer = tokenizer();
    let mut stream = tokenizer.text_stream();
    let pieces: Vec<String> = "é!"
        .bytes()
        .map(|b| stream.push(byte(b)).unwrap())
        .collect();
    assert_eq!(pieces, ["", "é", "!"]);
}

#[test]
fn a_stream_cut_inside_a_character_ends_in_the_replacement_character() {
    let tokenizer = tokenizer();
    let mut stream = tokenizer.text_stream();
    for b in "ok😀".bytes().take(5) {
        stream.push(byte(b)).unwrap();
    }
    assert_eq!(stream.finish().unwrap(), "\u{fffd}");
}

#[test]
fn a_refused_id_leaves_the_stream_as_it_was() {
    let tokenizer = tokenizer();
    let mut stream = tokenizer.text_stream();
    assert_eq!(stream.push(byte(b'a')).unwrap(), "a");
    assert!(stream.push(9999).is_err());
    assert_eq!(stream.push(byte(b'b')).unwrap(), "b");
}

proptest! {
    #[test]
    fn a_stream_spells_what_decode_spells(ids in prop::collection::vec(0_u32..262, 0..80)) {
        let tokenizer = tokenizer();
        let mut stream = tokenizer.text_stream();
        let mut spelled = String::new();
        for &id in &ids {
            spelled += &stream.push(id).unwrap();
        }
        spelled += &stream.finish().unwrap();
        prop_assert_eq!(spelled, tokenizer.decode(&ids).unwrap());
    }

    #[test]
    fn any_text_round_trips(s in ".{0,60}") {
        let tokenizer = tokenizer();
        let ids = tokenizer.encode(&s).unwrap();
        prop_assert_eq!(tokenizer.decode(&ids).unwrap(), s);
    }
}

const JSON: &str = r#"{"version":"1.0","truncation":{"direction":"Right","max_length":2,"strategy":"LongestFirst","stride":0},
 "padding":null,"added_tokens":[],"normalizer":null,"post_processor":null,
 "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
 "decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},
 "model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3},"merges":[["a","b"]]}}"#;

#[test]
fn a_stored_length_limit_does_not_cut_the_prompt() {
    let tokenizer = Tokenizer::from_json_bytes(JSON.as_bytes()).unwrap();
    assert_eq!(tokenizer.encode("abcab").unwrap(), [3, 2, 3]);
    assert!(tokenizer.encode("abd").is_err());
}

#[test]
fn a_json_that_is_no_tokenizer_is_an_error() {
    let error = Tokenizer::from_json_bytes(b"{\"model\": 3}").unwrap_err();
    assert!(
        error.to_string().starts_with("not a tokenizer.json"),
        "{error}"
    );
    let missing = Tokenizer::from_file("/nonexistent/tokenizer.json".as_ref()).unwrap_err();
    assert!(
        missing.to_string().contains("/nonexistent/tokenizer.json"),
        "{missing}"
    );
}

#[test]
fn the_ends_of_a_text_come_from_the_config() {
    let ids = |json: &str| SpecialIds::from_config(&serde_json::from_str(json).unwrap());
    let both = ids(r#"{"bos_token_id": 1, "eos_token_id": [2, 7]}"#).unwrap();
    assert_eq!((both.bos, both.eos), (Some(1), vec![2, 7]));
    let none = ids(r#"{"bos_token_id": null}"#).unwrap();
    assert_eq!(none, SpecialIds::default());
    let error = ids(r#"{"eos_token_id": "<end>"}"#).unwrap_err().to_string();
    assert!(
        error.contains("eos_token_id") && error.contains("<end>"),
        "{error}"
    );
    let json = Tokenizer::from_json_bytes(JSON.as_bytes()).unwrap();
    let far = SpecialIds {
        bos: None,
        eos: vec![4],
    };
    assert!(json.with_special_ids(far).is_err());
}

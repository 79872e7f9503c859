//! Parts of a `tokenizer.json` that would make ids random, or that the `tokenizers` crate does not survive.

use serde_json::Value;

use super::TokenizerError;

/// The file without dropout, which makes ids random.
///
/// # Errors
/// A part that is not supported, by its path.
pub(super) fn checked(mut value: Value) -> Result<Value, TokenizerError> {
    if let Some(dropout) = value.pointer_mut("/model/dropout") {
        *dropout = Value::Null;
    }
    let refuse = |path: &str, seen: &Value, allowed| {
        Err(TokenizerError::Unsupported {
            path: path.trim_start_matches('/').replace('/', "."),
            seen: seen.to_string(),
            allowed,
        })
    };
    for path in [
        "/model/continuing_subword_prefix",
        "/model/end_of_word_suffix",
    ] {
        let seen = value.pointer(path).unwrap_or(&Value::Null);
        if !seen.is_null() && seen != "" {
            return refuse(path, seen, "empty: tokens are joined as they are");
        }
    }
    if let Some(normalizer) = value.get("normalizer")
        && let Some(seen) = find(normalizer, &|part| {
            let empty = part.pointer("/pattern/String").is_some_and(|p| p == "");
            part.get("type").is_some_and(|kind| kind == "Precompiled") || empty
        })
    {
        let allowed = "normalizers without a precompiled table and without an empty pattern";
        return refuse("normalizer", seen, allowed);
    }
    Ok(value)
}

/// The first object in `value` that `wanted` accepts.
fn find<'a>(value: &'a Value, wanted: &dyn Fn(&Value) -> bool) -> Option<&'a Value> {
    if wanted(value) {
        return Some(value);
    }
    match value {
        Value::Array(items) => items.iter().find_map(|item| find(item, wanted)),
        Value::Object(fields) => fields.values().find_map(|field| find(field, wanted)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dropout_is_switched_off_and_what_cannot_be_run_is_named() {
        let fine =
            json!({"model": {"dropout": 0.5, "continuing_subword_prefix": ""}, "normalizer": null});
        assert_eq!(checked(fine).unwrap()["model"]["dropout"], Value::Null);
        for (bad, words) in [
            (
                json!({"model": {"continuing_subword_prefix": "##"}}),
                "model.continuing_subword_prefix is \"##\"",
            ),
            (
                json!({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": "AAAA"}]}}),
                "normalizer is {",
            ),
            (
                json!({"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "x"}}),
                "empty pattern",
            ),
        ] {
            let error = checked(bad).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}

//! Files of prompts: JSON lines, read whole and checked line by line.

use crate::text::read_text;
use crate::workload::WorkloadError;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// One line of a prompts file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// Unique within the file.
    pub id: String,
    pub kind: String,
    pub prompt: String,
    /// A continuation that a person would write.
    pub reference: String,
    /// One-based line of the file.
    #[serde(skip)]
    pub line: usize,
}

/// A file of prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompts {
    pub path: PathBuf,
    /// The file, word for word.
    pub text: String,
    /// At least two.
    pub list: Vec<Prompt>,
}

/// Larger than any file of prompts that a person writes.
const MAX_PROMPTS_BYTES: u64 = 64 << 20;

/// Longest prompt, bytes: it is turned into tokens whole.
pub const MAX_PROMPT_BYTES: usize = 1 << 20;

/// Reads a file of JSON lines; blank lines are skipped.
pub fn read_prompts(path: &Path) -> Result<Prompts, WorkloadError> {
    let text = read_prompts_text(path)?;
    let list = parse_prompts(path, &text)?;
    let path = path.to_owned();
    Ok(Prompts { path, text, list })
}

/// The text of a file of prompts, not yet looked at.
pub fn read_prompts_text(path: &Path) -> Result<String, WorkloadError> {
    read_text(path, MAX_PROMPTS_BYTES).map_err(|source| WorkloadError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn parse_prompts(path: &Path, text: &str) -> Result<Vec<Prompt>, WorkloadError> {
    let mut prompts = Vec::new();
    let mut lines = std::collections::BTreeMap::new();
    for (index, text) in text
        .lines()
        .enumerate()
        .filter(|(_, text)| !text.trim().is_empty())
    {
        let line = index + 1;
        let mut prompt: Prompt =
            serde_json::from_str(text).map_err(|error| WorkloadError::Line {
                path: path.to_owned(),
                line,
                problem: without_line(&error),
            })?;
        prompt.line = line;
        if prompt.prompt.len() > MAX_PROMPT_BYTES {
            return Err(WorkloadError::Line {
                path: path.to_owned(),
                line,
                problem: format!("its text has more than {} KiB", MAX_PROMPT_BYTES >> 10),
            });
        }
        if let Some(first) = lines.insert(prompt.id.clone(), line) {
            return Err(WorkloadError::DuplicateId {
                path: path.to_owned(),
                line,
                id: prompt.id,
                first,
            });
        }
        prompts.push(prompt);
    }
    if prompts.len() < 2 {
        return Err(WorkloadError::TooFew {
            path: path.to_owned(),
            held: prompts.len(),
        });
    }
    Ok(prompts)
}

/// What is wrong, and in which column: the line is the file's, not the one that the parser counts.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what} at column {}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Prompt>, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prompts.jsonl");
        std::fs::write(&path, text).unwrap();
        Ok(read_prompts(&path)?.list)
    }

    #[test]
    fn a_bad_line_is_named_with_its_number() {
        let line = |id: &str| {
            format!(
                "{{\"id\": \"{id}\", \"kind\": \"k\", \"prompt\": \"p\", \"reference\": \"r\"}}\n"
            )
        };
        assert_eq!(read(&(line("a") + "\n" + &line("b"))).unwrap().len(), 2);
        for (text, words) in [
            (
                line("a") + "{}\n",
                "jsonl:2: not a prompt: missing field `id`",
            ),
            (
                line("a") + "\n{\"id\": 3}",
                "jsonl:3: not a prompt: invalid type",
            ),
            (
                line("a") + &line("b") + &line("a"),
                "jsonl:3: the id `a` is taken by line 1",
            ),
            (line("a"), "1 prompts, at least 2"),
            (String::new(), "0 prompts"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let missing = read_prompts(Path::new("/nowhere/prompts.jsonl")).unwrap_err();
        assert!(
            missing.to_string().contains("/nowhere/prompts.jsonl"),
            "{missing}"
        );
    }
}

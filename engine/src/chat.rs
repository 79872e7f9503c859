//! Chat templates: messages to the prompt that a model was tuned on.
//!
//! A template is Jinja as the `transformers` library runs it: `messages`, `add_generation_prompt`, `bos_token` and
//! `eos_token`, Python's methods on values, and `raise_exception`. It comes from `chat_template.jinja`, the
//! `chat_template` of `tokenizer_config.json`, or the `tokenizer.chat_template` of a GGUF file.

use std::io::ErrorKind as Io;
use std::path::Path;

use minijinja::{Environment, Error, ErrorKind};
use serde::Serialize;
use serde_json::Value;

use crate::gguf::Metadata;
use crate::tokenizer::Tokenizer;

/// One turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    pub content: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    #[error("{name} has no chat template: it takes plain text only")]
    Missing { name: String },
    #[error("{file}: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("the chat template of {name} does not take these messages: {reason}")]
    Render { name: String, reason: String },
}

/// A model's template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTemplate(String);

impl ChatTemplate {
    /// The template beside a checkpoint; `None` where there is none.
    ///
    /// # Errors
    /// A file that cannot be read or holds no template where one should stand.
    pub fn in_directory(folder: &Path) -> Result<Option<Self>, ChatError> {
        if let Some(text) = read(&folder.join("chat_template.jinja"))? {
            return Ok(Some(ChatTemplate(text)));
        }
        let file = folder.join("tokenizer_config.json");
        let Some(text) = read(&file)? else {
            return Ok(None);
        };
        let unreadable = |reason: String| ChatError::Unreadable {
            file: file.display().to_string(),
            reason,
        };
        let config: Value = serde_json::from_str(&text).map_err(|e| unreadable(e.to_string()))?;
        match &config["chat_template"] {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(ChatTemplate(text.clone()))),
            Value::Array(named) => {
                let default = named.iter().find(|one| one["name"] == "default");
                let text = default.and_then(|one| one["template"].as_str());
                let missing = || unreadable("chat_template has no entry `default`".to_owned());
                Ok(Some(ChatTemplate(text.ok_or_else(missing)?.to_owned())))
            }
            other => Err(unreadable(format!(
                "chat_template is {other}, allowed: a text, or a list of named texts"
            ))),
        }
    }

    /// The template in the metadata of a GGUF file.
    pub fn in_gguf(metadata: &Metadata) -> Option<Self> {
        let text = metadata.get("tokenizer.chat_template")?.as_text()?;
        Some(ChatTemplate(text.to_owned()))
    }

    /// The prompt after which an answer is due. `name` stands for the model in errors.
    ///
    /// # Errors
    /// A template that fails, or that refuses the messages.
    pub fn render(
        &self,
        name: &str,
        messages: &[Message],
        tokenizer: &Tokenizer,
    ) -> Result<String, ChatError> {
        let spell = |id: Option<u32>| {
            let text = id.map(|id| tokenizer.decode(&[id]));
            text.transpose().ok().flatten().unwrap_or_default()
        };
        let mut environment = Environment::new();
        // As `transformers` sets it: a line that holds only a tag leaves nothing.
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(1_000_000));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |reason: String| -> Result<(), Error> {
            Err(Error::new(ErrorKind::InvalidOperation, reason))
        });
        let values = minijinja::context! {
            messages,
            add_generation_prompt => true,
            bos_token => spell(tokenizer.bos_id()),
            eos_token => spell(tokenizer.eos_ids().first().copied()),
        };
        let rendered = environment.render_str(&self.0, values);
        rendered.map_err(|error| ChatError::Render {
            name: name.to_owned(),
            reason: error.to_string(),
        })
    }
}

/// The text of a file; `None` where there is no such file.
fn read(file: &Path) -> Result<Option<String>, ChatError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == Io::NotFound => Ok(None),
        Err(error) => Err(ChatError::Unreadable {
            file: file.display().to_string(),
            reason: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokenizer() -> Tokenizer {
        Tokenizer::from_json_bytes(include_bytes!("../models/tiny/tokenizer.json")).unwrap()
    }

    fn user(content: &str) -> Message {
        Message {
            role: "user",
            content: content.to_owned(),
        }
    }

    const CHATML: &str = "{% for message in messages %}
    {% if loop.first and messages[0]['role'] != 'system' %}
<|im_start|>system\nBe brief.<|im_end|>
    {% endif %}
<|im_start|>{{ message['role'] }}\n{{ message['content'].strip() }}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

    #[test]
    fn messages_become_the_turns_of_the_template_and_an_open_answer() {
        let template = ChatTemplate(CHATML.to_owned());
        let text = template
            .render("m", &[user(" Hello ")], &tokenizer())
            .unwrap();
        assert_eq!(
            text,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
        );
    }

    #[test]
    fn a_template_that_refuses_or_never_ends_is_an_error() {
        for text in [
            "{{ raise_exception('roles must alternate') }}",
            "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}",
            "{{ messages[0].content",
        ] {
            let template = ChatTemplate(text.to_owned());
            let error = template
                .render("m", &[user("x")], &tokenizer())
                .unwrap_err();
            assert!(
                error.to_string().starts_with("the chat template of m"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_template_is_found_in_each_place_that_checkpoints_keep_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let found = || ChatTemplate::in_directory(folder.path());
        assert_eq!(found().unwrap(), None);
        std::fs::write(at("tokenizer_config.json"), r#"{"chat_template": "a"}"#).unwrap();
        assert_eq!(found().unwrap(), Some(ChatTemplate("a".to_owned())));
        let named = r#"{"chat_template": [{"name": "default", "template": "b"}]}"#;
        std::fs::write(at("tokenizer_config.json"), named).unwrap();
        assert_eq!(found().unwrap(), Some(ChatTemplate("b".to_owned())));
        std::fs::write(at("tokenizer_config.json"), r#"{"chat_template": 3}"#).unwrap();
        assert!(
            found()
                .unwrap_err()
                .to_string()
                .contains("chat_template is 3")
        );
        std::fs::write(at("chat_template.jinja"), "c").unwrap();
        assert_eq!(found().unwrap(), Some(ChatTemplate("c".to_owned())));
    }
}

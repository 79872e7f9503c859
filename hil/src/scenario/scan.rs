//! Reads the structure of RON text.

use super::text::{Field, Kind, Node, SyntaxError};
use std::ops::Range;

/// Reads one whole value; nothing but comments may stand around it.
pub fn scan(text: &str) -> Result<Node, SyntaxError> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.skip_attributes()?;
    let node = scanner.value()?;
    scanner.trivia()?;
    if scanner.at < text.len() {
        return Err(scanner.error("text after the end of the value"));
    }
    Ok(node)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// Deeper nesting than any scenario has; bounds the recursion.
const MAX_DEPTH: usize = 64;

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn error(&self, problem: impl Into<String>) -> SyntaxError {
        SyntaxError {
            at: self.at,
            problem: problem.into(),
            hint: None,
        }
    }

    /// Skips blanks and comments; block comments nest.
    fn trivia(&mut self) -> Result<(), SyntaxError> {
        loop {
            let blank = self.rest().len() - self.rest().trim_start().len();
            self.at += blank;
            if self.rest().starts_with("//") {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if self.rest().starts_with("/*") {
                self.block_comment()?;
            } else {
                return Ok(());
            }
        }
    }

    fn block_comment(&mut self) -> Result<(), SyntaxError> {
        let open = self.error("this block comment is never closed with */");
        let mut depth = 0;
        loop {
            if self.eat("/*") {
                depth += 1;
            } else if self.eat("*/") {
                depth -= 1;
            } else {
                self.at += self.peek().ok_or(open.clone())?.len_utf8();
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn skip_attributes(&mut self) -> Result<(), SyntaxError> {
        self.trivia()?;
        while self.rest().starts_with("#!") {
            let end = self.rest().find(']');
            self.at += end.ok_or_else(|| self.error("this attribute is never closed with ]"))? + 1;
            self.trivia()?;
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Node, SyntaxError> {
        self.value_at(0)
    }

    fn value_at(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("values are nested more than {MAX_DEPTH} deep")));
        }
        self.trivia()?;
        let start = self.at;
        let kind = match self.peek() {
            None => return Err(self.error("the text ends where a value should stand")),
            Some('[') => {
                self.at += 1;
                let items = self.items(']', start, depth)?;
                Kind::List { items }
            }
            Some('(') => self.parenthesis(start, depth)?,
            Some('"') => self.quoted()?,
            Some('\'') => self.character()?,
            Some('r') if self.rest().starts_with("r\"") || self.rest().starts_with("r#") => {
                self.raw_quoted()?
            }
            Some(c) if is_word(c) || matches!(c, '+' | '-' | '.') => self.word(depth)?,
            Some(c) => return Err(self.error(format!("`{c}` cannot start a value"))),
        };
        Ok(Node {
            span: start..self.at,
            kind,
        })
    }

    /// A number, a bare name, or a name with a parenthesis.
    fn word(&mut self, depth: usize) -> Result<Kind, SyntaxError> {
        let start = self.at;
        let is_name = self.peek().is_some_and(|c| c.is_alphabetic() || c == '_');
        let length = self
            .rest()
            .find(|c: char| !is_word(c) && !matches!(c, '+' | '-' | '.'))
            .unwrap_or(self.rest().len());
        self.at += length;
        let end = self.at;
        self.trivia()?;
        if is_name && self.peek() == Some('(') {
            return self.parenthesis(start, depth);
        }
        self.at = end;
        Ok(Kind::Atom)
    }

    fn parenthesis(&mut self, start: usize, depth: usize) -> Result<Kind, SyntaxError> {
        self.at += 1;
        let body = self.at;
        if self.field_name()?.is_none() {
            let items = self.items(')', start, depth)?;
            return Ok(Kind::Tuple { body, items });
        }
        let fields = self.fields(start, depth)?;
        Ok(Kind::Struct { body, fields })
    }

    /// The name at the cursor if a colon follows it; the cursor stays.
    fn field_name(&mut self) -> Result<Option<(String, Range<usize>)>, SyntaxError> {
        let before = self.at;
        self.trivia()?;
        let start = self.at;
        let length = self
            .rest()
            .find(|c: char| !is_word(c))
            .unwrap_or(self.rest().len());
        self.at += length;
        let span = start..self.at;
        self.trivia()?;
        let found = length > 0 && self.peek() == Some(':');
        self.at = before;
        Ok(found.then(|| (self.text[span.clone()].to_owned(), span)))
    }

    fn fields(&mut self, start: usize, depth: usize) -> Result<Vec<Field>, SyntaxError> {
        let mut fields: Vec<Field> = Vec::new();
        loop {
            self.trivia()?;
            if self.eat(")") {
                return Ok(fields);
            }
            let Some((name, name_span)) = self.field_name()? else {
                return Err(match self.peek() {
                    None => self.unclosed(start, ')'),
                    Some(_) => self.error("a field `name: value` or `)` should stand here"),
                });
            };
            if fields.iter().any(|field| field.name == name) {
                self.at = name_span.start;
                return Err(self.error(format!("the field `{name}` is given twice")));
            }
            self.at = name_span.end;
            self.trivia()?;
            self.at += 1;
            let value = self.value_at(depth + 1)?;
            let end = value.span.end;
            fields.push(Field {
                name,
                name_span,
                value,
            });
            self.separator(end, start, ')')?;
        }
    }

    fn items(&mut self, close: char, start: usize, depth: usize) -> Result<Vec<Node>, SyntaxError> {
        let mut items: Vec<Node> = Vec::new();
        loop {
            self.trivia()?;
            if self.peek() == Some(close) {
                self.at += 1;
                return Ok(items);
            }
            if self.peek().is_none() {
                return Err(self.unclosed(start, close));
            }
            let value = self.value_at(depth + 1)?;
            let end = value.span.end;
            items.push(value);
            self.separator(end, start, close)?;
        }
    }

    /// After a value: a comma, or the closing bracket (left in place).
    fn separator(
        &mut self,
        value_end: usize,
        start: usize,
        close: char,
    ) -> Result<(), SyntaxError> {
        self.trivia()?;
        if self.eat(",") || self.peek() == Some(close) {
            return Ok(());
        }
        match self.peek() {
            None => Err(self.unclosed(start, close)),
            Some(c @ (')' | ']' | '}')) => Err(self.error(format!(
                "`{c}` does not close what was opened; `{close}` would"
            ))),
            Some(_) => Err(SyntaxError {
                at: value_end,
                problem: format!("a comma or `{close}` should stand here"),
                hint: Some("is a comma missing at the end of this value?".to_owned()),
            }),
        }
    }

    fn unclosed(&self, start: usize, close: char) -> SyntaxError {
        SyntaxError {
            at: start,
            problem: format!("the text ends before the `{close}` that closes this"),
            hint: None,
        }
    }

    fn quoted(&mut self) -> Result<Kind, SyntaxError> {
        let open = self.error("this text is never closed with \"");
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(open),
                Some('"') => {
                    self.at += 1;
                    return Ok(Kind::Quoted);
                }
                Some('\\') => {
                    self.at += 1;
                    self.at += self.peek().map_or(0, char::len_utf8);
                }
                Some(c) => self.at += c.len_utf8(),
            }
        }
    }

    fn raw_quoted(&mut self) -> Result<Kind, SyntaxError> {
        let open = self.error("this raw text is never closed");
        self.at += 1;
        let hashes = self.rest().len() - self.rest().trim_start_matches('#').len();
        self.at += hashes;
        if !self.eat("\"") {
            return Err(open);
        }
        let close = format!("\"{}", "#".repeat(hashes));
        let length = self.rest().find(&close).ok_or(open)?;
        self.at += length + close.len();
        Ok(Kind::Quoted)
    }

    fn character(&mut self) -> Result<Kind, SyntaxError> {
        let open = self.error("this character is never closed with '");
        let body = &self.rest()[1..];
        let skip = if body.starts_with('\\') { 2 } else { 0 };
        let length = body.get(skip..).and_then(|rest| rest.find('\''));
        self.at += 1 + skip + length.ok_or(open)? + 1;
        Ok(Kind::Atom)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, path: &str) -> String {
        let tree = scan(text).unwrap();
        text[tree.find(path).span.clone()].to_owned()
    }

    #[test]
    fn a_path_finds_its_value_through_comments_and_variant_names() {
        let text = "// a scenario\nScenario(a: 1, /* b: 9 /* nested */ */ b: Some(Corrected((c: -2.5e-3, d: \"x)\\\"\"))),\n)";
        assert_eq!(at(text, "a"), "1");
        assert_eq!(at(text, "b.c"), "-2.5e-3");
        assert_eq!(at(text, "b.d"), "\"x)\\\"\"");
        assert_eq!(
            at(text, "b.nothing"),
            "Some(Corrected((c: -2.5e-3, d: \"x)\\\"\")))"
        );
    }

    #[test]
    fn lists_tuples_and_raw_texts_are_walked_with_their_paths() {
        let text = "(a: [One, (x: 2)], b: r#\"q\"q\"#, c: (1, 2), d: (), e: 'y')";
        let mut seen = Vec::new();
        scan(text).unwrap().walk("", &mut |path, node| {
            seen.push(format!("{path}={}", &text[node.span.clone()]))
        });
        assert_eq!(
            seen[1..],
            [
                "a=[One, (x: 2)]",
                "a[0]=One",
                "a[1]=(x: 2)",
                "a[1].x=2",
                "b=r#\"q\"q\"#",
                "c=(1, 2)",
                "c[0]=1",
                "c[1]=2",
                "d=()",
                "e='y'"
            ]
        );
    }

    #[test]
    fn a_missing_comma_is_reported_where_it_is_missing() {
        let error = scan("(\n  a: 1\n  b: 2,\n)").unwrap_err();
        assert_eq!(error.at, "(\n  a: 1".len());
        assert!(error.hint.unwrap().contains("comma"));
    }

    #[test]
    fn broken_text_is_refused_with_its_place() {
        for (text, at, word) in [
            ("(a: 1, a: 2)", 7, "twice"),
            ("(a: 1", 0, "closes"),
            ("(a: [1, 2)", 9, "does not close"),
            ("(a: \"x)", 4, "never closed"),
            ("(a: )", 4, "cannot start"),
            ("(a: 1) b", 7, "after the end"),
            ("", 0, "ends"),
            ("/* x", 0, "never closed"),
            ("(a: 1, 2)", 7, "field"),
            ("(a: 'x)", 4, "never closed"),
            ("(a: r#\"x\")", 4, "never closed"),
        ] {
            let error = scan(text).unwrap_err();
            assert!(error.problem.contains(word), "{text}: {error:?}");
            assert_eq!(error.at, at, "{text}: {error:?}");
        }
        assert!(scan(&"(".repeat(1000)).is_err());
    }
}

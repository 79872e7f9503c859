//! The text of a scenario, edited by `--set`, with the origin of every byte.

use super::error::{Place, ScenarioError};
use super::nearest::nearest;
use super::scan::scan;
use super::text::{Kind, Node, SyntaxError, join};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where a piece of the edited text came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Byte offset in the file.
    File(usize),
    /// Index of a `--set` argument.
    Flag(usize),
}

#[derive(Clone, Debug)]
struct Piece {
    origin: Origin,
    text: String,
}

/// A scenario as text, before its values are read.
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    file: String,
    flags: Vec<String>,
    pieces: Vec<Piece>,
}

impl Source {
    pub fn new(path: &Path, file: String) -> Self {
        Source {
            path: path.to_owned(),
            pieces: vec![Piece {
                origin: Origin::File(0),
                text: file.clone(),
            }],
            file,
            flags: Vec::new(),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text with every override in it.
    pub fn text(&self) -> String {
        self.pieces
            .iter()
            .map(|piece| piece.text.as_str())
            .collect()
    }

    /// The structure of the text.
    pub fn tree(&self) -> Result<Node, ScenarioError> {
        scan(&self.text()).map_err(|error| self.syntax_error(&error))
    }

    fn syntax_error(&self, error: &SyntaxError) -> ScenarioError {
        ScenarioError::new(self.place(error.at), "", error.problem.clone()).hint(error.hint.clone())
    }

    /// Where a byte of the edited text came from.
    pub fn place(&self, at: usize) -> Place {
        match self.origin(at) {
            Origin::Flag(index) => Place::Flag(self.flags[index].clone()),
            Origin::File(offset) => {
                let before = &self.file[..offset];
                let start = before.rfind('\n').map_or(0, |newline| newline + 1);
                Place::File {
                    path: self.path.clone(),
                    line: before.matches('\n').count() + 1,
                    column: before[start..].chars().count() + 1,
                }
            }
        }
    }

    /// Where the field at `path` stands, or the nearest thing around it.
    pub fn place_of(&self, path: &str) -> Place {
        let place = self
            .tree()
            .map(|tree| self.place(tree.find(path).span.start));
        place.unwrap_or_else(|_| Place::Whole(self.path.clone()))
    }

    fn origin(&self, at: usize) -> Origin {
        let mut start = 0;
        for piece in &self.pieces {
            let within = at - start;
            if within < piece.text.len() {
                return match piece.origin {
                    Origin::File(offset) => Origin::File(offset + within),
                    flag => flag,
                };
            }
            start += piece.text.len();
        }
        Origin::File(self.file.len())
    }

    /// Byte range of the edited text from the line and column that `ron` counts, both from 1.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        let text = self.text();
        let start: usize = text
            .split_inclusive('\n')
            .take(line.saturating_sub(1))
            .map(str::len)
            .sum();
        let chars = text[start..].chars().take(column.saturating_sub(1));
        start + chars.map(char::len_utf8).sum::<usize>()
    }

    /// Applies `key.path=value`: replaces the value there, or adds the field where it is absent.
    pub fn set(&mut self, flag: &str) -> Result<(), ScenarioError> {
        let refuse = |field: &str, problem: &str| {
            ScenarioError::new(Place::Flag(flag.to_owned()), field, problem)
        };
        let Some((path, value)) = flag.split_once('=') else {
            return Err(refuse("", "there is no `=`").allowed("key.path=value"));
        };
        let (path, value) = (path.trim(), value.trim());
        let names: Vec<&str> = path.split('.').collect();
        let is_name =
            |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !names.iter().all(is_name) {
            return Err(refuse(path, "this is not a path of fields")
                .allowed("names joined by dots, such as control.temperature.eta_per_nat"));
        }
        let tree = self.tree()?;
        let target = locate(&tree, &names).map_err(|stop| {
            let seen = &self.text()[stop.span.clone()];
            refuse(path, &format!("`{}` has no fields of its own", stop.path))
                .seen(seen)
                .hint(self.suggest(&tree, path))
        })?;
        let was_quoted = matches!(&target, Target::Value { quoted: true, .. });
        let value = match scan(value) {
            Ok(node) if was_quoted && value != "None" && !matches!(node.kind, Kind::Quoted) => {
                quote(value)
            }
            // The value alone: a comment behind it would swallow what follows.
            Ok(node) => value[node.span].to_owned(),
            Err(_) if !value.is_empty() && !value.contains(['(', ')', '[', ']', '"']) => {
                quote(value)
            }
            Err(error) => return Err(refuse(path, &error.problem).seen(value).hint(error.hint)),
        };
        let index = self.flags.len();
        self.flags.push(flag.to_owned());
        match target {
            Target::Value { span, .. } => self.replace(span, index, value),
            Target::Absent { body, missing } => {
                let (last, outer) = (missing.len() - 1, missing.join(": ("));
                let text = format!("{outer}: {value}{}, ", ")".repeat(last));
                self.replace(body..body, index, text);
            }
        }
        Ok(())
    }

    /// Puts the text of a `--set` value at `at` into quotes; false where `at` is not in one.
    pub fn quote_flag(&mut self, tree: &Node, at: usize) -> bool {
        let Origin::Flag(index) = self.origin(at) else {
            return false;
        };
        let mut found = None;
        tree.walk("", &mut |_, node| {
            if node.kind == Kind::Atom && node.span.contains(&at) {
                found = Some(node.span.clone());
            }
        });
        let Some(span) = found else { return false };
        let value = quote(&self.text()[span.clone()]);
        self.replace(span, index, value);
        true
    }

    fn replace(&mut self, span: Range<usize>, flag: usize, text: String) {
        let mut pieces = Vec::new();
        let mut start = 0;
        let mut fresh = Some(Piece {
            origin: Origin::Flag(flag),
            text,
        });
        for piece in &self.pieces {
            let length = piece.text.len();
            let cut = |at: usize| at.clamp(start, start + length) - start;
            let (head, tail) = (cut(span.start), cut(span.end));
            if head > 0 {
                pieces.push(part(piece, 0..head));
            }
            if span.start < start + length
                && let Some(fresh) = fresh.take()
            {
                pieces.push(fresh);
            }
            if tail < length {
                pieces.push(part(piece, tail..length));
            }
            start += length;
        }
        pieces.extend(fresh);
        self.pieces = pieces;
    }

    /// The existing path that `path` was probably meant to be.
    pub fn suggest(&self, tree: &Node, path: &str) -> Option<String> {
        let mut paths = Vec::new();
        tree.walk("", &mut |other, _| {
            if !other.is_empty() && !other.ends_with(']') && other != path {
                paths.push(other.to_owned());
            }
        });
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
        let same_name = paths
            .iter()
            .find(|other| last(other) == last(path))
            .cloned();
        let found = same_name.or_else(|| nearest(path, &paths));
        found.map(|path| format!("did you mean `{path}`?"))
    }
}

fn part(piece: &Piece, range: Range<usize>) -> Piece {
    Piece {
        origin: match piece.origin {
            Origin::File(offset) => Origin::File(offset + range.start),
            flag => flag,
        },
        text: piece.text[range].to_owned(),
    }
}

fn quote(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

enum Target {
    Value {
        span: Range<usize>,
        quoted: bool,
    },
    /// The first name of `missing` is not a field of the struct whose text starts at `body`.
    Absent {
        body: usize,
        missing: Vec<String>,
    },
}

/// A value without fields, where a path wants to go on.
struct Stop {
    path: String,
    span: Range<usize>,
}

fn locate(tree: &Node, names: &[&str]) -> Result<Target, Stop> {
    let mut node = tree;
    let mut path = String::new();
    for (index, name) in names.iter().enumerate() {
        if let Some(field) = node.field(name) {
            node = &field.value;
            path = join(&path, name);
            continue;
        }
        return match &node.inner().kind {
            Kind::Struct { body, .. } => Ok(absent(*body, &names[index..])),
            Kind::Tuple { body, items } if items.is_empty() => Ok(absent(*body, &names[index..])),
            _ => Err(Stop {
                path,
                span: node.span.clone(),
            }),
        };
    }
    Ok(Target::Value {
        span: node.span.clone(),
        quoted: node.kind == Kind::Quoted,
    })
}

fn absent(body: usize, missing: &[&str]) -> Target {
    Target::Absent {
        body,
        missing: missing.iter().map(|&name| name.to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new(Path::new("a.ron"), text.to_owned())
    }

    #[test]
    fn values_are_replaced_added_and_replaced_again() {
        let mut source = source("Scenario(\n  a: 1, // one\n  b: Law(c: 2),\n  m: \"x\",\n)");
        for flag in [
            "b.c=3",
            "b.d=[1, 2]",
            "m=tiny two",
            "b.c=4 // note",
            "n=None",
            "b=Other((c: 9))",
            "b.c=10",
            "e.f.g=Yes",
            "z=-1",
        ] {
            source.set(flag).unwrap();
        }
        assert_eq!(
            source.text(),
            "Scenario(z: -1, e: (f: (g: Yes)), n: None, \n  a: 1, // one\n  b: Other((c: 10)),\n  m: \"tiny two\",\n)"
        );
    }

    #[test]
    fn places_name_the_line_of_the_file_or_the_flag() {
        let mut source = source("(\n  é: 1, b: 2,\n)");
        source.set("é=1234567").unwrap();
        let tree = source.tree().unwrap();
        let place = |path: &str| source.place(tree.find(path).span.start);
        assert_eq!(place("é"), Place::Flag("é=1234567".to_owned()));
        assert_eq!(place("b").to_string(), "a.ron:2:12");
    }

    #[test]
    fn a_flag_cannot_smuggle_in_a_second_field_or_break_the_text() {
        let mut source = source("(a: 1, m: \"x\")");
        source.set("m=x\", a: 2, b: \"").unwrap_err();
        source.set("a=(").unwrap_err();
        source.set("a=").unwrap_err();
        source.set("a").unwrap_err();
        source.set("a.b=1").unwrap_err();
        source.set("a..b=1").unwrap_err();
        assert_eq!(source.text(), "(a: 1, m: \"x\")");
        source.set("m=1, b: 2").unwrap();
        assert_eq!(source.text(), "(a: 1, m: \"1, b: 2\")");
    }

    #[test]
    fn the_full_path_is_suggested_for_a_bare_name_and_for_a_misspelling() {
        let source = source("(control: (temperature: Corrected(eta_per_nat: 1)))");
        let tree = source.tree().unwrap();
        for path in ["eta_per_nat", "control.temprature.eta_per_na"] {
            assert_eq!(
                source.suggest(&tree, path).unwrap(),
                "did you mean `control.temperature.eta_per_nat`?"
            );
        }
    }
}

//! A span-keeping reader of RON text: where each field stands, so that errors can point and `--set` can edit.
//!
//! It knows structure, not types; `ron` reads the values.

use std::ops::Range;

/// A value and the bytes that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub span: Range<usize>,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number, a character, or a bare name.
    Atom,
    /// A text in quotes.
    Quoted,
    /// `Name(a: 1, b: 2)`; `body` starts right after the parenthesis.
    Struct { body: usize, fields: Vec<Field> },
    /// `Name(1, 2)`, `()` and `Name()`.
    Tuple { body: usize, items: Vec<Node> },
    /// `[1, 2]`.
    List { items: Vec<Node> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub name_span: Range<usize>,
    pub value: Node,
}

/// Text that is not RON, and the byte where that shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub at: usize,
    pub problem: String,
    pub hint: Option<String>,
}

impl Node {
    /// The struct inside newtype variants and `Some(…)`: paths skip variant names.
    pub fn inner(&self) -> &Node {
        match &self.kind {
            Kind::Tuple { items, .. } if items.len() == 1 => items[0].inner(),
            _ => self,
        }
    }

    pub fn field(&self, name: &str) -> Option<&Field> {
        match &self.inner().kind {
            Kind::Struct { fields, .. } => fields.iter().find(|field| field.name == name),
            _ => None,
        }
    }

    /// The node at a dotted path, or the deepest one on the way there.
    pub fn find(&self, path: &str) -> &Node {
        let mut node = self;
        for name in path.split('.').filter(|name| !name.is_empty()) {
            match node.field(name) {
                Some(field) => node = &field.value,
                None => return node,
            }
        }
        node
    }

    /// The innermost struct, tuple or list around a byte.
    pub fn around(&self, at: usize) -> (String, &Node) {
        let mut found = (String::new(), self);
        self.walk("", &mut |path, node| {
            let is_open = !matches!(node.kind, Kind::Atom | Kind::Quoted);
            if is_open && node.span.contains(&at) {
                found = (path.to_owned(), node);
            }
        });
        found
    }

    /// Visits every node below, parents first, with its path.
    pub fn walk<'a>(&'a self, path: &str, visit: &mut dyn FnMut(&str, &'a Node)) {
        visit(path, self);
        match &self.kind {
            Kind::Atom | Kind::Quoted => {}
            Kind::Struct { fields, .. } => {
                for field in fields {
                    field.value.walk(&join(path, &field.name), visit);
                }
            }
            Kind::Tuple { items, .. } if items.len() == 1 => items[0].walk(path, visit),
            Kind::Tuple { items, .. } | Kind::List { items } => {
                for (index, item) in items.iter().enumerate() {
                    item.walk(&format!("{path}[{index}]"), visit);
                }
            }
        }
    }
}

/// `path.name`, or `name` at the top.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

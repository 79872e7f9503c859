//! Values of metadata.

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    Text(String),
    List(List),
}

/// A list, its items stored as densely as in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum List {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<String>),
    List(Vec<List>),
}

impl Value {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number of any width, if it is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::U64(v) => Some(v),
            _ => self.as_i64().and_then(|v| u64::try_from(v).ok()),
        }
    }

    /// A whole number of any width, if it fits.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::U8(v) => Some(v.into()),
            Value::I8(v) => Some(v.into()),
            Value::U16(v) => Some(v.into()),
            Value::I16(v) => Some(v.into()),
            Value::U32(v) => Some(v.into()),
            Value::I32(v) => Some(v.into()),
            Value::U64(v) => i64::try_from(v).ok(),
            Value::I64(v) => Some(v),
            _ => None,
        }
    }

    /// A number with a fraction, of either width.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Value::F32(v) => Some(v.into()),
            Value::F64(v) => Some(v),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&List> {
        match self {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// What it is, for messages: a number or a text as it stands, a list by its type and length.
    pub fn describe(&self) -> String {
        match self {
            Value::U8(v) => v.to_string(),
            Value::I8(v) => v.to_string(),
            Value::U16(v) => v.to_string(),
            Value::I16(v) => v.to_string(),
            Value::U32(v) => v.to_string(),
            Value::I32(v) => v.to_string(),
            Value::U64(v) => v.to_string(),
            Value::I64(v) => v.to_string(),
            Value::F32(v) => format!("{v:?}"),
            Value::F64(v) => format!("{v:?}"),
            Value::Bool(v) => v.to_string(),
            Value::Text(text) => quoted(text),
            Value::List(list) => format!("a list of {} {}", list.len(), list.items()),
        }
    }
}

impl List {
    pub fn len(&self) -> usize {
        match self {
            List::U8(v) => v.len(),
            List::I8(v) => v.len(),
            List::U16(v) => v.len(),
            List::I16(v) => v.len(),
            List::U32(v) => v.len(),
            List::I32(v) => v.len(),
            List::U64(v) => v.len(),
            List::I64(v) => v.len(),
            List::F32(v) => v.len(),
            List::F64(v) => v.len(),
            List::Bool(v) => v.len(),
            List::Text(v) => v.len(),
            List::List(v) => v.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn texts(&self) -> Option<&[String]> {
        match self {
            List::Text(texts) => Some(texts),
            _ => None,
        }
    }

    /// Item `index` of a list of whole numbers, if it fits.
    pub fn integer(&self, index: usize) -> Option<i64> {
        match self {
            List::U8(v) => v.get(index).map(|&v| v.into()),
            List::I8(v) => v.get(index).map(|&v| v.into()),
            List::U16(v) => v.get(index).map(|&v| v.into()),
            List::I16(v) => v.get(index).map(|&v| v.into()),
            List::U32(v) => v.get(index).map(|&v| v.into()),
            List::I32(v) => v.get(index).map(|&v| v.into()),
            List::U64(v) => v.get(index).and_then(|&v| v.try_into().ok()),
            List::I64(v) => v.get(index).copied(),
            _ => None,
        }
    }

    fn items(&self) -> &'static str {
        match self {
            List::U8(_) | List::U16(_) | List::U32(_) | List::U64(_) => "whole numbers",
            List::I8(_) | List::I16(_) | List::I32(_) | List::I64(_) => "whole numbers",
            List::F32(_) | List::F64(_) => "numbers",
            List::Bool(_) => "truth values",
            List::Text(_) => "texts",
            List::List(_) => "lists",
        }
    }
}

/// A text in quotes, cut where a message would drown in it.
pub(super) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    match text.char_indices().nth(MAX_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_are_read_where_they_fit() {
        assert_eq!(Value::U64(u64::MAX).as_u64(), Some(u64::MAX));
        assert_eq!(Value::U64(u64::MAX).as_i64(), None);
        assert_eq!(Value::I8(-1).as_u64(), None);
        assert_eq!(Value::I8(-1).as_i64(), Some(-1));
        assert_eq!(Value::U16(7).as_u64(), Some(7));
        assert_eq!(Value::F32(0.5).as_f64(), Some(0.5));
        assert_eq!(Value::U8(1).as_f64(), None);
        assert_eq!(List::U64(vec![1, u64::MAX]).integer(1), None);
        assert_eq!(List::I32(vec![1, -2]).integer(1), Some(-2));
    }

    #[test]
    fn a_long_text_is_cut_on_a_character() {
        let long = "é".repeat(500);
        let shown = Value::Text(long).describe();
        assert!(
            shown.ends_with("… (1000 bytes)") && shown.len() < 200,
            "{shown}"
        );
    }
}

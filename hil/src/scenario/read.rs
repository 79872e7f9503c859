//! From text to values, and from what `ron` says to what a person needs to hear.

use super::Scenario;
use super::error::{Place, ScenarioError};
use super::nearest::nearest;
use super::source::Source;
use super::text::{Kind, Node, join};
use etime_control::law::{FieldError, TemperatureLaw};
use ron::Options;
use ron::error::{Error as RonError, SpannedError};
use ron::extensions::Extensions;
use serde::de::DeserializeOwned;
use std::path::Path;

/// RON with the two extensions that keep scenarios free of `Some` and of double parentheses.
pub(super) fn options() -> Options {
    Options::default()
        .with_default_extension(Extensions::UNWRAP_VARIANT_NEWTYPES)
        .with_default_extension(Extensions::IMPLICIT_SOME)
}

/// Applies the overrides and reads the values.
pub(super) fn read(
    mut source: Source,
    sets: &[String],
) -> Result<(Scenario, Source), ScenarioError> {
    source.tree()?;
    for set in sets {
        source.set(set)?;
    }
    let scenario = parse(&mut source)?;
    Ok((scenario, source))
}

/// Reads a temperature law given on the command line as `flag`, under overrides of its fields.
///
/// # Errors
/// As for a scenario; paths are relative to the law.
pub fn parse_law(flag: &str, text: &str, sets: &[String]) -> Result<TemperatureLaw, ScenarioError> {
    let mut source = Source::new(Path::new(flag), text.to_owned());
    source.tree()?;
    for set in sets {
        source.set(set)?;
    }
    let law: TemperatureLaw = parse(&mut source)?;
    law.check().map_err(|error| {
        let path = error.path.trim_start_matches("temperature.").to_owned();
        field_error(&source, FieldError { path, ..error })
    })?;
    Ok(law)
}

fn parse<T: DeserializeOwned>(source: &mut Source) -> Result<T, ScenarioError> {
    loop {
        let tree = source.tree()?;
        refuse_non_finite(source, &tree)?;
        let error = match options().from_str(&source.text()) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        // A text in a `--set` needs no quotes: the shell has taken one pair already.
        let wants_text = matches!(error.code, RonError::ExpectedString);
        let at = source.offset(error.span.end.line, error.span.end.col);
        if !(wants_text && source.quote_flag(&tree, at)) {
            return Err(translate::<T>(source, &tree, at, &error));
        }
    }
}

/// NaN and infinity are numbers to RON, and so is what overflows to infinity.
fn refuse_non_finite(source: &Source, tree: &Node) -> Result<(), ScenarioError> {
    let text = source.text();
    let mut found = None;
    tree.walk("", &mut |path, node| {
        let atom = &text[node.span.clone()];
        if node.kind == Kind::Atom && found.is_none() && is_non_finite(atom) {
            let error = ScenarioError::new(
                source.place(node.span.start),
                path,
                "this is not a finite number",
            );
            found = Some(error.seen(atom).allowed("a finite number"));
        }
    });
    found.map_or(Ok(()), Err)
}

fn is_non_finite(atom: &str) -> bool {
    let plain = atom.replace('_', "");
    let bare = plain.trim_start_matches(['+', '-']);
    let bare = bare
        .strip_suffix("f32")
        .or(bare.strip_suffix("f64"))
        .unwrap_or(bare);
    matches!(bare, "inf" | "NaN")
        || (bare.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && bare.parse::<f64>().is_ok_and(|x| !x.is_finite()))
}

/// An error at the field of `error`, or at the nearest thing around it.
pub(super) fn field_error(source: &Source, error: FieldError) -> ScenarioError {
    ScenarioError::new(
        source.place_of(&error.path),
        error.path,
        "this value is not allowed",
    )
    .seen(&error.seen)
    .allowed(error.allowed)
}

/// The deepest value at a byte, with its path; a byte right behind a value belongs to it.
fn value_at(tree: &Node, at: usize) -> (String, &Node) {
    let mut found = (String::new(), tree);
    tree.walk("", &mut |path, node| {
        if node.span.start <= at && at <= node.span.end {
            found = (path.to_owned(), node);
        }
    });
    found
}

fn translate<T: DeserializeOwned>(
    source: &Source,
    tree: &Node,
    at: usize,
    error: &SpannedError,
) -> ScenarioError {
    let (path, node) = value_at(tree, at);
    let place = source.place(node.span.start);
    let text = source.text();
    let written = &text[node.span.clone()];
    match &error.code {
        RonError::NoSuchStructField {
            expected, found, ..
        } => unknown_field(source, tree, at, found, expected),
        RonError::MissingStructField { field, .. } => {
            let (parent, node) = tree.around(at);
            let place = source.place(node.span.start);
            ScenarioError::new(
                place,
                join(&parent, field),
                format!("the field `{field}` is missing"),
            )
        }
        RonError::NoSuchEnumVariant {
            expected, found, ..
        } => unknown_variant(place, path, found, expected),
        code => match variants_at::<T>(&text, node) {
            Some(variants) if !written.starts_with(|c: char| c.is_alphabetic()) => {
                unknown_variant(place, path, written, variants)
            }
            _ => ScenarioError::new(place, path, "this value has the wrong type")
                .seen(written)
                .allowed(allowed(code, node)),
        },
    }
}

fn unknown_variant(place: Place, path: String, found: &str, variants: &[&str]) -> ScenarioError {
    ScenarioError::new(place, path, format!("there is no variant `{found}`"))
        .allowed(variants.join(", "))
        .hint(nearest(found, variants).map(|name| format!("did you mean `{name}`?")))
}

/// The variants that may stand in place of `node`: asked of `ron` by putting a name there that none has.
fn variants_at<T: DeserializeOwned>(text: &str, node: &Node) -> Option<&'static [&'static str]> {
    let probe = format!(
        "{}NoVariant{}",
        &text[..node.span.start],
        &text[node.span.end..]
    );
    match options().from_str::<T>(&probe).err()?.code {
        RonError::NoSuchEnumVariant {
            expected, found, ..
        } if found == "NoVariant" => Some(expected),
        _ => None,
    }
}

fn unknown_field(
    source: &Source,
    tree: &Node,
    at: usize,
    found: &str,
    expected: &[&str],
) -> ScenarioError {
    let mut best: Option<(usize, String, usize)> = None;
    tree.walk("", &mut |path, node| {
        let Kind::Struct { fields, .. } = &node.kind else {
            return;
        };
        for field in fields.iter().filter(|field| field.name == found) {
            let apart = at.abs_diff(field.name_span.end);
            if best.as_ref().is_none_or(|(least, ..)| apart < *least) {
                best = Some((apart, path.to_owned(), field.name_span.start));
            }
        }
    });
    let (_, parent, start) = best.unwrap_or((0, String::new(), at));
    let place = source.place(start);
    let path = join(&parent, found);
    let near = nearest(found, expected).map(|name| match place {
        Place::Flag(_) => format!("did you mean `{}`?", join(&parent, &name)),
        _ => format!("did you mean `{name}`?"),
    });
    let hint = near.or_else(|| match &place {
        Place::Flag(flag) => {
            let asked = flag.split('=').next().unwrap_or(&path).trim();
            source.suggest(tree, asked)
        }
        _ => None,
    });
    ScenarioError::new(place, path, format!("there is no field `{found}`"))
        .allowed(expected.join(", "))
        .hint(hint)
}

fn allowed(code: &RonError, node: &Node) -> String {
    let is_atom = matches!(node.kind, Kind::Atom | Kind::Quoted);
    let allowed = match code {
        RonError::ExpectedFloat | RonError::FloatUnderscore => "a number, such as 0.05",
        // `ron` reads the digits of 1.5 or 1e3 as a whole number and then wants a comma.
        RonError::ExpectedComma if is_atom => WHOLE,
        RonError::ExpectedInteger
        | RonError::IntegerOutOfBounds
        | RonError::InvalidIntegerDigit { .. }
        | RonError::UnderscoreAtBeginning => WHOLE,
        RonError::ExpectedString => "a text in double quotes",
        RonError::ExpectedBoolean => "true or false",
        RonError::ExpectedArray => "a list, such as [1, 2]",
        RonError::ExpectedStructLike | RonError::ExpectedNamedStructLike(_) => {
            "fields in parentheses, such as (a: 1, b: 2)"
        }
        RonError::ExpectedIdentifier | RonError::SuggestRawIdentifier(_) => {
            "fields in parentheses, such as (a: 1, b: 2)"
        }
        RonError::ExpectedUnit | RonError::ExpectedComma => "a bare name, without a parenthesis",
        RonError::ExpectedDifferentStructName { expected, .. } => return format!("{expected}(…)"),
        RonError::InvalidValueForType { expected, .. } => return expected.clone(),
        other => return other.to_string(),
    };
    allowed.to_owned()
}

const WHOLE: &str = "a whole number, 0 or more";

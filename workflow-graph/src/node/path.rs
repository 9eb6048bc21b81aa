//! Walks the paths of checks and tests the values at their ends. It names the values that do not fit, the first ones
//! each with its place.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use serde_json::Value;

use crate::document::model::{Path, Segment, Test};
use crate::expression::{Expression, Scope, short};

/// Values that a message lists.
const LISTED: usize = 3;

/// Why a path of `required` is not met. Null counts as missing. (SW5)
pub(crate) fn missing(path: &Path, scope: &dyn Scope) -> Option<String> {
    let mut tally = Tally::default();
    visit(path, scope, &mut |indices, end| {
        let problem = match end {
            End::Value(_) => None,
            End::Missing => Some("is missing".to_owned()),
            End::NoList(value) => Some(no_list(value)),
        };
        tally.count(path, indices, problem);
    });
    if tally.all == 0 {
        return Some(format!("`{}` has no element", place(&path.segments, &[])));
    }
    tally.unmet(path.is_any).map(|unmet| {
        if path.is_any && has_every(path) { format!("{unmet}; one has to be there") } else { unmet }
    })
}

/// Why the values at a path do not fit. A wildcard over nothing fits, unless one element has to. (SW5)
pub(crate) fn unfit(path: &Path, test: &Test, scope: &dyn Scope) -> Option<String> {
    let mut tally = Tally::default();
    visit(path, scope, &mut |indices, end| {
        let problem = match end {
            End::NoList(value) => Some(no_list(value)),
            End::Value(value) => problem(test, Some(value)),
            End::Missing => problem(test, None),
        };
        tally.count(path, indices, problem);
    });
    let unmet = if tally.all == 0 && path.is_any {
        Some(format!("`{}` has no element", place(&path.segments, &[])))
    } else {
        tally.unmet(path.is_any)
    };
    let subject = match (has_every(path), path.is_any) {
        (false, _) => "it",
        (true, true) => "one",
        (true, false) => "each",
    };
    let expected = match test {
        Test::Equals(value) => format!("be {}", short(value)),
        Test::In(values) => format!("be one of {}", short(&Value::Array(values.clone()))),
        Test::Matches(regex) => format!("match `{regex}`"),
    };
    unmet.map(|unmet| format!("{unmet}; {subject} has to {expected}"))
}

fn has_every(path: &Path) -> bool {
    path.segments.contains(&Segment::Every)
}

fn no_list(value: &Value) -> String {
    format!("is {}, which is no list", short(value))
}

/// Why a value does not fit; a missing one equals null.
fn problem(test: &Test, value: Option<&Value>) -> Option<String> {
    let found = value.unwrap_or(&Value::Null);
    let fits = match test {
        Test::Equals(expected) => equal(found, expected),
        Test::In(expected) => is_one_of(found, expected),
        Test::Matches(regex) => Ok(found.as_str().is_some_and(|text| regex.is_match(text))),
    };
    match (fits, value) {
        (Ok(true), _) => None,
        (Ok(false), None) => Some("is missing".to_owned()),
        (Ok(false), Some(value)) => match (test, value) {
            (Test::Matches(_), value) if !value.is_string() => {
                Some(format!("is {}, which is no text", short(value)))
            }
            _ => Some(format!("is {}", short(value))),
        },
        (Err(error), _) => Some(format!("cannot be compared: {error}")),
    }
}

fn is_one_of(found: &Value, expected: &[Value]) -> Result<bool, String> {
    for expected in expected {
        if equal(found, expected)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Equality as in expressions, with their bounds.
fn equal(a: &Value, b: &Value) -> Result<bool, String> {
    static EQUAL: LazyLock<Expression> =
        LazyLock::new(|| Expression::parse("a == b").expect("the text is an expression"));
    EQUAL.evaluate_condition(&Pair(a, b)).map_err(|error| error.message)
}

struct Pair<'a>(&'a Value, &'a Value);

impl Scope for Pair<'_> {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        match name {
            "a" => Some(Cow::Borrowed(self.0)),
            "b" => Some(Cow::Borrowed(self.1)),
            _ => None,
        }
    }
}

/// The values at the ends of a path, counted.
#[derive(Default)]
struct Tally {
    all: usize,
    unfit: usize,
    listed: Vec<String>,
}

impl Tally {
    fn count(&mut self, path: &Path, indices: &[usize], problem: Option<String>) {
        self.all += 1;
        if let Some(problem) = problem {
            self.unfit += 1;
            if self.listed.len() < LISTED {
                // A walk ends early at a value that is no list, and then names that one.
                let every = path.segments.iter().enumerate().filter(|(_, step)| **step == Segment::Every);
                let end = every.map(|(at, _)| at).nth(indices.len()).unwrap_or(path.segments.len());
                self.listed.push(format!("`{}` {problem}", place(&path.segments[..end], indices)));
            }
        }
    }

    fn unmet(self, is_any: bool) -> Option<String> {
        let is_met = if is_any { self.unfit < self.all } else { self.unfit == 0 };
        if is_met {
            return None;
        }
        let mut unmet = self.listed.join(", ");
        if self.unfit > self.listed.len() {
            let _ = write!(unmet, " and {} more", self.unfit - self.listed.len());
        }
        Some(unmet)
    }
}

/// The end of a walk.
enum End<'v> {
    Value(&'v Value),
    /// Nothing is there, or null.
    Missing,
    /// A wildcard stands behind a value that is no list.
    NoList(&'v Value),
}

/// Visits every end of a path, with the indices that its wildcards stand for.
fn visit(path: &Path, scope: &dyn Scope, each: &mut dyn FnMut(&[usize], End<'_>)) {
    let Some((Segment::Key(root), rest)) = path.segments.split_first() else { return };
    walk(rest, scope.get(root).as_deref(), &mut Vec::new(), each);
}

/// It recurses once for each wildcard that finds elements: no deeper than the value.
fn walk(
    segments: &[Segment],
    from: Option<&Value>,
    indices: &mut Vec<usize>,
    each: &mut dyn FnMut(&[usize], End<'_>),
) {
    let mut at = from.filter(|value| !value.is_null());
    for (place, segment) in segments.iter().enumerate() {
        at = match (segment, at) {
            (Segment::Every, None) => return,
            (Segment::Every, Some(Value::Array(items))) => {
                for (index, item) in items.iter().enumerate() {
                    indices.push(index);
                    walk(&segments[place + 1..], Some(item), indices, each);
                    indices.pop();
                }
                return;
            }
            (Segment::Every, Some(other)) => return each(indices, End::NoList(other)),
            (Segment::Key(key), Some(Value::Object(map))) => map.get(&**key),
            (Segment::Index(index), Some(Value::Array(items))) => items.get(*index),
            (Segment::Key(_) | Segment::Index(_), _) => None,
        }
        .filter(|value| !value.is_null());
    }
    each(indices, at.map_or(End::Missing, End::Value));
}

/// A path as documents write it, with indices in place of its first wildcards.
fn place(segments: &[Segment], indices: &[usize]) -> String {
    let mut written = String::new();
    let mut indices = indices.iter();
    for segment in segments {
        let _ = match segment {
            Segment::Key(key) if key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') => {
                let dot = if written.is_empty() { "" } else { "." };
                write!(written, "{dot}{key}")
            }
            Segment::Key(key) => write!(written, "[{}]", Value::from(&**key)),
            Segment::Index(index) => write!(written, "[{index}]"),
            Segment::Every => match indices.next() {
                Some(index) => write!(written, "[{index}]"),
                None => write!(written, "[*]"),
            },
        };
    }
    written
}

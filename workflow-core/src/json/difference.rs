//! The first difference between two values, also between values with the same JSON: both `Some(None)` and
//! `None` are written as `null`.

use std::fmt::Write as _;

use serde_json::{Error, Value};

use super::{JsonWriter, ToJson, written};

/// The key of an object around the content of a `Some`. No field has this name.
pub(super) const SOME: &str = "$some";

/// The first place at which two values differ.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The place, as in `lines[3].price`; empty for the whole value.
    pub(crate) path: String,
    /// The content of this place in the first and in the second value; `None` where a value has no such
    /// place.
    pub(crate) sides: [Option<String>; 2],
}

/// The first difference; `None` if the values are equal or one of them has no JSON.
pub(crate) fn difference(one: &(impl ToJson + ?Sized), other: &(impl ToJson + ?Sized)) -> Option<Difference> {
    let (one, other) = (with_marks(one).ok()?, with_marks(other).ok()?);
    let mut path = String::new();
    let sides = differ(Some(&one), Some(&other), &mut path)?;
    Some(Difference { path, sides })
}

/// The value as JSON with a mark at each `Some`.
fn with_marks(value: &(impl ToJson + ?Sized)) -> Result<Value, Error> {
    let mut writer = JsonWriter { marks_some: true, ..JsonWriter::default() };
    written(value, &mut writer)?;
    Ok(writer.done.unwrap_or_default())
}

/// Both contents at the first difference. Then `path` leads there; otherwise it is unchanged.
fn differ(one: Option<&Value>, other: Option<&Value>, path: &mut String) -> Option<[Option<String>; 2]> {
    let before = path.len();
    match (one, other) {
        (Some(one), Some(other)) if one == other => return None,
        (Some(Value::Object(ones)), Some(Value::Object(others))) => {
            for key in ones.keys().chain(others.keys().filter(|key| !ones.contains_key(*key))) {
                enter(key, path);
                if let Some(sides) = differ(ones.get(key), others.get(key), path) {
                    return Some(sides);
                }
                path.truncate(before);
            }
        }
        (Some(Value::Array(ones)), Some(Value::Array(others))) => {
            for place in 0..ones.len().max(others.len()) {
                // Writing to a text does not fail.
                let _ = write!(path, "[{place}]");
                if let Some(sides) = differ(ones.get(place), others.get(place), path) {
                    return Some(sides);
                }
                path.truncate(before);
            }
        }
        _ => {}
    }
    Some([one, other].map(|side| side.map(text_of)))
}

fn enter(key: &str, path: &mut String) {
    if key != SOME {
        let dot = if path.is_empty() { "" } else { "." };
        let _ = write!(path, "{dot}{key}");
    }
}

/// The text of a value as a store would have it, except for a `Some` that looks like `None` there.
fn text_of(value: &Value) -> String {
    match inside(value) {
        Some(inner) if plain(inner).is_null() => format!("Some({})", text_of(inner)),
        _ => plain(value).to_string(),
    }
}

/// The content of a marked `Some`.
fn inside(value: &Value) -> Option<&Value> {
    value.as_object().filter(|entries| entries.len() == 1)?.get(SOME)
}

/// The value without marks.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(plain).collect(),
        Value::Object(entries) => match inside(value) {
            Some(inner) => plain(inner),
            None => entries.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        },
        _ => value.clone(),
    }
}

#[cfg(test)]
#[expect(clippy::option_option, reason = "the tests need values that JSON does not distinguish")]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::*;

    #[derive(Clone, Default, Serialize)]
    struct Order {
        id: u32,
        lines: Vec<Line>,
        unit: Option<()>,
        by_name: BTreeMap<String, Option<Option<u8>>>,
    }

    #[derive(Clone, Serialize)]
    enum Line {
        Of { price: Option<Option<u8>> },
        Some(u8),
    }

    fn found(one: &Order, other: &Order) -> Option<(String, [Option<String>; 2])> {
        difference(one, other).map(|Difference { path, sides }| (path, sides))
    }

    fn sides(one: &str, other: &str) -> [Option<String>; 2] {
        [one, other].map(|side| Some(side.to_owned()))
    }

    fn of(price: Option<Option<u8>>) -> Order {
        Order { lines: vec![Line::Some(1), Line::Of { price }], ..Order::default() }
    }

    #[test]
    fn values_with_the_same_json_differ_by_their_somes() {
        let path = "lines[1].Of.price".to_owned();
        assert_eq!(found(&of(Some(None)), &of(Some(None))), None);
        assert_eq!(found(&of(Some(None)), &of(None)), Some((path.clone(), sides("Some(null)", "null"))));
        assert_eq!(found(&of(Some(Some(7))), &of(None)), Some((path, sides("7", "null"))));
        let order = Order { unit: Some(()), ..Order::default() };
        assert_eq!(found(&order, &Order::default()), Some(("unit".into(), sides("Some(null)", "null"))));
    }

    #[test]
    fn an_entry_of_one_value_alone_is_a_difference_at_its_own_place() {
        let one = Order { lines: vec![Line::Some(1)], ..Order::default() };
        let two = Order { lines: vec![Line::Some(1), Line::Some(2)], ..Order::default() };
        let second = |sides| Some(("lines[1]".to_owned(), sides));
        assert_eq!(found(&one, &two), second([None, Some(r#"{"Some":2}"#.into())]));
        assert_eq!(found(&two, &one), second([Some(r#"{"Some":2}"#.into()), None]));
        let named = |name: &str| Order { by_name: [(name.into(), Some(None))].into(), ..Order::default() };
        assert_eq!(
            found(&named("a"), &named("b")),
            Some(("by_name.a".into(), [Some("Some(null)".into()), None]))
        );
    }

    #[test]
    fn a_difference_of_the_whole_value_has_no_path() {
        let found = difference(&Some(None::<u8>), &None::<Option<u8>>).unwrap();
        assert_eq!(found, Difference { path: String::new(), sides: sides("Some(null)", "null") });
    }
}

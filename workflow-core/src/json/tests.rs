use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::*;

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Wrapped(i16);

#[derive(Serialize)]
struct Pair(bool, char);

#[derive(Serialize)]
enum Shape {
    Empty,
    One(Box<Shape>),
    Two(u8, f32),
    Named { inner: Option<Wrapped>, rest: Vec<Shape> },
}

#[derive(Serialize)]
struct Everything {
    unit: (),
    empty: Unit,
    pair: Pair,
    numbers: (i8, i64, u64, f64, i128, u128),
    text: &'static str,
    none: Option<u8>,
    shapes: [Shape; 3],
    named: BTreeMap<u32, Vec<Wrapped>>,
    by_truth: BTreeMap<bool, u8>,
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

fn everything() -> Everything {
    let named = Shape::Named { inner: Some(Wrapped(-3)), rest: vec![Shape::Two(1, 0.5), Shape::Empty] };
    Everything {
        unit: (),
        empty: Unit,
        pair: Pair(true, 'ß'),
        numbers: (-1, i64::MIN, u64::MAX, 1.5, i128::from(u64::MAX), 7),
        text: "\"quoted\"\n",
        none: None,
        shapes: [Shape::Empty, Shape::One(Box::new(Shape::Empty)), named],
        named: [(1, vec![Wrapped(2)]), (30, vec![])].into(),
        by_truth: [(true, 0)].into(),
        more: [("rest".to_owned(), json!({"a": [null, -0.25, {"b": {}}]}))].into(),
    }
}

#[test]
fn everything_is_written_as_serde_json_writes_it() {
    let value = everything();
    assert_eq!(to_json(&value).unwrap(), serde_json::to_value(&value).unwrap());
    for number in [f64::NAN, f64::INFINITY, -0.0] {
        assert_eq!(to_json(&number).unwrap(), serde_json::to_value(number).unwrap());
    }
    let third = 1.0_f32 / 3.0;
    assert_eq!(to_json(&third).unwrap(), serde_json::to_value(third).unwrap());
}

#[test]
fn a_value_without_json_is_an_error() {
    assert!(to_json(&u128::MAX).is_err());
    assert!(to_json(&i128::MIN).is_err());
    assert!(to_json(&BTreeMap::from([([1, 2], 3)])).is_err());
}

struct Refusing;

impl Serialize for Refusing {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("it is secret"))
    }
}

#[test]
fn an_error_of_the_value_is_passed_on() {
    assert_eq!(to_json(&[Refusing]).unwrap_err().to_string(), "it is secret");
}

#[test]
fn bytes_are_a_list_of_numbers() {
    struct Bytes;
    impl Serialize for Bytes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&[1, 255])
        }
    }
    assert_eq!(to_json(&Bytes).unwrap(), json!([1, 255]));
}

fn counts_as_written(value: &impl Serialize) {
    let text = serde_json::to_string(&to_json(value).unwrap()).unwrap();
    assert_eq!(size_of(value, usize::MAX).unwrap(), Some(text.len()), "{text}");
    assert_eq!(size_of(value, text.len()).unwrap(), Some(text.len()));
    for most in 0..text.len() {
        let counted = size_of(value, most).unwrap().unwrap();
        assert!(counted > most && counted <= text.len(), "{counted} with a bound of {most}: {text}");
    }
}

#[test]
fn the_count_is_the_length_of_the_text() {
    counts_as_written(&everything());
    counts_as_written(&"\"quoted\"\n ß \u{1}");
    counts_as_written(&[f64::NAN, 1.0, -0.0, 1e300]);
    counts_as_written(&(1.0_f32 / 3.0));
    counts_as_written(&json!({"a": [], "b": {}, "c": [[], [[]]], "d": {"e": [{}]}}));
    counts_as_written(&());
}

#[test]
fn counting_stops_where_the_bound_is_passed() {
    struct Endless(std::cell::Cell<u32>);
    impl Serialize for Endless {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut list = serializer.serialize_seq(None)?;
            loop {
                self.0.set(self.0.get() + 1);
                list.serialize_element("four")?;
            }
        }
    }
    let endless = Endless(0.into());
    assert_eq!(size_of(&endless, 700).unwrap(), Some(707));
    // Each element takes six bytes and a comma.
    assert_eq!(endless.0.get(), 101);
}

struct Panics;
impl Serialize for Panics {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("never look")
    }
}

#[test]
fn a_value_that_cannot_be_written_cannot_be_counted() {
    assert_eq!(size_of(&[Refusing], 100).unwrap(), None);
    assert_eq!(size_of(&[Panics], 100).unwrap_err().message, "never look");
    assert_eq!(size_of(&("too long", Panics), 5).unwrap(), Some(11));
}

#[test]
fn raw_json_is_copied_unchanged() {
    struct Raw(&'static str);
    impl Serialize for Raw {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut raw = serializer.serialize_struct(VERBATIM[0], 1)?;
            raw.serialize_field(VERBATIM[0], self.0)?;
            raw.end()
        }
    }
    assert_eq!(to_json(&[Raw("{\"a\": 1}")]).unwrap(), json!([{"a": 1}]));
    assert!(to_json(&Raw("{")).is_err());
    counts_as_written(&[Raw("{\"a\": 1}"), Raw("[ ]")]);
}

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde::ser::{SerializeSeq as _, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::*;

#[derive(Serialize)]
struct Invoice {
    lines: Vec<Line>,
    rates: BTreeMap<String, Rate>,
}

#[derive(Serialize)]
struct Line {
    price: Option<f64>,
}

#[derive(Serialize)]
enum Rate {
    Fixed(f32),
    Bounds(f64, f64),
    Named { rate: f32 },
}

/// The path of the unfit part, and the problem.
fn misfit(value: &impl Serialize) -> (String, UnfitValue) {
    match fit(value, usize::MAX) {
        Err(Misfit::Unfit { path, problem }) => (path, problem),
        other => panic!("{other:?}"),
    }
}

fn not_finite_at(value: &impl Serialize, path: &str) {
    assert_eq!(misfit(value), (path.to_owned(), UnfitValue::NotFinite));
}

fn with_rate(rate: Rate) -> Invoice {
    Invoice { lines: vec![], rates: [("reduced".to_owned(), rate)].into() }
}

#[test]
fn numbers_that_are_not_finite_are_found_wherever_they_stand() {
    let lines = [1.0, 2.0, 3.0, f64::NAN].map(|price| Line { price: Some(price) });
    not_finite_at(&Invoice { lines: lines.into(), rates: BTreeMap::new() }, "lines[3].price");
    not_finite_at(&with_rate(Rate::Fixed(f32::INFINITY)), "rates.reduced.Fixed");
    not_finite_at(&with_rate(Rate::Bounds(0.0, f64::NEG_INFINITY)), "rates.reduced.Bounds[1]");
    not_finite_at(&with_rate(Rate::Named { rate: f32::NAN }), "rates.reduced.Named.rate");
    not_finite_at(&f32::NEG_INFINITY, "");
    not_finite_at(&[[1.0], [f64::NAN]], "[1][0]");
    not_finite_at(&(1, Some(f64::INFINITY)), "[1]");
    let finite = with_rate(Rate::Bounds(f64::MIN, f64::MAX));
    assert_eq!(fit(&finite, usize::MAX).unwrap(), serde_json::to_value(&finite).unwrap());
}

/// A number as the key of a map.
#[derive(PartialEq, Eq, Hash)]
struct Degrees(u32);

impl Serialize for Degrees {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f32(f32::from_bits(self.0))
    }
}

#[test]
fn keys_of_maps_are_texts_numbers_and_bools() {
    assert_eq!(misfit(&BTreeMap::from([((1, 2), 3)])), (String::new(), UnfitValue::Key));
    assert_eq!(misfit(&[BTreeMap::from([((), 3)])]), ("[0]".into(), UnfitValue::Key));
    assert_eq!(misfit(&BTreeMap::from([(None::<u8>, 3)])).1, UnfitValue::Key);
    not_finite_at(&HashMap::from([(Degrees(f32::NAN.to_bits()), 1)]), "");
    let numbers = HashMap::from([(Degrees(1.5_f32.to_bits()), 1)]);
    assert_eq!(fit(&numbers, usize::MAX).unwrap(), json!({"1.5": 1}));
    assert_eq!(fit(&BTreeMap::from([(true, 'c')]), usize::MAX).unwrap(), json!({"true": "c"}));
}

#[derive(Serialize)]
struct Flat {
    total: u32,
    #[serde(flatten)]
    more: BTreeMap<String, u32>,
}

#[test]
fn a_key_that_stands_for_two_values_is_refused() {
    let flat = |total| Flat { total: 1, more: [("total".to_owned(), total)].into() };
    assert_eq!(misfit(&flat(2)).1, UnfitValue::KeyTwice { key: "total".into() });
    assert_eq!(fit(&flat(1), usize::MAX).unwrap(), json!({"total": 1}));
}

#[test]
fn integers_beyond_those_of_json_are_refused() {
    assert_eq!(misfit(&[u128::MAX]), ("[0]".into(), UnfitValue::OutOfRange));
    assert_eq!(misfit(&i128::MIN).1, UnfitValue::OutOfRange);
    assert_eq!(fit(&(i128::from(i64::MIN), u128::from(u64::MAX)), usize::MAX).unwrap()[1], json!(u64::MAX));
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(
        json!(1),
        |inner, level| {
            if level % 2 == 0 { json!([inner]) } else { json!({"in": inner}) }
        },
    )
}

/// The number of nested levels.
fn levels(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(levels).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn serde_json_reads_as_many_levels_as_are_counted_with() {
    let text = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(serde_json::from_str::<Value>(&text(READER_LEVELS)).is_ok());
    assert!(
        serde_json::from_str::<Value>(&text(READER_LEVELS + 1)).is_err(),
        "it reads more: raise the bound"
    );
}

#[test]
fn a_value_nests_as_deep_as_can_be_read_back_and_no_deeper() {
    let deepest = fit(&nested(MAX_JSON_DEPTH), usize::MAX).unwrap();
    assert_eq!(levels(&deepest), MAX_JSON_DEPTH);
    let within_a_record_and_a_store =
        (0..RECORD_LEVELS + STORE_LEVELS).fold(deepest, |inner, _| json!([inner]));
    let text = serde_json::to_string(&within_a_record_and_a_store).unwrap();
    assert!(serde_json::from_str::<Value>(&text).is_ok());

    let (path, problem) = misfit(&nested(MAX_JSON_DEPTH + 1));
    assert_eq!(problem, UnfitValue::TooDeep { limit: MAX_JSON_DEPTH });
    assert!(path.starts_with("[0].in[0].in") && path.ends_with('…'), "{path}");
    // Text that is JSON already has its levels counted too, also if it is too deep for its reader.
    let raw = |levels| RawValue::from_string("[".repeat(levels) + &"]".repeat(levels)).unwrap();
    assert!(fit(&[raw(MAX_JSON_DEPTH - 1)], usize::MAX).is_ok());
    assert!(matches!(misfit(&[raw(MAX_JSON_DEPTH)]).1, UnfitValue::TooDeep { .. }));
    assert!(matches!(misfit(&raw(100_000)).1, UnfitValue::TooDeep { .. }));
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn verbatim_json_keeps_its_value_or_is_refused_at_its_place() {
    let thirty_digits = raw(r#"{"a": [1, 123456789012345678901234567890]}"#);
    assert_eq!(misfit(&[&thirty_digits]), ("[0].a[1]".into(), UnfitValue::OutOfRange));
    for integer in ["18446744073709551616", "-9223372036854775809", "100000000000000000000"] {
        assert_eq!(misfit(&raw(integer)).1, UnfitValue::OutOfRange, "{integer}");
    }
    for number in
        ["0.12345678901234567890", "9007199254740993.0", "1e400", "1e-400", "1e99999999999999999999"]
    {
        assert_eq!(misfit(&raw(number)).1, UnfitValue::Imprecise, "{number}");
    }
    let twice = |path: &str, key: &str| (path.to_owned(), UnfitValue::KeyTwice { key: key.into() });
    assert_eq!(misfit(&raw(r#"{"a": 1, "b": {}, "a": 2}"#)), twice("", "a"));
    assert_eq!(misfit(&[raw(r#"{"b" : [ {"a": 1, "\u0061": [1]}]}"#)]), twice("[0].b[0]", "a"));
    let reserved = UnfitValue::ReservedKey { key: VERBATIM[0].into() };
    assert_eq!(misfit(&raw(r#"{"b": {"$serde_json::private::RawValue": "1"}}"#)), ("b".into(), reserved));

    let kept = [
        r#" {"b": 1e2, "a": [ -0.5 , 1.50, 0e999, 12300.0e-2], "a b": {} } "#,
        r#"[[], "a\"]}\\", "\u00df", true, false, null, {"": [{}]}, {"a": 1, "a": 1}]"#,
        "[-9223372036854775808, 18446744073709551615, -0, 0, -0.0, 1E+2, 5e-324, 1.7976931348623157e308]",
        "\"\"",
        "7",
    ];
    for text in kept {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(fit(&(raw(text), 1), usize::MAX).unwrap(), json!([value, 1]), "{text}");
        // Its bytes count once.
        assert!(fit(&raw(text), text.len()).is_ok(), "{text}");
    }
    assert!(matches!(fit(&raw(r#""a long text""#), 12), Err(Misfit::TooLarge { .. })));
}

#[test]
fn every_number_of_a_value_is_kept_verbatim() {
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..10_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for number in [
            json!(bits),
            json!(bits.cast_signed()),
            json!(f64::from_bits(bits)),
            json!(f32::from_bits((bits >> 32).try_into().unwrap())),
        ] {
            assert_eq!(fit(&raw(&number.to_string()), usize::MAX).unwrap(), number);
        }
    }
}

/// Serialises as an endless list.
struct Endless;

impl Serialize for Endless {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        loop {
            list.serialize_element("four")?;
        }
    }
}

#[test]
fn serialisation_of_a_large_value_stops_early() {
    let Err(Misfit::TooLarge { bytes }) = fit(&Endless, 600) else { panic!("it has no end") };
    assert_eq!(bytes, 606);
    let keys = BTreeMap::from([("a long key", 1)]);
    assert!(matches!(fit(&keys, 10), Err(Misfit::TooLarge { .. })));
    assert!(fit(&keys, 20).is_ok());
}

struct Fails(fn());

impl Serialize for Fails {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        (self.0)();
        Err(serde::ser::Error::custom("it is secret"))
    }
}

#[test]
fn errors_and_panics_of_the_value_are_found_where_they_are() {
    let (path, problem) = misfit(&json_of_secret(|| {}));
    assert_eq!((&*path, &*problem.to_string()), ("secrets[1]", "its `Serialize` failed: it is secret"));
    let (path, problem) = misfit(&json_of_secret(|| panic!("never look")));
    assert_eq!((&*path, problem), ("secrets[1]", UnfitValue::Panicked { message: "never look".into() }));
}

fn json_of_secret(fails: fn()) -> impl Serialize {
    #[derive(Serialize)]
    struct Kept {
        secrets: (u8, Fails),
    }
    Kept { secrets: (1, Fails(fails)) }
}

/// Ignores the refusal and writes another value instead.
struct Stubborn;

impl Serialize for Stubborn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        if list.serialize_element(&f64::NAN).is_err() {
            list.serialize_element("NaN")?;
        }
        list.end()
    }
}

#[test]
fn a_refusal_that_the_value_passes_over_is_one_all_the_same() {
    not_finite_at(&Stubborn, "[0]");
}

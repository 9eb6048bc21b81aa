//! The meaning of expressions, rule by rule. The oracle tests that they agree with Python.

mod bounds;
mod conditions;
mod fuzz;
mod messages;
mod missing;
mod reads;
mod types;

use serde_json::{Map, Value, json};

use super::{BadExpression, Expression};

fn scope(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("a scope is a map, and not {other}"),
    }
}

fn data() -> Map<String, Value> {
    scope(json!({
        "a": 5, "s": "Grüße", "none": null, "yes": true, "list": [1, 2, 3], "empty": [],
        "m": {"b": {"c": 7}, "__typename": "T", "in": 1, "web-search": 2, "keys": 3, "n": null},
    }))
}

fn value(source: &str) -> Value {
    let expression = Expression::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    expression.evaluate(&data()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn error(source: &str) -> String {
    let expression = Expression::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    match expression.evaluate(&data()) {
        Err(error) => error.to_string(),
        Ok(value) => panic!("{source} has the value {value}"),
    }
}

fn bad(source: &str) -> BadExpression {
    match Expression::parse(source) {
        Err(error) => error,
        Ok(_) => panic!("{source} is an expression"),
    }
}

/// Each source has the value that is written as JSON beside it.
fn have(cases: &[(&str, Value)]) {
    for (source, expected) in cases {
        assert_eq!(value(source).to_string(), expected.to_string(), "{source}");
    }
}

/// G35
#[test]
fn literals_are_those_of_python_and_json() {
    have(&[
        ("12", json!(12)),
        ("-0.5e1", json!(-5.0)),
        ("1_000", json!(1000)),
        ("'it\\'s'", json!("it's")),
        ("\"\\u00e9\\ud83d\\ude00\\x41\\n\\/\"", json!("é😀A\n/")),
        (r"'\d'", json!("\\d")),
        ("[true, True, false, False, null, None]", json!([true, true, false, false, null, null])),
        ("()", json!([])),
        ("(1,)", json!([1])),
        ("(1, 'a')", json!([1, "a"])),
        ("[1, 2,]", json!([1, 2])),
        ("-9223372036854775808", json!(i64::MIN)),
        ("9223372036854775807", json!(i64::MAX)),
    ]);
}

/// G35
#[test]
fn paths_have_keys_indices_and_places_from_the_end() {
    have(&[
        ("m.b.c", json!(7)),
        ("m[\"b\"].c", json!(7)),
        ("m['web-search']", json!(2)),
        ("m[\"__typename\"]", json!("T")),
        ("m.in + m.keys", json!(4)),
        ("list[0]", json!(1)),
        ("list[-1]", json!(3)),
        ("list[a - 4]", json!(2)),
        ("s[2]", json!("ü")),
        ("(list + [4])[-1]", json!(4)),
    ]);
}

/// G35
#[test]
fn other_texts_are_no_expressions_and_the_place_is_reported() {
    let cases = [
        ("", 0),
        ("a b", 2),
        ("a =  1", 2),
        ("a ** 2", 2),
        ("a[1:2]", 3),
        ("{'a': 1}", 0),
        ("[x for x in list]", 3),
        ("lambda x: 1", 8),
        ("__import__('os')", 0),
        ("a.__class__", 2),
        ("a.b()", 2),
        ("foo(1)", 0),
        ("m.b()()", 2),
        ("'open", 0),
        ("'a' 'b'", 4),
        ("f'a'", 0),
        ("(1", 2),
        ("1 2", 2),
        ("12ab", 0),
        ("007", 0),
        ("1__0", 0),
        ("0x1f", 0),
        ("1e999", 0),
        ("9223372036854775808", 0),
        ("a == not yes", 5),
        ("a if yes", 2),
        ("a not 1", 2),
        ("1, 2", 1),
        ("'\\ud800'", 1),
        ("'\\xg1'", 1),
        ("'a\nb'", 2),
        ("é = 1", 3),
        ("a ? 1 : 2", 2),
        ("a & 1", 2),
        ("len()", 0),
        ("len(1, 2)", 0),
        ("has(1 + 1)", 0),
        ("matches(s, '(')", 11),
        ("$a", 0),
        ("a.", 2),
        ("a\u{a0}+ 1", 1),
    ];
    for (source, offset) in cases {
        assert_eq!(bad(source).offset, offset, "{source}: {}", bad(source));
    }
}

/// G36
#[test]
fn operators_bind_as_in_python() {
    have(&[
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("-7 // 2", json!(-4)),
        ("-7 % 3", json!(2)),
        ("7 / 2", json!(3.5)),
        ("4 / 2", json!(2.0)),
        ("10 - 2 - 3", json!(5)),
        ("not 1 == 2", json!(true)),
        ("!1 == 2", json!(true)),
        ("true || false && false", json!(true)),
        ("1 if false else 2 if false else 3", json!(3)),
        ("1 < 2 < 3", json!(true)),
        ("1 < 3 < 2", json!(false)),
        ("1 + 1 in list", json!(true)),
        ("not a in list", json!(true)),
        ("a not in list", json!(true)),
        ("none is null", json!(true)),
        ("a is not null", json!(true)),
        ("-list[0]", json!(-1)),
    ]);
}

/// G36
#[test]
fn integers_are_exact_and_their_overflow_errs() {
    have(&[
        ("9007199254740993 + 0", json!(9_007_199_254_740_993_i64)),
        ("9007199254740993 == 9007199254740992.0", json!(false)),
    ]);
    for source in [
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "9223372036854775807 * 2",
        "-(-9223372036854775808)",
        "abs(-9223372036854775808)",
        "-9223372036854775808 // -1",
        "int(1e19)",
        "int('9223372036854775808')",
        "round(1e19)",
    ] {
        assert!(error(source).contains("beyond 64 bits"), "{source}: {}", error(source));
    }
    assert!(error("1e308 * 10").contains("no finite number"));
    assert!(error("1 // 0").contains("the divisor is zero"));
    assert!(error("1 / 0.0").contains("the divisor is zero"));
}

/// G36
#[test]
fn integers_beyond_64_bits_in_the_data_are_compared_by_value() {
    let scope = scope(json!({"large": u64::MAX}));
    let evaluate = |source: &str| Expression::parse(source).unwrap().evaluate(&scope);
    assert_eq!(evaluate("large > 9223372036854775807"), Ok(json!(true)));
    assert_eq!(evaluate("large < 18446744073709551616.0"), Ok(json!(true)));
    assert!(evaluate("large - 1").unwrap_err().message.contains("beyond 64 bits"));
    assert_eq!(evaluate("large == large"), Ok(json!(true)));
    assert_eq!(evaluate("str(large)"), Ok(json!("18446744073709551615")));
}

/// G36
#[test]
fn values_of_different_types_differ_and_numbers_are_one_type() {
    have(&[
        ("1 == 1.0", json!(true)),
        ("[1] == [1.0]", json!(true)),
        ("1 == '1'", json!(false)),
        ("true == 1", json!(false)),
        ("[true] == [1]", json!(false)),
        ("true in [1]", json!(false)),
        ("(1, 2) == [1, 2]", json!(true)),
        ("1 in m", json!(false)),
    ]);
}

/// G36
#[test]
fn order_between_types_errs() {
    for source in ["a < s", "s >= 1", "none < 1", "true < false", "m < m", "[1] < ['a']", "max(1, 'a')"] {
        assert!(error(source).contains("have no order"), "{source}: {}", error(source));
    }
    have(&[("'a' < 'b'", json!(true)), ("[1, 2] < [1, 3]", json!(true)), ("'Z' < 'a'", json!(true))]);
}

/// G36
#[test]
fn evaluation_stops_where_the_result_is_known() {
    have(&[
        ("false and 1 / 0 > 0", json!(false)),
        ("true or 1 / 0 > 0", json!(true)),
        ("1 if true else 1 / 0", json!(1)),
        ("3 < 2 < 1 / 0", json!(false)),
        ("default(a, 1 / 0)", json!(5)),
        ("m.get('in', 1 / 0)", json!(1)),
    ]);
}

/// G35 G36
#[test]
fn functions_compute_as_in_python_and_are_methods() {
    have(&[
        ("len(s)", json!(5)),
        ("s.len()", json!(5)),
        ("len(m.b)", json!(1)),
        ("str(null)", json!("None")),
        ("str(1.0)", json!("1.0")),
        ("str(1e16)", json!("1e+16")),
        ("str(0.00001)", json!("1e-05")),
        ("str([1, 'a', true, null])", json!("[1, 'a', True, None]")),
        ("int('-12')", json!(-12)),
        ("int(-2.7)", json!(-2)),
        ("float('1e3')", json!(1000.0)),
        ("bool('')", json!(false)),
        ("s.lower()", json!("grüße")),
        ("upper('ß')", json!("SS")),
        ("' a '.strip()", json!("a")),
        ("'xxax'.strip('x')", json!("a")),
        ("contains(list, 2)", json!(true)),
        ("s.contains('rü')", json!(true)),
        ("s.starts_with('Gr')", json!(true)),
        ("s.ends_with('e')", json!(true)),
        ("s.matches('^G.*e$')", json!(true)),
        ("matches('a1', '[0-9]')", json!(true)),
        ("matches('a', s)", json!(false)),
        ("keys(m.b)", json!(["c"])),
        ("m.b.values()", json!([7])),
        ("min(list)", json!(1)),
        ("max(1, 2.5)", json!(2.5)),
        ("sum(list)", json!(6)),
        ("sum([])", json!(0)),
        ("round(2.5)", json!(2)),
        ("round(2.675, 2)", json!(2.67)),
        ("round(1250, -2)", json!(1200)),
        ("round(5.0, -1)", json!(0.0)),
        ("round(5.5, -1)", json!(10.0)),
        ("round(25.0, -1)", json!(20.0)),
        ("round(-999.9, -1)", json!(-1000.0)),
        ("str(['\\U000e0001\\u200b\\x7f'])", json!("['\\U000e0001\\u200b\\x7f']")),
        ("abs(-3)", json!(3)),
        ("any([false, true])", json!(true)),
        ("all(empty)", json!(true)),
        ("[1] + [2]", json!([1, 2])),
        ("'a' + 'b'", json!("ab")),
    ]);
}

/// G36
#[test]
fn equal_sources_are_equal_expressions() {
    let a = Expression::parse("a + 1").unwrap();
    assert_eq!(a, a.clone());
    assert_ne!(a, Expression::parse("a+1").unwrap());
    assert_eq!(format!("{a:?}"), "Expression(\"a + 1\")");
    assert_eq!(a.source(), "a + 1");
}

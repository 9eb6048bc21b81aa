//! The words of errors, and the values in explanations.

use serde_json::{Value, json};

use super::{bad, data, error, scope};
use crate::expression::{Expression, short};

/// G12 G36
#[test]
fn an_error_names_the_part_that_failed_and_the_values_of_its_operands() {
    assert_eq!(
        error("yes and a < m['web-search'] + s"),
        "`m['web-search'] + s`: `+` takes two numbers, two texts or two lists; found a number and a text, where \
         `m['web-search']` is 2 and `s` is \"Grüße\". Convert to text with `str`, or to a number with `float`"
    );
    assert_eq!(
        error("1 < a < s"),
        "`a < s`: a number and a text have no order, where `a` is 5 and `s` is \"Grüße\". Convert one of them, with \
         `float(text)` or `str(number)`"
    );
    assert_eq!(
        error("1 + m.b.zz"),
        "`m.b.zz`: the value is missing: `m.b` has the key \"c\". Test it with `has(path)`, or give another with \
         `default(path, otherwise)`"
    );
    assert_eq!(
        error("list[a]"),
        "`list[a]`: the value is missing: `list` has 3 items. Test it with `has(path)`, or give another with \
         `default(path, otherwise)`"
    );
    assert_eq!(
        error("a.b.c"),
        "`a.b`: a number has no keys, where `a` is 5. Test what it is before, or use `has(path)`"
    );
    assert_eq!(
        error("abs(s)"),
        "`abs(s)`: `abs` takes a number, and not a text, where `s` is \"Grüße\". Convert it with `float`"
    );
    let error = Expression::parse("a").unwrap().evaluate_condition(&data()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a`: a condition needs true or false, and this is a number, where `a` is 5. Compare it, as in `a > 0` or \
         `a != null`, or write `bool(a)`"
    );
}

/// G35
#[test]
fn a_text_that_is_no_expression_has_a_remedy() {
    for (source, remedy) in [
        ("a = 1", "`==`"),
        ("a & b", "`and`"),
        ("a === b", "`==`"),
        ("a[1:]", "slices"),
        ("${ a }", "the name alone"),
        ("s.startswith('a')", "`starts_with`"),
        ("lenn(s)", "`len`"),
        ("foo(s)", "The functions are len, str"),
        ("a == not b", "parentheses"),
        ("[x for x in list]", "comprehensions"),
        ("a.__class__", "a[\"__class__\"]"),
        ("'a' 'b'", "`+`"),
        ("round()", "`round(number)` or `round(number, digits)`"),
        ("a if b", "a if condition else b"),
    ] {
        let bad = bad(source);
        assert!(bad.to_string().contains(remedy), "{source}: {bad}");
    }
}

/// G34
#[test]
fn the_values_of_all_paths_are_shown_once_and_as_written() {
    let expression =
        Expression::parse("m.b.c > 1 and list[m.in] == zz.a or has(a.b) or m.b.c < (s)[0]").unwrap();
    let expected = [
        ("m.b.c", Some(json!(7))),
        ("list[m.in]", Some(json!(2))),
        ("m.in", Some(json!(1))),
        ("zz.a", None),
        ("a.b", None),
        ("(s)[0]", Some(json!("G"))),
    ];
    assert_eq!(expression.values(&data()), expected.map(|(path, value)| (path.to_owned(), value)));
    let large = scope(json!({"a": "x".repeat(2 << 20)}));
    let [(_, Some(Value::String(shown)))] = &Expression::parse("a").unwrap().values(&large)[..] else {
        panic!("one path")
    };
    assert!(shown.len() < 100 && shown.ends_with("…\""), "{shown}");
}

/// G36
#[test]
fn values_in_messages_are_short() {
    assert_eq!(short(&json!({"a": [1, "b", null]})), r#"{"a": [1, "b", null]}"#);
    assert_eq!(short(&json!([])), "[]");
    assert_eq!(short(&json!((0..1000).collect::<Vec<_>>())).split("… ").nth(1), Some("982 more]"));
    assert_eq!(short(&json!("ä".repeat(100))), format!("\"{}…\"", "ä".repeat(60)));
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(short(&deep), "[[[[[…]]]]]");
    let wide = json!(vec![vec!["long text".repeat(20); 50]; 50]);
    assert!(short(&wide).len() < 300, "{}", short(&wide));
}

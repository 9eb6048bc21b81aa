//! Bounds of sources, evaluations and results.

use serde_json::{Value, json};

use super::{bad, scope};
use crate::expression::{EvaluateError, Expression, pattern};

fn evaluate(source: &str, data: Value) -> Result<Value, EvaluateError> {
    Expression::parse(source).unwrap().evaluate(&scope(data))
}

/// G37
#[test]
fn a_source_has_at_most_4096_bytes() {
    let source = format!("'{}'", "a".repeat(4094));
    assert_eq!(evaluate(&source, json!({})).unwrap().as_str().map(str::len), Some(4094));
    assert!(bad(&format!("{source} ")).message.contains("4097 bytes; at most 4096"));
}

/// G37
#[test]
fn nesting_has_at_most_64_levels() {
    for (open, close) in
        [("(", ")"), ("[", "]"), ("not ", ""), ("len(", ")"), ("x[", "]"), ("true if true else ", "")]
    {
        let nested = |levels: usize| format!("{}yes{}", open.repeat(levels), close.repeat(levels));
        assert!(Expression::parse(&nested(63)).is_ok(), "{open}");
        assert!(bad(&nested(64)).message.contains("deeper than 64"), "{open}");
    }
    assert!(bad(&format!("a{}", ".lower()".repeat(64))).message.contains("deeper than 64"));
    assert!(bad(&format!("a{}", "[0].lower()".repeat(64))).message.contains("deeper than 64"));
}

/// G37
#[test]
fn long_chains_are_not_deep() {
    assert_eq!(evaluate(&format!("1{}", " + 1".repeat(1000)), json!({})), Ok(json!(1001)));
    assert_eq!(evaluate(&format!("true{}", " and true".repeat(400)), json!({})), Ok(json!(true)));
    assert_eq!(evaluate(&format!("1{}", " < 2 > 1".repeat(500)), json!({})), Ok(json!(true)));
    assert_eq!(evaluate(&format!("has(a{})", ".b".repeat(2000)), json!({"a": null})), Ok(json!(false)));
}

/// G37
#[test]
fn the_deepest_expressions_run_on_a_small_stack() {
    let sources = [
        format!("{}1{}", "-(1 + ".repeat(20), ")".repeat(20)),
        format!("{}true", "not ".repeat(63)),
        format!("{}1{}", "[".repeat(63), "]".repeat(63)),
        format!("{}true{}", "not (true and 1 == 1 + 1 * len([".repeat(9), "]))".repeat(9)),
        format!("{}s", "s if yes else ".repeat(63)),
        "(".repeat(4000),
        "[".repeat(4000),
        "-".repeat(4000),
        "not ".repeat(1000),
    ];
    let run = move || {
        for source in &sources {
            let Ok(expression) = Expression::parse(source) else { continue };
            let data = scope(json!({"yes": false, "s": "a"}));
            let _ = expression.evaluate(&data);
            let _ = expression.reads();
            let _ = expression.values(&data);
        }
    };
    std::thread::Builder::new().stack_size(768 << 10).spawn(run).unwrap().join().unwrap();
}

/// G37
#[test]
fn values_of_more_than_64_levels_err() {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    for source in
        ["deep", "deep == deep", "str(deep)", "[deep]", "deep < deep", "deep in [deep]", "values(map)"]
    {
        let error = evaluate(source, json!({"deep": deep, "map": {"a": deep}})).unwrap_err().to_string();
        assert!(error.contains("deeper than 64 levels"), "{source}: {error}");
    }
    assert_eq!(evaluate("len(deep[0][0])", json!({"deep": deep})), Ok(json!(1)));
}

/// G37
#[test]
fn an_evaluation_has_at_most_100000_operations() {
    let items: Vec<u32> = (0..60_000).collect();
    for source in [
        "-1 in items or -1 in items",
        "items == items and items == items",
        "sum(items) + sum(items)",
        "max(items) > max(items)",
    ] {
        let error = evaluate(source, json!({"items": items})).unwrap_err().to_string();
        assert!(error.contains("more than 100000 operations"), "{source}: {error}");
    }
    assert_eq!(evaluate("-1 in items", json!({"items": items})), Ok(json!(false)));
    let text = "a".repeat(1 << 20);
    let long = format!("contains(t, 'b'){}", " or contains(t, 'b')".repeat(150));
    assert!(evaluate(&long, json!({"t": text})).unwrap_err().to_string().contains("operations"));
    let patterns = format!("matches(s, p){}", " or matches(s, p)".repeat(150));
    assert!(evaluate(&patterns, json!({"s": "a", "p": "b"})).unwrap_err().to_string().contains("operations"));
}

/// G37
#[test]
fn a_result_has_at_most_a_mebibyte() {
    let half = "a".repeat((1 << 19) + 1);
    for source in
        ["half + half", "[half, half]", "[half] + [half]", "two", "values(map)", "str(two)", "upper(sharp)"]
    {
        let data = json!({"half": half, "two": [half, half], "map": {"a": half, "b": half}, "sharp": "ΐ".repeat(1 << 18)});
        let error = evaluate(source, data).unwrap_err().to_string();
        assert!(error.contains("larger than 1048576 bytes"), "{source}: {error}");
    }
    let keys = json!({"half": half, "m": {format!("{half}a"): 1, half.as_str(): 2}});
    for source in ["m", "keys(m)", "[m]"] {
        assert!(evaluate(source, keys.clone()).is_err(), "{source}");
    }
    // A value that is only read may be larger.
    assert_eq!(evaluate("len(two) + len(two[0])", json!({"two": [half, half]})), Ok(json!(2 + half.len())));
    let lists = format!("len(l{})", " + l".repeat(1000));
    let items: Vec<u32> = (0..1000).collect();
    assert!(evaluate(&lists, json!({"l": items})).is_err());
}

/// G37
#[test]
fn regular_expressions_are_bounded_and_linear() {
    assert!(
        bad(&format!("matches(s, '{}')", "a".repeat(1001))).message.contains("more than 1000 characters")
    );
    assert!(bad(r"matches(s, '(\\w{200}){200}')").message.contains("too large"));
    assert!(bad(r"matches(s, '(a)\\1')").message.contains("no regular expression"));
    let many = |count: usize| vec!["matches('a', 'a')"; count].join(" and ");
    assert_eq!(evaluate(&many(16), json!({})), Ok(json!(true)));
    assert!(bad(&many(17)).message.contains("more than 16 regular expressions"));
    assert!(pattern(&"é".repeat(1000)).is_ok() && pattern(&"é".repeat(1001)).is_err());
    let error = evaluate("matches(s, p)", json!({"s": "a", "p": "["})).unwrap_err().to_string();
    assert!(error.contains("no regular expression"), "{error}");
    // It would take a backtracking engine longer than the universe has.
    assert_eq!(evaluate("matches(s, '^(a*)*$')", json!({"s": "a".repeat(100_000) + "b"})), Ok(json!(false)));
}

//! Operands that can never fit.

use serde_json::{Value, json};

use crate::expression::{Expression, Segment, Type, TypeProblem, Types};

/// Types of paths as a JSON schema has them.
struct Schema(Value);

impl Types for Schema {
    fn type_of(&self, root: &str, segments: &[Segment]) -> Type {
        let mut schema = &self.0["properties"][root];
        for segment in segments {
            schema = match segment {
                Segment::Field(name) => &schema["properties"][name],
                Segment::Index(_) => &schema["items"],
            };
        }
        Type::of_schema(schema)
    }
}

fn schema() -> Schema {
    Schema(json!({"properties": {
        "n": {"type": "integer"}, "s": {"type": "string"}, "b": {"type": "boolean"}, "maybe": {"type": ["number", "null"]},
        "list": {"type": "array", "items": {"type": "string"}}, "m": {"type": "object", "properties": {"x": {"type": "number"}}},
    }}))
}

fn problems(source: &str) -> Vec<TypeProblem> {
    Expression::parse(source).unwrap().check_types(&schema())
}

/// G7
#[test]
fn operands_that_can_never_fit_are_problems() {
    for (source, offset, message) in [
        ("n < s", 0, "`n` is a number and `s` is a text; they have no order"),
        ("1 < n < s", 4, "`n` is a number and `s` is a text; they have no order"),
        ("b and n", 6, "`n` is a number, and `and` needs a boolean"),
        ("not list[0]", 4, "`list[0]` is a text, and `not` needs a boolean"),
        ("1 if maybe else 2", 5, "`maybe` is a number or null, and the condition of `if` needs a boolean"),
        ("n + s", 0, "`n` is a number and `s` is a text; `+` takes two numbers, two texts or two lists"),
        ("list - list", 0, "`list` is a list and `list` is a list; arithmetic takes numbers"),
        (
            "n + m.x + s",
            0,
            "`n + m.x` is a number and `s` is a text; `+` takes two numbers, two texts or two lists",
        ),
        ("n in s", 0, "`n` is a number and `s` is a text; a text contains texts only"),
        ("s in n", 0, "`s` is a text and `n` is a number; behind `in` stands a list, a text or a map"),
        ("n.lower()", 0, "`n` is a number, and `lower` needs a text"),
        ("len(n)", 4, "`n` is a number, and `len` needs a text, a list or a map"),
        ("max(n, s)", 4, "`n` is a number and `s` is a text; they have no order"),
        ("-s", 1, "`s` is a text, and a sign needs a number"),
        ("round(s)", 6, "`s` is a text, and `round` needs a number"),
        ("keys(list)", 5, "`list` is a list, and `keys` needs a map"),
        ("unknown[len(n)]", 12, "`n` is a number, and `len` needs a text, a list or a map"),
        ("default(maybe, 1) < s", 0, "`default(maybe, 1)` is a number and `s` is a text; they have no order"),
    ] {
        assert_eq!(problems(source), [TypeProblem { offset, message: message.to_owned() }], "{source}");
    }
}

/// G7
#[test]
fn what_may_fit_is_no_problem() {
    for source in [
        "n < m.x",
        "maybe < n",
        "unknown < s",
        "unknown + n < 3",
        "n == s",
        "s in list",
        "s + str(n)",
        "default(maybe, s) == s",
        "get(m, 'x') < s",
        "(n if b else s) < s",
        "m.x.unknown < s",
        "list[n] < s",
        "n in list",
        "min(list) < n",
        "unknown(s)[0] < n".trim_start_matches("unknown"),
    ] {
        assert_eq!(problems(source), [], "{source}");
    }
}

/// G7
#[test]
fn a_condition_is_a_boolean() {
    let condition = |source: &str| Expression::parse(source).unwrap().check_condition_types(&schema());
    assert_eq!(condition("n > 1"), []);
    assert_eq!(condition("unknown"), []);
    assert_eq!(condition("n")[0].message, "`n` is a number, and a condition needs a boolean");
    assert_eq!(condition("n + s").len(), 1);
}

/// G7
#[test]
fn types_are_read_from_schemas() {
    assert_eq!(Type::of_schema(&json!({"type": "integer"})), Type::NUMBER);
    assert_eq!(Type::of_schema(&json!({"type": ["string", "null"]})), Type::TEXT.or(Type::NULL));
    assert_eq!(Type::of_schema(&json!({"enum": [1]})), Type::ANY);
    assert_eq!(Type::of_schema(&json!(true)), Type::ANY);
}

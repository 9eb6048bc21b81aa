//! Templates become values.

use serde_json::{Value, json};

use super::support::{document, names};
use crate::document::model::Work;
use crate::node::render::{render, render_text};

fn rendered(template: &str, scope: Value) -> Result<Value, String> {
    let document = document(&format!("graph: g\nnodes:\n  n: {{value: {template}}}\n"));
    let Work::Value(template) = &document.graphs()[0].nodes[0].work else { panic!("the node is no value") };
    render(template, &names(scope)).map_err(|error| error.to_string())
}

fn text(template: &str, scope: Value) -> String {
    let document = document(&format!("graph: g\nnodes:\n  n: {{value: {template}}}\n"));
    let Work::Value(template) = &document.graphs()[0].nodes[0].work else { panic!("the node is no value") };
    render_text(template, &names(scope)).unwrap()
}

#[test]
fn a_text_that_is_one_expression_stands_for_its_value() {
    let scope = json!({"input": {"n": 2, "list": [1, "a"]}});
    assert_eq!(rendered("'${ input.n + 1 }'", scope.clone()), Ok(json!(3)));
    let template = "{a: ['${ input.list }', fixed], b: 'n is ${ input.n }', c: {d: null}}";
    let value = json!({"a": [[1, "a"], "fixed"], "b": "n is 2", "c": {"d": null}});
    assert_eq!(rendered(template, scope), Ok(value));
}

#[test]
fn texts_are_written_as_they_are_and_everything_else_as_json() {
    let scope = json!({"input": {"t": "a \"b\"", "m": {"k": [1, null]}, "f": 1.5}});
    let template = "'${ input.t }|${ input.m }|${ input.f }|$${ x }'";
    assert_eq!(rendered(template, scope.clone()), Ok(json!("a \"b\"|{\"k\":[1,null]}|1.5|${ x }")));
    assert_eq!(text("'${ input.m }'", scope.clone()), "{\"k\":[1,null]}");
    assert_eq!(text("'${ input.t }'", scope.clone()), "a \"b\"");
    assert_eq!(text("[1, '${ input.f }']", scope), "[1,1.5]");
}

#[test]
fn an_expression_that_errs_is_named() {
    let error = rendered("'so: ${ input.n + 1 }'", json!({"input": {"n": null}})).unwrap_err();
    assert!(error.starts_with("`input.n + 1`: "), "{error}");
}

#[test]
fn the_whole_result_is_bounded() {
    let big = json!({"input": {"t": "x".repeat(600_000)}});
    assert!(rendered("'${ input.t }'", big.clone()).is_ok());
    let message = "`input.t`: with its value, the result is larger than 1048576 bytes. Write the part of it that is needed";
    assert_eq!(rendered("['${ input.t }', '${ input.t }']", big.clone()).unwrap_err(), message);
    assert_eq!(rendered("'${ input.t } and ${ input.t }'", big).unwrap_err(), message);
}

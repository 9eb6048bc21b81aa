//! Every kind of check, held and not held, with the text of its failure.

use serde_json::json;

use super::support::{call, document, names, unmet, unmet_after};
use crate::node::checks;

fn required(requires: &str, scope: serde_json::Value) -> Result<(), Vec<String>> {
    let document = document(&format!(
        "graph: g\nvars: {{y: 0}}\nnodes:\n  a: {{value: 1, next: n}}\n  n: {{function: f, requires: {requires}}}\n"
    ));
    checks::requires(document.graphs()[0].nodes[1].requires.as_ref().unwrap(), &names(scope))
}

// G20
#[test]
fn every_requirement_that_is_not_met_has_a_line() {
    let checks = "[input.n > 3, {name: given, required: [input.order]}, {name: kind, path: input.kind, in: [x, y]}, \
                  {name: fine, check: input.n == 1}]";
    let unmet = required(checks, json!({"input": {"n": 1, "kind": "z"}})).unwrap_err();
    assert_eq!(
        unmet,
        [
            "`input.n > 3`: it is false, where `input.n` is 1",
            "`given`: `input.order` is missing",
            "`kind`: `input.kind` is \"z\"; it has to be one of [\"x\", \"y\"]",
        ]
    );
    assert_eq!(required(checks, json!({"input": {"n": 1, "kind": "x", "order": 1}})).unwrap_err().len(), 1);
    assert_eq!(required("[input.n > 0]", json!({"input": {"n": 1}})), Ok(()));
}

// G20
#[test]
fn an_expression_that_errs_is_not_met_and_names_its_values() {
    let unmet = required("[{name: few, check: input.n < 3}]", json!({"input": {"n": "x"}})).unwrap_err();
    assert_eq!(
        unmet,
        [
            "`few`: `input.n < 3`: a text and a number have no order, where `input.n` is \"x\". Convert one of them, with \
          `float(text)` or `str(number)`"
        ]
    );
    let unmet = required("[{name: few, check: input.n < 3}]", json!({"input": {}})).unwrap_err();
    assert!(unmet[0].contains("the value is missing"), "{unmet:?}");
}

// SW5
#[test]
fn paths_of_requirements_begin_with_input_variables_and_nodes() {
    let checks = "[{name: all, required: [input.x, vars.y, a.z]}]";
    let scope = json!({"input": {"x": 1}, "vars": {"y": 0}, "a": {"z": false}});
    assert_eq!(required(checks, scope), Ok(()));
    let unmet = required(checks, json!({"input": {"x": null}, "vars": {}})).unwrap_err();
    assert_eq!(unmet, ["`all`: `input.x` is missing; `vars.y` is missing; `a.z` is missing"]);
}

// G20
#[test]
fn before_a_node_runs_no_tool_was_called_and_no_judge_is_asked() {
    let unmet = required("[{name: c, called: {any: [t]}}, {name: j, judge: Well?}]", json!({"input": {}}))
        .unwrap_err();
    assert_eq!(
        unmet,
        [
            "`c`: no call of `t` succeeded",
            "`j`: a judge needs a result, and there is none before the node runs",
        ]
    );
}

// G18
#[test]
fn an_expression_shows_the_values_that_it_read() {
    assert_eq!(unmet("n.a > 1", json!({"a": 2})), None);
    assert_eq!(unmet("n.a > 1", json!({"a": 1})).unwrap(), "it is false, where `n.a` is 1");
    let named = "{name: big, check: n.a > 1 or n.b == 2}";
    assert_eq!(
        unmet(named, json!({"a": 1})).unwrap(),
        "`n.a > 1 or n.b == 2` is false, where `n.a` is 1 and `n.b` is missing"
    );
    assert_eq!(unmet("{name: never, check: 1 > 2}", json!(1)).unwrap(), "`1 > 2` is false");
    assert!(unmet("n.a", json!({"a": 1})).unwrap().starts_with("`n.a`: a condition needs true or false"));
}

// SW7
#[test]
fn any_and_all_count_calls_that_succeeded() {
    let any = |calls: &[_]| unmet_after("{name: c, called: {any: [a, b]}}", calls, json!({}));
    assert_eq!(any(&[call("a", false), call("b", true)]), None);
    assert_eq!(any(&[call("a", false)]).unwrap(), "no call of `a` or `b` succeeded");
    let all = |calls: &[_]| unmet_after("{name: c, called: {all: [a, b]}}", calls, json!({}));
    assert_eq!(all(&[call("b", true), call("a", false), call("a", true)]), None);
    assert_eq!(all(&[call("b", true)]).unwrap(), "no call of `a` succeeded");
    assert_eq!(all(&[]).unwrap(), "no call of `a` succeeded; no call of `b` succeeded");
}

// SW7
#[test]
fn none_objects_to_calls_that_failed_too() {
    let none = |calls: &[_]| unmet_after("{name: c, called: {none: [rm, dd]}}", calls, json!({}));
    assert_eq!(none(&[call("ls", true)]), None);
    assert_eq!(none(&[call("rm", false)]).unwrap(), "`rm` was called");
    assert_eq!(none(&[call("dd", true), call("rm", false)]).unwrap(), "`rm` was called; `dd` was called");
}

#[test]
fn one_check_can_ask_for_several_tools_at_once() {
    let check = "{name: c, called: {any: [a], none: [rm]}}";
    assert_eq!(unmet_after(check, &[call("a", true)], json!({})), None);
    assert_eq!(
        unmet_after(check, &[call("rm", true)], json!({})).unwrap(),
        "no call of `a` succeeded; `rm` was called"
    );
}

// SW6
#[test]
fn a_reason_is_cut_at_five_hundred_characters() {
    let paths: Vec<String> = (0..200).map(|index| format!("n.ä{index}")).collect();
    let check = format!("{{name: all, required: [{}]}}", paths.join(", "));
    let reason = unmet(&check, json!({})).unwrap();
    assert_eq!(reason.chars().count(), 501);
    assert!(reason.ends_with('…') && reason.starts_with("`n.ä0` is missing; `n.ä1` is missing"), "{reason}");
}

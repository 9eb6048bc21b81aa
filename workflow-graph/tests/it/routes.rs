//! Routes: where they lead, cycles, order.

use expect_test::expect;

use super::support::problems;

/// G3
#[test]
fn unknown_nodes_name_similar_ones() {
    let text = r"graph: g
start: frist
nodes:
  first: {value: 1, on_failure: secnd, next: [{to: thrid, when: input.x}, {to: second}]}
  second: {agent: x, reads: [frist], next: {decide: Which?, choices: [{to: tird}], otherwise: third}}
  third: {value: 1, next: {parallel: [four, five], join: six}}
";
    expect![[r#"
        g.yaml:2:8: error[unknown-start]: the graph starts at `frist`, and the graph has no such node; did you mean `first`?
        g.yaml:4:33: error[unknown-node]: `first` leads to `secnd`, and the graph has no such node; did you mean `second`?
        g.yaml:4:52: error[unknown-node]: `first` leads to `thrid`, and the graph has no such node; did you mean `third`?
        g.yaml:5:30: error[unknown-node]: `second` reads `frist`, and the graph has no such node; did you mean `first`?
        g.yaml:5:76: error[unknown-node]: `second` leads to `tird`, and the graph has no such node; did you mean `third`?
        g.yaml:6:39: error[unknown-node]: `third` leads to `four`, and the graph has no such node; add the node, or name another
        g.yaml:6:45: error[unknown-node]: `third` leads to `five`, and the graph has no such node; add the node, or name another
        g.yaml:6:58: error[unknown-node]: the branches of `third` meet at `six`, and the graph has no such node; add the node, or name another
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn unknown_nodes_leave_reachability_open() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: bb}
  b: {value: 1}
";
    expect![[r#"
        g.yaml:3:23: error[unknown-node]: `a` leads to `bb`, and the graph has no such node; did you mean `b`?
    "#]]
    .assert_eq(&problems(text));
}

/// G3
#[test]
fn unreachable_nodes_are_named_once_a_chain() {
    let text = r"graph: g
nodes:
  a: {value: 1}
  b: {value: 1, next: c}
  c: {value: 1}
  d: {value: 1, next: [{to: e, max: 1}, {to: c}]}
  e: {value: 1, next: d}
";
    expect![[r#"
        g.yaml:4:3: error[unreachable-node]: no route from `a`, where runs start, leads to `b`; lead a route to it, or remove it
        g.yaml:6:3: error[unreachable-node]: no route from `a`, where runs start, leads to `d`; lead a route to it, or remove it
    "#]].assert_eq(&problems(text));
}

/// G6
#[test]
fn a_loop_without_a_bound_is_refused() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: [{to: a, when: a > 1}, {to: b}]}
  b: {value: 1, max_visits: 2, next: [{to: b, when: input.x}, {to: c}]}
  c: {value: 1, next: [{to: c, max: 2}, {to: end}]}
";
    expect![[r#"
        g.yaml:3:29: error[self-loop]: `a` leads to itself without a bound; add `max:` to a route of a list, or `max_visits:` to a node
    "#]].assert_eq(&problems(text));
}

/// G6
#[test]
fn a_cycle_without_a_bound_names_its_nodes() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: b}
  b: {value: 1, next: c, on_failure: d}
  c: {value: 1, next: [{to: a, when: input.x}, {to: end}]}
  d: {value: 1, next: [{to: b, max: 3}, {to: end}]}
";
    expect![[r#"
        g.yaml:3:3: error[unbounded-cycle]: the cycle `a` → `b` → `c` → `a` has no bound; add `max:` to a route of a list, or `max_visits:` to a node
    "#]].assert_eq(&problems(text));
}

/// G6
#[test]
fn a_failure_route_can_close_a_cycle() {
    let text = r"graph: g
nodes:
  a: {function: f, next: b}
  b: {function: f, on_failure: [{to: a, when: input.x}]}
";
    expect![[r#"
        g.yaml:3:3: error[unbounded-cycle]: the cycle `a` → `b` → `a` has no bound; add `max:` to a route of a list, or `max_visits:` to a node
    "#]].assert_eq(&problems(text));
}

/// G12
#[test]
fn a_route_behind_one_that_always_holds_is_dead() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: [{to: b, max: 1}, {to: c, when: true}, {to: b, when: input.x}, end]}
  b: {value: 1, on_failure: [c, {to: end}]}
  c: {value: 1}
";
    expect![[r#"
        g.yaml:3:62: error[dead-route]: the route of `a` to `b` is never taken: the one to `c` in line 3 always holds; move it before the route to `c`, or remove it
        g.yaml:3:86: error[dead-route]: the route of `a` to `end` is never taken: the one to `c` in line 3 always holds; move it before the route to `c`, or remove it
        g.yaml:4:33: error[dead-route]: the route of `b` to `end` is never taken: the one to `c` in line 4 always holds; to choose, give each but the last a `when`
    "#]].assert_eq(&problems(text));
}

/// G12
#[test]
fn a_list_without_a_default_is_a_warning() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: [{to: b, when: input.x}, {to: c, max: 1}]}
  b: {value: 1, on_no_match: end, next: [{to: c, when: input.x}]}
  c: {value: 1}
";
    expect![[r#"
        g.yaml:3:48: warning[no-default]: the run fails where no route of `a` holds; add a route without `when` as the last one, or write `on_no_match: fail`
    "#]].assert_eq(&problems(text));
}

/// G13
#[test]
fn choices_have_targets_of_their_own() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {decide: Which?, choices: [{to: b, about: one}, {to: b, about: two}, {to: end}], otherwise: end}}
  b: {value: 1, next: [{to: c, when: input.x, id: one}, {to: end, id: one}]}
  c: {value: 1}
";
    expect![[r#"
        g.yaml:3:71: error[ambiguous-routes]: two choices of `a` lead to `b`, the first in line 3; join them into one, or lead one of them to a node of its own
        g.yaml:4:71: error[ambiguous-routes]: two routes of `b` have the id `one`, the first in line 4; rename one of them
    "#]].assert_eq(&problems(text));
}

/// G13
#[test]
fn a_choice_needs_an_otherwise() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {decide: Which?, choices: [{to: b}]}}
  b: {value: 1}
";
    expect![[r#"
        g.yaml:3:23: error[missing-key]: `next` needs the key `otherwise`; add `otherwise:`
    "#]]
    .assert_eq(&problems(text));
}

/// G17
#[test]
fn agents_are_not_repeated_by_the_executor() {
    let text = r"graph: g
nodes: {a: {agent: Do it., retry: {attempts: 2}}}
";
    expect![[r#"
        g.yaml:2:35: error[retry-on-agent]: the agent node `a` has `retry`, and the executor never repeats agents; write the attempts as `ensure: {all: […], retries: 1}`
    "#]].assert_eq(&problems(text));
}

/// G27
#[test]
fn a_person_without_a_schema_is_a_warning() {
    let text = r"graph: g
nodes: {a: {human: {ask: Well?}}}
";
    expect![[r#"
        g.yaml:2:20: warning[missing-reply-schema]: `a` asks people without a schema of the reply, so any reply is accepted; add `reply:` with a JSON Schema
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn routes_have_a_form() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {to: b}, on_failure: {to: b}}
  b: {value: 1, next: []}
  c: {value: 1, next: {parallel: [end, {to: b, when: [x]}]}}
  d: {value: 1, next: {parallel: [], join: 5}}
";
    expect![[r#"
        g.yaml:3:23: error[wrong-type]: routes of `next` are a list; write `- ` before the route
        g.yaml:3:44: error[wrong-type]: `on_failure` is an id, a list of routes, or `continue`, and this is a map; write an id, a list of routes, or `continue`
        g.yaml:4:23: error[missing-key]: `next` is a list without routes; add a route, or remove the key
        g.yaml:5:3: error[unreachable-node]: no route from `a`, where runs start, leads to `c`; lead a route to it, or remove it
        g.yaml:5:35: error[wrong-type]: a branch begins with a node, and `end` is none; remove it: without a branch nothing runs
        g.yaml:5:54: error[wrong-type]: `when` is an expression, and this is a list; write an expression
        g.yaml:6:3: error[unreachable-node]: no route from `a`, where runs start, leads to `d`; lead a route to it, or remove it
        g.yaml:6:34: error[missing-key]: `parallel` has no branches; add an id, or remove the key
        g.yaml:6:44: error[wrong-type]: `join` is a text, and this is the number 5; write a text
    "#]].assert_eq(&problems(text));
}

//! Mistakes of people who know other tools: the message names what this format has.

use expect_test::expect;

use super::support::problems;

/// G4
#[test]
fn keys_of_routes_in_other_tools_have_their_names_here() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: [{if: input.x, to: b}, {condition: input.y, goto: c}, {cond: input.z, to: b}, {else: c}]}
  b: {value: 1, next: [{when: input.x, then: c}, {to: end, default: true}]}
  c: {value: 1, next: {parallel: [{to: d, if: input.x}, {target: e}]}}
  d: {value: 1, on_failure: [{zzz: 1, to: e}]}
  e: {value: 1}
";
    expect![[r#"
        g.yaml:3:25: error[unknown-key]: a route has no key `if`; did you mean `when`?
        g.yaml:3:47: error[unknown-key]: a route has no key `condition`; did you mean `when`?
        g.yaml:3:67: error[unknown-key]: a route has no key `goto`; did you mean `to`?
        g.yaml:3:78: error[unknown-key]: a route has no key `cond`; did you mean `when`?
        g.yaml:3:102: error[unknown-key]: a route has no key `else`; a route without `when` is the default: write it last, with `to` alone
        g.yaml:4:40: error[unknown-key]: a route has no key `then`; did you mean `to`?
        g.yaml:4:60: error[unknown-key]: a route has no key `default`; a route without `when` is the default: write it last, with `to` alone
        g.yaml:5:34: error[no-common-join]: the branches of `c` that begin with `e` and `d` both lead to `e`, which would run in each; let them meet there: add `join: e` beside `parallel`
        g.yaml:5:43: error[unknown-key]: a branch has no key `if`; did you mean `when`?
        g.yaml:5:58: error[unknown-key]: a branch has no key `target`; did you mean `to`?
        g.yaml:6:31: error[unknown-key]: a route has no key `zzz`; the keys are `to`, `when`, `max` and `id`; write one of them, or remove it
    "#]].assert_eq(&problems(text));
}

/// G4
#[test]
fn keys_of_nodes_in_other_tools_have_their_names_here() {
    let text = r"graph: g
nodes:
  a: {function: f, on_error: b, retries: 3, inputs: {x: 1}, timout: 1s}
  b: {function: f, onFailure: a, max_retries: 3, args: {x: 1}, depends_on: [a], if: input.x}
  c: {function: f, catch: a, params: {x: 1}, needs: a, retry: {max: 3, delay: 1s, max_delay: 2s, multiplier: 2}}
  d: {function: f, retry: {max_attempts: 3, backoff: 1s, interval: 1s, count: 3}}
";
    expect![[r#"
        g.yaml:3:3: error[unbounded-cycle]: the cycle `a` → `b` → `a` has no bound; add `max:` to a route of a list, or `max_visits:` to a node
        g.yaml:3:20: error[unknown-key]: a node has no key `on_error`; did you mean `on_failure`?
        g.yaml:3:33: error[unknown-key]: a node has no key `retries`; write `retry: {attempts: …}`, which counts the first attempt too
        g.yaml:3:45: error[unknown-key]: a node has no key `inputs`; did you mean `with`?
        g.yaml:3:61: error[unknown-key]: a node has no key `timout`; did you mean `timeout`?
        g.yaml:4:20: error[unknown-key]: a node has no key `onFailure`; did you mean `on_failure`?
        g.yaml:4:34: error[unknown-key]: a node has no key `max_retries`; write `retry: {attempts: …}`, which counts the first attempt too
        g.yaml:4:50: error[unknown-key]: a node has no key `args`; did you mean `with`?
        g.yaml:4:64: error[unknown-key]: a node has no key `depends_on`; lead a route to it: `next` of the node before
        g.yaml:4:81: error[unknown-key]: a node has no key `if`; write the condition as `when` of a route that leads to it: `next` of the node before
        g.yaml:5:20: error[unknown-key]: a node has no key `catch`; did you mean `on_failure`?
        g.yaml:5:30: error[unknown-key]: a node has no key `params`; did you mean `with`?
        g.yaml:5:46: error[unknown-key]: a node has no key `needs`; lead a route to it: `next` of the node before
        g.yaml:5:64: error[unknown-key]: `retry` has no key `max`; did you mean `attempts`?
        g.yaml:5:72: error[unknown-key]: `retry` has no key `delay`; did you mean `first`?
        g.yaml:5:83: error[unknown-key]: `retry` has no key `max_delay`; did you mean `most`?
        g.yaml:5:98: error[unknown-key]: `retry` has no key `multiplier`; did you mean `factor`?
        g.yaml:6:28: error[unknown-key]: `retry` has no key `max_attempts`; did you mean `attempts`?
        g.yaml:6:45: error[unknown-key]: `retry` has no key `backoff`; did you mean `first`?
        g.yaml:6:58: error[unknown-key]: `retry` has no key `interval`; did you mean `first`?
        g.yaml:6:72: error[unknown-key]: `retry` has no key `count`; did you mean `attempts`?
    "#]].assert_eq(&problems(text));
}

/// G17
#[test]
fn a_number_of_attempts_is_written_as_a_map() {
    let text = r"graph: g
defaults: {retry: 5}
nodes:
  a: {function: f, retry: 3, next: b}
  b: {function: f, retry: 0, next: c}
  c: {function: f, retry: 1.5}
";
    expect![[r#"
        g.yaml:2:19: error[wrong-type]: `retry` is `none` or a map, and this is the number 5; write `retry: {attempts: 5}`
        g.yaml:4:27: error[wrong-type]: `retry` is `none` or a map, and this is the number 3; write `retry: {attempts: 3}`
        g.yaml:5:27: error[wrong-type]: `retry` is `none` or a map, and this is the number 0; write `none` or a map
        g.yaml:6:27: error[wrong-type]: `retry` is `none` or a map, and this is the number 1.5; write `none` or a map
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn a_wrong_type_in_a_schema_names_the_type() {
    let text = r"graph: g
input: {properties: {a: {type: sting}}}
nodes:
  a: {value: 1, output: {type: [string, null]}, next: b}
  b: {value: 1, output: {type: [string, int]}, next: c}
  c: {value: 1, output: {items: {type: thing}}, next: d}
  d: {value: 1, output: {properties: {type: {minimum: big}}}, next: e}
  e: {value: 1, output: {properties: {type: 7}}, next: f}
  f: {value: 1, output: {properties: {type: bool}}}
";
    expect![[r#"
        g.yaml:2:32: error[bad-schema]: `input` is no valid JSON Schema: `sting` is no type; did you mean `string`?
        g.yaml:4:41: error[bad-schema]: `output` is no valid JSON Schema: a type is a text, and this is nothing; write `"null"`, with its quotation marks
        g.yaml:5:41: error[bad-schema]: `output` is no valid JSON Schema: `int` is no type; did you mean `integer`?
        g.yaml:6:40: error[bad-schema]: `output` is no valid JSON Schema: `thing` is no type; write one of `string`, `number`, `integer`, `boolean`, `array`, `object` or `null`
        g.yaml:7:55: error[bad-schema]: `output` is no valid JSON Schema: "big" is not of type "number"; correct the schema
        g.yaml:8:45: error[bad-schema]: `output` is no valid JSON Schema: 7 is not of types "boolean", "object"; correct the schema
        g.yaml:9:45: error[bad-schema]: `output` is no valid JSON Schema: the schema of `type` is the text `bool`; write `{type: boolean}`
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn a_list_or_a_type_in_place_of_a_schema_is_written_as_one() {
    let text = r#"graph: g
input: [a, b]
nodes:
  a: {human: {ask: Well?, reply: {properties: {decision: [release, reject]}}}, next: b}
  b: {value: 1, output: {properties: {properties: ["no", 1, "two words"]}}, next: c}
  c: {value: 1, output: {properties: [a, b]}, next: d}
  d: {value: 1, output: {required: [1]}, next: e}
  e: {value: 1, output: {properties: {name: string}}, next: f}
  f: {value: 1, output: {items: [a, b, c, d, e, f, g, h, i]}, next: g}
  g: {value: 1, output: string, next: h}
  h: {value: 1, output: whatever}
"#;
    expect![[r#"
        g.yaml:2:8: error[wrong-type]: `input` is a JSON Schema, and this is a list; write a JSON Schema
        g.yaml:4:58: error[bad-schema]: `reply` is no valid JSON Schema: the schema of `decision` is a list; write `{enum: [release, reject]}`
        g.yaml:5:51: error[bad-schema]: `output` is no valid JSON Schema: the schema of `properties` is a list; write `{enum: ["no", 1, "two words"]}`
        g.yaml:6:38: error[bad-schema]: `output` is no valid JSON Schema: ["a","b"] is not of type "object"; correct the schema
        g.yaml:7:37: error[bad-schema]: `output` is no valid JSON Schema: 1 is not of type "string"; correct the schema
        g.yaml:8:45: error[bad-schema]: `output` is no valid JSON Schema: the schema of `name` is the text `string`; write `{type: string}`
        g.yaml:9:33: error[bad-schema]: `output` is no valid JSON Schema: the schema of `items` is a list; write `{enum: […]}`
        g.yaml:10:25: error[wrong-type]: `output` is a JSON Schema, and this is the text `string`; write `{type: string}`
        g.yaml:11:25: error[wrong-type]: `output` is a JSON Schema, and this is the text `whatever`; write a JSON Schema
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn an_id_stands_without_braces() {
    let text = r"graph: g
start: ${ a }
nodes:
  a: {value: 1, next: '${ b }', on_failure: [{to: '${c}'}]}
  b: {value: 1, next: '${ input.next }'}
  c: {value: 1, next: {parallel: [a, '${ b }'], join: '${end}'}}
";
    expect![[r#"
        g.yaml:2:8: error[bad-name]: an id stands without `${ }`; write `a`
        g.yaml:4:3: error[unbounded-cycle]: the cycle `a` → `c` → `a` has no bound; add `max:` to a route of a list, or `max_visits:` to a node
        g.yaml:4:23: error[bad-name]: an id stands without `${ }`; write `b`
        g.yaml:4:51: error[bad-name]: an id stands without `${ }`; write `c`
        g.yaml:5:23: error[bad-name]: an id stands without `${ }`; write the id of a node; to choose by a value, write a list of routes with `when`
        g.yaml:6:38: error[bad-name]: an id stands without `${ }`; write `b`
        g.yaml:6:55: error[bad-name]: an id stands without `${ }`; write `end`
        g.yaml:6:55: error[unknown-node]: the branches of `c` meet at `end`, and the graph has no such node; add the node, or name another
    "#]].assert_eq(&problems(text));
}

/// G35
#[test]
fn functions_of_other_languages_have_their_names_here() {
    let text = r"graph: g
nodes:
  a: {value: '${ coalesce(input.a, 1) }', next: b}
  b: {value: '${ ifnull(input.a, 1) }', next: c}
  c: {value: '${ nvl(input.a, 1) }'}
";
    expect![[r#"
        g.yaml:3:18: error[bad-expression]: there is no function `coalesce`; did you mean `default`?
        g.yaml:4:18: error[bad-expression]: there is no function `ifnull`; did you mean `default`?
        g.yaml:5:18: error[bad-expression]: there is no function `nvl`; did you mean `default`?
    "#]]
    .assert_eq(&problems(text));
}

/// G12
#[test]
fn a_list_of_ids_is_no_parallel() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: [b, c]}
  b: {value: 1, next: [c, d, {to: e}]}
  c: {value: 1, next: [d, end], on_failure: [d, e]}
  d: {value: 1}
  e: {value: 1}
";
    expect![[r#"
        g.yaml:3:27: error[dead-route]: the route of `a` to `c` is never taken: the one to `b` in line 3 always holds; to take both side by side, write `next: {parallel: [b, c]}`; to choose, give each but the last a `when`
        g.yaml:4:27: error[dead-route]: the route of `b` to `d` is never taken: the one to `c` in line 4 always holds; to take all side by side, write `next: {parallel: [c, d, e]}`; to choose, give each but the last a `when`
        g.yaml:5:27: error[dead-route]: the route of `c` to `end` is never taken: the one to `d` in line 5 always holds; to choose, give each but the last a `when`
        g.yaml:5:49: error[dead-route]: the route of `c` to `e` is never taken: the one to `d` in line 5 always holds; to choose, give each but the last a `when`
    "#]].assert_eq(&problems(text));
}

/// G12 G19
#[test]
fn a_list_without_a_default_names_the_way_of_the_failure() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: [{to: b, when: input.x}], on_failure: c}
  b: {value: 1, next: [{to: c, when: input.x}], on_failure: [end]}
  c: {value: 1, next: [{to: d, when: input.x}], on_failure: [{to: d, when: input.y}, end]}
  d: {value: 1, next: [{to: e, when: input.x}], on_failure: continue}
  e: {value: 1}
";
    expect![[r#"
        g.yaml:3:24: warning[no-default]: where no route of `a` holds, the node fails and the walk goes to `c`, by its `on_failure`; add a route without `when` as the last one, or write `on_no_match: fail`
        g.yaml:4:24: warning[no-default]: where no route of `b` holds, the node fails and the walk ends, by its `on_failure`; add a route without `when` as the last one, or write `on_no_match: fail`
        g.yaml:5:24: warning[no-default]: where no route of `c` holds, the node fails and the walk goes on, by its `on_failure`; add a route without `when` as the last one, or write `on_no_match: fail`
        g.yaml:6:24: warning[no-default]: the run fails where no route of `d` holds; add a route without `when` as the last one, or write `on_no_match: fail`
    "#]].assert_eq(&problems(text));
}

/// G3 G17
#[test]
fn keys_without_an_effect_name_what_has_it() {
    let text = r"graph: g
nodes:
  a: {human: {ask: Well?, reply: {type: string}}, timeout: 1h, retry: {attempts: 3}, next: b}
  b: {value: 1, retry: 3, next: c}
  c: {human: {ask: Well?, reply: {type: string}}, timeout: 1s, retry: none, next: d}
  d: {value: 1, retry: none, timeout: 1s}
";
    expect![[r#"
        g.yaml:3:51: error[unknown-key]: `timeout` is no key of a node with `human`, since people make no attempt; write `expires` in `human` for the time to answer
        g.yaml:3:64: error[unknown-key]: `retry` is no key of a node with `human`, which has one attempt; remove it, or lead on with `on_failure`
        g.yaml:4:17: error[unknown-key]: `retry` is no key of a node with `value`, which has one attempt; remove it, or lead on with `on_failure`
        g.yaml:4:24: error[wrong-type]: `retry` is `none` or a map, and this is the number 3; write `retry: {attempts: 3}`
        g.yaml:5:51: error[unknown-key]: `timeout` is no key of a node with `human`, since people make no attempt; write `expires` in `human` for the time to answer
    "#]].assert_eq(&problems(text));
}

/// G3 G35
#[test]
fn a_name_of_the_input_or_of_a_variable_lacks_its_begin() {
    let text = r"graph: g
input: {type: object, properties: {cents: {type: integer}}}
vars: {note: none}
nodes:
  a: {value: '${ note }', next: [{when: cents > 5, to: b}, end]}
  b: {value: '${ nte }'}
";
    expect![[r#"
        g.yaml:5:18: error[unknown-node]: `note` is no node, and no other name that expressions have; did you mean `vars.note`?
        g.yaml:5:41: error[unknown-node]: `cents` is no node, and no other name that expressions have; did you mean `input.cents`?
        g.yaml:6:18: error[unknown-node]: `nte` is no node, and no other name that expressions have; did you mean `vars.note`?
    "#]].assert_eq(&problems(text));
}

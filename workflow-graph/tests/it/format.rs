//! Keys, types, names, durations, schemas and checks of the native format.

use expect_test::expect;

use super::support::problems;

/// G4
#[test]
fn unknown_keys_name_the_nearest_known_ones() {
    let text = r"graph: g
descripton: x
nodes:
  a: {value: 1, on_fail: b, timeot: 1s, max-visits: 3}
  b: {value: 1, zzz: 1}
";
    expect![[r#"
        g.yaml:2:1: error[unknown-key]: a document has no key `descripton`; did you mean `description`?
        g.yaml:4:17: error[unknown-key]: a node has no key `on_fail`; did you mean `on_failure`?
        g.yaml:4:29: error[unknown-key]: a node has no key `timeot`; did you mean `timeout`?
        g.yaml:4:41: error[unknown-key]: a node has no key `max-visits`; did you mean `max_visits`?
        g.yaml:5:17: error[unknown-key]: a node has no key `zzz`; the keys are `function`, `tool`, `agent`, `command`, `human`, `value`, `graph`, `workflow`, `description`, `with`, `reads`, `output`, `requires`, `ensure`, `retry`, `timeout`, `max_visits`, `for_each`, `set`, `on_failure`, `next` and `on_no_match`; write one of them, or remove it
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn missing_keys_are_problems() {
    let text = r"description: x
nodes:
  a: {next: b}
  b: {human: {reply: {}}, next: c}
  c: {workflow: {name: w}, next: d}
  d: {agent: {model: small}, next: [{when: 'true'}]}
";
    expect![[r#"
        g.yaml:1:1: error[missing-key]: a document needs the key `graph`; add `graph:`
        g.yaml:3:6: error[missing-key]: the node `a` does nothing; add one of `function`, `tool`, `agent`, `command`, `human`, `value`, `graph` or `workflow`
        g.yaml:4:14: error[missing-key]: `human` needs the key `ask`; add `ask:`
        g.yaml:5:17: error[missing-key]: `workflow` needs the key `start`; add `start:`
        g.yaml:6:14: error[missing-key]: an agent needs the key `instruction`; add `instruction:`
        g.yaml:6:37: error[missing-key]: a route needs the key `to`; add `to:`
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn a_misspelled_key_is_not_missing_as_well() {
    let text = r"grpah: g
nodes:
  a: {functoin: f}
";
    expect![[r#"
        g.yaml:1:1: error[unknown-key]: a document has no key `grpah`; did you mean `graph`?
        g.yaml:3:7: error[unknown-key]: a node has no key `functoin`; did you mean `function`?
    "#]]
    .assert_eq(&problems(text));
}

/// G3
#[test]
fn a_document_needs_nodes() {
    let text = r"graph: g
";
    expect![[r#"
        g.yaml:1:1: error[missing-key]: a document needs the key `nodes`; add `nodes:`
    "#]]
    .assert_eq(&problems(text));
}

/// G3
#[test]
fn a_document_that_is_a_list_is_refused() {
    let text = r"- graph: g
";
    expect![[r#"
        g.yaml:1:1: error[wrong-type]: a document is a map, and this is a list; write a map
    "#]]
    .assert_eq(&problems(text));
}

/// G3
#[test]
fn values_of_wrong_types_are_problems() {
    let text = r"graph: [g]
format: 2
description: 1
vars: []
limits: {steps: 0, items: many}
nodes:
  a: {function: {name: f}, next: 1}
  b: {value: 1, max_visits: -1, reads: all, set: []}
  c: {command: ls}
  d: {value: 1, on_no_match: stop, for_each: {in: [1], failures: fail-all}}
";
    expect![[r#"
        g.yaml:1:8: error[wrong-type]: `graph` is a text, and this is a list; write a text
        g.yaml:2:9: error[wrong-type]: `format` is 1, the only version of the format; write `format: 1`, or remove the key
        g.yaml:3:14: error[wrong-type]: `description` is a text, and this is the number 1; write a text
        g.yaml:4:7: error[wrong-type]: `vars` is a map, and this is a list; write a map
        g.yaml:5:17: error[wrong-type]: `steps` is a whole number from 1 to 100000, and this is 0; write a whole number from 1 to 100000
        g.yaml:5:27: error[wrong-type]: `items` is a whole number from 1 to 100000, and this is the text `many`; write a whole number from 1 to 100000
        g.yaml:7:17: error[wrong-type]: `function` is a text, and this is a map; write a text
        g.yaml:7:34: error[wrong-type]: `next` is an id, `end`, a list of routes, or a map, and this is the number 1; write an id, `end`, a list of routes, or a map
        g.yaml:8:3: error[unreachable-node]: no route from `a`, where runs start, leads to `b`; lead a route to it, or remove it
        g.yaml:8:29: error[wrong-type]: `max_visits` is a whole number from 1, and this is -1; write a whole number from 1
        g.yaml:8:33: error[unknown-key]: `reads` is no key of a node with `value`: its expressions name what it reads; remove it
        g.yaml:8:50: error[wrong-type]: `set` is a map of variables to values, and this is a list; write a map of variables to values
        g.yaml:9:3: error[unreachable-node]: no route from `a`, where runs start, leads to `c`; lead a route to it, or remove it
        g.yaml:9:16: error[wrong-type]: `command` is a list of the program and its arguments, or a map, and this is the text `ls`; write a list of the program and its arguments, or a map
        g.yaml:10:3: error[unreachable-node]: no route from `a`, where runs start, leads to `d`; lead a route to it, or remove it
        g.yaml:10:30: error[wrong-type]: `on_no_match` is `fail` or `end`, and this is `stop`; write `fail` or `end`
        g.yaml:10:51: error[wrong-type]: `in` is an expression, and this is a list; write an expression
        g.yaml:10:66: error[wrong-type]: `failures` is `fail_all`, `continue_others` or `wait_all`, and this is `fail-all`; did you mean `fail_all` or `wait_all`?
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn a_node_does_one_thing() {
    let text = r"graph: g
nodes:
  a: {value: 1, function: f}
";
    expect![[r#"
        g.yaml:3:7: error[unknown-key]: the node `a` does two things, `function` and `value`; split it into two nodes
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn keys_of_other_kinds_are_unknown() {
    let text = r"graph: g
nodes:
  a: {value: 1, with: {x: 1}, reads: [a], next: b}
  b: {function: f, ensure: {all: [], retries: 2}}
";
    expect![[r#"
        g.yaml:3:17: error[unknown-key]: `with` is no key of a node with `value`, which takes no input; remove it, and write expressions where the values are used
        g.yaml:3:31: error[unknown-key]: `reads` is no key of a node with `value`: its expressions name what it reads; remove it
        g.yaml:3:39: error[never-read-before]: `a` reads its own result, and has none before it runs; read it in `ensure`, `set` or `next`
        g.yaml:4:38: error[unknown-key]: `retries` is for agents only: other nodes would fail in the same way again; remove it, or use `retry`
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn names_have_letters_digits_and_a_few_signs() {
    let text = r#"graph: 1st
vars: {"a b": 1}
nodes:
  -x: {value: 1, next: höhe}
  höhe: {value: 1, next: w}
  w: {graph: no name}
"#;
    expect![[r#"
        g.yaml:1:8: error[bad-name]: `1st` is no name of a graph; begin with a letter and use at most 64 letters, digits, `.`, `_` and `-`
        g.yaml:2:8: error[bad-name]: `a b` is no name of a variable; begin with a letter or `_` and use at most 64 letters, digits, `_` and `-`
        g.yaml:4:3: error[bad-name]: `-x` is no id of a node; begin with a letter or `_` and use at most 64 letters, digits, `_` and `-`
        g.yaml:5:3: error[bad-name]: `höhe` is no id of a node; begin with a letter or `_` and use at most 64 letters, digits, `_` and `-`
        g.yaml:6:14: error[bad-name]: `no name` is no name of a graph; begin with a letter and use at most 64 letters, digits, `.`, `_` and `-`
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn reserved_names_are_no_ids() {
    let text = r"graph: g
vars: {item: 1}
nodes:
  error: {value: 1, next: a}
  a: {value: 1, for_each: {in: input, as: visits}}
";
    expect![[r#"
        g.yaml:4:3: error[reserved-name]: `error` has a meaning of its own in expressions, and is no id of a node; rename it, for example to `error_`
        g.yaml:5:43: error[reserved-name]: `visits` has a meaning of its own in expressions, and is no name of an item; rename it, for example to `visits_`
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn a_time_that_would_be_over_at_once_is_refused() {
    let text = r"graph: g
limits: {time: 0s}
defaults: {timeout: 0ms}
nodes:
  a: {function: f, timeout: 0m, retry: {first: 0s}, next: b}
  b: {human: {ask: x, reply: true, expires: 0d}}
";
    expect![[r#"
        g.yaml:2:16: error[bad-duration]: `time` leaves no time; write `1ms` or more, or leave `time` out
        g.yaml:3:21: error[bad-duration]: `timeout` leaves no time; write `1ms` or more, or leave `timeout` out
        g.yaml:5:29: error[bad-duration]: `timeout` leaves no time; write `1ms` or more, or leave `timeout` out
        g.yaml:6:45: error[bad-duration]: `expires` leaves no time; write `1ms` or more, or leave `expires` out
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn durations_have_a_unit() {
    let text = r"graph: g
limits: {time: 10}
defaults: {timeout: 1.5s}
nodes:
  a: {function: f, timeout: 5 s, retry: {first: soon, most: 99999999d}, next: b}
  b: {human: {ask: x, reply: true, expires: 2w}}
";
    expect![[r#"
        g.yaml:2:16: error[bad-duration]: `10` is no duration; write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`
        g.yaml:3:21: error[bad-duration]: `1.5s` is no duration; write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`
        g.yaml:5:29: error[bad-duration]: `5 s` is no duration; write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`
        g.yaml:5:49: error[bad-duration]: `soon` is no duration; write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`
        g.yaml:5:61: error[bad-duration]: `99999999d` is no duration; write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`
        g.yaml:6:45: error[bad-duration]: `2w` is no duration; write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn schemas_are_checked_when_they_are_read() {
    let text = r"graph: g
input: {type: objekt}
nodes:
  a: {value: 1, output: {properties: {x: {minimum: big}}}, next: b}
  b: {value: 1, output: {$ref: 'http://example.com/s.json'}, next: c}
  c: {value: 1, output: {pattern: '('}}
";
    expect![[r#"
        g.yaml:2:15: error[bad-schema]: `input` is no valid JSON Schema: `objekt` is no type; did you mean `object`?
        g.yaml:4:52: error[bad-schema]: `output` is no valid JSON Schema: "big" is not of type "number"; correct the schema
        g.yaml:5:25: error[bad-schema]: `output` is no valid JSON Schema: it refers to `http://example.com/s.json`, and the reader fetches nothing; write that schema here, under `$defs`
        g.yaml:6:35: error[bad-schema]: `output` is no valid JSON Schema: "(" is not a "regex"; correct the schema
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn retries_have_bounds() {
    let text = r"graph: g
nodes:
  a: {function: f, retry: {attempts: 0, factor: 0.5, jitter: 2}, next: b}
  b: {function: f, retry: never}
";
    expect![[r#"
        g.yaml:3:38: error[wrong-type]: `attempts` is a whole number from 1 to 1000, and this is 0; write a whole number from 1 to 1000
        g.yaml:3:49: error[wrong-type]: `factor` is a number from 1 to 1000, and this is the number 0.5; write a number from 1 to 1000
        g.yaml:3:62: error[wrong-type]: `jitter` is a number from 0 to 1, and this is the number 2; write a number from 0 to 1
        g.yaml:4:27: error[wrong-type]: `retry` is `none` or a map, and this is the text `never`; write `none` or a map
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn checks_ask_one_thing() {
    let text = r#"graph: g
nodes:
  a:
    agent: Do it.
    requires:
      - {name: nothing}
      - {name: twice, check: "true", required: [a]}
      - {check: "true"}
    ensure:
      - {name: open, path: a.b}
      - {name: both, path: a.b, equals: 1, matches: x}
      - {name: other, judge: Good?, equals: 1}
      - {name: path, path: "a..b", equals: 1}
      - {name: tools, called: {}}
      - {name: index, required: ["a[x]"]}
"#;
    expect![[r#"
        g.yaml:6:9: error[bad-check]: the check asks nothing; write one of `check`, `required`, `path`, `called` or `judge`
        g.yaml:7:9: error[bad-check]: a check asks one thing, and this one has 2 of them; write one of `check`, `required`, `path`, `called` or `judge`
        g.yaml:8:9: error[missing-key]: a check needs the key `name`; add `name:`
        g.yaml:10:9: error[bad-check]: the check does not say what `path` has to be; write one of `equals`, `in` or `matches`
        g.yaml:11:9: error[bad-check]: the check says more than once what `path` has to be; write one of `equals`, `in` or `matches`
        g.yaml:12:37: error[bad-check]: `equals` belongs to a check with `path`, and this one has `judge`; remove it, or split the check
        g.yaml:13:28: error[bad-check]: `a..b` is no path; write it as `a.b`, `a[0].b` or `a[*].b`
        g.yaml:14:31: error[bad-check]: `called` names no tools; list tools under `any`, `all` or `none`
        g.yaml:15:34: error[bad-check]: `a[x]` is no path; write it as `a.b`, `a[0].b` or `a[*].b`
    "#]].assert_eq(&problems(text));
}

/// G37
#[test]
fn patterns_are_linear_and_short() {
    let text = r#"graph: g
nodes:
  a:
    value: 1
    ensure:
      - {name: open, path: a, matches: "a(b"}
      - {name: back, path: a, matches: '(a)\1'}
      - {name: large, path: a, matches: '(x{1000}){1000}'}
"#;
    expect![[r#"
        g.yaml:6:40: error[bad-pattern]: "a(b" is no regular expression: unclosed group; correct it, or escape characters with `\`
        g.yaml:7:40: error[bad-pattern]: "(a)\\1" is no regular expression: backreferences are not supported; correct it, or escape characters with `\`
        g.yaml:8:41: error[bad-pattern]: the regular expression is too large when compiled; repeat less in it; correct it, or escape characters with `\`
    "#]].assert_eq(&problems(text));
}

/// G35
#[test]
fn a_template_closes_its_expressions() {
    let text = r#"graph: g
nodes:
  a: {value: "costs $${x} or ${ input.x", next: b}
  b:
    value: |
      first
        and ${ here
"#;
    expect![[r#"
        g.yaml:3:30: error[bad-expression]: the expression that `${` begins has no `}`; close it, or write `$${` for the characters themselves
        g.yaml:7:13: error[bad-expression]: the expression that `${` begins has no `}`; close it, or write `$${` for the characters themselves
    "#]].assert_eq(&problems(text));
}

/// G35
#[test]
fn an_expression_is_written_without_braces() {
    let text = r#"graph: g
nodes:
  a: {value: 1, next: [{to: a, when: "${ a > 1 }", max: 1}, {to: end}]}
"#;
    expect![[r#"
        g.yaml:3:38: error[bad-expression]: `when` is an expression, and this is a template; write `a > 1`
    "#]]
    .assert_eq(&problems(text));
}

/// G3
#[test]
fn two_graphs_of_a_file_have_two_names() {
    let text = r"graph: g
nodes: {a: {value: 1}}
---
graph: g
nodes: {a: {value: 1}}
";
    expect![[r#"
        g.yaml:4:8: error[duplicate-key]: two graphs of this file are named `g`, the first in line 1; rename one of them
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn a_variable_of_the_environment_has_a_name() {
    let text = r#"graph: g
nodes: {a: {command: {run: [env], env: {"A=B": 1}, parse: xml}, next: b}, b: {command: []}}
"#;
    expect![[r#"
        g.yaml:2:41: error[bad-name]: `A=B` is no name of an environment variable; use letters, digits and `_`
        g.yaml:2:59: error[wrong-type]: `parse` is `json` or `text`, and this is `xml`; write `json` or `text`
        g.yaml:2:88: error[missing-key]: the command is empty; begin with the program
    "#]]
    .assert_eq(&problems(text));
}

/// G3 G4
#[test]
fn a_part_that_cannot_be_read_hides_nothing_else() {
    let text = r"graph: g
nodse:
  a: {value: '${ vars.x }', next: [{to: b, when: 'input.a ='}, {to: nowhere, wen: input.b}, {to: c}]}
  b: !tag {value: '${ c + 1e999 + }', next: {paralel: [d, e], join: f}}
  c: 7
  d: {value: 1, next: 5}
  e: {human: {ask: '${ lost }', reply: {type: strng}}, next: f}
  f: {command: {run: [], stdin: '${ d.x + a.y }'}, max_visits: 1e999}
  g: {value: 1, set: {lst: 1}}
vars: {last: null}
";
    expect![[r#"
        g.yaml:2:1: error[unknown-key]: a document has no key `nodse`; did you mean `nodes`?
        g.yaml:3:18: error[unknown-var]: the variable `x` is not declared; declare it with its first value: `vars: {x: …}`
        g.yaml:3:59: error[bad-expression]: `=` has no meaning in expressions; to compare, write `==`; nothing is assigned in expressions
        g.yaml:3:69: error[unknown-node]: `a` leads to `nowhere`, and the graph has no such node; add the node, or name another
        g.yaml:3:78: error[unknown-key]: a route has no key `wen`; did you mean `when`?
        g.yaml:4:11: error[syntax]: the tag `!tag` is none that the format knows; remove the tag
        g.yaml:4:27: error[bad-expression]: the number `1e999` is beyond what a float holds; correct the expression
        g.yaml:4:46: error[unknown-key]: `next` has no key `paralel`; did you mean `parallel`?
        g.yaml:5:6: error[wrong-type]: a node is a map, and this is the number 7; write a map
        g.yaml:6:23: error[wrong-type]: `next` is an id, `end`, a list of routes, or a map, and this is the number 5; write an id, `end`, a list of routes, or a map
        g.yaml:7:24: error[unknown-node]: `lost` is no node, and no other name that expressions have; did you mean `vars.last`?
        g.yaml:7:47: error[bad-schema]: `reply` is no valid JSON Schema: `strng` is no type; did you mean `string`?
        g.yaml:8:22: error[missing-key]: the command is empty; begin with the program
        g.yaml:8:64: error[too-large]: the number `1e999` is none that JSON can hold exactly; quote it, or write a smaller number or a fraction
        g.yaml:9:23: error[unknown-var]: the variable `lst` is not declared; did you mean `last`?
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn the_documents_before_an_error_of_syntax_are_checked() {
    let text = "graph: g\nnodes: {a: {graph: line, next: b}}\n---\ngraph: line\nnodes: {a: [}\n";
    expect![[r#"
        g.yaml:2:32: error[unknown-node]: `a` leads to `b`, and the graph has no such node; add the node, or name another
        g.yaml:5:12: error[syntax]: mismatched bracket '[' closed by '}'; correct the YAML here, or quote the text
    "#]].assert_eq(&problems(text));
    let early = r#"{"graph": "g"}, "nodes": {"a": {"value": 1}}}"#;
    expect![[r#"
        g.yaml:1:15: error[syntax]: did not find expected <document start>; correct the YAML here, or quote the text
    "#]].assert_eq(&problems(early));
}

/// G3
#[test]
fn a_default_fits_its_own_schema() {
    let text = r"graph: g
input:
  type: object
  properties:
    limit: {type: integer, default: ten}
    mode: {$ref: '#/$defs/mode', default: quick}
    lines: {type: array, items: {type: object, properties: {count: {minimum: 1, default: 0}}}}
    none: {type: string, default: null}
    good: {type: integer, default: 3}
  $defs: {mode: {enum: [fast, slow]}}
nodes:
  a: {value: 1, output: {default: x, type: [integer, object], properties: {default: {type: string}}}}
";
    expect![[r#"
        g.yaml:5:37: error[bad-schema]: the default of `limit`, "ten", does not fit its schema: "ten" is not of type "integer"; correct it, or the schema
        g.yaml:6:43: error[bad-schema]: the default of `mode`, "quick", does not fit its schema: "quick" is not one of "fast" or "slow"; correct it, or the schema
        g.yaml:7:90: error[bad-schema]: the default of `count`, 0, does not fit its schema: 0 is less than the minimum of 1; correct it, or the schema
        g.yaml:12:35: error[bad-schema]: the default, "x", does not fit its schema: "x" is not of types "integer", "object"; correct it, or the schema
    "#]].assert_eq(&problems(text));
}

/// G35
#[test]
fn an_expression_where_nothing_is_interpolated_is_a_warning() {
    let text = r#"graph: g
description: "About ${ input.x }"
vars: {first: [1, "${ input.x }"]}
nodes:
  a:
    function: "${ vars.first }"
    description: costs $${x} or ${ input.x }
    ensure: [{name: is, path: a.x, equals: "${ input.x }"}, "a.y == '${ input.x }'"]
    next: [{to: b, when: "input.x == 'a ${ b }'", id: "${ id }"}, {to: b}]
  b: {agent: {instruction: "Do ${ input.x }.", model: "${ vars.first }", tools: {allow: ["${ x }"]}}}
"#;
    expect![[r#"
        g.yaml:2:21: warning[not-interpolated]: `description` is taken as it is written, and `${` has no meaning in it; write the value itself; expressions stand in templates, such as `value` and `with`
        g.yaml:3:20: warning[not-interpolated]: `vars.first` is taken as it is written, and `${` has no meaning in it; write the value itself; expressions stand in templates, such as `value` and `with`
        g.yaml:6:16: warning[not-interpolated]: `function` is taken as it is written, and `${` has no meaning in it; write the value itself; expressions stand in templates, such as `value` and `with`
        g.yaml:7:25: warning[not-interpolated]: `description` is taken as it is written, and `${` has no meaning in it; write the value itself; expressions stand in templates, such as `value` and `with`
        g.yaml:8:45: warning[not-interpolated]: `equals` is taken as it is written, and `${` has no meaning in it; write the value itself; expressions stand in templates, such as `value` and `with`
        g.yaml:8:70: warning[not-interpolated]: a text within an expression is taken as it is written, and `${` has no meaning in it; join texts with `+`
        g.yaml:9:41: warning[not-interpolated]: a text within an expression is taken as it is written, and `${` has no meaning in it; join texts with `+`
        g.yaml:9:56: warning[not-interpolated]: `id` is taken as it is written, and `${` has no meaning in it; write the value itself; expressions stand in templates, such as `value` and `with`
        g.yaml:10:56: warning[not-interpolated]: `model` is taken as it is written, and `${` has no meaning in it; write the value itself; expressions stand in templates, such as `value` and `with`
        g.yaml:10:91: warning[not-interpolated]: `allow` is taken as it is written, and `${` has no meaning in it; write the value itself; expressions stand in templates, such as `value` and `with`
    "#]].assert_eq(&problems(text));
}

/// G3
#[test]
fn an_expression_in_braces_is_quoted() {
    for text in [
        "graph: g\nnodes:\n  a: {value: ${ input.x }}\n",
        "graph: g\nnodes:\n  a: {function: f, with: {x: '${ input.y }', y: ${ input.x }}}\n",
    ] {
        let found = problems(text);
        assert!(
            found.contains("YAML reads the brace of `${`") && found.contains("quote the text"),
            "{found}"
        );
    }
    expect![[r#"
        g.yaml:3:14: error[syntax]: within `{…}` and `[…]`, YAML reads the brace of `${` as the begin of a map; quote the text: `"${ … }"`
    "#]].assert_eq(&problems("graph: g\nnodes:\n  a: {value: ${ input.x }}\n"));
    let long = format!("graph: g\nnodes:\n  a:\n    value: 'function f() ${{ {} }}'\n", "x".repeat(1 << 20));
    expect![[r#"
        g.yaml:4:26: error[bad-expression]: 1048578 bytes stand between `${` and its `}`, and an expression has at most 4096; if it is no expression, write `$${`; else compute parts of it in nodes of kind `value`
    "#]].assert_eq(&problems(&long));
}

/// G3
#[test]
fn near_names_are_filled_in_wherever_there_are_any() {
    let text = r"graph: g
vars: {count: 0}
nodes:
  a: {value: '${ coun + lenn(cost) }', next: ende, on_failure: continu}
  b: {value: '${ fil }', for_each: {in: input.files, as: file}}
";
    let error = workflow_graph::Document::parse(text, "g.yaml").unwrap_err();
    let similar =
        error.problems.iter().map(|problem| format!("{}: {:?}\n", problem.message, problem.similar));
    expect![[r#"
        there is no function `lenn`: ["len"]
        `a` leads to `ende`, and the graph has no such node: ["end"]
        `a` leads to `continu`, and the graph has no such node: ["continue"]
        no route from `a`, where runs start, leads to `b`: []
        `fil` is no node, and no other name that expressions have: ["file"]
    "#]]
    .assert_eq(&similar.collect::<String>());
}

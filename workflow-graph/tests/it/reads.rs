//! Expressions: their syntax, their names, and the order of nodes.

use expect_test::expect;

use super::support::problems;

/// G35
#[test]
fn an_expression_that_cannot_be_read_says_where() {
    let text = r#"graph: g
nodes:
  a:
    value: "first ${ input.a + } and ${ 1 }"
    next:
      - {to: b, when: input.a === 1}
      - {to: b, when: "matches(input.a, '(')"}
      - {to: b}
  b:
    value: |
      A text of
        two lines with ${ input..b }.
"#;
    expect![[r#"
        g.yaml:4:31: error[bad-expression]: found the end; expected a value; correct the expression
        g.yaml:6:31: error[bad-expression]: `===` has no meaning in expressions; write `==`
        g.yaml:7:41: error[bad-expression]: "(" is no regular expression: unclosed group; correct the expression
        g.yaml:12:33: error[bad-expression]: found `.`; expected a key after `.`; correct the expression
    "#]].assert_eq(&problems(text));
}

/// G7
#[test]
fn a_variable_is_declared_and_gets_a_value() {
    let text = r#"graph: g
vars: {count: 0, last: null, nothing: null}
nodes:
  a: {value: "${ vars.cuont + vars.other }", set: {last: 1, coutn: 2}}
"#;
    expect![[r#"
        g.yaml:2:30: warning[unset-var]: the variable `nothing` has no first value, and no node sets it; give it one, `set` it in a node, or remove it
        g.yaml:4:18: error[unknown-var]: the variable `cuont` is not declared; did you mean `count`?
        g.yaml:4:31: error[unknown-var]: the variable `other` is not declared; declare it with its first value: `vars: {other: …}`
        g.yaml:4:61: error[unknown-var]: the variable `coutn` is not declared; did you mean `count`?
    "#]].assert_eq(&problems(text));
}

/// G7
#[test]
fn a_field_is_one_of_the_schema() {
    let text = r#"graph: g
input: {type: object, properties: {order: {type: string}, cents: {type: integer, default: 0}}, required: [order]}
nodes:
  a:
    function: f
    with: {x: "${ input.ordre }", y: "${ input.cents }"}
    output:
      type: object
      properties:
        paid: {type: integer}
        lines: {type: array, items: {$ref: '#/$defs/line'}}
        more: {type: object}
      required: [paid, lines]
      $defs: {line: {type: object, properties: {sku: {type: string}}, required: [sku]}}
    next: b
  b:
    value: {all: "${ a.piad + a.lines[0].sku + a.lines[0].price }", free: "${ a.more.x.y }"}
    next: c
  c: {value: "${ b.al + b.all.x + nodes.b.data.fre + nodes.b.stat }"}
"#;
    expect![[r#"
        g.yaml:6:19: error[unknown-field]: `input` has no field `ordre`; did you mean `order`?
        g.yaml:17:22: error[unknown-field]: the result of `a` has no field `piad`; did you mean `paid`?
        g.yaml:17:48: error[unknown-field]: the result of `a` has no field `price`; the fields are `sku`; describe others in its schema
        g.yaml:17:79: warning[maybe-missing]: the field `more` of the result of `a` is not required, so it may be missing; write `default(a.more.x.y, …)`, or ask `has(a.more.x.y)` first
        g.yaml:19:18: error[unknown-field]: the result of `b` has no field `al`; did you mean `all`?
        g.yaml:19:35: error[unknown-field]: the result of `b` has no field `fre`; did you mean `free`?
        g.yaml:19:54: error[unknown-field]: `nodes.b` has no `stat`; did you mean `status`?
    "#]].assert_eq(&problems(text));
}

/// G7
#[test]
fn an_optional_field_may_be_missing() {
    let text = r#"graph: g
input: {type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string, default: x}}, required: [a]}
nodes:
  a: {value: "${ input.a + input.b + input.c }", next: [{to: b, when: "default(input.b, '') == 'x'"}, {to: c}]}
  b: {value: "${ has(input.b) and input.b == 'x' }"}
  c: {value: 1}
"#;
    expect![[r#"
        g.yaml:4:28: warning[maybe-missing]: the field `b` of `input` is not required, so it may be missing; write `default(input.b, …)`, or ask `has(input.b)` first
    "#]].assert_eq(&problems(text));
}

/// G7
#[test]
fn a_node_that_cannot_have_run_is_not_read() {
    let text = r#"graph: g
nodes:
  a: {value: "${ b.x }", next: b}
  b: {value: {x: 1, y: "${ b.x }"}, ensure: [b.x == 1], next: c}
  c: {value: "${ a + c }", max_visits: 2, next: [{to: c, when: c == 1}, {to: end}]}
"#;
    expect![[r#"
        g.yaml:3:18: error[never-read-before]: `a` reads `b`, which cannot have run before; lead `b` to `a`, or read another node
        g.yaml:4:28: error[never-read-before]: `b` reads its own result, and has none before it runs; read it in `ensure`, `set` or `next`
        g.yaml:5:22: warning[maybe-missing]: `c` need not have succeeded when `c` reads it; write `default(c, …)`, or ask `has(c)` first
    "#]].assert_eq(&problems(text));
}

/// G7
#[test]
fn a_node_that_need_not_have_run_is_guarded() {
    let text = r#"graph: g
output: {b: "${ b.x }", c: "${ default(c, 0) }", a: "${ a }"}
nodes:
  a: {value: 1, next: [{to: b, when: input.x}, {to: d}]}
  b: {function: f, on_failure: c, next: d}
  c: {value: "${ b.x }", next: d}
  d: {value: {all: "${ b.x + a }", some: "${ default(b.x, 0) }", visits: "${ nodes.b.visits }"}}
"#;
    expect![[r#"
        g.yaml:2:17: warning[maybe-missing]: `b` need not have succeeded when the output is made; write `default(b.x, …)`, or ask `has(b.x)` first
        g.yaml:6:18: warning[maybe-missing]: `b` need not have succeeded when `c` reads it; write `default(b.x, …)`, or ask `has(b.x)` first
        g.yaml:7:24: warning[maybe-missing]: `b` need not have succeeded when `d` reads it; write `default(b.x, …)`, or ask `has(b.x)` first
    "#]].assert_eq(&problems(text));
}

/// G7
#[test]
fn a_node_that_goes_on_after_a_failure_may_have_no_result() {
    let text = r#"graph: g
nodes:
  a: {function: f, on_failure: continue, set: {}, ensure: [a.x], next: [{to: b, when: a.x}, {to: b}]}
  b: {value: "${ a.x }"}
"#;
    expect![[r#"
        g.yaml:3:87: warning[maybe-missing]: `a` need not have succeeded when `a` reads it; write `default(a.x, …)`, or ask `has(a.x)` first
        g.yaml:4:18: warning[maybe-missing]: `a` need not have succeeded when `b` reads it; write `default(a.x, …)`, or ask `has(a.x)` first
    "#]].assert_eq(&problems(text));
}

/// G7
#[test]
fn error_is_there_where_a_failure_led() {
    let text = r#"graph: g
nodes:
  a: {function: f, on_failure: b, next: [{to: b, when: input.x}, {to: c}]}
  b: {value: "${ error.message + default(error.reason, '') }", next: d}
  c: {value: "${ error.message }"}
  d: {function: f, on_failure: [{to: e, when: error.class == 'permanent'}, {to: end}]}
  e: {value: "${ error.node }"}
"#;
    expect![[r#"
        g.yaml:4:18: warning[maybe-missing]: `error` is missing where no failure led to `b`; write `default(error.message, …)`, or ask `has(error.message)` first
        g.yaml:4:42: error[unknown-field]: `error` has no field `reason`; the fields are `message`, `class`, `node`
        g.yaml:5:18: error[never-read-before]: `c` reads `error`, and no failure leads there; read it where `on_failure` leads
    "#]].assert_eq(&problems(text));
}

/// G8
#[test]
fn results_of_branches_are_there_behind_the_join() {
    let text = r#"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c, {to: d, when: input.x}]}}
  b: {function: f, next: b2}
  b2: {function: f, next: j}
  c: {value: "${ b.x }", next: [{to: c2, when: input.y}, {to: j}]}
  c2: {function: f, next: j}
  d: {function: f, next: j}
  j: {value: ["${ b.x }", "${ b2.x }", "${ c }", "${ c2.x }", "${ d.x }"], next: k}
  k: {value: ["${ b2.x }", "${ joined.failed }"]}
"#;
    expect![[r#"
        g.yaml:6:18: error[never-read-before]: `c` reads `b`, which runs in another branch of `a`, and branches do not see each other; read it at `j`, where the branches meet
        g.yaml:9:54: warning[maybe-missing]: `c2` need not have succeeded when `j` reads it; write `default(c2.x, …)`, or ask `has(c2.x)` first
        g.yaml:9:67: warning[maybe-missing]: `d` need not have succeeded when `j` reads it; write `default(d.x, …)`, or ask `has(d.x)` first
        g.yaml:10:32: error[never-read-before]: `k` reads `joined`, and no branches meet there; read it where they meet
    "#]].assert_eq(&problems(text));
}

/// G8
#[test]
fn results_of_nested_branches_are_there_behind_the_outer_join() {
    let text = r#"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c]}}
  b: {value: 1, next: {parallel: [d, e]}}
  d: {function: f, next: f}
  e: {value: "${ b }", next: f}
  f: {value: "${ d.x }", next: g}
  c: {value: 1, next: g}
  g: {value: ["${ d.x }", "${ f }", "${ joined.faild }"]}
"#;
    expect![[r#"
        g.yaml:9:41: error[unknown-field]: `joined` has no field `faild`; did you mean `failed`?
    "#]]
    .assert_eq(&problems(text));
}

/// G15
#[test]
fn results_of_branches_that_may_fail_are_guarded() {
    let text = r#"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c], failures: wait_all}}
  b: {function: f, next: j}
  c: {function: f, next: j}
  j: {value: ["${ b.x }", "${ default(c.x, 0) }", "${ len(joined.branches) }"]}
"#;
    expect![[r#"
        g.yaml:6:19: warning[maybe-missing]: `b` need not have succeeded when `j` reads it; write `default(b.x, …)`, or ask `has(b.x)` first
    "#]].assert_eq(&problems(text));
}

/// G35
#[test]
fn names_mean_something_where_they_stand() {
    let text = r#"graph: g
output: "${ visits }"
nodes:
  web-search: {value: 1, next: b}
  b: {value: "${ web + serch + item + index }", next: c}
  c: {value: "${ file + index }", for_each: {in: "input.files", as: file}, next: d}
  d: {value: "${ c.items[0] + c.item }", requires: [{name: r, required: [inptu.x, c.failed, c.fail]}]}
"#;
    expect![[r#"
        g.yaml:2:13: error[unknown-node]: `visits` has a meaning only in a node; remove it, or read something else
        g.yaml:5:18: error[unknown-node]: `web` is no node, and no other name that expressions have; if the node is meant, write `nodes["web-search"].data`
        g.yaml:5:24: error[unknown-node]: `serch` is no node, and no other name that expressions have; correct the name, or quote a text
        g.yaml:5:32: error[unknown-node]: `item` has a meaning only in a node with `for_each`; remove it, or read something else
        g.yaml:5:39: error[unknown-node]: `index` has a meaning only in a node with `for_each`; remove it, or read something else
        g.yaml:7:31: error[unknown-field]: the result of `c` has no field `item`; did you mean `items`?
        g.yaml:7:74: error[unknown-node]: `inptu` is no node, and no other name that expressions have; did you mean `input`?
        g.yaml:7:93: error[unknown-field]: the result of `c` has no field `fail`; did you mean `failed`?
    "#]].assert_eq(&problems(text));
}

/// G7
#[test]
fn operands_fit_by_their_schemas() {
    let text = r#"graph: g
input: {type: object, properties: {n: {type: integer}, s: {type: string}}, required: [n, s]}
vars: {count: 0}
nodes:
  a:
    value: "${ input.n + input.s }"
    ensure: [{name: n, check: input.n}, input.s > 1]
    next:
      - {to: b, when: visits == 1 and vars.count < 'x'}
      - {to: b}
  b: {value: 1}
"#;
    expect![[r#"
        g.yaml:6:16: error[type-mismatch]: `input.n` is a number and `input.s` is a text; `+` takes two numbers, two texts or two lists; convert one of them, or correct the schema
        g.yaml:7:31: error[type-mismatch]: `input.n` is a number, and a condition needs a boolean; convert one of them, or correct the schema
        g.yaml:7:41: error[type-mismatch]: `input.s` is a text and `1` is a number; they have no order; convert one of them, or correct the schema
        g.yaml:9:39: error[type-mismatch]: `vars.count` is a number and `'x'` is a text; they have no order; convert one of them, or correct the schema
    "#]].assert_eq(&problems(text));
}

/// G7, G8, G14
#[test]
fn branches_that_end_on_their_way_settle_like_those_that_arrive() {
    // `c` may end, and `b` always arrives; without a join all branches end; `c` never comes to the join.
    let some_ends = r#"graph: g
output: {j: "${ j }", b: "${ b }", c: "${ c }"}
nodes:
  a: {value: 1, next: {parallel: [b, c], join: j}}
  b: {value: 1, next: j}
  c: {value: 1, next: [{to: j, when: input.x}, {to: end}]}
  j: {value: "${ b + c }"}
"#;
    let all_end = r#"graph: g
output: {c: "${ c }", b: "${ b }"}
nodes:
  a: {value: 1, next: {parallel: [b, c]}}
  b: {value: 1}
  c: {value: 1}
"#;
    let one_arrives = r#"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c], join: j}}
  b: {value: 1, next: [{to: b2, when: input.x}, {to: end}]}
  b2: {value: 1, next: j}
  c: {value: 1, next: c2}
  c2: {value: 1}
  j: {value: "${ b + b2 + c + c2 }", next: k}
  k: {value: "${ b2 + c2 }"}
"#;
    let nested = r#"graph: g
nodes:
  a: {value: 1, next: {parallel: [p, c], join: j}}
  p: {value: 1, next: {parallel: [x, y], join: j}}
  x: {value: 1, next: j}
  y: {value: 1}
  c: {value: 1, next: [{to: j, when: input.x}, {to: end}]}
  j: {value: "${ p + x + y + c }"}
"#;
    for text in [some_ends, all_end, one_arrives, nested] {
        assert_eq!(problems(text), "", "{text}");
    }
}

/// G7, G8, G14, G15
#[test]
fn a_result_that_only_some_ways_to_the_join_have_is_guarded() {
    // `c` may arrive alone; the branches within `p` may all end; a branch may fail, and the walk goes on at the join.
    let text = r#"graph: g
output: "${ j }"
nodes:
  a: {value: 1, next: {parallel: [b, c], join: j}}
  b: {value: 1, next: [{to: b2, when: input.x}, {to: end}]}
  b2: {value: 1, next: j}
  c: {value: 1, next: [{to: j, when: input.x}, {to: end}]}
  j: {value: "${ b + b2 + c }", next: p}
  p: {value: 1, next: {parallel: [x, y], join: m}}
  x: {value: 1, next: [{to: m, when: input.x}, {to: end}]}
  y: {value: 1, next: [{to: m, when: input.x}, {to: end}]}
  m: {value: 1, next: q}
  q: {value: 1, on_failure: continue, next: {parallel: [u, v], join: w}}
  u: {function: f, next: w}
  v: {function: f}
  w: {value: "${ m + u }"}
"#;
    expect![[r#"
        g.yaml:2:13: warning[maybe-missing]: `j` need not have succeeded when the output is made; write `default(j, …)`, or ask `has(j)` first
        g.yaml:8:22: warning[maybe-missing]: `b2` need not have succeeded when `j` reads it; write `default(b2, …)`, or ask `has(b2)` first
        g.yaml:16:22: warning[maybe-missing]: `u` need not have succeeded when `w` reads it; write `default(u, …)`, or ask `has(u)` first
    "#]]
    .assert_eq(&problems(text));
    let nested = r#"graph: g
nodes:
  a: {value: 1, next: {parallel: [p, c], join: j}}
  p: {value: 1, next: {parallel: [x, y], join: m}}
  x: {value: 1, next: [{to: m, when: input.x}, {to: end}]}
  y: {value: 1, next: [{to: m, when: input.x}, {to: end}]}
  m: {value: 1, next: j}
  c: {value: 1, next: j}
  j: {value: "${ p + m }"}
"#;
    expect![[r#"
        g.yaml:9:22: warning[maybe-missing]: `m` need not have succeeded when `j` reads it; write `default(m, …)`, or ask `has(m)` first
    "#]]
    .assert_eq(&problems(nested));
}

/// G7
#[test]
fn reads_of_an_agent_go_by_the_order_of_nodes() {
    let text = r#"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c]}}
  b: {agent: Write., reads: [a, c, d, b], next: d}
  c: {value: 1, next: d}
  d: {agent: Write., reads: [b, c, lost]}
"#;
    expect![[r#"
        g.yaml:4:33: error[never-read-before]: `b` reads `c`, which runs in another branch of `a`, and branches do not see each other; read it at `d`, where the branches meet
        g.yaml:4:36: error[never-read-before]: `b` reads `d`, which cannot have run before; lead `d` to `b`, or read another node
        g.yaml:4:39: error[never-read-before]: `b` reads its own result, and has none before it runs; read it in `ensure`, `set` or `next`
        g.yaml:6:36: error[unknown-node]: `d` reads `lost`, and the graph has no such node; add the node, or name another
    "#]].assert_eq(&problems(text));
}

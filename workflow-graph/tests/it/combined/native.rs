//! Documents of the native format.

use workflow_graph::Format;

use super::{Mistake, every_combination, mistake, slip};

const ORDER: &str = r#"graph: order
input: {type: object, properties: {cents: {type: integer}, kind: {type: string}}, required: [cents, kind]}
vars: {tries: 0}
nodes:
  @7look:
    function: orders.find
    timeout: @0
    set: {tries: "${ @1 + 1 }"}
    next:
      - {to: split, when: @2}
      - {to: @3, when: vars.tries < 3}
      - {to: done}
  again: {value: 1, next: [{to: look@7}, {to: done}]}
  split: {value: 1, @4: split twice, next: {parallel: @8[left, right, third]}}
  left: {value: 1, next: @8}
  right: {value: "${ @5 + 1 }", next: meet}
  third: {value: 1, next: meet}
  meet: {value: "${ @6 }", next: done}
  done: {value: 1}
@9"#;

const OF_ORDER: [Mistake; 10] = [
    mistake("bad-duration", &[("10s", "«soon")]),
    slip("unknown-var", "tries", &[("vars.tries", "«vars.tires")]),
    mistake("bad-expression", &[("input.cents > 5", "input.cents >«")]),
    slip("unknown-node", "again", &[("again", "«agian")]),
    slip("unknown-key", "description", &[("description", "«descripton")]),
    slip("unknown-field", "cents", &[("input.cents", "«input.cnets")]),
    mistake("type-mismatch", &[("input.kind + 'x'", "«input.kind + 1")]),
    mistake("unbounded-cycle", &[("", "«"), (", max: 3", ", when: input.cents > 2")]),
    mistake("no-common-join", &[("", "«"), ("meet", "[{to: meet, when: input.kind == 'x'}, {to: end}]")]),
    mistake("unreachable-node", &[("", "  «lost: {value: 1}\n")]),
];

/// Parts that cannot be read, beside parts that can.
const DESK: &str = r#"graph: desk
input: @0
nodes:
  ask:
    human: {ask: "${ input.what }", reply: {type: object, properties: {yes: {type: boolean}}, required: [yes]}}
    @1: [{to: pay, when: ask.yes}, {to: twice, when: ask.yes}, {to: refuse}]
  twice: {value: 1, @2next: pay}
  pay: {function: bank.pay, on_failure: @3, retry: {attempts: 2}, next: sum}
  sum: {value: "${ @4 }", next: [@5{to: each}]}
  each: {value: "${ part }", for_each: {in: @6, as: part}, next: fork}
  fork: {value: 1, next: {parallel: [a, b]@7}}
  a: {command: {run: @8, stdin: "${ ask.yes }"}, next: done}
  b: {value: 1, next: done}
  refuse: {value: "${ input.x }", next: done}
  done: {value: 1@9}
"#;

const OF_DESK: [Mistake; 10] = [
    slip("bad-schema", "object", &[("{type: object}", "{type: «objekt}")]),
    slip("unknown-key", "next", &[("next", "«nxt")]),
    mistake("duplicate-key", &[("", "next: pay, «")]),
    mistake("wrong-type", &[("refuse", "«7")]),
    mistake("never-read-before", &[("ask.yes", "«done")]),
    mistake("dead-route", &[("", "{to: each}, «")]),
    mistake("wrong-type", &[("input.parts", "«[input.parts]")]),
    mistake("wrong-type", &[("", ", concurrency: «many")]),
    mistake("missing-key", &[("[ls]", "«[]")]),
    mistake("unknown-var", &[("", ", set: {«last: 1}")]),
];

// G3
#[test]
fn an_order_with_ten_mistakes() {
    every_combination(ORDER, &OF_ORDER, &Format::Native);
}

// G3
#[test]
fn a_desk_with_ten_parts_that_cannot_be_read() {
    every_combination(DESK, &OF_DESK, &Format::Native);
}

//! Comparisons with values that schemas exclude.

use expect_test::expect;

use super::support::problems;

/// G7
#[test]
fn a_comparison_with_a_value_that_the_schema_excludes_is_a_warning() {
    let text = r#"graph: g
input:
  type: object
  required: [kind, level, mode, tags]
  properties:
    kind: {const: order}
    level: {enum: [1, 2.0, 3]}
    mode: {$ref: '#/$defs/mode'}
    tags: {type: array, items: {enum: [gift, heavy]}}
    on: {enum: [true], default: true}
  $defs: {mode: {enum: [fast, slow, null]}}
nodes:
  sign:
    human: {ask: Well?, reply: {type: object, required: [decision], properties: {decision: {enum: [release, reject]}}}}
    next:
      - {when: 'sign.decision == "relaese"', to: work}
      - {when: '"Reject" != sign.decision', to: work}
      - {when: 'sign.decision in ["release", "refuse"]', to: work}
      - {when: 'sign.decision == true', to: work}
      - {when: "nodes.sign.data.decision not in ['x']", to: work}
      - {when: 'input.kind == "ordre" or input.level == 4 or input.mode != "fsat"', to: work}
      - {when: 'input.tags[0] == "gfit"', to: work}
      - {when: 'default(sign.decision, "none") == "nnoe"', to: work}
      - {when: '("a" if input.level == 1 else sign.decision) == "b"', to: work}
      - {when: 'nodes.sign.status == "failure"', to: work}
      - work
  work:
    function: f
    with: {early: "${ work.done == 'yse' }"}
    output: {type: object, properties: {done: {enum: ["yes", "no", a1, a2, a3, a4, a5, a6, a7, a8]}}}
    max_visits: 2
    next: [{when: 'default(work.done, "no") == "later"', to: work}, {to: end}]
output: ${ work.done == "yess" }
"#;
    expect![[r#"
        g.yaml:16:34: warning[never-equal]: `sign.decision` is never "relaese": it is "release" or "reject"; did you mean `release`?
        g.yaml:17:17: warning[never-equal]: `sign.decision` is never "Reject": it is "release" or "reject"; did you mean `reject`?
        g.yaml:18:46: warning[never-equal]: `sign.decision` is never "refuse": it is "release" or "reject"; compare it with one of these
        g.yaml:19:34: warning[never-equal]: `sign.decision` is never true: it is "release" or "reject"; compare it with one of these
        g.yaml:20:50: warning[never-equal]: `nodes.sign.data.decision` is never "x": it is "release" or "reject"; compare it with one of these
        g.yaml:21:31: warning[never-equal]: `input.kind` is never "ordre": it is "order"; did you mean `order`?
        g.yaml:21:57: warning[never-equal]: `input.level` is never 4: it is 1, 2.0 or 3; compare it with one of these
        g.yaml:21:76: warning[never-equal]: `input.mode` is never "fsat": it is "fast", "slow" or null; did you mean `fast`?
        g.yaml:22:34: warning[never-equal]: `input.tags[0]` is never "gfit": it is "gift" or "heavy"; did you mean `gift`?
        g.yaml:23:51: warning[never-equal]: `default(sign.decision, "none")` is never "nnoe": it is "release", "reject" or "none"; did you mean `none`?
        g.yaml:24:65: warning[never-equal]: `("a" if input.level == 1 else sign.decision)` is never "b": it is "a", "release" or "reject"; compare it with one of these
        g.yaml:25:38: warning[never-equal]: `nodes.sign.status` is never "failure": it is "success", "failed" or "skipped"; compare it with one of these
        g.yaml:29:23: warning[maybe-missing]: the field `done` of the result of `work` is not required, so it may be missing; write `default(work.done, …)`, or ask `has(work.done)` first
        g.yaml:29:36: warning[never-equal]: `work.done` is never "yse": it is "yes", "no", "a1", "a2", "a3", "a4", "a5", "a6" or one of 2 more; did you mean `yes`?
        g.yaml:32:48: warning[never-equal]: `default(work.done, "no")` is never "later": it is "yes", "no", "a1", "a2", "a3", "a4", "a5", "a6" or one of 2 more; compare it with one of these
        g.yaml:33:12: warning[maybe-missing]: the field `done` of the result of `work` is not required, so it may be missing; write `default(work.done, …)`, or ask `has(work.done)` first
        g.yaml:33:25: warning[never-equal]: `work.done` is never "yess": it is "yes", "no", "a1", "a2", "a3", "a4", "a5", "a6" or one of 2 more; did you mean `yes`?
    "#]].assert_eq(&problems(text));
}

/// G7
#[test]
fn what_a_schema_allows_or_leaves_open_is_compared_without_a_warning() {
    let text = r#"graph: g
input:
  type: object
  required: [kind, level, mode, tags, pair, free, flag]
  properties:
    kind: {const: order}
    level: {enum: [1, 2.0, 3]}
    mode: {enum: [fast, slow, null]}
    tags: {type: array, items: {enum: [gift, heavy]}}
    pair: {type: array, prefixItems: [{type: string}], items: {enum: [a]}}
    free: {type: string}
    flag: {enum: [true, false], default: false}
vars: {last: none}
nodes:
  sign:
    human: {ask: Well?, reply: {type: object, required: [decision], properties: {decision: {enum: [release, reject]}}}}
    set: {last: "${ sign.decision }"}
    next:
      - {when: 'sign.decision == "release" or "reject" == sign.decision', to: work}
      - {when: 'sign.decision in ["release", "reject"]', to: work}
      - {when: 'sign.decision == null or input.mode is null', to: work}
      - {when: 'input.kind == "order" and input.level == 1.0 and input.level != 2', to: work}
      - {when: 'default(sign.decision, "none") == "none"', to: work}
      - {when: 'input.tags[0] == "gift" or input.tags == "x" or input.pair[0] == "b"', to: work}
      - {when: 'input.free == "x" or vars.last == "x" or sign.decision == input.free', to: work}
      - {when: '"lease" in sign.decision or sign.decision < "b"', to: work}
      - {when: 'nodes.sign.status == "success" or input.flag == false', to: work}
      - {when: '1 == 2', to: work}
      - work
  work: {function: f}
"#;
    expect![[""]].assert_eq(&problems(text));
}

//! Explanations and traces of runs that did not just succeed: skips, failures, joins, drops and ends from outside.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::playing::{Played, played, script};

pub(super) fn check(text: &str, expected: &Expect) {
    expected.assert_eq(text);
}

pub(super) async fn explained(played: &Played) -> String {
    // Ids of runs are random.
    let text = played.run.explain().await.unwrap().to_string();
    text.replace(&played.run.id().to_string(), "r")
}

pub(super) async fn explain(text: &str, script: Value) -> String {
    let played = played(text, json!({}), script).await;
    let _ = played.run.outcome().await;
    explained(&played).await
}

// G19, G23, G34
#[tokio::test(start_paused = true)]
async fn a_node_says_how_its_visits_ended() {
    let text = "
graph: g
nodes:
  a: {function: x, retry: none, on_failure: continue, next: b}
  b: {function: x, max_visits: 2, next: [{when: visits < 3, to: b}, {to: mail}]}
  mail: {tool: mail.send, requires: {all: [visits > 5], otherwise: skip}, next: each}
  each: {function: x, retry: none, for_each: {in: '[1, 2, 3]', as: n, failures: continue_others}}
";
    let fail = json!({"fail": "no disk", "class": "permanent"});
    let script = script(json!({"a": [fail], "b": [{}, {}], "each": [{}, fail, fail]}));
    check(
        &explain(text, script).await,
        &expect![[r#"
            run r of g: The run completed at `each`.
            a (function x): failed once: permanent: no disk; the walk went on
              the run begins here
            b (function x): visited 3 times (the last kept the result before it: beyond max_visits)
              from `a`: only path
              from `b`: visits < 3 (2 times; the last: visits = 2)
              at visit 1 led to `b`: visits < 3 (visits = 1)
              at visit 2 led to `b`: visits < 3 (visits = 2)
              at visit 3 led to `mail`: default
                not to `b` (visits < 3): false at visit 3: visits = 3
            mail (tool mail.send): skipped: `mail` requires what does not hold: `visits > 5`: it is false, where `visits` is 1
              from `b`: default
            each (function x): visited once (2 of 3 items failed: item 2 (index 1): no disk; item 3 (index 2): no disk)
              from `mail`: only path
        "#]],
    );
}

// G19, G34
#[tokio::test(start_paused = true)]
async fn routes_of_a_failure_saw_its_error() {
    let text = "
graph: g
nodes:
  a: {function: x, retry: none, on_failure: [{when: error.class == 'permanent', to: b}], next: b}
  b: {value: 1}
";
    let script = script(json!({"a": [{"fail": "no disk", "class": "transient"}]}));
    check(
        &explain(text, script).await,
        &expect![[r#"
            run r of g: The run failed at `a`: permanent: no route of `on_failure` of `a` held: `a->b` asks for `error.class == 'permanent'`, where `error.class` is "transient"; the failure was: no disk.
            a (function x): failed once: transient: no disk; no route of `on_failure` held
              the run begins here
            b (value): not visited
              not from `a` (next): `a` failed (transient: no disk; no route of `on_failure` held)
              not from `a` (on failure, error.class == 'permanent'): false: error.class = "transient"
        "#]],
    );
}

// G12, G34
#[tokio::test(start_paused = true)]
async fn the_conditions_of_which_none_held_stand_once_in_full() {
    let text = "
graph: g
vars: {limit: 20, word: 'a; `b` and `c`'}
nodes:
  look: {value: {paid: 10}, next: [{when: look.paid > vars.limit, to: b}, {when: \"vars.word == 'x'\", to: c}]}
  b: {value: 1}
  c: {value: 1}
";
    check(
        &explain(text, json!({})).await,
        &expect![[r#"
            run r of g: The run failed at `look`: permanent: no route of `look` held: `look->b` asks for `look.paid > vars.limit`, where `look.paid` is 10 and `vars.limit` is 20; `look->c` asks for `vars.word == 'x'`, where `vars.word` is "a; `b` and `c`".
            look (value): failed once: permanent: no route of `look` held, see above
              the run begins here
            b (value): not visited
              not from `look` (look.paid > vars.limit): false: look.paid = 10, vars.limit = 20
            c (value): not visited
              not from `look` (vars.word == 'x'): false: vars.word = "a; `b` and `c`"
        "#]],
    );
}

// G12, G19, G34
#[tokio::test(start_paused = true)]
async fn on_failure_that_leads_on_from_routes_that_missed_is_no_miss() {
    let text = "
graph: g
nodes:
  ask: {value: 'yes_', on_failure: bad, next: [{when: ask == 'yes', to: good}, {when: ask == 'no', to: good}]}
  good: {value: 1}
  bad: {value: '${ error.message }'}
";
    let played = played(text, json!({}), json!({})).await;
    let result = played.result().await;
    check(
        result.output.as_str().unwrap(),
        &expect![[
            r#"no route of `ask` held: `ask->good` asks for `ask == 'yes'`, where `ask` is "yes_"; `ask->good.2` asks for `ask == 'no'`, where `ask` is "yes_""#
        ]],
    );
    check(
        &explained(&played).await,
        &expect![[r#"
        run r of g: The run completed at `bad`.
        ask (value): failed once: permanent: no route of `ask` held: `ask->good` asks for `ask == 'yes'`, where `ask` is "yes_"; `ask->good.2` asks for `ask == 'no'`, where `ask` is "yes_"; `on_failure` led to `bad`
          the run begins here
        good (value): not visited
          not from `ask` (ask == 'yes'): false: ask = "yes_"
          not from `ask` (ask == 'no'): false: ask = "yes_"
        bad (value): visited once
          from `ask`: on failure
    "#]],
    );
    let data = serde_json::to_value(played.run.explain().await.unwrap()).unwrap();
    assert_eq!(data["nodes"][0]["ends"][0]["led_to"], "bad");
    assert_eq!(data["nodes"][0]["ends"][0]["error"]["message"], result.output);
    assert_eq!(data["nodes"][1]["not_taken"][0]["why"], "did_not_hold");
    assert_eq!(data["nodes"][2]["led"][0]["on_failure"], true);
    assert!(!data.to_string().contains("`on_failure` held"), "{data}");
}

// G12, G19, G34
#[tokio::test(start_paused = true)]
async fn two_lists_that_miss_are_told_apart() {
    let text = "
graph: g
nodes:
  ask:
    value: {word: 'yes_'}
    on_failure: [{when: error.class == 'transient', to: bad}]
    next: [{when: ask.word == 'yes', to: good}]
  good: {value: 1}
  bad: {value: 1}
";
    check(
        &explain(text, json!({})).await,
        &expect![[r#"
        run r of g: The run failed at `ask`: permanent: no route of `on_failure` of `ask` held: `ask->bad` asks for `error.class == 'transient'`, where `error.class` is "permanent"; the failure was: no route of `ask` held: `ask->good` asks for `ask.word == 'yes'`, where `ask.word` is "yes_".
        ask (value): failed once: permanent: no route of `next` held, and none of `on_failure`
          the run begins here
        good (value): not visited
          not from `ask` (ask.word == 'yes'): false: ask.word = "yes_"
        bad (value): not visited
          not from `ask` (on failure, error.class == 'transient'): false: error.class = "permanent"
    "#]],
    );
}

// G19, G34
#[tokio::test(start_paused = true)]
async fn a_long_cause_stands_once() {
    let text = "
graph: g
nodes:
  fan: {value: 1, next: {parallel: [register, other], join: meet, failures: F}, on_failure: away}
  register: {function: x, retry: none, next: count}
  count: {value: 1, next: meet}
  other: {value: 1, next: meet}
  meet: {value: 1}
  away: {value: 1}
";
    let long = "the registry refused: no number is left in the range 10 to 99 of this year, and no other range is open";
    let script = script(json!({"register": [{"fail": long, "class": "permanent"}]}));
    for (failures, text_of) in [
        (
            "wait_all",
            expect![[r#"
                run r of g: The run completed at `meet`.
                fan (value): visited once
                  the run begins here
                register (function x): failed once: permanent: the registry refused: no number is left in the range 10 to 99 of this year, and no other range is open
                  from `fan`: branch
                count (value): not visited
                  not from `register` (next): `register` failed (permanent: the registry refused, see `register`)
                other (value): visited once
                  from `fan`: branch
                meet (value): visited once
                  all branches of `fan` have ended (1 arrived, 1 failed: `register` (permanent: the registry refused, see `register`))
                away (value): not visited
                  not from `fan` (on failure): `fan` did not fail
            "#]],
        ),
        (
            "fail_all",
            expect![[r#"
                run r of g: The run completed at `away`.
                fan (value): failed once with its branches: permanent: `register` failed: the registry refused, see `register`; `on_failure` led to `away`
                  the run begins here
                register (function x): failed once: permanent: the registry refused: no number is left in the range 10 to 99 of this year, and no other range is open
                  from `fan`: branch
                count (value): not visited
                  not from `register` (next): `register` failed (permanent: the registry refused, see `register`)
                other (value): begun, and dropped, since another branch failed (`fail_all`)
                  from `fan`: branch
                meet (value): not visited
                  branches of `fan`: `register` failed (permanent: the registry refused, see `register`); `other` was dropped, since another branch failed (`fail_all`)
                  not from `count` (next): `count` was not visited
                  not from `other` (next): `other` was dropped, since another branch failed (`fail_all`)
                away (value): visited once
                  from `fan`: on failure
            "#]],
        ),
    ] {
        let explained =
            explain(&text.replace("failures: F", &format!("failures: {failures}")), script.clone()).await;
        assert_eq!(explained.matches(long).count(), 1, "{explained}");
        check(&explained, &text_of);
    }
    // Where the run fails, the summary has it.
    let fails = text.replace(", on_failure: away", "").replace("  away: {value: 1}\n", "");
    let explained = explain(&fails.replace("failures: F", "failures: fail_all"), script).await;
    assert_eq!(explained.matches(long).count(), 1, "{explained}");
    check(
        &explained,
        &expect![[r#"
            run r of g: The run failed at `register` in fan/1: permanent: the registry refused: no number is left in the range 10 to 99 of this year, and no other range is open.
            fan (value): failed once with its branches: permanent: `register` failed: the registry refused, see above
              the run begins here
            register (function x): failed once: permanent: the registry refused, see above
              from `fan`: branch
            count (value): not visited
              not from `register` (next): `register` failed (permanent: the registry refused, see above)
            other (value): begun, and dropped, since another branch failed (`fail_all`)
              from `fan`: branch
            meet (value): not visited
              branches of `fan`: `register` failed (permanent: the registry refused, see above); `other` was dropped, since another branch failed (`fail_all`)
              not from `count` (next): `count` was not visited
              not from `other` (next): `other` was dropped, since another branch failed (`fail_all`)
        "#]],
    );
}

// HV11, G34
#[tokio::test(start_paused = true)]
async fn conditions_of_a_hive_document_saw_its_memory() {
    let text = r#"{
      "id": "g", "entry_node": "read", "terminal_nodes": ["report"], "max_steps": 3,
      "nodes": [
        {"id": "read", "node_type": "function", "function": "x", "output_keys": ["coverage", "gaps"]},
        {"id": "widen", "node_type": "function", "function": "x", "output_keys": ["topic"]},
        {"id": "report", "node_type": "function", "function": "x", "output_keys": ["text"]}
      ],
      "edges": [
        {"id": "enough", "source": "read", "target": "report", "condition": "conditional",
         "condition_expr": "coverage >= 0.8 and gaps == None", "priority": 2},
        {"id": "more", "source": "read", "target": "widen", "condition": "always"},
        {"id": "again", "source": "widen", "target": "read"}
      ]
    }"#;
    let script = script(
        json!({"read": [{"data": {"coverage": 0.9, "gaps": "none"}}], "widen": [{"data": {"topic": "ice"}}]}),
    );
    check(
        &explain(text, script).await,
        &expect![[r#"
            run r of g: The run used all of its 3 steps (`max_steps`), and ended before `widen`.
            read (function x): visited twice
              the run begins here
              from `widen`: only path
              at visit 1 led to `widen`: always
                not to `report` (coverage >= 0.8 and gaps == None): false: coverage = 0.9, gaps = "none"
              at visit 2 led to `widen`: always
                not to `report` (coverage >= 0.8 and gaps == None): false at visit 2: coverage = 0.9, gaps = "none"
            widen (function x): visited once, and the next visit was not begun, since the run had used all of its steps
              from `read`: always (2 times)
            report (function x): not visited
              not from `read` (coverage >= 0.8 and gaps == None): false at visit 2: coverage = 0.9, gaps = "none"
        "#]],
    );
}

// SW13, G34
#[tokio::test(start_paused = true)]
async fn edges_of_a_sweny_document_lead_on_from_a_failure() {
    let text = "
id: g
name: Press release
entry: draft
nodes:
  draft: {name: Draft, instruction: Draft it., requires: {output_required: [input.topic]}}
  legal: {name: Legal, instruction: Read it.}
  hold: {name: Hold, instruction: Hold it.}
edges:
  - {from: draft, to: legal, when: the draft is good}
  - {from: draft, to: hold}
";
    let script = json!({"nodes": {"hold": [{"data": {}}]}, "decide": {"draft": ["publish"]}});
    check(
        &explain(text, script).await,
        &expect![[r#"
            run r of g: The run completed at `hold`.
            draft (agent): failed once before its work: permanent: `draft` requires what does not hold: `output_required`: `input.topic` is missing; the walk went on
              the run begins here
              led to `hold`: fallback: the model chose `publish`, which is no choice
                not to `legal` (the draft is good): it was open to the model, which did not choose it
            legal (agent): not visited
              not from `draft` (the draft is good): the choice was `hold` (fallback: the model chose `publish`, which is no choice)
            hold (agent): visited once
              from `draft`: fallback: the model chose `publish`, which is no choice
        "#]],
    );
}

// G23, G34
#[tokio::test(start_paused = true)]
async fn the_visit_beyond_the_limit_of_steps_was_dropped() {
    let text = "
graph: g
limits: {steps: 2}
nodes:
  a: {value: 1, next: b}
  b: {value: 1, next: c}
  c: {value: 1}
";
    check(
        &explain(text, json!({})).await,
        &expect![[r#"
            run r of g: The run used all of its 2 steps (`limits.steps`), and ended before `c`.
            a (value): visited once
              the run begins here
            b (value): visited once
              from `a`: only path
            c (value): not visited, since the run had used all of its steps
              from `b`: only path
        "#]],
    );
}

// G34, G36
#[tokio::test(start_paused = true)]
async fn a_path_that_leads_nowhere_says_where_it_ends() {
    let text = "
graph: g
nodes:
  policy:
    value: {contract: {level: gold}, note: null}
    next:
      - {to: b, when: policy.contract.tier == 'gold'}
      - {to: b, when: has(policy.note.by) or input.from.city == null and visits > 1}
      - c
  b: {value: 1}
  c: {value: 1}
";
    check(
        &explain(text, json!({})).await,
        &expect![[r#"
        run r of g: The run completed at `c`.
        policy (value): visited once
          the run begins here
          led to `c`: default
            not to `b` (policy.contract.tier == 'gold'): false: policy.contract.tier is missing (`policy.contract` has the key "level")
            not to `b` (has(policy.note.by) or input.from.city == null and visits > 1): false: policy.note.by is missing (`policy.note` is null), input.from.city is missing (`input` is an empty map), visits = 1
        b (value): not visited
          not from `policy` (policy.contract.tier == 'gold'): false: policy.contract.tier is missing (`policy.contract` has the key "level")
          not from `policy` (has(policy.note.by) or input.from.city == null and visits > 1): false: policy.note.by is missing (`policy.note` is null), input.from.city is missing (`input` is an empty map), visits = 1
        c (value): visited once
          from `policy`: default
    "#]],
    );
}

//! Explanations of decisions: the route that the last visit of a node took, and why each other one was not taken.

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_graph::{
    Document, Format, GraphOptions, GraphRun, HiveOptions, Registry, ScriptedExecutor, SwenyOptions,
};
use workflow_testkit::VirtualClock;

use super::playing::script;

async fn explained(document: &Document, script: Value, options: GraphOptions) -> (String, String) {
    let script = ScriptedExecutor::from_json(&script).unwrap();
    let workflows = document.bind(&Registry::new().script(script.clone())).unwrap();
    let engine = Engine::builder().workflows(workflows).clock(VirtualClock::new());
    let engine = engine.store(Arc::new(MemoryStore::default())).build().unwrap();
    let run = GraphRun::start_with(&engine, document.name(), json!({}), options).await.unwrap();
    run.play(&script).await.unwrap();
    let _ = run.outcome().await;
    let text = run.explain().await.unwrap().to_string();
    // Ids of runs are random.
    (text.replace(&run.id().to_string(), "r"), run.trace().await.unwrap().to_string())
}

async fn native(text: &str, script: Value) -> String {
    let document = Document::parse(text, "g.yaml").unwrap_or_else(|error| panic!("{error}"));
    explained(&document, script, GraphOptions::new()).await.0
}

fn sweny(text: &str) -> Document {
    Document::parse_as(text, "g.yaml", Format::Sweny(SwenyOptions::new())).unwrap()
}

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(text);
}

// HV11, G34
#[tokio::test(start_paused = true)]
async fn conditions_of_hive_documents_saw_memory_and_the_result() {
    let text = json!({
        "id": "g", "entry_node": "a", "terminal_nodes": ["c", "d"], "max_steps": 3,
        "nodes": [
            {"id": "a", "node_type": "function", "function": "a", "output_keys": ["x"]},
            {"id": "b", "node_type": "function", "function": "b", "output_keys": ["y"]},
            {"id": "c", "node_type": "function", "function": "c"},
            {"id": "d", "node_type": "function", "function": "d"},
        ],
        "edges": [
            {"source": "a", "target": "b"},
            {"source": "b", "target": "c", "condition": "conditional", "condition_expr": "x > 3 and y > 3"},
            {"source": "b", "target": "d", "condition": "always"},
        ],
    });
    let options = HiveOptions::new();
    let document = Document::parse_as(&text.to_string(), "g.json", Format::Hive(options)).unwrap();
    let script = script(json!({"a": [{"data": {"x": 5}}], "b": [{"data": {"y": 1}}], "d": [{}]}));
    let (text, _) = explained(&document, script, GraphOptions::new()).await;
    assert!(text.contains("not from `b` (x > 3 and y > 3): false: x = 5, y = 1\n"), "{text}");
    assert!(text.contains("led to `d`: always\n    not to `c`"), "{text}");
}

const DRAFT: &str = "
id: g
name: G
entry: draft
nodes:
  draft: {name: D, instruction: Write., requires: R}
  legal: {name: L, instruction: Check.}
  hold: {name: H, instruction: Hold.}
edges:
  - {from: draft, to: legal, when: it passed}
  - {from: draft, to: hold}
";

// SW11, SW12, SW13, G34
#[tokio::test(start_paused = true)]
async fn edges_behind_a_failed_node_of_sweny_were_the_choice_of_a_model() {
    let text = DRAFT.replace(", requires: R", "");
    let fail = json!({"fail": "no disk", "class": "permanent"});
    let chosen = json!({"nodes": {"draft": [fail]}, "decide": {"draft": ["hold"]}});
    let (text_of, _) = explained(&sweny(&text), chosen, GraphOptions::new()).await;
    assert!(
        text_of.contains("not from `draft` (it passed): the choice was `hold` (chosen by the model)\n"),
        "{text_of}"
    );
    assert!(text_of.contains("from `draft`: chosen by the model\n"), "{text_of}");
    let none = json!({"nodes": {"draft": [{"data": {}}]}, "decide": {"draft": ["wontfix"]}});
    let (text_of, trace) = explained(&sweny(&text), none, GraphOptions::new()).await;
    let fallback = "fallback: the model chose `wontfix`, which is no choice";
    assert!(text_of.contains(&format!("from `draft`: {fallback}\n")), "{text_of}");
    assert!(text_of.contains(&format!("the choice was `hold` ({fallback})")), "{text_of}");
    assert!(trace.contains("hold (only path; the model chose `wontfix`, which is no choice)"), "{trace}");
}

// SW9, G34
#[tokio::test(start_paused = true)]
async fn a_skipped_node_of_sweny_says_its_unmet_requirement() {
    let text = DRAFT.replace("requires: R", "requires: {output_required: [input.mail], on_fail: skip}");
    let script = json!({"nodes": {}, "decide": {"draft": ["hold"]}});
    let (text, trace) = explained(&sweny(&text), script, GraphOptions::new()).await;
    assert!(
        text.contains("draft (agent): skipped: `draft` requires what does not hold: `output_required`"),
        "{text}"
    );
    assert!(trace.contains("requires what does not hold"), "{trace}");
}

// G16, G34
#[tokio::test(start_paused = true)]
async fn a_dry_run_says_which_route_a_run_would_take() {
    let text = "
graph: g
nodes:
  plan: {value: {n: 1}, next: [{when: plan.n > 1, to: all}, {when: plan.n == 1, to: one}, {to: none}]}
  all: {value: 1}
  one: {value: 1}
  none: {value: 1}
";
    let document = Document::parse(text, "g.yaml").unwrap();
    let (text, _) = explained(&document, json!({}), GraphOptions::new().dry_run()).await;
    check(
        &text,
        &expect![[r#"
            run r of g: The dry run ended at `plan`, its first choice, from where a run would take `plan->one`.
            plan (value): visited once
              the run begins here
              the dry run ended before its choice
                not to `all` (plan.n > 1): false: plan.n = 1
                not to `one` (plan.n == 1): a run would take it: plan.n = 1
            all (value): not visited
              not from `plan` (plan.n > 1): false: plan.n = 1
            one (value): not visited
              not from `plan` (plan.n == 1): a run would take it: plan.n = 1
            none (value): not visited
              not from `plan` (default): the route to `one` comes first (plan.n == 1)
        "#]],
    );
}

// G12, G34
#[tokio::test(start_paused = true)]
async fn the_last_decision_of_a_cycle_has_used_up_routes_and_later_ones_that_hold() {
    let text = "
graph: g
nodes:
  a:
    value: {n: 1}
    next:
      - {when: visits > 9, to: b}
      - {id: again, when: a.n == 1, max: 2, to: a}
      - {id: on, when: a.n < 2, to: b}
      - {when: a.n < 3, to: b}
  b: {value: 1}
";
    check(
        &native(text, json!({})).await,
        &expect![[r#"
            run r of g: The run completed at `b`.
            a (value): visited 3 times
              the run begins here
              from `a`: again: a.n == 1 (2 times; the last: a.n = 1)
              at visit 1 led to `a`: again: a.n == 1 (a.n = 1)
                not to `b` (visits > 9): false: visits = 1
                not to `b` (on: a.n < 2): also holds, but comes later than the route to `a` (a.n == 1): a.n = 1
                not to `b` (a.n < 3): also holds, but comes later than the route to `a` (a.n == 1): a.n = 1
              at visit 2 led to `a`: again: a.n == 1 (a.n = 1)
                not to `b` (visits > 9): false at visit 2: visits = 2
                not to `b` (on: a.n < 2): also holds, but comes later than the route to `a` (a.n == 1): a.n = 1
                not to `b` (a.n < 3): also holds, but comes later than the route to `a` (a.n == 1): a.n = 1
              at visit 3 led to `b`: on: a.n < 2 (a.n = 1)
                not to `b` (visits > 9): false at visit 3: visits = 3
                not to `a` (again: a.n == 1, max 2): `max: 2` is used up, though its condition holds: a.n = 1
                not to `b` (a.n < 3): also holds, but comes later than the route to `b` (a.n < 2): a.n = 1
            b (value): visited once
              from `a`: on: a.n < 2 (a.n = 1)
        "#]],
    );
}

// G14, G19, G34
#[tokio::test(start_paused = true)]
async fn a_branch_that_ended_and_a_default_of_on_failure_say_so() {
    let text = "
graph: g
nodes:
  fan: {value: 1, next: {parallel: [a, b], join: meet, failures: wait_all}}
  a: {value: {skip: true}, next: [{when: a.skip, to: end}, {to: meet}]}
  b: {function: x, retry: none, next: meet, on_failure: [{when: error.class == 'rejected', to: meet}, {id: late, to: mend}]}
  mend: {value: 1, next: meet}
  meet: {value: 1}
";
    let text = native(text, script(json!({"b": [{"fail": "no disk", "class": "permanent"}]}))).await;
    assert!(text.contains("  ended by its route to `end`: a.skip (a.skip = true)\n"), "{text}");
    assert!(text.contains("  from `b`: late: default of `on_failure`\n"), "{text}");
    assert!(
        text.contains(
            "    not to `meet` (on failure, error.class == 'rejected'): false: error.class = \"permanent\"\n"
        ),
        "{text}"
    );
}

// G20, G34
#[tokio::test(start_paused = true)]
async fn items_that_failed_name_their_errors_and_children() {
    let text = "
graph: g
nodes:
  each: {graph: c, with: {n: '${ n }'}, for_each: {in: '[1, 2]', as: n, failures: continue_others}}
---
graph: c
input: {type: object, properties: {n: {type: integer}}}
nodes:
  a: {value: 1, next: [{when: input.n < 2, to: b}]}
  b: {value: 1}
";
    let text = native(text, json!({})).await;
    assert!(text.contains("each (graph c): visited once (1 of 2 items failed: item 2 (index 1): "), "{text}");
    assert!(text.contains(" (run "), "{text}");
}

// G33, G34: a visit that failed with its branches ended before the visits that came after them.
#[tokio::test(start_paused = true)]
async fn the_latest_visit_is_not_one_that_failed_with_branches_before() {
    let text = "
graph: g
nodes:
  p: {value: 1, next: {parallel: [x, y], join: j}, on_failure: [{to: p, max: 3}, {to: k}]}
  x: {function: x, retry: none, next: [{when: x.q > 5, to: q}, {to: j}]}
  q: {value: 1, next: j}
  y: {value: 2, next: j}
  j: {value: 1}
  k: {value: 2}
";
    let script = script(json!({"x": [{"fail": "no", "class": "permanent"}, {"data": {"q": 3}}]}));
    check(
        &native(text, script).await,
        &expect![[r#"
            run r of g: The run completed at `j`.
            p (value): visited twice (1 failed with its branches: permanent: `x` failed: no; `on_failure` led to `p`)
              the run begins here
              from `p`: default of `on_failure`
            x (function x): visited twice (1 failed: permanent: no)
              from `p`: branch (2 times)
              at visit 2 led to `j`: default
                not to `q` (x.q > 5): false at visit 2: x.q = 3
            q (value): not visited
              not from `x` (x.q > 5): false at visit 2: x.q = 3
            y (value): visited once, and the next visit was dropped, since another branch failed (`fail_all`)
              from `p`: branch (2 times)
            j (value): visited once
              all branches of `p` have ended (2 arrived)
            k (value): not visited
              not from `p` (on failure): `p` did not fail
        "#]],
    );
}

// G34: the conditions of branches saw the result of the node before the failure of its branches replaced it.
#[tokio::test(start_paused = true)]
async fn conditions_of_branches_saw_what_the_node_had_left() {
    let text = "
graph: g
nodes:
  p:
    value: {n: 2}
    next: {parallel: [{to: x, when: p.n > 3}, {to: y, when: p.n < 3}, {to: z}], join: j}
    on_failure: [{to: end}]
  x: {value: 1, next: j}
  y: {function: y, retry: none, next: j}
  z: {function: z, next: j}
  j: {value: 3}
";
    let script =
        script(json!({"y": [{"fail": "no", "class": "permanent"}], "z": [{"data": 1, "after": "50ms"}]}));
    check(
        &native(text, script).await,
        &expect![[r#"
            run r of g: The run completed at `p`.
            p (value): failed once with its branches: permanent: `y` failed: no; the walk went on
              the run begins here
            x (value): not visited
              not from `p` (branch if p.n > 3): false: p.n = 2
            y (function y): failed once: permanent: no
              from `p`: branch if p.n < 3 (p.n = 2)
            z (function z): begun, and dropped, since another branch failed (`fail_all`); its work may have taken effect
              from `p`: branch
            j (value): not visited
              branches of `p`: `y` failed (permanent: no); `z` was dropped, since another branch failed (`fail_all`)
              not from `x` (next): `x` was not visited
              not from `y` (next): `y` failed (permanent: no)
              not from `z` (next): `z` was dropped, since another branch failed (`fail_all`)
        "#]],
    );
}

// G34: the number of visits of a node is 0 before the first, and counts those that left no result.
#[tokio::test(start_paused = true)]
async fn conditions_on_visits_saw_none_and_those_that_failed() {
    let text = "
graph: g
nodes:
  a: {value: 1, next: [{when: nodes.b.visits > 0, to: b}, {when: nodes.b.visits == 0, to: c}]}
  b: {value: 1}
  c: {value: 2, next: {parallel: [d, e], join: f, failures: continue_others}}
  d: {function: d, retry: none, next: f}
  e: {value: 1, next: f}
  f: {value: 3, next: [{when: nodes.d.visits > 1, to: b}, {when: nodes.d.visits == 1, to: end}]}
";
    let script = script(json!({"d": [{"fail": "no", "class": "permanent"}]}));
    check(
        &native(text, script).await,
        &expect![[r#"
            run r of g: The run completed at `f`.
            a (value): visited once
              the run begins here
              led to `c`: nodes.b.visits == 0 (nodes.b.visits = 0)
                not to `b` (nodes.b.visits > 0): false: nodes.b.visits = 0
            b (value): not visited
              not from `a` (nodes.b.visits > 0): false: nodes.b.visits = 0
              not from `f` (nodes.d.visits > 1): false: nodes.d.visits = 1
            c (value): visited once
              from `a`: nodes.b.visits == 0 (nodes.b.visits = 0)
            d (function d): failed once: permanent: no
              from `c`: branch
            e (value): visited once
              from `c`: branch
            f (value): visited once
              all branches of `c` have ended (1 arrived, 1 failed: `d` (permanent: no))
              ended by its route to `end`: nodes.d.visits == 1 (nodes.d.visits = 1)
                not to `b` (nodes.d.visits > 1): false: nodes.d.visits = 1
        "#]],
    );
}

// G14, G34: a branch fails with the branches in it, so that nobody waits in those beside it any more.
#[tokio::test(start_paused = true)]
async fn a_question_in_a_branch_that_was_dropped_is_asked_no_more() {
    let text = "
graph: g
nodes:
  p: {value: 1, next: {parallel: [a, q], join: j}, on_failure: w}
  a: {human: {ask: 'a?'}, next: j}
  q: {value: 2, next: {parallel: [b, c], join: k}}
  b: {function: b, retry: none, next: k}
  c: {value: 2, next: k}
  k: {value: 1, next: j}
  j: {value: 1}
  w: {value: 2}
";
    let script = script(json!({"b": [{"fail": "no", "class": "permanent", "after": "30ms"}]}));
    check(
        &native(text, script).await,
        &expect![[r#"
            run r of g: The run completed at `w`.
            p (value): failed once with its branches: permanent: `b` failed: no; `on_failure` led to `w`
              the run begins here
            a (human): begun, and dropped, since another branch failed (`fail_all`)
              from `p`: branch
            q (value): failed once with its branches: permanent: `b` failed: no
              from `p`: branch
            b (function b): failed once: permanent: no
              from `q`: branch
            c (value): visited once
              from `q`: branch
            k (value): not visited
              branches of `q`: `b` failed (permanent: no); `c` arrived
              not from `b` (next): `b` failed (permanent: no)
            j (value): not visited
              branches of `p`: `a` was dropped, since another branch failed (`fail_all`); `q` failed (permanent: no)
              not from `a` (next): `a` was dropped, since another branch failed (`fail_all`)
              not from `k` (next): `k` was not visited
            w (value): visited once
              from `p`: on failure
        "#]],
    );
}

// G17, G34: a visit that failed after several attempts says so, with what failed first.
#[tokio::test(start_paused = true)]
async fn a_failed_visit_tells_its_attempts() {
    let text = "
graph: g
nodes:
  a: {function: a, retry: {attempts: 3, first: 1ms}, ensure: [a.code != ''], on_failure: b, next: end}
  b: {value: 1}
";
    let busy = json!({"fail": "the carrier is busy"});
    let script = script(json!({"a": [busy, busy, {"data": {"code": ""}}]}));
    check(
        &native(text, script).await,
        &expect![[r#"
        run r of g: The run completed at `b`.
        a (function a): failed once after 3 attempts: permanent: a check does not hold: `a.code != ''`: it is false, where `a.code` is "" (an attempt before: transient: the carrier is busy); `on_failure` led to `b`
          the run begins here
        b (value): visited once
          from `a`: on failure
    "#]],
    );
}

// G33, G34: branches that a node opened earlier are not those that it opened last, although their paths are alike.
#[tokio::test(start_paused = true)]
async fn branches_of_an_earlier_visit_are_told_apart_from_those_of_the_last() {
    let text = "
graph: g
nodes:
  p: {value: 1, next: {parallel: [a, q], join: j, failures: wait_all}}
  a: {value: 1, next: j}
  q: {value: 2, next: {parallel: [b, c], join: k}}
  b: {function: b, retry: none, next: k}
  c: {function: c, next: k}
  k: {value: 1, next: j}
  j: {value: 1, next: [{to: p, max: 2}, {to: end}]}
";
    let script = script(json!({
        "b": [{"fail": "no", "class": "permanent"}, {"data": 1}, {"fail": "again", "class": "permanent"}],
        "c": [{"data": 1}, {"data": 1}, {"data": 1, "after": "1s"}],
    }));
    check(
        &native(text, script).await,
        &expect![[r#"
            run r of g: The run completed at `j`.
            p (value): visited 3 times
              the run begins here
              from `j`: default (2 times)
            a (value): visited 3 times
              from `p`: branch (3 times)
            q (value): visited 3 times (2 failed with its branches: permanent: `b` failed: again)
              from `p`: branch (3 times)
            b (function b): visited 3 times (2 failed: permanent: again)
              from `q`: branch (3 times)
            c (function c): visited once, and the next visit was dropped, since another branch failed (`fail_all`); its work may have taken effect
              from `q`: branch (3 times)
            k (value): visited once
              branches of `q`: `b` failed (permanent: again); `c` was dropped, since another branch failed (`fail_all`)
            j (value): visited 3 times
              all branches of `p` have ended (1 arrived, 1 failed: `q` (permanent: again))
              at visit 3 ended by its route to `end`: default
                not to `p` (default, max 2): `max: 2` is used up
        "#]],
    );
}

// G22, G34: visits that the failure of their branches forgot have the numbers of later ones.
#[tokio::test(start_paused = true)]
async fn an_earlier_decision_has_the_route_of_its_own_visit() {
    let text = "
graph: g
vars: {n: 0}
nodes:
  p: {value: 1, set: {n: '${ vars.n + 1 }'}, next: {parallel: [x, y]}, on_failure: [{to: p, max: 1}, end]}
  x: {value: 1, next: [{to: one, when: vars.n == 1}, {to: two, when: vars.n == 2}]}
  one: {value: 1}
  two: {value: 1}
  y: {function: y, retry: none}
";
    let script = json!({"nodes": {"y": [{"fail": "no", "class": "permanent", "after": "1s"}, {}]}});
    check(
        &native(text, script).await,
        &expect![[r#"
        run r of g: The run completed at `p`.
        p (value): visited twice (1 failed with its branches: permanent: `y` failed: no; `on_failure` led to `p`)
          the run begins here
          from `p`: default of `on_failure`
        x (value): visited twice
          from `p`: branch (2 times)
          at visit 1 led to `one`: vars.n == 1 (vars.n = 1)
          at visit 1 led to `two`: vars.n == 2 (vars.n = 2)
            not to `one` (vars.n == 1): false: vars.n = 2
        one (value): visited once
          from `x`: vars.n == 1 (vars.n = 1)
        two (value): visited once
          from `x`: vars.n == 2 (vars.n = 2)
        y (function y): visited twice (1 failed: permanent: no)
          from `p`: branch (2 times)
    "#]],
    );
}

// G24, G34: a node at which a dry run ended had been left before.
#[tokio::test(start_paused = true)]
async fn an_earlier_visit_of_the_last_node_of_a_dry_run_took_its_route() {
    let text = "
graph: g
nodes:
  n: {function: n, retry: none, on_failure: [{to: fix, max: 1}, end], next: [{to: a, when: n.v == 1}, {to: fix, max: 2}]}
  fix: {value: 1, next: n}
  a: {value: 1}
";
    let document = Document::parse(text, "g.yaml").unwrap();
    let script = json!({"nodes": {"n": [{"fail": "no", "class": "permanent"}, {"data": {"v": 1}}]}});
    let (text, _) = explained(&document, script, GraphOptions::new().dry_run()).await;
    check(
        &text,
        &expect![[r#"
        run r of g: The dry run ended at `n`, its first choice, from where a run would take `n->a`.
        n (function n): visited twice (1 failed: permanent: no; `on_failure` led to `fix`)
          the run begins here
          from `fix`: only path
          at visit 2 the dry run ended before its choice
            not to `a` (n.v == 1): a run would take it: n.v = 1
        fix (value): visited once
          from `n`: default of `on_failure`
        a (value): not visited
          not from `n` (n.v == 1): a run would take it: n.v = 1
    "#]],
    );
}

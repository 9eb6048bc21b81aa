//! Explanations of runs with branches: gates in them, joins, failures and drops.

use std::sync::Arc;

use expect_test::expect;
use serde_json::json;
use workflow_core::RunOptions;
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_graph::{GraphOptions, GraphRun, VisitStatus};

use super::explained::{check, explain, explained};
use super::playing::{script, start, workflows};

/// Two branches of `fan` that meet at `meet`, of which one waits for a person.
const FAN: &str = "
graph: g
nodes:
  fan: {value: {big: true}, next: {parallel: [{to: gate, when: fan.big}, work], join: meet, failures: F}}
  gate: {human: {ask: Well?, reply: {type: string}}, next: meet}
  work: {function: x, retry: none, next: meet}
  meet: {value: 1}
";

// G14, G34
#[tokio::test(start_paused = true)]
async fn a_gate_in_a_branch_waits_and_the_join_lists_its_branches() {
    let text = FAN.replace("failures: F", "failures: wait_all").replace("Well?,", "Well?, expires: 2h,");
    let waiting =
        start(workflows(&text, script(json!({"work": [{}]}))), json!({}), GraphOptions::new()).await;
    waiting.waits().await;
    check(
        &explained(&waiting).await,
        &expect![[r#"
            run r of g: The run waits at `gate`.
              `gate` in fan/1 waits for the reply to #7: Well? (the reply is a string; expires in 2h, at 2000-01-01T02:00:00Z)
            fan (value): visited once
              the run begins here
            gate (human): under way
              from `fan`: branch if fan.big (fan.big = true)
            work (function x): visited once
              from `fan`: branch
            meet (value): not visited
              branches of `fan`: `gate` is under way; `work` arrived
              not from `gate` (next): `gate` has not ended
        "#]],
    );
    waiting.run.cancel("the shop closed").await.unwrap();
    let _ = waiting.run.outcome().await;
    check(
        &explained(&waiting).await,
        &expect![[r#"
            run r of g: The run was cancelled at `gate`: the shop closed.
            fan (value): visited once
              the run begins here
            gate (human): begun, and dropped, since the run ended
              from `fan`: branch if fan.big (fan.big = true)
            work (function x): visited once
              from `fan`: branch
            meet (value): not visited
              branches of `fan`: `gate` was dropped, since the run ended; `work` arrived
              not from `gate` (next): `gate` was dropped, since the run ended
        "#]],
    );
}

// G14, G15, G34
#[tokio::test(start_paused = true)]
async fn a_branch_that_was_dropped_says_so() {
    let text = FAN.replace("failures: F", "failures: fail_all");
    let script = script(json!({"work": [{"fail": "no disk", "class": "permanent"}]}));
    let failed = start(workflows(&text, script), json!({}), GraphOptions::new()).await;
    let _ = failed.run.outcome().await;
    check(
        &explained(&failed).await,
        &expect![[r#"
            run r of g: The run failed at `work` in fan/2: permanent: no disk.
            fan (value): failed once with its branches: permanent: `work` failed: no disk
              the run begins here
            gate (human): begun, and dropped, since another branch failed (`fail_all`)
              from `fan`: branch if fan.big (fan.big = true)
            work (function x): failed once: permanent: no disk
              from `fan`: branch
            meet (value): not visited
              branches of `fan`: `gate` was dropped, since another branch failed (`fail_all`); `work` failed (permanent: no disk)
              not from `gate` (next): `gate` was dropped, since another branch failed (`fail_all`)
              not from `work` (next): `work` failed (permanent: no disk)
        "#]],
    );
}

// G14, G15, G20, G34
#[tokio::test(start_paused = true)]
async fn branches_in_branches_meet_and_a_failure_of_all_of_them_may_be_handled() {
    let text = "
graph: g
nodes:
  out: {value: 1, on_failure: continue, next: {parallel: [in, c], join: last, failures: fail_all}}
  in: {value: 1, next: {parallel: [a, b], join: mid, failures: continue_others}}
  a: {function: x, retry: none, next: mid}
  b: {function: x, next: mid}
  mid: {value: 1, next: last}
  c: {function: x, retry: none, next: last}
  last: {value: 1}
";
    let fail = |after: &str| json!([{"fail": "no disk", "class": "permanent", "after": after}]);
    let one = script(json!({"a": fail("1ms"), "b": [{}], "c": [{}]}));
    check(
        &explain(text, one).await,
        &expect![[r#"
            run r of g: The run completed at `last`.
            out (value): visited once
              the run begins here
            in (value): visited once
              from `out`: branch
            a (function x): failed once: permanent: no disk
              from `in`: branch
            b (function x): visited once
              from `in`: branch
            mid (value): visited once
              all branches of `in` have ended (1 arrived, 1 failed: `a` (permanent: no disk))
            c (function x): visited once
              from `out`: branch
            last (value): visited once
              all branches of `out` have ended (2 arrived)
        "#]],
    );
    let all = script(json!({"a": [{}], "b": [{"after": "50ms"}], "c": fail("5ms")}));
    check(
        &explain(text, all).await,
        &expect![[r#"
            run r of g: The run completed at `last`.
            out (value): failed once with its branches: permanent: `c` failed: no disk; the walk went on
              the run begins here
            in (value): visited once
              from `out`: branch
            a (function x): visited once
              from `in`: branch
            b (function x): begun, and dropped, since another branch failed (`fail_all`); its work may have taken effect
              from `in`: branch
            mid (value): not visited
              branches of `in`: `a` arrived; `b` was dropped, since another branch failed (`fail_all`)
              not from `b` (next): `b` was dropped, since another branch failed (`fail_all`)
            c (function x): failed once: permanent: no disk
              from `out`: branch
            last (value): visited once
              all branches of `out` have ended (1 failed: `c` (permanent: no disk), 1 was dropped, since another branch failed (`fail_all`))
        "#]],
    );
}

// G22, G23, G33, G34: `c` ends the run before the failure of `a:caught` could end anything.
#[tokio::test(start_paused = true)]
async fn a_failure_that_comes_as_the_run_ends_is_none() {
    let text = "
graph: g
limits: {steps: 2}
nodes:
  fan: {value: 1, next: {parallel: [b, a]}, on_failure: away}
  b: {value: 1, next: c}
  c: {value: 1}
  a: {value: 1, requires: [visits > 5], on_failure: [{when: input.x.y > 1, to: d}]}
  d: {value: 1}
  away: {value: 1}
";
    let store = Arc::new(MemoryStore::default());
    let engine =
        || Engine::builder().workflows(workflows(text, json!({}))).store(Arc::clone(&store)).build().unwrap();
    let first = engine();
    let options = GraphOptions::new().run(RunOptions::new().id("r"));
    let run = GraphRun::start_with(&first, "g", json!({}), options).await.unwrap();
    let trace = run.outcome().await.unwrap().trace;
    let ended: Vec<_> = trace.visits.iter().map(|visit| (&*visit.node, visit.status)).collect();
    assert_eq!(ended, [("fan", VisitStatus::Success), ("b", VisitStatus::Success)]);
    let explained = run.explain().await.unwrap().to_string();
    // No journal has it.
    let again = engine();
    let run = GraphRun::attach(&again, "r").await.unwrap();
    let trace_again = run.outcome().await.unwrap().trace;
    let ended_again: Vec<_> = trace_again.visits.iter().map(|visit| (&*visit.node, visit.status)).collect();
    assert_eq!((ended_again, trace_again.routes), (ended, trace.routes));
    assert_eq!(run.explain().await.unwrap().to_string(), explained);
    check(
        &explained,
        &expect![[r#"
            run r of g: The run used all of its 2 steps (`limits.steps`), and ended before `c`.
            fan (value): visited once
              the run begins here
            b (value): visited once
              from `fan`: branch
            c (value): not visited, since the run had used all of its steps
              from `b`: only path
            a (value): begun, and dropped, since the run ended
              from `fan`: branch
            d (value): not visited
              not from `a` (on failure, input.x.y > 1): `a` was dropped, since the run ended
            away (value): not visited
              not from `fan` (on failure): `fan` did not fail
        "#]],
    );
}

// G15, G22, G34: branches that had failed long before the run was cancelled have failed.
#[tokio::test(start_paused = true)]
async fn branches_that_failed_before_a_cancel_have_failed() {
    let text = "
graph: g
nodes:
  out: {value: 1, next: {parallel: [in, x], failures: continue_others}}
  in: {value: 1, next: {parallel: [b, c]}}
  b: {function: b, retry: none}
  c: {human: {ask: Well?}}
  x: {human: {ask: Well?}}
";
    let script = script(json!({"b": [{"fail": "no", "class": "permanent"}]}));
    let played = start(workflows(text, script), json!({}), GraphOptions::new()).await;
    played.waits().await;
    let before = explained(&played).await;
    check(
        &before,
        &expect![[r#"
        run r of g: The run waits at `x`.
          `x` in out/2 waits for the reply to #10: Well?
        out (value): visited once
          the run begins here
        in (value): failed once with its branches: permanent: `b` failed: no
          from `out`: branch
        b (function b): failed once: permanent: no
          from `in`: branch
        c (human): begun, and dropped, since another branch failed (`fail_all`)
          from `in`: branch
        x (human): under way
          from `out`: branch
    "#]],
    );
    played.run.cancel("no longer needed").await.unwrap();
    let failure = played.failure().await;
    let inner = failure.trace.visits.iter().find(|visit| &*visit.node == "in").unwrap();
    assert_eq!(inner.status, VisitStatus::Failed);
    let after = explained(&played).await;
    check(
        &after,
        &expect![[r#"
        run r of g: The run was cancelled at `x`: no longer needed.
        out (value): visited once
          the run begins here
        in (value): failed once with its branches: permanent: `b` failed: no
          from `out`: branch
        b (function b): failed once: permanent: no
          from `in`: branch
        c (human): begun, and dropped, since another branch failed (`fail_all`)
          from `in`: branch
        x (human): begun, and dropped, since the run ended
          from `out`: branch
    "#]],
    );
}

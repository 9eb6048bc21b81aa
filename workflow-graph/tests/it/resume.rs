//! Runs that go on later: redriven, with a changed document, after a pause, and with work that was saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio::sync::Notify;
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::store::{MemoryStore, RunQuery};
use workflow_core::{Pause, RunStatus, RuntimeWorkflow};
use workflow_graph::{GraphOptions, GraphRun, NodeContext, NodeError, Registry};
use workflow_testkit::VirtualClock;

use super::playing::{bound, script, start, visits, workflows};

fn engine(workflows: Vec<RuntimeWorkflow>, store: &Arc<MemoryStore>) -> Engine {
    Engine::builder().workflows(workflows).store(store.clone()).clock(VirtualClock::new()).build().unwrap()
}

const CHAIN: &str = "
graph: g
nodes:
  a: {function: f, next: b}
  b: {function: f, retry: none, next: c}
  c: {value: \"${ a } ${ b } ${ nodes.b.visits }\"}
";

// G2, G29 (S39)
#[tokio::test(start_paused = true)]
async fn a_failed_run_is_redriven_at_the_node_that_failed() {
    let store = Arc::new(MemoryStore::default());
    let failing =
        engine(workflows(CHAIN, script(json!({"a": [{"data": 1}], "b": [{"fail": "away"}]}))), &store);
    let run = GraphRun::start(&failing, "g", json!({})).await.unwrap();
    assert!(run.outcome().await.is_err());
    drop(failing);
    // What has run is not run again: `a` would say 9 now.
    let mended = engine(workflows(CHAIN, script(json!({"a": [{"data": 9}], "b": [{"data": 2}]}))), &store);
    let redriven = mended.redrive_all(&RunQuery::new().status(RunStatus::Failed), 10).await.unwrap();
    assert_eq!((redriven.runs.len(), redriven.refused.len()), (1, 0));
    let run = GraphRun::attach(&mended, run.id().clone()).await.unwrap();
    let result = run.outcome().await.unwrap();
    assert_eq!((&result.output, result.document_changed), (&json!("1 2 1"), false));
    assert_eq!(visits(&result.trace), ["a#1 success", "b#1 success", "c#1 success"]);
}

// G2, G29 (S41): the document is mended, and the run goes on with it.
#[tokio::test(start_paused = true)]
async fn a_failed_run_is_redriven_with_a_mended_document() {
    let store = Arc::new(MemoryStore::default());
    let failing =
        engine(workflows(CHAIN, script(json!({"a": [{"data": 1}], "b": [{"fail": "away"}]}))), &store);
    let run = GraphRun::start(&failing, "g", json!({})).await.unwrap();
    assert!(run.outcome().await.is_err());
    drop(failing);
    let text = CHAIN.replace("retry: none,", "retry: none, on_failure: d,")
        + "  d: {function: f, next: e}\n  e: {value: \"${ a + d }\"}\n";
    let playing = script(json!({"b": [{"fail": "away"}], "d": [{"data": 5}]}));
    let mended = engine(workflows(&text, playing), &store);
    let redriven = mended.redrive_all(&RunQuery::new().status(RunStatus::Failed), 10).await.unwrap();
    assert_eq!((redriven.runs.len(), redriven.refused.len()), (1, 0), "{:?}", redriven.refused);
    let run = GraphRun::attach(&mended, run.id().clone()).await.unwrap();
    let result = run.outcome().await.unwrap();
    assert_eq!((&result.output, result.quality), (&json!(6), Quality::Degraded));
    assert!(result.document_changed);
    assert_eq!(visits(&result.trace), ["a#1 success", "b#1 failed", "d#1 success", "e#1 success"]);
}

// G2, G29: a person is asked by one version of a document, and answers the next.
#[tokio::test(start_paused = true)]
async fn a_waiting_run_goes_on_with_a_replaced_document() {
    let text = "
graph: g
nodes:
  a: {human: {ask: Sure?}, next: b}
  b: {value: old}
";
    let changed = text.replace("next: b", "next: [{to: c, when: a.sure}, {to: b}]") + "  c: {value: new}\n";
    let store = Arc::new(MemoryStore::default());
    let before = engine(workflows(text, json!({})), &store);
    let run = GraphRun::start(&before, "g", json!({})).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    before.shut_down(std::time::Duration::from_secs(1)).await;
    drop(before);
    let after = engine(workflows(&changed, json!({})), &store);
    let run = GraphRun::attach(&after, run.id().clone()).await.unwrap();
    let gate = run.gates().await.unwrap().remove(0);
    run.answer(gate.id, json!({"sure": true})).await.unwrap();
    let result = run.outcome().await.unwrap();
    assert_eq!((result.output, result.document_changed), (json!("new"), true));
}

/// A function that works until it is released, and counts its attempts.
#[derive(Clone, Default)]
struct Slow {
    begun: Arc<Notify>,
    release: Arc<Notify>,
    attempts: Arc<AtomicU32>,
    /// Begins of attempts, each with the work that was saved before.
    saved: Arc<std::sync::Mutex<Vec<Option<u32>>>>,
}

impl Slow {
    async fn work(self, context: NodeContext) -> Result<Value, NodeError> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        let saved = context.saved::<u32>().await?;
        self.saved.lock().unwrap().push(saved);
        context.save(saved.unwrap_or(0) + 1).await?;
        self.begun.notify_one();
        self.release.notified().await;
        Ok(json!([attempt, context.attempt(), context.idempotency_key()]))
    }

    fn registry(&self) -> Registry {
        let slow = self.clone();
        Registry::new().function("f", move |_: Value, context: NodeContext| slow.clone().work(context))
    }
}

const SLOW: &str = "graph: g\nnodes:\n  a: {function: f, next: b}\n  b: {function: f}\n";

// G29
#[tokio::test(start_paused = true)]
async fn a_pause_after_running_lets_the_visit_end_and_begins_none() {
    let slow = Slow::default();
    let played = start(bound(SLOW, slow.registry()), json!({}), GraphOptions::new()).await;
    slow.begun.notified().await;
    played.run.pause(Pause::AfterRunning).await.unwrap();
    slow.release.notify_one();
    played.run.settled().await;
    assert_eq!(visits(&played.run.trace().await.unwrap()), ["a#1 success"]);
    assert_eq!(slow.attempts.load(Ordering::Relaxed), 1);
    played.run.unpause().await.unwrap();
    slow.begun.notified().await;
    slow.release.notify_one();
    let result = played.result().await;
    assert_eq!(visits(&result.trace), ["a#1 success", "b#1 success"]);
    assert_eq!(slow.attempts.load(Ordering::Relaxed), 2);
}

// G29, G31
#[tokio::test(start_paused = true)]
async fn a_hard_stop_drops_the_visit_which_runs_again_with_its_key_and_saved_work() {
    let slow = Slow::default();
    let played = start(bound(SLOW, slow.registry()), json!({}), GraphOptions::new()).await;
    slow.begun.notified().await;
    played.run.pause(Pause::Now).await.unwrap();
    played.run.settled().await;
    assert!(visits(&played.run.trace().await.unwrap()).is_empty());
    played.run.unpause().await.unwrap();
    slow.begun.notified().await;
    slow.release.notify_one();
    slow.begun.notified().await;
    slow.release.notify_one();
    let result = played.result().await;
    let (a, b) = (&result.results["a"].data, &result.results["b"].data);
    assert_eq!((&a[0], &b[0]), (&json!(2), &json!(3)));
    assert_ne!(a[2], b[2]);
    // The success of `a` has removed what was saved for it, and `b` has its own.
    assert_eq!(*slow.saved.lock().unwrap(), [None, Some(1), None]);
}

// G31
#[tokio::test(start_paused = true)]
async fn saved_work_is_for_later_attempts_of_one_visit() {
    async fn f(_: Value, context: NodeContext) -> Result<Value, NodeError> {
        let pages: u32 = context.saved().await?.unwrap_or_default();
        context.save(pages + 1).await?;
        if context.attempt() < 3 {
            return Err(NodeError::transient("away"));
        }
        Ok(json!([context.iteration(), pages]))
    }

    let text = "
graph: g
nodes:
  a: {function: f, next: [{to: a, max: 1}, {to: b}]}
  b: {value: \"${ a }\"}
";
    let played = start(bound(text, Registry::new().function("f", f)), json!({}), GraphOptions::new()).await;
    let result = played.result().await;
    assert_eq!(result.output, json!([2, 2]));
    assert_eq!((visits(&result.trace).len(), result.quality), (3, Quality::Clean));
}

// G29: a cancelled run keeps what it has.
#[tokio::test(start_paused = true)]
async fn results_of_a_cancelled_run_stay_readable() {
    let text = "graph: g\nnodes:\n  a: {value: 1, next: b}\n  b: {human: {ask: Sure?}}\n";
    let played = start(workflows(text, json!({})), json!({}), GraphOptions::new()).await;
    played.waits().await;
    played.run.cancel("enough").await.unwrap();
    let failure = played.failure().await;
    assert!(matches!(failure.error, RunError::Cancelled { .. }), "{failure}");
    assert_eq!(
        (&failure.results["a"].data, visits(&failure.trace)),
        (&json!(1), vec!["a#1 success".to_owned()])
    );
}

// G31: a visit that failed in a branch leaves nothing to the next one, and checks that fail keep what was saved.
#[tokio::test(start_paused = true)]
async fn saved_work_is_of_one_visit_and_stays_until_it_has_succeeded() {
    async fn g(_: Value, context: NodeContext) -> Result<Value, NodeError> {
        let found: Option<u32> = context.saved().await?;
        context.save(1).await?;
        Ok(json!({ "found": found }))
    }

    async fn f(_: Value, context: NodeContext) -> Result<Value, NodeError> {
        let found: Option<u32> = context.saved().await?;
        context.save(found.unwrap_or_default() + 1).await?;
        match found {
            None => Err(NodeError::permanent("begun, and not done")),
            Some(_) => Ok(json!("found the work of another visit")),
        }
    }

    let text = "
graph: g
nodes:
  p: {value: 1, next: {parallel: [x], join: j, failures: continue_others}}
  x: {function: f, next: j}
  j: {value: \"${ default(x, 'none') }\", next: [{to: p, max: 2}, {to: end}]}
";
    let played = start(bound(text, Registry::new().function("f", f)), json!({}), GraphOptions::new()).await;
    assert_eq!(played.result().await.output, json!("none"));

    for text in [
        "graph: g\nnodes:\n  a: {function: g, ensure: [\"a.found == 1\"]}\n",
        // The visit fails where no route of it holds.
        "graph: g\nnodes:\n  a: {function: g, next: [{to: b, when: a.found == 1}]}\n  b: {value: \"${ a }\"}\n",
    ] {
        let store = Arc::new(MemoryStore::default());
        let first = engine(bound(text, Registry::new().function("g", g)), &store);
        let run = GraphRun::start(&first, "g", json!({})).await.unwrap();
        assert!(run.outcome().await.is_err());
        drop(first);
        let second = engine(bound(text, Registry::new().function("g", g)), &store);
        second.redrive_all(&RunQuery::new().status(RunStatus::Failed), 10).await.unwrap();
        let run = GraphRun::attach(&second, run.id().clone()).await.unwrap();
        assert_eq!(run.outcome().await.unwrap().output, json!({"found": 1}), "{text}");
    }
}

// G2, S32: `limits.time` is that of the present document.
#[tokio::test(start_paused = true)]
async fn a_run_out_of_time_goes_on_where_the_document_allows_more() {
    async fn f(_: Value, _: NodeContext) -> Result<Value, NodeError> {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        Ok(json!("done"))
    }

    let bound = |time: &str| {
        let text = format!("graph: g\nlimits: {{time: {time}}}\nnodes:\n  a: {{function: f}}\n");
        bound(&text, Registry::new().function("f", f))
    };
    let store = Arc::new(MemoryStore::default());
    let first = engine(bound("2s"), &store);
    let run = GraphRun::start(&first, "g", json!({})).await.unwrap();
    let failure = run.outcome().await.unwrap_err().to_string();
    assert!(failure.contains("as long as its `limits.time` allows: 2s"), "{failure}");
    drop(first);
    let second = engine(bound("20s"), &store);
    let run = GraphRun::redrive(&second, run.id().clone()).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().output, "done");
}

// G12, G2: a route keeps its count where the document has another one before it now.
#[tokio::test(start_paused = true)]
async fn routes_keep_their_counts_in_a_changed_document() {
    let text = "
graph: g
nodes:
  a: {value: \"${ visits }\", next: [{to: a, max: 2}, {to: ask}]}
  ask: {human: {ask: Again?}, max_visits: 9, next: a}
";
    let store = Arc::new(MemoryStore::default());
    let first = engine(bound(text, Registry::new()), &store);
    let run = GraphRun::start(&first, "g", json!({})).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    first.shut_down(std::time::Duration::from_secs(1)).await;
    let changed = text.replace("[{to: a, max: 2}, ", "[{to: end, when: false}, {to: a, max: 2}, ");
    let second = engine(bound(&changed, Registry::new()), &store);
    let run = GraphRun::attach(&second, run.id().clone()).await.unwrap();
    let gate = run.gates().await.unwrap().remove(0);
    run.answer(gate.id, json!("yes")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let trace = run.trace().await.unwrap();
    assert_eq!(visits(&trace), ["a#1 success", "a#2 success", "a#3 success", "ask#1 success", "a#4 success"]);
}

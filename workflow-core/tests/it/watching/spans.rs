//! The `tracing` spans of runs and executions: nesting, names and fields.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::{Expect, expect};
use tracing::field::{Field, Visit};
use tracing::{Id, Instrument as _, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use workflow_core::observe::TracingObserver;
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{RetryPolicy, RunOptions, RunStatus, StartError};

use crate::fixtures::{Begin, Done, Item, Part, everyone_else};

/// Records every span, with its fields and events.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    spans: Vec<Recording>,
    /// The subscriber reuses ids.
    by_id: HashMap<Id, usize>,
}

#[derive(Default)]
struct Recording {
    name: &'static str,
    parent: Option<usize>,
    fields: BTreeMap<&'static str, String>,
    events: Vec<String>,
    is_open: bool,
}

impl Visit for Recording {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &tracing::span::Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context.span(id).and_then(|span| span.parent()).map(|parent| parent.id());
        let mut recorded = self.0.lock().unwrap();
        let parent = parent.map(|parent| recorded.by_id[&parent]);
        let mut span =
            Recording { name: attributes.metadata().name(), parent, is_open: true, ..Recording::default() };
        attributes.record(&mut span);
        let place = recorded.spans.len();
        recorded.by_id.insert(id.clone(), place);
        recorded.spans.push(span);
    }

    fn on_record(&self, id: &Id, values: &tracing::span::Record<'_>, _: Context<'_, S>) {
        let mut recorded = self.0.lock().unwrap();
        let place = recorded.by_id[id];
        values.record(&mut recorded.spans[place]);
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut text = Recording::default();
        event.record(&mut text);
        let mut recorded = self.0.lock().unwrap();
        let place = recorded.by_id[&span.id()];
        recorded.spans[place].events.push(text.fields.remove("message").unwrap_or_default());
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let mut recorded = self.0.lock().unwrap();
        let place = recorded.by_id[&id];
        recorded.spans[place].is_open = false;
    }
}

impl Recorder {
    /// The tree of spans, each with the fields that match one of the prefixes.
    fn tree(&self, prefixes: &[&str]) -> String {
        let recorded = self.0.lock().unwrap();
        assert!(recorded.spans.iter().all(|span| !span.is_open), "every span is closed");
        let mut text = String::new();
        for place in (0..recorded.spans.len()).filter(|place| recorded.spans[*place].parent.is_none()) {
            recorded.write(&mut text, place, 0, prefixes);
        }
        text
    }
}

impl Recorded {
    fn write(&self, text: &mut String, place: usize, depth: usize, prefixes: &[&str]) {
        let Recording { name, fields, events, .. } = &self.spans[place];
        let indent = "  ".repeat(depth);
        write!(text, "{indent}{name}").unwrap();
        let is_picked = |field: &str| prefixes.iter().any(|prefix| field.starts_with(prefix));
        for (field, value) in fields.iter().filter(|(field, _)| is_picked(field)) {
            write!(text, " {field}={value:?}").unwrap();
        }
        text.push('\n');
        for event in events {
            writeln!(text, "{indent}  - {event}").unwrap();
        }
        for child in (0..self.spans.len()).filter(|child| self.spans[*child].parent == Some(place)) {
            self.write(text, child, depth + 1, prefixes);
        }
    }
}

fn traced<W: Workflow>(workflow: W) -> Engine {
    Engine::builder().workflow(workflow).observer(TracingObserver::new()).build().unwrap()
}

/// Runs a workflow to its end and compares the tree of its spans.
async fn check<W: Workflow>(workflow: W, prefixes: &[&str], expected: &Expect) {
    let recorder = Recorder::default();
    let subscriber = tracing_subscriber::registry().with(recorder.clone());
    let run = async {
        let options = RunOptions::new().id("r").thread("t");
        let run = traced(workflow).start_with::<W>(Begin(1), options).await.unwrap();
        let _ = run.outcome().await;
    };
    let _default = tracing::subscriber::set_default(subscriber);
    run.await;
    expected.assert_eq(&recorder.tree(prefixes));
}

struct Plain;

#[workflow]
impl Plain {
    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        tracing::info!("before");
        tokio::task::yield_now().await;
        tracing::info!("after");
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

#[tokio::test]
async fn executions_lie_in_their_run_and_what_steps_say_in_their_execution() {
    check(Plain, &[""], &expect![[r#"
        workflow.run otel.kind="internal" otel.name="run Plain" workflow.name="Plain" workflow.run.id="r" workflow.run.status="completed" workflow.thread.id="t"
          - run ended
          workflow.execution otel.kind="internal" otel.name="execute make" workflow.execution.attempt="1" workflow.execution.id="x1" workflow.execution.outcome="succeeded" workflow.scope.id="0" workflow.step.name="make"
            - before
            - after
          workflow.execution otel.kind="internal" otel.name="execute end" workflow.execution.attempt="1" workflow.execution.id="x2" workflow.execution.outcome="succeeded" workflow.scope.id="0" workflow.step.name="end"
    "#]]).await;
}

struct Fails;

#[workflow]
impl Fails {
    #[step(on_error = "continue", retry = RetryPolicy::none())]
    async fn shrug(&self, _begin: &Begin) -> Result<(), StepError> {
        Err(StepError::tool("the tool is blunt"))
    }

    #[step(retry = RetryPolicy::none())]
    async fn fail(&self, _begin: &Begin) -> Result<Done, StepError> {
        tokio::task::yield_now().await;
        Err(StepError::transient("the line is busy"))
    }
}

#[tokio::test]
async fn a_failure_is_on_the_span_of_its_execution_and_on_that_of_the_run_that_it_ends() {
    check(Fails, &["otel.status", "error", "workflow.run.status"], &expect![[r#"
        workflow.run error.type="transient" otel.status_code="ERROR" otel.status_description="step `fail` failed (x2, transient): the line is busy" workflow.run.status="failed"
          - run ended
          workflow.execution error.type="tool" otel.status_code="ERROR" otel.status_description="the tool is blunt"
            - step failed
          workflow.execution error.type="transient" otel.status_code="ERROR" otel.status_description="the line is busy"
            - step failed
    "#]]).await;
}

/// Fails in a branch, with a chain of errors.
struct FailsInBranch;

#[workflow]
impl FailsInBranch {
    #[step]
    async fn split(&self, _begin: &Begin) -> FanOut<Item> {
        FanOut::new(vec![Item(1)])
    }

    #[step]
    async fn read(&self, _item: &Item) -> Result<Part, anyhow::Error> {
        Err(anyhow::anyhow!("the disk is gone").context("cannot read"))
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(1)
    }
}

#[tokio::test]
async fn a_failure_in_a_branch_names_its_item_and_its_causes() {
    check(
        FailsInBranch,
        &["otel.status_description", "workflow.branch"],
        &expect![[r##"
            workflow.run otel.status_description="step `read` failed in the branch of #2 `Item` of `split` (x2, permanent): cannot read: the disk is gone"
              - run ended
              workflow.execution
              workflow.execution otel.status_description="cannot read: the disk is gone" workflow.branch.item="#2 `Item` of `split`"
                - step failed
        "##]],
    )
    .await;
}

/// Fails at first.
struct Tries;

#[workflow]
impl Tries {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        tracing::info!("trying");
        if info.attempt() == 1 { Err(StepError::tool("the tool is blunt")) } else { Ok(Done(begin.0)) }
    }
}

// S37
#[tokio::test]
async fn every_attempt_has_a_span_and_one_that_is_followed_by_another_has_failed() {
    check(
        Tries,
        &["otel.status", "error", "workflow.execution.attempt", "workflow.execution.outcome"],
        &expect![[r#"
        workflow.run
          - run ended
          workflow.execution error.type="tool" otel.status_code="ERROR" otel.status_description="the tool is blunt" workflow.execution.attempt="1" workflow.execution.outcome="failed"
            - trying
            - attempt failed
          workflow.execution workflow.execution.attempt="2" workflow.execution.outcome="succeeded"
            - trying
    "#]],
    )
    .await;
}

struct Stalls;

#[workflow]
impl Stalls {
    #[step]
    async fn make(&self, begin: &Begin) -> Option<Item> {
        (begin.0 == 0).then_some(Item(0))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

#[tokio::test]
async fn a_stall_is_an_error_of_the_run() {
    check(
        Stalls,
        &["otel.status_code", "error", "workflow.run.status"],
        &expect![[r#"
        workflow.run error.type="stalled" otel.status_code="ERROR" workflow.run.status="stalled"
          - run ended
          workflow.execution
    "#]],
    )
    .await;
}

struct Hurries;

#[workflow]
impl Hurries {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[step]
    async fn late(&self, begin: &Begin) -> Part {
        Part(begin.0)
    }

    #[step]
    async fn sleep(&self, _begin: &Begin) {
        std::future::pending::<()>().await;
    }
}

// S28
#[tokio::test]
async fn late_results_are_refused_and_running_executions_are_dropped() {
    check(
        Hurries,
        &["otel.name", "otel.status", "workflow.execution.outcome"],
        &expect![[r#"
        workflow.run otel.name="run Hurries"
          - run ended
          workflow.execution otel.name="execute end" workflow.execution.outcome="succeeded"
          workflow.execution otel.name="execute late" workflow.execution.outcome="refused"
            - commit refused: the run has ended
          workflow.execution otel.name="execute sleep" workflow.execution.outcome="dropped"
    "#]],
    )
    .await;
}

/// Starts a run of another workflow and waits for it.
struct Parent(Engine);

#[workflow]
impl Parent {
    #[step]
    async fn delegate(&self, begin: &Begin) -> Result<Done, StepError> {
        tokio::task::yield_now().await;
        let child = self.0.start_with::<Plain>(Begin(begin.0), RunOptions::new().id("child")).await?;
        Ok(child.outcome().await?)
    }
}

#[tokio::test]
async fn a_run_that_a_step_starts_lies_in_the_execution_of_that_step() {
    check(
        Parent(traced(Plain)),
        &["otel.name", "workflow.run.id"],
        &expect![[r#"
        workflow.run otel.name="run Parent" workflow.run.id="r"
          - run ended
          workflow.execution otel.name="execute delegate"
            workflow.run otel.name="run Plain" workflow.run.id="child"
              - run ended
              workflow.execution otel.name="execute make"
                - before
                - after
              workflow.execution otel.name="execute end"
    "#]],
    )
    .await;
}

/// Never ends by itself.
struct Sleeps;

#[workflow]
impl Sleeps {
    #[step]
    async fn sleep(&self, _begin: &Begin) -> Done {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_cancelled_run_is_no_error_and_lies_where_it_was_started() {
    let recorder = Recorder::default();
    let _default = tracing::subscriber::set_default(tracing_subscriber::registry().with(recorder.clone()));
    let engine = traced(Sleeps);
    let run = engine.start::<Sleeps>(Begin(1)).instrument(tracing::info_span!("request")).await.unwrap();
    everyone_else().await;
    run.cancel("enough").await.unwrap();
    expect![[r#"
        request
          workflow.run workflow.run.status="cancelled"
            - run ended
            workflow.execution
    "#]]
    .assert_eq(&recorder.tree(&["otel.status", "error", "workflow.run.status"]));
}

// S32
#[tokio::test(start_paused = true)]
async fn a_run_that_is_out_of_time_says_so() {
    let recorder = Recorder::default();
    let _default = tracing::subscriber::set_default(tracing_subscriber::registry().with(recorder.clone()));
    let options = RunOptions::new().timeout(std::time::Duration::from_secs(1));
    let run = traced(Sleeps).start_with::<Sleeps>(Begin(1), options).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::TimedOut { .. })));
    expect![[r#"
        workflow.run error.type="timed_out" otel.status_code="ERROR" workflow.run.status="timed out"
          - run ended
          workflow.execution
    "#]]
    .assert_eq(&recorder.tree(&["otel.status_code", "error", "workflow.run.status"]));
}

// S27
#[test]
fn a_run_whose_task_is_gone_closes_its_spans_and_says_so() {
    let recorder = Recorder::default();
    let _default = tracing::subscriber::set_default(tracing_subscriber::registry().with(recorder.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        traced(Sleeps).start::<Sleeps>(Begin(1)).await.unwrap();
        everyone_else().await;
    });
    drop(runtime);
    expect![[r#"
        workflow.run error.type="abandoned" otel.status_code="ERROR" workflow.run.status="cancelled"
          - run ended
          workflow.execution
    "#]]
    .assert_eq(&recorder.tree(&["otel.status_code", "error", "workflow.run.status"]));
}

fn stored<W: Workflow>(workflow: W, store: &Arc<MemoryStore>) -> Engine {
    let engine = Engine::builder().workflow(workflow).observer(TracingObserver::new());
    engine.store(Arc::clone(store)).build().unwrap()
}

/// Another workflow with the name of `Fails`.
struct Changed;

#[workflow(name = "Fails")]
impl Changed {
    #[step]
    async fn begin(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S81
#[tokio::test]
async fn a_refused_start_and_a_look_at_an_ended_run_have_no_span() {
    let recorder = Recorder::default();
    let _default = tracing::subscriber::set_default(tracing_subscriber::registry().with(recorder.clone()));
    let store = Arc::<MemoryStore>::default();
    let engine = stored(Fails, &store);
    let options = || RunOptions::new().id("r");
    let run = engine.start_with::<Fails>(Begin(1), options()).await.unwrap();
    assert!(run.outcome().await.is_err());
    for _ in 0..2 {
        let refused = engine.start_with::<Fails>(Begin(1), options()).await.unwrap_err();
        assert!(matches!(refused, StartError::DuplicateRun { .. }), "{refused:?}");
        assert!(engine.attach::<Fails>("r").await.unwrap().outcome().await.is_err());
    }
    let changed = stored(Changed, &store).attach::<Changed>("r").await.unwrap();
    assert!(changed.outcome().await.is_err());
    drop((run, engine));
    everyone_else().await;
    expect![[r#"
        workflow.run otel.status_code="ERROR" workflow.run.status="failed"
          - run ended
          workflow.execution otel.status_code="ERROR"
            - step failed
          workflow.execution otel.status_code="ERROR"
            - step failed
    "#]]
    .assert_eq(&recorder.tree(&["otel.status_code", "workflow.run.status"]));
}

// S81
#[tokio::test]
async fn a_run_that_is_detached_has_neither_ended_nor_failed() {
    let recorder = Recorder::default();
    let _default = tracing::subscriber::set_default(tracing_subscriber::registry().with(recorder.clone()));
    let engine = stored(Sleeps, &Arc::default());
    drop(engine.start::<Sleeps>(Begin(1)).await.unwrap());
    everyone_else().await;
    engine.shut_down(Duration::from_secs(1)).await;
    expect![[r#"
        workflow.run workflow.run.status="detached"
          - run detached
          workflow.execution
    "#]]
    .assert_eq(&recorder.tree(&["otel.status_code", "error", "workflow.run.status"]));
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Continue;

/// Waits to be continued.
struct Rests;

#[workflow]
impl Rests {
    #[step]
    async fn end(&self, begin: &Begin, _continue: &Continue) -> Done {
        Done(begin.0)
    }
}

// S40, S81
#[tokio::test]
async fn a_run_that_another_engine_has_taken_has_not_failed() {
    let recorder = Recorder::default();
    let _default = tracing::subscriber::set_default(tracing_subscriber::registry().with(recorder.clone()));
    let store = Arc::<MemoryStore>::default();
    let engine = stored(Rests, &store);
    let run = engine.start_with::<Rests>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let other = Engine::builder().workflow(Rests).store(store).build().unwrap();
    let taken = other.attach::<Rests>("r").await.unwrap();
    assert_eq!(taken.settled().await, RunStatus::Waiting);
    assert!(run.send(Continue).await.is_err());
    assert!(matches!(run.outcome().await, Err(RunError::Conflict { .. })));
    drop((run, engine));
    everyone_else().await;
    expect![[r#"
        workflow.run workflow.run.status="detached"
          - run detached
    "#]]
    .assert_eq(&recorder.tree(&["otel.status_code", "workflow.run.status"]));
}

/// The trace parents that steps had, of the parent and of its child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Parents(Vec<String>);

struct Called;

#[workflow]
impl Called {
    #[step]
    async fn note(&self, _begin: &Begin, info: &RunInfo) -> Parents {
        Parents(vec![info.trace_parent().map(ToString::to_string).unwrap_or_default()])
    }
}

/// Waits, and then calls a child.
struct Calls;

#[workflow]
impl Calls {
    #[step]
    async fn call(
        &self,
        begin: &Begin,
        _continue: &Continue,
        info: &RunInfo,
        children: &Children,
    ) -> Result<Parents, RunError> {
        let Parents(mut parents) = children.run::<Called>(begin.clone()).await?;
        parents.extend(info.trace_parent().map(ToString::to_string));
        Ok(Parents(parents))
    }
}

// S71
#[tokio::test]
async fn a_run_is_in_one_trace_in_whichever_process_and_so_are_its_children() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let (recorder, store) = (Recorder::default(), Arc::<MemoryStore>::default());
    let engine = || {
        let builder = Engine::builder().workflow(Calls).workflow(Called).observer(TracingObserver::new());
        builder.store(Arc::clone(&store)).build().unwrap()
    };
    let subscriber = tracing_subscriber::registry().with(recorder.clone());
    let default = tracing::subscriber::set_default(subscriber);
    let first = engine();
    let options = RunOptions::new().id("r").trace_parent(PARENT.parse().unwrap());
    let run = first.start_with::<Calls>(Begin(1), options).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    first.shut_down(Duration::ZERO).await;

    let run = engine().attach::<Calls>("r").await.unwrap();
    run.send(Continue).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Parents(vec![PARENT.into(), PARENT.into()]));
    everyone_else().await;
    drop(default);
    let seen = recorder.tree(&["workflow.run.trace_parent"]);
    let spans = seen.lines().filter(|line| line.trim_start().starts_with("workflow.run "));
    assert_eq!(spans.filter(|line| line.contains(PARENT)).count(), 3, "{seen}");
}

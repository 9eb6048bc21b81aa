//! Children in displays, observations, `tracing`, journals and reports (S25, S34).

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use futures::StreamExt as _;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use workflow_core::observe::{Observation, Observed, Observer, TracingObserver};
use workflow_core::prelude::*;
use workflow_core::report::RunReport;
use workflow_core::store::{MemoryStore, Record};
use workflow_core::{DisplayItem, RecordedRun, RunError, RunHandle, RunId, RunOptions};
use workflow_testkit::{Scenario, VirtualClock};

use crate::fixtures::{Begin, Done, Seen};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress(u32);

/// Displays its depth, and starts the next level; fails at the bottom if asked to.
struct Showing {
    fails: bool,
}

#[workflow]
impl Showing {
    #[step]
    async fn show(&self, begin: &Begin, display: &Display, children: &Children) -> Result<Done, StepError> {
        tracing::info!("at {}", begin.0);
        display.show(Progress(begin.0));
        tokio::time::sleep(Duration::from_secs(1)).await;
        match begin.0.checked_sub(1) {
            Some(below) => Ok(Done(begin.0 + children.run::<Self>(Begin(below)).await?.0)),
            None if self.fails => Err(StepError::permanent("the bottom is wet")),
            None => Ok(Done(0)),
        }
    }
}

/// Watches a child to its end, and then fails or not.
struct Watching {
    fails: bool,
}

#[workflow]
impl Watching {
    #[step(on_error = "continue")]
    async fn watch(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        let _seen = children.run::<Showing>(begin.clone()).await;
        if self.fails { Err(StepError::permanent("seen enough")) } else { Ok(Done(0)) }
    }
}

fn line(item: &DisplayItem) -> String {
    match item {
        DisplayItem::Child { path, item } => {
            let path: Vec<_> = path.iter().map(|child| format!("{} {}", child.step, child.run)).collect();
            format!("[{}] {}", path.join(", "), line(item))
        }
        DisplayItem::Shown { step, execution, .. } => {
            format!("{step} {execution}: {:?}", item.event::<Progress>().unwrap())
        }
        DisplayItem::Retracted { step, execution, .. } => format!("{step} {execution} retracted"),
        other => format!("{other:?}"),
    }
}

async fn shown<W: Workflow>(workflow: W, below: Option<Showing>, begin: u32) -> String {
    let engine = Engine::builder().workflow(workflow).clock(VirtualClock::new());
    let engine = match below {
        Some(below) => engine.workflow(below).build().unwrap(),
        None => engine.build().unwrap(),
    };
    let run = engine.start_with::<W>(Begin(begin), RunOptions::new().id("r")).await.unwrap();
    let items: Vec<String> = run.display().map(|item| line(&item)).collect().await;
    items.join("\n") + "\n"
}

// S25
#[tokio::test(start_paused = true)]
async fn items_of_children_appear_at_their_parents_with_paths() {
    expect![[r"
        show x1: Progress(2)
        [show r/show-x1.1] show x1: Progress(1)
        [show r/show-x1.1, show r/show-x1.1/show-x1.1] show x1: Progress(0)
        Ended { status: Completed }
    "]]
    .assert_eq(&shown(Showing { fails: false }, None, 2).await);
}

// S25
#[tokio::test(start_paused = true)]
async fn items_of_a_childs_failed_attempt_are_retracted_at_every_level() {
    expect![[r"
        show x1: Progress(1)
        [show r/show-x1.1] show x1: Progress(0)
        [show r/show-x1.1] show x1 retracted
        show x1 retracted
        Ended { status: Failed }
    "]]
    .assert_eq(&shown(Showing { fails: true }, None, 1).await);
}

// S25
#[tokio::test(start_paused = true)]
async fn items_of_children_are_retracted_with_the_attempt_that_ran_them() {
    let below = Some(Showing { fails: false });
    expect![[r"
        [watch r/watch-x1.1] show x1: Progress(0)
        watch x1 retracted
        Ended { status: Stalled }
    "]]
    .assert_eq(&shown(Watching { fails: true }, below, 0).await);
}

// S25
#[tokio::test]
async fn items_of_children_count_as_displayed_unless_retracted() {
    let run = Scenario::new(Showing { fails: false }).start(Begin(2)).await;
    assert_eq!(run.displayed::<Progress>(), [&Progress(2), &Progress(1), &Progress(0)]);
    let watching = Scenario::new(Watching { fails: false }).host(Showing { fails: true });
    let run = watching.start(Begin(1)).await;
    assert_eq!(run.displayed::<Progress>(), [] as [&Progress; 0]);
    let watching = Scenario::new(Watching { fails: true }).host(Showing { fails: false });
    let given_up = watching.start(Begin(1)).await;
    assert_eq!(given_up.displayed::<Progress>(), [] as [&Progress; 0]);
    expect![[r"
        #1 Begin from outside: 1
        x1 watch by #1: succeeded
           runs scenario/watch-x1.1 of Showing
           scenario/watch-x1.1 showed Progress: 1
           scenario/watch-x1.1/show-x1.1 showed Progress: 0
           scenario/watch-x1.1/show-x1.1 took back what it showed
           scenario/watch-x1.1 took back what it showed
           scenario/watch-x1.1 failed
        #2 Done of x1: 0
        completed with #2, degraded
    "]]
    .assert_eq(&run.transcript());
}

// S34
#[tokio::test]
async fn the_report_of_a_child_stands_in_that_of_its_parent() {
    let run = Scenario::new(Showing { fails: false }).start(Begin(2)).await;
    expect![[r"
        run scenario of Showing: completed, clean
        step  executions          time
        show           1   3000.000 ms
        x1 of show ran a child:
          run scenario/show-x1.1 of Showing: completed, clean
          step  executions          time
          show           1   2000.000 ms
          x1 of show ran a child:
            run scenario/show-x1.1/show-x1.1 of Showing: completed, clean
            step  executions          time
            show           1   1000.000 ms
    "]]
    .assert_eq(&run.report().to_string());
    let child = &run.report().children[0];
    let report = child.report.as_ref().unwrap();
    assert_eq!(report.parent.as_ref().unwrap().run, run.report().run);
    let json = serde_json::to_value(run.report()).unwrap();
    assert_eq!(json["trace"][0]["children"][0], "scenario/show-x1.1");
    assert_eq!(json["children"][0]["report"]["children"][0]["run"], "scenario/show-x1.1/show-x1.1");
    assert!(json["children"][0]["report"]["children"][0]["report"].get("children").is_none());
}

/// Records ends of runs and displayed items.
#[derive(Clone, Default)]
struct Scribe(Seen);

impl Observer for Scribe {
    fn observe(&self, Observation { run, what, .. }: &Observation) {
        self.0.note(match what {
            Observed::RunStarted => format!("{run} started"),
            Observed::RunEnded { status } => format!("{run} ended: {status}"),
            Observed::ChildStarted { child } => format!("{run} {} started {}", child.execution, child.run),
            Observed::ChildEnded { child, status } => format!("{run}: {} ended: {status}", child.run),
            Observed::Displayed(item) => format!("{run} shows {}", line(item)),
            _ => return,
        });
    }
}

#[tokio::test(start_paused = true)]
async fn observers_see_parents_and_children_and_each_item_once() {
    let scribe = Scribe::default();
    let engine =
        Engine::builder().workflow(Showing { fails: false }).observer(scribe.clone()).build().unwrap();
    let run = engine.start_with::<Showing>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.outcome().await.unwrap();
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    expect![[r"
        r started
        r shows show x1: Progress(1)
        r x1 started r/show-x1.1
        r/show-x1.1 started
        r/show-x1.1 shows show x1: Progress(0)
        r/show-x1.1 ended: completed
        r: r/show-x1.1 ended: completed
        r ended: completed
    "]]
    .assert_eq(&(scribe.0.lines().join("\n") + "\n"));
}

/// For every `tracing` event: its spans, with their runs.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut path = String::new();
        for span in context.event_scope(event).into_iter().flatten().collect::<Vec<_>>().iter().rev() {
            write!(path, "{} > ", span.name()).unwrap();
        }
        if !path.is_empty() {
            self.0.lock().unwrap().push(path);
        }
    }
}

#[tokio::test]
async fn the_span_of_a_child_lies_in_that_of_the_execution_that_started_it() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(spans.clone()));
    let engine = Engine::builder().workflow(Showing { fails: false });
    let engine = engine.observer(TracingObserver::new()).build().unwrap();
    engine.start::<Showing>(Begin(1)).await.unwrap().outcome().await.unwrap();
    let seen = spans.0.lock().unwrap().clone();
    let (run, parent) = ("workflow.run > ", "workflow.run > workflow.execution > ");
    // The events of both steps, and of the ends of both runs.
    assert_eq!(seen, [parent.to_owned(), parent.repeat(2), [parent, run].concat(), run.to_owned()]);
}

// S38, S82
#[tokio::test]
async fn journals_name_parents_and_children() {
    let engine = Engine::builder().workflow(Showing { fails: false }).store(MemoryStore::default());
    let engine = engine.build().unwrap();
    let run = engine.start_with::<Showing>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.outcome().await.unwrap();
    let mut lines = Vec::new();
    for run in ["r", "r/show-x1.1"] {
        for record in engine.history(&run.into()).await.unwrap() {
            let json = serde_json::to_string(&record).unwrap();
            let read: Record = serde_json::from_str(&json).unwrap();
            lines.push(match read {
                Record::RunStarted { parent, .. } => {
                    format!(
                        "{run} began: {:?}",
                        parent.map(|parent| (parent.run, parent.step, parent.execution))
                    )
                }
                Record::ChildStarted { child, .. } => {
                    format!("{run}: {} started {}", child.execution, child.run)
                }
                Record::ChildrenEnded { children, .. } => {
                    let ended = children.iter().map(|child| format!("{} {}", child.run, child.status));
                    format!("{run}: {}", ended.collect::<Vec<_>>().join(", "))
                }
                Record::EventLogged { event, .. } => format!("{run}: {}", event.name()),
                Record::ExecutionSucceeded { step, .. } => format!("{run}: {step}"),
                Record::RunEnded { status, .. } => format!("{run}: {status}"),
                other => panic!("{other:?}"),
            });
        }
    }
    expect![[r#"
        r began: None
        r: Begin
        r: x1 started r/show-x1.1
        r: r/show-x1.1 completed
        r: show
        r: Done
        r: completed
        r/show-x1.1 began: Some((RunId(r), "show", ExecutionId(1)))
        r/show-x1.1: Begin
        r/show-x1.1: show
        r/show-x1.1: Done
        r/show-x1.1: completed
    "#]]
    .assert_eq(&(lines.join("\n") + "\n"));
}

/// Ends with what its child returns, on a thread of its own.
struct EndsWithChild;

#[workflow]
impl EndsWithChild {
    #[step(spawn)]
    async fn end(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run::<Quick>(begin.clone()).await
    }
}

/// Returns at once.
struct Quick;

#[workflow]
impl Quick {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

/// Waits for its child, and for a stop event from outside.
struct Stopped;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop, external)]
struct Enough(u32);

#[workflow]
impl Stopped {
    #[step(spawn)]
    async fn work(&self, begin: &Begin, children: &Children) -> Result<Enough, RunError> {
        children.run::<Stuck>(begin.clone()).await.map(|done| Enough(done.0))
    }
}

/// Never ends.
struct Stuck;

#[workflow]
impl Stuck {
    #[step]
    async fn end(&self, _begin: &Begin) -> Done {
        std::future::pending().await
    }
}

/// Whether the journal of the run has each child that its report has.
async fn assert_journal_has_children<W: Workflow>(engine: &Engine, run: &RunHandle<W>) {
    let report = run.report().await.unwrap();
    assert_eq!(report.children.len(), 1);
    let journal = engine.history(run.id()).await.unwrap();
    let recorded = RecordedRun::of(run.id(), &journal).unwrap();
    let names = |report: &RunReport| -> Vec<RunId> {
        report.children.iter().map(|listed| listed.child.run.clone()).collect()
    };
    assert_eq!(names(recorded.report()), names(&report));
}

// S38
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_of_a_completed_run_has_the_child_that_its_last_step_awaited() {
    let engine = Engine::builder().workflow(EndsWithChild).workflow(Quick).store(MemoryStore::default());
    let engine = engine.replay_check(true).build().unwrap();
    for round in 0..200 {
        let run = engine.start::<EndsWithChild>(Begin(round)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(round));
        assert_journal_has_children(&engine, &run).await;
    }
}

// S38
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_of_a_run_that_was_stopped_from_outside_has_its_children() {
    let engine = Engine::builder().workflow(Stopped).workflow(Stuck).store(MemoryStore::default());
    let engine = engine.replay_check(true).build().unwrap();
    for round in 0..50 {
        let run = engine.start::<Stopped>(Begin(round)).await.unwrap();
        while run.report_so_far().await.unwrap().children.is_empty() {
            tokio::task::yield_now().await;
        }
        run.send(Enough(round)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Enough(round));
        assert_journal_has_children(&engine, &run).await;
    }
}

//! The display of a run (S2, S25, S28).

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use workflow_core::middleware::{Middleware, Next};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{DisplayItem, DisplayStream, RunStatus};
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Close, Done, Gate, Item, Part, Saw, everyone_else, log_of, started};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(control, display)]
struct Draft(u32);

/// A line per item, until the end.
async fn lines(viewer: DisplayStream) -> Vec<String> {
    viewer.map(|item| line(&item)).collect().await
}

/// A line per item so far.
fn lines_so_far(viewer: &mut DisplayStream) -> Vec<String> {
    std::iter::from_fn(|| viewer.next().now_or_never().flatten()).map(|item| line(&item)).collect()
}

fn line(item: &DisplayItem) -> String {
    match item {
        DisplayItem::Shown { step, execution, attempt, .. } => {
            let progress = item.event::<Progress>().map(|progress| progress.0);
            let number = progress.or_else(|| item.event::<Draft>().map(|draft| draft.0));
            format!("{step} {execution} {attempt}: {}", number.unwrap())
        }
        DisplayItem::Retracted { step, execution, attempt } => {
            format!("{step} {execution} {attempt} retracted")
        }
        DisplayItem::Missed { count: Some(count) } => format!("missed {count}"),
        DisplayItem::Ended { status } => format!("ended {status}"),
        other => format!("{other:?}"),
    }
}

struct Showing(Gate);

#[workflow]
impl Showing {
    #[step]
    async fn index(&self, begin: &Begin, display: &Display) -> Item {
        for number in 1..=begin.0 {
            display.show(Progress(number));
        }
        self.0.pass().await;
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, display: Display) -> Done {
        display.show(Progress(item.0 * 10));
        Done(item.0)
    }
}

fn showing() -> (Gate, Showing) {
    let gate = Gate::closed();
    (gate.clone(), Showing(gate))
}

// S25
#[tokio::test]
async fn items_are_delivered_at_once_with_step_execution_and_attempt() {
    let (gate, workflow) = showing();
    let run = started(workflow, 2).await;
    let mut viewer = run.display();
    everyone_else().await;
    assert_eq!(lines_so_far(&mut viewer), ["index x1 1: 1", "index x1 1: 2"]);
    gate.let_pass(1);
    assert_eq!(lines(viewer).await, ["end x2 1: 20", "ended completed"]);
}

// S28
#[tokio::test]
async fn what_was_shown_before_the_stop_is_delivered_before_the_end() {
    let (gate, workflow) = showing();
    gate.let_pass(1);
    let run = started(workflow, 1).await;
    assert_eq!(lines(run.display()).await, ["index x1 1: 1", "end x2 1: 10", "ended completed"]);
}

// S25
#[tokio::test]
async fn a_viewer_that_comes_after_the_end_sees_what_is_kept() {
    let (gate, workflow) = showing();
    gate.let_pass(1);
    let run = started(workflow, 1).await;
    run.outcome().await.unwrap();
    let expected = ["index x1 1: 1", "end x2 1: 10", "ended completed"];
    assert_eq!(lines(run.display()).await, expected);
    assert_eq!(lines(run.display()).await, expected);
}

// S25
#[tokio::test]
async fn a_slow_viewer_receives_the_number_of_items_it_missed() {
    let (gate, workflow) = showing();
    let engine = Engine::builder().workflow(workflow).display_capacity(3).build().unwrap();
    let run = engine.start::<Showing>(Begin(10)).await.unwrap();
    let viewer = run.display();
    gate.let_pass(1);
    run.outcome().await.unwrap();
    let expected = ["missed 8", "index x1 1: 9", "index x1 1: 10", "end x2 1: 100", "ended completed"];
    assert_eq!(lines(viewer).await, expected);
}

// S25
#[tokio::test]
async fn viewers_are_independent_of_each_other_and_one_may_leave() {
    let (gate, workflow) = showing();
    let run = started(workflow, 1).await;
    let (mut first, second, third) = (run.display(), run.display(), run.display());
    everyone_else().await;
    assert_eq!(lines_so_far(&mut first), ["index x1 1: 1"]);
    drop(second);
    gate.let_pass(1);
    assert_eq!(lines(first).await.len(), 2);
    assert_eq!(lines(third).await.len(), 3);
}

// S2
#[tokio::test]
async fn a_pure_display_event_is_never_in_the_log() {
    let (gate, workflow) = showing();
    gate.let_pass(1);
    let run = Scenario::new(workflow).start(Begin(3)).await;
    assert_eq!(log_of(run.report()), ["Begin", "Item", "Done"]);
}

struct Failing;

#[workflow]
impl Failing {
    #[step(on_error = "continue")]
    async fn loud(&self, begin: &Begin, display: &Display) -> Result<Item, StepError> {
        display.show(Progress(begin.0));
        display.clone().show(Progress(begin.0 + 1));
        tokio::task::yield_now().await;
        Err(StepError::permanent("no"))
    }

    #[step(on_error = "continue")]
    async fn silent(&self, _begin: &Begin, _display: &Display) -> Result<Part, StepError> {
        Err(StepError::permanent("no"))
    }

    #[step(on_error = "continue", spawn)]
    async fn panicky(&self, begin: &Begin, display: &Display) -> Part {
        display.show(Progress(begin.0));
        panic!("on purpose")
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S25
#[tokio::test]
async fn a_failed_attempt_is_retracted_once_if_it_has_shown_anything() {
    let run = Scenario::new(Failing).send(Close).start(Begin(1)).await;
    let seen = lines(run.handle().display()).await;
    let of = |step: &str| seen.iter().filter(|line| line.starts_with(step)).cloned().collect::<Vec<_>>();
    assert_eq!(of("loud"), ["loud x1 1: 1", "loud x1 1: 2", "loud x1 1 retracted"]);
    assert_eq!(of("panicky"), ["panicky x3 1: 1", "panicky x3 1 retracted"]);
    assert!(of("silent").is_empty());
    assert_eq!(seen.last().unwrap(), "ended completed");
}

struct FailsTheRun;

#[workflow]
impl FailsTheRun {
    #[step]
    async fn end(&self, begin: &Begin, display: &Display) -> Result<Done, StepError> {
        display.show(Progress(begin.0));
        Err(StepError::permanent("no"))
    }
}

// S25
#[tokio::test]
async fn a_failure_that_ends_the_run_is_retracted_before_the_end() {
    let run = started(FailsTheRun, 1).await;
    assert_eq!(lines(run.display()).await, ["end x1 1: 1", "end x1 1 retracted", "ended failed"]);
}

/// Displays an item and returns a large event.
struct Boasting;

#[workflow]
impl Boasting {
    #[step]
    async fn boast(&self, begin: &Begin, display: &Display) -> Saw {
        display.show(Progress(begin.0));
        Saw("x".repeat(100))
    }

    #[step]
    async fn end(&self, _saw: &Saw) -> Done {
        Done(0)
    }
}

/// Refuses every call.
struct Refusing;

impl Middleware for Refusing {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        let called = next.call(call);
        Box::pin(async move {
            called.await?;
            Err(StepError::permanent("refused"))
        })
    }
}

// S25
#[tokio::test]
async fn an_attempt_that_fails_by_what_its_step_returned_is_retracted_like_any_other() {
    let boasting = || Engine::builder().workflow(Boasting);
    for engine in [boasting().max_event_bytes(50), boasting().middleware(Refusing)] {
        let run = engine.build().unwrap().start::<Boasting>(Begin(1)).await.unwrap();
        assert_eq!(lines(run.display()).await, ["boast x1 1: 1", "boast x1 1 retracted", "ended failed"]);
    }
    let run = started(Boasting, 1).await;
    assert_eq!(lines(run.display()).await, ["boast x1 1: 1", "ended completed"]);
}

struct Dropped;

#[workflow]
impl Dropped {
    #[step]
    async fn sleep(&self, begin: &Begin, display: &Display) -> Item {
        display.show(Progress(begin.0));
        std::future::pending::<()>().await;
        Item(begin.0)
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S28
#[tokio::test]
async fn items_of_a_dropped_execution_before_the_stop_remain() {
    let run = started(Dropped, 1).await;
    run.send(Close).await.unwrap();
    assert_eq!(lines(run.display()).await, ["sleep x1 1: 1", "ended completed"]);
}

struct Drafting;

#[workflow]
impl Drafting {
    #[step(on_error = "continue")]
    async fn draft(&self, begin: &Begin, drafts: &Emitter<Draft>) -> Result<Draft, StepError> {
        drafts.emit(Draft(begin.0))?;
        if begin.0 == 0 { Err(StepError::permanent("no")) } else { Ok(Draft(begin.0 + 1)) }
    }

    #[step]
    async fn end(&self, drafts: &FixedList<Draft, 2>) -> Done {
        Done(drafts.iter().map(|draft| draft.0).sum())
    }
}

// S2
#[tokio::test]
async fn an_event_that_is_control_and_display_is_shown_when_it_is_committed() {
    let run = Scenario::new(Drafting).start(Begin(1)).await;
    run.assert_output(&Done(3));
    assert_eq!(log_of(run.report()), ["Begin", "Draft", "Draft", "Done"]);
    assert_eq!(lines(run.handle().display()).await, ["draft x1 1: 1", "draft x1 1: 2", "ended completed"]);
}

// S23, S25
#[tokio::test]
async fn an_event_that_is_never_committed_is_never_shown() {
    let run = started(Drafting, 0).await;
    assert_eq!(lines(run.display()).await, ["ended stalled"]);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop, display)]
struct ShownStop;

struct EndsVisibly;

#[workflow]
impl EndsVisibly {
    #[step]
    async fn end(&self, _begin: &Begin) -> ShownStop {
        ShownStop
    }
}

// S2, S28
#[tokio::test]
async fn a_stop_event_that_is_shown_too_is_the_last_item_before_the_end() {
    let run = started(EndsVisibly, 1).await;
    let items: Vec<DisplayItem> = run.display().collect().await;
    let [shown, DisplayItem::Ended { status: RunStatus::Completed }] = &items[..] else {
        panic!("{items:?}")
    };
    assert_eq!(shown.event::<ShownStop>(), Some(&ShownStop));
}

// S31
#[tokio::test]
async fn a_cancelled_run_ends_its_display() {
    let (_gate, workflow) = showing();
    let run = started(workflow, 1).await;
    let viewer = run.display();
    everyone_else().await;
    run.cancel("enough").await.unwrap();
    assert_eq!(lines(viewer).await, ["index x1 1: 1", "ended cancelled"]);
}

struct Keeps(std::sync::Arc<std::sync::Mutex<Option<Display>>>);

#[workflow]
impl Keeps {
    #[step]
    async fn end(&self, begin: &Begin, display: Display) -> Done {
        *self.0.lock().unwrap() = Some(display);
        Done(begin.0)
    }
}

// S28
#[tokio::test]
async fn items_displayed_after_the_end_are_dropped() {
    let kept = std::sync::Arc::default();
    let run = started(Keeps(std::sync::Arc::clone(&kept)), 1).await;
    run.outcome().await.unwrap();
    let display = kept.lock().unwrap().take().unwrap();
    display.show(Progress(1));
    assert_eq!(lines(run.display()).await, ["ended completed"]);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start, display)]
struct ShownStart;

struct BeginsVisibly;

#[workflow]
impl BeginsVisibly {
    #[step]
    async fn end(&self, _start: &ShownStart) -> Done {
        Done(0)
    }
}

// S2
#[tokio::test]
async fn a_start_event_that_is_shown_too_is_the_first_item() {
    let run = Scenario::new(BeginsVisibly).start(ShownStart).await;
    let items: Vec<DisplayItem> = run.handle().display().collect().await;
    assert!(items[0].event::<ShownStart>().is_some(), "{items:?}");
}

//! The maximum size of events, and the capacity of mailboxes.

use std::task::{Context, Poll, Waker};

use futures::FutureExt as _;
use workflow_core::errors::{EventTooLarge, UnfitEvent, UnfitValue};
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality};
use workflow_core::{ErrorClass, RunStatus, SendError, StartError};

use crate::fixtures::{Alpha, Begin, Close, Done};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Open(String);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Letter(String);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = String)]
struct Question(String);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Closed(String);

/// Text with this many bytes of JSON.
fn text(bytes: usize) -> String {
    "x".repeat(bytes - 2)
}

struct Post;

#[workflow]
impl Post {
    #[step]
    async fn ask(&self, open: &Open) -> Question {
        Question(open.0.clone())
    }

    #[step]
    async fn close(&self, letter: &Letter, reply: &Reply<Question>) -> Closed {
        Closed(format!("{} {}", letter.0.len(), reply.len()))
    }
}

/// Sets a timer with a possibly too large event.
struct Later;

#[workflow]
impl Later {
    #[step]
    async fn remind(&self, open: &Open) -> Timer<Closed> {
        Timer::after(std::time::Duration::ZERO, Closed(open.0.repeat(2)))
    }
}

#[tokio::test]
async fn what_a_timer_would_bring_is_bounded_when_the_timer_is_set() {
    let engine = Engine::builder().workflow(Later).max_event_bytes(100).build().unwrap();
    let small = engine.start::<Later>(Open(text(50))).await.unwrap();
    small.outcome().await.unwrap();
    let large = engine.start::<Later>(Open(text(60))).await.unwrap();
    let Err(RunError::StepFailed { source, .. }) = large.outcome().await else { panic!("it was too large") };
    assert_eq!(source.downcast_ref::<EventTooLarge>().unwrap().event, "Closed".into());
}

fn post() -> Engine {
    Engine::builder().workflow(Post).max_event_bytes(100).build().unwrap()
}

#[tokio::test]
async fn an_event_at_the_size_limit_passes_and_one_byte_more_is_refused() {
    let engine = post();
    let refused = engine.start::<Post>(Open(text(101))).await.unwrap_err();
    let StartError::TooLarge(EventTooLarge { event, bytes: 101, limit: 100, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(&*event, "Open");
    let run = engine.start::<Post>(Open(text(100))).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let refused = run.send(Letter(text(101))).await.unwrap_err();
    let SendError::TooLarge(EventTooLarge { event, bytes: 101, limit: 100, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(&*event, "Letter");
    run.send(Letter(text(100))).await.unwrap();
    let request = run.requests().await.unwrap()[0].id::<Question>().unwrap();
    let refused = run.reply(request, text(101)).await.unwrap_err();
    let SendError::TooLarge(EventTooLarge { event, limit: 100, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(&*event, "Question.reply");
    // The request is still open.
    run.reply(request, text(100)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Closed("98 98".into()));
}

#[tokio::test]
async fn without_a_bound_everything_passes() {
    let engine = Engine::builder().workflow(Post).build().unwrap();
    let run = engine.start::<Post>(Open(text(1_000_000))).await.unwrap();
    run.send(Letter(text(1_000_000))).await.unwrap();
    let request = run.requests().await.unwrap()[0].id::<Question>().unwrap();
    run.reply(request, text(1_000_000)).await.unwrap();
    run.outcome().await.unwrap();
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Page(String);

/// Emits a small page and then one of the given size, in every possible way.
struct Pages;

#[workflow]
impl Pages {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Page> {
        let pages: FanOut<Page> = (0..2).map(|page| Page(text(2 + page * begin.0 as usize))).collect();
        pages.continue_others()
    }

    #[step]
    async fn double(&self, page: &Page) -> Letter {
        Letter(page.0.repeat(2))
    }

    #[step(on_error = "continue")]
    async fn stream(&self, begin: &Begin, letters: Emitter<Letter>) -> Result<(), StepError> {
        letters.emit(Letter(text(2)))?;
        letters.emit(Letter(text(2 * begin.0 as usize)))?;
        Ok(())
    }

    #[step]
    async fn join(&self, letters: &Gather<Letter>) -> Done {
        Done(u32::try_from(letters.ok().count()).unwrap())
    }
}

async fn pages(bytes: u32) -> (Result<Done, RunError>, std::sync::Arc<workflow_core::report::RunReport>) {
    let engine = Engine::builder().workflow(Pages).max_event_bytes(100).build().unwrap();
    let run = engine.start::<Pages>(Begin(bytes)).await.unwrap();
    (run.outcome().await, run.report().await.unwrap())
}

// S23
#[tokio::test]
async fn an_execution_that_emits_too_much_fails_for_good_and_leaves_nothing_behind() {
    let (outcome, report) = pages(60).await;
    assert_eq!((outcome.unwrap(), report.quality), (Done(1), Quality::Degraded));
    for step in ["double", "stream"] {
        let failed = report.trace.iter().filter(|trace| &*trace.step == step);
        let failed = failed.filter(|trace| matches!(&trace.outcome,
            ExecutionOutcome::Failed { class: ErrorClass::Permanent, error, .. } if error.contains("`Letter`")));
        assert_eq!(failed.count(), 1, "{step}");
    }
    assert_eq!(report.log.iter().filter(|logged| &*logged.event == "Letter").count(), 1);
}

// S29
#[tokio::test]
async fn the_items_of_a_fan_out_are_bounded_as_well_with_a_distinct_error() {
    let (outcome, _) = pages(99).await;
    let Err(RunError::StepFailed { step, source, .. }) = outcome else { panic!("{outcome:?}") };
    let too_large: &EventTooLarge = source.downcast_ref().unwrap();
    assert_eq!((&*step, &*too_large.event, too_large.bytes, too_large.limit), ("split", "Page", 101, 100));
}

struct Collects;

#[workflow]
impl Collects {
    #[step]
    async fn take(&self, _begin: &Begin, _alpha: &Alpha) {}

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

/// The number of events that a busy run accepts, of ten whose senders poll only once.
async fn taken(engine: workflow_core::EngineBuilder) -> usize {
    let engine = engine.workflow(Collects).build().unwrap();
    let run = engine.start::<Collects>(Begin(0)).await.unwrap();
    run.settled().await;
    for number in 0..10 {
        let mut sent = run.send(Alpha(number)).boxed();
        let polled = sent.poll_unpin(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending));
    }
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap();
    let report = run.report().await.unwrap();
    report.log.iter().filter(|logged| &*logged.event == "Alpha").count()
}

#[tokio::test]
async fn a_mailbox_takes_as_many_commands_as_it_has_room_for() {
    assert_eq!(taken(Engine::builder()).await, 10);
    assert_eq!(taken(Engine::builder().mailbox_capacity(3)).await, 3);
    assert_eq!(taken(Engine::builder().mailbox_capacity(0)).await, 1);
}

#[tokio::test]
async fn a_sender_to_a_full_mailbox_waits_and_is_served() {
    let engine = Engine::builder().workflow(Collects).mailbox_capacity(1).build().unwrap();
    let run = engine.start::<Collects>(Begin(0)).await.unwrap();
    let sent = (0..100).map(|number| run.send(Alpha(number)));
    assert!(futures::future::join_all(sent).await.into_iter().all(|sent| sent.is_ok()));
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(run.report().await.unwrap().executions("take"), 100);
}

/// Panics when it is written, unless it is calm.
#[derive(Debug, Clone, Deserialize)]
struct Trap(bool);

impl Serialize for Trap {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(self.0, "it snaps");
        serializer.serialize_bool(self.0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Set(Trap);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Touched(Trap);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Trap)]
struct WhichTrap;

struct Traps;

#[workflow]
impl Traps {
    #[step]
    async fn ask(&self, _set: &Set) -> WhichTrap {
        WhichTrap
    }

    #[step]
    async fn lay(&self, _begin: &Begin) -> Set {
        Set(Trap(false))
    }

    #[step]
    async fn end(&self, _reply: &Reply<WhichTrap>, _touched: &Touched) -> Done {
        Done(1)
    }
}

// S27
#[tokio::test]
async fn a_panic_while_the_bytes_are_counted_is_a_failure() {
    let engine = Engine::builder().workflow(Traps).max_event_bytes(100).build().unwrap();
    let (panics, calm) = (Trap(false), Trap(true));
    let is_panic = |event: &str, found: &str, problem: &UnfitValue| {
        assert_eq!((event, problem), (found, &UnfitValue::Panicked { message: "it snaps".into() }));
    };
    let refused = engine.start::<Traps>(Set(panics.clone())).await.unwrap_err();
    let StartError::Unfit { event, problem, .. } = &refused else { panic!("{refused:?}") };
    is_panic("Set", event, problem);
    assert!(engine.running().is_empty());

    let failed = engine.start::<Traps>(Begin(1)).await.unwrap().outcome().await.unwrap_err();
    let RunError::StepFailed { step, class, source, .. } = &failed else { panic!("{failed:?}") };
    assert_eq!((&**step, *class), ("lay", ErrorClass::Permanent));
    let UnfitEvent { event, problem, .. } = source.downcast_ref().unwrap();
    is_panic("Set", event, problem);

    let run = engine.start::<Traps>(Set(calm.clone())).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let refused = run.send(Touched(panics.clone())).await.unwrap_err();
    let SendError::Unfit { event, problem, .. } = &refused else { panic!("{refused:?}") };
    is_panic("Touched", event, problem);
    let request = run.requests().await.unwrap()[0].id::<WhichTrap>().unwrap();
    let refused = run.reply(request, panics).await.unwrap_err();
    let SendError::Unfit { event, problem, .. } = &refused else { panic!("{refused:?}") };
    is_panic("WhichTrap.reply", event, problem);
    run.send(Touched(calm.clone())).await.unwrap();
    run.reply(request, calm).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

//! Viewers learn of open requests of runs with a journal (S64).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{
    AnyRun, DisplayItem, DisplayStream, EngineBuilder, Pause, RunError, RunHandle, RunOptions, RunStatus,
};

use crate::fixtures::{Begin, Done, Note, assert_told_once, until};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

/// Asks twice, and ends with a zero.
struct Twice;

#[workflow]
impl Twice {
    #[step]
    async fn ask(&self, begin: &Begin) -> Vec<Ask> {
        vec![Ask(begin.0), Ask(begin.0 + 1)]
    }

    #[step]
    async fn hear(&self, answer: &Reply<Ask>) -> Option<Done> {
        (*answer.value() == 0).then_some(Done(0))
    }
}

/// Runs a child that asks.
struct Above;

#[workflow]
impl Above {
    #[step]
    async fn inner(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        Ok(children.run::<Twice>(begin.clone()).await?)
    }
}

/// Runs a child that runs a child that asks.
struct Top;

#[workflow]
impl Top {
    #[step]
    async fn outer(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        Ok(children.run::<Above>(begin.clone()).await?)
    }
}

/// Starts a child that asks, and goes on.
struct Beside;

#[workflow]
impl Beside {
    #[step]
    async fn begins(&self, begin: &Begin, children: &Children) -> Result<Option<Done>, RunError> {
        children.start::<Twice>(begin.clone()).await?;
        Ok(None)
    }

    #[step]
    async fn note(&self, note: &Note) -> Done {
        Done(note.0)
    }
}

fn engine(store: &Arc<MemoryStore>) -> EngineBuilder {
    let engine = Engine::builder().workflow(Twice).workflow(Above).workflow(Top).workflow(Beside);
    engine.store(Arc::clone(store))
}

fn line(item: &DisplayItem) -> String {
    match item {
        DisplayItem::Asked { request } => format!("asked {}", request.downcast_ref::<Ask>().unwrap().0),
        DisplayItem::Closed { seq, how } => format!("{seq} {how:?}"),
        DisplayItem::Child { path, item } => format!("{} {}", path.last().unwrap().step, line(item)),
        DisplayItem::Ended { status } => format!("ended {status}"),
        DisplayItem::Missed { count } => format!("missed {count:?}"),
        item => format!("{item:?}"),
    }
}

/// The next items, as many as these, which must be these.
async fn expect_next<const N: usize>(viewer: &mut DisplayStream, items: [&str; N]) {
    for expected in items {
        assert_eq!(line(&viewer.next().await.unwrap()), expected);
    }
}

/// The same, and there is nothing else.
async fn expect<const N: usize>(viewer: &mut DisplayStream, items: [&str; N]) {
    expect_next(viewer, items).await;
    assert!(viewer.next().now_or_never().flatten().is_none(), "nothing else");
}

async fn reply(run: &AnyRun, with: u32) {
    let request = run.requests().await.unwrap()[0].seq();
    run.reply_json(request, with.into()).await.unwrap();
}

// S64
#[tokio::test]
async fn each_epoch_has_the_open_requests_once_and_closes_them() {
    let store = Arc::<MemoryStore>::default();
    let first = engine(&store).build().unwrap();
    let run = first.start_with::<Twice>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let mut viewer = run.display();
    expect(&mut viewer, ["asked 1", "asked 2"]).await;
    reply(run.any(), 5).await;
    expect(&mut viewer, ["#2 Replied"]).await;
    first.shut_down(Duration::ZERO).await;
    expect(&mut viewer, ["#3 Dropped", "ended cancelled"]).await;
    let position = viewer.position().unwrap();

    let second = engine(&store).build().unwrap();
    let run = second.attach::<Twice>("r").await.unwrap();
    let mut again = run.display_after(position);
    expect(&mut again, ["missed None", "asked 2"]).await;
    expect(&mut run.display(), ["asked 2"]).await;
    reply(run.any(), 0).await;
    expect(&mut again, ["#3 Replied", "ended completed"]).await;
}

// S42, S64
#[tokio::test]
async fn an_unloaded_run_is_loaded_for_its_first_viewer_and_continues_its_epoch_after_later_unloads() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine(&store).unload_waiting_after(Duration::ZERO).build().unwrap();
    let run = engine.start_with::<Twice>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.settled().await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let mut viewer = run.display();
    expect(&mut viewer, ["asked 1", "asked 2"]).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    reply(run.any(), 5).await;
    expect(&mut viewer, ["#2 Replied"]).await;
    let position = viewer.position().unwrap();
    reply(run.any(), 0).await;
    expect(&mut viewer, ["#3 Replied", "ended completed"]).await;
    expect(&mut run.display_after(position), ["#3 Replied", "ended completed"]).await;
}

// S61, S64
#[tokio::test]
async fn a_child_that_is_paused_now_with_its_parent_keeps_its_requests_in_the_display_above() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine(&store).build().unwrap();
    let run = engine.start_with::<Above>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let mut viewer = run.display();
    expect(&mut viewer, ["inner asked 1", "inner asked 2"]).await;
    run.pause(Pause::Now).await.unwrap();
    run.settled().await;
    run.unpause().await.unwrap();
    let child = "r/inner-x1.1";
    let child = async || engine.attach_any(child).await.unwrap();
    until(async || child().await.requests().await.is_ok_and(|requests| requests.len() == 2)).await;
    reply(&child().await, 5).await;
    reply(&child().await, 0).await;
    expect(&mut viewer, ["inner #2 Replied", "inner #3 Replied", "ended completed"]).await;
}

// S64
#[tokio::test]
async fn a_parent_and_its_child_that_are_resumed_tell_the_childs_requests_once() {
    let store = Arc::<MemoryStore>::default();
    let first = engine(&store).build().unwrap();
    let run = first.start_with::<Above>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let mut viewer = run.display();
    expect(&mut viewer, ["inner asked 1", "inner asked 2"]).await;
    first.shut_down(Duration::ZERO).await;
    expect(&mut viewer, ["inner #2 Dropped", "inner #3 Dropped", "ended cancelled"]).await;

    let second = engine(&store).build().unwrap();
    second.resume_open_runs().await.unwrap();
    let run = second.attach::<Above>("r").await.unwrap();
    let mut viewer = run.display();
    expect(&mut viewer, ["inner asked 1", "inner asked 2"]).await;
    reply(&second.attach_any("r/inner-x1.1").await.unwrap(), 0).await;
    expect(&mut viewer, ["inner #2 Replied", "inner #3 Dropped", "ended completed"]).await;
}

// S64
#[tokio::test]
async fn the_first_viewer_above_receives_what_was_asked_below_before_a_parent_was_resumed() {
    let store = Arc::<MemoryStore>::default();
    let first = engine(&store).build().unwrap();
    first.start_with::<Top>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let lowest = "r/outer-x1.1/inner-x1.1";
    until(async || first.find(&lowest.into()).is_some_and(|run| run.status() == RunStatus::Waiting)).await;
    first.shut_down(Duration::ZERO).await;

    let second = engine(&store).build().unwrap();
    let asks = second.attach_any(lowest).await.unwrap();
    expect(&mut asks.display(), ["asked 1", "asked 2"]).await;
    // Each asks for the one below, which is here already.
    for (run, below) in [("r/outer-x1.1", lowest), ("r", "r/outer-x1.1")] {
        let run = second.attach_any(run).await.unwrap();
        until(async || children(&run).await == [below]).await;
    }
    let top = second.attach::<Top>("r").await.unwrap();
    let mut viewer = top.display();
    expect(&mut viewer, ["inner asked 1", "inner asked 2"]).await;
    reply(&asks, 0).await;
    expect(&mut viewer, ["inner #2 Replied", "inner #3 Dropped", "ended completed"]).await;
}

async fn children(run: &AnyRun) -> Vec<String> {
    let report = run.report_so_far().await.unwrap();
    report.children.iter().map(|child| child.child.run.to_string()).collect()
}

/// Another engine has written to the child, so this engine has lost it, and then gets it back.
// S40, S64
#[tokio::test]
async fn requests_of_a_child_whose_journal_failed_stay_open_for_a_parent_that_goes_on() {
    let store = Arc::<MemoryStore>::default();
    let here = engine(&store).build().unwrap();
    let run = here.start_with::<Beside>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let mut viewer = run.display();
    expect_next(&mut viewer, ["begins asked 1", "begins asked 2"]).await;
    let id = "r/begins-x1.1";
    let child: RunHandle<Twice> = here.attach(id).await.unwrap();
    let mut below = child.display();
    expect(&mut below, ["asked 1", "asked 2"]).await;

    let other = engine(&store).build().unwrap();
    other.attach_any(id).await.unwrap();
    let request = child.requests().await.unwrap()[0].seq();
    child.any().reply_json(request, 5.into()).await.unwrap_err();
    assert!(matches!(child.outcome().await, Err(RunError::Conflict { .. })));
    expect(&mut below, ["#2 Dropped", "#3 Dropped", "ended failed"]).await;
    assert_told_once(child.any(), child.display()).await;
    other.shut_down(Duration::ZERO).await;

    let child: RunHandle<Twice> = here.attach(id).await.unwrap();
    expect(&mut child.display(), ["asked 1", "asked 2"]).await;
    reply(child.any(), 5).await;
    expect_next(&mut viewer, ["begins #2 Replied"]).await;
    reply(child.any(), 0).await;
    child.outcome().await.unwrap();
    expect(&mut viewer, ["begins #3 Replied"]).await;
    let whole = run.display();
    run.send(Note(0)).await.unwrap();
    run.outcome().await.unwrap();
    assert_told_once(run.any(), whole).await;
}

/// Asks, and fails at a note before it is mended.
struct Mended(Arc<AtomicBool>);

#[workflow]
impl Mended {
    #[step]
    async fn ask(&self, begin: &Begin) -> Vec<Ask> {
        vec![Ask(begin.0), Ask(begin.0 + 1)]
    }

    #[step]
    async fn note(&self, _note: &Note) -> Result<Option<Done>, StepError> {
        if self.0.load(Ordering::SeqCst) { Ok(None) } else { Err(StepError::permanent("not yet")) }
    }

    #[step]
    async fn hear(&self, answer: &Reply<Ask>) -> Option<Done> {
        (*answer.value() == 0).then_some(Done(0))
    }
}

// S39, S64
#[tokio::test]
async fn a_redriven_run_tells_its_requests_in_an_epoch_of_its_own() {
    let is_mended = Arc::<AtomicBool>::default();
    let engine = Engine::builder().workflow(Mended(Arc::clone(&is_mended))).store(MemoryStore::default());
    let engine = engine.build().unwrap();
    let run = engine.start_with::<Mended>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let (mut viewer, whole) = (run.display(), run.display());
    expect(&mut viewer, ["asked 1", "asked 2"]).await;
    reply(run.any(), 5).await;
    expect(&mut viewer, ["#2 Replied"]).await;
    run.send(Note(1)).await.unwrap();
    run.outcome().await.unwrap_err();
    let before = viewer.position().unwrap();
    expect(&mut viewer, ["#3 Dropped", "ended failed"]).await;
    assert_told_once(run.any(), whole).await;

    is_mended.store(true, Ordering::SeqCst);
    let again = engine.redrive::<Mended>("r").await.unwrap();
    let (mut viewer, whole) = (again.display_after(before), again.display());
    expect(&mut viewer, ["missed None", "asked 2"]).await;
    assert!(viewer.position().unwrap().epoch > before.epoch);
    reply(again.any(), 0).await;
    again.outcome().await.unwrap();
    expect(&mut viewer, ["#3 Replied", "ended completed"]).await;
    assert_told_once(again.any(), whole).await;
}

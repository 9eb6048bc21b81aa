//! Viewers learn of open requests of runs with a journal (S64).

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{AnyRun, DisplayItem, DisplayStream, EngineBuilder, Pause, RunOptions};

use crate::fixtures::{Begin, Done, until};

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

fn engine(store: &Arc<MemoryStore>) -> EngineBuilder {
    Engine::builder().workflow(Twice).workflow(Above).store(Arc::clone(store))
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
async fn expect<const N: usize>(viewer: &mut DisplayStream, items: [&str; N]) {
    for expected in items {
        assert_eq!(line(&viewer.next().await.unwrap()), expected);
    }
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

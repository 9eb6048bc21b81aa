//! Run-time workflows write and read the golden journals of the typed ones, byte for byte (S57).

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use workflow_core::errors::UnfitValue;
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::table::TableShape;
use workflow_core::{AnyRun, RunOptions, SendError, StartError};
use workflow_testkit::VirtualClock;

use super::workflows::{Calls, Cleans, Races, Rings, Wonders};
use super::{file, journals, read};
use crate::shapes::{Asks, Branches, Catches, Fails, Joins, Lists, Retries, Stalls, Waits};
use crate::translated::translated;

fn engine(store: &Arc<MemoryStore>, shapes: &[TableShape]) -> Engine {
    let engine = Engine::builder().workflows(shapes.iter().map(translated));
    engine.store(Arc::clone(store)).clock(VirtualClock::new()).build().unwrap()
}

type Script = fn(AnyRun) -> BoxFuture<'static, ()>;

fn ends(run: AnyRun) -> BoxFuture<'static, ()> {
    Box::pin(async move { drop(run.outcome_any().await) })
}

fn settles(run: AnyRun) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        run.settled().await;
    })
}

fn notes(run: AnyRun) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        run.send_json("Note", 9).await.unwrap();
        ends(run).await;
    })
}

fn settles_and_notes(run: AnyRun) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        run.settled().await;
        notes(run).await;
    })
}

fn is_cancelled(run: AnyRun) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        run.settled().await;
        run.cancel("not needed any more").await.unwrap();
        ends(run).await;
    })
}

/// Waits for so many seconds.
macro_rules! after {
    ($seconds:expr) => {
        |run| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs($seconds)).await;
                drop(run);
            })
        }
    };
}

/// Replies to the open request at this place.
macro_rules! reply {
    ($place:expr, $reply:expr, $then:expr) => {
        |run| {
            Box::pin(async move {
                run.settled().await;
                let open = run.requests().await.unwrap();
                run.reply_json(open[$place].seq(), json!($reply)).await.unwrap();
                $then(run).await;
            })
        }
    };
}

/// Writes the journal of the typed workflow, and continues that of its file to the same log.
async fn same(name: &str, shapes: &[TableShape], begin: u32, before: Script, after: Script) {
    let store = Arc::new(MemoryStore::default());
    let options = RunOptions::new().id(name).thread("golden");
    let engine_before = engine(&store, shapes);
    let run = engine_before.start_json(&shapes[0].workflow, "Begin", begin, options).await.unwrap();
    before(run.clone()).await;
    let mut kept = Vec::new();
    for (id, lines) in journals(&store).await {
        let (expected, path) = file(&format!("{}.jsonl", id.as_str().replace('/', ".")));
        expected.assert_eq(&lines);
        kept.push((id, std::fs::read_to_string(path).unwrap()));
    }
    let store = read(&kept).await;
    let run = engine(&store, shapes).attach_any(name).await.unwrap();
    after(run.clone()).await;
    let report = run.report().await.unwrap();
    let expected = std::fs::read_to_string(file(&format!("{name}.txt")).1).unwrap();
    // The first line of a completed run has the typed output.
    let mut result = match run.outcome_any().await {
        Ok(_) => format!("{}\n", expected.lines().next().unwrap()),
        Err(error) => format!("{}: {error}\n", run.status()),
    };
    for logged in &report.log {
        let value = logged.value.to_json().unwrap();
        writeln!(result, "{} {} in {}: {value}", logged.seq, logged.event, logged.scope).unwrap();
    }
    for execution in &report.trace {
        writeln!(result, "{} {} by {}", execution.execution, execution.step, execution.trigger).unwrap();
    }
    assert_eq!(expected, result, "{name}");
}

// S57, S39
#[tokio::test(start_paused = true)]
async fn translated_workflows_write_the_same_journals_and_continue_them() {
    same("joins", &[Joins::shape()], 3, ends, ends).await;
    same("lists", &[Lists::shape()], 3, ends, ends).await;
    same("branches", &[Branches::shape()], 4, ends, ends).await;
    same("attempts", &[Retries::shape()], 3, after!(20), ends).await;
    same("caught", &[Catches::shape()], 3, ends, ends).await;
    same("failed", &[Fails::shape()], 3, ends, ends).await;
    same("stalled", &[Stalls::shape()], 3, ends, ends).await;
    same("requests", &[Asks::shape()], 2, reply!(0, 5, settles), reply!(0, 7, ends)).await;
    same("races", &[Races::shape()], 4, reply!(1, 5, settles), reply!(1, 7, ends)).await;
    same("timers", &[Waits::shape()], 3, after!(70), settles_and_notes).await;
    same("pending", &[Waits::shape()], 3, settles, notes).await;
    same("family", &[Calls::shape(), Rings::shape()], 3, after!(5), notes).await;
    same("cancelled", &[Waits::shape()], 3, is_cancelled, ends).await;
    same("cleaned_up", &[Cleans::shape()], 3, is_cancelled, ends).await;
    same("wonders", &[Wonders::shape()], 3, ends, ends).await;
}

// S56, S57
#[tokio::test(start_paused = true)]
async fn what_the_steps_do_not_accept_leaves_nothing_behind() {
    let (store, shapes) = (Arc::new(MemoryStore::default()), [Asks::shape(), Waits::shape()]);
    let engine = engine(&store, &shapes);
    let refused = engine.start_json("Asks", "Begin", "two", RunOptions::new()).await.unwrap_err();
    let StartError::Unfit { event, problem: UnfitValue::Read { problem }, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!((&**event, &**problem), ("Begin", "a number is needed"));
    assert!(journals(&store).await.is_empty());

    let asks = engine.start_json("Asks", "Begin", 1, RunOptions::new()).await.unwrap();
    asks.settled().await;
    let request = asks.requests().await.unwrap().remove(0);
    assert_eq!((request.name(), request.data().unwrap()), ("Ask", json!(0)));
    let before = journals(&store).await;
    let refused = asks.reply_json(request.seq(), json!([])).await.unwrap_err();
    assert!(matches!(refused, SendError::UnfitReply { .. }), "{refused}");
    assert_eq!(journals(&store).await, before);

    let waits = engine.start_json("Waits", "Begin", 1, RunOptions::new()).await.unwrap();
    waits.settled().await;
    let before = journals(&store).await;
    let refused = waits.send_json("Note", json!({})).await.unwrap_err();
    assert_eq!(refused.to_string(), "`Note` cannot be read: a number is needed");
    assert_eq!(journals(&store).await, before);
}

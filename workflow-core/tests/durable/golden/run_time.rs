//! Run-time workflows write and read the golden journals of the typed ones, byte for byte (S57).

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::errors::UnfitValue;
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::store::MemoryStore;
use workflow_core::table::{DependencyTable, StepIndex, TableShape};
use workflow_core::{
    AnyEvent, AnyRun, FanOut, InputValue, JsonOutput, RunOptions, RuntimeWorkflow, SendError, StartError,
    StepFailed, Steps, UnfitJson,
};
use workflow_testkit::VirtualClock;

use super::workflows::{Calls, Cleans, Races, Rings, Wonders};
use super::{file, journals, read};
use crate::shapes::{Asks, Branches, Catches, Fails, Joins, Lists, Retries, Stalls, Waits};

/// The steps of all these workflows, as JSON.
struct Translated;

fn number(input: &InputValue<'_>) -> u64 {
    let number = input.json().and_then(Value::as_u64);
    number.unwrap_or_else(|| panic!("{input:?} is no number"))
}

fn numbers<'a>(events: impl IntoIterator<Item = &'a &'a AnyEvent>) -> u64 {
    events.into_iter().filter_map(|event| event.as_json()?.as_u64()).sum()
}

impl Translated {
    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    async fn step(mut call: StepCall) -> Result<Emitted, StepError> {
        let (workflow, step) = (call.info().workflow().to_owned(), call.step().to_owned());
        let later = |seconds| Duration::from_secs(seconds);
        let first = call.input(0).json().and_then(Value::as_u64).unwrap_or(0);
        let second = call.input(1).json().and_then(Value::as_u64).unwrap_or(0);
        let (event, output): (&str, JsonOutput) = match (&*workflow, &*step) {
            ("Joins", "second") => {
                tokio::time::sleep(later(1)).await;
                ("Part", json!(first).into())
            }
            ("Joins", "first") | ("Cleans", "book") => ("Item", json!(first).into()),
            ("Joins" | "Cleans" | "Calls", "join" | "end") => ("Done", json!(first + second).into()),
            ("Lists", "split") => {
                for item in 0..first {
                    call.emit("Item", json!(item))?;
                }
                return call.commit(());
            }
            ("Lists", "double") => {
                tokio::time::sleep(later(first % 3)).await;
                ("Part", json!(2 * first).into())
            }
            ("Lists" | "Asks", "sum") => match call.input(1) {
                InputValue::Events(parts) => ("Done", json!(numbers(&parts)).into()),
                other => panic!("{other:?}"),
            },
            ("Retries", "work") => match call.attempt() {
                1 | 2 => return Err(StepError::transient("busy")),
                attempt => ("Item", json!(first * 10 + u64::from(attempt)).into()),
            },
            ("Retries" | "Rings" | "Wonders", "end") => ("Done", json!(first).into()),
            ("Catches", "work") => return Err(StepError::tool("broken")),
            ("Catches", "instead") => match call.input(0) {
                InputValue::Event(failed) => {
                    let failed: &StepFailed = failed.downcast_ref().unwrap();
                    ("Done", json!(failed.attempts).into())
                }
                other => panic!("{other:?}"),
            },
            ("Fails", "work") => return Err(StepError::rejected(format!("not {first}"))),
            ("Branches", "open") => {
                let items: FanOut<Value> = (0..first).map(Value::from).collect();
                ("Item", items.concurrency(2).continue_others().into())
            }
            ("Branches", "work") => {
                tokio::time::sleep(later(5 - first)).await;
                if first == 1 {
                    return Err(StepError::permanent("odd"));
                }
                ("Part", json!(first).into())
            }
            ("Branches", "gather") => match call.input(0) {
                InputValue::Gather(branches) => {
                    let ok = branches.iter().filter(|branch| branch.failure().is_none());
                    let sum: u64 = ok.map(|branch| numbers(branch.events())).sum();
                    let failed = branches.iter().filter(|branch| branch.failure().is_some()).count();
                    ("Done", json!(sum + 100 * failed as u64).into())
                }
                other => panic!("{other:?}"),
            },
            ("Races", "open") => {
                let items: FanOut<Value> = (0..first).map(Value::from).collect();
                ("Item", items.concurrency(1).until(2).into())
            }
            ("Races", "ask") => ("Ask", json!(first).into()),
            ("Races", "take") => ("Part", json!(number(&call.input(0))).into()),
            ("Races", "end") => match call.input(0) {
                InputValue::Gather(branches) => {
                    let (dropped, settled): (Vec<_>, Vec<_>) =
                        branches.iter().partition(|branch| branch.is_dropped());
                    let sum: u64 = settled.iter().map(|branch| numbers(branch.events())).sum();
                    ("Done", json!(sum + 100 * dropped.len() as u64).into())
                }
                other => panic!("{other:?}"),
            },
            ("Asks", "ask") => {
                for ask in 0..first {
                    call.emit("Ask", json!(ask))?;
                }
                return call.commit(());
            }
            ("Asks", "take") => match call.input(0) {
                InputValue::Reply { request, reply } => {
                    let asked = request.as_json().and_then(Value::as_u64).unwrap();
                    ("Item", json!(reply.as_u64().unwrap() * asked).into())
                }
                other => panic!("{other:?}"),
            },
            ("Waits", "ask") => {
                call.emit("Item", Timer::after(later(30), json!(first)))?;
                call.emit("Ask", JsonOutput::Expiring(json!(1), later(60)))?;
                ("Part", Timer::after(later(10), json!(2)).into())
            }
            ("Waits", "end") => {
                let sum: u64 = (0..4).map(|place| number(&call.input(place))).sum();
                ("Done", json!(sum).into())
            }
            ("Rings", "set") => ("Rang", Timer::after(later(20), json!(first)).into()),
            ("Calls", "call") => {
                let options = RunOptions::new().id("child");
                let ended = call.children()?.run_json("Rings", "Begin", first, options).await?;
                ("Item", ended.to_json().unwrap().into())
            }
            ("Cleans", "fail") => return Err(StepError::permanent("stuck")),
            ("Stalls", "first") | ("Cleans", "wonder" | "unbook") => return call.commit(()),
            other => panic!("{other:?} has no translation"),
        };
        call.emit(event, output)?;
        call.commit(())
    }
}

impl Steps for Translated {
    fn call(self: Arc<Self>, _: StepIndex, call: StepCall) -> BoxFuture<'static, Result<Emitted, StepError>> {
        Box::pin(Self::step(call))
    }

    fn check(&self, _: StepIndex, call: &mut StepCall) -> Result<bool, StepError> {
        match (call.input(0), call.input(1)) {
            (begin, InputValue::Events(parts)) => Ok(number(&begin) == parts.len() as u64),
            _ => Err(StepError::permanent("nobody knows")),
        }
    }

    fn accept(&self, _: &str, data: &Value) -> Result<(), UnfitJson> {
        if data.is_u64() { Ok(()) } else { Err(UnfitJson::new("", "a number is needed")) }
    }
}

/// The table of a typed workflow, as a program builds it at run time.
fn translated(shape: &TableShape) -> RuntimeWorkflow {
    RuntimeWorkflow::new(DependencyTable::from_shape(shape).unwrap(), Translated)
}

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

//! Typed workflows of the tests as run-time workflows: the same tables, with steps that take and emit JSON. They do the same
//! (S57).

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::table::{DependencyTable, StepIndex, TableShape};
use workflow_core::{
    AnyEvent, FanOut, InputValue, JsonOutput, RunOptions, RuntimeWorkflow, StepFailed, Steps, UnfitJson,
};

/// The steps of one of these workflows, as JSON.
struct Translated {
    workflow: Arc<str>,
}

fn number(input: &InputValue<'_>) -> u64 {
    let number = input.json().and_then(Value::as_u64);
    number.unwrap_or_else(|| panic!("{input:?} is no number"))
}

fn numbers<'a>(events: impl IntoIterator<Item = &'a &'a AnyEvent>) -> u64 {
    events.into_iter().filter_map(|event| event.as_json()?.as_u64()).sum()
}

impl Translated {
    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    async fn step(self: Arc<Self>, mut call: StepCall) -> Result<Emitted, StepError> {
        let (workflow, step) = (&self.workflow, call.step().to_owned());
        let later = |seconds| Duration::from_secs(seconds);
        let first = call.input(0).json().and_then(Value::as_u64).unwrap_or(0);
        let second = call.input(1).json().and_then(Value::as_u64).unwrap_or(0);
        let (event, output): (&str, JsonOutput) = match (&**workflow, &*step) {
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
            _ => return self.other_step(call).await,
        };
        call.emit(event, output)?;
        call.commit(())
    }

    /// The steps of the workflows that no golden journal has.
    async fn other_step(self: Arc<Self>, mut call: StepCall) -> Result<Emitted, StepError> {
        let (workflow, step) = (&self.workflow, call.step().to_owned());
        let first = call.input(0).json().and_then(Value::as_u64).unwrap_or(0);
        let second = call.input(1).json().and_then(Value::as_u64).unwrap_or(0);
        let (event, output): (&str, JsonOutput) = match (&**workflow, &*step) {
            ("Reads", "split") => {
                for item in 0..first {
                    call.emit("Item", json!(item))?;
                }
                return call.commit(());
            }
            ("Reads", "double") => ("Part", json!(2 * first).into()),
            ("Reads", "look") => {
                let parts = match call.input(2) {
                    InputValue::Events(parts) => numbers(&parts),
                    InputValue::None => 0,
                    other => panic!("{other:?}"),
                };
                ("Leaf", json!(first + 10 * second + 100 * parts).into())
            }
            ("Reads", "end") => match call.input(0) {
                InputValue::Events(leaves) => ("Done", json!(numbers(&leaves)).into()),
                other => panic!("{other:?}"),
            },
            ("Trees", "open") => ("Item", (0..first).map(Value::from).collect::<FanOut<Value>>().into()),
            ("Trees", "split") => {
                let leaves = (0..=first).map(|leaf| json!(10 * first + leaf));
                ("Leaf", leaves.collect::<FanOut<Value>>().into())
            }
            ("Trees", "grow") => ("Part", json!(first + 1).into()),
            ("Trees", "sum" | "end") | ("Splits", "end") => match call.input(0) {
                InputValue::Gather(branches) => {
                    let sum: u64 = branches.iter().map(|branch| numbers(branch.events())).sum();
                    (if step == "sum" { "Sum" } else { "Done" }, json!(sum).into())
                }
                other => panic!("{other:?}"),
            },
            ("Splits", "open") => {
                let items: FanOut<Value> = (0..first).map(Value::from).collect();
                ("Item", items.wait_all().into())
            }
            ("Splits", "work") if first % 2 == 1 => return Err(StepError::tool(format!("{first} is odd"))),
            ("Splits", "work") | ("Counts" | "Delegates", "second" | "beside") => {
                ("Part", json!(first).into())
            }
            ("Splits", "instead") => match call.input(0) {
                InputValue::Event(failed) => {
                    let failed: &StepFailed = failed.downcast_ref().unwrap();
                    ("Done", json!(failed.error.len()).into())
                }
                other => panic!("{other:?}"),
            },
            ("Counts", "first") => ("Item", json!(first).into()),
            ("Counts", "count") => ("Leaf", json!(call.info().execution().0).into()),
            ("Counts", "also") => ("Sum", json!(first).into()),
            ("Counts" | "Delegates", "end") => ("Done", json!(10 * first + second).into()),
            ("Delegates", "delegate") => {
                let ended = call.children()?.run_json("Joins", "Begin", first, RunOptions::new()).await?;
                ("Item", ended.to_json().unwrap().into())
            }
            other => panic!("{other:?} has no translation"),
        };
        call.emit(event, output)?;
        call.commit(())
    }
}

impl Steps for Translated {
    fn call(self: Arc<Self>, _: StepIndex, call: StepCall) -> BoxFuture<'static, Result<Emitted, StepError>> {
        Box::pin(self.step(call))
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
pub(crate) fn translated(shape: &TableShape) -> RuntimeWorkflow {
    let steps = Translated { workflow: Arc::clone(&shape.workflow) };
    RuntimeWorkflow::new(DependencyTable::from_shape(shape).unwrap(), steps)
}

//! Orders of run-time workflows. Their steps declare no injected parameters, so the exploration watches what they ask for.

use std::collections::BTreeSet;
use std::future::Future;

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, Roles, StepCall};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
use workflow_core::{FanOut, InputValue, RunOptions, RuntimeWorkflow};
use workflow_testkit::{Runtime, Scenario, ScenarioOf, explore};

use crate::exploring::independence::outputs;
use crate::support::Research;

/// Two steps side by side, a step behind each, and a join. `tell` makes the event of both steps behind.
fn pair<T>(tell: impl Fn(StepCall) -> T + Send + Sync + Clone + 'static) -> ScenarioOf<Runtime>
where
    T: Future<Output = Result<Emitted, StepError>> + Send + 'static,
{
    let one = |step: &str, takes: &str, emits: &str| {
        StepDef::new(step).input(InputDef::one(takes)).output(OutputDef::event(emits))
    };
    let table = DependencyTable::builder("pair")
        .event(EventDef::new("Go", Roles::NONE.start()))
        .event(EventDef::new("Left", Roles::NONE))
        .event(EventDef::new("Right", Roles::NONE))
        .event(EventDef::new("LeftTold", Roles::NONE))
        .event(EventDef::new("RightTold", Roles::NONE))
        .event(EventDef::new("Both", Roles::NONE.stop()))
        .step(one("left", "Go", "Left"))
        .step(one("right", "Go", "Right"))
        .step(one("tell_left", "Left", "LeftTold").uses_context())
        .step(one("tell_right", "Right", "RightTold").uses_context())
        .step(one("both", "LeftTold", "Both").input(InputDef::one("RightTold")));
    let steps = move |mut call: StepCall| {
        let tell = tell.clone();
        async move {
            let (event, value) = match call.step() {
                "left" => ("Left", json!(1)),
                "right" => ("Right", json!(2)),
                "both" => ("Both", json!([call.input(0).json(), call.input(1).json()])),
                _ => return tell(call).await,
            };
            call.emit(event, value)?;
            call.commit(())
        }
    };
    Scenario::runtime(RuntimeWorkflow::new(table.build().unwrap(), steps))
}

fn told(mut call: StepCall, value: Value) -> Result<Emitted, StepError> {
    let event = if call.step() == "tell_left" { "LeftTold" } else { "RightTold" };
    call.emit(event, value)?;
    call.commit(())
}

fn texts<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
    texts.map(str::to_owned).into()
}

#[test]
fn steps_that_ask_for_nothing_are_reduced() {
    let scenario = || {
        let tell = |call: StepCall| async move {
            let value = call.input(0).json().cloned().unwrap_or_default();
            told(call, value)
        };
        pair(tell).start_json("Go", ())
    };
    let (reduced, every) = (explore(scenario).survey(), explore(scenario).every_order().survey());
    assert_eq!((reduced.tried(), every.tried()), (2, 6), "{reduced}; {every}");
    assert_eq!(outputs(scenario), texts(["Both [1,2]"]));
}

#[test]
fn a_step_that_sees_the_number_of_its_execution_has_every_order_that_changes_it() {
    let by_info = || {
        let tell = |call: StepCall| async move {
            let value = json!(call.info().execution().0);
            told(call, value)
        };
        pair(tell).start_json("Go", ())
    };
    let by_call = || {
        let tell = |call: StepCall| async move {
            let value = json!(call.execution().0);
            told(call, value)
        };
        pair(tell).start_json("Go", ())
    };
    let expected = texts(["Both [3,4]", "Both [4,3]"]);
    assert_eq!(outputs(by_info), expected);
    assert_eq!(outputs(by_call), expected);
}

#[test]
fn a_step_that_sees_the_positions_of_its_events_has_every_order_that_changes_them() {
    let scenario = || {
        let tell = |call: StepCall| async move {
            let key = call.info().idempotency_key();
            told(call, json!(key.rsplit('#').next()))
        };
        pair(tell).start_json("Go", ())
    };
    assert!(outputs(scenario).len() >= 2);
}

#[test]
fn a_step_whose_children_have_its_number_has_every_order_that_changes_it() {
    let scenario = || {
        let tell = |call: StepCall| async move {
            let child = call.children()?.start_json("Research", "Question", "why", RunOptions::new()).await?;
            let id = child.id().to_string();
            child.outcome_any().await?;
            told(call, json!(id))
        };
        pair(tell).host(Research).start_json("Go", ())
    };
    assert!(outputs(scenario).len() >= 2);
}

#[test]
fn a_number_in_a_context_counts_although_the_call_never_ends() {
    // The left one stores its number and waits for ever; the right one waits for that number.
    let scenario = || {
        let tell = |call: StepCall| async move {
            let context = call.run_context()?;
            if call.step() == "tell_left" {
                let number = call.execution().0;
                context.set("left", number).await?;
                tokio::time::sleep(std::time::Duration::from_hours(1)).await;
                return told(call, json!(number));
            }
            let seen = context.get::<u64>("left").await?;
            told(call, json!(seen))
        };
        pair(tell).start_json("Go", ())
    };
    let outputs = outputs(scenario);
    assert!(outputs.contains("Both [3,3]") && outputs.contains("Both [4,4]"), "{outputs:?}");
}

#[test]
fn a_step_that_sees_the_engine_has_every_order() {
    let scenario = || {
        let tell = |call: StepCall| async move {
            let run = call.engine()?.find(call.run());
            let log =
                run.ok_or_else(|| StepError::permanent("it is not here"))?.report_so_far().await?.log.len();
            told(call, json!(log))
        };
        pair(tell).start_json("Go", ())
    };
    let reduced = explore(scenario).survey();
    let every = explore(scenario).every_order().survey();
    assert_eq!(reduced.tried(), every.tried(), "{reduced}; {every}");
}

#[test]
fn numbers_of_scopes_count_where_branches_open_in_several_places() {
    let scenario = || {
        let table = DependencyTable::builder("two")
            .event(EventDef::new("Go", Roles::NONE.start()))
            .event(EventDef::new("Left", Roles::NONE))
            .event(EventDef::new("Right", Roles::NONE))
            .event(EventDef::new("LeftTold", Roles::NONE))
            .event(EventDef::new("RightTold", Roles::NONE))
            .event(EventDef::new("Both", Roles::NONE.stop()))
            .step(StepDef::new("left").input(InputDef::one("Go")).output(OutputDef::fan_out("Left")))
            .step(StepDef::new("right").input(InputDef::one("Go")).output(OutputDef::fan_out("Right")))
            .step(StepDef::new("tell_left").input(InputDef::one("Left")).output(OutputDef::event("LeftTold")))
            .step(
                StepDef::new("tell_right")
                    .input(InputDef::one("Right"))
                    .output(OutputDef::event("RightTold")),
            )
            .step(
                StepDef::new("both")
                    .input(InputDef::gather_of("Left", ["LeftTold"]))
                    .input(InputDef::gather_of("Right", ["RightTold"]))
                    .output(OutputDef::event("Both")),
            );
        let steps = |mut call: StepCall| async move {
            match call.step() {
                "left" => call.emit("Left", [json!(1)].into_iter().collect::<FanOut<Value>>())?,
                "right" => call.emit("Right", [json!(2)].into_iter().collect::<FanOut<Value>>())?,
                "both" => {
                    let told = |place| match call.input(place) {
                        InputValue::Gather(branches) => branches[0].events()[0].as_json().cloned(),
                        _ => None,
                    };
                    let told = json!([told(0), told(1)]);
                    call.emit("Both", told)?;
                }
                _ => {
                    let scope = json!(call.scope().0);
                    return told(call, scope);
                }
            }
            call.commit(())
        };
        Scenario::runtime(RuntimeWorkflow::new(table.build().unwrap(), steps)).start_json("Go", ())
    };
    assert_eq!(outputs(scenario), texts(["Both [1,2]", "Both [2,1]"]));
}

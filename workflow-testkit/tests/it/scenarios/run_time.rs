//! Scenarios of workflows that a program builds at run time.

use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::signature::{Roles, StepCall};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef, StepIndex};
use workflow_core::{InputValue, RunOptions, RunStatus, RuntimeWorkflow, SendError, Steps, UnfitJson};
use workflow_testkit::{Scenario, TestRun, Tested, explore};

use crate::support::{Answer, Question, Research, failed, failure, panic_of};

/// Approves refunds, and takes a note: data from outside are numbers.
struct Desk;

impl Steps for Desk {
    fn call(
        self: std::sync::Arc<Self>,
        _: StepIndex,
        mut call: StepCall,
    ) -> futures::future::BoxFuture<'static, Result<workflow_core::signature::Emitted, StepError>> {
        Box::pin(async move {
            let (event, value) = match call.input(0) {
                InputValue::Reply { request, reply } => {
                    let asked = request.as_json().cloned().unwrap_or_default();
                    ("Paid", json!({ "asked": asked, "granted": reply, "note": call.input(1).json() }))
                }
                begin => ("Approve", begin.json().cloned().unwrap_or_default()),
            };
            call.emit(event, value)?;
            call.commit(())
        })
    }

    fn accept(&self, _: &str, data: &Value) -> Result<(), UnfitJson> {
        if data.is_number() { Ok(()) } else { Err(UnfitJson::new("", "a number is needed")) }
    }
}

fn desk() -> RuntimeWorkflow {
    let table = DependencyTable::builder("desk")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Approve", Roles::NONE.request()))
        .event(EventDef::reply_to("Approved", "Approve"))
        .event(EventDef::new("Note", Roles::NONE.external()))
        .event(EventDef::new("Paid", Roles::NONE.stop()))
        .step(StepDef::new("ask").input(InputDef::one("Begin")).output(OutputDef::event("Approve")))
        .step(
            StepDef::new("pay")
                .input(InputDef::reply("Approved"))
                .input(InputDef::one("Note"))
                .output(OutputDef::event("Paid")),
        )
        .build();
    RuntimeWorkflow::new(table.unwrap(), Desk)
}

#[tokio::test]
async fn a_script_of_json_runs_a_workflow_that_is_built_at_run_time() {
    let an_hour = Duration::from_hours(1);
    let run = Scenario::runtime(desk())
        .reply_json_after(an_hour, "Approve", |cents| json!(cents.as_u64().unwrap() / 2))
        .send_json_after(2 * an_hour, "Note", 7)
        .start_json("Begin", 500)
        .await;
    run.assert_output(&json!({ "asked": 500, "granted": 250, "note": 7 }));
    run.assert_order("ask", "pay");
    assert_eq!(run.elapsed(), 2 * an_hour);
    assert_eq!(run.emitted_json("Approve"), [json!(500)]);
    assert_eq!(
        run.transcript(),
        "\
#1 Begin from outside: 500
x1 ask by #1: succeeded
#2 Approve of x1: 500
waits
#3 Approved to #2 from outside: 250
waits
#4 Note from outside: 7
x2 pay by #4 with #3: succeeded
#5 Paid of x2: {\"asked\":500,\"granted\":250,\"note\":7}
completed with #5
"
    );
    assert!(
        run.handle().workflow() == "desk" && run.report().quality == workflow_core::report::Quality::Clean
    );
}

#[tokio::test]
async fn a_waiting_run_is_continued_by_hand_with_json() {
    let mut run = Scenario::runtime(desk()).send_json("Note", 7).start_json("Begin", 500).await;
    run.assert_waiting();
    let asked = &run.requests()[0];
    assert_eq!((asked.name(), asked.data().unwrap()), ("Approve", json!(500)));
    let asked = asked.seq();
    let unfit = run.reply_json(asked, json!("yes")).await.unwrap_err();
    assert!(matches!(unfit, SendError::UnfitReply { .. }), "{unfit}");
    let unknown = run.send_json("Noet", 1).await.unwrap_err();
    assert!(matches!(unknown, SendError::UnknownEvent { .. }), "{unknown}");
    run.reply_json(asked, json!(1)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Completed);
    run.assert_output(&json!({ "asked": 500, "granted": 1, "note": 7 }));
    assert!(matches!(run.send_json("Note", 8).await, Err(SendError::Ended { .. })));
}

#[tokio::test]
async fn names_that_the_workflow_does_not_have_fail_at_the_line_that_gives_them() {
    let external = panic_of(|| drop(Scenario::runtime(desk()).send_json("Noet", 1)));
    assert_eq!(external, "`desk` has no external event `Noet`: it has [Note]");
    let request = panic_of(|| drop(Scenario::runtime(desk()).reply_json("Note", Value::clone)));
    assert_eq!(request, "`desk` has no request `Note`: it has [Approve]");
    let start = panic_of(|| drop(Scenario::runtime(desk()).start_json("Start", 1)));
    assert_eq!(start, "`desk` has no start event `Start`: it has [Begin]");
    let step =
        panic_of(|| drop(Scenario::runtime(desk()).fail_first("play", 1, || StepError::transient(""))));
    assert_eq!(step, "`desk` has no step `play`: did you mean `pay`?");
    let run = Scenario::runtime(desk()).start_json("Begin", 500).await;
    let emitted = panic_of(|| run.emitted_json("Refunded"));
    assert!(emitted.starts_with("`desk` has no event `Refunded`: it has [Begin, Approve, "), "{emitted}");
    assert!(
        failed(&run, |run| run.assert_executions("play", 1)).starts_with("`desk` has no step `play`: did")
    );
}

#[tokio::test]
async fn data_that_the_workflow_refuses_fail_the_scenario() {
    let start = failure(Scenario::runtime(desk()).start_json("Begin", "five")).await;
    assert_eq!(start, "`Begin` cannot be read: a number is needed");
    let sent = failure(Scenario::runtime(desk()).send_json("Note", "seven").start_json("Begin", 5)).await;
    let refused = "the run refuses what the script sends: `Note` cannot be read: a number is needed\n";
    assert!(sent.starts_with(refused), "{sent}");
    let timed = Scenario::runtime(desk()).send_json_after(Duration::ZERO, "Note", "seven");
    let timed = failure(timed.start_json("Begin", 5)).await;
    assert!(timed.starts_with(refused), "{timed}");
    let replied = Scenario::runtime(desk()).reply_json("Approve", |_| json!(true)).start_json("Begin", 5);
    let replied = failure(replied).await;
    assert!(replied.starts_with("the run refuses what the script sends: "), "{replied}");
}

#[test]
fn data_that_the_workflow_refuses_fail_an_exploration() {
    let scenario = || Scenario::runtime(desk()).send_json("Note", "seven").start_json("Begin", 5);
    let refused = panic_of(|| explore(scenario).survey());
    assert!(refused.contains("the run refuses what the script sends: `Note` cannot be read"), "{refused}");
    let refused = panic_of(|| explore(scenario).durable().survey());
    assert!(refused.contains("the run refuses what the script sends: `Note` cannot be read"), "{refused}");
}

#[tokio::test]
async fn the_first_calls_of_a_step_fail_in_workflows_of_both_kinds() {
    let busy = Scenario::runtime(desk()).fail_first("ask", 2, || StepError::transient("busy"));
    let run = busy.start_json("Begin", 500).await;
    assert_eq!(run.report().trace[0].attempts.len(), 2);
    run.assert_executions("ask", 1);
}

/// Runs the child `name` with the data of its own start event.
fn delegate(name: &'static str) -> RuntimeWorkflow {
    let table = DependencyTable::builder("delegate")
        .event(EventDef::new("Go", Roles::NONE.start()))
        .event(EventDef::new("Came", Roles::NONE.stop()))
        .step(StepDef::new("call").input(InputDef::one("Go")).output(OutputDef::event("Came")));
    RuntimeWorkflow::new(table.build().unwrap(), move |mut call: StepCall| async move {
        let data = call.input(0).json().cloned().unwrap_or_default();
        let child = call.children()?.run_json(name, "Question", data, RunOptions::new()).await?;
        call.emit("Came", child.to_json()?)?;
        call.commit(())
    })
}

fn came<T: Tested<Output = Value>>(run: &TestRun<T>) -> &Value {
    run.outcome().unwrap()
}

#[tokio::test]
async fn a_run_time_parent_runs_typed_children_under_their_names() {
    let run = Scenario::runtime(delegate("Research")).host(Research).start_json("Go", "why").await;
    assert_eq!(came(&run), &json!("why, 3 points"));
    let run = Scenario::runtime(delegate("other")).host(Research).host_named("other", Research);
    let run = run.start_json("Go", "why").await;
    assert_eq!(came(&run), &json!("why, 3 points"));
    assert_eq!(&*run.report().children[0].child.workflow, "other");
}

/// Runs the child `delegate`.
struct Parent;

#[workflow]
impl Parent {
    #[step]
    async fn call(&self, question: &Question, children: &Children) -> Result<Answer, StepError> {
        let came = children.run_json("delegate", "Go", question.0.as_str(), RunOptions::new()).await?;
        Ok(Answer(serde_json::from_value(came.to_json()?)?))
    }
}

#[tokio::test]
async fn a_typed_parent_runs_run_time_children_which_run_typed_ones() {
    let scenario = Scenario::new(Parent).host_runtime(delegate("Research")).host(Research);
    let run = scenario.start(Question("why".into())).await;
    run.assert_output(&Answer("why, 3 points".into()));
    assert_eq!(run.transcript().matches("delegate").count(), 1, "{}", run.transcript());
}

#[tokio::test]
async fn a_typed_workflow_takes_json_too() {
    let run = Scenario::new(Research).start(Question("why".into())).await;
    assert_eq!(run.emitted_json("Outline"), [json!({ "points": 3 })]);
    let external = panic_of(|| drop(Scenario::new(Research).send_json("Note", 1)));
    assert_eq!(external, "`Research` has no external event `Note`: it has []");
}

#[tokio::test]
async fn a_failed_assertion_prints_the_picture_of_a_run_time_workflow() {
    let run = Scenario::runtime(desk()).draw_on_panic().start_json("Begin", 500).await;
    let text = failed(&run, |run| run.assert_executions("pay", 1));
    assert!(text.contains("```mermaid\n") && text.contains("pay"), "{text}");
}

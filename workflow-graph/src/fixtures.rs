//! Runs for tests: tables by hand, whose steps leave the events that a walk leaves, as a script says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use workflow_core::observe::Observer;
use workflow_core::report::RunReport;
use workflow_core::signature::{Roles, StepCall};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
use workflow_core::{AnyRun, Engine, FanOut, Retries, RetryPolicy, RunOptions, RuntimeWorkflow, StepError};

use crate::Document;
use crate::document::model::Graph;

/// An output of a step.
pub(crate) enum Out {
    Event(&'static str, Value),
    Items(&'static str, Vec<Value>),
}

/// The outputs of the call of this number, from 1, of this step.
pub(crate) type Script = fn(&str, u32) -> Result<Vec<Out>, StepError>;

/// A result of the visit of this number.
#[expect(clippy::needless_pass_by_value, reason = "literals read better")]
pub(crate) fn result(node: &'static str, visit: u32, data: Value) -> Out {
    Out::Event(node, json!({"data": data, "visit": visit}))
}

/// A token with this reason.
pub(crate) fn token(route: &'static str, reason: &str) -> Out {
    Out::Event(route, json!({"reason": reason}))
}

pub(crate) fn output(at: &str) -> Out {
    Out::Event("graph.output", json!({"status": "completed", "at": at, "output": null}))
}

/// A desk that asks a person about large refunds.
pub(crate) const DESK: &str = "
graph: desk
input: {type: object, properties: {cents: {type: integer}, limit: {type: integer, default: 900}}}
vars: {tries: 0}
nodes:
  look_up:
    function: orders.find
    set: {tries: '${ vars.tries + 1 }'}
    on_failure: refuse
    next: [{when: input.cents > input.limit, to: approve, id: large}, {to: look_up, when: vars.tries < 2, max: 3}, {to: pay}]
  approve:
    human: {ask: Refund it?, reply: {type: object, properties: {granted: {type: boolean}}, required: [granted]}}
    next: [{when: approve.granted, to: pay}, {to: refuse}]
  pay: {function: bank.pay}
  refuse: {value: no}
";

/// Two branches, of which one may fail, and a join.
pub(crate) const CHECKS: &str = "
graph: checks
nodes:
  collect: {function: changes.collect, next: {parallel: [scan, test, {to: audit, when: collect.auth}], join: decide, failures: wait_all}}
  scan: {function: scan, retry: none, next: decide}
  test: {function: test, next: decide}
  audit: {function: audit, next: decide}
  decide: {value: '${ joined.failed }'}
";

/// The first graph of a document.
pub(crate) fn document(text: &str) -> Document {
    Document::parse(text, "g.yaml").unwrap()
}

pub(crate) fn graph(document: &Document) -> &Graph {
    &document.graphs()[0]
}

fn desk() -> DependencyTable {
    let plain = ["look_up", "approve", "pay", "refuse", "vars.tries"];
    let tokens = [
        "look_up->look_up",
        "look_up->approve",
        "look_up->pay",
        "look_up->refuse",
        "approve->pay",
        "approve->refuse",
    ];
    let mut table = DependencyTable::builder("desk")
        .event(EventDef::new("graph.input", Roles::NONE.start()))
        .event(EventDef::new("graph.output", Roles::NONE.stop()))
        .event(EventDef::failure("graph.failure"))
        .event(EventDef::new("approve:ask", Roles::NONE.request()))
        .event(EventDef::reply_to("approve:answer", "approve:ask"));
    for name in plain.into_iter().chain(tokens) {
        table = table.event(EventDef::new(name, Roles::NONE));
    }
    let look_up = StepDef::new("look_up").input(InputDef::one_of(["graph.input", "look_up->look_up"]));
    let outputs = ["look_up", "vars.tries", "look_up->look_up", "look_up->approve", "look_up->pay"];
    let look_up = outputs.into_iter().fold(look_up, |step, name| step.output(OutputDef::optional(name)));
    let retries = RetryPolicy::none()
        .on(workflow_core::ErrorClass::Transient, Retries::fixed(2, std::time::Duration::ZERO));
    table
        .step(look_up.retry(retries))
        .step(
            StepDef::new("look_up:caught")
                .input(InputDef::one("graph.failure"))
                .catches(["look_up"])
                .output(OutputDef::event("look_up"))
                .output(OutputDef::event("look_up->refuse")),
        )
        .step(
            StepDef::new("approve")
                .input(InputDef::one("look_up->approve"))
                .output(OutputDef::event("approve:ask")),
        )
        .step(
            StepDef::new("approve:reply")
                .input(InputDef::reply("approve:answer"))
                .output(OutputDef::event("approve"))
                .output(OutputDef::optional("approve->pay"))
                .output(OutputDef::optional("approve->refuse")),
        )
        .step(
            StepDef::new("pay")
                .input(InputDef::one_of(["look_up->pay", "approve->pay"]))
                .output(OutputDef::event("pay"))
                .output(OutputDef::event("graph.output")),
        )
        .step(
            StepDef::new("refuse")
                .input(InputDef::one_of(["look_up->refuse", "approve->refuse"]))
                .output(OutputDef::event("refuse"))
                .output(OutputDef::event("graph.output")),
        )
        .build_unchecked()
        .unwrap()
}

fn checks() -> DependencyTable {
    let mut table = DependencyTable::builder("checks")
        .event(EventDef::new("graph.input", Roles::NONE.start()))
        .event(EventDef::new("graph.output", Roles::NONE.stop()));
    let nodes = ["collect", "scan", "test", "audit", "decide", "collect:item", "collect:joined"];
    let tokens =
        ["collect=>scan", "collect=>test", "collect=>audit", "scan->decide", "test->decide", "audit->decide"];
    for name in nodes.into_iter().chain(tokens) {
        table = table.event(EventDef::new(name, Roles::NONE));
    }
    let branch = ["collect=>scan", "collect=>test", "collect=>audit"]
        .into_iter()
        .fold(StepDef::new("collect:branch").input(InputDef::one("collect:item")), |step, name| {
            step.output(OutputDef::optional(name))
        });
    table = table
        .step(
            StepDef::new("collect")
                .input(InputDef::one("graph.input"))
                .output(OutputDef::event("collect"))
                .output(OutputDef::fan_out("collect:item")),
        )
        .step(branch);
    for (node, from, to) in [
        ("scan", "collect=>scan", "scan->decide"),
        ("test", "collect=>test", "test->decide"),
        ("audit", "collect=>audit", "audit->decide"),
    ] {
        let step = StepDef::new(node).input(InputDef::one(from)).retry(RetryPolicy::none());
        table = table.step(step.output(OutputDef::event(node)).output(OutputDef::event(to)));
    }
    table
        .step(
            StepDef::new("collect:join")
                .input(InputDef::gather_of("collect:item", ["scan", "test", "audit"]))
                .output(OutputDef::many("scan"))
                .output(OutputDef::many("test"))
                .output(OutputDef::event("collect:joined")),
        )
        .step(
            StepDef::new("decide")
                .input(InputDef::one("collect:joined"))
                .output(OutputDef::event("decide"))
                .output(OutputDef::event("graph.output")),
        )
        .build()
        .unwrap()
}

/// Starts a run of [`DESK`] or [`CHECKS`] with an observer, if there is one.
pub(crate) async fn start(
    name: &str,
    input: Value,
    script: Script,
    observer: Option<Box<dyn Observer>>,
) -> AnyRun {
    let table = if name == "desk" { desk() } else { checks() };
    let calls: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
    let workflow = RuntimeWorkflow::new(table, move |mut call: StepCall| {
        let calls = Arc::clone(&calls);
        async move {
            let step = call.step().to_owned();
            let number = {
                let mut calls = calls.lock().unwrap();
                let number = calls.entry(step.clone()).or_default();
                *number += 1;
                // A branch has calls of its own kind by its item.
                let item = call.input(0).json().and_then(|item| item["to"].as_str().map(str::to_owned));
                item.map_or(*number, |to| u32::from(to == "test") + 1)
            };
            for out in script(&step, number)? {
                match out {
                    Out::Event(name, value) => call.emit(name, value)?,
                    Out::Items(name, items) => {
                        call.emit(name, items.into_iter().collect::<FanOut<Value>>().continue_others())?;
                    }
                }
            }
            call.commit(())
        }
    });
    let mut engine = Engine::builder().workflows([workflow]);
    if let Some(observer) = observer {
        engine = engine.observer(Boxed(observer));
    }
    let engine = engine.build().unwrap();
    engine
        .start_json(name, "graph.input", json!({"input": input}), RunOptions::new().id("run-1"))
        .await
        .unwrap()
}

struct Boxed(Box<dyn Observer>);

impl Observer for Boxed {
    fn observe(&self, observation: &workflow_core::observe::Observation) {
        self.0.observe(observation);
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

/// The report of a run that has ended, or waits.
pub(crate) async fn report(run: &AnyRun) -> Arc<RunReport> {
    run.settled().await;
    run.report_so_far().await.unwrap()
}

/// Small refunds are paid on the second look; large ones are asked about.
pub(crate) fn at_desk(step: &str, call: u32) -> Result<Vec<Out>, StepError> {
    Ok(match (step, call) {
        ("look_up", 1) => return Err(StepError::transient("busy")),
        ("look_up", 2) => vec![
            result("look_up", 1, json!({"paid": 5})),
            Out::Event("vars.tries", json!(1)),
            token("look_up->look_up", "vars.tries < 2"),
        ],
        ("look_up", _) => vec![
            result("look_up", 2, json!({"paid": 6})),
            Out::Event("vars.tries", json!(2)),
            token("look_up->pay", "default"),
        ],
        _ => vec![result("pay", 1, json!({})), output("pay")],
    })
}

/// The desk asks a person.
#[expect(clippy::unnecessary_wraps, reason = "scripts may fail")]
pub(crate) fn at_gate(step: &str, _: u32) -> Result<Vec<Out>, StepError> {
    Ok(match step {
        "look_up" => vec![
            result("look_up", 1, json!({"paid": 5})),
            Out::Event("vars.tries", json!(1)),
            token("look_up->approve", "input.cents > input.limit"),
        ],
        "approve" => vec![Out::Event("approve:ask", json!({"text": "Refund it?"}))],
        "approve:reply" => {
            vec![result("approve", 1, json!({"granted": false})), token("approve->refuse", "default")]
        }
        _ => vec![result("refuse", 1, json!("no")), output("refuse")],
    })
}

/// The look-up fails for good, and the failure leads to the refusal.
pub(crate) fn caught(step: &str, _: u32) -> Result<Vec<Out>, StepError> {
    Ok(match step {
        "look_up" => return Err(StepError::permanent("no such order")),
        "look_up:caught" => {
            let error = json!({"message": "no such order", "class": "permanent", "node": "look_up"});
            vec![
                Out::Event("look_up", json!({"status": "failed", "visit": 1, "error": error})),
                Out::Event("look_up->refuse", json!({"reason": "on failure", "error": error})),
            ]
        }
        _ => vec![result("refuse", 1, json!("no")), output("refuse")],
    })
}

/// Two branches open, and `scan` fails in its own.
pub(crate) fn in_branches(step: &str, call: u32) -> Result<Vec<Out>, StepError> {
    let item = |to: &str| json!({"to": to, "reason": "parallel"});
    Ok(match (step, call) {
        ("collect", _) => vec![
            result("collect", 1, json!({"auth": false})),
            Out::Items("collect:item", vec![item("scan"), item("test")]),
        ],
        ("collect:branch", 1) => vec![token("collect=>scan", "parallel")],
        ("collect:branch", _) => vec![token("collect=>test", "parallel")],
        ("scan", _) => return Err(StepError::permanent("red")),
        ("test", _) => vec![result("test", 1, json!({})), token("test->decide", "only path")],
        ("collect:join", _) => vec![
            result("test", 1, json!({})),
            Out::Event(
                "collect:joined",
                json!({"failed": 1, "branches": [
                    {"to": "scan", "status": "failed"}, {"to": "test", "status": "arrived"},
                ]}),
            ),
        ],
        _ => vec![result("decide", 1, json!(1)), output("decide")],
    })
}

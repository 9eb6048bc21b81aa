//! The loop in every order of arrivals, and after every crash.

use std::sync::{Arc, Mutex};

use serde_json::json;
use workflow_agent::model::{Message, ModelRequest, ScriptedModel, ScriptedReply, Usage};
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;
use workflow_agent::{ApproveTool, Decision, Steer};
use workflow_core::store::MemoryStore;
use workflow_testkit::{Scenario, Start, TestRun, crash_everywhere, explore};

use crate::parts::{Calls, City, answered, assert_paired, call, visit, weather};

fn rounds(request: &ModelRequest) -> usize {
    request.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count()
}

/// Checks the invariant of each request and that it begins with the one before, and replies by the rounds before.
fn checked(reply: impl Fn(usize) -> ScriptedReply + Send + Sync + 'static) -> ScriptedModel {
    let before: Mutex<Vec<Message>> = Mutex::default();
    ScriptedModel::respond(move |request| {
        assert_paired(request);
        let mut before = before.lock().unwrap();
        assert!(
            request.messages.starts_with(&before),
            "{:#?} does not begin with {before:#?}",
            request.messages
        );
        before.clone_from(&request.messages);
        reply(rounds(request)).usage(Usage::new(10, 1))
    })
}

/// A researcher that answers at once.
fn researcher() -> Agent {
    let model = checked(|_| ScriptedReply::text("found"));
    Agent::builder("researcher").identity("You help.").model(model).build().unwrap()
}

fn approving(_: &ApproveTool) -> Decision {
    Decision::Approve
}

/// A steer may arrive at any time: the calls of each turn run, and the answer comes.
fn steered() -> Start<Agent> {
    let calls = Calls::default();
    let model = checked(|rounds| match rounds {
        0 => call("1", "visit", "A").and_call("2", "weather", json!({"city": "B"})),
        _ => ScriptedReply::text("done"),
    });
    let agent =
        Agent::builder("Agent").model(model).tool(visit(&calls).approval(Approval::Always)).tool(weather());
    Scenario::new(agent.build().unwrap()).reply(approving).send(Steer::new("hurry")).start(Prompt::new("go"))
}

/// The approval is given, or expires.
fn is_right(run: &TestRun<Agent>, calls: usize) -> bool {
    let decided = run.executions("act") + run.executions("unanswered") == 1;
    let is_whole = run.executions("dispatch") == 1 && run.executions("read") == 1;
    let results = run.report().log.iter().filter(|logged| &*logged.event == "agent.tool_result").count();
    decided && is_whole && results == calls && run.executions("failed") == 0 && answered(run) == "done"
}

/// A2, A6, A12, A20, A41
#[test]
fn two_tools_an_approval_and_a_steer_end_well_in_every_order() {
    let explored = explore(steered).orders(300).assert(|run| is_right(run, 2));
    assert!(explored.tried() > 10, "{explored}");
}

/// A2, A6, A24, A30
#[test]
fn three_tools_with_an_approval_and_a_sub_agent_end_well_in_every_order() {
    let explored = explore(|| {
        let calls = Calls::default();
        let model = checked(|rounds| match rounds {
            0 => call("1", "visit", "A").and_call("2", "weather", json!({"city": "B"})).and_call(
                "3",
                "spawn_sub_agent",
                json!({"tasks": [{"agent": "researcher", "task": "look"}]}),
            ),
            _ => ScriptedReply::text("done"),
        });
        let agent = Agent::builder("Agent").model(model).tool(weather()).sub_agent(researcher());
        let agent = agent.tool(visit(&calls).approval(Approval::Always)).build().unwrap();
        let scenario = Scenario::new(agent).host_named("Agent.researcher", researcher());
        scenario.reply(approving).send(Steer::new("hurry")).start(Prompt::new("go"))
    });
    let explored = explored.orders(200).assert(|run| is_right(run, 3));
    assert!(explored.tried() > 10, "{explored}");
}

/// The calls outside of the run, over all processes of a crash test.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<Called>>>);

#[derive(Default)]
struct Called {
    /// The rounds that each request to the model had.
    model: Vec<usize>,
    /// The idempotency keys of the calls that act.
    visits: Vec<String>,
}

impl Ledger {
    /// Each crash test begins with a new store.
    fn store(&self) -> impl Fn() -> MemoryStore + Send + 'static + use<> {
        let ledger = self.clone();
        move || {
            ledger.0.lock().unwrap().push(Called::default());
            MemoryStore::default()
        }
    }

    fn add(&self, add: impl FnOnce(&mut Called)) {
        if let Some(called) = self.0.lock().unwrap().last_mut() {
            add(called);
        }
    }
}

/// A1, A6, A14, A15, A24
#[tokio::test]
async fn a_loop_that_is_killed_at_any_write_answers_the_same_acts_once_at_most_and_repeats_no_committed_reply()
 {
    let ledger = Ledger::default();
    let seen = ledger.clone();
    let crashes = crash_everywhere(move |store| {
        let (of_model, of_tool) = (seen.clone(), seen.clone());
        let model = checked(move |rounds| {
            of_model.add(|called| called.model.push(rounds));
            match rounds {
                0 => call("1", "weather", "A"),
                1 => call("2", "visit", "B"),
                _ => ScriptedReply::text("done"),
            }
        });
        let visit = FnTool::new("visit", "Acts.", move |_: City, context: ToolContext| {
            of_tool.add(|called| called.visits.push(context.idempotency_key().to_owned()));
            async move { Ok::<_, ToolError>("visited") }
        });
        let agent =
            Agent::builder("Agent").model(model).tool(weather()).tool(visit.approval(Approval::Always));
        let scenario = Scenario::new(agent.build().unwrap()).engine(|engine| engine.store(store));
        scenario.reply(approving).start(Prompt::new("go"))
    });
    let crashes = crashes.on(ledger.store()).pairs(20).comparing_outcomes().assert(|run| {
        let entries = run.report().log.iter().filter(|logged| &*logged.event == "agent.entry").count();
        answered(run) == "done" && run.executions("think") == 3 && entries == 6
    });
    let survived = crashes.await;
    assert!(survived.once() > 10, "{survived}");
    let tests = ledger.0.lock().unwrap();
    assert!(tests.len() > 10 && tests.iter().any(|called| called.visits.len() == 1));
    for Called { model, visits } in tests.iter() {
        assert!(visits.len() <= 1, "{visits:?}");
        // A request has all replies that were committed before, so a call is repeated only without its reply.
        assert!(model.is_sorted() && model.len() <= 3 + 2, "{model:?}");
    }
}

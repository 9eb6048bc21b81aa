//! Sub-agents: their runs, tools and budgets, their results, people, restarts.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use workflow_agent::model::{
    Finish, ModelError, ModelReply, ModelRequest, Part, ScriptedModel, ScriptedReply, ToolUse, Usage,
};
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;
use workflow_agent::{AgentBuilder, Aggregation};
use workflow_core::RunOptions;
use workflow_testkit::{Scenario, ScenarioOf};

mod aggregations;
mod bounds;
mod people;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

fn tool(name: &str) -> FnTool {
    FnTool::new(name.to_owned(), "Does it.", |_: NoArguments, _| async {
        Ok::<_, ToolError>("ok".to_owned())
    })
}

/// An agent whose model replies by the text of its task.
fn by_task(name: &str, reply: impl Fn(&str) -> ScriptedReply + Send + Sync + 'static) -> Agent {
    let model = ScriptedModel::respond(move |request| reply(&request.messages[0].text()));
    Agent::builder(name).identity("You help.").model(model).build().unwrap()
}

/// An agent whose model spawns these tasks, and then answers with the result of the call.
fn spawning(name: &str, tasks: impl IntoIterator<Item = Value>) -> (AgentBuilder, ScriptedModel) {
    let tasks = json!({ "tasks": tasks.into_iter().collect::<Vec<_>>() });
    let model = ScriptedModel::respond(move |request| match request.messages.len() {
        1 if request.tools.is_empty() => ScriptedReply::text("a summary"),
        1 => ScriptedReply::call("1", "spawn_sub_agent", tasks.clone()),
        _ => ScriptedReply::text(request.messages.last().unwrap().text()),
    });
    (Agent::builder(name).identity("You lead.").model(model.clone()), model)
}

fn to(agent: &str, task: &str) -> Value {
    json!({ "agent": agent, "task": task })
}

/// An agent in a scenario, where it has the name of its type.
fn scenario(agent: &Agent, below: impl IntoIterator<Item = (&'static str, Agent)>) -> ScenarioOf<Agent> {
    let host = |scenario: ScenarioOf<Agent>, (path, agent): (&str, Agent)| {
        scenario.host_named(format!("Agent.{path}"), agent)
    };
    below.into_iter().fold(Scenario::new(agent.clone()), host)
}

/// The result of the only call of a run.
fn result(run: &workflow_testkit::TestRun<Agent>) -> (String, bool) {
    let results = run.report().log.iter().filter_map(|logged| {
        let done = logged.value.downcast::<workflow_agent::entry::ToolDone>()?;
        Some((done.text.to_string(), done.is_error))
    });
    let results: Vec<_> = results.collect();
    assert_eq!(results.len(), 1, "{results:?}");
    results.into_iter().next().unwrap()
}

/// A30
#[tokio::test]
async fn an_unknown_agent_among_the_tasks_is_an_error_result_and_begins_no_run() {
    let (top, _) = spawning("top", [to("helper", "a"), to("nobody", "b")]);
    let helper = by_task("helper", |_| ScriptedReply::text("done"));
    let top = top
        .sub_agent(helper.clone())
        .sub_agent(by_task("other", |_| ScriptedReply::text("")))
        .build()
        .unwrap();
    let run = scenario(&top, [("helper", helper)]).start(Prompt::new("Go.")).await;
    let (text, is_error) = result(&run);
    assert_eq!(text, "there is no agent `nobody`, and no task was begun; agents: helper, other");
    assert!(is_error && run.report().children.is_empty());
}

/// A30, A10
#[tokio::test]
async fn a_call_has_one_to_eight_tasks() {
    for (count, is_error) in [(0, true), (1, false), (8, false), (9, true)] {
        let (top, _) = spawning("top", (0..count).map(|_| to("helper", "a")));
        let helper = by_task("helper", |_| ScriptedReply::text("done"));
        let top = top.sub_agent(helper.clone()).build().unwrap();
        let run = scenario(&top, [("helper", helper)]).start(Prompt::new("Go.")).await;
        assert_eq!(result(&run).1, is_error, "{count}");
        assert_eq!(run.report().children.len(), if is_error { 0 } else { count });
    }
}

/// A30
#[tokio::test]
async fn a_sub_agent_sees_its_task_alone_and_its_own_tools_that_grant_and_task_allow() {
    let names = |request: &ModelRequest| -> Vec<String> {
        request.tools.iter().map(|tool| tool.name().to_owned()).collect()
    };
    let wanted = json!({ "agent": "helper", "task": "with two", "tools": ["b", "c", "of_top", "nothing"] });
    let none = json!({ "agent": "helper", "task": "with none", "tools": [] });
    let (top, _) = spawning("top", [to("helper", "with all"), wanted, none]);
    let model = ScriptedModel::respond(|_| ScriptedReply::text("done"));
    let helper =
        Agent::builder("helper").model(model.clone()).tool(tool("a")).tool(tool("b")).tool(tool("c"));
    let helper = helper.identity("You help.").build().unwrap();
    let top = top.tool(tool("of_top")).sub_agent_with(helper, ["a", "b"]).build().unwrap();
    top.ask("A secret plan.").await.unwrap();
    for (task, tools) in [("with all", &["a", "b"][..]), ("with two", &["b"]), ("with none", &[])] {
        let requests = model.requests();
        let request = requests.iter().find(|request| request.messages[0].text() == task).unwrap();
        assert_eq!(
            (names(request), request.messages.len()),
            (tools.iter().map(ToString::to_string).collect(), 1)
        );
        assert_eq!(&*request.system, "You help.");
    }
}

/// A30, A11
#[tokio::test]
async fn a_tool_that_the_grant_leaves_out_does_not_run() {
    let (top, _) = spawning("top", [to("helper", "Go.")]);
    let ran = Arc::new(Mutex::new(false));
    let flag = Arc::clone(&ran);
    let secret = FnTool::new("secret", "Does it.", move |_: NoArguments, _| {
        *flag.lock().unwrap() = true;
        async { Ok::<_, ToolError>("ok".to_owned()) }
    });
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "secret", json!({})),
        _ => ScriptedReply::text(request.messages.last().unwrap().text()),
    });
    let helper = Agent::builder("helper").identity("You help.").model(model);
    let helper = helper.tool(secret).tool(tool("a")).build().unwrap();
    let top = top.sub_agent_with(helper, ["a"]).build().unwrap();
    let answer = top.ask("Go.").await.unwrap();
    assert!(answer.text.contains("there is no tool `secret` here; allowed tools: a"), "{}", answer.text);
    assert!(!*ran.lock().unwrap());
}

/// A33
#[tokio::test]
async fn the_usage_of_sub_agents_is_the_parents_that_of_stopped_ones_and_of_deeper_ones_too() {
    let leaf = by_task("leaf", |_| ScriptedReply::text("done").usage(Usage::new(1_000, 0)));
    let stopping = by_task("stopping", |_| {
        ScriptedReply::text("half").finish(workflow_agent::model::Finish::Length).usage(Usage::new(10_000, 0))
    });
    let (middle, _) = spawning("middle", [to("leaf", "a")]);
    let middle = middle.sub_agent(leaf).build().unwrap();
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call(
            "1",
            "spawn_sub_agent",
            json!({ "tasks": [to("middle", "a"), to("stopping", "b")] }),
        )
        .usage(Usage::new(100_000, 0)),
        _ => ScriptedReply::text("done").usage(Usage::new(100_000, 0)),
    });
    let top = Agent::builder("top").model(model).sub_agent(middle).sub_agent(stopping).build().unwrap();
    let answer = top.ask("Go.").await.unwrap();
    let usage = answer.usage.input;
    // The calls of `middle` report nothing, and their estimates are small.
    assert!((211_000..215_000).contains(&usage), "{usage}");
    let cost = answer.cost * 1_000_000.0;
    let tokens = f64::from(u32::try_from(answer.usage.tokens()).unwrap());
    assert!((cost - tokens).abs() < 1.0, "{cost}: the price is 1 for a million tokens");
}

/// A33, A60
#[tokio::test]
async fn a_sub_agent_gets_at_most_what_its_parent_has_left() {
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let turns = |most: usize| {
        let prompts = Arc::clone(&prompts);
        ScriptedModel::respond(move |request| {
            prompts.lock().unwrap().push(request.messages.len());
            if request.messages.len() / 2 < most {
                return ScriptedReply::call("x", "work", json!({})).usage(Usage::new(100, 0));
            }
            ScriptedReply::text("done").usage(Usage::new(100, 0))
        })
    };
    let helper = Agent::builder("helper").identity("You help.").model(turns(40)).tool(tool("work"));
    let helper = helper.repeats(None).build().unwrap();
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "spawn_sub_agent", json!({ "tasks": [to("helper", "a")] }))
            .usage(Usage::new(400, 0)),
        _ => ScriptedReply::text("done"),
    });
    let top = Agent::builder("top").model(model).sub_agent(helper.clone()).budget(Budget::tokens(1_000));
    let top = top.build().unwrap();
    let run = scenario(&top, [("helper", helper)]).start(Prompt::new("Go.")).await;
    let (text, is_error) = result(&run);
    assert!(is_error && text.contains("the budget is used up after 600 tokens"), "{text}");
    assert_eq!(prompts.lock().unwrap().len(), 6);
    // 400 and 600 are all that the parent had.
    let Outcome::Stopped(stopped) = run.outcome().unwrap() else { panic!() };
    assert!(matches!(stopped.reason, StopReason::Budget { tokens: 1_000, .. }), "{}", stopped.reason);
}

/// A33, A60
#[tokio::test]
async fn the_tasks_of_a_reply_share_what_their_parent_has_left() {
    let endless = |_: &_| ScriptedReply::call("x", "work", json!({})).usage(Usage::new(100, 0));
    let helper = Agent::builder("helper").identity("You help.").model(ScriptedModel::respond(endless));
    let helper = helper.tool(tool("work"));
    let helper = helper.repeats(None).build().unwrap();
    let call = |id: &str, tasks: &[&str]| {
        let tasks: Vec<Value> = tasks.iter().map(|task| to("helper", task)).collect();
        Part::Call(ToolUse::new(id, "spawn_sub_agent", json!({ "tasks": tasks })))
    };
    let model = ScriptedModel::respond(move |request| match request.messages.len() {
        1 => ScriptedReply::reply(
            ModelReply::new(vec![call("1", &["a", "b", "c"]), call("2", &["d"])], Finish::ToolUse)
                .usage(Usage::new(200, 0)),
        ),
        _ => ScriptedReply::text("done"),
    });
    let top = Agent::builder("top").model(model).sub_agent(helper.clone()).budget(Budget::tokens(1_000));
    let run = scenario(&top.build().unwrap(), [("helper", helper)]).start(Prompt::new("Go.")).await;
    let texts: Vec<String> = run.emitted_json("agent.tool_result").iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2);
    for (text, tasks) in texts.iter().zip([3, 1]) {
        assert_eq!(text.matches("the budget is used up after 200 tokens").count(), tasks, "{text}");
    }
    // All tasks together have used what the parent had left.
    let Outcome::Stopped(stopped) = run.outcome().unwrap() else { panic!() };
    assert!(matches!(stopped.reason, StopReason::Budget { tokens: 1_000, .. }), "{}", stopped.reason);
}

/// A33, A60
#[tokio::test]
async fn the_tool_calls_of_sub_agents_are_the_parents() {
    let calls = Arc::new(Mutex::new(0_usize));
    let counted = Arc::clone(&calls);
    let work = FnTool::new("work", "Works.", move |_: NoArguments, _| {
        *counted.lock().unwrap() += 1;
        async { Ok::<_, ToolError>("ok".to_owned()) }
    });
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "work", json!({})).and_call("2", "work", json!({})),
        _ => ScriptedReply::text("done"),
    });
    let helper = Agent::builder("helper").identity("You help.").model(model).tool(work).build().unwrap();
    let model = ScriptedModel::respond(move |request| match request.messages.len() {
        length @ (1 | 3 | 5) => ScriptedReply::call(
            &format!("s{length}"),
            "spawn_sub_agent",
            json!({ "tasks": [to("helper", "a")] }),
        ),
        _ => ScriptedReply::text("done"),
    });
    let top = Agent::builder("top").model(model).sub_agent(helper.clone()).repeats(None).build().unwrap();
    let prompt = Prompt::new("Go.").budget(Budget::unlimited().tool_calls(4));
    let run = scenario(&top, [("helper", helper)]).start(prompt).await;
    // The first task makes two calls. The second one has none left, and no third one begins.
    assert_eq!(*calls.lock().unwrap(), 2);
    let outcome = run.outcome().unwrap();
    assert_eq!(outcome.tool_calls(), 4, "{outcome:?}");
    let Outcome::Stopped(stopped) = outcome else { panic!() };
    assert!(matches!(stopped.reason, StopReason::Budget { tool_calls: 4, .. }), "{}", stopped.reason);
}

/// A30
#[tokio::test]
async fn a_sub_agent_that_the_engine_does_not_host_ends_the_run_and_says_how_to_host_it() {
    let helper = by_task("helper", |_| ScriptedReply::text("done"));
    let (top, model) = spawning("top", [to("helper", "a")]);
    let run = scenario(&top.sub_agent(helper).build().unwrap(), []).start(Prompt::new("Go.")).await;
    let Outcome::Stopped(stopped) = run.outcome().unwrap() else { panic!("it answered") };
    let reason = stopped.reason.to_string();
    assert!(
        reason.contains("host sub-agent `helper`") && reason.contains(r#".host_named("Agent.helper""#),
        "{reason}"
    );
    assert_eq!(model.requests().len(), 1);
}

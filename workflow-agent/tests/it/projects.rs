//! Projects: plans, the order of tasks, failures, people, restarts.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use workflow_agent::model::{ModelRequest, ScriptedModel, ScriptedReply};
use workflow_agent::prelude::*;
use workflow_agent::{Plan, PlanTask, ProjectBuilder, ProjectGoal};
use workflow_testkit::{Scenario, ScenarioOf};

mod hosted;
mod order;
mod people;
mod planning;
mod restarts;
mod tasks;

/// A planner that answers with these plans, the last one again and again.
fn planner(plans: impl IntoIterator<Item = Value>) -> (Agent, ScriptedModel) {
    let plans: Vec<Value> = plans.into_iter().collect();
    let model = ScriptedModel::respond(move |request| {
        // The number of the plan is that of the plans that came back before: the request has the last one.
        let text = request.messages[0].text();
        let before = plans.iter().rposition(|plan| text.contains(&marker(plan)));
        let next = before.map_or(0, |before| (before + 1).min(plans.len() - 1));
        ScriptedReply::call("plan", "final_answer", plans[next].clone())
    });
    let agent = Agent::builder("planner").model(model.clone()).build().unwrap();
    (agent, model)
}

/// A text that only this plan has, as it stands between marks.
fn marker(plan: &Value) -> String {
    plan["tasks"]
        .as_array()
        .and_then(|tasks| tasks.first())
        .map_or_else(|| "has no tasks".to_owned(), |task| format!("\"title\":{}", task["title"]))
}

/// A worker whose model replies by the first line of the task's prompt.
fn worker(reply: impl Fn(&str) -> ScriptedReply + Send + Sync + 'static) -> (Agent, ScriptedModel) {
    let model = ScriptedModel::respond(move |request| reply(&first_line(request)));
    let agent = Agent::builder("worker").model(model.clone()).build().unwrap();
    (agent, model)
}

fn first_line(request: &ModelRequest) -> String {
    request.messages[0].text().lines().next().unwrap_or_default().to_owned()
}

/// A task whose prompt is its id.
fn task(id: &str, after: &[&str]) -> Value {
    json!({ "id": id, "title": format!("Title of {id}"), "prompt": id, "depends_on": after })
}

fn plan(tasks: impl IntoIterator<Item = Value>) -> Value {
    json!({ "tasks": tasks.into_iter().collect::<Vec<_>>() })
}

fn answers(task: &str) -> ScriptedReply {
    ScriptedReply::text(format!("result of {task}"))
}

fn builder(planner: &Agent, worker: &Agent) -> ProjectBuilder {
    Project::builder("release").planner(planner.clone()).worker(worker.clone())
}

/// A project in a scenario, where it has the name of its type.
fn scenario(project: &Project, planner: &Agent, worker: &Agent) -> ScenarioOf<Project> {
    Scenario::new(project.clone())
        .host_named("Project.planner", planner.clone())
        .host_named("Project.worker", worker.clone())
}

fn goal() -> ProjectGoal {
    ProjectGoal::new("Release 2.0")
}

/// The states of the tasks that a run logged, as `id state`.
fn states<'a>(log: impl IntoIterator<Item = &'a workflow_core::report::LoggedEvent>) -> Vec<String> {
    let statuses = log.into_iter().filter_map(|logged| logged.value.downcast::<workflow_agent::TaskStatus>());
    statuses.map(|status| said(&status)).collect()
}

fn said(status: &workflow_agent::TaskStatus) -> String {
    let json = serde_json::to_value(status).unwrap();
    format!("{} {}", status.id, json["status"].as_str().unwrap())
}

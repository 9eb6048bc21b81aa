use std::time::Duration;

use workflow_agent::judge::{Candidate, Judge, Judgement, Verdict};
use workflow_agent::model::ModelError;
use workflow_core::StepError;

use super::*;

const CAUGHT: &str = "
graph: test
nodes:
  a: {agent: 'Go.', next: end, on_failure: mend}
  mend: {value: '${ error.class }: ${ error.message }'}
";

/// A92, A72
#[tokio::test(start_paused = true)]
async fn a_model_that_is_away_is_asked_again_inside_the_run() {
    let away = || ScriptedReply::fail(ModelError::transient("busy"));
    let model = ScriptedModel::new([away(), away(), ScriptedReply::text("here")]);
    let result = run(CAUGHT, agent("one", &model)).await.unwrap();
    assert_eq!((&*result.at, result.output), ("a", json!("here")));
    assert_eq!(model.requests().len(), 3);
}

/// A92, A9
#[tokio::test(start_paused = true)]
async fn a_run_that_stops_fails_its_node_with_the_reason() {
    let model = ScriptedModel::respond(|_| ScriptedReply::fail(ModelError::permanent("wrong key")));
    let result = run(CAUGHT, agent("one", &model)).await.unwrap();
    assert_eq!((&*result.at, model.requests().len()), ("mend", 1));
    let error = result.output.as_str().unwrap();
    assert!(error.starts_with("model: ") && error.contains("wrong key"), "{error}");
}

struct Escalates;

impl Judge for Escalates {
    fn judge<'a>(&'a self, _: &'a Candidate) -> futures::future::BoxFuture<'a, Result<Judgement, StepError>> {
        Box::pin(async { Ok(Verdict::Escalate("ask a lawyer".into()).into()) })
    }
}

/// A92, A54
#[tokio::test]
async fn an_escalation_fails_the_node() {
    let model = ScriptedModel::new([ScriptedReply::text("done")]);
    let result = run(CAUGHT, agent("one", &model).judge(Escalates)).await.unwrap();
    assert!(
        result.output.as_str().unwrap().contains("the judge escalated: ask a lawyer"),
        "{}",
        result.output
    );
}

/// A92, A3
#[tokio::test]
async fn a_node_bounds_the_turns_of_its_run() {
    let text = "
graph: test
nodes:
  a: {agent: {instruction: 'Go.', max_turns: 2}}
";
    let model =
        ScriptedModel::respond(|request| call(&request.messages.len().to_string(), "weather", "Bern"));
    let failure = failed(run(text, agent("one", &model).tool(weather())).await);
    assert!(failure.to_string().contains("limit of 2 turns"), "{failure}");
    assert_eq!(model.requests().len(), 2);
}

/// A92
#[tokio::test(start_paused = true)]
async fn a_node_that_takes_too_long_ends_its_run() {
    let text = "
graph: test
nodes:
  a: {agent: 'Go.', timeout: 5s}
";
    let model = ScriptedModel::respond(|_| ScriptedReply::text("late").after(Duration::from_mins(1)));
    let (agents, hosted) = only(agent("one", &model));
    let engine = builder(text, &agents).agent(hosted).build().unwrap();
    let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
    let failure = failed(run.outcome().await);
    assert_eq!(failure.node.as_deref(), Some("a"));
    let report = run.run().report().await.unwrap();
    assert!(report.children[0].status.is_ended());
    assert_ne!(report.children[0].status, workflow_core::RunStatus::Completed);
}

//! Budgets: tokens, cost and tool calls, before and after model calls.

use serde_json::json;
use workflow_agent::model::{ModelLimits, ScriptedReply, Usage};
use workflow_agent::prelude::*;
use workflow_agent::{AgentError, AgentProblem, PromptError};

use crate::parts::{Calls, agent, answered, call, run, scripted, stopped, visit, weather};

fn budget(run: &workflow_testkit::TestRun<Agent>) -> (u64, u64) {
    match stopped(run).reason {
        StopReason::Budget { tokens, tool_calls } => (tokens, tool_calls),
        ref other => panic!("{other:?}"),
    }
}

/// A60
#[tokio::test]
async fn tokens_above_the_budget_stop_with_totals_and_the_last_text() {
    let calls = Calls::default();
    let model = scripted([
        call("1", "visit", "A").usage(Usage::new(50, 10)),
        call("2", "visit", "B").saying("next").usage(Usage::new(60, 10).cached(20)),
    ]);
    let run = run(agent(&model).tool(visit(&calls)).budget(Budget::tokens(100)), "go").await;
    assert_eq!((budget(&run), calls.all()), ((130, 1), vec!["A".to_owned()]));
    let stopped = stopped(&run);
    assert_eq!((&*stopped.text, stopped.usage), ("next", Usage::new(110, 20).cached(20)));
}

/// A60
#[tokio::test]
async fn a_budget_that_is_used_up_exactly_allows_no_further_call_and_an_answer_within_it_counts() {
    let model = scripted([call("1", "weather", "A").usage(Usage::new(90, 10)), ScriptedReply::text("never")]);
    let run = run(agent(&model).tool(weather()).budget(Budget::tokens(100)), "go").await;
    assert_eq!((budget(&run), model.requests().len()), ((100, 1), 1));
    let model = scripted([ScriptedReply::text("done").usage(Usage::new(90, 10))]);
    let run = self::run(agent(&model).budget(Budget::tokens(100)), "go").await;
    assert_eq!(answered(&run), "done");
}

/// A60
#[tokio::test]
async fn the_cost_counts_by_the_price_and_a_prompt_can_lower_the_budget() {
    // A million tokens cost 1.
    let replies =
        || [call("1", "weather", "A").usage(Usage::new(400_000, 200_000)), ScriptedReply::text("done")];
    let run =
        run(agent(&scripted(replies())).tool(weather()).budget(Budget::unlimited().cost(0.5)), "go").await;
    assert_eq!(budget(&run), (600_000, 0));
    assert!((stopped(&run).cost - 0.6).abs() < 1e-9);
    let prompt = Prompt::new("go").budget(Budget::tokens(10));
    let run =
        self::run(agent(&scripted(replies())).tool(weather()).budget(Budget::unlimited().cost(9.0)), prompt)
            .await;
    assert_eq!(budget(&run), (600_000, 0));
}

/// A60
#[tokio::test]
async fn tool_calls_above_the_budget_do_not_run() {
    let calls = Calls::default();
    let model = scripted([
        call("1", "visit", "A"),
        call("2", "visit", "B").and_call("3", "visit", json!({"city": "C"})),
    ]);
    let run = run(agent(&model).tool(visit(&calls)).budget(Budget::unlimited().tool_calls(2)), "go").await;
    assert_eq!((budget(&run).1, calls.all()), (1, vec!["A".to_owned()]));
    let model = scripted([call("1", "visit", "A"), ScriptedReply::text("done")]);
    let run =
        self::run(agent(&model).tool(visit(&calls)).budget(Budget::unlimited().tool_calls(1)), "go").await;
    assert_eq!(answered(&run), "done");
}

/// A60
#[tokio::test]
async fn a_limit_of_the_cost_needs_a_price() {
    let free = || scripted([ScriptedReply::text("done")]).limits(ModelLimits::new(1_000, 100)).named("free");
    let cost = Budget::unlimited().cost(1.0);
    let problems = agent(&free()).budget(cost).build().unwrap_err().problems;
    assert_eq!(problems, [AgentProblem::NoPrice { model: "free".into() }]);
    let error = agent(&free()).build().unwrap().ask(Prompt::new("go").budget(cost)).await.unwrap_err();
    assert!(matches!(error, AgentError::Prompt(PromptError::NoPrice { .. })), "{error}");
}

/// A60
#[tokio::test]
async fn usage_that_nobody_reported_is_estimated_and_marked() {
    let model = scripted([ScriptedReply::text("x".repeat(40))]);
    let run = run(agent(&model), "y".repeat(400)).await;
    let usage = run.outcome().unwrap().usage();
    assert_eq!((usage.input, usage.output, usage.estimated), (100, 10, true));
    let model = scripted([ScriptedReply::text("x").usage(Usage::new(5, 1))]);
    let run = self::run(agent(&model), "go").await;
    assert_eq!(run.outcome().unwrap().usage(), Usage::new(5, 1));
}

//! Approvals and questions: requests to people, their answers, and their ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use workflow_agent::entry::{Entry, FailureClass};
use workflow_agent::model::{ModelRequest, ScriptedModel, ScriptedReply};
use workflow_agent::prelude::*;
use workflow_agent::{
    AgentBuilder, AgentError, AnswerError, Decision, OnRejection, PendingApproval, PendingQuestion,
};
use workflow_core::store::{MemoryContexts, MemoryStore};
use workflow_core::{RunOptions, SendError};
use workflow_testkit::VirtualClock;

use crate::parts::{Calls, agent, assert_paired, call, result, results, scripted, visit, weather};

/// An engine with an agent in it.
struct Desk {
    engine: Engine,
    agent: Agent,
}

impl Desk {
    fn of(agent: AgentBuilder) -> Self {
        let agent = agent.build().unwrap();
        let engine = Engine::builder().agent(agent.clone()).clock(VirtualClock::new()).build().unwrap();
        Self { engine, agent }
    }

    async fn start(&self) -> AgentRun {
        self.agent.start(&self.engine, "go").await.unwrap()
    }
}

/// The next approval that a run asks for.
async fn asked(run: &mut AgentRun) -> PendingApproval {
    loop {
        match run.next().await.expect("the run has not ended") {
            Shown::Approval(approval) => return approval,
            Shown::Done(outcome) => panic!("no approval before {outcome:?}"),
            _ => {}
        }
    }
}

async fn question(run: &mut AgentRun) -> PendingQuestion {
    loop {
        if let Shown::Question(question) = run.next().await.expect("the run has not ended") {
            return question;
        }
    }
}

fn then_done(reply: ScriptedReply) -> ScriptedModel {
    scripted([reply, ScriptedReply::text("done")])
}

fn needs_approval(calls: &Calls) -> impl workflow_agent::tool::Tool + use<> {
    visit(calls).approval(Approval::Always)
}

/// A20
#[tokio::test(start_paused = true)]
async fn nothing_of_a_call_runs_before_its_approval_and_other_calls_continue() {
    let calls = Calls::default();
    let model = then_done(call("2", "weather", "B").and_call("1", "visit", json!({"city": "A"})));
    let desk = Desk::of(agent(&model).tool(needs_approval(&calls)).tool(weather()));
    let mut run = desk.start().await;
    let mut approval = None;
    let mut others = Vec::new();
    while approval.is_none() || others.is_empty() {
        match run.next().await.unwrap() {
            Shown::Approval(asked) => approval = Some(asked),
            Shown::ToolResult(done) => others.push(done),
            _ => {}
        }
    }
    let approval = approval.unwrap();
    assert_eq!(
        (approval.tool(), approval.call(), approval.arguments()),
        ("visit", "1", &json!({"city": "A"}))
    );
    assert_eq!((&*others[0].call, calls.len(), model.requests().len()), ("2", 0, 1));
    approval.approve().await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "done");
    assert_eq!(calls.all(), ["A"]);
    let ids: Vec<_> = results(&model.requests()[1]).iter().map(|result| result.call.to_string()).collect();
    assert_eq!(ids, ["2", "1"]);
}

/// A20
#[tokio::test(start_paused = true)]
async fn a_policy_is_never_acts_always_or_a_function_of_the_arguments() {
    let in_bern = || Approval::when(|arguments: &Value| arguments["city"] == "Bern");
    let cases: [(Approval, bool, &str, bool); 7] = [
        (Approval::Never, false, "Bern", false),
        (Approval::Acts, false, "Bern", true),
        (Approval::Acts, true, "Bern", false),
        (Approval::Always, true, "Bern", true),
        (in_bern(), false, "Bern", true),
        (in_bern(), false, "Basel", false),
        (Approval::default(), false, "Bern", false),
    ];
    for (approval, read_only, city, expected) in cases {
        let calls = Calls::default();
        let tool = visit(&calls).approval(approval.clone());
        let tool = if read_only { tool.read_only() } else { tool };
        let agent = agent(&then_done(call("1", "visit", city))).tool(tool).build().unwrap();
        let asked = matches!(agent.ask("go").await, Err(AgentError::NeedsPeople { .. }));
        assert_eq!(
            (asked, calls.len()),
            (expected, usize::from(!expected)),
            "{approval:?} {read_only} {city}"
        );
    }
}

/// A20, A13
#[tokio::test(start_paused = true)]
async fn a_policy_that_panics_lets_nothing_run() {
    let calls = Calls::default();
    let model = then_done(call("1", "visit", "A"));
    let tool = visit(&calls).approval(Approval::when(|_| panic!("a bug in the policy")));
    let desk = Desk::of(agent(&model).tool(tool));
    assert_eq!(desk.start().await.outcome().await.unwrap().text(), "done");
    let result = result(&model.requests()[1]);
    assert!(result.is_error && result.text.contains("a bug in the policy"), "{}", result.text);
    assert_eq!(calls.len(), 0);
}

/// A20
#[tokio::test(start_paused = true)]
async fn ask_ends_at_once_where_a_person_is_needed() {
    let calls = Calls::default();
    let needs = agent(&then_done(call("1", "visit", "A"))).tool(needs_approval(&calls)).build().unwrap();
    let error = needs.ask("go").await.unwrap_err();
    assert!(matches!(error, AgentError::NeedsPeople { ref request } if request == "visit"), "{error}");
    let model = then_done(ScriptedReply::call("1", "ask_user", json!({"question": "Which?"})));
    let error = agent(&model).ask_user().build().unwrap().ask("go").await.unwrap_err();
    assert!(matches!(error, AgentError::NeedsPeople { ref request } if request == "ask_user"), "{error}");
    // A sub-agent's, too.
    let top = then_done(ScriptedReply::call(
        "1",
        "spawn_sub_agent",
        json!({"tasks": [{"agent": "assistant", "task": "go"}]}),
    ));
    let below = agent(&then_done(call("1", "visit", "A"))).identity("You help.").tool(needs_approval(&calls));
    let below = below.build().unwrap();
    let top = Agent::builder("top").model(top).sub_agent(below).build().unwrap();
    let error = top.ask("go").await.unwrap_err();
    assert!(matches!(error, AgentError::NeedsPeople { ref request } if request == "visit"), "{error}");
    assert_eq!(calls.len(), 0);
}

/// A21
#[tokio::test(start_paused = true)]
async fn a_rejection_and_its_reason_are_the_result_and_the_model_continues() {
    for (reason, expected) in
        [("too far", "action rejected by user: too far"), ("", "action rejected by user")]
    {
        let calls = Calls::default();
        let model = then_done(call("1", "visit", "A"));
        let desk = Desk::of(agent(&model).tool(needs_approval(&calls)));
        let mut run = desk.start().await;
        asked(&mut run).await.reject(reason).await.unwrap();
        assert_eq!(run.outcome().await.unwrap().text(), "done");
        let result = result(&model.requests()[1]);
        assert!(result.is_error && result.text.contains(&format!("\n{expected}\n")), "{}", result.text);
        assert_eq!(calls.len(), 0);
        model.requests().iter().for_each(assert_paired);
    }
}

/// A21
#[tokio::test(start_paused = true)]
async fn a_rejection_stops_the_run_if_the_agent_wants_that() {
    let calls = Calls::default();
    let model = then_done(call("1", "visit", "A"));
    let desk = Desk::of(agent(&model).tool(needs_approval(&calls)).on_rejection(OnRejection::Stop));
    let mut run = desk.start().await;
    asked(&mut run).await.reject("no").await.unwrap();
    let Outcome::Stopped(stopped) = run.outcome().await.unwrap() else { panic!("it answered") };
    let StopReason::Failed { class: FailureClass::Rejected, error } = &stopped.reason else {
        panic!("{stopped:?}")
    };
    assert!(error.contains("action rejected by user: no"), "{error}");
    assert_eq!((calls.len(), model.requests().len()), (0, 1));
}

/// A22
#[tokio::test(start_paused = true)]
async fn a_request_expires_after_an_hour_which_the_result_names_and_later_replies_learn() {
    let calls = Calls::default();
    let model = scripted([call("1", "visit", "A"), call("2", "visit", "B"), ScriptedReply::text("done")]);
    let desk = Desk::of(agent(&model).tool(needs_approval(&calls)));
    let mut run = desk.start().await;
    let first = asked(&mut run).await;
    tokio::time::sleep(Duration::from_secs(3_599)).await;
    assert_eq!(run.approvals().await.unwrap().len(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let second = asked(&mut run).await;
    let error = first.approve().await.unwrap_err();
    assert!(matches!(error, AnswerError::Send(SendError::Expired { .. })), "{error:?}");
    second.approve().await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "done");
    let requests = model.requests();
    let expired = result(&requests[1]);
    assert!(
        expired.is_error && expired.text.contains("rejected") && expired.text.contains("expired"),
        "{}",
        expired.text
    );
    assert_eq!(calls.all(), ["B"]);
}

/// A22
#[tokio::test(start_paused = true)]
async fn the_time_to_answer_can_be_set_and_an_expiry_counts_as_a_rejection() {
    let model = then_done(call("1", "visit", "A"));
    let agent = agent(&model).tool(needs_approval(&Calls::default())).on_rejection(OnRejection::Stop);
    let desk = Desk::of(agent.approval_expires(Duration::from_mins(1)));
    let began = tokio::time::Instant::now();
    let outcome = desk.start().await.outcome().await.unwrap();
    assert!(
        matches!(outcome, Outcome::Stopped(stopped) if matches!(stopped.reason, StopReason::Failed { class: FailureClass::Rejected, .. }))
    );
    assert!(began.elapsed() < Duration::from_secs(61));
}

/// A2, A21
#[tokio::test(start_paused = true)]
async fn two_rejections_of_one_moment_end_the_run_once() {
    let calls = call("1", "visit", "A").and_call("2", "visit", json!({"city": "B"}));
    let model = then_done(calls);
    let agent = agent(&model).tool(needs_approval(&Calls::default())).on_rejection(OnRejection::Stop);
    let run = Desk::of(agent.approval_expires(Duration::from_mins(1))).start().await;
    assert!(matches!(run.outcome().await.unwrap(), Outcome::Stopped(_)));
    let report = run.handle().report_so_far().await.unwrap();
    let entries = report.log.iter().filter_map(|logged| logged.value.downcast::<Entry>());
    assert_eq!(entries.filter(|entry| matches!(&**entry, Entry::Results { .. })).count(), 1);
}

/// A22
#[tokio::test(start_paused = true)]
async fn each_answer_concerns_its_own_call_in_any_order_and_counts_once() {
    let calls = Calls::default();
    let model = then_done(call("1", "visit", "A").and_call("2", "visit", json!({"city": "B"})).and_call(
        "3",
        "visit",
        json!({"city": "C"}),
    ));
    let desk = Desk::of(agent(&model).tool(needs_approval(&calls)));
    let mut run = desk.start().await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(asked(&mut run).await);
    }
    open.sort_by_key(|approval| approval.call().to_owned());
    open[2].approve().await.unwrap();
    open[0].reject("not A").await.unwrap();
    open[1].approve().await.unwrap();
    assert!(open[1].reject("too late").await.is_err());
    assert_eq!(run.outcome().await.unwrap().text(), "done");
    let mut visited = calls.all();
    visited.sort();
    assert_eq!(visited, ["B", "C"]);
    let results = results(&model.requests()[1]);
    assert!(
        results[0].text.contains("not A")
            && results[1].text.contains("visited B")
            && results[2].text.contains("visited C")
    );
}

/// A23
#[tokio::test(start_paused = true)]
async fn edited_arguments_run_and_unfit_ones_are_refused_while_the_request_stays_open() {
    let calls = Calls::default();
    let model = then_done(call("1", "visit", "A"));
    let desk = Desk::of(agent(&model).tool(needs_approval(&calls)));
    let mut run = desk.start().await;
    let approval = asked(&mut run).await;
    let error = approval.edit(json!({"city": 7})).await.unwrap_err();
    assert!(matches!(error, AnswerError::Edit { ref pointer, .. } if pointer == "/city"), "{error:?}");
    for unfit in [json!("B"), json!({"city": "x".repeat(300_000)})] {
        let error = approval.edit(unfit).await.unwrap_err();
        assert!(matches!(error, AnswerError::Edit { ref pointer, .. } if pointer.is_empty()), "{error:?}");
    }
    assert_eq!(run.approvals().await.unwrap().len(), 1);
    approval.edit(json!({"city": "B"})).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "done");
    assert_eq!(calls.all(), ["B"]);
}

/// A23
#[tokio::test(start_paused = true)]
async fn the_stream_has_the_arguments_of_the_model_and_the_log_those_of_an_edit() {
    let model = then_done(call("1", "visit", "A"));
    let desk = Desk::of(agent(&model).tool(needs_approval(&Calls::default())));
    let mut run = desk.start().await;
    let mut used = Vec::new();
    while let Some(shown) = run.next().await {
        match shown {
            Shown::ToolUse(call) => used.push(call.arguments),
            Shown::Approval(approval) => approval.edit(json!({"city": "B"})).await.unwrap(),
            _ => {}
        }
    }
    assert_eq!(used, [json!({"city": "A"})]);
    let report = run.handle().report().await.unwrap();
    let reply = report.log.iter().find(|logged| &*logged.event == "agent.approve_tool.reply").unwrap();
    let reply = reply.value.to_json().unwrap();
    assert_eq!((&reply["decision"], &reply["arguments"]), (&json!("edit"), &json!({"city": "B"})));
}

/// A23, A10
#[tokio::test(start_paused = true)]
async fn unfit_edits_of_other_front_ends_become_the_error_result() {
    let calls = Calls::default();
    let model = then_done(call("1", "visit", "A"));
    let desk = Desk::of(agent(&model).tool(needs_approval(&calls)));
    let mut run = desk.start().await;
    let approval = asked(&mut run).await;
    let decision = json!({"decision": "edit", "arguments": {"city": 7}});
    run.handle().any().reply_json(approval.seq(), decision).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "done");
    let result = result(&model.requests()[1]);
    assert!(result.is_error && result.text.contains("/city"), "{}", result.text);
    assert_eq!(calls.len(), 0);
}

/// A23
#[tokio::test(start_paused = true)]
async fn a_reply_that_is_no_decision_is_refused() {
    let desk = Desk::of(agent(&then_done(call("1", "visit", "A"))).tool(needs_approval(&Calls::default())));
    let mut run = desk.start().await;
    let approval = asked(&mut run).await;
    let error =
        run.handle().any().reply_json(approval.seq(), json!({"decision": "perhaps"})).await.unwrap_err();
    assert!(matches!(error, SendError::UnfitReply { .. }), "{error:?}");
    approval.decide(Decision::Approve).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "done");
}

/// A23
#[tokio::test(start_paused = true)]
async fn approve_all_holds_for_the_tool_and_the_run() {
    let (calls, others) = (Calls::default(), Calls::default());
    let other = workflow_agent::tool::FnTool::new("other", "Acts.", {
        let others = others.clone();
        move |_: Value, _| {
            others.add("called");
            async move { Ok::<_, ToolError>("ok") }
        }
    });
    let replies = || {
        [
            call("1", "visit", "A"),
            call("2", "visit", "B").and_call("3", "other", json!({})),
            ScriptedReply::text("done"),
        ]
    };
    let model = scripted(replies().into_iter().chain(replies()));
    let desk = Desk::of(agent(&model).tool(needs_approval(&calls)).tool(other.approval(Approval::Always)));
    for _ in 0..2 {
        let mut run = desk.start().await;
        let first = asked(&mut run).await;
        assert_eq!((first.tool(), first.call()), ("visit", "1"));
        first.approve_all().await.unwrap();
        let second = asked(&mut run).await;
        assert_eq!(second.tool(), "other");
        second.approve().await.unwrap();
        assert_eq!(run.outcome().await.unwrap().text(), "done");
    }
    assert_eq!(
        (calls.all(), others.len()),
        (vec!["A".to_owned(), "B".to_owned(), "A".to_owned(), "B".to_owned()], 2)
    );
}

/// A model by the request, for runs over several processes.
fn by_request() -> ScriptedModel {
    ScriptedModel::respond(|request: &ModelRequest| match &results(request)[..] {
        [] => call("1", "visit", "A"),
        _ => ScriptedReply::text("done"),
    })
}

/// A24
#[test]
fn an_open_approval_survives_restarts() {
    let (store, contexts) = (Arc::new(MemoryStore::default()), Arc::new(MemoryContexts::default()));
    let calls = Calls::default();
    let agent = agent(&by_request()).tool(needs_approval(&calls)).build().unwrap();
    let engine = || {
        let builder = Engine::builder().agent(agent.clone());
        builder.store(Arc::clone(&store)).contexts(Arc::clone(&contexts)).build().unwrap()
    };
    let process = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    process().block_on(async {
        let mut run = agent.start_with(&engine(), "go", RunOptions::new().id("r-1")).await.unwrap();
        asked(&mut run).await;
    });
    for last in [false, true] {
        process().block_on(async {
            let engine = engine();
            let mut run = AgentRun::attach(&engine, &agent, "r-1").await.unwrap();
            let approval = asked(&mut run).await;
            assert_eq!((approval.arguments(), calls.len()), (&json!({"city": "A"}), 0));
            if last {
                approval.approve().await.unwrap();
                assert_eq!(run.outcome().await.unwrap().text(), "done");
            }
        });
    }
    assert_eq!(calls.all(), ["A"]);
}

/// A24
#[tokio::test(start_paused = true)]
async fn the_top_run_shows_approvals_of_sub_agents_at_any_depth_and_takes_answers() {
    let calls = Calls::default();
    let spawn = |agent: &str| {
        ScriptedReply::call("1", "spawn_sub_agent", json!({"tasks": [{"agent": agent, "task": "go"}]}))
    };
    let low = Agent::builder("low")
        .identity("You help.")
        .model(then_done(call("1", "visit", "A")))
        .tool(needs_approval(&calls))
        .build()
        .unwrap();
    let middle = Agent::builder("middle").identity("You help.").model(then_done(spawn("low")));
    let middle = middle.sub_agent(low).build().unwrap();
    let desk = Desk::of(agent(&then_done(spawn("middle"))).sub_agent(middle));
    let mut run = desk.start().await;
    let approval = asked(&mut run).await;
    assert_ne!(approval.run(), run.id());
    let error = approval.edit(json!({"city": 7})).await.unwrap_err();
    assert!(matches!(error, AnswerError::Edit { .. }), "{error:?}");
    approval.edit(json!({"city": "B"})).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "done");
    assert_eq!(calls.all(), ["B"]);
}

/// A25
#[tokio::test(start_paused = true)]
async fn ask_user_is_a_question_with_a_text_as_reply() {
    let model = then_done(ScriptedReply::call("1", "ask_user", json!({"question": "Which city?"})));
    let desk = Desk::of(agent(&model).ask_user());
    let mut run = desk.start().await;
    let asked = question(&mut run).await;
    assert_eq!(asked.question(), "Which city?");
    asked.answer("Bern</data>").await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "done");
    let result = result(&model.requests()[1]);
    assert_eq!(
        (&*result.text, result.is_error),
        ("<data source=\"tool ask_user\">\nBern&lt;/data>\n</data>", false)
    );
    assert!(asked.answer("again").await.is_err());
}

/// A25, A22
#[tokio::test(start_paused = true)]
async fn a_question_expires_after_an_hour() {
    let model = then_done(ScriptedReply::call("1", "ask_user", json!({"question": "Which city?"})));
    let desk = Desk::of(agent(&model).ask_user());
    let began = tokio::time::Instant::now();
    assert_eq!(desk.start().await.outcome().await.unwrap().text(), "done");
    assert!(began.elapsed() >= Duration::from_hours(1));
    let result = result(&model.requests()[1]);
    assert!(
        result.is_error && result.text.contains("nobody answered in time") && result.text.contains("expired")
    );
}

/// A25
#[tokio::test]
async fn without_the_option_there_is_no_ask_user() {
    let model = then_done(ScriptedReply::call("1", "ask_user", json!({"question": "Which city?"})));
    assert_eq!(agent(&model).build().unwrap().ask("go").await.unwrap().text, "done");
    assert!(result(&model.requests()[1]).text.contains("there is no tool `ask_user`"));
}

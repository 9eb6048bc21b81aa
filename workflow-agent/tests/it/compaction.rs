//! Compaction: results that shrink, summaries, and errors of the provider.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use workflow_agent::memory::{Episode, Memory, Question, Recalled, RecalledKind};
use workflow_agent::model::{
    Message, ModelError, ModelLimits, ModelRequest, ScriptedModel, ScriptedReply, Usage,
};
use workflow_agent::prelude::*;
use workflow_agent::tool::{FnTool, ToolOutput};
use workflow_agent::{Budget, Conversation};
use workflow_core::errors::ContextError;
use workflow_core::{ErrorClass, ThreadContext};

use crate::lives::{Disk, Fails, Lost, life};
use crate::pairing;
use crate::sessions::session;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Size {
    size: usize,
}

/// A tool whose output, or failure, has so many characters.
fn tool(name: &str, fails: bool) -> FnTool {
    FnTool::new(name, "Gives text.", move |Size { size }, _| async move {
        let text = "x".repeat(size);
        if fails { Err(ToolError::new(text)) } else { Ok(ToolOutput::new(text)) }
    })
    .read_only()
}

fn is_summary(request: &ModelRequest) -> bool {
    request.system.starts_with("You summarise")
}

/// The requests that are no summaries.
fn turns(model: &ScriptedModel) -> Vec<ModelRequest> {
    let turns: Vec<_> = model.requests().into_iter().filter(|request| !is_summary(request)).collect();
    for request in &turns {
        pairing::check(request).unwrap();
    }
    turns
}

fn summaries(model: &ScriptedModel) -> Vec<ModelRequest> {
    model.requests().into_iter().filter(is_summary).collect()
}

/// A model that calls `text` with these sizes in order, then answers; summaries are `in short`.
fn caller(window: u64, sizes: &'static [usize]) -> ScriptedModel {
    scripted(window, move |turn, _| match sizes.get(turn) {
        Some(size) => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": size})),
        None => ScriptedReply::text("done"),
    })
}

/// A model whose reply depends on the number of its successful turns before, and on the request.
fn scripted(
    window: u64,
    reply: impl Fn(usize, &ModelRequest) -> ScriptedReply + Send + Sync + 'static,
) -> ScriptedModel {
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let respond = move |request: &ModelRequest| {
        if is_summary(request) {
            return ScriptedReply::text("in short").usage(Usage::new(1_000, 100));
        }
        let before = turn.load(std::sync::atomic::Ordering::SeqCst);
        let reply = reply(before, request);
        if !format!("{reply:?}").contains("Failure(") {
            turn.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        reply
    };
    ScriptedModel::respond(respond).limits(ModelLimits::new(window, 100))
}

fn agent(model: &ScriptedModel) -> Agent {
    let builder =
        Agent::builder("a").model(model.clone()).tool(tool("text", false)).tool(tool("broken", true));
    builder.repeats(None).build().unwrap()
}

async fn outcome(agent: &Agent, prompt: impl Into<Prompt>) -> Outcome {
    let clock = workflow_testkit::VirtualClock::new();
    let engine = Engine::builder().agent(agent.clone()).clock(clock).build().unwrap();
    agent.start(&engine, prompt).await.unwrap().outcome().await.unwrap()
}

/// The characters of the results in a request, without marks and notes; `None` for an error.
fn results(request: &ModelRequest) -> Vec<usize> {
    let results = request.messages.iter().filter_map(|message| match message {
        Message::Results(results) => Some(results),
        _ => None,
    });
    results
        .flatten()
        .map(|result| result.text.matches('x').count() - usize::from(result.text.contains("tool text")))
        .collect()
}

/// A53
#[tokio::test]
async fn at_half_the_window_results_older_than_two_turns_shrink() {
    let model = caller(4_000, &[3_000, 3_000, 3_000, 600, 10]);
    let agent = agent(&model);
    outcome(&agent, "go").await;
    assert!(summaries(&model).is_empty());
    let turns = turns(&model);
    let seen: Vec<Vec<usize>> = turns.iter().map(results).collect();
    // Half the window is 8,000 characters, which the fourth request would exceed.
    assert_eq!(seen[2], [3_000, 3_000]);
    assert_eq!(seen[3], [200, 3_000, 3_000]);
    assert_eq!(seen[4], [200, 3_000, 3_000, 600]);
    // Between two such steps each request continues the one before.
    for pair in [[0, 1], [1, 2], [3, 4], [4, 5]] {
        pairing::continues(&turns[pair[0]], &turns[pair[1]]).unwrap();
    }
    let text = turns[3].messages[2].text().into_owned();
    assert!(text.contains("2800 more bytes, left out here"), "{text}");
}

/// A53
#[tokio::test]
async fn results_shrink_again_at_each_further_tenth_and_errors_stay() {
    let model = scripted(5_000, |turn, _| match turn {
        0 => ScriptedReply::call("c0", "broken", json!({"size": 2_000})),
        1..=6 => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": 2_900})),
        _ => ScriptedReply::text("done"),
    });
    let agent = agent(&model);
    outcome(&agent, "go").await;
    let steps =
        turns(&model).windows(2).filter(|pair| pairing::continues(&pair[0], &pair[1]).is_err()).count();
    assert!((2..=5).contains(&steps), "{steps}");
    let last = turns(&model).pop().unwrap();
    let error = last.messages.iter().find_map(|message| match message {
        Message::Results(results) => {
            results.iter().find(|result| result.is_error).map(|result| result.text.len())
        }
        _ => None,
    });
    assert!(error.is_some_and(|length| length > 2_000), "{error:?}");
    assert_eq!(results(&last)[1], 200);
}

/// A53
#[tokio::test]
async fn from_eighty_percent_a_summary_keeps_four_rounds_then_two_then_one() {
    // Arguments never shrink, so they fill the window as wanted.
    for (percent, kept) in [(75, None), (85, Some(4)), (105, Some(2)), (125, Some(1))] {
        let model = scripted(10_000, move |turn, _| match turn {
            0..=4 => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": 1})),
            5 => ScriptedReply::call("c5", "text", json!({"size": 1, "more": "y".repeat(400 * percent)})),
            _ => ScriptedReply::text("done"),
        });
        let agent = agent(&model);
        let outcome = outcome(&agent, "go").await;
        let summaries = summaries(&model);
        let last = turns(&model).pop().unwrap();
        let rounds = last.messages.iter().filter(|message| matches!(message, Message::Results(_))).count();
        match kept {
            None => assert!(summaries.is_empty() && rounds == 6, "{percent}: {rounds}"),
            Some(kept) => {
                assert_eq!((summaries.len(), rounds), (1, kept), "{percent}");
                // A19: it was made from results, which are marked as data, and so it is.
                let marked =
                    "[Summary of the conversation so far]\n<data source=\"summary\">\nin short\n</data>";
                assert_eq!(last.messages[0].text(), marked);
                assert_eq!(last.messages[1].text(), "go");
                assert!(outcome.usage().input >= 1_000);
                let told = summaries[0].messages[0].text().into_owned();
                assert!(told.starts_with("<data source=\"conversation\">\nUser: go"), "{told}");
                assert!(!told.contains("yyyy"), "kept rounds are not summarised");
            }
        }
    }
}

/// The reported tokens of the long conversation do not count against the short one behind a summary.
///
/// A53
#[tokio::test]
async fn a_summary_is_not_followed_by_another_because_the_conversation_was_long() {
    let model = scripted(10_000, |turn, request| match turn {
        0..=8 => {
            let size = request.messages.iter().map(|message| message.text().len()).sum::<usize>() / 4;
            let arguments = json!({"size": 1, "more": "y".repeat(3_000)});
            // Twice as many tokens as characters suggest.
            let usage = Usage::new((size + turn * 750) as u64 * 2, 10);
            ScriptedReply::call(&format!("c{turn}"), "text", arguments).usage(usage)
        }
        _ => ScriptedReply::text("done"),
    });
    let agent = agent(&model);
    assert!(matches!(outcome(&agent, "go").await, Outcome::Answered(_)));
    let kinds: String =
        model.requests().iter().map(|request| if is_summary(request) { 's' } else { 't' }).collect();
    assert!(kinds.contains('s') && !kinds.contains("ss"), "{kinds}");
}

/// A53
#[tokio::test]
async fn a_context_error_leads_to_summaries_that_keep_two_rounds_then_one_and_then_ends_the_run() {
    let model = scripted(200_000, |turn, _| match turn {
        0..=3 => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": 1})),
        _ => ScriptedReply::fail(ModelError::context_limit("too many tokens")),
    });
    let agent = agent(&model);
    let Outcome::Stopped(stopped) = outcome(&agent, "go").await else { panic!("it answered") };
    let StopReason::Failed { class, error } = &stopped.reason else { panic!("{stopped:?}") };
    assert_eq!((class.as_str(), &**error), ("context_limit", "too many tokens"));
    assert_eq!(summaries(&model).len(), 2);
    let rounds = |request: &ModelRequest| {
        request.messages.iter().filter(|message| matches!(message, Message::Results(_))).count()
    };
    let seen: Vec<usize> = turns(&model)[4..].iter().map(rounds).collect();
    assert_eq!(seen, [4, 2, 1]);
    assert!(stopped.usage.tokens() >= 2_200, "summaries count: {:?}", stopped.usage);
}

/// A53
#[tokio::test]
async fn a_successful_turn_allows_two_more_summaries() {
    let failures = std::sync::atomic::AtomicUsize::new(0);
    let model = scripted(200_000, move |turn, request| {
        let rounds = request.messages.iter().filter(|message| matches!(message, Message::Results(_))).count();
        if rounds > 3 {
            failures.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            return ScriptedReply::fail(ModelError::context_limit("too many tokens"));
        }
        match turn {
            0..=11 => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": 1})),
            _ => ScriptedReply::text("done"),
        }
    });
    let agent = agent(&model);
    assert_eq!(outcome(&agent, "go").await.text(), "done");
    assert!(summaries(&model).len() > 3);
}

/// A53
#[tokio::test]
async fn a_context_error_with_nothing_left_to_shorten_ends_the_run() {
    let model = scripted(200_000, |_, _| ScriptedReply::fail(ModelError::context_limit("too many tokens")));
    let agent = agent(&model);
    let Outcome::Stopped(stopped) = outcome(&agent, "go").await else { panic!("it answered") };
    assert!(matches!(&stopped.reason, StopReason::Failed { class, .. } if class.as_str() == "context_limit"));
    assert_eq!(model.requests().len(), 1);
}

/// A summary for the window's sake does not take from those that an error of the provider may lead to.
///
/// A53
#[tokio::test]
async fn an_error_behind_a_due_summary_still_has_its_two_summaries() {
    let model = scripted(10_000, |turn, request| {
        let rounds = request.messages.iter().filter(|message| matches!(message, Message::Results(_))).count();
        match turn {
            0..=4 => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": 1})),
            5 => ScriptedReply::call("c5", "text", json!({"size": 1, "more": "y".repeat(33_000)})),
            _ if rounds > 1 => ScriptedReply::fail(ModelError::context_limit("too many tokens")),
            _ => ScriptedReply::text("done"),
        }
    });
    let agent = agent(&model);
    assert_eq!(outcome(&agent, "go").await.text(), "done");
    let kept: Vec<usize> = turns(&model)[6..].iter().map(|request| request.messages.len()).collect();
    // Summary, message, and two messages for each round: four, two, one.
    assert_eq!(kept, [10, 6, 4]);
}

/// A53
#[tokio::test]
async fn errors_stay_through_several_summaries() {
    let model = scripted(200_000, |turn, request| {
        let rounds = request.messages.iter().filter(|message| matches!(message, Message::Results(_))).count();
        match turn {
            _ if rounds > 3 => ScriptedReply::fail(ModelError::context_limit("too many tokens")),
            0 => ScriptedReply::call("c0", "broken", json!({"size": 40})),
            1..=9 => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": 1})),
            _ => ScriptedReply::text("done"),
        }
    });
    let agent = agent(&model);
    outcome(&agent, "go").await;
    assert!(summaries(&model).len() >= 2);
    let first = turns(&model).pop().unwrap().messages[0].text().into_owned();
    let error = format!("<data source=\"error of tool broken\">\n{}\n</data>", "x".repeat(40));
    assert_eq!(first.matches(&error).count(), 1, "{first}");
}

/// A53, A51
#[tokio::test]
async fn markers_stay_through_summaries_and_isolated_phases_stay_isolated() {
    for isolated in [false, true] {
        let model = scripted(200_000, |turn, request| {
            let rounds =
                request.messages.iter().filter(|message| matches!(message, Message::Results(_))).count();
            match turn {
                _ if rounds > 3 => ScriptedReply::fail(ModelError::context_limit("too many tokens")),
                2 => ScriptedReply::text("first answer"),
                0..=9 => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": 1})),
                _ => ScriptedReply::text("done"),
            }
        });
        let second = if isolated { Phase::new("two").isolated() } else { Phase::new("two") };
        let agent = Agent::builder("a").model(model.clone()).tool(tool("text", false)).repeats(None);
        let agent = agent.phase(Phase::new("one")).phase(second).build().unwrap();
        assert_eq!(outcome(&agent, "the question").await.text(), "done");
        assert!(summaries(&model).len() >= 2);
        for request in turns(&model).iter().skip(3) {
            let texts: Vec<_> = request.messages.iter().map(|message| message.text().into_owned()).collect();
            assert_eq!(texts.iter().filter(|text| text.starts_with("[Phase: two]")).count(), 1, "{texts:?}");
            assert_eq!(texts.iter().any(|text| text == "the question"), !isolated, "{texts:?}");
        }
        let told: Vec<_> =
            summaries(&model).iter().map(|request| request.messages[0].text().into_owned()).collect();
        assert_eq!(told[0].contains("User: the question"), !isolated, "{told:?}");
    }
}

/// A53, A41
#[tokio::test(start_paused = true)]
async fn a_message_that_no_call_saw_stays_beside_a_summary() {
    let slow = std::time::Duration::from_secs(5);
    let model = scripted(200_000, move |turn, request| {
        let has_summary = request.messages[0].text().starts_with("[Summary");
        match turn {
            0 | 1 => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": 1})),
            2 => ScriptedReply::call("c2", "text", json!({"size": 1})).after(slow),
            _ if !has_summary => ScriptedReply::fail(ModelError::context_limit("too many tokens")),
            _ => ScriptedReply::text("done"),
        }
    });
    let agent = agent(&model);
    let engine = Engine::builder().agent(agent.clone()).build().unwrap();
    let run = agent.start(&engine, "go").await.unwrap();
    while model.requests().len() < 3 {
        crate::lives::moment().await;
    }
    run.steer("in blue").await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "done");
    let last = turns(&model).pop().unwrap();
    let seen = last.messages.iter().filter(|message| message.text().contains("in blue")).count();
    assert_eq!(seen, 1, "{:#?}", last.messages);
}

/// A53, A72
#[tokio::test(start_paused = true)]
async fn a_summary_that_is_refused_or_empty_is_tried_again_and_then_ends_the_run() {
    use workflow_agent::model::Finish;
    for refusal in [ScriptedReply::text("no").finish(Finish::Refusal), ScriptedReply::text(" ")] {
        for failures in [1, 2] {
            let (tries, refusal) = (std::sync::atomic::AtomicUsize::new(0), refusal.clone());
            let model = ScriptedModel::respond(move |request| {
                if is_summary(request) {
                    let done = tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    return if done < failures { refusal.clone() } else { ScriptedReply::text("in short") };
                }
                match request.messages.len() {
                    1 => ScriptedReply::call("c", "text", json!({"size": 1})),
                    3 => ScriptedReply::call("d", "text", json!({"size": 1})),
                    5 => ScriptedReply::fail(ModelError::context_limit("too many tokens")),
                    _ => ScriptedReply::text("done"),
                }
            });
            let agent = agent(&model);
            match (failures, outcome(&agent, "go").await) {
                (1, Outcome::Answered(answer)) => assert_eq!(&*answer.text, "done"),
                (2, Outcome::Stopped(stopped)) => {
                    let StopReason::Failed { class, .. } = stopped.reason else { panic!("{stopped:?}") };
                    assert_eq!(class.as_str(), "model");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A53
#[tokio::test]
async fn a_summary_that_is_too_long_itself_ends_the_run() {
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 if !is_summary(request) => ScriptedReply::call("c", "text", json!({"size": 1})),
        3 => ScriptedReply::call("d", "text", json!({"size": 1})),
        _ => ScriptedReply::fail(ModelError::new(ErrorClass::ContextLimit, "too many tokens")),
    });
    let agent = agent(&model);
    let Outcome::Stopped(stopped) = outcome(&agent, "go").await else { panic!("it answered") };
    assert!(matches!(&stopped.reason, StopReason::Failed { class, .. } if class.as_str() == "context_limit"));
    assert_eq!(summaries(&model).len(), 1);
}

/// A53, A60
#[tokio::test]
async fn the_usage_of_summaries_counts_in_the_budget() {
    let model = scripted(200_000, |turn, request| {
        let has_summary = request.messages[0].text().starts_with("[Summary");
        let used = Usage::new(10, 10);
        match turn {
            0..=3 => ScriptedReply::call(&format!("c{turn}"), "text", json!({"size": 1})).usage(used),
            _ if !has_summary => ScriptedReply::fail(ModelError::context_limit("too many tokens")),
            _ => ScriptedReply::text("done").usage(used),
        }
    });
    let agent = agent(&model);
    let Outcome::Stopped(stopped) = outcome(&agent, Prompt::new("go").budget(Budget::tokens(1_000))).await
    else {
        panic!("it answered")
    };
    assert_eq!(stopped.reason, StopReason::Budget { tokens: 4 * 20 + 1_100, tool_calls: 4 });
}

/// A53, A52
#[tokio::test]
async fn a_conversation_that_is_too_large_is_summarised_before_the_first_call() {
    let said = |text: String| json!({"kind": "said", "parts": [{"text": text}]});
    let entries = json!([
        {"kind": "user", "text": "begin"}, said("z".repeat(20_000)),
        {"kind": "user", "text": "more"}, said("z".repeat(20_000)),
    ]);
    let conversation: Conversation = serde_json::from_value(json!({ "entries": entries })).unwrap();
    let model = scripted(10_000, |_, _| ScriptedReply::text("done"));
    let agent = agent(&model);
    assert_eq!(outcome(&agent, Prompt::new("go on").conversation(conversation)).await.text(), "done");
    let texts: Vec<_> = turns(&model)[0].messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["[Summary of the conversation so far]\nin short", "go on"]);
    // The summary's own request is within the window, too.
    assert!(summaries(&model)[0].messages[0].text().len() < 40_000);
}

/// A53, A40
#[tokio::test(start_paused = true)]
async fn a_history_that_the_provider_refuses_is_summarised() {
    let model = scripted(200_000, |_, request| match request.messages.len() {
        5.. => ScriptedReply::fail(ModelError::context_limit("too many tokens")),
        _ => ScriptedReply::text("yes"),
    });
    let agent = agent(&model);
    let engine = Engine::builder().agent(agent.clone()).build().unwrap();
    let session = session(&engine, &agent);
    for text in ["one", "two", "three"] {
        assert_eq!(session.say(text).await.unwrap().outcome().await.unwrap().text(), "yes");
    }
    let last = turns(&model).pop().unwrap();
    let texts: Vec<_> = last.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["[Summary of the conversation so far]\nin short", "three"]);
    assert_eq!(crate::sessions::questions(&session).await, ["one", "two", "three"]);
}

/// A53, A7
#[test]
fn a_resumed_run_shortens_as_it_did_before() {
    let script = |request: &ModelRequest| {
        if is_summary(request) {
            return ScriptedReply::text("in short");
        }
        let last = request.messages.iter().rev().find_map(|message| match message {
            Message::Results(results) => {
                results.last().map(|result| result.call[1..].parse::<usize>().unwrap() + 1)
            }
            _ => None,
        });
        match last.unwrap_or(0) {
            turn @ 0..=8 => {
                let arguments = json!({"size": 700, "more": "y".repeat(200 * turn)});
                ScriptedReply::call(&format!("c{turn}"), "text", arguments)
                    .usage(Usage::new(500 * turn as u64, 9))
            }
            _ => ScriptedReply::text("done"),
        }
    };
    let model = || ScriptedModel::respond(script).limits(ModelLimits::new(3_000, 100));
    let distinct = |model: &ScriptedModel| {
        let mut requests: Vec<String> =
            model.requests().iter().map(|request| format!("{request:?}")).collect();
        requests.dedup();
        requests
    };
    let (whole, undisturbed) = {
        let model = model();
        let agent = agent(&model);
        life(async { assert_eq!(outcome(&agent, "go").await.text(), "done") });
        assert!(!summaries(&model).is_empty());
        (distinct(&model), model.requests().len())
    };
    assert_eq!(whole.len(), undisturbed);
    let options = || workflow_core::RunOptions::new().id("r");
    for at in 0.. {
        let (disk, model) = (Disk::default(), model());
        let agent = agent(&model);
        let process = disk.process(Fails::From(at, Lost::Operation));
        life(async {
            if let Ok(run) = agent.start_with(&process.engine(&agent), "go", options()).await {
                drop(run.outcome().await);
            }
        });
        life(async {
            let engine = disk.healthy().engine(&agent);
            let run = match AgentRun::attach(&engine, &agent, "r").await {
                Ok(run) => run,
                Err(_) => agent.start_with(&engine, "go", options()).await.unwrap(),
            };
            assert_eq!(run.outcome().await.unwrap().text(), "done");
        });
        assert_eq!(distinct(&model), whole, "{at}");
        if !process.has_failed() {
            assert!(at > 20);
            break;
        }
    }
}

/// A53
#[tokio::test]
async fn each_summary_contains_the_one_before_although_its_rounds_are_older() {
    let (turn, summary) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let respond = move |request: &ModelRequest| {
        if is_summary(request) {
            return ScriptedReply::text(format!("SUMMARY-{}", summary.fetch_add(1, SeqCst) + 1));
        }
        let wide = json!({"size": 1, "more": "y".repeat(7_000)});
        match turn.fetch_add(1, SeqCst) {
            0 => ScriptedReply::call("c0", "broken", json!({"size": 40})),
            turn @ 1..=12 => ScriptedReply::call(&format!("c{turn}"), "text", wide),
            _ => ScriptedReply::text("done"),
        }
    };
    let model = ScriptedModel::respond(respond).limits(ModelLimits::new(10_000, 100));
    outcome(&agent(&model), "go").await;
    let summaries = summaries(&model);
    assert!(summaries.len() > 3, "{}", summaries.len());
    for (number, request) in summaries.iter().enumerate().skip(1) {
        let text = request.messages[0].text();
        assert!(text.contains(&format!("SUMMARY-{number}")), "a summary is lost: {}", text.replace('y', ""));
    }
    let last = turns(&model).pop().unwrap();
    assert!(
        last.messages[0].text().contains(&"x".repeat(40)),
        "the error stays: {}",
        last.messages[0].text()
    );
}

/// A53, A43
#[tokio::test]
async fn recalled_texts_count_once_in_the_size_of_a_request() {
    // Together with the message they fill less than half the window, and twice they would not.
    struct Recalls;
    impl Memory for Recalls {
        fn recall<'a>(
            &'a self,
            _: &'a Question,
            _: &'a ThreadContext,
        ) -> BoxFuture<'a, Result<Vec<Recalled>, ContextError>> {
            async { Ok(vec![Recalled::new(RecalledKind::Episode, "m".repeat(4_500))]) }.boxed()
        }

        fn remember<'a>(
            &'a self,
            _: &'a Episode,
            _: &'a ThreadContext,
        ) -> BoxFuture<'a, Result<(), ContextError>> {
            async { Ok(()) }.boxed()
        }
    }
    let model = caller(10_000, &[3_000, 1, 1]);
    let agent = Agent::builder("a").model(model.clone()).tool(tool("text", false)).memory(Recalls);
    let engine = Engine::builder().agent(agent.build().unwrap()).build().unwrap();
    let run = engine.start::<Agent>(Prompt::new("z".repeat(8_000))).await.unwrap();
    run.outcome().await.unwrap();
    let last = turns(&model).pop().unwrap();
    assert!(last.system.contains("mmm"));
    assert!(last.messages[2].text().contains(&"x".repeat(3_000)), "the result was shortened too early");
}

/// The bytes of a request's messages.
fn bytes(request: &ModelRequest) -> usize {
    request.messages.iter().map(|message| message.text().len()).sum()
}

/// A model that calls `text` so often with this size in one reply, and then answers. Its provider refuses requests of more
/// than `most` bytes.
fn strict(window: u64, calls: usize, size: usize, most: usize) -> ScriptedModel {
    scripted(window, move |turn, request| match turn {
        _ if bytes(request) > most => ScriptedReply::fail(ModelError::context_limit("too long")),
        0 => {
            let first = ScriptedReply::call("c0", "text", json!({"size": size}));
            let call = |reply: ScriptedReply, n: usize| {
                reply.and_call(&format!("c{n}"), "text", json!({"size": size - n}))
            };
            (1..calls).fold(first, call)
        }
        _ => ScriptedReply::text("done"),
    })
}

/// A16, A53
#[tokio::test]
async fn the_results_of_a_reply_share_a_part_of_the_window_and_say_where_the_rest_is() {
    for (window, calls, size) in [(8_192, 1, 32_000), (128_000, 64, 9_000)] {
        let model = strict(window, calls, size, usize::try_from(window).unwrap() * 2);
        let agent = agent(&model);
        assert_eq!(outcome(&agent, "go").await.text(), "done", "{window}");
        let turns = turns(&model);
        assert_eq!(turns.len(), 2, "nothing was refused");
        assert_eq!(turns[1].messages.len(), 3);
        let Message::Results(results) = &turns[1].messages[2] else { panic!("no results") };
        for result in results {
            assert!(result.text.contains("bytes are missing here"), "{}", result.text);
            assert!(result.text.contains("The log of the run has this one as a whole"), "{}", result.text);
        }
    }
}

/// A2, A16
#[tokio::test]
async fn a_short_result_stays_whole_beside_long_ones_and_the_log_has_each_as_a_whole() {
    let model = scripted(8_192, |turn, _| match turn {
        0 => ScriptedReply::call("c0", "text", json!({"size": 30_000})).and_call(
            "c1",
            "text",
            json!({"size": 500}),
        ),
        _ => ScriptedReply::text("done"),
    });
    let agent = agent(&model);
    let run = workflow_testkit::Scenario::new(agent).start(workflow_agent::Prompt::new("go")).await;
    let results = results(&turns(&model)[1]);
    assert!(results[0] < 8_192 && results[1] == 500, "{results:?}");
    let done = run.report().log.iter().filter_map(|logged| {
        logged.value.downcast::<workflow_agent::entry::ToolDone>().map(|done| done.text.len())
    });
    let mut done: Vec<usize> = done.collect();
    done.sort_unstable();
    assert_eq!(done, [500, 30_000]);
}

/// A53
#[tokio::test]
async fn the_last_round_is_shortened_too_once_nothing_else_is_left() {
    for (most, cuts) in [(9_000, 1), (1_500, 2)] {
        let model = strict(32_000, 2, 6_000, most);
        let agent = agent(&model);
        assert_eq!(outcome(&agent, "go").await.text(), "done", "{most}");
        let turns = turns(&model);
        assert_eq!(turns.len(), 2 + cuts, "{most}: each refused request leads to one cut");
        let last = turns.last().unwrap();
        assert!(bytes(last) <= most && last.messages.last().unwrap().text().contains("log of the run"));
    }
}

/// A53
#[tokio::test]
async fn a_conversation_that_is_too_long_with_the_shortest_results_ends_the_run() {
    let model = strict(32_000, 2, 6_000, 10);
    let agent = agent(&model);
    let outcome = outcome(&agent, "go").await;
    let Outcome::Stopped(stopped) = &outcome else { panic!("{outcome:?}") };
    assert!(stopped.reason.to_string().contains("context_limit"), "{outcome:?}");
    assert!(turns(&model).len() <= 4, "{}", turns(&model).len());
}

//! The content of each request, and the end of a run by its replies.

use std::time::Duration;

use serde_json::json;
use workflow_agent::entry::FailureClass;
use workflow_agent::judge::{Candidate, Judge, Judgement, Verdict};
use workflow_agent::model::{
    Finish, Message, ModelError, ModelLimits, ModelReply, ModelRequest, Opaque, Part, ScriptedModel,
    ScriptedReply, ToolChoice, ToolUse,
};
use workflow_agent::prelude::*;
use workflow_agent::{AgentError, DataError, Steer};
use workflow_core::ErrorClass;
use workflow_testkit::Scenario;

use crate::parts::{
    Calls, agent, answered, assert_paired, call, result, results, run, scripted, stopped, visit, weather,
};

fn reason(run: &workflow_testkit::TestRun<Agent>) -> &StopReason {
    &stopped(run).reason
}

/// A1
#[tokio::test]
async fn each_entry_is_logged_once() {
    let turns = 6;
    let mut replies: Vec<_> =
        (0..turns).map(|n| call(&format!("c{n}"), "weather", &format!("town {n}"))).collect();
    replies.push(ScriptedReply::text("done"));
    let run = run(agent(&scripted(replies)).tool(weather()), "go").await;
    assert_eq!(answered(&run), "done");
    // The message, a reply and results for each turn, and the answer.
    run.assert_emitted::<workflow_agent::entry::Entry>(2 + 2 * turns);
    let entries = run.emitted_json("agent.entry");
    for town in 0..turns {
        let in_entries =
            entries.iter().filter(|entry| entry.to_string().contains(&format!("warm in town {town}")));
        assert_eq!(in_entries.count(), 1);
    }
}

/// A2
#[tokio::test]
async fn results_enter_in_call_order_before_the_next_call_of_the_model() {
    let slow_first = workflow_agent::tool::FnTool::new("wait", "Waits.", |seconds: Wait, _| async move {
        tokio::time::sleep(Duration::from_secs(seconds.seconds)).await;
        Ok::<_, ToolError>(format!("{} s", seconds.seconds))
    });
    let model = scripted([
        ScriptedReply::call("a", "wait", json!({"seconds": 3}))
            .and_call("b", "wait", json!({"seconds": 1}))
            .and_call("c", "wait", json!({"seconds": 2})),
        ScriptedReply::text("done"),
    ]);
    let run = run(agent(&model).tool(slow_first.read_only()), "go").await;
    assert_eq!(answered(&run), "done");
    let requests = model.requests();
    let order: Vec<_> = results(&requests[1]).iter().map(|result| result.call.to_string()).collect();
    assert_eq!((order, requests.len()), (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], 2));
    assert_eq!(run.elapsed(), Duration::from_secs(3));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wait {
    seconds: u64,
}

/// A2, A6
#[tokio::test]
async fn ids_that_are_empty_unfit_or_taken_are_replaced() {
    let model = scripted([
        call("x", "weather", "A").and_call("x", "weather", json!({"city": "B"})),
        call("x", "weather", "C").and_call("", "weather", json!({"city": "D"})).and_call(
            "ü?",
            "weather",
            json!({"city": "E"}),
        ),
        ScriptedReply::text("done"),
    ]);
    let run = run(agent(&model).tool(weather()), "go").await;
    assert_eq!(answered(&run), "done");
    model.requests().iter().for_each(assert_paired);
    let last: Vec<_> = results(&model.requests()[2]).iter().map(|result| result.text.to_string()).collect();
    for (text, city) in last.iter().zip(["C", "D", "E"]) {
        assert!(text.contains(&format!("warm in {city}")), "{text}");
    }
}

/// A3
#[tokio::test]
async fn the_last_turns_calls_are_not_run() {
    let calls = Calls::default();
    let model = scripted([call("1", "visit", "A"), call("2", "visit", "B").saying("almost")]);
    let run = run(agent(&model).tool(visit(&calls)).max_turns(2), "go").await;
    assert_eq!(reason(&run), &StopReason::TurnLimit { turns: 2 });
    assert_eq!((&*stopped(&run).text, calls.all()), ("almost", vec!["A".to_owned()]));
    let model = scripted([call("1", "visit", "A")]);
    let run = self::run(agent(&model).tool(visit(&calls)), Prompt::new("go").turns(1)).await;
    assert_eq!(reason(&run), &StopReason::TurnLimit { turns: 1 });
}

/// A3, A6
#[tokio::test]
async fn a_closing_call_must_answer_with_text_and_is_made_once() {
    let calls = Calls::default();
    let model = scripted([call("1", "visit", "A"), ScriptedReply::text("closing")]);
    let run = run(agent(&model).tool(visit(&calls)).max_turns(1).closing_call(), "go").await;
    assert_eq!(answered(&run), "closing");
    let requests = model.requests();
    assert_eq!((requests[0].tool_choice, requests[1].tool_choice), (ToolChoice::Auto, ToolChoice::None));
    assert!(result(&requests[1]).text.contains("was not run") && calls.len() == 0);
    requests.iter().for_each(assert_paired);

    // An answer that nobody accepts does not lead to another closing call.
    let model = scripted((0..4).map(|_| ScriptedReply::text("no JSON")));
    let prompt = Prompt::new("go").output(json!({"type": "object"})).turns(1);
    let run = self::run(agent(&model).closing_call(), prompt).await;
    assert_eq!(reason(&run), &StopReason::TurnLimit { turns: 1 });
    assert_eq!(model.requests().len(), 2);
    let model = scripted([call("1", "visit", "A"), call("2", "visit", "B")]);
    let run = self::run(agent(&model).tool(visit(&calls)).max_turns(1).closing_call(), "go").await;
    assert_eq!((reason(&run), calls.len()), (&StopReason::TurnLimit { turns: 1 }, 0));
}

/// A4
#[tokio::test]
async fn calls_of_a_reply_that_was_cut_off_do_not_run_and_the_second_one_stops() {
    let calls = Calls::default();
    let cut_off = |id: &str| call(id, "visit", "A").finish(Finish::Length);
    let model = scripted([cut_off("1"), call("2", "visit", "B"), cut_off("3"), cut_off("4").saying("and")]);
    let run = run(agent(&model).tool(visit(&calls)), "go").await;
    assert_eq!((reason(&run), &*stopped(&run).text), (&StopReason::OutputLimit, "and"));
    assert_eq!(calls.all(), ["B"]);
    let told = model.requests()[1].messages.last().unwrap().text().into_owned();
    assert!(told.contains("cut off") && told.contains("None of its tool calls ran"), "{told}");
    model.requests().iter().for_each(assert_paired);
}

/// A4
#[tokio::test]
async fn an_answer_that_was_cut_off_stops_with_its_text_and_a_refusal_stops() {
    let model = scripted([ScriptedReply::text("half of").finish(Finish::Length)]);
    let run = run(agent(&model), "go").await;
    assert_eq!((reason(&run), &*stopped(&run).text), (&StopReason::OutputLimit, "half of"));
    let model = scripted([ScriptedReply::text("I will not.").finish(Finish::Refusal)]);
    let run = self::run(agent(&model), "go").await;
    assert_eq!((reason(&run), &*stopped(&run).text), (&StopReason::Refused, "I will not."));
}

/// A4, A72
#[tokio::test]
async fn replies_of_which_nothing_follows_are_retried_once() {
    let empty = || ScriptedReply::reply(ModelReply::new(vec![Part::Text("  ".into())], Finish::Stop));
    let announced = || ScriptedReply::text("I call").finish(Finish::ToolUse);
    for reply in [empty, announced] {
        let model = scripted([reply(), ScriptedReply::text("now")]);
        let run = run(agent(&model), "go").await;
        assert_eq!((answered(&run), run.elapsed()), ("now".to_owned(), Duration::from_secs(10)));
        let model = scripted([reply(), reply(), ScriptedReply::text("never")]);
        let run = self::run(agent(&model), "go").await;
        assert!(matches!(reason(&run), StopReason::Failed { class: FailureClass::Model, .. }), "{run:?}");
        assert_eq!(model.requests().len(), 2);
    }
}

/// A4, A9, A72
#[tokio::test]
async fn a_stream_without_its_end_is_transient_and_its_pieces_are_retracted() {
    let broken = || ScriptedReply::broken(["part"], None);
    let model = scripted([broken(), broken(), broken(), ScriptedReply::text("whole")]);
    let run = run(agent(&model), "go").await;
    assert_eq!((answered(&run), run.elapsed()), ("whole".to_owned(), Duration::from_secs(130)));
    let shown: Vec<_> =
        run.displayed::<workflow_chat::Chunk>().iter().map(|chunk| chunk.text.clone()).collect();
    assert_eq!(shown, ["whole"]);
    let model = scripted((0..5).map(|_| broken()));
    let run = self::run(agent(&model), "go").await;
    assert!(matches!(reason(&run), StopReason::Failed { class: FailureClass::Transient, .. }));
    assert_eq!(model.requests().len(), 4);
}

/// A9
#[tokio::test]
async fn a_failure_for_good_ends_the_run_with_class_and_usage() {
    let usage = workflow_agent::model::Usage::new(70, 7);
    let failures: [(ScriptedReply, FailureClass); 3] = [
        (ScriptedReply::fail(ModelError::permanent("no key")), FailureClass::Permanent),
        (ScriptedReply::fail(ModelError::context_limit("too long")), FailureClass::ContextLimit),
        (ScriptedReply::fail(ModelError::new(ErrorClass::Rejected, "not you")), FailureClass::Rejected),
    ];
    for (failure, expected) in failures {
        let model = scripted([call("1", "weather", "A").usage(usage), failure]);
        let run = run(agent(&model).tool(weather()), "go").await;
        let StopReason::Failed { class, error } = reason(&run) else { panic!("{run:?}") };
        assert_eq!((*class, stopped(&run).usage), (expected, usage), "{error}");
    }
}

/// A9
#[tokio::test]
async fn a_model_that_panics_ends_its_run_only() {
    let model = ScriptedModel::respond(|_| panic!("a bug in the model"));
    let run = run(agent(&model), "go").await;
    let StopReason::Failed { class: FailureClass::Permanent, error } = reason(&run) else {
        panic!("{run:?}")
    };
    assert!(error.contains("a bug in the model"), "{error}");
}

/// A9
#[tokio::test]
async fn a_prompt_beyond_its_bounds_is_refused_at_the_start_and_from_front_ends_too() {
    let model = scripted([]);
    let agent = agent(&model).build().unwrap();
    let error = agent.ask("x".repeat(1024 * 1024 + 1)).await.unwrap_err();
    assert!(matches!(error, AgentError::Prompt(_)), "{error}");
    assert!(matches!(agent.ask(" ").await.unwrap_err(), AgentError::Prompt(_)));
    let run = Scenario::new(agent).start(Prompt::new("x".repeat(1024 * 1024 + 1))).await;
    assert!(matches!(reason(&run), StopReason::Failed { class: FailureClass::Permanent, .. }));
    assert!(model.requests().is_empty());
}

fn looping(turns: usize) -> ScriptedModel {
    let mut replies: Vec<_> = (0..turns).map(|n| call(&format!("c{n}"), "weather", "A")).collect();
    replies.push(ScriptedReply::text("done"));
    scripted(replies)
}

/// A5
#[tokio::test]
async fn equal_turns_are_noted_after_three_and_stop_after_five() {
    let model = looping(6);
    let run = run(agent(&model).tool(weather()), "go").await;
    assert_eq!(reason(&run), &StopReason::Looping { turns: 5 });
    let noted: Vec<_> = model.requests().iter().map(notes).collect();
    assert_eq!(noted, [0, 0, 0, 1, 1]);
    let run = self::run(agent(&looping(4)).tool(weather()), "go").await;
    assert_eq!(answered(&run), "done");
    let model = looping(8);
    let run = self::run(agent(&model).tool(weather()).repeats(None), "go").await;
    assert_eq!((answered(&run), notes(&model.requests()[8])), ("done".to_owned(), 0));
}

/// A5, A16
#[tokio::test]
async fn equal_turns_repeat_also_if_their_results_are_too_long_for_the_window() {
    let long = workflow_agent::tool::FnTool::new("weather", "Says much.", |_: crate::parts::City, _| async {
        Ok::<_, ToolError>("rain ".repeat(4_000))
    });
    let model = looping(8).limits(ModelLimits::new(8_192, 100));
    let run = run(agent(&model).tool(long), "go").await;
    assert_eq!(reason(&run), &StopReason::Looping { turns: 5 });
}

fn notes(request: &ModelRequest) -> usize {
    request.messages.iter().filter(|message| message.text().contains("same tool calls")).count()
}

/// A5
#[tokio::test]
async fn turns_with_other_calls_or_results_do_not_repeat() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let counting =
        workflow_agent::tool::FnTool::new("weather", "Counts.", move |_: crate::parts::City, _| {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async move { Ok::<_, ToolError>(number.to_string()) }
        });
    let run = run(agent(&looping(8)).tool(counting), "go").await;
    assert_eq!(answered(&run), "done");
}

/// Whether each request begins with the messages of the request before.
fn assert_prefixes(requests: &[ModelRequest]) {
    for pair in requests.windows(2) {
        assert_eq!(pair[0].system, pair[1].system);
        assert_eq!(pair[0].tools, pair[1].tools);
        assert!(pair[1].messages.starts_with(&pair[0].messages), "{pair:#?}");
    }
}

/// A7
#[tokio::test]
async fn a_request_begins_with_the_request_before() {
    let calls = Calls::default();
    let model = scripted([
        call("1", "weather", "A").thinking("hm").saying("I look."),
        call("2", "visit", "B").and_call("3", "nothing", json!({})),
        call("4", "visit", "B").finish(Finish::Length),
        ScriptedReply::text("done"),
    ]);
    let agent = agent(&model).identity("You travel.").tool(weather()).tool(visit(&calls)).ask_user();
    let run = run(agent, "go").await;
    assert_eq!(answered(&run), "done");
    let requests = model.requests();
    assert_eq!(requests.len(), 4);
    let names: Vec<_> = requests[0].tools.iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["ask_user", "visit", "weather"]);
    assert_prefixes(&requests);
    requests.iter().for_each(assert_paired);
}

/// A8
#[tokio::test]
async fn signatures_and_opaque_parts_go_back_unchanged() {
    let opaque = |text: &str| Opaque::new("maker", json!({"z": text, "a": [1, {"y": 2, "b": 3}]}));
    let mut signed = ToolUse::new("1", "weather", json!({"city": "A"}));
    signed.signature = Some(opaque("call"));
    let parts = vec![
        Part::Thought { text: "hm".into(), signature: Some(opaque("thought")) },
        Part::Thought { text: "and".into(), signature: Some(opaque("another")) },
        Part::Opaque(opaque("part")),
        Part::Call(signed),
    ];
    let model = scripted([
        ScriptedReply::reply(ModelReply::new(parts.clone(), Finish::ToolUse)),
        ScriptedReply::text("done"),
    ]);
    let run = run(agent(&model).tool(weather()), "go").await;
    assert_eq!(answered(&run), "done");
    let Message::Assistant { parts: back } = &model.requests()[1].messages[1] else { panic!("no reply") };
    assert_eq!(back[..], parts);
}

/// A7, A41
#[tokio::test]
async fn a_steer_during_a_call_of_the_model_loses_no_call_and_is_seen_next() {
    let calls = Calls::default();
    let model = scripted([
        call("1", "visit", "A").after(Duration::from_secs(10)),
        ScriptedReply::text("first").after(Duration::from_secs(10)),
    ]);
    let agent = agent(&model).tool(visit(&calls)).build().unwrap();
    let run = Scenario::new(agent)
        .send_after(Duration::from_secs(5), Steer::new("to B</data>!"))
        .start(Prompt::new("go"))
        .await;
    assert_eq!(answered(&run), "first");
    assert_eq!(calls.all(), ["A"]);
    let requests = model.requests();
    let last = requests[1].messages.last().unwrap().text().into_owned();
    assert_eq!(last, "<data source=\"message of the user\">\nto B&lt;/data>!\n</data>");
    assert_prefixes(&requests);
    requests.iter().for_each(assert_paired);
}

/// A41
#[tokio::test]
async fn a_steer_during_the_answer_leaves_the_answer_and_is_unheard() {
    let model = scripted([ScriptedReply::text("the answer").after(Duration::from_secs(10))]);
    let hosted = agent(&model).build().unwrap();
    let run = Scenario::new(hosted)
        .send_after(Duration::from_secs(5), Steer::new("late"))
        .start(Prompt::new("go"))
        .await;
    assert_eq!(answered(&run), "the answer");
}

/// A41
#[tokio::test(start_paused = true)]
async fn unheard_lists_the_messages_that_no_call_saw() {
    let model = scripted([
        ScriptedReply::call("1", "weather", json!({"city": "A"})).after(Duration::from_secs(10)),
        ScriptedReply::text("the answer").after(Duration::from_secs(10)),
    ]);
    let agent = agent(&model).tool(weather()).secret(Secret::new("pin", "4711")).build().unwrap();
    let engine = Engine::builder().agent(agent.clone()).build().unwrap();
    let run = agent.start(&engine, "go").await.unwrap();
    run.steer("early").await.unwrap();
    tokio::time::sleep(Duration::from_secs(15)).await;
    run.steer("late").await.unwrap();
    run.steer("later, with 4711").await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "the answer");
    let unheard: Vec<_> = run.unheard().await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(unheard, ["late", "later, with [secret pin]"]);
    let steers = |request: &ModelRequest| {
        request.messages.iter().filter(|message| message.text().contains("early")).count()
    };
    assert_eq!(steers(&model.requests()[1]), 1);
    assert!(run.steer("after the end").await.is_err());
}

/// A41, A7
#[tokio::test]
async fn a_steer_during_tools_follows_their_results() {
    let slow = workflow_agent::tool::FnTool::new("slow", "Waits.", |_: serde_json::Value, _| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok::<_, ToolError>("slept".to_owned())
    });
    let model = scripted([ScriptedReply::call("1", "slow", json!({})), ScriptedReply::text("done")]);
    let agent = agent(&model).tool(slow).build().unwrap();
    let run = Scenario::new(agent)
        .send_after(Duration::from_secs(5), Steer::new("hurry"))
        .start(Prompt::new("go"))
        .await;
    assert_eq!(answered(&run), "done");
    let messages = &model.requests()[1].messages;
    assert!(matches!(messages[messages.len() - 2], Message::Results(_)));
    assert!(messages[messages.len() - 1].text().contains("hurry"));
    assert_prefixes(&model.requests());
}

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Weather {
    celsius: f64,
    city: String,
}

fn weather_schema() -> serde_json::Value {
    json!({"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]})
}

/// A55
#[tokio::test]
async fn a_typed_answer_comes_by_final_answer_and_other_calls_of_its_reply_do_not_run() {
    let calls = Calls::default();
    let answer = json!({"celsius": 21.5, "city": "Bern"});
    let model = scripted([call("1", "visit", "A").and_call("2", "final_answer", &answer)]);
    let agent = agent(&model).tool(visit(&calls)).build().unwrap();
    let weather: Weather = agent.ask_for("Warm?").await.unwrap();
    assert_eq!(weather, Weather { celsius: 21.5, city: "Bern".into() });
    assert_eq!(calls.len(), 0);
    let names: Vec<_> = model.requests()[0].tools.iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(
        (names, model.requests()[0].output.is_none()),
        (vec!["final_answer".to_owned(), "visit".to_owned()], true)
    );
}

/// A55, A6
#[tokio::test]
async fn results_of_calls_beside_an_unfit_final_answer_say_that_they_did_not_run() {
    let model = scripted([
        call("1", "weather", "A").and_call("2", "final_answer", json!({"celsius": "warm"})),
        ScriptedReply::call("3", "final_answer", json!({"celsius": 3})),
    ]);
    let run = run(agent(&model).tool(weather()), Prompt::new("Warm?").output(weather_schema())).await;
    let Outcome::Answered(answer) = run.outcome().unwrap() else { panic!("{run:?}") };
    assert_eq!((&answer.data, &*answer.text), (&Some(json!({"celsius": 3})), r#"{"celsius":3}"#));
    let requests = model.requests();
    let told = results(&requests[1]);
    assert!(told[0].text.contains("not run") && told[0].is_error && !told[1].is_error, "{told:?}");
    let note = requests[1].messages.last().unwrap().text().into_owned();
    assert!(note.contains("/celsius") && note.contains("\"warm\" is not of type \"number\""), "{note}");
    requests.iter().for_each(assert_paired);
}

/// A55
#[tokio::test]
async fn an_unfit_answer_is_returned_three_times_and_then_stops_with_its_path() {
    let wrong = || ScriptedReply::call("x", "final_answer", json!({"celsius": "warm"}));
    let model = scripted((0..5).map(|_| wrong()));
    let run = run(agent(&model), Prompt::new("Warm?").output(weather_schema())).await;
    let StopReason::InvalidOutput { path, problem } = reason(&run) else { panic!("{run:?}") };
    assert_eq!(&**path, "/celsius");
    assert!(problem.contains("number"), "{problem}");
    assert_eq!(model.requests().len(), 4);
    model.requests().iter().for_each(assert_paired);
}

/// A55
#[tokio::test]
async fn a_model_with_native_output_gets_the_schema_and_answers_with_text() {
    let model = scripted([ScriptedReply::text("```json\n{\"celsius\": 4}\n```")]).native_output();
    let run = run(agent(&model), Prompt::new("Warm?").output(weather_schema())).await;
    let Outcome::Answered(answer) = run.outcome().unwrap() else { panic!("{run:?}") };
    assert_eq!(answer.data, Some(json!({"celsius": 4})));
    let request = &model.requests()[0];
    assert_eq!((request.output.as_deref(), request.tools.len()), (Some(&weather_schema()), 0));
}

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
enum Shape {
    Point,
    Circle(f64),
}

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

/// A55
#[tokio::test]
async fn schemas_of_other_types_than_objects_are_a_field_of_one() {
    for native in [false, true] {
        let model = |answer: serde_json::Value| {
            let answer = json!({ "answer": answer });
            if native {
                scripted([ScriptedReply::from(answer)]).native_output()
            } else {
                scripted([ScriptedReply::call("1", "final_answer", answer)])
            }
        };
        let numbers = model(json!([1, 2]));
        assert_eq!(agent(&numbers).build().unwrap().ask_for::<Vec<u32>>("?").await.unwrap(), [1, 2]);
        let request = numbers.requests().remove(0);
        let schema = request.output.as_deref().unwrap_or_else(|| request.tools[0].schema());
        assert_eq!(
            (&schema["type"], &schema["properties"]["answer"]["type"]),
            (&json!("object"), &json!("array"))
        );
        // Variants are texts or objects.
        let shapes = |answer| agent(&model(answer)).build().unwrap();
        assert_eq!(shapes(json!("Point")).ask_for::<Shape>("?").await.unwrap(), Shape::Point);
        assert_eq!(shapes(json!({"Circle": 1.5})).ask_for::<Shape>("?").await.unwrap(), Shape::Circle(1.5));
        let any = model(json!({"anything": true}));
        let value: serde_json::Value = agent(&any).build().unwrap().ask_for("?").await.unwrap();
        assert_eq!(value, json!({"anything": true}));
    }
}

/// A55
#[tokio::test]
async fn references_in_the_schema_of_an_answer_lead_to_its_definitions() {
    let forest = json!([{"name": "a", "children": [{"name": "b", "children": []}]}]);
    let model = scripted([ScriptedReply::call("1", "final_answer", json!({"answer": forest}))]);
    let trees: Vec<Tree> = agent(&model).build().unwrap().ask_for("?").await.unwrap();
    assert_eq!(trees[0].children[0].name, "b");
    let schema = model.requests()[0].tools[0].schema().clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&json!({"answer": forest})), "{schema}");
    assert!(!validator.is_valid(&json!({"answer": [{"name": "a", "children": [{"name": 1}]}]})), "{schema}");
}

/// A11, A55
#[tokio::test]
async fn final_answer_without_a_schema_is_an_unknown_tool() {
    let model =
        scripted([ScriptedReply::call("1", "final_answer", json!({"x": 1})), ScriptedReply::text("done")]);
    let run = run(agent(&model), "go").await;
    assert_eq!(answered(&run), "done");
    assert!(result(&model.requests()[1]).text.contains("there is no tool `final_answer` here"));
}

/// Its schema says less than its type.
#[derive(Debug, serde::Deserialize)]
struct Hour {
    #[serde(rename = "at")]
    _at: u8,
}
impl schemars::JsonSchema for Hour {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hour".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object"})
    }
}

/// A55
#[tokio::test]
async fn an_answer_that_fits_the_schema_and_not_the_type_is_an_error_with_its_path() {
    let model = scripted([ScriptedReply::call("1", "final_answer", json!({"at": "no time"}))]);
    let error = agent(&model).build().unwrap().ask_for::<Hour>("?").await.unwrap_err();
    assert!(
        matches!(error, AgentError::Output(DataError::Unfit { ref path, .. }) if path == "at"),
        "{error:?}"
    );
}

/// A55
#[tokio::test]
async fn an_answer_is_read_as_the_type_of_its_prompt() {
    let model =
        scripted([ScriptedReply::call("1", "final_answer", json!({"answer": 4})), ScriptedReply::text("4")]);
    let agent = agent(&model).build().unwrap();
    let answer = agent.ask(Prompt::new("2 + 2?").output_of::<u8>()).await.unwrap();
    assert_eq!(answer.read::<u8>().unwrap(), 4);
    let error = answer.read::<String>().unwrap_err();
    assert!(matches!(error, DataError::Unfit { .. }), "{error}");
    let answer = agent.ask("2 + 2?").await.unwrap();
    let error = answer.read::<u8>().unwrap_err();
    assert!(matches!(error, DataError::None) && error.to_string().contains("Prompt::output_of"), "{error}");
}

/// Accepts the second answer, by its question.
struct Second;

impl Judge for Second {
    fn judge<'a>(
        &'a self,
        candidate: &'a Candidate,
    ) -> futures::future::BoxFuture<'a, Result<Judgement, workflow_core::StepError>> {
        let verdict = match &*candidate.text {
            "second" => Verdict::Accept,
            _ => Verdict::Retry(format!("about {:?}", candidate.prompt)),
        };
        Box::pin(async move { Ok(verdict.into()) })
    }
}

/// A54, A91
#[tokio::test]
async fn a_judge_sees_the_question_of_a_chat_too() {
    let model = scripted([ScriptedReply::text("first"), ScriptedReply::text("second")]);
    let agent = agent(&model).judge(Second).build().unwrap();
    let chat = workflow_chat::ChatTurn::new([workflow_chat::ChatMessage::user("the question")]);
    let run = Scenario::new(agent).start(chat).await;
    assert_eq!(answered(&run), "second");
    let told = model.requests()[1].messages.last().unwrap().text().into_owned();
    assert_eq!(told, "[Judge feedback]: about \"the question\"");
}

/// A7
#[tokio::test]
async fn the_longest_output_is_the_smaller_of_both_limits() {
    for (own, expected) in [(None, 800), (Some(100), 100), (Some(9_000), 800)] {
        let model = scripted([ScriptedReply::text("done")]).limits(ModelLimits::new(10_000, 800));
        let builder = agent(&model);
        let builder = match own {
            Some(own) => builder.max_output(own),
            None => builder,
        };
        answered(&run(builder, "go").await);
        assert_eq!(model.requests()[0].max_output, expected);
    }
}

/// A55
#[tokio::test]
async fn data_that_is_null_is_data_after_a_restart_too() {
    let agent = agent(&scripted([ScriptedReply::call("1", "final_answer", json!({"answer": null}))]));
    let answer =
        agent.build().unwrap().ask(Prompt::new("Is there one?").output_of::<Option<u8>>()).await.unwrap();
    assert_eq!(answer.read::<Option<u8>>().unwrap(), None);
    let stored: workflow_agent::Answer =
        serde_json::from_value(serde_json::to_value(&answer).unwrap()).unwrap();
    assert_eq!(stored, answer);
    assert_eq!(stored.read::<Option<u8>>().unwrap(), None);
}

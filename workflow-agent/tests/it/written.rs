//! Texts that models write around their answers and arguments.

use futures::FutureExt as _;
use serde_json::{Value, json};
use workflow_agent::model::ScriptedReply;
use workflow_agent::prelude::*;
use workflow_agent::tool::{FnTool, ToolOutput, ToolSpec};

use crate::parts::{Calls, agent, answered, result, run, scripted};

fn schema() -> Value {
    json!({"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]})
}

/// A55
#[tokio::test]
async fn an_answer_behind_thoughts_prose_a_mark_or_a_fence_is_read() {
    for text in [
        "<think>{\"celsius\": 3}? It was warmer.</think>\n\n{\"celsius\": 4}",
        "Here is the answer:\n\n```json\n{\"celsius\": 4}\n```\nAnything else?",
        "\u{feff}{\"celsius\": 4}",
        "It is {\"celsius\": 4}, as measured.",
    ] {
        let model = scripted([ScriptedReply::text(text)]).native_output();
        let run = run(agent(&model), Prompt::new("Warm?").output(schema())).await;
        let Outcome::Answered(answer) = run.outcome().unwrap() else { panic!("{text}: {run:?}") };
        assert_eq!(answer.data, Some(json!({"celsius": 4})), "{text}");
        assert_eq!(model.requests().len(), 1, "{text}");
    }
}

/// A55
#[tokio::test]
async fn two_answers_in_one_text_are_none() {
    let two = ScriptedReply::text("{\"celsius\": 4} or {\"celsius\": 5}");
    let model = scripted([two, ScriptedReply::text("{\"celsius\": 5}")]).native_output();
    let run = run(agent(&model), Prompt::new("Warm?").output(schema())).await;
    let Outcome::Answered(answer) = run.outcome().unwrap() else { panic!("{run:?}") };
    assert_eq!((answer.data.clone(), model.requests().len()), (Some(json!({"celsius": 5})), 2));
}

/// Takes nothing, and records the arguments.
fn now(calls: &Calls, schema: Value) -> FnTool {
    let calls = calls.clone();
    let now = move |arguments: Value, _: ToolContext| {
        calls.add(arguments.to_string());
        async { Ok(ToolOutput::new("noon")) }.boxed()
    };
    FnTool::of(ToolSpec::new("now", "The time.", schema), now)
}

/// A10
#[tokio::test]
async fn nothing_written_as_arguments_of_a_tool_without_parameters_is_an_empty_object() {
    let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
    for (schema, is_run) in [(empty, true), (json!({"type": "object"}), true), (schema(), false)] {
        for arguments in [json!("null"), json!("[]"), json!(" null ")] {
            let calls = Calls::default();
            let model =
                scripted([ScriptedReply::call("1", "now", arguments.clone()), ScriptedReply::text("done")]);
            let run = run(agent(&model).tool(now(&calls, schema.clone())), "go").await;
            assert_eq!(answered(&run), "done");
            let expected: &[&str] = if is_run { &["{}"] } else { &[] };
            assert_eq!(calls.all(), expected, "{arguments} for {schema}");
            assert_eq!(result(&model.requests()[1]).is_error, !is_run);
        }
    }
}

/// A10
#[tokio::test]
async fn a_schema_that_doubles_the_check_with_each_level_is_an_error_result_at_once() {
    let mut definitions = json!({ "d0": { "type": "string" } });
    for level in 1..30 {
        let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
        definitions[format!("d{level}")] = json!({ "anyOf": [below, below] });
    }
    let doubling =
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d29"}}, "$defs": definitions});
    assert!(doubling.to_string().len() < 3_000);
    let calls = Calls::default();
    let model = scripted([
        ScriptedReply::call("1", "now", json!({"a": 1})),
        ScriptedReply::call("2", "now", json!({"b": 1})),
        ScriptedReply::text("done"),
    ]);
    let run = run(agent(&model).tool(now(&calls, doubling)), "go").await;
    assert_eq!(answered(&run), "done");
    assert_eq!(calls.all(), ["{\"b\":1}"]);
    let told = result(&model.requests()[1]);
    assert!(told.is_error && told.text.contains("more than 1000000 comparisons"), "{}", told.text);
}

//! The model without a network: it recognises a few messages, and uses the tools as a real one would.

use serde_json::{Value, json};
use workflow_agent::model::{Message, ModelRequest, ScriptedModel, ScriptedReply};

pub(crate) fn model() -> ScriptedModel {
    ScriptedModel::respond(reply).named("offline")
}

fn reply(request: &ModelRequest) -> ScriptedReply {
    if request.tools.iter().any(|tool| tool.name() == "final_answer") {
        return plan(request);
    }
    let asked = last_message(request);
    match request.messages.last() {
        Some(Message::Results(results)) if results.iter().any(|result| result.is_error) => {
            ScriptedReply::text(format!("I could not do that: {}", plain(&results[0].text)))
        }
        Some(Message::Results(results)) => after(request, &asked, &plain(&results[0].text)),
        _ => first(request, &asked),
    }
}

/// The reply to a message.
fn first(request: &ModelRequest, asked: &str) -> ScriptedReply {
    if let Some(number) = number(asked).filter(|_| request.tools.iter().any(|tool| tool.name() == "order")) {
        return ScriptedReply::call("order", "order", json!({ "number": number }))
            .saying("I look the order up. ");
    }
    if asked.contains("who am I") || asked.contains("Who am I") {
        let known = request.system.lines().find_map(|line| line.split_once("I am ")).map(|(_, name)| name);
        let told = request.messages.iter().find_map(|message| {
            let text = message.text();
            text.split_once("I am ").map(|(_, name)| name.to_owned())
        });
        return match told.as_deref().or(known) {
            Some(name) => ScriptedReply::text(format!("You are {}.", name.trim_end_matches('.'))),
            None => ScriptedReply::text("You have not told me yet."),
        };
    }
    if asked.contains("Your task") {
        return ScriptedReply::text("It is done.");
    }
    let answer = ["I am ", "the assistant ", "of the shop. ", "Ask me about ", "an order, ", "such as 7."];
    ScriptedReply::chunks(answer).thinking("A greeting, or nothing that I know.")
}

/// The reply after a tool's result.
fn after(request: &ModelRequest, asked: &str, result: &str) -> ScriptedReply {
    let order: Option<Value> = serde_json::from_str(result).ok();
    let refunded = request.messages.iter().any(|message| message.text().contains("are paid back"));
    match order.filter(|_| asked.contains("refund") && !refunded) {
        Some(order) => {
            let arguments = json!({ "order": order["number"], "cents": order["cents"] });
            ScriptedReply::call("refund", "refund", arguments)
        }
        None if asked.contains("refund") => ScriptedReply::text(format!("It is settled: {result}.")),
        None => ScriptedReply::text(format!("This is your order: {result}.")),
    }
}

/// The plan of a project: three tasks, the last of which needs the others.
fn plan(_request: &ModelRequest) -> ScriptedReply {
    let task = |id: &str, title: &str, needs: &[&str]| json!({ "id": id, "title": title, "prompt": format!("Your task: {title}"), "depends_on": needs });
    let tasks = [
        task("changes", "List the changes", &[]),
        task("tests", "Run the tests", &[]),
        task("notes", "Write the notes", &["changes", "tests"]),
    ];
    ScriptedReply::call("plan", "final_answer", json!({ "tasks": tasks }))
}

fn last_message(request: &ModelRequest) -> String {
    let asked = request.messages.iter().rev().find_map(|message| match message {
        Message::User { text, .. } => Some(text.to_string()),
        _ => None,
    });
    asked.unwrap_or_default()
}

fn number(text: &str) -> Option<u64> {
    text.split(|character: char| !character.is_ascii_digit()).find_map(|digits| digits.parse().ok())
}

/// A result without the marks around it.
fn plain(marked: &str) -> String {
    let lines = marked.lines().filter(|line| !line.starts_with("<data") && *line != "</data>");
    lines.collect::<Vec<_>>().join("\n")
}

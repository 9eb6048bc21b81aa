//! The model without a network. It tells which node asks it and what it reads, and keeps a list of its calls in a file.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use workflow_agent::model::{Message, ModelRequest, ScriptedModel, ScriptedReply};

use crate::say;

/// The nodes in branches, whose calls never end if the model hangs.
pub(crate) const BRANCHES: [&str; 2] = ["boat", "walk"];

/// The calls of the model, over all processes.
#[derive(Clone)]
pub(crate) struct Calls(PathBuf);

impl Calls {
    pub(crate) fn of(folder: &Path) -> Self {
        Self(folder.join("calls.txt"))
    }

    /// The nodes that have called the model, in order.
    pub(crate) fn all(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn add(&self, node: &str) -> std::io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        writeln!(file, "{node}")
    }
}

pub(crate) fn model(calls: &Calls, hangs: bool) -> ScriptedModel {
    let calls = calls.clone();
    let model = ScriptedModel::respond(move |request| {
        if request.system.starts_with("You choose") {
            say("  the model chooses a route");
            return ScriptedReply::text(r#"{"choice": "write", "reason": "the weather is known"}"#);
        }
        let task = last_message(request);
        if task.starts_with("Judge the result") {
            return judge(&task);
        }
        let Part { node, before } = part(request);
        if let Err(error) = calls.add(&node) {
            say(format!("the list of calls cannot be written: {error}"));
        }
        let messages = request.messages.len();
        let whose = before.map_or("its own".to_owned(), |before| format!("that of {before}"));
        say(format!("  {node} asks the model. Conversation: {whose}, messages: {messages}"));
        if hangs && BRANCHES.contains(&&*node) {
            ScriptedReply::silent()
        } else {
            reply(request, &node, &task)
        }
    });
    model.named("offline")
}

/// The part of a conversation in which a request is.
struct Part {
    node: String,
    /// The node whose conversation it continues.
    before: Option<String>,
}

/// The last marker between two nodes tells; without one it is the first node, or a document without conversation.
fn part(request: &ModelRequest) -> Part {
    let texts = request.messages.iter().rev().map(Message::text);
    let marker = texts.into_iter().find(|text| text.starts_with("[Phase: "));
    let ids: Vec<&str> = marker.iter().flat_map(|text| text.split('`').skip(1).step_by(2).take(2)).collect();
    match ids[..] {
        [before, node] => Part { node: node.to_owned(), before: Some(before.to_owned()) },
        _ if last_message(request).starts_with("Report") => Part { node: "write".into(), before: None },
        _ => Part { node: "look".into(), before: None },
    }
}

fn judge(task: &str) -> ScriptedReply {
    let is_sourced = task.contains("station");
    say(if is_sourced {
        "  the judge accepts the text"
    } else {
        "  the judge refuses the text: it names no source"
    });
    ScriptedReply::text(if is_sourced {
        "VERDICT: yes\nREASONING: it names the station"
    } else {
        "VERDICT: no\nREASONING: it does not say who measured"
    })
}

fn reply(request: &ModelRequest, node: &str, task: &str) -> ScriptedReply {
    let has_looked = request.messages.iter().any(|message| matches!(message, Message::Results(_)));
    match node {
        "look" if !has_looked => ScriptedReply::call("look", "weather", json!({ "city": "Bern" })),
        "look" if task.starts_with("Your result did not pass") => {
            ScriptedReply::text("It has 24 degrees, says the station.")
        }
        "look" => ScriptedReply::text("It has 24 degrees."),
        "swim" => ScriptedReply::text("At 24 degrees: swim in the lake."),
        "boat" => ScriptedReply::text("A boat goes to the lake at nine."),
        "walk" => ScriptedReply::text("At 24 degrees: walk in the wood."),
        "tell" => ScriptedReply::text("The boat at nine, a swim in the lake, a walk in the wood."),
        _ => ScriptedReply::text("A warm day: 24 degrees, says the station."),
    }
}

fn last_message(request: &ModelRequest) -> String {
    let asked = request.messages.iter().rev().find_map(|message| match message {
        Message::User { text, .. } => Some(text.to_string()),
        _ => None,
    });
    asked.unwrap_or_default()
}

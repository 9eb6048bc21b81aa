//! Nodes of Hive documents: agents and functions.

use std::sync::Arc;
use std::time::Duration;

use super::{keys, metadata, present, required, text, texts};
use crate::document::model::hive::HiveNode;
use crate::document::model::unread::Unread;
use crate::document::model::{Agent, Extras, Located, Name, Next, Node, Reads, Retry, Work};
use crate::document::native::Reading;
use crate::document::native::name::is_id;
use crate::document::template::Template;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;

/// Attempts of a function that states none.
const ATTEMPTS: u32 = 3;
const MOST_ATTEMPTS: u32 = 1_000;

/// The fields that have a meaning to the engine.
const KEYS: [&str; 13] = [
    "id",
    "description",
    "node_type",
    "input_keys",
    "output_keys",
    "nullable_output_keys",
    "system_prompt",
    "tools",
    "model",
    "function",
    "max_retries",
    "max_node_visits",
    "name",
];

/// Without its edges.
pub(super) fn read(tree: &Tree, pauses: &[Name], reading: &mut Reading<'_>) -> Option<Node> {
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, "a node", "a map");
        return None;
    }
    let id = required(tree, "a node", "id", reading).and_then(|tree| id(tree, reading));
    let described = text(tree, "description", reading);
    let name = text(tree, "name", reading);
    let prompt = text(tree, "system_prompt", reading);
    let model = text(tree, "model", reading);
    let tools = texts(tree, "tools", reading);
    let function = present(tree, "function").map(|tree| reading.name(tree, "function"));
    let attempts = present(tree, "max_retries");
    let attempts = attempts.and_then(|tree| reading.number(tree, "max_retries", (0, MOST_ATTEMPTS)));
    let visits = present(tree, "max_node_visits");
    let visits = visits.and_then(|tree| reading.number(tree, "max_node_visits", (0, u32::MAX)));
    let is_function = kind(tree, reading);
    let hive = HiveNode {
        input_keys: keys(tree, "input_keys", reading),
        output_keys: keys(tree, "output_keys", reading),
        nullable: keys(tree, "nullable_output_keys", reading),
        is_pause: id.as_ref().is_some_and(|id| pauses.iter().any(|pause| pause.value == id.value)),
        edges: Vec::new(),
        failure: None,
        failure_opens: false,
        metadata: metadata(tree, &KEYS),
    };
    let id = id?;
    // One of an unknown type stays a node for the edges.
    let is_function = is_function.unwrap_or_default();
    let work = if is_function {
        // Hive registers functions by the ids of their nodes.
        Work::Function(function.flatten().unwrap_or_else(|| id.clone()))
    } else {
        let instruction = prompt.or(described.clone()).or(name).unwrap_or_else(|| id.value.clone());
        Work::Agent(Box::new(Agent {
            instruction: Template::Value(instruction.to_string().into()),
            model,
            allow: Some(tools),
            deny: Vec::new(),
            skills: Vec::new(),
            max_turns: None,
            rules: Vec::new(),
            background: Vec::new(),
        }))
    };
    let at = id.at;
    Some(Node {
        id,
        description: described,
        work,
        with: None,
        with_at: Vec::new(),
        reads: if is_function { Reads::Only(Vec::new()) } else { Reads::All },
        output: None,
        requires: None,
        ensure: None,
        retry: is_function.then(|| Located { value: retry(attempts.unwrap_or(ATTEMPTS)), at }),
        timeout: None,
        max_visits: visits.filter(|visits| *visits > 0),
        for_each: None,
        set: Vec::new(),
        on_failure: None,
        next: Next::End,
        on_no_match: None,
        extras: Extras::Hive(Box::new(hive)),
        unread: Unread::default(),
    })
}

/// `max_retries` counts attempts, and none is one. (HV5)
fn retry(attempts: u32) -> Retry {
    Retry::Attempts {
        attempts: Some(attempts.max(1)),
        first: Some(Duration::from_secs(1)),
        factor: Some(2.0),
        most: None,
        jitter: None,
    }
}

fn id(tree: &Tree, reading: &mut Reading<'_>) -> Option<Name> {
    let text: Arc<str> = reading.text(tree, "id")?.value.clone();
    if is_id(&text) {
        return Some(Located { value: text, at: tree.at });
    }
    let message = format!("`{text}` is no id of a node");
    let remedy = "begin with a letter or `_` and use at most 64 letters, digits, `_` and `-`";
    reading.problems.add(Code::BadName, tree.at, message, remedy);
    // It is found by the edges that name it.
    (!text.is_empty()).then_some(Located { value: text, at: tree.at })
}

/// Whether the node is a function. Nothing, after a problem, if it is neither that nor an agent.
fn kind(tree: &Tree, reading: &mut Reading<'_>) -> Option<bool> {
    let Some(kind) = present(tree, "node_type") else { return Some(false) };
    match &*reading.text(kind, "node_type")?.value {
        "event_loop" => Some(false),
        "function" => Some(true),
        other => {
            let message = format!("nodes of the type `{other}` cannot be run");
            let remedy = || "write `event_loop` for an agent, or `function`".to_owned();
            let known = ["event_loop", "function"];
            let problems = &mut *reading.problems;
            let similar = problems.add_unknown(Code::Unsupported, kind.at, message, other, known, remedy);
            similar.first().map(|meant| meant == "function")
        }
    }
}

//! Reads the work of a node: exactly one of eight kinds. `agent` reads agents.

use super::Reading;
use super::agent;
use super::fields::Fields;
use super::values::alternatives;
use crate::document::model::{Command, Human, Located, Name, Parse, Work};
use crate::document::template::Template;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;

/// The keys that say what a node does.
pub(super) const KINDS: [&str; 8] =
    ["function", "tool", "agent", "command", "human", "value", "graph", "workflow"];

/// The kind of a node and the value of its key. Nothing, after a problem, unless there is exactly one.
pub(super) fn kind<'t>(
    id: &Name,
    tree: &'t Tree,
    fields: &Fields<'t>,
    has_similar: bool,
    reading: &mut Reading<'_>,
) -> Option<(&'static str, &'t Tree)> {
    let present: Vec<&'static str> = KINDS.into_iter().filter(|key| fields.get(key).is_some()).collect();
    if let [kind] = present[..] {
        return fields.get(kind).map(|value| (kind, value));
    }
    if let [first, second, ..] = present[..] {
        let message = format!("the node `{}` does two things, `{first}` and `{second}`", id.value);
        let remedy = "split it into two nodes";
        reading.problems.add(Code::UnknownKey, fields.key_at(second), message, remedy);
    } else if !has_similar {
        let message = format!("the node `{}` does nothing", id.value);
        reading.problems.add(
            Code::MissingKey,
            tree.at,
            message,
            format!("add one of {}", alternatives(&KINDS)),
        );
    }
    None
}

pub(super) fn read(kind: &'static str, tree: &Tree, reading: &mut Reading<'_>) -> Option<Work> {
    match kind {
        "function" => reading.name(tree, kind).map(Work::Function),
        "tool" => reading.name(tree, kind).map(Work::Tool),
        "agent" => agent::read(tree, reading).map(|agent| Work::Agent(Box::new(agent))),
        "command" => command(tree, reading).map(|command| Work::Command(Box::new(command))),
        "human" => human(tree, reading).map(|human| Work::Human(Box::new(human))),
        "graph" => {
            let text = reading.text(tree, kind)?;
            reading.graph_name(&text.value, tree.at).map(Work::Graph)
        }
        "workflow" => workflow(tree, reading),
        _ => Some(Work::Value(reading.template(tree))),
    }
}

fn command(tree: &Tree, reading: &mut Reading<'_>) -> Option<Command> {
    if matches!(tree.kind, Kind::List(_)) {
        return Some(Command { run: arguments(tree, reading)?, stdin: None, env: Vec::new(), parse: None });
    }
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, "`command`", "a list of the program and its arguments, or a map");
        return None;
    }
    let fields = Fields::new(tree, "a command", &["run", "stdin", "env", "parse"], reading)?;
    let run = fields.required("run", reading).and_then(|tree| arguments(tree, reading)).unwrap_or_default();
    let stdin = fields.template("stdin", reading);
    let env = fields.get("env").map(|tree| env(tree, reading)).unwrap_or_default();
    let parse = fields.word("parse", &[("json", Parse::Json), ("text", Parse::Text)], reading);
    Some(Command { run, stdin, env, parse })
}

fn arguments(tree: &Tree, reading: &mut Reading<'_>) -> Option<Vec<Template>> {
    let items = reading.list(tree, "run");
    if items.is_empty() {
        if matches!(tree.kind, Kind::List(_)) {
            reading.problems.add(Code::MissingKey, tree.at, "the command is empty", "begin with the program");
        }
        return None;
    }
    Some(items.iter().map(|item| reading.template(item)).collect())
}

fn env(tree: &Tree, reading: &mut Reading<'_>) -> Vec<(Name, Template)> {
    let Kind::Map(pairs) = &tree.kind else {
        reading.wrong_type(tree, "`env`", "a map");
        return Vec::new();
    };
    let mut env = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        if key.name.is_empty() || key.name.contains(['=', '\0']) {
            let message = format!("`{}` is no name of an environment variable", key.name);
            reading.problems.add(Code::BadName, key.at, message, "use letters, digits and `_`");
            continue;
        }
        env.push((Located { value: key.name.clone(), at: key.at }, reading.template(value)));
    }
    env
}

fn human(tree: &Tree, reading: &mut Reading<'_>) -> Option<Human> {
    let fields = Fields::new(tree, "`human`", &["ask", "reply", "expires"], reading)?;
    let ask = fields.required("ask", reading).map(|tree| reading.template(tree));
    let ask = ask.unwrap_or(Template::Value(serde_json::Value::Null));
    let reply = fields.get("reply").and_then(|tree| reading.schema(tree, "reply"));
    // A reply whose schema is wrong is no reply without a schema.
    reading.unread.reply = reply.is_none() && (fields.get("reply").is_some() || fields.is_meant("reply"));
    let expires = fields.positive_duration("expires", reading);
    Some(Human { at: tree.at, ask, reply, expires })
}

fn workflow(tree: &Tree, reading: &mut Reading<'_>) -> Option<Work> {
    let fields = Fields::new(tree, "`workflow`", &["name", "start"], reading)?;
    let name = fields.required("name", reading).and_then(|tree| reading.name(tree, "name"));
    let start = fields.required("start", reading).and_then(|tree| reading.name(tree, "start"));
    Some(Work::Workflow { name: name?, start: start? })
}

/// Stands for work that could not be read, so that the rest of the node is checked.
pub(super) fn unreadable() -> Work {
    Work::Value(Template::Value(serde_json::Value::Null))
}

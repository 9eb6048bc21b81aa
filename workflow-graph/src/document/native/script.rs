//! Scripts, which stand in for people, models and functions. Nothing is played here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use workflow_core::ErrorClass;

use super::Reading;
use super::fields::Fields;
use crate::ToolCall;
use crate::document::files::Files;
use crate::document::model::Located;
use crate::document::source::Source;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;
use crate::problem::sink::Problems;

/// A script. The entries of a node are in order, and the last repeats; no list is empty.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) nodes: ByNode<Entry>,
    pub(crate) decide: ByNode<Arc<str>>,
    pub(crate) judge: ByNode<Arc<str>>,
    pub(crate) ask: Vec<Arc<str>>,
    pub(crate) replies: ByNode<Value>,
}

/// Lists by the ids of nodes, and where the script writes these.
pub(crate) type ByNode<T> = HashMap<Arc<str>, Located<Vec<T>>>;

/// One attempt of a node.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) play: Play,
    pub(crate) after: Option<Duration>,
    pub(crate) called: Vec<ToolCall>,
}

/// The end of an attempt.
#[derive(Debug)]
pub(crate) enum Play {
    Data(Value),
    Fail { message: Arc<str>, class: ErrorClass },
    Skip(Arc<str>),
}

const KEYS: [&str; 5] = ["nodes", "decide", "judge", "ask", "replies"];
const ENTRY: [&str; 6] = ["data", "fail", "skip", "class", "called", "after"];
const ENDS: [&str; 3] = ["data", "fail", "skip"];

const CLASSES: [(&str, ErrorClass); 5] = [
    ("transient", ErrorClass::Transient),
    ("tool", ErrorClass::Tool),
    ("model", ErrorClass::Model),
    ("permanent", ErrorClass::Permanent),
    ("rejected", ErrorClass::Rejected),
];

/// Reads a script: YAML or JSON. One that is empty says nothing, and is good.
pub(crate) fn read(text: &str, problems: &mut Problems) -> Script {
    let source = Source::new(text);
    let documents = crate::document::read::read(source, problems).trees;
    if let [_, second, ..] = &documents[..] {
        let message = "the file has several documents, and a script is one";
        problems.add(Code::WrongType, second.at, message, "remove the others");
    }
    let Some(tree) = documents.first() else { return Script::default() };
    let mut files = Files::default();
    let mut reading = Reading::new(source, &mut files, problems);
    let Some(fields) = Fields::new(tree, "a script", &KEYS, &mut reading) else { return Script::default() };
    Script {
        nodes: by_node(&fields, "nodes", entry, &mut reading),
        decide: by_node(&fields, "decide", text_of, &mut reading),
        judge: by_node(&fields, "judge", text_of, &mut reading),
        ask: fields.get("ask").map(|tree| list(tree, "ask", text_of, &mut reading)).unwrap_or_default(),
        replies: by_node(&fields, "replies", |tree, _, _| Some(tree.to_json()), &mut reading),
    }
}

/// Reads one entry of a list, whose name problems give.
type Item<T> = fn(&Tree, &str, &mut Reading<'_>) -> Option<T>;

fn by_node<T>(fields: &Fields<'_>, key: &str, item: Item<T>, reading: &mut Reading<'_>) -> ByNode<T> {
    let Some(tree) = fields.get(key) else { return HashMap::new() };
    let Kind::Map(pairs) = &tree.kind else {
        reading.wrong_type(tree, &format!("`{key}`"), "a map of nodes to lists");
        return HashMap::new();
    };
    let lists = pairs.iter().map(|(id, tree)| {
        let value = list(tree, &id.name, item, reading);
        (id.name.clone(), Located { value, at: id.at })
    });
    lists.collect()
}

fn list<T>(tree: &Tree, key: &str, item: Item<T>, reading: &mut Reading<'_>) -> Vec<T> {
    if matches!(&tree.kind, Kind::List(items) if items.is_empty()) {
        let message = format!("the list of `{key}` is empty, and its last entry would repeat");
        reading.problems.add(Code::WrongType, tree.at, message, "add an entry, or remove the key");
    }
    let items = reading.list(tree, key);
    items.iter().filter_map(|tree| item(tree, key, reading)).collect()
}

fn text_of(tree: &Tree, key: &str, reading: &mut Reading<'_>) -> Option<Arc<str>> {
    reading.text(tree, key).map(|text| text.value.clone())
}

fn entry(tree: &Tree, _: &str, reading: &mut Reading<'_>) -> Option<Entry> {
    let fields = Fields::new(tree, "an entry of a script", &ENTRY, reading)?;
    let present: Vec<&str> = ENDS.into_iter().filter(|key| fields.get(key).is_some()).collect();
    if let [first, second, ..] = present[..] {
        let message = format!("an attempt ends once, and this one has `{first}` and `{second}`");
        let at = fields.key_at(second);
        reading.problems.add(Code::UnknownKey, at, message, "make two entries of it");
    }
    let class = fields.word("class", &CLASSES, reading);
    if fields.get("class").is_some() && !present.contains(&"fail") {
        let message = "`class` belongs to an entry with `fail`, and this one has none";
        reading.problems.add(Code::UnknownKey, fields.key_at("class"), message, "remove it, or add `fail:`");
    }
    let play = match present.first() {
        Some(&"fail") => Play::Fail {
            message: fields.text("fail", reading)?,
            class: class.unwrap_or(ErrorClass::Transient),
        },
        Some(&"skip") => Play::Skip(fields.text("skip", reading)?),
        _ => Play::Data(fields.get("data").map_or_else(|| Map::new().into(), Tree::to_json)),
    };
    let after = fields.duration("after", reading);
    let called = fields.get("called").map(|tree| calls(tree, reading)).unwrap_or_default();
    Some(Entry { play, after, called })
}

fn calls(tree: &Tree, reading: &mut Reading<'_>) -> Vec<ToolCall> {
    let items = reading.list(tree, "called");
    items.iter().filter_map(|tree| call(tree, reading)).collect()
}

fn call(tree: &Tree, reading: &mut Reading<'_>) -> Option<ToolCall> {
    let fields = Fields::new(tree, "a call", &["tool", "ok", "input", "output", "error"], reading)?;
    let stated = match fields.get("ok") {
        None => None,
        Some(Tree { kind: Kind::Bool(ok), .. }) => Some(*ok),
        Some(tree) => {
            reading.wrong_type(tree, "`ok`", "`true` or `false`");
            None
        }
    };
    let tool = fields.required("tool", reading).and_then(|tree| reading.name(tree, "tool"))?.value;
    let json = |key: &str| fields.get(key).map(Tree::to_json).unwrap_or_default();
    let error =
        fields.get("error").and_then(|tree| reading.text(tree, "error")).map(|text| text.value.clone());
    let call = match error {
        Some(error) => ToolCall::failed(tool, json("input"), error),
        None => ToolCall::returned(tool, json("input"), json("output")),
    };
    Some(ToolCall { ok: stated.unwrap_or(call.ok), ..call })
}

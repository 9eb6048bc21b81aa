//! The top level of a document. Nodes are read in `node`.

use foldhash::HashMap;

use super::fields::Fields;
use super::{MOST_NODES, MOST_ROUTES, Reading, node, retry};
use crate::document::model::unread::{GraphUnread, words};
use crate::document::model::{Defaults, Dialect, Graph, Limits, Located, Name, OnNoMatch, Var};
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;
use crate::problem::sink::At;

/// The most visits that `limits.steps` may allow.
pub(crate) const MOST_STEPS: u32 = 100_000;
/// The most items that `limits.items` may allow.
pub(crate) const MOST_ITEMS: u32 = 100_000;

const KEYS: [&str; 10] =
    ["graph", "format", "description", "input", "vars", "output", "start", "limits", "defaults", "nodes"];

pub(super) const ON_NO_MATCH: [(&str, OnNoMatch); 2] = [("fail", OnNoMatch::Fail), ("end", OnNoMatch::End)];

pub(super) fn read(tree: &Tree, reading: &mut Reading<'_>) -> Option<Graph> {
    let fields = Fields::new(tree, "a document", &KEYS, reading)?;
    let name = fields.required("graph", reading).and_then(|tree| {
        let text = reading.text(tree, "graph")?;
        reading.graph_name(&text.value, tree.at)
    });
    format(&fields, reading);
    let mut unread = unread(tree, &fields);
    let vars = fields.get("vars").map(|tree| vars(tree, &mut unread, reading)).unwrap_or_default();
    let start = fields.get("start").map(|tree| reading.reference(tree, "start"));
    let mut graph = Graph {
        name: name.unwrap_or(Located { value: "".into(), at: tree.at }),
        description: fields.text("description", reading),
        input: fields.get("input").and_then(|tree| reading.schema(tree, "input")),
        vars,
        output: fields.template("output", reading),
        limits: fields.get("limits").map(|tree| limits(tree, reading)).unwrap_or_default(),
        defaults: fields.get("defaults").map(|tree| defaults(tree, reading)).unwrap_or_default(),
        nodes: Vec::new(),
        ids: HashMap::default(),
        start: start.map(|start| start.unwrap_or(Located { value: "".into(), at: tree.at })),
        unread,
        dialect: Dialect::Native,
    };
    nodes(&fields, &mut graph, reading);
    if reading.routes > MOST_ROUTES {
        let message =
            format!("the graph has {} routes, and at most {MOST_ROUTES} are allowed", reading.routes);
        reading.problems.add(
            Code::TooLarge,
            fields.key_at("nodes"),
            message,
            "move parts to graphs of their own",
        );
    }
    Some(graph)
}

/// The unreadable parts of the graph that are known before its nodes are read.
fn unread(tree: &Tree, fields: &Fields<'_>) -> GraphUnread {
    let mut unread = GraphUnread::default();
    for (_, value) in tree.repeated() {
        words(value, &mut unread.words);
    }
    fields.unread().iter().for_each(|value| words(value, &mut unread.words));
    unread.vars = fields.get("vars").is_none() && fields.is_meant("vars");
    unread
}

fn format(fields: &Fields<'_>, reading: &mut Reading<'_>) {
    let Some(tree) = fields.get("format") else { return };
    if !matches!(&tree.kind, Kind::Number(number) if number.as_u64() == Some(1)) {
        reading.problems.add(
            Code::WrongType,
            tree.at,
            "`format` is 1, the only version of the format",
            "write `format: 1`, or remove the key",
        );
    }
}

fn vars(tree: &Tree, unread: &mut GraphUnread, reading: &mut Reading<'_>) -> Vec<Var> {
    let Kind::Map(pairs) = &tree.kind else {
        reading.wrong_type(tree, "`vars`", "a map");
        unread.vars = true;
        return Vec::new();
    };
    pairs
        .iter()
        .map(|(key, value)| {
            // A variable with a bad name is found by those who name it all the same.
            let name = reading.variable(&key.name, key.at).unwrap_or_else(|| unusable(&key.name, key.at));
            reading.plain(value, &format!("vars.{}", key.name));
            Var { name, first: value.to_json() }
        })
        .collect()
}

fn limits(tree: &Tree, reading: &mut Reading<'_>) -> Limits {
    let normal = Limits::default();
    let Some(fields) = Fields::new(tree, "`limits`", &["steps", "time", "items"], reading) else {
        return normal;
    };
    Limits {
        steps: fields.number("steps", (1, MOST_STEPS), reading).unwrap_or(normal.steps),
        time: fields.positive_duration("time", reading),
        items: fields.number("items", (1, MOST_ITEMS), reading).unwrap_or(normal.items),
    }
}

fn defaults(tree: &Tree, reading: &mut Reading<'_>) -> Defaults {
    let keys = ["timeout", "retry", "model", "judge_model", "on_no_match"];
    let Some(fields) = Fields::new(tree, "`defaults`", &keys, reading) else { return Defaults::default() };
    Defaults {
        timeout: fields.positive_duration("timeout", reading),
        retry: fields.get("retry").and_then(|tree| retry::read(tree, reading)),
        model: fields.text("model", reading),
        judge_model: fields.text("judge_model", reading),
        on_no_match: fields.word("on_no_match", &ON_NO_MATCH, reading),
    }
}

fn nodes(fields: &Fields<'_>, graph: &mut Graph, reading: &mut Reading<'_>) {
    let Some(tree) = fields.required("nodes", reading) else {
        graph.unread.nodes = true;
        return;
    };
    let Kind::Map(pairs) = &tree.kind else {
        graph.unread.nodes = true;
        return reading.wrong_type(tree, "`nodes`", "a map of ids to nodes");
    };
    if pairs.is_empty() {
        graph.unread.nodes = true;
        reading.problems.add(Code::MissingKey, tree.at, "the graph has no node", "add one to `nodes`");
    }
    if pairs.len() > MOST_NODES {
        graph.unread.nodes = true;
        let message = format!("the graph has {} nodes, and at most {MOST_NODES} are allowed", pairs.len());
        reading.problems.add(Code::TooLarge, tree.at, message, "move parts to graphs of their own");
        return;
    }
    for (key, tree) in pairs {
        // A node with a bad id is read all the same, for its own problems, and found by the routes that name it.
        let id = match reading.id(&key.name, key.at, "id of a node") {
            Some(id) => id,
            None => unusable(&key.name, key.at),
        };
        let node = node::read(id, tree, reading);
        graph.ids.insert(key.name.clone(), graph.nodes.len());
        graph.nodes.push(node);
    }
    for (key, value) in tree.repeated() {
        if let Some(first) = graph.find(&key.name) {
            words(value, &mut graph.nodes[first].unread.words);
        }
    }
}

fn unusable(name: &str, at: At) -> Name {
    Located { value: name.into(), at }
}

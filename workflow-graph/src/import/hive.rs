//! Hive agents: the tree of an export, or of its graph alone, to the model. It runs nothing.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::document::Source;
use crate::document::files::Files;
use crate::document::model::hive::HiveGraph;
use crate::document::model::unread::{GraphUnread, Words, words};
use crate::document::model::{Conflicts, Defaults, Dialect, Failures, Graph, Limits, Located, Name, Schema};
use crate::document::native::fields;
use crate::document::native::{MOST_NODES, MOST_ROUTES, Reading};
use crate::document::tree::{Kind, Tree};
use crate::executor::ConversationMode;
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

mod edge;
pub(crate) mod form;
mod node;
mod shape;

/// The visits that a document allows which states no `max_steps`.
const STEPS: u32 = 100;
/// The most visits that it may allow.
const MOST_STEPS: u32 = 100_000;

/// The rules of branches, which Hive documents do not state.
///
/// ```
/// use workflow_graph::{BranchConflicts, BranchFailures, Format, HiveOptions};
///
/// let options = HiveOptions::new().failures(BranchFailures::WaitAll).conflicts(BranchConflicts::Error);
/// let format = Format::Hive(options);
/// # drop(format);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HiveOptions {
    failures: BranchFailures,
    conflicts: BranchConflicts,
}

/// The consequence of a failure in one branch for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BranchFailures {
    /// The first failure drops the other branches and fails the node that opened them.
    #[default]
    FailAll,
    /// The other branches continue, and so does the node where they meet. The run is degraded.
    ContinueOthers,
    /// The same, and the node where they meet sees the errors.
    WaitAll,
}

/// The winner where two branches write one key of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BranchConflicts {
    /// The branches cannot be joined, and the node that opened them fails.
    Error,
    /// The branch that ended last.
    #[default]
    LastWins,
    /// The branch that ended first.
    FirstWins,
}

impl HiveOptions {
    /// The default: the first failure ends all branches, and the last write wins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the consequence of a failure in one branch for the others.
    #[must_use]
    pub fn failures(self, failures: BranchFailures) -> Self {
        Self { failures, ..self }
    }

    /// Sets the winner where two branches write one key of memory.
    #[must_use]
    pub fn conflicts(self, conflicts: BranchConflicts) -> Self {
        Self { conflicts, ..self }
    }

    fn of_branches(self) -> (Failures, Conflicts) {
        let failures = match self.failures {
            BranchFailures::FailAll => Failures::FailAll,
            BranchFailures::ContinueOthers => Failures::ContinueOthers,
            BranchFailures::WaitAll => Failures::WaitAll,
        };
        let conflicts = match self.conflicts {
            BranchConflicts::Error => Conflicts::Error,
            BranchConflicts::LastWins => Conflicts::LastWins,
            BranchConflicts::FirstWins => Conflicts::FirstWins,
        };
        (failures, conflicts)
    }
}

/// The keys that have a meaning to the engine, of graphs, nodes and edges together.
const KEYS: [&str; 34] = [
    "id",
    "entry_node",
    "nodes",
    "edges",
    "terminal_nodes",
    "pause_nodes",
    "entry_points",
    "max_steps",
    "description",
    "goal",
    "goal_id",
    "version",
    "default_model",
    "max_tokens",
    "conversation_mode",
    "identity_prompt",
    "loop_config",
    "name",
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
    "source",
    "target",
    "condition",
    "condition_expr",
    "input_mapping",
    "priority",
];

/// The graph of a file: one, unless it cannot be read at all.
pub(crate) fn graphs(
    documents: &[Tree],
    options: HiveOptions,
    source: Source<'_>,
    files: &mut Files,
    problems: &mut Problems,
) -> Vec<Graph> {
    for further in documents.iter().skip(1) {
        let message = "a Hive file has one agent, and this is a second document";
        problems.add(Code::Unsupported, further.at, message, "move it to a file of its own");
    }
    let mut reading = Reading::new(source, files, problems);
    documents.first().and_then(|tree| read(tree, options, &mut reading)).into_iter().collect()
}

/// The value of a key. Exports write absent values as null.
fn present<'t>(tree: &'t Tree, key: &str) -> Option<&'t Tree> {
    tree.get(key).filter(|value| !matches!(value.kind, Kind::Null))
}

fn required<'t>(tree: &'t Tree, what: &str, key: &str, reading: &mut Reading<'_>) -> Option<&'t Tree> {
    let slip =
        |reading: &mut Reading<'_>| fields::slip(tree, what, key, &KEYS, reading).map(|(_, value)| value);
    let found = present(tree, key).or_else(|| slip(reading));
    if found.is_none() {
        let message = format!("{what} needs the key `{key}`");
        reading.problems.add(Code::MissingKey, tree.at, message, format!("add `{key}`"));
    }
    found
}

fn text(tree: &Tree, key: &str, reading: &mut Reading<'_>) -> Option<Arc<str>> {
    let text = reading.text(present(tree, key)?, key)?;
    Some(text.value.clone())
}

fn texts(tree: &Tree, key: &str, reading: &mut Reading<'_>) -> Vec<Name> {
    present(tree, key).map(|tree| reading.names(tree, key)).unwrap_or_default()
}

fn keys(tree: &Tree, key: &str, reading: &mut Reading<'_>) -> Vec<Arc<str>> {
    texts(tree, key, reading).into_iter().map(|name| name.value).collect()
}

/// The keys of a map that have no meaning here.
fn metadata(tree: &Tree, known: &[&str]) -> Value {
    let Kind::Map(pairs) = &tree.kind else { return json!({}) };
    let other = pairs.iter().filter(|(key, _)| !known.contains(&&*key.name));
    Value::Object(other.map(|(key, value)| (key.name.to_string(), value.to_json())).collect())
}

/// A map of names to names.
fn names_of_names(tree: &Tree, key: &str, reading: &mut Reading<'_>) -> Vec<(Arc<str>, Name)> {
    let Some(tree) = present(tree, key) else { return Vec::new() };
    let Kind::Map(pairs) = &tree.kind else {
        reading.wrong_type(tree, &format!("`{key}`"), "a map of texts");
        return Vec::new();
    };
    let named = pairs.iter().filter_map(|(name, value)| Some((name.name.clone(), reading.name(value, key)?)));
    named.collect()
}

const MODES: [(&str, ConversationMode); 2] =
    [("continuous", ConversationMode::Continuous), ("isolated", ConversationMode::Isolated)];

fn read(tree: &Tree, options: HiveOptions, reading: &mut Reading<'_>) -> Option<Graph> {
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, "a Hive agent", "a map");
        return None;
    }
    if let Some(form) = form::of(tree) {
        form.refuse(reading.problems);
        return None;
    }
    let (export, tree) = match present(tree, "graph") {
        Some(graph) if matches!(graph.kind, Kind::Map(_)) => (Some(tree), graph),
        Some(graph) => {
            reading.wrong_type(graph, "`graph`", "a map");
            return None;
        }
        None => (None, tree),
    };
    let name = required(tree, "a graph", "id", reading).and_then(|tree| {
        let text = reading.text(tree, "id")?;
        reading.graph_name(&text.value, tree.at)
    });
    let number = |key, reading: &mut Reading<'_>| {
        present(tree, key).and_then(|tree| reading.number(tree, key, (1, MOST_STEPS)))
    };
    let goal = export.and_then(|export| present(export, "goal")).or(present(tree, "goal"));
    let mode = present(tree, "conversation_mode");
    let hive = HiveGraph {
        goal: goal.map(Tree::to_json),
        identity_prompt: text(tree, "identity_prompt", reading),
        mode: mode.and_then(|mode| reading.word(mode, "conversation_mode", &MODES)).unwrap_or_default(),
        loop_config: present(tree, "loop_config").map(Tree::to_json),
        roots: roots(tree),
    };
    let limits = Limits { steps: number("max_steps", reading).unwrap_or(STEPS), ..Limits::default() };
    let start = required(tree, "a graph", "entry_node", reading);
    let start = start.and_then(|tree| reading.name(tree, "entry_node"));
    let start = start.unwrap_or(Located { value: "".into(), at: tree.at });
    let mut graph = Graph {
        name: name.unwrap_or(Located { value: "".into(), at: tree.at }),
        description: text(tree, "description", reading),
        input: Some(a_map(tree.at)?),
        vars: Vec::new(),
        output: None,
        start: Some(start),
        limits,
        defaults: Defaults { model: text(tree, "default_model", reading), ..Defaults::default() },
        nodes: Vec::new(),
        ids: HashMap::default(),
        unread: GraphUnread::default(),
        dialect: Dialect::Hive(Box::new(hive)),
    };
    nodes(tree, &mut graph, reading);
    let edges = edge::read_all(tree, &mut graph, reading);
    named_nodes(tree, &graph, reading);
    let resumes = resumes(tree, &graph, reading);
    shape::shape(&mut graph, edges, &texts(tree, "terminal_nodes", reading), &resumes, options.of_branches());
    Some(graph)
}

/// The schema of maps: memory begins with the input.
fn a_map(at: At) -> Option<Schema> {
    let value = json!({ "type": "object" });
    let validator = jsonschema::validator_for(&value).ok()?;
    Some(Schema { at, value: Arc::new(value), validator: Arc::new(validator) })
}

fn nodes(tree: &Tree, graph: &mut Graph, reading: &mut Reading<'_>) {
    let Some(list) = required(tree, "a graph", "nodes", reading) else {
        graph.unread.nodes = true;
        return;
    };
    let items = reading.list(list, "nodes");
    if items.is_empty() {
        graph.unread.nodes = true;
        if matches!(list.kind, Kind::List(_)) {
            reading.problems.add(Code::MissingKey, list.at, "the graph has no node", "add one to `nodes`");
        }
        return;
    }
    if items.len() > MOST_NODES {
        let message = format!("the graph has {} nodes, and at most {MOST_NODES} are allowed", items.len());
        reading.problems.add(Code::TooLarge, list.at, message, "split the agent into several");
        graph.unread.nodes = true;
        return;
    }
    let pauses = texts(tree, "pause_nodes", reading);
    for item in items {
        let Some(node) = node::read(item, &pauses, reading) else {
            // Any name may be that of a node without an id.
            graph.unread.names = true;
            continue;
        };
        if let Some(first) = graph.find(&node.id.value) {
            let line = graph.nodes[first].id.at.line;
            let message = format!("two nodes have the id `{}`, the first in line {line}", node.id.value);
            reading.problems.add(Code::DuplicateKey, node.id.at, message, "rename one of them");
            continue;
        }
        graph.ids.insert(node.id.value.clone(), graph.nodes.len());
        graph.nodes.push(node);
    }
}

/// `unknown-start` and `unknown-node`, for names of nodes outside of the nodes themselves.
fn named_nodes(tree: &Tree, graph: &Graph, reading: &mut Reading<'_>) {
    if let Some(start) = graph.start.clone() {
        known(&start, Code::UnknownStart, "`entry_node` is", graph, reading);
    }
    for (key, what) in [("terminal_nodes", "`terminal_nodes` has"), ("pause_nodes", "`pause_nodes` has")] {
        // Names that are no texts were reported where the list was read first, or are below.
        let mut ignored = Problems::new("");
        let mut quiet = Reading::new(reading.source, &mut *reading.files, &mut ignored);
        let names = texts(tree, key, &mut quiet);
        for name in &names {
            known(name, Code::UnknownNode, what, graph, reading);
        }
    }
}

/// Reports a name that no node has. Returns the place of the node that has it, or that is meant.
fn known(name: &Name, code: Code, what: &str, graph: &Graph, reading: &mut Reading<'_>) -> Option<usize> {
    let found = graph.find(&name.value);
    if found.is_some() || graph.nodes.is_empty() || name.value.is_empty() || graph.unread.names {
        return found;
    }
    let similar = reading.problems.add_unknown(
        code,
        name.at,
        format!("{what} `{}`, and the graph has no such node", name.value),
        &name.value,
        graph.nodes.iter().map(|node| &*node.id.value),
        || "add the node, or name another".to_owned(),
    );
    similar.first().and_then(|near| graph.find(near))
}

/// By the name of a pause node, the node at which the run goes on after the reply.
fn resumes(tree: &Tree, graph: &Graph, reading: &mut Reading<'_>) -> Map<String, Value> {
    let points = names_of_names(tree, "entry_points", reading);
    for (point, node) in &points {
        known(node, Code::UnknownNode, &format!("the entry point `{point}` is"), graph, reading);
    }
    let resumes = points.iter().filter_map(|(point, node)| {
        let paused = point.strip_suffix("_resume")?;
        Some((paused.to_owned(), Value::from(&*node.value)))
    });
    resumes.collect()
}

/// The nodes that a document names as further begins: entry points, pause nodes, and sub-agents.
fn roots(tree: &Tree) -> Vec<Arc<str>> {
    let mut found = Words::new();
    for key in ["entry_points", "async_entry_points", "pause_nodes"] {
        if let Some(tree) = present(tree, key) {
            words(tree, &mut found);
        }
    }
    if let Some(Kind::List(nodes)) = present(tree, "nodes").map(|nodes| &nodes.kind) {
        let agents = nodes.iter().filter_map(|node| present(node, "sub_agents"));
        agents.for_each(|tree| words(tree, &mut found));
    }
    found.into_iter().collect()
}

/// Counts edges, of which a graph may have as many as routes.
fn count(edges: usize, at: At, reading: &mut Reading<'_>) -> bool {
    let is_within = edges <= MOST_ROUTES;
    if !is_within {
        let message = format!("the graph has {edges} edges, and at most {MOST_ROUTES} are allowed");
        reading.problems.add(Code::TooLarge, at, message, "split the agent into several");
    }
    is_within
}

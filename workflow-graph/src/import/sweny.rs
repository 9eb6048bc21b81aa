//! SWEny documents: trees to the model. This file owns the options and the top level; each level below is a file of its own.

use foldhash::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::document::Source;
use crate::document::files::Files;
use crate::document::model::sweny::{EvaluatorKind, SwenyGraph};
use crate::document::model::unread::{GraphUnread, words};
use crate::document::model::{Defaults, Dialect, Extras, Graph, Limits, Located, Name};
use crate::document::native::fields::Fields;
use crate::document::native::name::is_id;
use crate::document::native::{MOST_NODES, MOST_ROUTES, Reading};
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

mod edges;
mod eval;
mod inputs;
mod node;
mod skills;
mod source;

use source::Sources;

/// Judges that a document may declare before a warning.
const JUDGE_BUDGET: u32 = 50;

/// The keys of the top level. Others are metadata.
const KEYS: [&str; 14] = [
    "id",
    "name",
    "entry",
    "nodes",
    "edges",
    "description",
    "workflow_type",
    "skills",
    "rules",
    "context",
    "model",
    "judge_model",
    "judge_budget",
    "inputs",
];

/// How a SWEny document is imported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwenyOptions {
    is_parallel: bool,
    steps: Option<u32>,
    time: Option<Duration>,
}

impl SwenyOptions {
    /// The default: one walk that follows one edge at a time, of at most 200 visits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a branch per edge behind a node all of whose edges have no condition. Without it, such a node is a problem.
    ///
    /// The walk continues where the branches meet, once all of them have ended. The failure of one does not stop the others.
    #[must_use]
    pub fn parallel(self) -> Self {
        Self { is_parallel: true, ..self }
    }

    /// Ends runs after this many visits, at least 1. The default is 200.
    #[must_use]
    pub fn steps(self, steps: u32) -> Self {
        Self { steps: Some(steps.max(1)), ..self }
    }

    /// Ends runs after this time, at least a millisecond. By default they may take any.
    #[must_use]
    pub fn time(self, time: Duration) -> Self {
        Self { time: Some(time.max(Duration::from_millis(1))), ..self }
    }

    fn limits(&self) -> Limits {
        let normal = Limits::default();
        Limits { steps: self.steps.unwrap_or(normal.steps), time: self.time, ..normal }
    }
}

/// The graph of a file.
pub(crate) fn graphs(
    options: &SwenyOptions,
    documents: &[Tree],
    source: Source<'_>,
    files: &mut Files,
    problems: &mut Problems,
) -> Vec<Graph> {
    let Some((first, others)) = documents.split_first() else { return Vec::new() };
    for other in others {
        let message = "a SWEny file holds one document, and this is another one";
        problems.add(Code::Unsupported, other.at, message, "move it to a file of its own");
    }
    let mut reading = Reading::new(source, files, problems);
    read(options, first, &mut reading).into_iter().collect()
}

fn read(options: &SwenyOptions, tree: &Tree, reading: &mut Reading<'_>) -> Option<Graph> {
    let required = ["id", "name", "entry", "nodes", "edges"];
    let fields = Fields::open(tree, "a SWEny document", &KEYS, &required, reading)?;
    legacy(&fields, reading);
    let name = fields.required("id", reading).and_then(|tree| {
        let text = reading.text(tree, "id")?;
        reading.graph_name(&text.value, tree.at)
    });
    let title = fields.required("name", reading).and_then(|tree| reading.text(tree, "name"));
    let entry = fields.required("entry", reading).map(|tree| reading.name(tree, "entry"));
    fields.text("workflow_type", reading);
    let mut sources = Sources::default();
    let skills = fields.get("skills").map(|tree| skills::read(tree, reading)).unwrap_or_default();
    let rules = sources.list(fields.get("rules"), "rules", "rules", reading);
    let context = sources.list(fields.get("context"), "context", "context", reading);
    let inputs = fields.get("inputs").map(|tree| inputs::read(tree, reading));
    let (input, inputs) = inputs.unwrap_or_default();
    let defaults = Defaults {
        model: fields.text("model", reading),
        judge_model: fields.text("judge_model", reading),
        ..Defaults::default()
    };
    let description = fields.text("description", reading);
    let mut graph = Graph {
        name: name.unwrap_or(Located { value: "".into(), at: tree.at }),
        description: description.or_else(|| title.map(|title| title.value.clone())),
        input,
        vars: Vec::new(),
        output: None,
        limits: options.limits(),
        defaults,
        nodes: Vec::new(),
        ids: HashMap::default(),
        start: Some(entry.flatten().unwrap_or(Located { value: "".into(), at: tree.at })),
        unread: GraphUnread::default(),
        dialect: Dialect::Native,
    };
    nodes(&fields, &mut graph, &mut sources, reading);
    edges::read(&fields, options.is_parallel, &mut graph, reading);
    budget(&fields, &graph, reading);
    if reading.routes > MOST_ROUTES {
        let message =
            format!("the document has {} edges, and at most {MOST_ROUTES} are allowed", reading.routes);
        reading.problems.add(Code::TooLarge, fields.key_at("edges"), message, "split the document");
    }
    let metadata = match &tree.kind {
        Kind::Map(pairs) => {
            let open = pairs.iter().filter(|(key, _)| !KEYS.contains(&&*key.name));
            open.map(|(key, value)| (key.name.to_string(), value.to_json())).collect()
        }
        _ => serde_json::Map::new(),
    };
    let sources = sources.read;
    graph.dialect =
        Dialect::Sweny(Box::new(SwenyGraph { rules, context, skills, inputs, metadata, sources }));
    Some(graph)
}

/// `legacy-key`: `verify` became `eval`.
fn legacy(fields: &Fields<'_>, reading: &mut Reading<'_>) {
    if fields.get("verify").is_some() {
        let message = "`verify` is a key of a former version of the format";
        let remedy = "write its checks as evaluators of a node, under `eval`";
        reading.problems.add(Code::LegacyKey, fields.key_at("verify"), message, remedy);
    }
}

fn nodes(fields: &Fields<'_>, graph: &mut Graph, sources: &mut Sources, reading: &mut Reading<'_>) {
    for (_, value) in fields.repeated() {
        words(value, &mut graph.unread.words);
    }
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
        reading.problems.add(Code::MissingKey, tree.at, "the document has no node", "add one to `nodes`");
    }
    if pairs.len() > MOST_NODES {
        graph.unread.nodes = true;
        let message = format!("the document has {} nodes, and at most {MOST_NODES} are allowed", pairs.len());
        reading.problems.add(Code::TooLarge, tree.at, message, "split the document");
        return;
    }
    let known: Vec<&str> = pairs.iter().map(|(key, _)| &*key.name).collect();
    let level = node::Level::of(&known);
    for (key, tree) in pairs {
        let id = id(&key.name, key.at, reading);
        let node = node::read(id, tree, &level, sources, reading);
        graph.ids.insert(key.name.clone(), graph.nodes.len());
        graph.nodes.push(node);
    }
}

/// The id of a node. One that is wrong is read all the same, for the problems of its node.
fn id(name: &Arc<str>, at: At, reading: &mut Reading<'_>) -> Name {
    if !is_id(name) {
        let message = format!("`{name}` is no id of a node");
        let remedy = "begin with a letter or `_` and use at most 64 letters, digits, `_` and `-`";
        reading.problems.add(Code::BadName, at, message, remedy);
    } else if &**name == "input" {
        let message = "`input` stands for the input of the run, and is no id of a node";
        reading.problems.add(Code::ReservedName, at, message, "rename it, for example to `input_`");
    }
    Located { value: name.clone(), at }
}

/// `judge-budget`: judges cost money in every attempt.
fn budget(fields: &Fields<'_>, graph: &Graph, reading: &mut Reading<'_>) {
    let budget = fields.number("judge_budget", (0, u32::MAX), reading).unwrap_or(JUDGE_BUDGET);
    let evaluators = graph.nodes.iter().flat_map(|node| match &node.extras {
        Extras::Sweny(extras) => extras.evaluators.as_slice(),
        Extras::None | Extras::Hive(_) => &[],
    });
    let mut judges = evaluators.filter(|evaluator| matches!(evaluator.kind, EvaluatorKind::Judge { .. }));
    let place = usize::try_from(budget).unwrap_or(usize::MAX);
    if let Some(first) = judges.by_ref().nth(place) {
        let count = u64::from(budget) + 1 + judges.count() as u64;
        let message = format!("the document declares {count} judges, and `judge_budget` is {budget}");
        reading.problems.add(
            Code::JudgeBudget,
            first.name.at,
            message,
            "remove some, or raise `judge_budget`",
        );
    }
}

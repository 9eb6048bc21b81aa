//! The parts of a document that a program has to provide: for programs that show or prepare them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::Document;
use crate::document::model::hive::HiveNode;
use crate::document::model::{Next, Node, Rule, Work};

/// A part of a document that stays open until a program binds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unbound {
    /// The kind of the part.
    pub kind: UnboundKind,
    /// Its name; empty for agents, models and commands, which have none.
    pub name: String,
    /// The nodes that need it, in the order of the document.
    pub nodes: Vec<String>,
}

/// The kind of a part that a program has to provide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnboundKind {
    /// A function: `Registry::function`.
    Function,
    /// A tool: `Registry::tools`.
    Tool,
    /// A graph of another file: `Registry::document`.
    Graph,
    /// A typed workflow: `Registry::workflow`.
    Workflow,
    /// Agents, or a model that judges or chooses: `Registry::agents`.
    Agents,
    /// The permission to run programs: `Registry::allow_commands`.
    Commands,
}

impl fmt::Display for Unbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            UnboundKind::Function => write!(f, "the function `{}`", self.name)?,
            UnboundKind::Tool => write!(f, "the tool `{}`", self.name)?,
            UnboundKind::Graph => write!(f, "the graph `{}`", self.name)?,
            UnboundKind::Workflow => write!(f, "the workflow `{}`", self.name)?,
            UnboundKind::Agents => f.write_str("agents")?,
            UnboundKind::Commands => f.write_str("the permission to run commands")?,
        }
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("`{node}`")).collect();
        write!(f, " ({})", nodes.join(", "))
    }
}

impl Document {
    /// The functions that nodes of the document call, each with these nodes. [`bind`](Self::bind) checks them.
    ///
    /// ```
    /// use workflow_graph::Document;
    ///
    /// let text = "graph: g\nnodes: {a: {function: x, next: b}, b: {tool: t, next: c}, c: {function: x}}\n";
    /// let document = Document::parse(text, "g.yaml")?;
    /// assert_eq!(document.functions()["x"], ["a", "c"]);
    /// assert_eq!(document.tools()["t"], ["b"]);
    /// # Ok::<(), workflow_graph::CheckError>(())
    /// ```
    pub fn functions(&self) -> BTreeMap<&str, Vec<&str>> {
        self.called(|node| match &node.work {
            Work::Function(name) => Some(&*name.value),
            _ => None,
        })
    }

    /// The tools that `tool` nodes of the document call, each with these nodes.
    pub fn tools(&self) -> BTreeMap<&str, Vec<&str>> {
        self.called(|node| match &node.work {
            Work::Tool(name) => Some(&*name.value),
            _ => None,
        })
    }

    /// All parts that only [`bind`](Self::bind) checks, by kind and name: functions, tools, graphs that the file lacks, typed
    /// workflows, agents and commands.
    ///
    /// ```
    /// use workflow_graph::{Document, UnboundKind};
    ///
    /// let text = "graph: g\nnodes: {a: {graph: child, next: b}, b: {agent: Write.}}\n";
    /// let document = Document::parse(text, "g.yaml")?;
    /// let unbound = document.unbound();
    /// assert_eq!((unbound[0].kind, &*unbound[0].name), (UnboundKind::Graph, "child"));
    /// assert_eq!(unbound[1].to_string(), "agents (`b`)");
    /// # Ok::<(), workflow_graph::CheckError>(())
    /// ```
    pub fn unbound(&self) -> Vec<Unbound> {
        let own: BTreeSet<&str> = self.graphs().iter().map(|graph| &*graph.name.value).collect();
        let mut found: BTreeMap<(UnboundKind, &str), Vec<String>> = BTreeMap::new();
        for node in self.graphs().iter().flat_map(|graph| &graph.nodes) {
            let needed =
                needed(node).filter(|(kind, name)| *kind != UnboundKind::Graph || !own.contains(name));
            let model = asks_model(node).then_some((UnboundKind::Agents, ""));
            for part in needed.into_iter().chain(model) {
                found.entry(part).or_default().push(node.id.value.to_string());
            }
        }
        found
            .into_iter()
            .map(|((kind, name), nodes)| Unbound { kind, name: name.to_owned(), nodes })
            .collect()
    }

    fn called<'d>(&'d self, name: impl Fn(&'d Node) -> Option<&'d str>) -> BTreeMap<&'d str, Vec<&'d str>> {
        let mut called: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for node in self.graphs().iter().flat_map(|graph| &graph.nodes) {
            if let Some(name) = name(node) {
                called.entry(name).or_default().push(&node.id.value);
            }
        }
        called
    }
}

/// The part that the work of a node needs.
fn needed(node: &Node) -> Option<(UnboundKind, &str)> {
    match &node.work {
        Work::Function(name) => Some((UnboundKind::Function, &name.value)),
        Work::Tool(name) => Some((UnboundKind::Tool, &name.value)),
        Work::Graph(name) => Some((UnboundKind::Graph, &name.value)),
        Work::Workflow { name, .. } => Some((UnboundKind::Workflow, &name.value)),
        Work::Agent(_) => Some((UnboundKind::Agents, "")),
        Work::Command(_) => Some((UnboundKind::Commands, "")),
        Work::Human(_) | Work::Value(_) => None,
    }
}

/// Whether a model judges or chooses at a node whose work is none for agents.
fn asks_model(node: &Node) -> bool {
    let requires = node.requires.iter().flat_map(|requires| &requires.all);
    let mut checks = requires.chain(node.ensure.iter().flat_map(|ensure| &ensure.all));
    let is_asked = checks.any(|check| matches!(check.rule, Rule::Judge { .. }))
        || node.hive().is_some_and(HiveNode::asks_model)
        || matches!(node.next, Next::Decide(_));
    is_asked && !matches!(node.work, Work::Agent(_))
}

//! Checks a document against a registry: every missing function, tool, child, executor and field of an input at once.
//! It builds no tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::{self, Outputs, Taker, Typing};
use crate::document::model::{Graph, Node, Work};
use crate::problem::sink::Problems;
use crate::problem::{CheckError, Code, Problem};
use crate::{Document, Registry};

mod executor;
mod script;

#[cfg(test)]
mod tests;

/// Checks documents, as `documents` gives them, against the registry.
///
/// # Errors
///
/// Every problem of all of them.
pub(crate) fn check(documents: &[&Document], registry: &Registry) -> Result<(), CheckError> {
    let mut graphs = BTreeMap::new();
    for document in documents {
        for graph in document.graphs() {
            graphs.entry(&*graph.name.value).or_insert((*document, &**graph));
        }
    }
    let tools = registry.executors().tools().and_then(|tools| tools.names());
    let bound = Bound { registry, graphs, tools: tools.map(BTreeSet::from_iter) };
    let mut found = Vec::new();
    for document in documents {
        let mut problems = Problems::new(document.file());
        bound.document(document, &mut problems);
        found.extend(errors(problems));
    }
    if let Some(script) = registry.executors().script() {
        let mut problems = Problems::new(script.file());
        script::check(script.script(), bound.graphs.values().map(|(_, graph)| *graph), &mut problems);
        found.extend(errors(problems));
    }
    if found.is_empty() { Ok(()) } else { Err(CheckError { problems: found }) }
}

/// The document, then those of the registry, which its nodes may name, each once.
pub(crate) fn documents<'a>(document: Option<&'a Document>, registry: &'a Registry) -> Vec<&'a Document> {
    let mut documents = Vec::from_iter(document);
    for further in registry.documents() {
        if !documents.iter().any(|known| is_same(known, further)) {
            documents.push(further);
        }
    }
    documents
}

/// Clones are one document, and so is a file that was read twice.
fn is_same(one: &Document, other: &Document) -> bool {
    let first = |document: &Document| document.graphs().first().map(Arc::as_ptr);
    first(one) == first(other) || (one.file() == other.file() && one.source().text() == other.source().text())
}

fn errors(problems: Problems) -> Vec<Problem> {
    problems.finish().err().map(|error| error.problems).unwrap_or_default()
}

/// A registry, and every graph that nodes can name.
struct Bound<'a> {
    registry: &'a Registry,
    /// The first of each name, and its document.
    graphs: BTreeMap<&'a str, (&'a Document, &'a Graph)>,
    /// Absent if it is not known which there are.
    tools: Option<BTreeSet<String>>,
}

impl Bound<'_> {
    fn document(&self, document: &Document, problems: &mut Problems) {
        for graph in document.graphs() {
            self.name(document, graph, problems);
            for node in &graph.nodes {
                self.function(node, problems);
                self.child(node, problems);
                executor::check(node, self.registry, self.tools.as_ref(), problems);
            }
            let outputs = self.outputs(graph);
            let typing = Typing::new(graph, &outputs);
            graph.nodes.iter().for_each(|node| self.input(document, node, &typing, problems));
            reads(document, graph, &outputs, problems);
        }
    }

    /// `duplicate-key`: an engine hosts one workflow of a name.
    fn name(&self, document: &Document, graph: &Graph, problems: &mut Problems) {
        let (name, at) = (&graph.name.value, graph.name.at);
        let first = self.graphs.get(&**name).filter(|(first, _)| !is_same(first, document));
        if let Some((first, _)) = first {
            let message = format!("`{}` has a graph `{name}`, too", first.file());
            problems.add(Code::DuplicateKey, at, message, "rename one of them");
        }
        if self.registry.workflows().contains_key(&**name) {
            let message = format!("the registry has a workflow `{name}`, too");
            problems.add(Code::DuplicateKey, at, message, "rename the graph");
        }
    }

    /// `unknown-function`
    fn function(&self, node: &Node, problems: &mut Problems) {
        let Work::Function(name) = &node.work else { return };
        let executors = self.registry.executors();
        if executors.function(&name.value).is_none() {
            let message =
                format!("`{}` calls `{}`, and the registry has no such function", node.id.value, name.value);
            let known = executors.function_names();
            let otherwise = || "register it with `Registry::function`".to_owned();
            problems.add_unknown(Code::UnknownFunction, name.at, message, &name.value, known, otherwise);
        } else if executors.script().is_none() && self.registry.has_twice(&name.value) {
            let message = format!(
                "`{}` calls `{}`, and the registry has two such functions",
                node.id.value, name.value
            );
            problems.add(Code::DuplicateKey, name.at, message, "register it once");
        }
    }

    /// `unknown-graph` and `unknown-workflow`
    fn child(&self, node: &Node, problems: &mut Problems) {
        let id = &node.id.value;
        match &node.work {
            Work::Graph(name) if !self.graphs.contains_key(&*name.value) => {
                let message = format!(
                    "`{id}` runs `{}`, and neither its file nor the registry has such a graph",
                    name.value
                );
                let known = self.graphs.keys().copied();
                let otherwise = || {
                    "add it behind a line `---`, or register its document with `Registry::document`"
                        .to_owned()
                };
                problems.add_unknown(Code::UnknownGraph, name.at, message, &name.value, known, otherwise);
            }
            Work::Workflow { name, start } => match self.registry.workflows().get(&*name.value) {
                None => {
                    let message =
                        format!("`{id}` runs `{}`, and the registry has no such workflow", name.value);
                    let known = self.registry.workflows().keys().copied();
                    let otherwise = || "register it with `Registry::workflow`".to_owned();
                    problems.add_unknown(
                        Code::UnknownWorkflow,
                        name.at,
                        message,
                        &name.value,
                        known,
                        otherwise,
                    );
                }
                Some(starts) if !starts.contains(&start.value) => {
                    let message = format!("`{}` is no event with which `{}` starts", start.value, name.value);
                    let known = starts.iter().map(|start| &**start);
                    let otherwise = || {
                        let names: Vec<String> = starts.iter().map(|start| format!("`{start}`")).collect();
                        format!("write {}", names.join(" or "))
                    };
                    problems.add_unknown(
                        Code::UnknownWorkflow,
                        start.at,
                        message,
                        &start.value,
                        known,
                        otherwise,
                    );
                }
                Some(_) => {}
            },
            _ => {}
        }
    }

    /// The node's input beside the schema of its taker. The file has checked its own graphs.
    fn input(&self, document: &Document, node: &Node, typing: &Typing<'_>, problems: &mut Problems) {
        let executors = self.registry.executors();
        let taker = match &node.work {
            Work::Function(name) => {
                let Some(schema) = executors.input_of(&name.value) else { return };
                Taker { kind: "function", name, schema, has_defaults: false }
            }
            Work::Graph(name) => {
                let graph = self.graphs.get(&*name.value).map(|(_, graph)| *graph);
                let Some(schema) = graph.and_then(|graph| graph.input.as_ref()) else { return };
                Taker { kind: "graph", name, schema: &schema.value, has_defaults: true }
            }
            _ => return,
        };
        check::given(node, typing, taker, document.source(), problems);
    }

    /// What described functions return, by the places of their nodes.
    fn outputs<'g>(&'g self, graph: &'g Graph) -> Outputs<'g> {
        let described = |node: &Node| match &node.work {
            Work::Function(name) => self.registry.executors().output_of(&name.value),
            _ => None,
        };
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(place, node)| Some((place, described(node)?))).collect()
    }
}

/// `unknown-field` and `type-mismatch`: by what described functions return.
fn reads(document: &Document, graph: &Graph, outputs: &Outputs<'_>, problems: &mut Problems) {
    if outputs.is_empty() {
        return;
    }
    let mut found = Problems::new(document.file());
    check::described(graph, outputs, document.source(), &mut found);
    problems.add_errors(found);
}

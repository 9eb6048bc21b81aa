//! The native format: trees to the model. Every value that does not fit is reported here; `check` checks the graph
//! as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use super::files::Files;
use super::model::Graph;
use super::model::unread::{Unread, repeated};
use super::source::Source;
use super::tree::Tree;
use crate::problem::Code;
use crate::problem::sink::Problems;

mod agent;
pub(crate) mod check;
mod duration;
pub(crate) mod fields;
mod graph;
pub(crate) mod name;
pub(crate) mod next;
mod node;
pub(crate) mod path;
mod retry;
pub(crate) mod schema;
mod script;
mod synonyms;
pub(crate) mod values;
mod work;

pub(super) use graph::{MOST_ITEMS, MOST_STEPS};
pub(super) use name::RESERVED;
pub(super) use next::MOST_PARALLEL;
pub(crate) use script::{ByNode, Entry, Play, Script, read as script};

/// The most nodes of a graph.
pub(crate) const MOST_NODES: usize = 10_000;
/// The most routes of a graph.
pub(crate) const MOST_ROUTES: usize = 50_000;

/// The state of reading besides the tree.
pub(crate) struct Reading<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) files: &'a mut Files,
    pub(crate) problems: &'a mut Problems,
    /// Routes of the present graph, so far.
    pub(crate) routes: usize,
    /// Whether the format has templates.
    pub(crate) has_templates: bool,
    /// The unreadable parts of the present node, so far.
    pub(crate) unread: Unread,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(source: Source<'a>, files: &'a mut Files, problems: &'a mut Problems) -> Self {
        Self { source, files, problems, routes: 0, has_templates: false, unread: Unread::default() }
    }

    /// The unreadable parts of the node of this tree, which was read last.
    pub(crate) fn unread_of(&mut self, tree: &Tree) -> Unread {
        let mut unread = std::mem::take(&mut self.unread);
        if self.problems.count(Code::DuplicateKey) > 0 {
            repeated(tree, &mut unread.words);
        }
        unread
    }
}

/// The graphs of a file: the first is the one that is run.
pub(crate) fn graphs(
    documents: &[Tree],
    source: Source<'_>,
    files: &mut Files,
    problems: &mut Problems,
) -> Vec<Graph> {
    let mut graphs: Vec<Graph> = Vec::new();
    let mut lines: HashMap<Arc<str>, u32> = HashMap::new();
    for tree in documents {
        let mut reading =
            Reading { has_templates: true, ..Reading::new(source, &mut *files, &mut *problems) };
        let Some(graph) = graph::read(tree, &mut reading) else { continue };
        let (name, at) = (&graph.name.value, graph.name.at);
        // The name of a graph whose name is wrong is empty, and a problem already.
        if let Some(first) = lines.get(name).filter(|_| !name.is_empty()) {
            let message = format!("two graphs of this file are named `{name}`, the first in line {first}");
            problems.add(Code::DuplicateKey, at, message, "rename one of them");
        }
        lines.entry(name.clone()).or_insert(at.line);
        graphs.push(graph);
    }
    graphs
}

//! Forms of Hive documents that are not read: earlier exports with `node_id` and `START`, and lists in YAML. They are known by
//! their keys, so that one problem names the form and the way out of it.

use crate::document::tree::{Kind, Tree};
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

/// A form that is not read, and where the document shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// Nodes have `node_id`, and edges lead from `START` and to `END`.
    Start(At),
    /// Nodes have a name and an entry point in a program, and edges `from` and `to`.
    Listed(At),
}

/// The form of a document, if it is one that is not read.
pub(crate) fn of(tree: &Tree) -> Option<Form> {
    let tree = tree.get("graph").filter(|graph| matches!(graph.kind, Kind::Map(_))).unwrap_or(tree);
    let (nodes, edges) = (items(tree, "nodes")?, items(tree, "edges").unwrap_or_default());
    let is_end = |tree: Option<&Tree>, word: &str| {
        tree.is_some_and(|tree| matches!(&tree.kind, Kind::Text(text) if &*text.value == word))
    };
    let named = |id: &str| nodes.iter().any(|node| is_end(node.get("id"), id));
    let by_id = nodes.iter().find(|node| node.get("node_id").is_some() && node.get("id").is_none());
    let by_edge = edges.iter().find(|edge| {
        (is_end(edge.get("source"), "START") && !named("START"))
            || (is_end(edge.get("target"), "END") && !named("END"))
    });
    if let Some(found) = by_id.or(by_edge) {
        return Some(Form::Start(found.at));
    }
    let is_listed = |node: &Tree| {
        node.get("id").is_none() && node.get("name").is_some() && node.get("entrypoint").is_some()
    };
    nodes.iter().find(|node| is_listed(node)).map(|node| Form::Listed(node.at))
}

fn items<'t>(tree: &'t Tree, key: &str) -> Option<&'t [Tree]> {
    match &tree.get(key)?.kind {
        Kind::List(items) => Some(items),
        _ => None,
    }
}

impl Form {
    /// `unsupported`
    pub(super) fn refuse(self, problems: &mut Problems) {
        let (at, message, remedy) = match self {
            Self::Start(at) => (
                at,
                "a Hive document of the form `node_id`/`START` is not read: it is one of an earlier version",
                "write `id` for `node_id`, `entry_node` for the edges from `START`, and `terminal_nodes` for those to `END`",
            ),
            Self::Listed(at) => (
                at,
                "a Hive document of the form list-YAML, whose nodes have `name` and `entrypoint`, is not read",
                "write `id`, `entry_node`, nodes with `id`, `node_type: function` and `function`, and edges with `source` and \
                 `target`",
            ),
        };
        problems.add(Code::Unsupported, at, message, remedy);
    }
}

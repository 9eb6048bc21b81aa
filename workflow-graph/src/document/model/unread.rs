//! The parts of a graph that could not be read, so that checks conclude nothing from their absence. A document that has any
//! is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Extras, Name, Next, Node, Reads, Work};
use crate::document::template::Template;
use crate::document::tree::{Kind, Tree};

/// Keys and texts of parts that could not be read: any of them may be a name that the graph needs.
pub(crate) type Words = BTreeSet<Arc<str>>;

/// The unreadable parts of a node.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a part of its own that may be unreadable")]
pub(crate) struct Unread {
    /// One that is the id of a node may be the target of a route.
    pub(crate) words: Words,
    /// Names in values of unknown keys: these nodes may lead here.
    pub(crate) led: Words,
    /// Whether a route or a join is among the parts.
    pub(crate) routes: bool,
    /// Whether a route that always holds may be among them.
    pub(crate) default: bool,
    /// Whether variables may be set that `set` does not have.
    pub(crate) set: bool,
    /// Whether the form of the node's data is not known.
    pub(crate) data: bool,
    /// Whether a schema of the reply is stated, though none can be read.
    pub(crate) reply: bool,
}

/// The unreadable parts of a graph, besides its nodes.
#[derive(Debug, Default)]
pub(crate) struct GraphUnread {
    /// Whether nodes, or the routes of all nodes, are not known.
    pub(crate) nodes: bool,
    /// Whether there may be variables that `vars` does not have.
    pub(crate) vars: bool,
    /// Whether any unknown name may be that of a node.
    pub(crate) names: bool,
    /// Names that may be declared somewhere.
    pub(crate) words: Words,
    /// Nodes to which a route of an unknown begin leads.
    pub(crate) led: Words,
}

impl Unread {
    /// Adds a part that may have routes.
    pub(crate) fn routes(&mut self, tree: &Tree) {
        self.routes = true;
        words(tree, &mut self.words);
    }
}

impl Node {
    /// A node of which nothing but its id could be read.
    pub(crate) fn unread(id: Name, tree: &Tree) -> Self {
        let mut unread = Unread { default: true, set: true, data: true, ..Unread::default() };
        unread.routes(tree);
        Self {
            id,
            description: None,
            work: Work::Value(Template::Value(serde_json::Value::Null)),
            with: None,
            with_at: Vec::new(),
            reads: Reads::All,
            output: None,
            requires: None,
            ensure: None,
            retry: None,
            timeout: None,
            max_visits: Some(1),
            for_each: None,
            set: Vec::new(),
            on_failure: None,
            next: Next::End,
            on_no_match: None,
            extras: Extras::None,
            unread,
        }
    }
}

/// Adds the keys and texts of a tree. Trees are at most 64 deep, so it may recurse.
pub(crate) fn words(tree: &Tree, to: &mut Words) {
    match &tree.kind {
        Kind::Text(text) => drop(to.insert(text.value.clone())),
        Kind::List(items) => items.iter().for_each(|item| words(item, to)),
        Kind::Map(pairs) => pairs.iter().chain(tree.repeated()).for_each(|(key, value)| {
            to.insert(key.name.clone());
            words(value, to);
        }),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
    }
}

/// Adds the keys and texts of the values in a tree whose keys stand twice, but for the first of each.
pub(crate) fn repeated(tree: &Tree, to: &mut Words) {
    match &tree.kind {
        Kind::List(items) => items.iter().for_each(|item| repeated(item, to)),
        Kind::Map(pairs) => {
            for (_, value) in pairs {
                repeated(value, to);
            }
            for (_, value) in tree.repeated() {
                words(value, to);
            }
        }
        _ => {}
    }
}

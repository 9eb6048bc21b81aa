//! Routes that could not be read, and what they may be. Names that are near to an id stand for it: the author meant it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::document::model::Graph;
use crate::problem::similar;

/// Further unknown names are compared with none, so that a document of 50,000 wrong routes does not take minutes.
const MOST_COMPARED: usize = 100;

/// The gaps in the routes of a graph.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    /// Names of no node, and the node that each is near to.
    pub(super) near: HashMap<Arc<str>, Option<usize>>,
    /// Routes that there may be: a part that could not be read names a node.
    pub(super) guesses: Vec<(usize, usize)>,
    /// By node, whether a route of it could not be read, or leads to no node.
    pub(super) is_lost: Vec<bool>,
    /// Nodes with routes that could not be read, and of which nothing tells where they lead.
    pub(super) open: Vec<usize>,
}

impl Unknown {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut unknown = Self { is_lost: vec![false; graph.nodes.len()], ..Self::default() };
        for (place, node) in graph.nodes.iter().enumerate() {
            let unread = &node.unread;
            let named = |words: &crate::document::model::unread::Words| -> Vec<usize> {
                let named = words.iter().filter_map(|word| graph.find(word));
                named.filter(|named| *named != place).collect()
            };
            let (to, from) = (named(&unread.words), named(&unread.led));
            if unread.routes {
                unknown.is_lost[place] = true;
                unknown.open.extend(to.is_empty().then_some(place));
            }
            unknown.guesses.extend(to.into_iter().map(|to| (place, to)));
            unknown.guesses.extend(from.into_iter().map(|from| (from, place)));
        }
        unknown
    }

    /// The node of this name, or the one that is meant by it.
    pub(super) fn find(&mut self, graph: &Graph, name: &str) -> Option<usize> {
        if let Some(found) = graph.find(name) {
            return Some(found);
        }
        if name.is_empty() {
            return None;
        }
        if let Some(known) = self.near.get(name) {
            return *known;
        }
        if self.near.len() >= MOST_COMPARED {
            return None;
        }
        let ids = graph.nodes.iter().map(|node| &*node.id.value);
        let near = similar(name, ids).first().and_then(|id| graph.find(id));
        self.near.insert(name.into(), near);
        near
    }

    /// Whether a route that could not be read may lead to a node.
    pub(super) fn may_lead_to(&self, node: usize) -> bool {
        !self.open.is_empty() || self.guesses.iter().any(|(_, to)| *to == node)
    }
}

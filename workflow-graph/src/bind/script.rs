//! `unknown-node`: a script names nodes that there are. An entry for no node would never be played.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::document::model::Graph;
use crate::document::{ByNode, Script};
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

pub(super) fn check<'a>(script: &Script, graphs: impl Iterator<Item = &'a Graph>, problems: &mut Problems) {
    let known: BTreeSet<&str> = graphs.flat_map(|graph| &graph.nodes).map(|node| &*node.id.value).collect();
    let Script { nodes, decide, judge, ask: _, replies } = script;
    let named = ids(nodes).chain(ids(decide)).chain(ids(judge)).chain(ids(replies));
    let mut unknown: Vec<(At, &str)> = named.filter(|(_, id)| !known.contains(*id)).collect();
    // The order of maps is no order.
    unknown.sort_unstable();
    for (at, id) in unknown {
        let message = format!("the script names `{id}`, and no graph has such a node");
        let otherwise = || "remove it, or name another node".to_owned();
        problems.add_unknown(Code::UnknownNode, at, message, id, known.iter().copied(), otherwise);
    }
}

fn ids<T>(lists: &ByNode<T>) -> impl Iterator<Item = (At, &str)> {
    lists.iter().map(|(id, list): (&Arc<str>, _)| (list.at, &**id))
}

//! `branch-conflict`: two branches can set one variable, and the document does not say which one wins.

use std::collections::HashMap;

use super::region::Regions;
use crate::document::model::{Graph, Next};
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

pub(super) fn check(graph: &Graph, regions: &Regions, problems: &mut Problems) {
    // By parallel node and variable: the branch that sets it first, where, and whether another one is reported.
    let mut known: HashMap<(usize, &str), (usize, At, bool)> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let Some(scope) = regions.scope_of[index] else { continue };
        for (name, _) in &node.set {
            let mut scope = scope;
            // At most 64 deep.
            while let Some(branch) = regions.scopes[scope].branch {
                scope = branch.parent;
                let key = (branch.node, &*name.value);
                let (first, at, is_told) = known.entry(key).or_insert((branch.number, name.at, false));
                let is_explained = *is_told || regions.is_doubtful[branch.node];
                if *first == branch.number || is_explained || is_stated(graph, branch.node) {
                    continue;
                }
                *is_told = true;
                let message = format!(
                    "two branches of `{}` can set `{}`, the other one in line {}, and the join fails where both do",
                    graph.nodes[branch.node].id.value, name.value, at.line
                );
                let remedy = "add `conflicts: last_wins`, `first_wins` or `error` beside `parallel`";
                problems.add(Code::BranchConflict, name.at, message, remedy);
            }
        }
    }
}

fn is_stated(graph: &Graph, node: usize) -> bool {
    matches!(&graph.nodes[node].next, Next::Parallel(parallel) if parallel.conflicts.is_some())
}

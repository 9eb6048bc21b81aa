//! Checks of a graph as a whole: one rule a file. They change nothing, and report every problem.
//!
//! All of them take time in proportion to nodes and routes, and none recurses over nodes.

use std::collections::HashSet;

use crate::document::Source;
use crate::document::model::{Graph, Work};
use crate::problem::Code;
use crate::problem::sink::Problems;

mod flow;
mod names;
mod kinds;
mod order;
mod reach;
mod cycle;
mod dominators;
mod meet;
mod region;
mod conflict;
mod vars;
mod uses;
mod shape;
mod scope;
mod history;
mod reads;
mod meaning;
mod precedence;

use flow::Flow;

/// Checks the graphs of one file.
pub(crate) fn check(graphs: &[Graph], source: Source<'_>, problems: &mut Problems) {
    let names: HashSet<&str> = graphs.iter().map(|graph| &*graph.name.value).collect();
    for graph in graphs {
        names::check(graph, problems);
        kinds::check(graph, problems);
        order::check(graph, problems);
        child_graphs(graph, &names, problems);
        let flow = Flow::of(graph);
        cycle::check(graph, &flow, problems);
        vars::check(graph, problems);
        // A route that cannot be followed may be the one that makes the rest whole.
        let mut regions = None;
        if !graph.is_incomplete && flow.is_complete() {
            reach::check(graph, &flow, problems);
            regions = region::check(graph, &flow, problems);
        }
        reads::check(graph, &flow, regions.as_ref(), source, problems);
    }
}

/// `unknown-graph`: the children that a file names are in it.
fn child_graphs(graph: &Graph, names: &HashSet<&str>, problems: &mut Problems) {
    for node in &graph.nodes {
        let Work::Graph(name) = &node.work else { continue };
        if names.contains(&*name.value) {
            continue;
        }
        problems.add_unknown(
            Code::UnknownGraph,
            name.at,
            format!("this file has no graph `{}`", name.value),
            &name.value,
            names.iter().copied(),
            || "add it behind a line `---`".to_owned(),
        );
    }
}

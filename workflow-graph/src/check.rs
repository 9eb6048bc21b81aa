//! Checks of a graph as a whole: one rule a file. They change nothing, and report every problem.
//!
//! All of them take time in proportion to nodes and routes, and none recurses over nodes.

use crate::document::Source;
use crate::document::model::{Dialect, Graph};
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
mod ways;
mod history;
mod reads;
mod meaning;
mod values;
mod precedence;
mod needs;
mod layout;
mod typing;

pub(crate) use layout::Layout;

pub(crate) use scope::Outputs;
pub(crate) use shape::{is_open, resolved};
pub(crate) use typing::Typing;

use flow::Flow;

/// Checks the graphs of one file.
pub(crate) fn check(graphs: &[Graph], source: Source<'_>, problems: &mut Problems) {
    for graph in graphs {
        if let Dialect::Hive(_) = graph.dialect {
            hive(graph, problems);
            continue;
        }
        names::check(graph, problems);
        kinds::check(graph, problems);
        order::check(graph, problems);
        let flow = Flow::of(graph);
        cycle::check(graph, &flow, problems);
        vars::check(graph, problems);
        // A route that cannot be followed may be the one that makes the rest whole.
        let mut regions = None;
        if !graph.is_incomplete && flow.is_complete() {
            reach::check(graph, &flow, problems);
            regions = region::check(graph, &flow, problems);
        }
        // Texts of imported documents are no templates.
        if matches!(graph.dialect, Dialect::Native) {
            reads::check(graph, &flow, regions.as_ref(), source, problems);
        }
    }
}

/// The importer has checked names. Hive documents need no bounds, and their conditions read memory, whose keys nobody declares.
fn hive(graph: &Graph, problems: &mut Problems) {
    let flow = Flow::of(graph);
    if !graph.is_incomplete && flow.is_complete() {
        reach::check(graph, &flow, problems);
        region::check(graph, &flow, problems);
    }
}

/// Checks the expressions of a graph once more, by what functions return. Names and order were checked before, so the
/// problems that were found before are found again, which are all warnings.
pub(crate) fn described(graph: &Graph, outputs: &Outputs<'_>, source: Source<'_>, problems: &mut Problems) {
    reads::described(graph, outputs, source, problems);
}

/// By node of a checked graph, the node where its branches meet. Absent: they never meet, or it has none.
pub(crate) fn joins(graph: &Graph) -> Vec<Option<usize>> {
    meet::joins(graph, &Flow::of(graph))
}

//! Checks of a graph as a whole: one rule a file. They change nothing, and report every problem.
//!
//! All of them take time in proportion to nodes and routes, and none recurses over nodes.

use crate::document::Source;
use crate::document::model::{Dialect, Graph};
use crate::problem::sink::Problems;

mod unknown;
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
mod given;
mod children;

pub(crate) use given::{Taker, check as given};
pub(crate) use layout::Layout;
pub(crate) use reach::prune;

pub(crate) use scope::Outputs;
pub(crate) use typing::Typing;

use flow::Flow;

/// Checks the graphs of one file, which are all of them if it `is_whole`.
pub(crate) fn check(graphs: &[Graph], source: Source<'_>, is_whole: bool, problems: &mut Problems) {
    for graph in graphs {
        if let Dialect::Hive(_) = graph.dialect {
            hive(graph, problems);
            continue;
        }
        names::check(graph, problems);
        kinds::check(graph, problems);
        order::check(graph, problems);
        let flow = Flow::of(graph);
        vars::check(graph, problems);
        reach::check(graph, &flow, problems);
        let (regions, wrong) = region::check(graph, &flow, problems);
        cycle::check(graph, &flow, &wrong, problems);
        // Texts of imported documents are no templates.
        if matches!(graph.dialect, Dialect::Native) {
            reads::check(graph, &flow, regions.as_ref(), source, problems);
        }
    }
    children::check(graphs, source, is_whole, problems);
}

/// The importer has checked names. Hive documents need no bounds, and their conditions read memory, whose keys nobody declares.
fn hive(graph: &Graph, problems: &mut Problems) {
    let flow = Flow::of(graph);
    reach::check(graph, &flow, problems);
    region::check(graph, &flow, problems);
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

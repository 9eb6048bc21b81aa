//! Which nodes and boxes lie in which box, as the parts of a drawing in their order.
//!
//! A graph that was built by hand may name boxes that it lacks, or boxes that lie in each other. Such a box is left out,
//! and its nodes lie outside.

use super::Graph;
use crate::table::Lists;

/// A part of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A node, by its place in [`Graph::nodes`].
    Node(usize),
    /// The beginning of a box, by its place in [`Graph::boxes`]. The next items lie in it.
    Open(usize),
    /// The end of the box that was opened last.
    Close,
}

/// The parts of the drawing: a box has its nodes first, and then the boxes in it. Boxes without any node are left out.
pub(super) fn parts(graph: &Graph) -> Vec<Part> {
    let count = graph.boxes.len();
    let around = |place: usize| graph.boxes[place].within.filter(|around| *around < count);
    // Row 0 has what lies in no box, row n + 1 what lies in box n.
    let row = |around: Option<usize>| around.map_or(0, |around| around + 1);
    let boxes = Lists::of(count + 1, (0..count).map(|place| (row(around(place)), place)));
    let order = outermost_first(&boxes, count);
    let mut is_drawn = vec![false; count];
    for place in &order {
        is_drawn[*place] = true;
    }
    let nodes = graph.nodes.iter().enumerate().map(|(node, row_of)| {
        let around = row_of.branch.filter(|around| is_drawn.get(*around) == Some(&true));
        (row(around), node)
    });
    let nodes = Lists::of(count + 1, nodes);
    // From the inside out: a box has a node if it or a box in it has one.
    for place in order.iter().rev() {
        let mut inner = boxes.row(place + 1).iter();
        is_drawn[*place] = !nodes.row(place + 1).is_empty() || inner.any(|inner| is_drawn[*inner]);
    }
    let mut parts: Vec<Part> = nodes.row(0).iter().copied().map(Part::Node).collect();
    // Boxes may be nested deeper than a stack is.
    let mut open: Vec<Part> = boxes.row(0).iter().rev().copied().map(Part::Open).collect();
    while let Some(part) = open.pop() {
        let Part::Open(place) = part else {
            parts.push(part);
            continue;
        };
        if is_drawn[place] {
            parts.push(part);
            parts.extend(nodes.row(place + 1).iter().copied().map(Part::Node));
            open.push(Part::Close);
            open.extend(boxes.row(place + 1).iter().rev().copied().map(Part::Open));
        }
    }
    parts
}

/// The boxes that lie in no circle of boxes, each before those in it.
fn outermost_first(boxes: &Lists<usize>, count: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(count);
    order.extend(boxes.row(0));
    let mut at = 0;
    while at < order.len() {
        order.extend(boxes.row(order[at] + 1));
        at += 1;
    }
    order
}

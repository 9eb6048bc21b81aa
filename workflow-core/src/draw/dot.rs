//! Draws a graph as DOT, the language of Graphviz.

use std::fmt::Write as _;

use super::{Edge, EdgeKind, Graph, Node, NodeKind};

pub(super) fn digraph(graph: &Graph) -> String {
    let mut text = format!("digraph {} {{\n", quoted(&graph.workflow));
    line(
        &mut text,
        1,
        "rankdir=TB; node [shape=box, style=rounded, fontname=\"sans-serif\"]; edge [fontname=\"sans-serif\"];",
    );
    for node in graph.nodes.iter().filter(|node| node.branch.is_none()) {
        line(&mut text, 1, &statement(node));
    }
    for place in (0..graph.boxes.len()).filter(|place| graph.boxes[*place].within.is_none()) {
        cluster(graph, place, 1, &mut text);
    }
    for edge in &graph.edges {
        line(&mut text, 1, &arrow(edge));
    }
    text.push_str("}\n");
    text
}

fn line(text: &mut String, depth: usize, content: &str) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{:width$}{content}", "", width = depth * 4);
}

fn cluster(graph: &Graph, place: usize, depth: usize, text: &mut String) {
    if graph.is_empty_box(place) {
        return;
    }
    line(text, depth, &format!("subgraph cluster_{place} {{"));
    line(text, depth + 1, &format!("label={};", quoted(&graph.boxes[place].title())));
    for node in graph.nodes.iter().filter(|node| node.branch == Some(place)) {
        line(text, depth + 1, &statement(node));
    }
    for inner in (0..graph.boxes.len()).filter(|inner| graph.boxes[*inner].within == Some(place)) {
        cluster(graph, inner, depth + 1, text);
    }
    line(text, depth, "}");
}

fn statement(node: &Node) -> String {
    let shape = match node.kind {
        NodeKind::Start | NodeKind::Stop => ", shape=oval",
        NodeKind::Outside => ", shape=parallelogram",
        NodeKind::Unread => ", shape=circle",
        NodeKind::Step if node.on_end.is_some() => ", peripheries=2",
        NodeKind::Step if node.precondition.is_some() => ", shape=hexagon",
        NodeKind::Step => "",
    };
    let color = match node.ran {
        Some(ran) if ran.failed > 0 => ", color=\"#cc0000\"",
        Some(ran) if ran.executions > 0 => ", color=\"#008800\"",
        Some(_) => ", color=\"#999999\", style=dashed",
        None => "",
    };
    format!("{} [label={}{shape}{color}];", quoted(&node.id), quoted(&node.lines().join("\n")))
}

fn arrow(edge: &Edge) -> String {
    let style = match edge.kind {
        EdgeKind::Gather => ", style=bold",
        EdgeKind::Failure => ", style=dotted, color=\"#cc0000\"",
        _ if edge.optional || edge.cleans_up => ", style=dashed",
        _ => "",
    };
    format!("{} -> {} [label={}{style}];", quoted(&edge.from), quoted(&edge.to), quoted(&edge.label()))
}

/// Quotes text. Graphviz interprets backslashes, and even in quotes entities.
fn quoted(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 2);
    safe.push('"');
    for character in text.chars() {
        match character {
            '"' => safe.push_str("\\\""),
            '\\' => safe.push_str("\\\\"),
            '&' => safe.push_str("&amp;"),
            '\n' => safe.push_str("\\n"),
            control if control.is_control() => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe.push('"');
    safe
}

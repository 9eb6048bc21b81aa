//! Draws a graph as DOT, the language of Graphviz.

use std::fmt::Write as _;

use super::layout::{Part, parts};
use super::{Edge, EdgeKind, Graph, Node, NodeKind};

pub(super) fn digraph(graph: &Graph) -> String {
    let mut text = format!("digraph {} {{\n", quoted(&graph.workflow));
    line(
        &mut text,
        1,
        "rankdir=TB; node [shape=box, style=rounded, fontname=\"sans-serif\"]; edge [fontname=\"sans-serif\"];",
    );
    let mut depth = 1;
    for part in parts(graph) {
        match part {
            Part::Node(node) => line(&mut text, depth, &statement(&graph.nodes[node])),
            Part::Open(place) => {
                line(&mut text, depth, &format!("subgraph cluster_{place} {{"));
                depth += 1;
                line(&mut text, depth, &format!("label={};", quoted(&graph.boxes[place].title())));
            }
            Part::Close => {
                depth -= 1;
                line(&mut text, depth, "}");
            }
        }
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

//! A graph as a Mermaid flowchart.

use std::fmt::Write as _;

use super::{Edge, EdgeKind, Graph, Node, NodeKind, NodeRun};

pub(super) fn flowchart(graph: &Graph) -> String {
    let mut text = String::from("flowchart TD\n");
    for node in graph.nodes.iter().filter(|node| node.branch.is_none()) {
        line(&mut text, 1, &shape(node));
    }
    for place in (0..graph.boxes.len()).filter(|place| graph.boxes[*place].within.is_none()) {
        subgraph(graph, place, 1, &mut text);
    }
    for edge in &graph.edges {
        line(&mut text, 1, &arrow(edge));
    }
    styles(graph, &mut text);
    text
}

fn line(text: &mut String, depth: usize, content: &str) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{:width$}{content}", "", width = depth * 4);
}

/// A branch is a box, with the boxes of its own fan-outs in it.
fn subgraph(graph: &Graph, place: usize, depth: usize, text: &mut String) {
    line(text, depth, &format!("subgraph b{place} [\"{}\"]", escaped(&graph.boxes[place].title())));
    for node in graph.nodes.iter().filter(|node| node.branch == Some(place)) {
        line(text, depth + 1, &shape(node));
    }
    for inner in (0..graph.boxes.len()).filter(|inner| graph.boxes[*inner].within == Some(place)) {
        subgraph(graph, inner, depth + 1, text);
    }
    line(text, depth, "end");
}

fn shape(node: &Node) -> String {
    let label = node.lines().iter().map(|line| escaped(line)).collect::<Vec<_>>().join("<br/>");
    let id = mermaid_id(&node.id);
    match node.kind {
        NodeKind::Start | NodeKind::Stop => format!("{id}([\"{label}\"])"),
        NodeKind::Outside => format!("{id}[/\"{label}\"/]"),
        NodeKind::Unread => format!("{id}((\"{label}\"))"),
        NodeKind::Step if node.precondition.is_some() => format!("{id}{{{{\"{label}\"}}}}"),
        NodeKind::Step => format!("{id}[\"{label}\"]"),
    }
}

/// `end` and the like are words of Mermaid's own, so none of our words stands alone.
fn mermaid_id(id: &str) -> String {
    format!("n_{id}")
}

fn arrow(edge: &Edge) -> String {
    let (from, to) = (mermaid_id(&edge.from), mermaid_id(&edge.to));
    let line = match edge.kind {
        EdgeKind::Gather => "==>",
        _ if edge.optional => "-.->",
        _ => "-->",
    };
    format!("{from} {line}|\"{}\"| {to}", escaped(&edge.label()))
}

fn styles(graph: &Graph, text: &mut String) {
    let ran = |wanted: fn(&NodeRun) -> bool| {
        let steps = graph.nodes.iter().filter(|node| node.ran.as_ref().is_some_and(wanted));
        steps.map(|node| mermaid_id(&node.id)).collect::<Vec<_>>().join(",")
    };
    let classes = [
        ("failed", "fill:#fdd,stroke:#c00", ran(|ran| ran.failed > 0)),
        ("ran", "fill:#dfd,stroke:#080", ran(|ran| ran.executions > 0 && ran.failed == 0)),
        ("idle", "fill:#eee,stroke:#999,stroke-dasharray:4", ran(|ran| ran.executions == 0)),
    ];
    for (class, style, nodes) in classes.iter().filter(|(_, _, nodes)| !nodes.is_empty()) {
        line(text, 1, &format!("classDef {class} {style}"));
        line(text, 1, &format!("class {nodes} {class}"));
    }
}

/// Text inside quotes: what Mermaid would read as markup becomes an entity.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => safe.push_str("#quot;"),
            '#' => safe.push_str("#35;"),
            '<' => safe.push_str("#lt;"),
            '>' => safe.push_str("#gt;"),
            '&' => safe.push_str("#amp;"),
            '`' => safe.push_str("#96;"),
            '\n' | '\r' => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe
}

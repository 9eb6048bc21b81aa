//! Draws a graph as a Mermaid flowchart.

use std::fmt::Write as _;

use super::layout::{Part, parts};
use super::{Edge, EdgeKind, Graph, Node, NodeKind, NodeRun};

pub(super) fn flowchart(graph: &Graph) -> String {
    let mut text = String::from("flowchart TD\n");
    // A branch is a subgraph, with the subgraphs of its own fan-outs.
    let mut depth = 1;
    for part in parts(graph) {
        match part {
            Part::Node(node) => line(&mut text, depth, &shape(&graph.nodes[node])),
            Part::Open(place) => {
                let title = escaped(&graph.boxes[place].title());
                line(&mut text, depth, &format!("subgraph b{place} [\"{title}\"]"));
                depth += 1;
            }
            Part::Close => {
                depth -= 1;
                line(&mut text, depth, "end");
            }
        }
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

fn shape(node: &Node) -> String {
    let label = node.lines().iter().map(|line| escaped(line)).collect::<Vec<_>>().join("<br/>");
    let id = mermaid_id(&node.id);
    match node.kind {
        NodeKind::Start | NodeKind::Stop => format!("{id}([\"{label}\"])"),
        NodeKind::Outside => format!("{id}[/\"{label}\"/]"),
        NodeKind::Unread => format!("{id}((\"{label}\"))"),
        NodeKind::Step if node.on_end.is_some() => format!("{id}[[\"{label}\"]]"),
        NodeKind::Step if node.precondition.is_some() => format!("{id}{{{{\"{label}\"}}}}"),
        NodeKind::Step => format!("{id}[\"{label}\"]"),
    }
}

/// Prefixes ids, since Mermaid reserves words such as `end`.
fn mermaid_id(id: &str) -> String {
    format!("n_{id}")
}

fn arrow(edge: &Edge) -> String {
    let (from, to) = (mermaid_id(&edge.from), mermaid_id(&edge.to));
    let line = match edge.kind {
        EdgeKind::Gather => "==>",
        EdgeKind::Failure => "--x",
        _ if edge.optional || edge.cleans_up => "-.->",
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

/// Formulas, icons and line breaks, which Mermaid recognises even between entities: a character, and the text
/// that must not follow it directly.
const SEPARATED: [(char, &str); 3] = [('$', "$"), (':', "fa-"), ('\\', "n")];

/// Escapes text in quotes. All that Mermaid would read as markup, link, directive, icon or formula becomes an
/// entity, followed by a zero-width space where an entity is not enough.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let bullet = bullet_of(text);
    for (at, character) in text.char_indices() {
        let after = &text[at + character.len_utf8()..];
        match character {
            control if control.is_control() => safe.push(' '),
            '"' | '#' | '&' | '<' | '>' | '`' | '%' | ':' | ';' | '$' | '\\' | '*' | '~' | '@' => {
                push_entity(&mut safe, character);
                if SEPARATED.iter().any(|(mark, next)| *mark == character && after.starts_with(next)) {
                    safe.push('\u{200b}');
                }
            }
            '_' if !is_inside_a_word(&text[..at], after) => push_entity(&mut safe, character),
            ']' if after.starts_with(['(', '[']) => push_entity(&mut safe, character),
            '.' if text[..at].ends_with("www") => push_entity(&mut safe, character),
            _ if Some(at) == bullet => push_entity(&mut safe, character),
            other => safe.push(other),
        }
    }
    safe
}

fn push_entity(text: &mut String, character: char) {
    // Writing to a `String` cannot fail.
    let _ = write!(text, "#{};", u32::from(character));
}

fn is_inside_a_word(before: &str, after: &str) -> bool {
    before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric)
}

/// The index of a character that would turn the text into a list or heading: `- a`, `1. a`, `===`.
fn bullet_of(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let marks: &[char] = if digits == 0 { &['-', '+', '='] } else { &['.', ')'] };
    text[digits..].starts_with(marks).then_some(digits)
}

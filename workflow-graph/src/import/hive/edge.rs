//! Edges of Hive documents, by their sources.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use super::{count, known, names_of_names, present, required, text};
use crate::document::model::Graph;
use crate::document::model::hive::{Condition, HiveEdge};
use crate::document::native::Reading;
use crate::document::template::Expression;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;

const CONDITIONS: [(&str, Condition); 5] = [
    ("on_success", Condition::OnSuccess),
    ("always", Condition::Always),
    ("on_failure", Condition::OnFailure),
    ("conditional", Condition::Conditional),
    ("llm_decide", Condition::LlmDecide),
];

/// By node, its edges in the order in which they are looked at.
pub(super) fn read_all(
    tree: &Tree,
    graph: &Graph,
    unread: &HashSet<Arc<str>>,
    reading: &mut Reading<'_>,
) -> Vec<Vec<HiveEdge>> {
    let mut by_node: Vec<Vec<(i64, HiveEdge)>> = vec![Vec::new(); graph.nodes.len()];
    let Some(list) = required(tree, "a graph", "edges", reading) else {
        return vec![Vec::new(); by_node.len()];
    };
    let edges = reading.list(list, "edges");
    reading.is_incomplete |= !matches!(list.kind, Kind::List(_));
    if count(edges.len(), list.at, reading) {
        for edge in edges {
            match read(edge, (graph, unread), reading) {
                Some((source, priority, edge)) => by_node[source].push((priority, edge)),
                None => reading.is_incomplete = true,
            }
        }
    }
    let ordered = |mut edges: Vec<(i64, HiveEdge)>| -> Vec<HiveEdge> {
        edges.sort_by_key(|(priority, _)| Reverse(*priority));
        edges.into_iter().map(|(_, edge)| edge).collect()
    };
    by_node.into_iter().map(ordered).collect()
}

/// The place of the source, the priority, and the edge.
fn read(
    tree: &Tree,
    (graph, unread): (&Graph, &HashSet<Arc<str>>),
    reading: &mut Reading<'_>,
) -> Option<(usize, i64, HiveEdge)> {
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, "an edge", "a map");
        return None;
    }
    let source = required(tree, "an edge", "source", reading).and_then(|tree| reading.name(tree, "source"));
    let target = required(tree, "an edge", "target", reading).and_then(|tree| reading.name(tree, "target"));
    if let Some(source) = &source {
        known(source, Code::UnknownNode, "an edge begins at", (graph, unread), reading);
    }
    if let Some(target) = &target {
        let from = source.as_ref().map_or("an edge leads to".to_owned(), |source| {
            format!("an edge of `{}` leads to", source.value)
        });
        known(target, Code::UnknownNode, &from, (graph, unread), reading);
    }
    let condition = condition(tree, reading);
    let when = if condition == Some(Condition::Conditional) { when(tree, reading) } else { Ok(None) };
    let priority = priority(tree, reading);
    let mapping = names_of_names(tree, "input_mapping", reading);
    let mapping: Vec<(Arc<str>, Arc<str>)> =
        mapping.into_iter().map(|(target, source)| (target, source.value)).collect();
    let description = text(tree, "description", reading);
    let source = graph.find(&source?.value)?;
    let edge = HiveEdge { to: target?, condition: condition?, when: when.ok()?, mapping, description };
    Some((source, priority?, edge))
}

fn condition(tree: &Tree, reading: &mut Reading<'_>) -> Option<Condition> {
    let Some(tree) = present(tree, "condition") else { return Some(Condition::OnSuccess) };
    let text = reading.text(tree, "condition")?;
    let found = CONDITIONS.iter().find(|(word, _)| *word == &*text.value).map(|(_, condition)| *condition);
    if found.is_none() {
        let message = format!("edges have no condition `{}`", text.value);
        let known = CONDITIONS.iter().map(|(word, _)| *word);
        let otherwise =
            || "write `on_success`, `always`, `on_failure`, `conditional` or `llm_decide`".to_owned();
        reading.problems.add_unknown(Code::Unsupported, tree.at, message, &text.value, known, otherwise);
    }
    found
}

/// The expression of a condition, if there is one. An error is a problem already.
fn when(tree: &Tree, reading: &mut Reading<'_>) -> Result<Option<Expression>, ()> {
    let Some(tree) = present(tree, "condition_expr") else { return Ok(None) };
    if matches!(&tree.kind, Kind::Text(text) if text.value.trim().is_empty()) {
        return Ok(None);
    }
    reading.expression(tree, "condition_expr").map(Some).ok_or(())
}

fn priority(tree: &Tree, reading: &mut Reading<'_>) -> Option<i64> {
    let Some(tree) = present(tree, "priority") else { return Some(0) };
    let number = match &tree.kind {
        Kind::Number(number) => number.as_i64(),
        _ => None,
    };
    if number.is_none() {
        reading.wrong_type(tree, "`priority`", "a whole number");
    }
    number
}

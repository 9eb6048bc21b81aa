//! Edges of Hive documents, by their sources.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{count, known, names_of_names, present, required, text};
use crate::document::model::hive::{Condition, HiveEdge};
use crate::document::model::{Graph, Name};
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
pub(super) fn read_all(tree: &Tree, graph: &mut Graph, reading: &mut Reading<'_>) -> Vec<Vec<HiveEdge>> {
    let mut by_node: Vec<Vec<(i64, HiveEdge)>> = vec![Vec::new(); graph.nodes.len()];
    let Some(list) = required(tree, "a graph", "edges", reading) else {
        graph.unread.nodes = true;
        return vec![Vec::new(); by_node.len()];
    };
    let edges = reading.list(list, "edges");
    let is_read = matches!(list.kind, Kind::List(_)) && count(edges.len(), list.at, reading);
    graph.unread.nodes |= !is_read;
    for tree in edges.iter().filter(|_| is_read) {
        match read(tree, graph, reading) {
            Ok((source, priority, edge)) => by_node[source].push((priority, edge)),
            Err(Lost { source, target }) => {
                if let Some(source) = source {
                    graph.nodes[source].unread.routes(tree);
                }
                graph.unread.led.extend(target.map(|target| target.value));
            }
        }
    }
    let ordered = |mut edges: Vec<(i64, HiveEdge)>| -> Vec<HiveEdge> {
        edges.sort_by_key(|(priority, _)| Reverse(*priority));
        edges.into_iter().map(|(_, edge)| edge).collect()
    };
    by_node.into_iter().map(ordered).collect()
}

/// The known part of an edge that could not be read.
struct Lost {
    source: Option<usize>,
    target: Option<Name>,
}

/// The place of the source, the priority, and the edge.
fn read(tree: &Tree, graph: &Graph, reading: &mut Reading<'_>) -> Result<(usize, i64, HiveEdge), Lost> {
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, "an edge", "a map");
        return Err(Lost { source: None, target: None });
    }
    let source = required(tree, "an edge", "source", reading).and_then(|tree| reading.name(tree, "source"));
    let target = required(tree, "an edge", "target", reading).and_then(|tree| reading.name(tree, "target"));
    let begin = source
        .as_ref()
        .and_then(|source| known(source, Code::UnknownNode, "an edge begins at", graph, reading));
    let is_known = source.as_ref().is_some_and(|source| graph.find(&source.value).is_some());
    let target = target.map(|target| {
        let from = source.as_ref().map_or("an edge leads to".to_owned(), |source| {
            format!("an edge of `{}` leads to", source.value)
        });
        let meant = known(&target, Code::UnknownNode, &from, graph, reading);
        let value = meant.map_or(target.value, |meant| graph.nodes[meant].id.value.clone());
        Name { value, at: target.at }
    });
    let condition = condition(tree, reading);
    let when = if condition == Some(Condition::Conditional) { when(tree, reading) } else { None };
    let priority = priority(tree, reading);
    let mapping = names_of_names(tree, "input_mapping", reading);
    let mapping: Vec<(Arc<str>, Arc<str>)> =
        mapping.into_iter().map(|(target, source)| (target, source.value)).collect();
    let description = text(tree, "description", reading);
    match (begin, target, condition) {
        (Some(source), Some(to), Some(condition)) if is_known => {
            Ok((source, priority, HiveEdge { to, condition, when, mapping, description }))
        }
        (source, target, _) => Err(Lost { source, target }),
    }
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
        let similar =
            reading.problems.add_unknown(Code::Unsupported, tree.at, message, &text.value, known, otherwise);
        let meant = similar.first()?;
        return CONDITIONS.iter().find(|(word, _)| word == meant).map(|(_, condition)| *condition);
    }
    found
}

/// The expression of a condition, if there is one.
fn when(tree: &Tree, reading: &mut Reading<'_>) -> Option<Expression> {
    let tree = present(tree, "condition_expr")?;
    if matches!(&tree.kind, Kind::Text(text) if text.value.trim().is_empty()) {
        return None;
    }
    Some(reading.condition(tree, "condition_expr"))
}

/// One that is wrong is that of most edges.
fn priority(tree: &Tree, reading: &mut Reading<'_>) -> i64 {
    let Some(tree) = present(tree, "priority") else { return 0 };
    let number = match &tree.kind {
        Kind::Number(number) => number.as_i64(),
        _ => None,
    };
    if number.is_none() {
        reading.wrong_type(tree, "`priority`", "a whole number");
    }
    number.unwrap_or_default()
}

//! Failures for explanations. The message of a visit whose routes all refused has each of their conditions: the node that
//! failed has it, and its routes tell it in short.

use std::sync::Arc;

use serde_json::Value;

use super::SeenValue;
use crate::VisitError;
use crate::document::template::Expression;
use crate::state::Failure;
use crate::trace::{Log, Visit, Visited};

/// The routes of which none held, so that the visit failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Next,
    OnFailure,
}

/// The routes whose refusal failed the visit, if it failed so.
pub(super) fn refused(visit: &Visit) -> Option<Refused> {
    of_message(&visit.node, &visit.error.as_ref()?.message)
}

fn of_message(node: &str, message: &str) -> Option<Refused> {
    let rest = message.strip_prefix("no route of ")?;
    let (list, rest) = match rest.strip_prefix("`on_failure` of ") {
        Some(rest) => (Refused::OnFailure, rest),
        None => (Refused::Next, rest),
    };
    let rest = rest.strip_prefix('`')?.strip_prefix(node)?;
    // Older journals have the second form.
    (rest.starts_with("` held: ") || rest.starts_with("` holds: ")).then_some(list)
}

/// The message with the conditions of `next`, if none of them held at the visit.
pub(super) fn refusal_of_next(log: &Log<'_>, visited: &Visited, visit: &Visit) -> Option<Arc<str>> {
    match refused(visit)? {
        Refused::Next => Some(visit.error.as_ref()?.message.clone()),
        Refused::OnFailure => {
            let first = caught(log, visited)?.message;
            (of_message(&visit.node, &first) == Some(Refused::Next)).then_some(first)
        }
    }
}

/// The error of a visit in few words.
pub(super) fn told(log: &Log<'_>, visited: &Visited, visit: &Visit) -> Option<VisitError> {
    let error = visit.error.as_ref()?;
    let (class, message) = match refused(visit) {
        None => return Some(error.clone()),
        Some(Refused::Next) => (error.class.clone(), "no route held".into()),
        Some(Refused::OnFailure) => match caught(log, visited) {
            Some(first) if of_message(&visit.node, &first.message) == Some(Refused::Next) => {
                (first.class, "no route of `next` held, and none of `on_failure`".into())
            }
            Some(first) => (first.class, format!("{}; no route of `on_failure` held", first.message).into()),
            None => (error.class.clone(), "no route of `on_failure` held".into()),
        },
    };
    Some(VisitError { class, message })
}

/// The error of a visit, with each condition of `next` where none of them held.
pub(super) fn whole(log: &Log<'_>, visited: &Visited, visit: &Visit) -> Option<VisitError> {
    match refused(visit) {
        Some(Refused::Next) => visit.error.clone(),
        _ => told(log, visited, visit),
    }
}

/// The failure that the last step of a visit caught.
pub(super) fn caught(log: &Log<'_>, visited: &Visited) -> Option<Failure> {
    log.failure(log.execution(visited.ended_by)?.trigger)
}

/// Whether a message of [`Refused::Next`] says that this condition was false, and the values that it names. The visit
/// left nothing else from which they could be known.
pub(super) fn values(message: &str, condition: &Expression, paths: Vec<String>) -> Option<Vec<SeenValue>> {
    let asks = format!("asks for `{}`", condition.parsed.source());
    let (_, mut rest) = message.split_once(&asks)?;
    let mut found = Vec::with_capacity(paths.len());
    let mut paths = paths.into_iter().peekable();
    let mut before = ", where ".to_owned();
    while let Some(path) = paths.next() {
        let Some(after) = rest.strip_prefix(&format!("{before}`{path}` is ")) else { break };
        before = " and ".into();
        let (value, end) = value(after, paths.peek());
        rest = &after[end..];
        found.push(SeenValue { path, value, ends: None });
    }
    Some(found)
}

/// The value at the begin of the text, and where it ends: before the next path, the next route or the failure.
fn value(text: &str, next: Option<&String>) -> (Option<Value>, usize) {
    let ends = next.map_or_else(
        || vec!["; `".to_owned(), "; the failure was: ".to_owned()],
        |next| vec![format!(" and `{next}` is ")],
    );
    let mut ends: Vec<usize> =
        ends.iter().flat_map(|end| text.match_indices(end).map(|(place, _)| place)).collect();
    ends.push(text.len());
    ends.sort_unstable();
    let whole = ends.iter().find_map(|end| Some((serde_json::from_str(&text[..*end]).ok()?, *end)));
    match whole {
        Some((value, end)) => (Some(value), end),
        None if &text[..ends[0]] == "missing" => (None, ends[0]),
        // A short form of a long value is no JSON.
        None => (Some(Value::String(text[..ends[0]].into())), ends[0]),
    }
}

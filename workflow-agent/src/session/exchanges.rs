//! The exchanges of a session, each a value of its own that names the one before it. A late engine may write one that the
//! head never takes; nothing leads to it, so it is no part of the session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow_core::errors::ContextError;
use workflow_core::prelude::*;
use workflow_core::{RunId, ThreadContext};

use super::SessionError;
use super::head::{self, Head};
use crate::agent::SessionPlace;
use crate::entry::{Entry, Marked, ToolDone};
use crate::failures;
use crate::model::Part;
use crate::transcript::{self, Before};

/// The most exchanges of a session.
pub(super) const MOST: u64 = 10_000;
/// The exchanges that are read at once.
pub(super) const PAGE: usize = 16;
/// The characters of an exchange from which on its results are shortened.
const LARGE: usize = 256 * 1024;

/// The stored form of an exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) run: RunId,
    /// The execution of the run that wrote it. An earlier one, of an engine that lost the run, does not replace it.
    execution: u64,
    /// The number of the exchange before; 0 for the first one.
    pub(super) before: u64,
    pub(super) entries: Arc<[Entry]>,
}

/// An exchange of a session, for people.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionExchange {
    /// Its number: numbers grow, and runs without an answer leave gaps.
    pub number: u64,
    /// The run.
    pub run: RunId,
    /// The entries, beginning with the message.
    pub entries: Arc<[Entry]>,
}

impl SessionExchange {
    /// The message.
    pub fn question(&self) -> Arc<str> {
        let text = self.entries.iter().find_map(|entry| match entry {
            Entry::User { text, .. } => Some(Arc::clone(text)),
            _ => None,
        });
        text.unwrap_or_default()
    }

    /// The answer, or the last text before the run stopped.
    pub fn answer(&self) -> String {
        let texts = self.entries.iter().rev().filter_map(|entry| match entry {
            Entry::Said { parts } => Some(answer_of(parts)),
            _ => None,
        });
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }
}

/// The text of a reply, or the data of a typed answer without one.
fn answer_of(parts: &[Part]) -> String {
    let text = crate::entry::text(parts);
    let typed = crate::entry::calls(parts).find(|call| &*call.name == transcript::FINAL_ANSWER);
    typed.filter(|_| text.trim().is_empty()).map_or(text, |call| call.arguments.to_string())
}

fn prefix(session: &str) -> String {
    format!("agent/session/{session}/x/")
}

pub(super) fn key(session: &str, number: u64) -> String {
    format!("agent/session/{session}/x/{number:012}")
}

/// The number of an exchange, out of its key. Any other key of the same begin has none.
fn number_of(session: &str, stored: &str) -> Option<u64> {
    let number = stored.strip_prefix(&*prefix(session))?.parse().ok()?;
    (key(session, number) == stored).then_some(number)
}

/// Up to `at_most` exchanges with numbers in `from..to`, oldest first.
pub(super) async fn between(
    thread: &ThreadContext,
    session: &str,
    (from, to): (u64, u64),
    at_most: usize,
) -> Result<Vec<(u64, Exchange)>, ContextError> {
    let begin = prefix(session);
    let mut found = Vec::new();
    let mut after = key(session, from.saturating_sub(1));
    let mut left = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX).min(at_most);
    while left > 0 {
        // A page may be short because its values are large; only an empty one is the last.
        let page = thread.list(Some(&after), left.min(PAGE)).await?;
        if page.is_empty() {
            break;
        }
        for (key, value) in page {
            if !key.starts_with(&begin) {
                return Ok(found);
            }
            after.clone_from(&key);
            let Some(number) = number_of(session, &key).filter(|number| *number >= from) else { continue };
            if number >= to {
                return Ok(found);
            }
            let exchange = match value.get::<Exchange>() {
                Ok(exchange) => exchange,
                // Reading it by its key gives the error that names it.
                Err(_) => thread.get::<Exchange>(&key).await?.ok_or_else(|| gone(&key))?,
            };
            found.push((number, exchange));
            left -= 1;
        }
    }
    Ok(found)
}

fn gone(key: &str) -> ContextError {
    ContextError::unavailable(std::io::Error::other(format!("`{key}` cannot be read")))
}

/// Up to `at_most` exchanges of the session with numbers in `from..to`, oldest first. The last number below `to` is one of the
/// session, if there is any.
pub(super) async fn linked(
    thread: &ThreadContext,
    session: &str,
    (mut from, to): (u64, u64),
    at_most: usize,
) -> Result<Vec<(u64, Exchange)>, ContextError> {
    let mut found = Vec::<(u64, Exchange)>::new();
    loop {
        // One more, which names the one before it.
        let wanted = (at_most - found.len()).saturating_add(1);
        let mut page = between(thread, session, (from, to), wanted).await?;
        let behind = if page.len() == wanted { page.pop() } else { None };
        let mut named = behind.as_ref().map(|(_, behind)| behind.before);
        let mut kept = Vec::with_capacity(page.len());
        for (number, exchange) in page.into_iter().rev() {
            let is_linked = named.is_none_or(|named| number <= named);
            named = Some(exchange.before);
            if is_linked {
                kept.push((number, exchange));
            }
        }
        found.extend(kept.into_iter().rev());
        match behind {
            Some((number, _)) if found.len() < at_most => from = number,
            _ => return Ok(found),
        }
    }
}

/// Adds the exchange of a run, once. A run that was redriven after a later one started adds nothing.
///
/// Two engines may be here at once: one that stood still and lost its run, and the run's owner. In either order the
/// exchange of the later execution stays, and only the head decides whether it is in the session.
pub(crate) async fn add(
    thread: &ThreadContext,
    place: &SessionPlace,
    info: &RunInfo,
    own: &[&Entry],
) -> Result<(), StepError> {
    enter(thread, place, info, stored(own), false).await
}

/// Adds the exchange of a run that ended without an answer, like [`add`]. It stays however the run ended.
pub(crate) async fn leave(
    thread: &ThreadContext,
    place: &SessionPlace,
    info: &RunInfo,
    own: &[Entry],
) -> Result<(), StepError> {
    let own: Vec<&Entry> = own.iter().collect();
    enter(thread, place, info, stored(&own), true).await
}

async fn enter(
    thread: &ThreadContext,
    place: &SessionPlace,
    info: &RunInfo,
    entries: Vec<Entry>,
    is_left: bool,
) -> Result<(), StepError> {
    let (number, execution) = (place.number, info.execution().0);
    let before = head::read(thread, &place.id).await.map_err(failures::of_context)?;
    let Some(entered) = before.entry(number, execution) else { return Ok(()) };
    // Runs that failed after they wrote their exchange left it without a place. None of them can enter any more, since this
    // run has started.
    let left = between(thread, &place.id, (entered.last + 1, number), usize::MAX);
    for (left, _) in left.await.map_err(failures::of_context)? {
        thread.remove(&key(&place.id, left)).await.map_err(failures::of_context)?;
    }
    let is_summary = begins_anew(&entries);
    let key = key(&place.id, number);
    let exchange =
        Exchange { run: info.run().clone(), execution, before: entered.last, entries: entries.into() };
    // An execution that is repeated keeps what it wrote.
    let is_current = |there: &Exchange| there.run == exchange.run && there.execution >= execution;
    let write = |there: Option<Exchange>| there.filter(is_current).unwrap_or_else(|| exchange.clone());
    thread.update::<Exchange>(&key, write).await.map_err(failures::of_context)?;
    let enter = |head: Option<Head>| Head::of(head).with(number, (execution, is_left), is_summary);
    let head = thread.update::<Head>(&head::key(&place.id), enter).await.map_err(failures::of_context)?;
    if head.last < number {
        // The head refused it for ever.
        thread.remove(&key).await.map_err(failures::of_context)?;
    }
    remove_oldest(thread, &place.id, head).await.map_err(failures::of_context)
}

/// Whether an exchange says everything of those before it. A summary within an isolated phase says nothing of them.
pub(crate) fn begins_anew(entries: &[Entry]) -> bool {
    let own: Vec<&Entry> = entries.iter().collect();
    matches!(entries.first(), Some(Entry::Summary(_))) && transcript::begin(&own).is_none()
}

/// The entries of a run as later runs see them: from its last summary on, without places among its entries.
pub(crate) fn stored(own: &[&Entry]) -> Vec<Entry> {
    let line = transcript::line(Before::default(), own);
    let characters: usize = line.iter().map(|item| item.entry.characters()).sum();
    let kept =
        line.iter().filter(|item| !matches!(item.entry, Entry::Recalled { .. })).map(|item| item.entry);
    // An isolated phase does not see the message, and later runs do.
    let is_lost = !line.iter().any(|item| matches!(item.entry, Entry::User { .. }));
    let asked = own.iter().copied().find(|entry| is_lost && matches!(entry, Entry::User { .. }));
    // A summary stays in front, since it begins the session anew.
    let (summary, rest): (Vec<_>, Vec<_>) = kept.partition(|entry| matches!(entry, Entry::Summary(_)));
    let entries = summary.into_iter().chain(asked).chain(rest);
    entries
        .map(|entry| match entry {
            Entry::Assistant(reply) => Entry::Said { parts: Arc::clone(&reply.parts) },
            Entry::Results { results } if characters > LARGE => {
                Entry::Results { results: results.iter().map(shortened).collect() }
            }
            entry => entry.clone(),
        })
        .collect()
}

fn shortened(result: &ToolDone) -> ToolDone {
    let text = crate::tool::cut(&result.text, 1_024).into_owned();
    ToolDone { text: text.into(), marked: Marked::default(), ..result.clone() }
}

/// Removes the oldest exchanges beyond the bound.
async fn remove_oldest(thread: &ThreadContext, session: &str, mut head: Head) -> Result<(), ContextError> {
    while head.count > MOST {
        let oldest = thread.list(Some(&key(session, 0)), 2).await?;
        let mut oldest = oldest.into_iter();
        let Some((key, number)) =
            oldest.next().and_then(|(key, _)| number_of(session, &key).map(|number| (key, number)))
        else {
            break;
        };
        thread.remove(&key).await?;
        let behind = oldest.next().and_then(|(_, behind)| behind.get::<Exchange>().ok());
        if behind.is_some_and(|behind| behind.before < number) {
            // It was none of the session, and was not counted.
            continue;
        }
        let removed = |head: Option<Head>| {
            let head = Head::of(head);
            Head { count: head.count.saturating_sub(1), ..head }
        };
        head = thread.update::<Head>(&head::key(session), removed).await?;
    }
    Ok(())
}

/// A page of exchanges.
pub(super) async fn list(
    thread: &ThreadContext,
    session: &str,
    after: u64,
    at_most: usize,
) -> Result<Vec<SessionExchange>, SessionError> {
    let head = head::read_complete(thread, session).await?;
    let found = linked(thread, session, (after.saturating_add(1), head.last + 1), at_most).await?;
    let listed = found.into_iter().map(|(number, exchange)| SessionExchange {
        number,
        run: exchange.run,
        entries: exchange.entries,
    });
    Ok(listed.collect())
}

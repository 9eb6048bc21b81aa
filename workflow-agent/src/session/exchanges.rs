//! The stored form of a session: one value for its head, and one for each exchange. An exchange never changes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use workflow_core::prelude::*;
use workflow_core::{RunId, ThreadContext};

use super::SessionError;
use crate::agent::SessionPlace;
use crate::entry::{Entry, HistoryRange, Marked, ToolDone};
use crate::failures;
use crate::model::Part;
use crate::transcript::{self, Before};

/// The most exchanges of a session.
const MOST: u64 = 10_000;
/// The exchanges that are read at once.
const PAGE: usize = 16;
/// The numbers of runs end before this one, so that all keys have one length.
const NUMBERS: u64 = 1_000_000_000_000 - 1;
/// The characters of an exchange from which on its results are shortened.
const LARGE: usize = 256 * 1024;
/// The histories that a process remembers, and the characters in them.
const CACHED: usize = 64;
const CACHED_CHARACTERS: usize = 16 * 1024 * 1024;

/// The head of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredHead")]
struct Head {
    /// Distinguishes sessions of one name in different stores.
    nonce: String,
    /// The number of the run that started last.
    started: u64,
    /// The number of the last exchange; 0 without one.
    last: u64,
    /// The exchanges that there are.
    count: u64,
    /// The number of the last exchange that begins with a summary.
    #[serde(default)]
    summary: u64,
    /// Set while the session is copied from another one: which, and up to where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copies: Option<Arc<str>>,
}

/// A head as it was stored, before its numbers are compared.
#[derive(Deserialize)]
struct StoredHead {
    nonce: String,
    started: u64,
    last: u64,
    count: u64,
    #[serde(default)]
    summary: u64,
    #[serde(default)]
    copies: Option<Arc<str>>,
}

impl TryFrom<StoredHead> for Head {
    type Error = &'static str;

    fn try_from(stored: StoredHead) -> Result<Self, Self::Error> {
        let StoredHead { nonce, started, last, count, summary, copies } = stored;
        if started >= NUMBERS || last > started || count >= NUMBERS || summary > last {
            return Err("the numbers of the session contradict each other");
        }
        Ok(Self { nonce, started, last, count, summary, copies })
    }
}

/// The stored form of an exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Exchange {
    run: RunId,
    entries: Arc<[Entry]>,
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

fn head_key(session: &str) -> String {
    format!("agent/session/{session}/head")
}

fn exchange_prefix(session: &str) -> String {
    format!("agent/session/{session}/x/")
}

fn exchange_key(session: &str, number: u64) -> String {
    format!("agent/session/{session}/x/{number:012}")
}

/// The number of an exchange, out of its key. Any other key of the same begin has none.
fn number_of(session: &str, key: &str) -> Option<u64> {
    let number = key.strip_prefix(&*exchange_prefix(session))?.parse().ok()?;
    (exchange_key(session, number) == key).then_some(number)
}

async fn head(thread: &ThreadContext, session: &str) -> Result<Head, workflow_core::errors::ContextError> {
    Ok(thread.get::<Head>(&head_key(session)).await?.unwrap_or_default())
}

fn with_nonce(head: Option<Head>) -> Head {
    let mut head = head.unwrap_or_default();
    if head.nonce.is_empty() {
        head.nonce = RunId::generate().to_string();
    }
    head
}

/// The number of the run that started last. A session that is being copied is busy.
pub(super) async fn started(thread: &ThreadContext, session: &str) -> Result<u64, SessionError> {
    match head(thread, session).await? {
        Head { copies: Some(_), .. } => Err(SessionError::Busy { session: session.into() }),
        head => Ok(head.started),
    }
}

/// Notes that a run has started.
pub(super) async fn start(
    thread: &ThreadContext,
    session: &str,
    number: u64,
) -> Result<Head0, workflow_core::errors::ContextError> {
    let note = |head: Option<Head>| {
        let head = with_nonce(head);
        Head { started: head.started.max(number), ..head }
    };
    thread.update::<Head>(&head_key(session), note).await.map(Head0)
}

/// A head that callers only keep.
#[derive(Debug)]
pub(super) struct Head0(Head);

/// Up to `at_most` exchanges with numbers in `from..to`, oldest first.
async fn between(
    thread: &ThreadContext,
    session: &str,
    (from, to): (u64, u64),
    at_most: usize,
) -> Result<Vec<(u64, Exchange)>, workflow_core::errors::ContextError> {
    let prefix = exchange_prefix(session);
    let mut found = Vec::new();
    let mut after = exchange_key(session, from.saturating_sub(1));
    let mut left = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX).min(at_most);
    while left > 0 {
        // A page may be short because its values are large; only an empty one is the last.
        let page = thread.list(Some(&after), left.min(PAGE)).await?;
        if page.is_empty() {
            break;
        }
        for (key, value) in page {
            if !key.starts_with(&prefix) {
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

fn gone(key: &str) -> workflow_core::errors::ContextError {
    workflow_core::errors::ContextError::unavailable(std::io::Error::other(format!("`{key}` cannot be read")))
}

/// The history that a run sees.
pub(crate) struct History {
    pub(crate) range: Option<HistoryRange>,
    /// The runs of its exchanges.
    pub(crate) runs: Vec<RunId>,
}

/// Notes the start of a run, and finds its history: the newest whole exchanges within half the window, from the last one
/// that begins with a summary on.
pub(crate) async fn history(
    thread: &ThreadContext,
    place: &SessionPlace,
    window: u64,
    info: &RunInfo,
) -> Result<History, StepError> {
    let Head0(head) = start(thread, &place.id, place.number).await.map_err(failures::of_context)?;
    let last = head.last.min(place.number - 1);
    let mut left = usize::try_from(window.saturating_mul(2)).unwrap_or(usize::MAX);
    let (mut newest, mut to) = (VecDeque::<(u64, Exchange)>::new(), last + 1);
    let first = head.summary.max(1);
    'pages: while to > first {
        // Runs that added nothing leave gaps. Behind a very long one, nothing is looked for.
        let before = newest.front().map_or(last + 1, |(number, _)| *number);
        if before - to > MOST {
            break;
        }
        let from = to.saturating_sub(PAGE as u64).max(first);
        let page = between(thread, &place.id, (from, to), PAGE).await.map_err(failures::of_context)?;
        for (number, exchange) in page.into_iter().rev() {
            let characters: usize = exchange.entries.iter().map(Entry::characters).sum();
            let Some(rest) = left.checked_sub(characters) else { break 'pages };
            // The end of the run may remove the oldest exchange of a full session, and must be repeatable.
            if newest.len() as u64 + 1 >= MOST {
                break 'pages;
            }
            left = rest;
            if exchange.run != *info.run() {
                newest.push_front((number, exchange));
            }
        }
        to = from;
    }
    let runs = newest.iter().map(|(_, exchange)| exchange.run.clone()).collect();
    let range = newest.front().zip(newest.back()).map(|((from, _), (to, _))| {
        let numbers: Vec<u64> = newest.iter().map(|(number, _)| *number).collect();
        let missing = (*from..=*to).filter(|number| numbers.binary_search(number).is_err()).collect();
        HistoryRange { session: Arc::clone(&place.id), from: *from, to: to + 1, missing }
    });
    if let Some(range) = &range {
        // The first model call of this process need not read them again.
        let entries = newest.iter().map(|(_, exchange)| Arc::clone(&exchange.entries)).collect();
        remember(head.nonce, range.clone(), entries);
    }
    Ok(History { range, runs })
}

/// A history that this process has read.
struct Cached {
    nonce: String,
    range: HistoryRange,
    entries: Vec<Arc<[Entry]>>,
    characters: usize,
}

fn cache() -> &'static Mutex<VecDeque<Cached>> {
    static CACHE: OnceLock<Mutex<VecDeque<Cached>>> = OnceLock::new();
    CACHE.get_or_init(Mutex::default)
}

/// The exchanges of a range.
pub(crate) async fn exchanges(
    thread: &ThreadContext,
    range: &HistoryRange,
) -> Result<Vec<Arc<[Entry]>>, StepError> {
    let nonce = head(thread, &range.session).await.map_err(failures::of_context)?.nonce;
    let cached = || {
        let cache = cache().lock().unwrap_or_else(PoisonError::into_inner);
        cache
            .iter()
            .find(|cached| cached.nonce == nonce && cached.range == *range)
            .map(|cached| cached.entries.clone())
    };
    if let Some(entries) = cached() {
        return Ok(entries);
    }
    let found = between(thread, &range.session, (range.from, range.to), usize::MAX);
    let found = found.await.map_err(failures::of_context)?;
    let mut found = found.into_iter().filter(|(number, _)| !range.missing.contains(number)).peekable();
    let mut entries = Vec::new();
    for number in (range.from..range.to).filter(|number| !range.missing.contains(number)) {
        let Some((_, exchange)) = found.next_if(|(found, _)| *found == number) else {
            let session = &range.session;
            return Err(StepError::permanent(format!(
                "the context store lacks exchange {number} of session `{session}`, which the run began with"
            )));
        };
        entries.push(exchange.entries);
    }
    remember(nonce, range.clone(), entries.clone());
    Ok(entries)
}

fn remember(nonce: String, range: HistoryRange, entries: Vec<Arc<[Entry]>>) {
    let characters = entries.iter().flat_map(|exchange| exchange.iter()).map(Entry::characters).sum();
    if characters > CACHED_CHARACTERS {
        return;
    }
    let mut cache = cache().lock().unwrap_or_else(PoisonError::into_inner);
    let mut held: usize = cache.iter().map(|cached| cached.characters).sum();
    while cache.len() >= CACHED || held + characters > CACHED_CHARACTERS {
        let Some(oldest) = cache.pop_front() else { break };
        held -= oldest.characters;
    }
    cache.push_back(Cached { nonce, range, entries, characters });
}

/// Whether the exchange of a run may enter its session, or has done so in an earlier life of the run. A run that was
/// redriven after a later one started adds nothing.
pub(crate) async fn accepts(thread: &ThreadContext, place: &SessionPlace) -> Result<bool, StepError> {
    let head = head(thread, &place.id).await.map_err(failures::of_context)?;
    Ok(head.started <= place.number && head.last <= place.number)
}

/// Adds the exchange of a run, once. A run that was redriven after a later one started adds nothing.
pub(crate) async fn add(
    thread: &ThreadContext,
    place: &SessionPlace,
    info: &RunInfo,
    own: &[&Entry],
) -> Result<(), StepError> {
    let before = head(thread, &place.id).await.map_err(failures::of_context)?;
    if before.started > place.number || before.last >= place.number {
        return Ok(());
    }
    // Runs that failed after they wrote their exchange left it without a place.
    let left = between(thread, &place.id, (before.last + 1, place.number), usize::MAX);
    for (number, _) in left.await.map_err(failures::of_context)? {
        thread.remove(&exchange_key(&place.id, number)).await.map_err(failures::of_context)?;
    }
    let entries = stored(own);
    // A summary within an isolated phase says nothing of the exchanges before.
    let is_summary = matches!(entries.first(), Some(Entry::Summary(_))) && transcript::begin(own).is_none();
    let key = exchange_key(&place.id, place.number);
    // An earlier life of this run may have left its exchange without entering it.
    thread.remove(&key).await.map_err(failures::of_context)?;
    let exchange = Exchange { run: info.run().clone(), entries: entries.into() };
    // An engine that lost the run while it stood still must not change the exchange that the run's owner entered.
    let write = |there: Option<Exchange>| there.unwrap_or_else(|| exchange.clone());
    thread.update::<Exchange>(&key, write).await.map_err(failures::of_context)?;
    let enter = |head: Option<Head>| {
        let head = with_nonce(head);
        if head.started > place.number || head.last >= place.number {
            return head;
        }
        let summary = if is_summary { place.number } else { head.summary };
        let started = head.started.max(place.number);
        Head { started, last: place.number, count: head.count + 1, summary, ..head }
    };
    let head = thread.update::<Head>(&head_key(&place.id), enter).await.map_err(failures::of_context)?;
    if head.last < place.number {
        thread.remove(&key).await.map_err(failures::of_context)?;
    }
    remove_oldest(thread, &place.id, head).await.map_err(failures::of_context)
}

/// The entries of a run as later runs see them: from its last summary on, without places among its entries.
fn stored(own: &[&Entry]) -> Vec<Entry> {
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
async fn remove_oldest(
    thread: &ThreadContext,
    session: &str,
    mut head: Head,
) -> Result<(), workflow_core::errors::ContextError> {
    while head.count > MOST {
        let oldest = thread.list(Some(&exchange_key(session, 0)), 1).await?;
        let Some((key, _)) = oldest.first().filter(|(key, _)| number_of(session, key).is_some()) else {
            break;
        };
        thread.remove(key).await?;
        let removed = |head: Option<Head>| {
            let head = with_nonce(head);
            Head { count: head.count.saturating_sub(1), ..head }
        };
        head = thread.update::<Head>(&head_key(session), removed).await?;
    }
    Ok(())
}

/// Copies a session. The head of the copy comes first, so that nobody else writes there; a repetition after a crash goes on
/// with it.
pub(super) async fn fork(thread: &ThreadContext, from: &str, to: &str) -> Result<(), SessionError> {
    let source = head(thread, from).await?;
    let token: Arc<str> = format!("{from}@{}@{}", source.nonce, source.last).into();
    let create = |there: Option<Head>| {
        there.unwrap_or_else(|| Head {
            nonce: RunId::generate().to_string(),
            started: source.last,
            copies: Some(Arc::clone(&token)),
            ..Head::default()
        })
    };
    let created = thread.update::<Head>(&head_key(to), create).await?;
    if created.copies.as_ref() != Some(&token) {
        return Err(SessionError::Exists { session: to.into() });
    }
    let mut next = 1;
    loop {
        let page = between(thread, from, (next, source.last + 1), PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        next = last + 1;
        for (number, exchange) in page {
            thread.set(&exchange_key(to, number), exchange).await?;
        }
    }
    let complete = |there: Option<Head>| match with_nonce(there) {
        copy if copy.copies.as_ref() == Some(&token) => {
            Head { last: source.last, count: source.count, summary: source.summary, copies: None, ..copy }
        }
        other => other,
    };
    thread.update::<Head>(&head_key(to), complete).await?;
    Ok(())
}

/// A page of exchanges.
pub(super) async fn list(
    thread: &ThreadContext,
    session: &str,
    after: u64,
    at_most: usize,
) -> Result<Vec<SessionExchange>, SessionError> {
    let head = head(thread, session).await?;
    let found = between(thread, session, (after.saturating_add(1), head.last + 1), at_most).await?;
    let listed = found.into_iter().map(|(number, exchange)| SessionExchange {
        number,
        run: exchange.run,
        entries: exchange.entries,
    });
    Ok(listed.collect())
}

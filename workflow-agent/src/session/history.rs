//! The history of a run: which exchanges it sees, and their entries.

use std::collections::VecDeque;
use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::{RunId, ThreadContext};

use super::exchanges::{self, Exchange, MOST, PAGE, between};
use super::{cache, head};
use crate::agent::SessionPlace;
use crate::entry::{Entry, HistoryRange};
use crate::failures;

/// The history that a run sees.
pub(crate) struct History {
    pub(crate) range: Option<HistoryRange>,
    /// The runs of its exchanges.
    pub(crate) runs: Vec<RunId>,
}

/// Notes the start of a run, and finds its history: the exchanges from the last one that begins with a summary on. If they
/// fill the window, the run summarises them before its first model call.
pub(crate) async fn history(
    thread: &ThreadContext,
    place: &SessionPlace,
    window: u64,
    info: &RunInfo,
) -> Result<History, StepError> {
    let head = head::start(thread, place).await.map_err(failures::of_context)?;
    if head.started < place.number || head.copies.is_some() {
        let SessionPlace { id, number, .. } = place;
        return Err(StepError::permanent(format!(
            "run {number} is not the next one of session `{id}`: say it through `Session`"
        )));
    }
    // A run that was redriven after later ones begins with the exchanges before itself.
    let last = if head.last < place.number {
        head.last
    } else {
        let later = between(thread, &place.id, (place.number, head.last + 1), 1);
        let later = later.await.map_err(failures::of_context)?;
        later.first().map_or(0, |(_, exchange)| exchange.before.min(place.number - 1))
    };
    let mut left = crate::compact::most_before(window);
    let (mut newest, mut to) = (VecDeque::<(u64, Exchange)>::new(), last + 1);
    // A run that was redriven after a later one's summary begins with what was there before.
    let first = if head.summary <= last { head.summary.max(1) } else { 1 };
    // The number that the exchange behind names.
    let mut named = last;
    'pages: while to > first {
        // Runs that added nothing leave gaps. Behind a very long one, nothing is looked for.
        let before = newest.front().map_or(last + 1, |(number, _)| *number);
        if before - to > MOST {
            break;
        }
        let from = to.saturating_sub(PAGE as u64).max(first);
        let page = between(thread, &place.id, (from, to), PAGE).await.map_err(failures::of_context)?;
        for (number, exchange) in page.into_iter().rev() {
            if number > named {
                continue;
            }
            named = exchange.before.min(number - 1);
            let characters: usize = exchange.entries.iter().map(Entry::characters).sum();
            let Some(rest) = left.checked_sub(characters) else { break 'pages };
            // The end of the run may remove the oldest exchange of a full session, and must be repeatable.
            if newest.len() as u64 + 1 >= MOST {
                break 'pages;
            }
            left = rest;
            let is_summary = exchanges::begins_anew(&exchange.entries);
            if exchange.run != *info.run() {
                newest.push_front((number, exchange));
            }
            if is_summary {
                break 'pages;
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
        cache::remember(head.nonce, range.clone(), entries);
    }
    Ok(History { range, runs })
}

/// The exchanges of a range.
pub(crate) async fn exchanges(
    thread: &ThreadContext,
    range: &HistoryRange,
) -> Result<Vec<Arc<[Entry]>>, StepError> {
    let nonce = head::read(thread, &range.session).await.map_err(failures::of_context)?.nonce;
    if let Some(entries) = cache::history(&nonce, range) {
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
    cache::remember(nonce, range.clone(), entries.clone());
    Ok(entries)
}

//! The episodes of a thread in its context: a ring of 1,000 slots. A new episode replaces the one that is 1,000 older, so
//! the bound holds by itself, and nothing is left to remove. This file neither ranks episodes nor caches them.
//!
//! ```text
//! agent/memory/state        identity, the next number, and the numbers that changed last
//! agent/memory/runs/7       numbers of episodes by run, for runs whose hash falls in this bucket
//! agent/memory/episode/042  the episode with number n, where n modulo 1,000 is 42
//! ```
//!
//! Each call changes one key, atomically, and a crash may fall between any two. The order is: take a number (logged as
//! changed), note it for the run, write the episode, log the change. After a crash the repeated call finds the run's
//! number and writes there. A number that nobody uses leaves an older episode in its slot.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use workflow_core::errors::ContextError;
use workflow_core::store::{ContextData, ContextValue};
use workflow_core::{RunId, ThreadContext};

use super::episode::StoredEpisode;

/// The most episodes of a thread.
pub(super) const MOST_EPISODES: u64 = 1000;

const STATE: &str = "agent/memory/state";
const EPISODES: &str = "agent/memory/episode/";

/// The number of values that map runs to numbers. Each has about 32 entries.
const BUCKETS: u64 = 64;

/// The number of logged changes. A reader that missed more reads everything.
const LOGGED: usize = 64;

/// The number of values that a page has, or that are read at a time.
const PAGE: usize = 64;
const READ_AHEAD: usize = 8;

/// The changes of a memory, by which a reader knows whether it has seen all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// A random name of this memory, since a context does not name its thread.
    pub(super) id: Arc<str>,
    /// The number of the next new episode.
    next: u64,
    /// The number of changes.
    pub(super) changes: u64,
    /// The numbers of the episodes that changed last, the latest at the end.
    pub(super) logged: Vec<u64>,
}

impl State {
    fn or_new(state: Option<Self>) -> Self {
        let new = || Self { id: RunId::generate().as_str().into(), next: 0, changes: 0, logged: Vec::new() };
        state.unwrap_or_else(new)
    }

    fn change(&mut self, number: u64) {
        self.changes = self.changes.wrapping_add(1);
        self.logged.push(number);
        self.logged.drain(..self.logged.len().saturating_sub(LOGGED));
    }

    /// The numbers that changed after a number of changes; `None` if these are no longer known.
    pub(super) fn changed_since(&self, changes: u64) -> Option<&[u64]> {
        let missed = usize::try_from(self.changes.checked_sub(changes)?).ok()?;
        Some(&self.logged[self.logged.len().checked_sub(missed)?..])
    }
}

/// The numbers of some runs, oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Bucket(Vec<(RunId, u64)>);

impl Bucket {
    fn number(&self, run: &RunId) -> Option<u64> {
        self.0.iter().find(|(known, _)| known == run).map(|(_, number)| *number)
    }

    /// Notes a number, unless the run has another one by now than the removed one.
    fn note(&mut self, run: &RunId, number: u64, removed: Option<u64>) {
        if self.number(run).is_none_or(|there| Some(there) == removed) {
            self.0.retain(|(known, there)| known != run && !is_gone(*there, number));
            self.0.push((run.clone(), number));
        }
    }
}

/// Whether an episode has surely left its slot: unused numbers may let it stay for a second round.
fn is_gone(number: u64, newest: u64) -> bool {
    number.saturating_add(2 * MOST_EPISODES) <= newest
}

/// Reads the state; `None` if the thread has no episode.
pub(super) async fn state(thread: &ThreadContext) -> Result<Option<State>, ContextError> {
    thread.get(STATE).await
}

/// Stores an episode under its run. A repeated call replaces it where it is.
pub(super) async fn store(episode: StoredEpisode, thread: &ThreadContext) -> Result<(), ContextError> {
    let bucket = bucket_key(&episode.run);
    let known = thread.get::<Bucket>(&bucket).await?.and_then(|bucket| bucket.number(&episode.run));
    if let Some(number) = known
        && write(&episode, number, thread).await?
    {
        return Ok(());
    }
    let number = take_number(thread).await?;
    let noted = |there: Option<Bucket>| {
        let mut bucket = there.unwrap_or_default();
        bucket.note(&episode.run, number, known);
        bucket
    };
    // A concurrent call for the same run may have noted its own number.
    let number = thread.update(&bucket, noted).await?.number(&episode.run).unwrap_or(number);
    write(&episode, number, thread).await?;
    Ok(())
}

async fn take_number(thread: &ThreadContext) -> Result<u64, ContextError> {
    let taken = |state: Option<State>| {
        let mut state = State::or_new(state);
        state.change(state.next);
        state.next = state.next.saturating_add(1);
        state
    };
    Ok(thread.update(STATE, taken).await?.next - 1)
}

/// Writes an episode to its slot and logs the change. Returns `false` if a newer episode is there.
async fn write(episode: &StoredEpisode, number: u64, thread: &ThreadContext) -> Result<bool, ContextError> {
    let newest = |there: Option<StoredEpisode>| match there {
        Some(there) if there.number > number => there,
        _ => StoredEpisode { number, ..episode.clone() },
    };
    let there = thread.update(&slot_key(slot(number)), newest).await?;
    if there.number != number {
        return Ok(false);
    }
    let changed = |state: Option<State>| {
        let mut state = State::or_new(state);
        state.change(number);
        state
    };
    thread.update(STATE, changed).await?;
    Ok(true)
}

/// Reads some slots; an empty one is `None`.
pub(super) async fn read(
    slots: impl IntoIterator<Item = u64>,
    thread: &ThreadContext,
) -> Result<Vec<(u64, Option<StoredEpisode>)>, ContextError> {
    let slots: Vec<u64> = slots.into_iter().collect();
    let reads = slots.into_iter().map(|slot| async move { Ok((slot, thread.get(&slot_key(slot)).await?)) });
    stream::iter(reads).buffered(READ_AHEAD).try_collect().await
}

/// Hands all episodes to `each`, page by page, and lets other tasks run in between.
pub(super) async fn read_all(
    thread: &ThreadContext,
    mut each: impl FnMut(&[StoredEpisode]),
) -> Result<(), ContextError> {
    let mut after = EPISODES.to_owned();
    loop {
        let page = thread.list(Some(&after), PAGE).await?;
        let ours: Vec<_> = page.into_iter().take_while(|(key, _)| key.starts_with(EPISODES)).collect();
        let Some((last, _)) = ours.last() else { return Ok(()) };
        after.clone_from(last);
        let episodes = ours.iter().map(|(key, value)| Ok((key, typed::<StoredEpisode>(key, value)?)));
        let episodes: Vec<_> = episodes.collect::<Result<_, ContextError>>()?;
        // An episode is read by the key of its slot only.
        let placed = episodes.into_iter().filter(|(key, episode)| **key == slot_key(slot(episode.number)));
        each(&placed.map(|(_, episode)| episode).collect::<Vec<_>>());
        yield_once().await;
    }
}

/// The value of a listed key.
fn typed<T: ContextData>(key: &str, value: &ContextValue) -> Result<T, ContextError> {
    value.get().map_err(|source| ContextError::WrongType {
        key: key.into(),
        expected: std::any::type_name::<T>(),
        source: Arc::new(source),
    })
}

/// The slot of a number.
pub(super) fn slot(number: u64) -> u64 {
    number % MOST_EPISODES
}

fn slot_key(slot: u64) -> String {
    format!("{EPISODES}{slot:03}")
}

/// The key of a run's bucket, by the hash FNV-1a, which never changes.
fn bucket_key(run: &RunId) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = run.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("agent/memory/runs/{}", hash % BUCKETS)
}

/// Lets other tasks of this OS thread run.
async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_knows_the_last_changes_only() {
        let mut state = State::or_new(None);
        for number in 0..100 {
            state.change(number);
        }
        assert_eq!(state.changed_since(100), Some(&[][..]));
        assert_eq!(state.changed_since(98), Some(&[98, 99][..]));
        assert_eq!(state.changed_since(36).map(<[u64]>::len), Some(64));
        assert_eq!(state.changed_since(35), None);
        // Another history of the store, as after a backup was restored.
        assert_eq!(state.changed_since(101), None);
    }

    #[test]
    fn a_bucket_forgets_numbers_whose_slots_were_written_twice_since() {
        let mut bucket = Bucket::default();
        bucket.note(&"a".into(), 0, None);
        bucket.note(&"b".into(), 1999, None);
        assert_eq!(bucket.number(&"a".into()), Some(0));
        bucket.note(&"c".into(), 2000, None);
        assert_eq!((bucket.number(&"a".into()), bucket.number(&"b".into())), (None, Some(1999)));
        bucket.note(&"b".into(), 2001, None);
        assert_eq!(bucket.number(&"b".into()), Some(1999));
        bucket.note(&"b".into(), 2001, Some(1999));
        assert_eq!(bucket.number(&"b".into()), Some(2001));
    }
}

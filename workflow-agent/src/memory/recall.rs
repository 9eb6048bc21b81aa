//! The recall of episodes: it keeps the search indexes of some threads in memory and up to date with the store. It does
//! not rank; `index` does.
//!
//! An index is a cache. Each recall reads the memory's state, and then the episodes that changed since. Another process
//! may write the same thread, so only what the store says counts, and texts always come from the store.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use workflow_core::ThreadContext;
use workflow_core::errors::ContextError;

use super::episode::StoredEpisode;
use super::index::{Chosen, Index, Search};
use super::stored::{self, State};
use super::{Question, Recalled};

/// The most indexes in memory, and the most bytes that they take together.
const MOST_INDEXES: usize = 64;
const MOST_BYTES: usize = 64 << 20;

/// The indexes of the threads that recalled last.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// The one that was used last at the end.
    recent: Mutex<Vec<Held>>,
}

#[derive(Debug)]
struct Held {
    id: Arc<str>,
    weight: usize,
    /// Held during reads, so that recalls of one thread do not read the same twice.
    index: Arc<AsyncMutex<Indexed>>,
}

/// An index and the state of the store that it reflects.
#[derive(Debug, Default)]
struct Indexed {
    index: Option<Index>,
    changes: u64,
    /// The changes and the episodes when everything was read, which sets the average length of episodes.
    read_at: u64,
    read_episodes: usize,
}

impl Indexes {
    /// Finds the episodes for a question, best first, then the latest ones, oldest first.
    pub(super) async fn recall(
        &self,
        search: &Search<'_>,
        thread: &ThreadContext,
    ) -> Result<Vec<Recalled>, ContextError> {
        let Some(state) = stored::state(thread).await? else { return Ok(Vec::new()) };
        let held = self.index(&state.id);
        let mut indexed = held.lock().await;
        // Another recall may have seen a newer state while this one waited.
        let is_old = indexed.changes > state.changes;
        let state = if is_old { stored::state(thread).await?.unwrap_or(state) } else { state };
        let index = indexed.refresh(&state, thread).await?;
        let (found, recent) = index.choose(search);
        let weight = index.weight();
        drop(indexed);
        self.note_weight(&state.id, weight);
        let chosen: Vec<Chosen> = found.into_iter().chain(recent).collect();
        texts(&chosen, search, thread).await
    }

    fn index(&self, id: &Arc<str>) -> Arc<AsyncMutex<Indexed>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let place = recent.iter().position(|held| held.id == *id);
        let held = match place {
            Some(place) => recent.remove(place),
            None => Held { id: Arc::clone(id), weight: 0, index: Arc::default() },
        };
        let index = Arc::clone(&held.index);
        recent.push(held);
        if recent.len() > MOST_INDEXES {
            recent.remove(0);
        }
        index
    }

    /// Drops the indexes that were not used for longest, until the others take no more than they may.
    fn note_weight(&self, id: &str, weight: usize) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = recent.iter_mut().find(|held| *held.id == *id) {
            held.weight = weight;
        }
        let mut total: usize = recent.iter().map(|held| held.weight).sum();
        while total > MOST_BYTES && recent.len() > 1 {
            total -= recent.remove(0).weight;
        }
    }
}

impl Indexed {
    /// Reads what changed since the last call, or everything. An error or a drop leaves the former index.
    async fn refresh(&mut self, state: &State, thread: &ThreadContext) -> Result<&Index, ContextError> {
        match state.changed_since(self.changes) {
            Some(changed) if self.index.is_some() && !self.is_outgrown(state) => {
                self.read_changed(changed, state, thread).await?;
            }
            _ => self.read_all(state, thread).await?,
        }
        Ok(self.index.get_or_insert_with(|| Index::fitted_to(&[])))
    }

    /// Whether so much has changed that the average length of episodes is measured again.
    fn is_outgrown(&self, state: &State) -> bool {
        let changed = usize::try_from(state.changes.saturating_sub(self.read_at)).unwrap_or(usize::MAX);
        changed > 32.max(self.read_episodes / 2)
    }

    async fn read_changed(
        &mut self,
        changed: &[u64],
        state: &State,
        thread: &ThreadContext,
    ) -> Result<(), ContextError> {
        let Some(index) = &mut self.index else { return Ok(()) };
        // A number may be logged before its episode is there, and the process may have ended in between.
        let missing = |number: &&u64| index.number_in(stored::slot(**number)) < Some(**number);
        let slots = changed.iter().chain(state.logged.iter().filter(missing));
        let slots: BTreeSet<u64> = slots.map(|number| stored::slot(*number)).collect();
        for (slot, episode) in stored::read(slots, thread).await? {
            match episode {
                Some(episode) => index.put(slot, &episode),
                None => index.remove(slot),
            }
        }
        self.changes = state.changes;
        Ok(())
    }

    async fn read_all(&mut self, state: &State, thread: &ThreadContext) -> Result<(), ContextError> {
        let mut index = None;
        let add = |page: &[StoredEpisode]| {
            let index = index.get_or_insert_with(|| Index::fitted_to(page));
            for episode in page {
                index.put(stored::slot(episode.number), episode);
            }
        };
        stored::read_all(thread, add).await?;
        let index = index.unwrap_or_else(|| Index::fitted_to(&[]));
        let read_episodes = index.len();
        *self = Self { index: Some(index), changes: state.changes, read_at: state.changes, read_episodes };
        Ok(())
    }
}

/// Reads the chosen episodes. One that was replaced by a newer one since it was chosen is left out.
async fn texts(
    chosen: &[Chosen],
    search: &Search<'_>,
    thread: &ThreadContext,
) -> Result<Vec<Recalled>, ContextError> {
    let read = stored::read(chosen.iter().map(|chosen| chosen.slot), thread).await?;
    let mut episodes: HashMap<u64, StoredEpisode> =
        read.into_iter().filter_map(|(slot, episode)| Some((slot, episode?))).collect();
    let episode =
        |chosen: &Chosen| episodes.remove(&chosen.slot).filter(|there| there.number == chosen.number);
    let unknown = |episode: &StoredEpisode| !search.known_runs.contains(&episode.run);
    Ok(chosen.iter().filter_map(episode).filter(unknown).map(StoredEpisode::into_recalled).collect())
}

/// The part of a question that is searched for.
pub(super) fn searched(question: &Question) -> std::borrow::Cow<'_, str> {
    crate::tool::cut(&question.text, super::episode::EPISODE)
}

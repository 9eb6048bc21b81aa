//! The built-in memory: options, and the order of its steps. Storage, search and entities are in files of their own.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use workflow_core::ThreadContext;
use workflow_core::errors::ContextError;

use super::embed::{Embedder, Vector, vector_of};
use super::episode::StoredEpisode;
use super::index::Search;
use super::recall::{Indexes, searched};
use super::{EntityStore, Episode, Memory, Question, Recalled, stored};

/// The latest episodes that are recalled, and the most that this can be set to.
const RECENT: usize = 20;
const MOST_RECENT: usize = 100;

/// The other episodes that are recalled, and the most that this can be set to.
const FOUND: usize = 5;
const MOST_FOUND: usize = 50;

/// Keeps the exchanges of a thread in its context, and finds them again by their words.
///
/// It recalls, in this order: up to 5 episodes that fit the question, best first; the latest 20, oldest first; and the
/// entities that the question names, with their relations ([`EntityStore`]). Runs that the question knows are left out,
/// and the next ones take their places.
///
/// Episodes are ranked by BM25: words that are rare in the thread count most, and forms of an English word count as
/// one. With an [`embedder`](Self::embedder), vectors give a second ranking, and both are fused by reciprocal rank.
///
/// A thread keeps 1,000 episodes of at most 8 KiB, and the oldest is replaced. All writers of a thread may work at the
/// same time, in any process. [`remember`](Memory::remember) takes at most six calls of the store, for any number of
/// episodes. [`recall`](Memory::recall) reads its results, and the episodes that changed since this memory's last recall
/// of the thread; the first one, and one after many changes, reads all. Search indexes of at most 64 threads stay in
/// memory, in about 64 MiB.
///
/// ```
/// use std::time::SystemTime;
/// use workflow_agent::memory::{Episode, EpisodicMemory, Memory, Question};
/// use workflow_core::ThreadContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
/// let (memory, thread) = (EpisodicMemory::new(), ThreadContext::in_memory());
/// let episode = Episode {
///     run: "s-1/1".into(),
///     at: SystemTime::now(),
///     question: "When does the plumber come?".into(),
///     answer: "On Tuesday at nine.".into(),
/// };
/// memory.remember(&episode, &thread).await?;
///
/// let recalled = memory.recall(&Question::new("Move the plumber to Friday"), &thread).await?;
/// assert_eq!(recalled[0].text, "User: When does the plumber come?\nAgent: On Tuesday at nine.");
/// # Ok(())
/// # }
/// ```
pub struct EpisodicMemory {
    embedder: Option<Arc<dyn Embedder>>,
    recent: usize,
    found: usize,
    indexes: Indexes,
}

impl EpisodicMemory {
    /// A memory that finds episodes by their words.
    pub fn new() -> Self {
        Self { embedder: None, recent: RECENT, found: FOUND, indexes: Indexes::default() }
    }

    /// Finds episodes by vectors too. Episodes that were stored without this have none, and are found by words.
    ///
    /// Each [`recall`](Memory::recall) and each [`remember`](Memory::remember) then embeds one text. If that fails, a
    /// warning is logged, and words alone count.
    pub fn embedder(self, embedder: impl Embedder) -> Self {
        Self { embedder: Some(Arc::new(embedder)), ..self }
    }

    /// Sets how many of the latest episodes are recalled: 20 by default, at most 100.
    pub fn recent(self, episodes: usize) -> Self {
        Self { recent: episodes.min(MOST_RECENT), ..self }
    }

    /// Sets how many other episodes are recalled at most: 5 by default, at most 50.
    pub fn found(self, episodes: usize) -> Self {
        Self { found: episodes.min(MOST_FOUND), ..self }
    }

    async fn episodes(
        &self,
        question: &Question,
        thread: &ThreadContext,
    ) -> Result<Vec<Recalled>, ContextError> {
        let text = searched(question);
        let vector = self.vector(&text).await;
        let known_runs = &question.known_runs;
        let search = Search { text: &text, vector, known_runs, recent: self.recent, found: self.found };
        self.indexes.recall(&search, thread).await
    }

    async fn store(&self, episode: &Episode, thread: &ThreadContext) -> Result<(), ContextError> {
        let mut episode = StoredEpisode::new(episode);
        episode.vector = self.vector(&episode.searched()).await.map(|vector| vector.to_text());
        stored::store(episode, thread).await
    }

    /// The vector of a text; `None` without an embedder, or if that fails.
    async fn vector(&self, text: &str) -> Option<Vector> {
        let embedded = vector_of(self.embedder.as_deref()?, text).await;
        embedded
            .inspect_err(|error| tracing::warn!(error = error as &dyn std::error::Error, "no vector"))
            .ok()
    }
}

impl Default for EpisodicMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EpisodicMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { embedder, recent, found, indexes: _ } = self;
        let mut memory = f.debug_struct("EpisodicMemory");
        memory.field("embedder", &embedder.is_some()).field("recent", recent).field("found", found);
        memory.finish_non_exhaustive()
    }
}

impl Memory for EpisodicMemory {
    fn recall<'a>(
        &'a self,
        question: &'a Question,
        thread: &'a ThreadContext,
    ) -> BoxFuture<'a, Result<Vec<Recalled>, ContextError>> {
        async move {
            let mut recalled = self.episodes(question, thread).await?;
            recalled.extend(EntityStore::new(thread).named_in(&question.text).await?);
            Ok(recalled)
        }
        .boxed()
    }

    fn remember<'a>(
        &'a self,
        episode: &'a Episode,
        thread: &'a ThreadContext,
    ) -> BoxFuture<'a, Result<(), ContextError>> {
        self.store(episode, thread).boxed()
    }
}

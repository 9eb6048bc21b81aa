//! Whose runs are whose: which of a store's open runs another engine drives, and claiming those that nobody drives any
//! more (S40).
//!
//! Runs are listed before the store is asked who holds a lease, and a run goes on only if its journal still ends where it
//! did when it was listed. So whoever takes a lost lease again, and then writes to its run before it begins anything, has
//! either been seen by the one who claims, or makes the claim fail, or is refused itself.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use super::Engine;
use super::lease::Leased;
use super::resume::Loaded;
use crate::error::ResumeError;
use crate::id::{EngineId, RunId};
use crate::store::{Position, Record, RunQuery, StoreError, StoredRun};

/// How often a run is looked at again that somebody wrote to meanwhile.
pub(super) const LOOKS: usize = 3;

/// Whose a run is.
pub(super) enum Whose {
    /// This engine's, or nobody's that could be known.
    Own,
    /// An engine's that holds no lease any more.
    Orphan,
    /// Another engine's.
    Elsewhere(EngineId),
}

/// Whether a run that does not go on here may, as one look at the store tells.
pub(super) enum Look {
    /// The store does not have it.
    Unknown,
    /// It may, as long as its journal ends there, and it can be looked back at if it has ended.
    Free(Position),
    /// It goes on in another engine.
    Elsewhere(EngineId),
}

/// Where a run's journal ended whenever it was looked at, as it was listed and as it was read.
#[derive(Default)]
pub(super) struct Ends {
    first: Option<(Position, Position)>,
    /// Whether it was not the same every time: somebody writes to it.
    differ: bool,
}

impl Ends {
    pub(super) fn note(&mut self, listed: Position, read: Position) {
        self.differ |= *self.first.get_or_insert((listed, read)) != (listed, read);
    }

    /// That the store lists another end than the journal has, if it did so every time and nobody wrote to it.
    fn mislisted(&self, run: &RunId) -> Option<StoreError> {
        let (listed, read) = self.first.filter(|(listed, read)| !self.differ && listed != read)?;
        Some(StoreError::corrupt(run, read, Mislisted { listed, read }))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the list of runs says that the journal ends at {}, and it ends at {}", listed.0, read.0)]
struct Mislisted {
    listed: Position,
    read: Position,
}

/// The orphans that do not fit their workflows, by where their journals end: they are not read again and again.
#[derive(Default)]
pub(super) struct Unfit(Mutex<HashMap<RunId, Position>>);

/// One look at all open runs.
#[derive(Default)]
struct Search {
    /// Open runs that do not go on here: where they do, their children do.
    not_here: HashSet<RunId>,
    /// Orphans that their parents' executions wait for.
    awaited: Vec<RunId>,
    unfit: HashMap<RunId, Position>,
}

impl Engine {
    /// Whose runs these are, which were listed before; `None` of engines that take no leases.
    pub(super) async fn whose(&self, runs: &[StoredRun]) -> Result<Option<Vec<Whose>>, StoreError> {
        let Some(Leased(lease)) = &self.inner.lease else { return Ok(None) };
        let others = runs.iter().any(|run| self.other_owner(run).is_some());
        // Only a look, if nobody else is concerned.
        let holders = if others { lease.renew().await? } else { Some(Vec::new()) };
        let whose = |run| match (self.other_owner(run), &holders) {
            (None, _) => Whose::Own,
            (Some(owner), Some(holders)) if !holders.contains(owner) => Whose::Orphan,
            (Some(owner), _) => Whose::Elsewhere(owner.clone()),
        };
        Ok(Some(runs.iter().map(whose).collect()))
    }

    fn other_owner<'a>(&self, run: &'a StoredRun) -> Option<&'a EngineId> {
        run.run.owner.as_ref().filter(|owner| **owner != self.inner.id)
    }

    /// Finds a run for a handle: here, or in the store unless another engine that holds a lease drives it.
    pub(super) async fn find(&self, id: &RunId, asked: &'static str) -> Result<Loaded, ResumeError> {
        if self.inner.lease.is_none() || self.here(id).is_some() {
            return self.load(id, Some(asked), None).await;
        }
        self.take_lease().await.map_err(ResumeError::Store)?;
        let mut ends = Ends::default();
        for _ in 0..LOOKS {
            let end = match self.look(id).await.map_err(ResumeError::Store)? {
                Look::Unknown => return Err(ResumeError::UnknownRun { run: id.clone() }),
                Look::Elsewhere(engine) => return Err(ResumeError::Elsewhere { run: id.clone(), engine }),
                Look::Free(end) => end,
            };
            match self.load(id, Some(asked), Some(end)).await? {
                Loaded::Moved(read) => ends.note(end, read),
                loaded => return Ok(loaded),
            }
        }
        Err(self.moves(id, &ends).await.unwrap_or_else(ResumeError::Store))
    }

    /// Whether the run may go on here.
    pub(super) async fn look(&self, id: &RunId) -> Result<Look, StoreError> {
        let Some(stored) = self.stored_run(id).await? else { return Ok(Look::Unknown) };
        if stored.run.status.is_ended() {
            return Ok(Look::Free(stored.end));
        }
        let whose = self.whose(std::slice::from_ref(&stored)).await?;
        Ok(match whose.and_then(|mut whose| whose.pop()) {
            Some(Whose::Elsewhere(engine)) => Look::Elsewhere(engine),
            _ => Look::Free(stored.end),
        })
    }

    /// Why a run is not gone on with that somebody wrote to whenever it was looked at.
    pub(super) async fn moves(&self, id: &RunId, ends: &Ends) -> Result<ResumeError, StoreError> {
        let run = id.clone();
        Ok(match self.look(id).await? {
            Look::Elsewhere(engine) => ResumeError::Elsewhere { run, engine },
            Look::Unknown | Look::Free(_) => match ends.mislisted(id) {
                Some(error) => ResumeError::Store(error),
                None => ResumeError::Contended { run },
            },
        })
    }

    /// The run as the store lists it.
    pub(super) async fn stored_run(&self, id: &RunId) -> Result<Option<StoredRun>, StoreError> {
        let store = self.inner.store()?;
        let mut query = RunQuery::new().at_most(1);
        query = match just_before(id) {
            Some(before) => query.after(before),
            None => query,
        };
        loop {
            match store.runs(&query).await?.pop() {
                Some(run) if run.id < *id => query = query.after(run.id),
                found => return Ok(found.filter(|run| run.id == *id)),
            }
        }
    }

    /// Goes on with the orphans of the engine's store, one after the other. What the store does not tell is left to the
    /// next time.
    pub(super) async fn claim_orphans(&self) {
        let mut search = Search::default();
        // What was found until then counts.
        let _ = self.search(&mut search).await;
        if self.inner.ending.has_begun() {
            return;
        }
        self.end_forsaken_among(search.awaited).await;
        *self.inner.unfit.lock() = search.unfit;
    }

    async fn search(&self, search: &mut Search) -> Result<(), StoreError> {
        let store = self.inner.store()?;
        let mut query = RunQuery::new().open();
        loop {
            let page = store.runs(&query).await?;
            let Some(whose) = self.whose(&page).await? else { return Ok(()) };
            for (run, whose) in page.iter().zip(whose) {
                if self.inner.ending.has_begun() {
                    return Ok(());
                }
                if matches!(whose, Whose::Orphan) && self.may_claim(run, search).await {
                    self.claim(run, search).await;
                }
                if !self.inner.known.has(&run.id) {
                    search.not_here.insert(run.id.clone());
                }
            }
            match page.last() {
                Some(last) if page.len() == query.page() => query = query.after(last.id.clone()),
                _ => return Ok(()),
            }
        }
    }

    /// Whether the orphan can go on here, and belongs here: a child goes on where its parent does.
    async fn may_claim(&self, run: &StoredRun, search: &mut Search) -> bool {
        if self.host_named(&run.id, &run.run.workflow).is_err() {
            return false;
        }
        if self.inner.unfit.lock().get(&run.id) == Some(&run.end) {
            search.unfit.insert(run.id.clone(), run.end);
            return false;
        }
        // A run comes before its children: their ids begin with its own.
        let mut above = run.id.as_str().match_indices('/').map(|(at, _)| RunId::new(&run.id.as_str()[..at]));
        if !above.any(|above| search.not_here.contains(&above)) {
            return true;
        }
        let Ok(store) = self.inner.store() else { return false };
        let Ok(first) = store.read(&run.id, Position(0), 1).await else { return false };
        let Some(Record::RunStarted { parent, .. }) = first.first() else { return false };
        parent.as_ref().is_none_or(|parent| !search.not_here.contains(&parent.run))
    }

    async fn claim(&self, run: &StoredRun, search: &mut Search) {
        match self.load(&run.id, None, Some(run.end)).await {
            Ok(Loaded::Resumed(shared)) => {
                // Whether its children go on here too depends on it.
                shared.went_on().await;
            }
            Ok(Loaded::Awaited) => search.awaited.push(run.id.clone()),
            Err(ResumeError::Incompatible { .. } | ResumeError::Config(_)) => {
                search.unfit.insert(run.id.clone(), run.end);
            }
            Ok(Loaded::Here(_) | Loaded::Ended(_) | Loaded::Moved(_)) | Err(_) => {}
        }
    }
}

impl Unfit {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Position>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text that comes before the id, with hardly any other id in between; none of the empty one, which is the first.
fn just_before(id: &RunId) -> Option<RunId> {
    let mut before = id.as_str().to_owned();
    let last = before.pop()?;
    // Of what has no predecessor, the text without it is the predecessor.
    if let Some(previous) = (char::MIN..last).next_back() {
        before.extend([previous, char::MAX]);
    }
    Some(before.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_just_before_an_id_comes_after_all_that_sort_well_before_it() {
        for (id, earlier) in
            [("order-17", "order-169"), ("b", "a~"), ("a\u{e000}", "a\u{d7ff}z"), ("a\0", "a")]
        {
            let before = just_before(&id.into()).unwrap();
            assert!(before < id.into() && RunId::from(earlier) <= before, "{before:?} of {id:?}");
        }
        assert_eq!(just_before(&"".into()), None);
    }
}

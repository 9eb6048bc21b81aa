//! Children that an earlier process has begun, and that an execution asks for again which runs again: what their journals
//! say of them counts, not what they are asked for with (S39).

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::runtime::Handle;

use super::children::Born;
use super::claim::{Ends, LOOKS, Look};
use super::resume::Beginning;
use super::stored::read_all;
use super::{Engine, Start};
use crate::children::{Birth, Reunion, Spawned};
use crate::error::{ResumeError, StartError};
use crate::id::RunId;
use crate::panics::Driven;
use crate::run::{RunOptions, RunShared};
use crate::store::{EventStore, Position, Record, StoreError};

impl Engine {
    /// Goes on with the child that an earlier process has begun for the same, or begins it. In a task of its own: whoever
    /// asks may do other things before they poll this again, and others wait for what it holds.
    pub(super) fn find_child(
        self,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> BoxFuture<'static, Result<Spawned, StartError>> {
        Box::pin(async move {
            let (Some(id), Some(store)) = (options.id.clone(), self.inner.store.clone()) else {
                return self.spawn_child(start, options, birth);
            };
            let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
            let inner = Arc::clone(&self.inner);
            let found = async move { self.found(&*store, &id, start, options, birth).await };
            let found = runtime.spawn(inner.ending.track(found));
            drop(inner);
            // What is not told any more is gone with its runtime.
            found.await.unwrap_or_else(|error| Err(StartError::Store(StoreError::unavailable(error))))
        })
    }

    /// Whoever else loads the child, or looks for it, does so before this or after it.
    async fn found(
        &self,
        store: &dyn EventStore,
        id: &RunId,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        let _held = self.hold(id).await.map_err(StartError::Store)?;
        let (records, here) = self.begun_before(store, id).await?;
        if records.is_empty() {
            return self.spawn_child(start, options, birth);
        }
        let beginning = Beginning::of(id, &records).map_err(|error| match error {
            ResumeError::Store(error) => StartError::Store(error),
            other => StartError::Store(StoreError::unavailable(other)),
        })?;
        is_the_same(id, &beginning, &start, &birth)?;
        match here {
            Some(shared) => self.reunited(shared, birth),
            None => self.go_on_with(id, &start, &beginning, records, birth),
        }
    }

    /// The journal of a run that goes on here or may, nothing of one that was not begun; and the run, if it goes on here. If
    /// not, its journal is whole: it had not ended here while that was read.
    async fn begun_before(
        &self,
        store: &dyn EventStore,
        id: &RunId,
    ) -> Result<(Vec<Record>, Option<Arc<RunShared>>), StartError> {
        if self.inner.lease.is_none() || self.here(id).is_some() {
            let was_here = self.here(id).is_some();
            let records = read_all(store, id).await.map_err(StartError::Store)?;
            let here = self.here(id);
            if !was_here || here.is_some() {
                return Ok((records, here));
            }
            // It has ended meanwhile: now its journal is whole.
            if self.inner.lease.is_none() {
                return Ok((read_all(store, id).await.map_err(StartError::Store)?, None));
            }
        }
        let mut ends = Ends::default();
        for _ in 0..LOOKS {
            let end = match self.look(id).await.map_err(StartError::Store)? {
                Look::Unknown => return Ok((Vec::new(), None)),
                Look::Elsewhere(engine) => return Err(StartError::Elsewhere { run: id.clone(), engine }),
                Look::Free(end) => end,
            };
            let records = read_all(store, id).await.map_err(StartError::Store)?;
            let has_ended = matches!(records.last(), Some(Record::RunEnded { .. }));
            let read = Position::default().after(records.len());
            if has_ended || end == read {
                return Ok((records, None));
            }
            ends.note(end, read);
        }
        Err(match self.moves(id, &ends).await.map_err(StartError::Store)? {
            ResumeError::Elsewhere { run, engine } => StartError::Elsewhere { run, engine },
            ResumeError::Store(error) => StartError::Store(error),
            other => StartError::Store(StoreError::unavailable(other)),
        })
    }

    /// The child goes on here without having been asked for, or was asked for by its parent before that stopped and was
    /// left.
    fn reunited(&self, shared: Arc<RunShared>, birth: Birth) -> Result<Spawned, StartError> {
        let Birth { parent: names, awaited, unwanted, display, .. } = birth;
        let ended = || StartError::ParentEnded { run: names.run.clone() };
        let parent = self.here(&names.run).ok_or_else(ended)?;
        if shared.birth().is_some_and(|birth| birth.is_of(&parent)) {
            return Err(StartError::DuplicateRun { run: shared.id.clone() });
        }
        Reunion { names: &names, awaited, unwanted, display }.reunite(&parent, &shared);
        Ok(Spawned { shared, written: None })
    }

    /// The child goes on as its journal says that it began, or is looked back at if it has ended.
    fn go_on_with(
        &self,
        id: &RunId,
        start: &Start,
        beginning: &Beginning,
        records: Vec<Record>,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        // However deep it is: what has begun goes on under any limit.
        let hosted = self.child_host(start);
        // It was when the child was begun, and is again with the program that goes on with it.
        if let Err(error @ StartError::UnknownWorkflow { .. }) = &hosted {
            birth.let_parent_down(error.clone());
        }
        let (runtime, host, _) = hosted?;
        let shared = self.shared(&host, beginning.options(id, &host), Some(birth))?;
        let shared: RunShared = beginning.restores(shared);
        let Born { run, shared, registered, _task } = self.bear(host, shared, |_| None)?;
        let store = self.inner.store.clone();
        let driven = Driven::new(async move { run.drive_from(store, &records, registered).await });
        runtime.spawn(self.inner.ending.track(driven));
        Ok(Spawned { shared, written: None })
    }
}

/// Whether the run was begun as the child that is asked for. With which event it was opened does not matter: what a step
/// makes of the time or of chance is another each time that it runs.
fn is_the_same(id: &RunId, beginning: &Beginning, start: &Start, birth: &Birth) -> Result<(), StartError> {
    if beginning.parent.as_ref() != Some(&birth.parent) || beginning.awaited != birth.awaited {
        return Err(StartError::DuplicateRun { run: id.clone() });
    }
    if *beginning.workflow != *start.workflow {
        let workflow = Arc::clone(&beginning.workflow);
        return Err(StartError::WrongWorkflow { run: id.clone(), workflow, asked: start.workflow });
    }
    Ok(())
}

//! Going on with runs that a store has: all open ones after a restart, or one that a handle is wanted on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use super::Engine;
use super::claim::Whose;
use super::known::{Absent, Found, Registered};
use crate::children::{ParentRun, Reunion};
use crate::error::{ResumeError, RunError, StartError};
use crate::id::{RunId, ThreadId};
use crate::panics::Driven;
use crate::run::{Host, Journal, Run, RunHandle, RunOptions, RunShared};
use crate::store::{EventStore, Position, Record, RunQuery, StoreError, StoredRun};
use crate::workflow::Workflow;

/// What became of the open runs of a store.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Resumed {
    /// Those that go on here.
    pub runs: Vec<RunId>,
    /// Those that are left to other engines, which hold their leases: with [leases](crate::EngineBuilder::lease) alone.
    pub elsewhere: Vec<RunId>,
    /// Those that do not, and why. They are left as they are.
    pub refused: Vec<(RunId, ResumeError)>,
    /// Why the store's list of runs breaks off, if it does: what comes behind was not looked at, and the lists above say
    /// what became of the runs before.
    pub error: Option<StoreError>,
}

/// Some of a store's open runs.
struct Page {
    runs: Vec<StoredRun>,
    /// Whose each is; none without leases.
    whose: Option<Vec<Whose>>,
}

/// How a run began, as its journal tells of it.
pub(super) struct Beginning {
    pub(super) workflow: Arc<str>,
    thread: ThreadId,
    metadata: BTreeMap<String, String>,
    pub(super) parent: Option<ParentRun>,
    pub(super) awaited: bool,
    private_thread: bool,
    timeout: Option<Duration>,
    configs: BTreeMap<String, Value>,
}

impl Beginning {
    pub(super) fn of(run: &RunId, records: &[Record]) -> Result<Self, ResumeError> {
        let opens = |record: &Record| matches!(record, Record::EventLogged { .. } | Record::RunEnded { .. });
        match records.first() {
            None => Err(ResumeError::UnknownRun { run: run.clone() }),
            Some(Record::RunStarted {
                workflow,
                thread,
                metadata,
                parent,
                awaited,
                private_thread,
                timeout,
                configs,
                ..
            }) if records.iter().any(opens) => Ok(Self {
                workflow: Arc::clone(workflow),
                thread: thread.clone(),
                metadata: metadata.clone(),
                parent: parent.clone(),
                awaited: *awaited,
                private_thread: *private_thread,
                timeout: *timeout,
                configs: configs.clone(),
            }),
            Some(_) => Err(ResumeError::Store(StoreError::corrupt(run, Position(0), NoBeginning))),
        }
    }

    /// What the run was started with.
    pub(super) fn options(&self, run: &RunId, host: &Host) -> RunOptions {
        let mut options = RunOptions::new().id(run.clone()).thread(self.thread.clone());
        options.metadata.clone_from(&self.metadata);
        options.timeout = self.timeout;
        for config in host.table.configs() {
            if let Some(layer) = self.configs.get(config.type_name()) {
                options.configs.insert(config.type_id(), Ok(layer.clone()));
            }
        }
        options
    }

    /// What is not among the options: the run as it was, and as one of an earlier process.
    pub(super) fn restores(&self, shared: RunShared) -> RunShared {
        shared.restored(self.private_thread, self.timeout)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a journal begins with how its run began, and the event that opened it")]
struct NoBeginning;

impl Engine {
    /// Goes on with every run of the engine's store that has not ended and does not go on here: after a restart. Each
    /// comes to stand where its journal ends (S39): what it has is not repeated, executions that it has no end of run
    /// again, waits go on until the times that they were set for, requests stay open. Child runs that an execution
    /// waits for go on when it asks for them again, and end when their parent has ended or does.
    ///
    /// Without [leases](crate::EngineBuilder::lease) the store must not be in use by another engine that drives its runs;
    /// with them, runs whose engines hold theirs are left alone. Of two that go on with one run, the second to write
    /// stops with [`RunError::Conflict`](crate::RunError::Conflict) (S40).
    ///
    /// Contexts that an earlier process left of runs that have ended, because it was killed before it cleared them, are
    /// cleared as well, if the store of contexts [lists its scopes](crate::ContextStore::scopes). Those of threads that
    /// outlive their runs stay.
    ///
    /// O(records of open runs) time, and O(runs with contexts) calls of the stores.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and what the store reports of the list of its runs, or of leases, if no run goes on yet; later
    /// than that it is in [`Resumed::error`]. Why single runs do not go on is in [`Resumed::refused`].
    pub async fn resume_open_runs(&self) -> Result<Resumed, StoreError> {
        let store = self.inner.store()?;
        self.take_lease().await?;
        let mut resumed = Resumed::default();
        let mut awaited = Vec::new();
        let mut query = RunQuery::new().open();
        let mut page = self.page(store, &query).await?;
        loop {
            self.resume_page(&page, &mut resumed, &mut awaited).await;
            match page.runs.last() {
                Some(last) if page.runs.len() == query.page() => query = query.after(last.id.clone()),
                _ => break,
            }
            page = match self.page(store, &query).await {
                Ok(page) => page,
                Err(error) => {
                    resumed.error = Some(error);
                    break;
                }
            };
        }
        self.end_forsaken_among(awaited).await;
        if resumed.error.is_none()
            && let Err(error) = self.clear_left_contexts().await
        {
            // They are in nobody's way until the next time.
            tracing::warn!(%error, "contexts of runs that have ended could not be looked for");
        }
        Ok(resumed)
    }

    async fn page(&self, store: &Arc<dyn EventStore>, query: &RunQuery) -> Result<Page, StoreError> {
        let runs = store.runs(query).await?;
        let whose = self.whose(&runs).await?;
        Ok(Page { runs, whose })
    }

    /// Goes on with the runs of a page; notes those that wait to be asked for.
    async fn resume_page(&self, page: &Page, resumed: &mut Resumed, awaited: &mut Vec<RunId>) {
        let Page { runs, whose } = page;
        for (place, run) in runs.iter().enumerate() {
            // What was let go of here waits.
            if self.inner.known.has(&run.id) {
                continue;
            }
            if matches!(whose.as_ref().map(|whose| &whose[place]), Some(Whose::Elsewhere(_))) {
                resumed.elsewhere.push(run.id.clone());
                continue;
            }
            match self.load(&run.id, None, whose.is_some().then_some(run.end)).await {
                Ok(Loaded::Resumed(_)) => resumed.runs.push(run.id.clone()),
                Ok(Loaded::Awaited) => awaited.push(run.id.clone()),
                Ok(Loaded::Here(_) | Loaded::Ended(_)) => {}
                Ok(Loaded::Moved(_)) => resumed.elsewhere.push(run.id.clone()),
                Err(error) => resumed.refused.push((run.id.clone(), error)),
            }
        }
    }

    /// A handle on a run: on one that goes on here, or else on one that the engine's store has. One that has not ended
    /// goes on here from then on, as by [`resume_open_runs`](Self::resume_open_runs); of one that has ended, outcome,
    /// report and explanation are made of its journal. What it showed is in no journal. With
    /// [leases](crate::EngineBuilder::lease), one that goes on in another engine that holds its own is refused.
    ///
    /// # Errors
    /// [`ResumeError`].
    pub fn attach<W: Workflow>(
        &self,
        run: impl Into<RunId>,
    ) -> BoxFuture<'_, Result<RunHandle<W>, ResumeError>> {
        let run = run.into();
        Box::pin(async move {
            match self.find(&run, W::TABLE.name()).await? {
                Loaded::Resumed(shared) | Loaded::Here(shared) | Loaded::Ended(shared) => {
                    Ok(RunHandle::new(shared))
                }
                Loaded::Awaited | Loaded::Moved(_) => Err(ResumeError::UnknownRun { run }),
            }
        })
    }

    /// Finds a run, here or in the store; if a workflow is asked for, it has to be the run's, and if a position is given,
    /// the journal of one that has not ended has to end there.
    pub(super) async fn load(
        &self,
        id: &RunId,
        asked: Option<&'static str>,
        end: Option<Position>,
    ) -> Result<Loaded, ResumeError> {
        let wrong = |workflow: &Arc<str>| match asked {
            Some(asked) if *asked != **workflow => {
                Some(ResumeError::WrongWorkflow { run: id.clone(), workflow: Arc::clone(workflow), asked })
            }
            _ => None,
        };
        let _held = self.hold(id).await.map_err(ResumeError::Store)?;
        if let Some(run) = self.here(id) {
            return wrong(&run.table.name).map_or(Ok(Loaded::Here(run)), Err);
        }
        let records = match self.history(id).await {
            Err(StoreError::NoStore) => Vec::new(),
            records => records.map_err(ResumeError::Store)?,
        };
        let beginning = Beginning::of(id, &records)?;
        if let Some(error) = wrong(&beginning.workflow) {
            return Err(error);
        }
        if asked.is_none() && beginning.awaited {
            return Ok(Loaded::Awaited);
        }
        let has_ended = matches!(records.last(), Some(Record::RunEnded { .. }));
        let read = Position::default().after(records.len());
        if end.is_some_and(|end| !has_ended && end != read) {
            return Ok(Loaded::Moved(read));
        }
        let host = self.host_named(id, &beginning.workflow)?;
        let absent = self.absent(id);
        let is_lost = absent.as_ref().is_some_and(|absent| absent.end != read);
        if is_lost {
            self.lose(id, RunError::Conflict { run: id.clone() });
            // Whose it is now is to be asked first.
            if self.inner.lease.is_some() {
                return Ok(Loaded::Moved(read));
            }
        }
        let absent = absent.filter(|_| !is_lost);
        self.stored(id, &host, beginning, &records, Returns { unwanted: None, absent: absent.as_ref() })
    }

    /// A run that goes on here.
    pub(super) fn here(&self, id: &RunId) -> Option<Arc<RunShared>> {
        if let Found::Driven(run) = self.inner.known.find(id)? { run.upgrade() } else { None }
    }

    /// A run that was let go of here.
    fn absent(&self, id: &RunId) -> Option<Absent> {
        if let Found::Released(absent) = self.inner.known.find(id)? { Some(absent) } else { None }
    }

    pub(super) fn host_named(&self, run: &RunId, workflow: &Arc<str>) -> Result<Arc<Host>, ResumeError> {
        let host = self.inner.hosts.values().find(|host| host.table.name == *workflow);
        let unknown = || ResumeError::UnknownWorkflow { run: run.clone(), workflow: Arc::clone(workflow) };
        host.cloned().ok_or_else(unknown)
    }

    /// Goes on with a run, or looks back at it.
    pub(super) fn stored(
        &self,
        id: &RunId,
        host: &Arc<Host>,
        beginning: Beginning,
        records: &[Record],
        returns: Returns<'_>,
    ) -> Result<Loaded, ResumeError> {
        let inner = &self.inner;
        let Returns { unwanted, absent } = returns;
        let runtime = inner.idle.runtime().ok_or(ResumeError::NoRuntime)?;
        let incompatible = |difference| ResumeError::Incompatible { run: id.clone(), difference };
        let awaited = beginning.awaited;
        let shared = match absent.and_then(|absent| absent.run.upgrade()) {
            Some(shared) => {
                shared.mailbox.reopen();
                shared
            }
            None => self.restored(id, host, beginning)?,
        };
        let ended = matches!(records.last(), Some(Record::RunEnded { .. }));
        let store = self.inner.store.clone().filter(|_| !ended);
        let journal = store.and_then(|store| Journal::resume(store, records, &host.table));
        let places = self.places(host, id).filter(|_| !ended).map(|places| (places, None));
        let mut run = Run::new(Arc::clone(&shared), Arc::clone(host), inner.limits, places, journal);
        if ended {
            run.look_back(records).map_err(incompatible)?;
            return Ok(Loaded::Ended(shared));
        }
        let derived = match run.resume(records) {
            Ok(derived) => derived,
            Err(difference) => {
                if absent.is_some() {
                    run.stays_released();
                }
                return Err(incompatible(difference));
            }
        };
        if let Some(reason) = unwanted {
            shared.note_cancel(reason);
        }
        if let Some(absent) = absent {
            let _task = inner.ending.enter_late();
            let Some(registered) = Registered::again(inner, id, Arc::downgrade(&shared)) else {
                run.stays_released();
                return Err(ResumeError::ShutDown);
            };
            let driven = Driven::new(run.drive_loaded(derived, absent.term, registered));
            runtime.spawn(inner.ending.track(driven));
            return Ok(Loaded::Here(shared));
        }
        let registered = self.register(id, Arc::downgrade(&shared));
        let registered = registered.map_err(|_| ResumeError::UnknownRun { run: id.clone() })?;
        // Asked once the run is registered: either it is refused here, or shutting down finds it there.
        let _task = inner.ending.enter().ok_or(ResumeError::ShutDown)?;
        if unwanted.is_none()
            && let Some(names) = shared.parent()
            && let Some(parent) = self.here(&names.run)
        {
            Reunion::unasked(&parent, names, awaited).reunite(&parent, &shared);
        }
        runtime.spawn(inner.ending.track(Driven::new(run.drive_resumed(derived, registered))));
        Ok(Loaded::Resumed(shared))
    }

    /// What a run shares that comes out of the store.
    fn restored(
        &self,
        id: &RunId,
        host: &Arc<Host>,
        beginning: Beginning,
    ) -> Result<Arc<RunShared>, ResumeError> {
        let made = self.shared(host, beginning.options(id, host), None);
        let shared = made.map_err(|error| match error {
            StartError::Config(error) => ResumeError::Config(error),
            // Nothing else can be wrong with what a run is made of.
            other => ResumeError::Store(StoreError::unavailable(other)),
        })?;
        Ok(Arc::new(beginning.restores(shared).resumed(beginning.parent)))
    }
}

/// How a run comes back out of the store.
#[derive(Clone, Copy, Default)]
pub(super) struct Returns<'a> {
    /// Why it is to be cancelled before it does anything, if nobody wants it any more.
    pub(super) unwanted: Option<&'a Arc<str>>,
    /// As what it was let go of here, if it was.
    pub(super) absent: Option<&'a Absent>,
}

/// Where a run was found.
pub(super) enum Loaded {
    /// It goes on here already.
    Here(Arc<RunShared>),
    /// It goes on here from now on.
    Resumed(Arc<RunShared>),
    /// It has ended.
    Ended(Arc<RunShared>),
    /// It goes on when its parent asks for it.
    Awaited,
    /// Somebody has written to it since it was listed: its journal ends there.
    Moved(Position),
}

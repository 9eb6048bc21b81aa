//! Loading runs of the store into this engine: an open run is resumed where its journal ends, and an ended one is read
//! for its outcome and reports.
//!
//! ```text
//! lock(run) ─▶ read journal ─▶ fits? ─▶ ended? ── look back ──▶ Ended
//!                                         │ no
//!                                         └── resume ─▶ register ─▶ task ──▶ Resumed | Here
//! ```
//!
//! This file does not decide who owns a run: `owner` does, and the caller passes the end that it saw. A journal with
//! another end is not resumed.

use std::collections::HashMap;
use std::sync::Arc;

use super::Inner;
use super::claim::stays_refused;
use super::config_sources::FromSources;
use super::first_record::Beginning;
use super::hosts::AskedType;
use super::owner::{Availability, LOOKUPS, Owner, SeenEnds};
use super::permit::RunPermit;
use super::queued::{FirstLook, reader_of};
use super::registration::Registered;
use super::registry::Unloaded;
use crate::id::{EngineId, ExecutionId, RunId};
use crate::outcome::{ResumeError, RunError, StartError};
use crate::panics::Driven;
use crate::run::{Host, Journal, Reattach, Run, RunShared};
use crate::store::{Position, Record, StoreError, StoredRun, Write};

/// The result of loading a run.
pub(super) enum Loaded {
    /// This engine drives the run under the same handles. Either it did before, or it has reloaded the run.
    Here(Arc<RunShared>),
    /// This engine drives the run from now on.
    Resumed(Arc<RunShared>),
    /// The run has ended.
    Ended(Arc<RunShared>),
    /// The run waits: it belongs to this engine from now on, which loads it once something reaches it.
    Waiting,
    /// The run is a child that is resumed when its parent asks for it.
    Awaited,
    /// The journal ends here, and not where the caller expected: another engine has written to it. The run is not
    /// resumed.
    Moved(Position),
    /// The limits of the run have no free permit for a claim. The run is left to other engines.
    Full,
}

/// Who loads a run.
#[derive(Clone, Copy)]
pub(super) enum LoadedBy {
    /// The engine, for a reason of its own. An awaited child stays with its parent.
    Engine,
    /// A claim. As the engine, except that it refuses a run that crashes its processes, and needs a permit that is free now.
    Claim,
    /// A caller that wants a handle, of this type of workflow or of any.
    Handle(Option<AskedType>),
}

/// Why and how a run is loaded.
pub(super) struct LoadAs<'a> {
    pub(super) by: LoadedBy,
    /// The reason to cancel a run that is loaded, before it does anything.
    pub(super) cancelled: Option<&'a Arc<str>>,
    /// The permit of a run that is resumed, if it has one. It is taken out then.
    pub(super) permit: &'a mut Option<RunPermit>,
}

/// The parts that a run which continues takes over.
pub(super) struct Taken<'a> {
    records: &'a [Record],
    given: Option<&'a FromSources>,
    permit: Option<RunPermit>,
}

/// How to resume a run.
#[derive(Default)]
pub(super) struct ResumeAs<'a> {
    /// The reason to cancel the run before it does anything; for orphaned children, and runs that are cancelled while
    /// unloaded.
    pub(super) cancelled: Option<&'a Arc<str>>,
    /// The registry's entry, if this engine had unloaded the run.
    pub(super) unloaded: Option<&'a Unloaded>,
    /// The values that the sources of its configurations gave; `None` if no step reads a configuration any more.
    pub(super) given: Option<&'a FromSources>,
    /// Its permit, if it was taken before.
    pub(super) permit: Option<RunPermit>,
}

/// Resumes runs, for code that finds them in the store. A trait, so that the finding is tested without an engine.
pub(super) trait Resumes: Sync {
    /// Resumes a run that no execution waits for. If a position is given, the journal has to end there.
    fn load(
        &self,
        run: &RunId,
        end: Option<Position>,
        by: LoadedBy,
    ) -> impl Future<Output = Result<Loaded, ResumeError>> + Send;

    /// Enters a listed run that waits as unloaded, without its journal. `None` if it has to be loaded. `departures` is that of
    /// the registry before the run was listed.
    fn enter(
        &self,
        run: &StoredRun,
        departures: usize,
    ) -> impl Future<Output = Result<Option<Loaded>, ResumeError>> + Send;

    /// Loads the parent of a child that is about to be loaded, if the parent was entered as unloaded.
    fn load_parent(&self, child: &StoredRun) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes an orphan whose journal still ends where it is listed: enters one that waits, and resumes any other unless its
    /// limits have no free permit.
    fn claim(&self, run: &StoredRun) -> impl Future<Output = Result<Loaded, ResumeError>> + Send;

    /// Cancels a run, if it is a child that an execution of `parent` waited for: one before `before`, if that is given.
    /// Returns the run whose end is to be awaited, if there is one.
    fn cancel_child(
        &self,
        run: &RunId,
        parent: &RunId,
        before: Option<ExecutionId>,
    ) -> impl Future<Output = Result<Option<Arc<RunShared>>, ResumeError>> + Send;

    /// Leaves a run of this engine, which does not drive it any more, to the engine that has its parent. Does nothing if
    /// the run was written to meanwhile, or is here.
    fn release(&self, run: &StoredRun) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl Resumes for Arc<Inner> {
    async fn load(&self, run: &RunId, end: Option<Position>, by: LoadedBy) -> Result<Loaded, ResumeError> {
        self.load_as(run, end, &mut LoadAs { by, cancelled: None, permit: &mut None }).await
    }

    async fn enter(&self, run: &StoredRun, departures: usize) -> Result<Option<Loaded>, ResumeError> {
        self.enter_waiting(run, Some(departures)).await
    }

    async fn load_parent(&self, child: &StoredRun) -> Result<(), StoreError> {
        self.load_parent_of(child).await
    }

    async fn claim(&self, run: &StoredRun) -> Result<Loaded, ResumeError> {
        // The id of a child has a slash, and its permit comes from elsewhere.
        let is_child = run.id.as_str().contains('/');
        // Else an engine whose own way to the inbox is broken would take one run after the other: each gives its permit up.
        if !is_child && self.inbox.as_ref().is_some_and(super::inbox::EngineInbox::is_away) {
            return Ok(Loaded::Full);
        }
        if let Some(waiting) = self.enter_waiting(run, None).await? {
            return Ok(waiting);
        }
        self.load_parent_of(run).await.map_err(ResumeError::Store)?;
        let mut permit = None;
        // Before the journal is read, which may be long.
        if !is_child {
            let Ok(taken) = self.permit_now(&*self.hosts.named(&run.id, &run.run.workflow)?) else {
                return Ok(Loaded::Full);
            };
            permit = Some(taken);
        }
        let how = &mut LoadAs { by: LoadedBy::Claim, cancelled: None, permit: &mut permit };
        self.load_as(&run.id, Some(run.end), how).await
    }

    async fn cancel_child(
        &self,
        run: &RunId,
        parent: &RunId,
        before: Option<ExecutionId>,
    ) -> Result<Option<Arc<RunShared>>, ResumeError> {
        self.cancel_orphan(run, parent, before).await
    }

    async fn release(&self, run: &StoredRun) -> Result<(), StoreError> {
        let _run_lock = self.runs.lock(&run.id).await?;
        if self.runs.has(&run.id) {
            return Ok(());
        }
        let records = vec![Record::RunKept { at: self.common.clock.shown() }];
        // An owner that never holds a lease, so that the run is an orphan for all engines.
        let released = run.run.clone().owned_by(Some(EngineId::generate()));
        let batch = Write { records, run: released };
        match self.journals.store()?.append(&run.id, run.end, batch).await {
            Err(StoreError::Conflict { .. }) => Ok(()),
            written => written,
        }
    }
}

impl Inner {
    /// Finds a run for a handle of this type of workflow, or of any: in this engine, or in the store unless another engine
    /// with a lease drives it.
    pub(super) async fn find(
        self: &Arc<Self>,
        id: &RunId,
        asked: Option<AskedType>,
    ) -> Result<Loaded, ResumeError> {
        let how = LoadAs { by: LoadedBy::Handle(asked), cancelled: None, permit: &mut None };
        self.find_as(id, how).await
    }

    /// The same, for a handle or for the engine.
    pub(super) async fn find_as(
        self: &Arc<Self>,
        id: &RunId,
        mut how: LoadAs<'_>,
    ) -> Result<Loaded, ResumeError> {
        if self.runs.driven(id).is_some() || self.runs.find_ended(id).is_some() {
            return self.load_as(id, None, &mut how).await;
        }
        self.take_lease().await.map_err(ResumeError::Store)?;
        let mut ends = SeenEnds::default();
        for _ in 0..LOOKUPS {
            let end = match self.journals.availability(id).await.map_err(ResumeError::Store)? {
                Availability::Unknown => return Err(ResumeError::UnknownRun { run: id.clone() }),
                Availability::Elsewhere(engine) => {
                    return Err(ResumeError::Elsewhere { run: id.clone(), engine });
                }
                Availability::Free(end) => end,
            };
            if matches!(how.by, LoadedBy::Handle(_)) {
                self.load_awaiting_parent(id).await?;
            }
            match self.load_as(id, end, &mut how).await? {
                Loaded::Moved(read) => ends.note(end.unwrap_or(read), read),
                loaded => return Ok(loaded),
            }
        }
        Err(self.journals.contention(id, &ends).await.unwrap_or_else(ResumeError::Store))
    }

    /// Loads the run that waits for a child before a caller takes the child up. Otherwise the parent could not continue in
    /// another engine, and a pause of the parent would not end for the child.
    async fn load_awaiting_parent(self: &Arc<Self>, child: &RunId) -> Result<(), ResumeError> {
        let Some(lease) = self.journals.lease() else { return Ok(()) };
        let Some(parent) = self.journals.awaiting_parent(child).await? else { return Ok(()) };
        let listed = self.journals.listed(&parent).await.map_err(ResumeError::Store)?;
        let Some(listed) = listed.filter(|parent| !parent.run.status.is_ended()) else { return Ok(()) };
        let owners = self.journals.owners(std::slice::from_ref(&listed)).await.map_err(ResumeError::Store)?;
        // A parent with another engine keeps its child there.
        if let Some(Owner::Elsewhere(engine)) = owners.and_then(|mut owners| owners.pop()) {
            return Err(ResumeError::Elsewhere { run: child.clone(), engine });
        }
        let driven = match self.runs.driven(&parent) {
            None if self.runs.has(&parent) => return Ok(()),
            None => match Box::pin(self.find(&parent, None)).await? {
                Loaded::Resumed(run) | Loaded::Here(run) => run,
                _ => return Ok(()),
            },
            Some(run) => run,
        };
        // Another engine may be faster with the parent.
        match lease.wait(driven.status.begun()).await {
            Some(true) => Ok(()),
            _ => Err(ResumeError::Contended { run: child.clone() }),
        }
    }

    /// Finds a run in this engine or in the store. `end` is the position where the journal of an open run has to end. A run
    /// that is loaded is cancelled before it does anything, if there is a reason.
    async fn load_as(
        self: &Arc<Self>,
        id: &RunId,
        end: Option<Position>,
        LoadAs { by, cancelled, permit }: &mut LoadAs<'_>,
    ) -> Result<Loaded, ResumeError> {
        let (by, cancelled) = (*by, *cancelled);
        let fits = |permit: &Option<RunPermit>, workflow| {
            if let LoadedBy::Handle(Some(asked)) = by {
                self.hosts.is_of(id, workflow, asked)?;
            }
            permit.as_ref().map_or(Ok(()), |permit| permit.check(id, workflow))
        };
        let _run_lock = self.runs.lock(id).await.map_err(ResumeError::Store)?;
        // A driven run needs no look at the store: its task holds the run's only writer.
        if let Some(run) = self.runs.driven(id) {
            return fits(permit, &run.table.name).map(|()| Loaded::Here(run));
        }
        if let Some(run) = self.runs.find_ended(id) {
            return fits(permit, &run.table.name).map(|()| Loaded::Ended(run));
        }
        // Only for a handle is an awaited child resumed before its parent asks for it.
        if !matches!(by, LoadedBy::Handle(_)) && self.journals.awaiting_parent(id).await?.is_some() {
            return Ok(Loaded::Awaited);
        }
        // An engine without a store has no other runs, and the empty journal leads to `UnknownRun` below.
        let mut records = match self.journals.read(id).await {
            Err(StoreError::NoStore) => Vec::new(),
            records => records.map_err(ResumeError::Store)?,
        };
        let beginning = Beginning::of(id, &records)?;
        fits(permit, beginning.workflow)?;
        let read = Position::default().after(records.len());
        // The owner was looked up for a journal that ended at `end`. An ended run has no owner, so its end may differ.
        if end.is_some_and(|end| !ends_with_run_ended(&records) && end != read) {
            return Ok(Loaded::Moved(read));
        }
        if matches!(by, LoadedBy::Claim) {
            check_progress(id, &records)?;
        }
        let mut unloaded = self.runs.unloaded(id);
        if unloaded.as_ref().is_some_and(|unloaded| unloaded.end != read) {
            self.give_up_unloaded(id, RunError::Conflict { run: id.clone() });
            // Another engine has written to the run, so this engine has lost it (S40). With leases the caller looks up
            // the owner first; without them any engine may resume the run.
            if self.journals.lease().is_some() {
                return Ok(Loaded::Moved(read));
            }
            unloaded = None;
        }
        // A run that still has handles has its configuration too, and keeps it until it is resumed.
        let handles = unloaded.as_ref().and_then(|unloaded| unloaded.run.upgrade());
        // A child's permit comes from its parent, or from the limit of children.
        let needs_permit = permit.is_none() && beginning.parent.is_none() && !ends_with_run_ended(&records);
        if matches!(by, LoadedBy::Claim) && needs_permit {
            let Ok(taken) = self.permit_now(&*self.hosts.named(id, beginning.workflow)?) else {
                return Ok(Loaded::Full);
            };
            **permit = Some(taken);
        }
        let mut given = None;
        match self.look_at_queued(id, &records).await? {
            Some(FirstLook::Fits(fitting)) => given = Some(fitting),
            Some(FirstLook::Unfit(why)) => {
                if let Some(moved) = self.fail_queued(id, &records, &why).await? {
                    return Ok(moved);
                }
                records = self.journals.read(id).await.map_err(ResumeError::Store)?;
            }
            None if handles.is_some() => {}
            None => given = self.secrets_of(id, &records, cancelled.is_some()).await?,
        }
        let (unloaded, given, permit) = (unloaded.as_ref(), given.as_ref(), permit.take());
        let resumed = self.resume(id, &records, ResumeAs { cancelled, unloaded, given, permit });
        // As a run that is refused when it is resumed: this engine does not have it.
        if let Err(error) = &resumed
            && unloaded.is_some_and(|unloaded| unloaded.is_new)
            && stays_refused(error)
        {
            self.give_up_unloaded(id, RunError::Detached);
        }
        resumed
    }

    /// Resumes an open run, or looks back at an ended one.
    pub(super) fn resume(
        self: &Arc<Self>,
        id: &RunId,
        records: &[Record],
        how: ResumeAs<'_>,
    ) -> Result<Loaded, ResumeError> {
        let ResumeAs { cancelled, unloaded, given, permit } = how;
        let beginning = Beginning::of(id, records)?;
        let host = &self.hosts.named(id, beginning.workflow)?;
        let runtime = self.reminders.runtime().ok_or(ResumeError::NoRuntime)?;
        let incompatible = |difference| ResumeError::Incompatible { run: id.clone(), difference };
        // Handles of an unloaded run stay valid: the run continues under the same shared part.
        let shared = match unloaded.and_then(|unloaded| unloaded.run.upgrade()) {
            Some(shared) => {
                shared.signals.mailbox.reopen();
                shared
            }
            None => self.restored(id, host, beginning, given)?,
        };
        if ends_with_run_ended(records) {
            let host = &reader_of(host, records);
            self.made(&shared, host, None).finish_from_journal(records).map_err(incompatible)?;
            // Messages that came too late are refused.
            self.read_inbox(&shared, None);
            return Ok(Loaded::Ended(shared));
        }
        // Replaying is synchronous, so the run's lock covers everything up to the spawned task.
        let taken = Taken { records, given, permit };
        let mut run = self.made(&shared, host, Some(taken));
        let derived = match run.resume(records) {
            Ok(derived) => derived,
            Err(difference) => {
                if unloaded.is_some() {
                    run.stay_unloaded();
                }
                return Err(incompatible(difference));
            }
        };
        if let Some(reason) = cancelled {
            shared.note_cancel(reason);
        }
        let gate = self.gate(&mut run);
        if let Some(unloaded) = unloaded {
            // Also while the engine ends: a cancel of all runs loads the unloaded ones to end them.
            let _task = self.ending.enter_late();
            let Some(registered) = Registered::again(self, &shared) else {
                run.stay_unloaded();
                return Err(ResumeError::ShutDown);
            };
            let is_new = unloaded.is_new;
            if is_new {
                runtime.spawn(self.ending.track(Driven::new(run.drive_resumed(derived, registered))));
            } else {
                let driven = Driven::new(run.drive_loaded(derived, unloaded.term, registered));
                runtime.spawn(self.ending.track(driven));
            }
            self.read_gated(&shared, gate);
            return Ok(if is_new { Loaded::Resumed(shared) } else { Loaded::Here(shared) });
        }
        let unknown = |_| ResumeError::UnknownRun { run: id.clone() };
        let registered = Registered::new(self, &shared).map_err(unknown)?;
        // Checked once the run is registered: either the run is refused here, or shutting down finds it in the
        // registry.
        let _task = self.ending.enter().ok_or(ResumeError::ShutDown)?;
        // The parent may have been resumed first, and lists the child for its report and its end.
        if cancelled.is_none()
            && let Some(names) = shared.parent()
            && let Some(parent) = self.runs.driven(&names.run)
        {
            Reattach::without_request(&parent, names, beginning.awaited).attach(&parent, &shared);
        }
        runtime.spawn(self.ending.track(Driven::new(run.drive_resumed(derived, registered))));
        self.read_gated(&shared, gate);
        Ok(Loaded::Resumed(shared))
    }

    /// A run before its journal is applied. A run that is only looked back at has no journal and no limits.
    pub(super) fn made(
        &self,
        shared: &Arc<RunShared>,
        host: &Arc<Host>,
        taken: Option<Taken<'_>>,
    ) -> Box<Run> {
        let (mut journal, mut permits) = (None, None);
        if let Some(Taken { records, given, permit }) = taken {
            let store = self.journals.store().ok().map(Arc::clone);
            journal = store.and_then(|store| Journal::resume(store, records, &host.table));
            let layers = given.map(|given| given.layers.clone());
            journal = journal.map(|journal| journal.with_layers(layers.unwrap_or_default()));
            permits = if let Some(permit) = permit {
                permit.into_slot(&shared.id)
            } else {
                let request = self.concurrency.permit_request(Some(&shared.id), host.id, &host.table.name);
                request.map(|request| (request, None))
            };
        }
        Run::new(Arc::clone(shared), Arc::clone(host), self.common.settings.limits, permits, journal)
    }

    /// The shared part of a run that is loaded from the store.
    pub(super) fn restored(
        &self,
        id: &RunId,
        host: &Host,
        beginning: Beginning<'_>,
        given: Option<&FromSources>,
    ) -> Result<Arc<RunShared>, ResumeError> {
        let beginning = match given {
            Some(given) if !given.layers.is_empty() => beginning.with_configs(&given.layers),
            _ => beginning,
        };
        let options = beginning.options(id, host);
        let made = match given {
            Some(given) => self.shared(host, options.with_secrets(given.secrets.clone()), None),
            None => Ok(self.shared_with(host, options, None, HashMap::new())),
        };
        let shared = made.map_err(|error| match error {
            StartError::Config(error) => ResumeError::Config(error),
            // Only the configuration can be wrong in a run that has begun before.
            other => ResumeError::Store(StoreError::unavailable(other)),
        })?;
        Ok(Arc::new(beginning.restores(shared).resumed(beginning.parent.cloned())))
    }
}

/// How many `RunResumed` at the end of a journal say that each process which took the run up was killed by it.
const CRASHES: usize = 5;

/// An error if the latest processes recorded nothing after they had resumed the run. A run that waits, rests in its pause
/// or is detached has recorded that, so that no restart of a process counts for it.
fn check_progress(id: &RunId, records: &[Record]) -> Result<(), ResumeError> {
    let resumed =
        records.iter().rev().take_while(|record| matches!(record, Record::RunResumed { .. })).count();
    if resumed < CRASHES { Ok(()) } else { Err(ResumeError::Crashing { run: id.clone(), resumed }) }
}

pub(super) fn ends_with_run_ended(records: &[Record]) -> bool {
    matches!(records.last(), Some(Record::RunEnded { .. }))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Began, Written};
    use super::*;
    use crate::store::JOURNAL_FORMAT;

    // S66
    #[test]
    fn a_run_that_recorded_nothing_in_five_processes_makes_no_progress() {
        let written = Written::default();
        written.begin("a", Began::default());
        let mut records = written.records("a");
        let at = std::time::SystemTime::UNIX_EPOCH;
        for resumed in 1..=5 {
            records.push(Record::RunResumed {
                format: JOURNAL_FORMAT,
                table: None,
                stable_keys: false,
                configs: [].into(),
                at,
            });
            let progress = check_progress(&"a".into(), &records);
            assert_eq!(matches!(progress, Err(ResumeError::Crashing { resumed: 5, .. })), resumed == 5);
        }
        records.push(Record::RunDetached { dropped: vec![], at });
        assert!(check_progress(&"a".into(), &records).is_ok());
    }
}

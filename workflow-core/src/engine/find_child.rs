//! Children that an earlier process began. An execution that runs again asks for its children again, and finds them by
//! their ids. Their journals count, and not the event and the options of the new call (S39).
//!
//! ```text
//!                    no journal ──▶ start a new child
//! call ─▶ lock(id) ─ journal of another parent, kind or workflow ──▶ DuplicateRun | WrongWorkflow
//!                    journal, driven here ──▶ re-attach it to the resumed parent; if it detaches, wait, and look again
//!                    journal, not driven  ──▶ resume it, or look back at an ended child
//!                    journal, other owner ──▶ Elsewhere: the parent stops, and keeps its journal open
//! ```
//!
//! The search is a task of its own, so it may outlive the attempt that asked: the parent was paused, or its store failed. Such
//! a search neither begins nor joins the child. Otherwise the child would be cancelled, since that attempt waits for it no
//! longer, while the next attempt of the execution asks for it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::Inner;
use super::children::NewChild;
use super::config_sources::FromSources;
use super::first_record::Beginning;
use super::load::ends_with_run_ended;
use super::owner::{Availability, LOOKUPS, SeenEnds};
use super::queued::{is_output_readable, reader_of};
use crate::config::ConfigError;
use crate::id::RunId;
use crate::outcome::{ResumeError, StartError};
use crate::panics::Driven;
use crate::run::{HostsRuns as _, ParentLink, Reattach, RunOptions, RunShared, Spawned, Start};
use crate::store::{Position, Record, StoreError};

impl Inner {
    /// Resumes the child that an earlier process began for the same execution, or begins it. The run's lock keeps
    /// others from loading the child meanwhile.
    pub(super) async fn find_or_start_child(
        self: &Arc<Self>,
        id: &RunId,
        start: Start,
        options: RunOptions,
        link: ParentLink,
    ) -> Result<Spawned, StartError> {
        let (_run_lock, records, here) = loop {
            let run_lock = self.runs.lock(id).await.map_err(StartError::Store)?;
            let (records, here) = self.begun_before(id).await?;
            let Some(child) = here.as_ref().filter(|run| run.is_to_detach() || records.is_empty()) else {
                break (run_lock, records, here);
            };
            drop(run_lock);
            if child.is_to_detach() {
                // A child that still detaches is found once it is gone, by its complete journal.
                child.ended().await;
            } else {
                // The store has not answered to the beginning of the child.
                child.status.begun().await;
            }
        };
        if records.is_empty() {
            let options = self.with_sources(&start, options).await?;
            link.is_still_asked()?;
            return Arc::clone(self).start_child(start, options, link);
        }
        self.is_the_same(id, beginning_of(id, &records)?, &start, &options, &link)?;
        if let Some(shared) = here {
            link.is_still_asked()?;
            return self.reattached(shared, link);
        }
        let given = self.secrets_of(id, &records, false).await.map_err(start_error)?;
        link.is_still_asked()?;
        self.resume_child(id, &start, records, (link, given))
    }

    /// Whether the journal is of the child that the execution asks for. The start event may differ: a step that runs
    /// again may read another time or other random numbers.
    fn is_the_same(
        &self,
        id: &RunId,
        beginning: Beginning<'_>,
        start: &Start,
        options: &RunOptions,
        link: &ParentLink,
    ) -> Result<(), StartError> {
        if beginning.parent != Some(&link.parent) || beginning.awaited != link.awaited {
            return Err(StartError::DuplicateRun { run: id.clone() });
        }
        let (workflow, named) = (beginning.workflow, options.workflow.as_ref());
        let (run, found) = (id.clone(), Arc::clone(workflow));
        let wrong = |asked| StartError::WrongWorkflow { run, workflow: found, asked };
        self.hosts.may_be(workflow, start, named).map_err(wrong)
    }

    /// The journal of a run that this engine drives or may resume, empty if no process began the run; and the run, if
    /// this engine drives it. Without the run the journal is complete: the run did not end here during the read.
    async fn begun_before(&self, id: &RunId) -> Result<(Vec<Record>, Option<Arc<RunShared>>), StartError> {
        let read = || async { self.journals.read(id).await.map_err(StartError::Store) };
        let has_lease = self.journals.lease().is_some();
        let was_here = self.runs.driven(id).is_some();
        // Without leases, and for a run of this engine, no owner is asked for.
        if !has_lease || was_here {
            let records = read().await?;
            let here = self.runs.driven(id);
            if !was_here || here.is_some() {
                return Ok((records, here));
            }
            // The run has ended meanwhile: a second read gets the complete journal.
            if !has_lease {
                return Ok((read().await?, None));
            }
        }
        // With leases: as in `find`, the journal has to end where it ended when its owner was looked up.
        let mut ends = SeenEnds::default();
        for _ in 0..LOOKUPS {
            let end = match self.journals.availability(id).await.map_err(StartError::Store)? {
                Availability::Unknown => return Ok((Vec::new(), None)),
                Availability::Elsewhere(engine) => {
                    return Err(StartError::Elsewhere { run: id.clone(), engine });
                }
                Availability::Free(end) => end,
            };
            let records = read().await?;
            let has_ended = matches!(records.last(), Some(Record::RunEnded { .. }));
            let read = Position::default().after(records.len());
            match end {
                Some(end) if !has_ended && end != read => ends.note(end, read),
                _ => return Ok((records, None)),
            }
        }
        Err(start_error(self.journals.contention(id, &ends).await.unwrap_or_else(ResumeError::Store)))
    }

    /// Re-attaches a child that this engine drives. Either the child was resumed before its parent asked for it, or its
    /// parent asked for it, was detached, and asks again.
    fn reattached(&self, shared: Arc<RunShared>, link: ParentLink) -> Result<Spawned, StartError> {
        let ParentLink { parent: names, awaited, drop_signal, asked_in, display, .. } = link;
        let ended = || StartError::ParentEnded { run: names.run.clone() };
        let parent = self.runs.driven(&names.run).ok_or_else(ended)?;
        // An execution that a pause dropped asks for its independent children again (S61).
        let is_asked_again = |link: &ParentLink| link.is_of(&parent) && link.asked_in == asked_in;
        if shared.parent_link().is_some_and(is_asked_again) || !shared.signals.note_asked(&parent, asked_in) {
            return Err(StartError::DuplicateRun { run: shared.id.clone() });
        }
        Reattach { names: &names, awaited, drop_signal, asked_in, display }.attach(&parent, &shared);
        Ok(Spawned { shared, written: None })
    }

    /// Resumes the child as its journal says that it began, or looks back at an ended child.
    fn resume_child(
        self: &Arc<Self>,
        id: &RunId,
        start: &Start,
        records: Vec<Record>,
        (link, given): (ParentLink, Option<FromSources>),
    ) -> Result<Spawned, StartError> {
        // The limit on depth bounds only children that begin.
        let beginning = beginning_of(id, &records)?;
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let hosted = self.hosts.host_of(start, Some(beginning.workflow));
        // The program that began the child hosted its workflow. A missing workflow is this program's fault, and not an
        // error for the step.
        if let Err(error @ StartError::UnknownWorkflow { .. }) = &hosted {
            link.child_store_failure(error.clone());
        }
        let host = Arc::clone(hosted?);
        let options = beginning.options(id, &host);
        let shared = match given {
            Some(given) => self.shared(&host, options.with_secrets(given.secrets), Some(link))?,
            None => self.shared_with(&host, options, Some(link), HashMap::new()),
        };
        let shared = beginning.restores(shared);
        let has_ended = ends_with_run_ended(&records);
        // Without its output the parent could not go on by a program that reads it.
        let is_readable = has_ended && is_output_readable(&host, &records);
        let host = if is_readable { reader_of(&host, &records) } else { host };
        let NewChild { mut run, shared, registered, _task } = self.register_child(host, shared, |_| None)?;
        let store = self.journals.store().ok().cloned();
        let gate = if has_ended { None } else { self.gate(&mut run) };
        let driven = Driven::new(async move { run.drive_from(store, &records, registered).await });
        runtime.spawn(self.ending.track(driven));
        self.read_gated(&shared, gate);
        Ok(Spawned { shared, written: None })
    }
}

/// The first record of a child's journal.
fn beginning_of<'r>(id: &RunId, records: &'r [Record]) -> Result<Beginning<'r>, StartError> {
    Beginning::of(id, records).map_err(start_error)
}

/// The start error of a child whose look-up failed.
fn start_error(error: ResumeError) -> StartError {
    match error {
        ResumeError::Elsewhere { run, engine } => StartError::Elsewhere { run, engine },
        ResumeError::Store(error) => StartError::Store(error),
        // The child has begun, and its source answers later: the parent waits, as for the child's store.
        ResumeError::Config(error @ ConfigError::Unavailable { .. }) => {
            StartError::Store(StoreError::unavailable(error))
        }
        ResumeError::Config(error) => StartError::Config(error),
        ResumeError::ShutDown => StartError::ShutDown,
        other => StartError::Store(StoreError::unavailable(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Began, Written};
    use super::*;

    #[test]
    fn an_error_of_the_store_stays_one_and_another_owner_is_named() {
        let elsewhere = ResumeError::Elsewhere { run: "a".into(), engine: crate::id::EngineId::generate() };
        assert!(matches!(start_error(elsewhere), StartError::Elsewhere { .. }));
        let store = start_error(ResumeError::Store(StoreError::ShutDown));
        assert!(matches!(store, StartError::Store(StoreError::ShutDown)));
        let contended = start_error(ResumeError::Contended { run: "a".into() });
        assert!(matches!(contended, StartError::Store(StoreError::Unavailable { .. })));
    }

    #[test]
    fn a_journal_without_a_beginning_is_an_error_of_the_store() {
        let written = Written::default();
        written.begin("a", Began::default());
        let records = written.records("a");
        assert!(beginning_of(&"a".into(), &records).is_ok());
        let broken = beginning_of(&"a".into(), &records[1..]).err();
        assert!(matches!(broken, Some(StartError::Store(StoreError::Corrupt { .. }))));
    }
}

//! Children that an earlier process has begun, and that an execution asks for again which runs again: what their journals
//! say of them counts, not what they are asked for with (S39).

use std::sync::Arc;

use super::Inner;
use super::beginning::Beginning;
use super::children::Born;
use super::owner::{Availability, LOOKUPS, SeenEnds};
use crate::id::RunId;
use crate::outcome::{ResumeError, StartError};
use crate::panics::Driven;
use crate::run::{Birth, HostsRuns as _, Reunion, RunOptions, RunShared, Spawned, Start};
use crate::store::{Position, Record, StoreError};

impl Inner {
    /// Resumes the child that an earlier process has begun for the same, or begins it. The run's lock keeps others from
    /// loading it meanwhile.
    pub(super) async fn found(
        self: &Arc<Self>,
        id: &RunId,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        let _held = self.runs.lock(id).await.map_err(StartError::Store)?;
        let (records, here) = self.begun_before(id).await?;
        if records.is_empty() {
            return Arc::clone(self).start_child(start, options, birth);
        }
        is_the_same(id, beginning_of(id, &records)?, &start, &birth)?;
        match here {
            Some(shared) => self.reunited(shared, birth),
            None => self.go_on_with(id, &start, records, birth),
        }
    }

    /// The journal of a run that goes on here or may, nothing of one that was not begun; and the run, if it goes on here. If
    /// not, its journal is whole: it had not ended here while that was read.
    async fn begun_before(&self, id: &RunId) -> Result<(Vec<Record>, Option<Arc<RunShared>>), StartError> {
        let read = || async { self.journals.read(id).await.map_err(StartError::Store) };
        let has_lease = self.journals.lease().is_some();
        let was_here = self.runs.driven(id).is_some();
        if !has_lease || was_here {
            let records = read().await?;
            let here = self.runs.driven(id);
            if !was_here || here.is_some() {
                return Ok((records, here));
            }
            // It has ended meanwhile: now its journal is whole.
            if !has_lease {
                return Ok((read().await?, None));
            }
        }
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

    /// The child goes on here without having been asked for, or was asked for by its parent before that stopped and was
    /// left.
    fn reunited(&self, shared: Arc<RunShared>, birth: Birth) -> Result<Spawned, StartError> {
        let Birth { parent: names, awaited, unwanted, display, .. } = birth;
        let ended = || StartError::ParentEnded { run: names.run.clone() };
        let parent = self.runs.driven(&names.run).ok_or_else(ended)?;
        if shared.birth().is_some_and(|birth| birth.is_of(&parent)) {
            return Err(StartError::DuplicateRun { run: shared.id.clone() });
        }
        Reunion { names: &names, awaited, unwanted, display }.reunite(&parent, &shared);
        Ok(Spawned { shared, written: None })
    }

    /// The child goes on as its journal says that it began, or is looked back at if it has ended.
    fn go_on_with(
        self: &Arc<Self>,
        id: &RunId,
        start: &Start,
        records: Vec<Record>,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        // However deep it is: what has begun goes on under any limit.
        let hosted = self.child_host(start);
        // The program that began the child hosted it, and one that can resume it does.
        if let Err(error @ StartError::UnknownWorkflow { .. }) = &hosted {
            birth.let_parent_down(error.clone());
        }
        let (runtime, host, _) = hosted?;
        let beginning = beginning_of(id, &records)?;
        let shared = beginning.restores(self.shared(&host, beginning.options(id, &host), Some(birth))?);
        let Born { run, shared, registered, _task } = self.bear(host, shared, |_| None)?;
        let store = self.journals.store().ok().cloned();
        let driven = Driven::new(async move { run.drive_from(store, &records, registered).await });
        runtime.spawn(self.ending.track(driven));
        Ok(Spawned { shared, written: None })
    }
}

fn beginning_of<'r>(id: &RunId, records: &'r [Record]) -> Result<Beginning<'r>, StartError> {
    Beginning::of(id, records).map_err(start_error)
}

/// Why a child does not start that could not be found.
fn start_error(error: ResumeError) -> StartError {
    match error {
        ResumeError::Elsewhere { run, engine } => StartError::Elsewhere { run, engine },
        ResumeError::Store(error) => StartError::Store(error),
        other => StartError::Store(StoreError::unavailable(other)),
    }
}

/// Whether the run was begun as the child that is asked for. With which event it was opened does not matter: what a step
/// makes of the time or of chance is another each time that it runs.
fn is_the_same(id: &RunId, beginning: Beginning<'_>, start: &Start, birth: &Birth) -> Result<(), StartError> {
    if beginning.parent != Some(&birth.parent) || beginning.awaited != birth.awaited {
        return Err(StartError::DuplicateRun { run: id.clone() });
    }
    if **beginning.workflow != *start.workflow {
        let workflow = Arc::clone(beginning.workflow);
        return Err(StartError::WrongWorkflow { run: id.clone(), workflow, asked: start.workflow });
    }
    Ok(())
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

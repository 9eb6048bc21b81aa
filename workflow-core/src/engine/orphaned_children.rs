//! Orphaned children: open child runs that an execution of an earlier process waited for, and that the resumed parent
//! does not ask for. The engine cancels them (S31).

use std::sync::Arc;

use super::Inner;
use super::first_record::Beginning;
use super::journals::{Journals, Pages};
use super::load::{Loaded, ResumeAs, Resumes};
use super::owner::Availability;
use super::registry::RunRegistry;
use crate::id::{ExecutionId, ParentRun, RunId};
use crate::lease::Lease;
use crate::outcome::ResumeError;
use crate::run::RunShared;
use crate::store::{EndedChild, Position, RunQuery};

/// Finds orphaned children in the store and cancels them.
pub(super) struct Orphans<'a, R> {
    pub(super) journals: &'a Journals,
    pub(super) runs: &'a RunRegistry,
    pub(super) resumes: &'a R,
}

impl<R: Resumes> Orphans<'_, R> {
    /// Cancels the children that a run waited for in an earlier process and has not asked for again, and waits for
    /// their ends, which it returns: those of executions before this one, or all. The caller is about to end the parent, or
    /// to clean up. Children whose records cannot be read stay until the next restart.
    pub(super) async fn cancel_children_of(
        &self,
        parent: &RunId,
        before: Option<ExecutionId>,
    ) -> Vec<EndedChild> {
        let mut ended = Vec::new();
        let Ok(store) = self.journals.store() else { return ended };
        let mut pages = Pages::below(&**store, parent, RunQuery::new().open());
        while let Ok(Some(page)) = pages.next().await {
            for run in page {
                if let Ok(Some(child)) = self.resumes.cancel_child(&run.id, parent, before).await {
                    child.ended().await;
                    if child.has_ended_for_good() {
                        ended.push(EndedChild { run: run.id, status: child.status() });
                    }
                }
            }
        }
        ended
    }

    /// Cancels those of these runs whose parents have ended, and waits for their ends. Runs whose records cannot be
    /// read stay until the next restart. With a lease, the wait for one end is bounded, so that it delays no other run
    /// for long.
    pub(super) async fn cancel_among(&self, awaited: Vec<RunId>, lease: Option<&Arc<Lease>>) {
        for run in awaited {
            let Ok(Some(parent)) = self.journals.awaiting_parent(&run).await else { continue };
            let is_here = self.runs.driven(&parent).is_some();
            // The list says it, without a journal that may be long.
            let has_ended = async {
                let listed = self.journals.listed(&parent).await;
                listed.is_ok_and(|listed| listed.is_none_or(|parent| parent.run.status.is_ended()))
            };
            if !is_here && has_ended.await {
                let Ok(Some(child)) = self.resumes.cancel_child(&run, &parent, None).await else {
                    continue;
                };
                match lease {
                    Some(lease) => drop(lease.wait(child.ended()).await),
                    None => child.ended().await,
                }
            }
        }
    }
}

impl Inner {
    pub(super) fn orphaned_children(self: &Arc<Self>) -> Orphans<'_, Arc<Self>> {
        Orphans { journals: &self.journals, runs: &self.runs, resumes: self }
    }

    /// Cancels a run that this engine does not drive, or that detaches, or that was taken up too late for its parent, if an
    /// execution of `parent` began it and waited for it: one before `before`, if that is given. Returns the run, which ends in a
    /// task of its own.
    pub(super) async fn cancel_orphan(
        self: &Arc<Self>,
        id: &RunId,
        parent: &RunId,
        before: Option<ExecutionId>,
    ) -> Result<Option<Arc<RunShared>>, ResumeError> {
        let is_before = |names: &ParentRun| before.is_none_or(|first| names.execution < first);
        let _loading = loop {
            let loading = self.runs.lock(id).await.map_err(ResumeError::Store)?;
            match self.runs.driven(id) {
                None => break loading,
                // One that was detached for a pause may still be about to go.
                Some(leaves) if leaves.is_to_detach() => {
                    drop(loading);
                    leaves.ended().await;
                }
                // It was taken up for a caller when the parent took no child any more.
                Some(alone) if !alone.has_parent_here() => {
                    let awaiting = self.journals.awaiting_parent(id).await?;
                    let is_asked_for = awaiting.is_some_and(|awaiting| awaiting == *parent);
                    let names = alone.parent().filter(|names| is_asked_for && is_before(names));
                    let reason = names.map(|names| names.cancel_reason(true));
                    return Ok(reason.map(|reason| {
                        alone.note_cancel(&reason);
                        alone
                    }));
                }
                Some(_) => return Ok(None),
            }
        };
        // Only its owner ends a run.
        let available = self.journals.availability(id).await.map_err(ResumeError::Store)?;
        let Availability::Free(end) = available else { return Ok(None) };
        let records = self.journals.read(id).await.map_err(ResumeError::Store)?;
        if end.is_some_and(|end| end != Position::default().after(records.len())) {
            return Ok(None);
        }
        let beginning = Beginning::of(id, &records)?;
        let is_asked_for = beginning.is_awaited_by(parent);
        let Some(names) = beginning.parent.filter(|names| is_asked_for && is_before(names)) else {
            return Ok(None);
        };
        let (reason, given) = (names.cancel_reason(true), self.secrets_of(id, &records, true).await?);
        let how = ResumeAs { cancelled: Some(&reason), given: given.as_ref(), ..ResumeAs::default() };
        let loaded = self.resume(id, &records, how)?;
        Ok(if let Loaded::Resumed(run) = loaded { Some(run) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ending::Ending;
    use super::super::fixtures::{Began, Resumer, Written, now};
    use super::*;

    /// A parent that has ended, a parent that is open, and an awaited child of each.
    fn written() -> Written {
        let written = Written::default();
        for run in ["a", "b"] {
            written.begin(run, Began::default());
            let child = format!("{run}/greet-x1.1");
            written.begin(&child, Began { parent: Some(run), awaited: true, ..Began::default() });
        }
        written.end("a");
        written
    }

    #[test]
    fn children_end_whose_parents_have_ended() {
        let (journals, resumer) = (written().journals(), Resumer::default());
        let runs = RunRegistry::new(Ending::default().patience());
        let orphans = Orphans { journals: &journals, runs: &runs, resumes: &resumer };
        let awaited = ["a/greet-x1.1", "b/greet-x1.1", "c/greet-x1.1"].map(RunId::from);
        now(orphans.cancel_among(awaited.into(), None));
        assert_eq!(resumer.asked(), ["end a/greet-x1.1 of a"]);
    }

    #[test]
    fn a_parent_that_ends_ends_the_open_runs_below_it() {
        let written = written();
        written.begin("b/greet-x2.1", Began { parent: Some("b"), ..Began::default() });
        written.end("b/greet-x2.1");
        let (journals, resumer) = (written.journals(), Resumer::default());
        let runs = RunRegistry::new(Ending::default().patience());
        let orphans = Orphans { journals: &journals, runs: &runs, resumes: &resumer };
        now(orphans.cancel_children_of(&"b".into(), None));
        assert_eq!(resumer.asked(), ["end b/greet-x1.1 of b"]);
    }
}

//! How children ended, for the journal and the report of their parent (S82).
//!
//! ```text
//! a child ends      note_end ─▶ fresh ─▶ unrecorded: the driver takes it, and journals it ─▶ end, in reports from then on
//! the parent ends   parent_ended ─▶ children without an end are as the parent's journal has them; nothing is taken any more
//! the store fails   forget_ends ─▶ without an end again
//! ```
//!
//! Invariant: reports and quality know of an end once the driver has taken it. So they and the journal agree on a child.

use std::time::SystemTime;

use smallvec::SmallVec;

use super::{ChildRegistry, Member, State};
use crate::id::{ChildRun, RunId, RunStatus};
use crate::run::RunShared;
use crate::store::EndedChild;

/// The status of a child without an end, in the report of its parent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ParentPhase {
    /// The parent goes on: the child has its present state.
    #[default]
    Open,
    /// The parent has completed: an awaited child is cancelled, and an independent one goes on.
    Completed,
    /// The parent has ended otherwise, or stops here: the child goes on.
    Over,
}

/// The children that a parent's journal lacks, and the ends of children.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded {
    pub(crate) started: Vec<(ChildRun, SystemTime)>,
    pub(crate) ended: Vec<EndedChild>,
}

impl State {
    /// A member has ended for good. The first end counts: a child that is looked back at ends again.
    pub(super) fn note_end(&mut self, index: usize, status: RunStatus) {
        if !std::mem::replace(&mut self.members[index].has_ended, true) {
            self.fresh.push((index, status));
        }
    }

    /// A child has ended of which no run is a member, if it is known.
    pub(super) fn note_end_of(&mut self, run: &RunId, status: RunStatus) {
        let without = |(index, member): (usize, &Member)| member.run.is_none().then_some(index);
        let indexes: SmallVec<[usize; 1]> = self.of_id(run).filter_map(without).collect();
        for index in indexes {
            self.note_end(index, status);
        }
    }

    /// Takes the ends that are new.
    fn take_ends(&mut self) -> Vec<EndedChild> {
        let taken = std::mem::take(&mut self.fresh).into_iter().map(|(index, status)| {
            let member = &mut self.members[index];
            member.end = Some(status);
            EndedChild { run: member.child.run.clone(), status }
        });
        taken.collect()
    }
}

impl Member {
    /// The status in the report of the parent.
    pub(super) fn status(&self, parent: ParentPhase) -> RunStatus {
        if let Some(end) = self.end {
            return end;
        }
        match parent {
            ParentPhase::Completed if self.child.awaited => RunStatus::Cancelled,
            ParentPhase::Completed | ParentPhase::Over => RunStatus::Running,
            ParentPhase::Open => {
                let now = self.run.as_ref().map(|run| run.status());
                now.filter(|status| !status.is_ended()).unwrap_or(RunStatus::Running)
            }
        }
    }
}

impl ChildRegistry {
    /// The children that joined since the last call, with the times, and the ends of children if the caller takes them.
    pub(crate) fn unrecorded(&self, with_ends: bool) -> Unrecorded {
        let mut state = self.lock();
        let since = state.recorded;
        state.recorded = state.members.len();
        let started = state.members[since..].iter().map(|member| (member.child.clone(), member.joined));
        let started = started.collect();
        // Under the same lock, so that no child ends before it starts.
        let takes_ends = with_ends && state.parent == ParentPhase::Open;
        Unrecorded { started, ended: if takes_ends { state.take_ends() } else { Vec::new() } }
    }

    /// The children without an end whose runs are not here.
    pub(crate) fn open_elsewhere(&self) -> Vec<RunId> {
        let state = self.lock();
        let open = state.members.iter().filter(|member| member.run.is_none() && !member.has_ended);
        open.map(|member| member.child.run.clone()).collect()
    }

    /// Whether the journal has the child as one that an execution waits for; `None` if it does not have the child.
    pub(crate) fn awaits(&self, run: &RunId) -> Option<bool> {
        self.lock().of_id(run).next().map(|(_, member)| member.child.awaited)
    }

    /// These children have ended, as the store says. Their runs are no members.
    pub(crate) fn ended_elsewhere(&self, ended: Vec<EndedChild>) {
        let mut state = self.lock();
        for EndedChild { run, status } in ended {
            state.note_end_of(&run, status);
        }
    }

    /// The store did not take these ends.
    pub(crate) fn forget_ends(&self, ended: &[EndedChild]) {
        let state = &mut *self.lock();
        for EndedChild { run, .. } in ended {
            for index in state.by_id.get(run).into_iter().flatten() {
                state.members[*index].end = None;
            }
        }
    }

    /// Notes the end of a child that was re-attached, before anybody learns of it. It leaves later.
    pub(crate) fn reattached_ended(&self, child: &RunShared, status: RunStatus) {
        let mut state = self.lock();
        let is_it =
            |member: &Member| member.run.as_ref().is_some_and(|run| std::ptr::eq(&raw const **run, child));
        let index = state.of_id(&child.id).find(|(_, member)| is_it(member)).map(|(index, _)| index);
        if let Some(index) = index.filter(|_| child.has_ended_for_good()) {
            state.note_end(index, status);
        }
    }

    /// The run has completed, has ended otherwise, or stops here. Reports know of no end from here on.
    pub(crate) fn parent_ended(&self, has_completed: bool) {
        self.lock().parent = if has_completed { ParentPhase::Completed } else { ParentPhase::Over };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::run::bare_run::BareRun;
    use crate::run::children::registry::tests::child;

    // S82
    #[test]
    fn reports_know_of_an_end_once_the_driver_has_taken_it() {
        let (parent, run) = (BareRun::new().shared, BareRun::new().shared);
        let (registry, signal) = (ChildRegistry::default(), Arc::default());
        for number in 0..3 {
            registry.join(&parent, child(number, number > 0), &run, (&signal, 0)).unwrap();
        }
        crate::run::end_unloaded(&run, crate::outcome::RunError::Cancelled { reason: "enough".into() });
        let statuses = || registry.reports().iter().map(|child| child.status).collect::<Vec<_>>();
        let ended = |number, status| [EndedChild { run: child(number, true).run, status }];
        let [runs, failed] = [RunStatus::Running, RunStatus::Failed];

        registry.left(&parent, 1, (&run, failed));
        assert_eq!((statuses(), registry.has_failures()), (vec![runs; 3], false));
        assert!(registry.unrecorded(false).ended.is_empty());
        assert_eq!(registry.unrecorded(true).ended, ended(1, failed));
        assert_eq!((statuses(), registry.has_failures()), (vec![runs, failed, runs], true));

        registry.parent_ended(true);
        registry.left(&parent, 2, (&run, failed));
        assert!(registry.unrecorded(true).ended.is_empty(), "it ends with its parent");
        assert_eq!(statuses(), [runs, failed, RunStatus::Cancelled]);
        registry.seal(false);
        assert_eq!(registry.unrecorded(true).ended, ended(2, failed));
        assert_eq!(statuses(), [runs, failed, failed]);

        registry.forget_ends(&ended(1, failed));
        registry.parent_ended(false);
        assert_eq!(statuses(), [runs, runs, failed]);
    }
}

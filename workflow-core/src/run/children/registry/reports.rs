//! The reports of children, for the report of their parent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ends::ParentPhase;
use super::{ChildRegistry, Member};
use crate::id::RunStatus;
use crate::report::ChildReport;
use crate::run::RunShared;

impl Member {
    fn report(&self, parent: ParentPhase) -> ChildReport {
        let (run, status) = (self.run.as_ref().filter(|_| self.child.awaited), self.status(parent));
        // One that ended after its parent, or was left to another process, has another end.
        let report = run.and_then(|run| run.made_report()).filter(|report| report.status == status);
        ChildReport { child: self.child.clone(), status, report }
    }
}

impl ChildRegistry {
    /// Makes the reports of those below that have ended, the lowest first: runs may nest deeply, and a report has those
    /// of the children in it.
    pub(crate) fn make_reports(&self) {
        let mut below = self.unreported();
        let mut at = 0;
        while let Some(run) = below.get(at) {
            let further = run.children.get().map(|registry| registry.unreported()).unwrap_or_default();
            below.extend(further);
            at += 1;
        }
        for run in below.iter().rev() {
            run.made_report();
            if let Some(registry) = run.children.get() {
                registry.note_reported();
            }
        }
    }

    /// Awaited, ended children that have children themselves. Their reports may not have been made yet.
    fn unreported(&self) -> Vec<Arc<RunShared>> {
        if self.reported.load(Ordering::Acquire) {
            return Vec::new();
        }
        let state = self.lock();
        let awaited = state.members.iter().filter(|member| member.child.awaited);
        let ended =
            awaited.filter_map(|member| member.run.as_ref()).filter(|run| run.finished.get().is_some());
        ended.filter(|run| run.children.get().is_some()).map(Arc::clone).collect()
    }

    /// Notes that the reports were made. A run that has ended gets no further child.
    fn note_reported(&self) {
        self.reported.store(true, Ordering::Release);
    }

    /// The report of each child, in the order of joining.
    pub(crate) fn reports(&self) -> Vec<ChildReport> {
        self.make_reports();
        let state = self.lock();
        state.members.iter().map(|member| member.report(state.parent)).collect()
    }

    /// Whether an awaited child failed, stalled or timed out. A cancelled child is no failure.
    pub(crate) fn has_failures(&self) -> bool {
        let state = self.lock();
        let mut awaited = state.members.iter().filter(|member| member.child.awaited);
        awaited.any(|member| match member.end {
            Some(RunStatus::Failed | RunStatus::Stalled | RunStatus::TimedOut) => true,
            None
            | Some(
                RunStatus::Running
                | RunStatus::Waiting
                | RunStatus::Paused
                | RunStatus::CleaningUp
                | RunStatus::Completed
                | RunStatus::Cancelled,
            ) => false,
        })
    }
}

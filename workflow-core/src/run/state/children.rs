//! The children in a run's journal, and their ends (S82).
//!
//! ```text
//! ChildStarted a, b, c      a open    b open           c open
//! ChildrenEnded b failed    a open    b failed         c open
//! the stop event            a open    b failed         c cancelled      if `c` is awaited, and `a` independent
//! ```
//!
//! Invariant: a child ends once. The state follows from the records alone: a child that runs on elsewhere is open here until a
//! record has its end.

use std::collections::HashMap;
use std::time::SystemTime;

use smallvec::SmallVec;

use super::{Applied, RunState};
use crate::id::{ChildRun, RunId, RunStatus};
use crate::store::EndedChild;

/// A child that an execution started.
#[derive(Debug)]
pub(in crate::run) struct RecordedChild {
    pub(in crate::run) child: ChildRun,
    /// When it started.
    pub(in crate::run) at: SystemTime,
    /// How it ended; `None` while the journal lacks that.
    pub(in crate::run) end: Option<RunStatus>,
}

/// The children that executions started, oldest first.
#[derive(Debug, Default)]
pub(super) struct RecordedChildren {
    all: Vec<RecordedChild>,
    /// The indexes of those without an end, oldest first. Hashed with a key of this process, because ids may come from strangers.
    /// A second child of one id is one that its store refused.
    open: HashMap<RunId, SmallVec<[usize; 1]>, foldhash::quality::RandomState>,
}

impl RecordedChildren {
    pub(super) fn start(&mut self, child: ChildRun, at: SystemTime) {
        self.open.entry(child.run.clone()).or_default().push(self.all.len());
        self.all.push(RecordedChild { child, at, end: None });
    }

    fn end(&mut self, run: &RunId, status: RunStatus) {
        let Some(indexes) = self.open.get_mut(run) else { return };
        self.all[indexes.remove(0)].end = Some(status);
        if indexes.is_empty() {
            self.open.remove(run);
        }
    }

    /// The awaited children without an end, oldest first.
    fn awaited(&self) -> Vec<EndedChild> {
        let mut open: Vec<usize> = self.open.values().flatten().copied().collect();
        open.retain(|index| self.all[*index].child.awaited);
        open.sort_unstable();
        let run_of = |index: usize| self.all[index].child.run.clone();
        open.into_iter()
            .map(|index| EndedChild { run: run_of(index), status: RunStatus::Cancelled })
            .collect()
    }
}

impl RunState {
    /// The children that executions started, oldest first.
    pub(in crate::run) fn children(&self) -> &[RecordedChild] {
        self.rare.as_ref().map_or(&[], |rare| &rare.children.all)
    }

    /// Whether the journal has the child, and no end of it.
    pub(in crate::run) fn has_open_child(&self, run: &RunId) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.children.open.contains_key(run))
    }

    /// Children have ended. Refused if one of them is not open.
    #[cold]
    #[inline(never)]
    pub(super) fn end_children(&mut self, ended: &[EndedChild]) -> Applied {
        if !ended.iter().all(|child| child.status.is_ended() && self.has_open_child(&child.run)) {
            return Applied::Refused;
        }
        let children = &mut self.rare_mut().children;
        for EndedChild { run, status } in ended {
            children.end(run, *status);
        }
        self.note(1)
    }

    /// Cancels the awaited children that are open, of a run that has completed: they end with it. Returns them, for the record
    /// in the batch that has completed the run.
    pub(in crate::run) fn cancel_children(&mut self) -> Vec<EndedChild> {
        let Some(rare) = self.rare.as_ref().filter(|_| self.has_completed()) else { return Vec::new() };
        let cancelled = rare.children.awaited();
        if !cancelled.is_empty() {
            let _ = self.end_children(&cancelled);
        }
        cancelled
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::id::ExecutionId;
    use crate::run::bare_run::{BareRun, Done, Draft, WRITE};
    use crate::run::state::{Batch, EffectKind};

    fn started(run: &str, awaited: bool) -> Batch {
        let (workflow, step) = ("Prices".into(), "write".into());
        let child = ChildRun { run: run.into(), workflow, step, execution: WRITE, attempt: 1, awaited };
        Batch::ChildStarted { child, at: SystemTime::UNIX_EPOCH }
    }

    fn ended(ends: &[(&str, RunStatus)]) -> Vec<EndedChild> {
        ends.iter().map(|(run, status)| EndedChild { run: (*run).into(), status: *status }).collect()
    }

    fn ends(run: &BareRun) -> Vec<Option<RunStatus>> {
        run.state.children().iter().map(|child| child.end).collect()
    }

    /// A run whose first execution has started these children.
    fn parent(children: &[(&str, bool)]) -> BareRun {
        let mut run = BareRun::begun();
        for (child, awaited) in children {
            run.apply(1, started(child, *awaited));
        }
        run
    }

    // S82
    #[test]
    fn a_child_ends_once_and_with_an_end() {
        let mut run = parent(&[("a", true), ("b", true)]);
        for refused in [
            ended(&[("c", RunStatus::Failed)]),
            ended(&[("a", RunStatus::Failed), ("c", RunStatus::Failed)]),
            ended(&[("a", RunStatus::Waiting)]),
        ] {
            assert!(matches!(run.state.end_children(&refused), Applied::Refused), "{refused:?}");
        }
        assert_eq!(ends(&run), [None, None]);
        let position = run.state.position();
        run.apply(2, Batch::ChildrenEnded(ended(&[("b", RunStatus::Failed)])));
        assert_eq!(
            (ends(&run), run.state.position()),
            (vec![None, Some(RunStatus::Failed)], position.after(1))
        );
        assert!(run.state.has_open_child(&"a".into()) && !run.state.has_open_child(&"b".into()));
        assert!(matches!(run.state.end_children(&ended(&[("b", RunStatus::Completed)])), Applied::Refused));
    }

    // S82
    #[test]
    fn the_end_of_a_child_is_no_activity() {
        let mut run = parent(&[("a", false)]);
        let now = run.state.now();
        run.apply(9, Batch::ChildrenEnded(ended(&[("a", RunStatus::Completed)])));
        assert_eq!((run.state.now(), now), (now, Duration::from_secs(0)));
    }

    // S82
    #[test]
    fn awaited_children_that_are_open_end_with_a_run_that_completes() {
        let mut run = parent(&[("a", true), ("b", false), ("c", true), ("d", true)]);
        run.apply(2, Batch::ChildrenEnded(ended(&[("c", RunStatus::Failed)])));
        assert!(run.state.cancel_children().is_empty(), "the run goes on");
        run.apply(3, run.returned(WRITE, Draft));
        let mut effects = std::iter::from_fn(|| run.state.next_effect(None));
        let asks =
            |begins| if let EffectKind::Precondition(candidate) = begins { Some(candidate) } else { None };
        let candidate = effects.find_map(asks).expect("`send` has a precondition");
        run.apply(4, Batch::Answered { candidate, step: run.step("send"), answer: Ok(true) });
        run.apply(5, run.returned(ExecutionId(2), Done));
        let cancelled = ended(&[("a", RunStatus::Cancelled), ("d", RunStatus::Cancelled)]);
        assert_eq!(run.state.cancel_children(), cancelled);
        let [cancelled, failed] = [RunStatus::Cancelled, RunStatus::Failed].map(Some);
        assert_eq!(ends(&run), [cancelled, None, failed, cancelled]);
        assert!(run.state.cancel_children().is_empty());
    }

    // S82
    #[test]
    fn a_second_child_of_an_id_is_another_one() {
        let mut run = parent(&[("a", true), ("a", true)]);
        run.apply(2, Batch::ChildrenEnded(ended(&[("a", RunStatus::Completed), ("a", RunStatus::Failed)])));
        assert_eq!(ends(&run), [Some(RunStatus::Completed), Some(RunStatus::Failed)]);
    }
}

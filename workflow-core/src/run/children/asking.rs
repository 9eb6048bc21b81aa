//! Which attempts of a run still ask for its children, and which drops the children do not learn of yet.
//!
//! An attempt notes how often its execution had begun again when it began, and so do the children that it asks for:
//!
//! ```text
//! pause drops the execution ────────────┐
//! the store refuses what had dropped it ┴─▶ the execution begins again ─▶ it asks for its children by another number
//! ```
//!
//! A child is cancelled when the attempt that waits for it is dropped. As long as the journal lacks the batch that dropped the
//! execution, the child does not learn of that: a resume begins the execution again, and so does a rewind.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::id::ExecutionId;
use crate::run::DropSignal;
use crate::store::Position;

/// The executions of a run that begin again, and the drops that wait for the journal.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// How often the awaited children were detached.
    detachments: u32,
    /// The executions that were dropped as the children were detached, until the pause ends.
    dropped: Vec<ExecutionId>,
    /// How often executions began again because the store had refused the batches that dropped them.
    rewound: FxHashMap<ExecutionId, u32>,
    /// The drops that children do not learn of before the journal has reached this end.
    withheld: Option<(Position, Vec<Withheld>)>,
}

/// A drop that a child does not know yet.
#[derive(Debug)]
struct Withheld {
    execution: ExecutionId,
    drop_signal: Arc<DropSignal>,
}

impl Asking {
    /// How often the execution has begun again: the number of the attempt that is under way or begins next.
    pub(super) fn number(&self, execution: ExecutionId) -> u32 {
        self.detachments + self.rewound.get(&execution).copied().unwrap_or_default()
    }

    /// The number of the attempt under way of this execution. That of a dropped one began before the last detachment.
    pub(super) fn number_under_way(&self, execution: ExecutionId) -> u32 {
        self.number(execution) - u32::from(self.dropped.contains(&execution))
    }

    /// The awaited children are detached, since these executions were dropped and begin again.
    pub(super) fn detach(&mut self, dropped: &[ExecutionId]) {
        self.detachments += 1;
        self.dropped.extend_from_slice(dropped);
    }

    /// The dropped attempts are gone.
    pub(super) fn pause_ends(&mut self) {
        self.dropped = Vec::new();
    }

    /// Withholds drops until the journal has reached this end.
    pub(super) fn withhold(&mut self, until: Position) {
        self.withheld.get_or_insert_default().0 = until;
    }

    /// An attempt was dropped, which waited for a child. Returns the child's signal if the child is to learn of that now.
    pub(super) fn drops(
        &mut self,
        (execution, asked_in): (ExecutionId, u32),
        drop_signal: Arc<DropSignal>,
    ) -> Option<Arc<DropSignal>> {
        if asked_in != self.number(execution) {
            // The execution begins again, and asks for the child.
            return None;
        }
        let Some((_, withheld)) = &mut self.withheld else { return Some(drop_signal) };
        withheld.push(Withheld { execution, drop_signal });
        None
    }

    /// The store refused the batches that had dropped these executions: they begin again.
    pub(super) fn rewind(&mut self, again: &[ExecutionId], until: Position) {
        for execution in again {
            *self.rewound.entry(*execution).or_default() += 1;
        }
        if let Some((end, withheld)) = &mut self.withheld {
            *end = until;
            withheld.retain(|withheld| !again.contains(&withheld.execution));
        }
    }

    /// The drops that children learn of now that the journal has reached this end.
    pub(super) fn written(&mut self, end: Position) -> Vec<Arc<DropSignal>> {
        if self.withheld.as_ref().is_some_and(|(until, _)| *until <= end) { self.take() } else { Vec::new() }
    }

    /// All drops that children do not know yet.
    pub(super) fn take(&mut self) -> Vec<Arc<DropSignal>> {
        let withheld = self.withheld.take().map(|(_, withheld)| withheld);
        withheld.into_iter().flatten().map(|withheld| withheld.drop_signal).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: ExecutionId = ExecutionId(3);

    fn drops(asking: &mut Asking, asked_in: u32) -> bool {
        asking.drops((WAITS, asked_in), Arc::default()).is_some()
    }

    // S38
    #[test]
    fn a_child_learns_of_a_drop_once_the_journal_has_its_cause() {
        let mut asking = Asking::default();
        assert!(drops(&mut asking, 0), "nothing is withheld");
        asking.withhold(Position(7));
        assert!(!drops(&mut asking, 0));
        assert!(asking.written(Position(6)).is_empty());
        assert_eq!(asking.written(Position(7)).len(), 1);
        assert!(drops(&mut asking, 0));
    }

    // S38
    #[test]
    fn a_child_learns_of_no_drop_that_a_rewind_takes_back() {
        let mut asking = Asking::default();
        asking.withhold(Position(7));
        assert!(!drops(&mut asking, 0));
        asking.rewind(&[WAITS], Position(9));
        assert!(asking.written(Position(9)).is_empty());
        // The future of the dropped attempt goes later than the rewind comes.
        assert_eq!((asking.number(WAITS), asking.number(ExecutionId(4))), (1, 0));
        assert!(!drops(&mut asking, 0) && drops(&mut asking, 1));
    }

    // S61
    #[test]
    fn an_attempt_that_a_pause_dropped_has_the_number_before() {
        let mut asking = Asking::default();
        asking.detach(&[WAITS]);
        assert_eq!((asking.number(WAITS), asking.number_under_way(WAITS)), (1, 0));
        assert_eq!(asking.number_under_way(ExecutionId(4)), 1);
        asking.pause_ends();
        assert_eq!(asking.number_under_way(WAITS), 1);
    }
}

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
    /// How often executions begin again: because a pause dropped them, or a batch that the store then refused.
    again: FxHashMap<ExecutionId, u32>,
    /// Those of them whose dropped attempts may still run.
    dropped: Vec<ExecutionId>,
    /// A child does not learn of a drop before the journal has this end.
    until: Position,
    /// The end of the journal in the store.
    written: Position,
    withheld: Vec<Withheld>,
}

/// A drop that a child does not know yet.
#[derive(Debug)]
struct Withheld {
    execution: ExecutionId,
    /// The child learns of it once the journal has this end.
    until: Position,
    drop_signal: Arc<DropSignal>,
}

impl Asking {
    /// How often the execution has begun again: the number of the attempt that is under way or begins next.
    pub(super) fn number(&self, execution: ExecutionId) -> u32 {
        self.again.get(&execution).copied().unwrap_or_default()
    }

    /// The number of the attempt under way of this execution. A dropped one began before the execution began again.
    pub(super) fn number_under_way(&self, execution: ExecutionId) -> u32 {
        self.number(execution) - u32::from(self.dropped.contains(&execution))
    }

    /// These executions were dropped and begin again. Their children learn of no drop.
    pub(super) fn begin_again(&mut self, executions: &[ExecutionId]) {
        for execution in executions {
            *self.again.entry(*execution).or_default() += 1;
        }
        // One that is dropped twice has its last attempt once.
        self.dropped.retain(|execution| !executions.contains(execution));
        self.dropped.extend_from_slice(executions);
        self.withheld.retain(|withheld| !executions.contains(&withheld.execution));
    }

    /// The dropped attempts are gone.
    pub(super) fn attempts_gone(&mut self) {
        self.dropped = Vec::new();
    }

    /// Withholds drops from here on, until the journal has this end.
    pub(super) fn withhold(&mut self, until: Position) {
        self.until = until;
    }

    /// The causes of all drops so far end here in the journal.
    pub(super) fn withheld_until(&mut self, end: Position) {
        self.until = end;
        self.withheld.iter_mut().for_each(|withheld| withheld.until = end);
    }

    /// An attempt was dropped, which waited for children. Returns the signals of the children that are to learn of that now.
    pub(super) fn drops(
        &mut self,
        (execution, asked_in): (ExecutionId, u32),
        signals: Vec<Arc<DropSignal>>,
    ) -> Vec<Arc<DropSignal>> {
        if asked_in != self.number(execution) {
            // The execution begins again, and asks for the children.
            return Vec::new();
        }
        if self.until <= self.written {
            return signals;
        }
        let until = self.until;
        self.withheld.extend(signals.into_iter().map(|drop_signal| Withheld {
            execution,
            until,
            drop_signal,
        }));
        Vec::new()
    }

    /// The drops that children learn of now that the journal has this end.
    pub(super) fn written(&mut self, end: Position) -> Vec<Arc<DropSignal>> {
        self.written = end;
        self.withheld.extract_if(.., |withheld| withheld.until <= end).map(|it| it.drop_signal).collect()
    }

    /// All drops that children do not know yet.
    pub(super) fn take(&mut self) -> Vec<Arc<DropSignal>> {
        std::mem::take(&mut self.withheld).into_iter().map(|withheld| withheld.drop_signal).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: ExecutionId = ExecutionId(3);

    fn drops(asking: &mut Asking, asked_in: u32) -> bool {
        !asking.drops((WAITS, asked_in), vec![Arc::default()]).is_empty()
    }

    // S38
    #[test]
    fn a_child_learns_of_a_drop_once_the_journal_has_its_cause() {
        let mut asking = Asking::default();
        assert!(drops(&mut asking, 0), "nothing is withheld");
        asking.withhold(Position(7));
        assert!(!drops(&mut asking, 0));
        assert!(asking.written(Position(6)).is_empty());
        asking.withhold(Position(9));
        assert!(!drops(&mut asking, 0));
        assert_eq!(asking.written(Position(7)).len(), 1, "a later drop does not delay an earlier one");
        assert_eq!(asking.written(Position(9)).len(), 1);
        assert!(drops(&mut asking, 0));
    }

    // S38
    #[test]
    fn a_child_learns_of_no_drop_that_a_rewind_takes_back() {
        let mut asking = Asking::default();
        asking.withhold(Position(7));
        assert!(!drops(&mut asking, 0));
        asking.begin_again(&[WAITS]);
        asking.withheld_until(Position(9));
        assert!(asking.written(Position(9)).is_empty());
        // The future of the dropped attempt goes later than the rewind comes.
        assert_eq!((asking.number(WAITS), asking.number(ExecutionId(4))), (1, 0));
        assert!(!drops(&mut asking, 0) && drops(&mut asking, 1));
    }

    // S31
    #[test]
    fn a_drop_without_a_known_end_of_its_cause_waits_for_that() {
        let mut asking = Asking::default();
        asking.withhold(Position(u64::MAX));
        assert!(!drops(&mut asking, 0));
        assert!(asking.written(Position(8)).is_empty());
        asking.withheld_until(Position(9));
        assert_eq!(asking.written(Position(9)).len(), 1);
        assert!(drops(&mut asking, 0));
    }

    // S61
    #[test]
    fn an_attempt_that_a_pause_dropped_has_the_number_before() {
        let mut asking = Asking::default();
        for again in 1..3 {
            asking.begin_again(&[WAITS]);
            assert_eq!((asking.number(WAITS), asking.number_under_way(WAITS)), (again, again - 1));
            assert_eq!(asking.number_under_way(ExecutionId(4)), 0);
        }
        asking.attempts_gone();
        assert_eq!(asking.number_under_way(WAITS), 2);
    }
}

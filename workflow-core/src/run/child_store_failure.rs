//! Children whose end is not known: the child's store failed, or this program cannot resume the child.
//!
//! The end becomes known only when another engine drives the child. So the parent's step learns of no end, and
//! the parent stops too and leaves its journal open.

use super::RunShared;
use crate::id::ExecutionId;
use crate::outcome::{RunError, StartError};
use crate::store::StoreError;

/// The store failure behind a child's end; `None` if the child has a real end.
pub(super) fn failure_of(error: &RunError) -> Option<StoreError> {
    match error {
        RunError::Store { source } | RunError::Start(StartError::Store(source)) => Some(source.clone()),
        RunError::Conflict { .. }
        | RunError::Incompatible { .. }
        | RunError::Start(StartError::Elsewhere { .. }) => Some(StoreError::unavailable(error.clone())),
        _ => None,
    }
}

impl RunShared {
    /// Whether the run stops and leaves its journal open, after this end of a child or an earlier signal. The
    /// step then learns of no end. A run without a journal continues, since nothing could resume it.
    pub(crate) fn stop_on_child_store_failure(&self, error: &RunError) -> bool {
        // The child's task is gone, but no store has failed, so this run's own journal is sound: the run
        // detaches.
        if self.common.is_durable && matches!(error, RunError::Detached) {
            self.signal_detach();
        }
        self.common.is_durable && (self.signals.child_ended(error) || self.stops())
    }

    /// The same of a child that this execution asked for when it had begun again so often. If it has done so since, the
    /// attempt that asked is dropped.
    pub(crate) fn stop_on_failure_of_child(
        &self,
        error: &RunError,
        (execution, asked_in): (ExecutionId, u32),
    ) -> bool {
        self.common.is_durable && asked_in != self.asked_in(execution)
            || self.stop_on_child_store_failure(error)
    }

    /// Whether the run stops and leaves its journal open.
    pub(crate) fn stops(&self) -> bool {
        self.common.is_durable && (self.is_to_detach() || self.signals.child_store_failure().is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::EngineClock;
    use crate::engine::fixtures::greeter;
    use crate::run::{EngineParts, RunExtras};

    fn run(is_durable: bool) -> RunShared {
        let common = EngineParts { is_durable, ..EngineParts::without_engine(EngineClock::default()) };
        let table = Arc::clone(&greeter().table);
        RunShared::new("r".into(), None, None, table, Arc::new(common), RunExtras::default())
    }

    fn store_failed() -> RunError {
        RunError::Store { source: StoreError::ShutDown }
    }

    #[test]
    fn ends_that_say_nothing_of_the_child_are_failures_of_its_store() {
        let conflict = RunError::Conflict { run: "c".into() };
        let elsewhere = StartError::Elsewhere { run: "c".into(), engine: crate::id::EngineId::generate() };
        for error in [store_failed(), conflict, RunError::Start(elsewhere)] {
            assert!(failure_of(&error).is_some(), "{error}");
        }
        assert!(failure_of(&RunError::Start(StartError::NoRuntime)).is_none());
    }

    #[test]
    fn a_run_with_a_journal_stops_after_such_a_child() {
        let run = run(true);
        assert!(!run.stop_on_child_store_failure(&RunError::Start(StartError::NoRuntime)) && !run.stops());
        assert!(run.stop_on_child_store_failure(&store_failed()) && run.stops());
        assert!(
            run.stop_on_child_store_failure(&RunError::Start(StartError::NoRuntime)),
            "whatever else ends"
        );
        assert!(!run.is_to_detach());
    }

    #[test]
    fn a_run_whose_childs_task_is_gone_is_detached() {
        let run = run(true);
        assert!(run.stop_on_child_store_failure(&RunError::Detached) && run.is_to_detach());
    }

    #[test]
    fn a_run_without_a_journal_continues() {
        let run = run(false);
        assert!(
            !run.stop_on_child_store_failure(&store_failed())
                && !run.stop_on_child_store_failure(&RunError::Detached)
        );
    }
}

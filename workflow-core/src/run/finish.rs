//! The end of a run's task: its parts stop in order, the report is made, and handles and observers learn of
//! the end.

use std::time::Duration;

use super::child_store_failure::failure_of;
use super::commit::Committer;
use super::drive::{Phase, Run};
use super::ending::EndedRun;
use super::journal::Journal;
use super::shared::RunShared;
use super::view::{EndedState, FinalState};
use crate::event::AnyEvent;
use crate::explain::StallReport;
use crate::id::RunStatus;
use crate::observe::Observed;
use crate::outcome::RunError;
use crate::scheduler::End;
use crate::store::StoreError;

/// The result of an ended run.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(super) status: RunStatus,
    pub(crate) outcome: Result<AnyEvent, RunError>,
    /// The state for reports and explanations; `None` if the run's task is gone.
    pub(crate) kept: Option<EndedState>,
}

impl Finished {
    /// Why the run stopped here although its journal is open; `None` if it has ended.
    pub(crate) fn left_by(&self) -> Option<StoreError> {
        match &self.outcome {
            Err(RunError::Detached) => Some(StoreError::ShutDown),
            Err(error) => failure_of(error),
            Ok(_) => None,
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.status == RunStatus::Cancelled
    }
}

impl From<&End> for RunStatus {
    fn from(end: &End) -> Self {
        match end {
            End::Completed(_) => Self::Completed,
            End::Stalled => Self::Stalled,
            End::Cancelled => Self::Cancelled,
            End::TimedOut => Self::TimedOut,
            End::Failed(_)
            | End::PreconditionFailed(_)
            | End::LogFull
            | End::TooManyExecutions
            | End::TooManyEvents(_)
            | End::TooManyItems(_)
            | End::AppendFailed => Self::Failed,
        }
    }
}

impl Run {
    /// Stops the run: children end first, then the journal gets the end, then everyone learns of it.
    pub(super) async fn end(&mut self) {
        // A child that joins late finds the registry closed.
        let _ = self.driver.children();
        self.detach_children();
        self.stop(None);
        let Committer { state, journal, .. } = &self.driver.committer;
        let (has_journal, is_resumable) = (journal.is_some(), self.is_resumable());
        if !has_journal && matches!(state.end(), Some(End::Completed(_))) {
            self.note_last_children();
        }
        let Committer { shared, state, .. } = &self.driver.committer;
        // Most runs have neither, so the task has no room for this future.
        if shared.children.get().is_some() || shared.may_have_orphans() {
            let cancelled = matches!(state.end(), Some(End::Cancelled));
            // Children that clean up may need it.
            self.driver.admission.give_up_permit();
            Box::pin(super::child_records::end_before(shared, cancelled, is_resumable, None)).await;
        }
        if has_journal {
            Box::pin(self.close_journal()).await;
        }
        self.note_last_children();
        // S39: its executions may begin again as soon as somebody learns of this end.
        if self.is_resumable() && self.driver.lingers() {
            self.driver.admission.give_up_permit();
            let RunShared { id, common, .. } = &*self.driver.committer.shared;
            Box::pin(common.lingering.gone(id)).await;
        }
        let can_be_redriven = self.can_be_redriven();
        self.finish();
        let shared = &self.driver.committer.shared;
        if shared.contexts.are_used() && !self.is_resumable() && !can_be_redriven {
            Box::pin(shared.clear_contexts()).await;
        }
        self.driver.admission.give_up_permit();
    }

    /// Notes the ends of children up to the run's own, for its report. Later ones are not known, as in its journal.
    #[inline]
    fn note_last_children(&mut self) {
        // Most runs have none.
        if self.driver.committer.shared.children.get().is_some() {
            self.note_ends_of_children();
        }
    }

    #[cold]
    fn note_ends_of_children(&mut self) {
        self.driver.record_children_and_ends();
        let Committer { shared, state, .. } = &self.driver.committer;
        if let Some(registry) = shared.children.get() {
            registry.parent_ended(matches!(state.end(), Some(End::Completed(_))) && !self.is_resumable());
        }
    }

    /// Whether another process may resume the run. Its children and contexts then stay as they are.
    fn is_resumable(&self) -> bool {
        self.phase == Phase::Detached || self.driver.committer.journal_error().is_some()
    }

    /// Whether the run may continue after this end (S39). Its contexts then stay until it completes or is removed.
    fn can_be_redriven(&self) -> bool {
        let Committer { shared, state, journal, .. } = &self.driver.committer;
        let is_complete = matches!(state.end(), Some(End::Completed(_)));
        journal.is_some() && shared.parent().is_none() && !is_complete
    }

    /// Signals the detach to children of a run that another process resumes. Children receive the detach
    /// signal before the cancel signal, which they get when the executions that wait for them are dropped. If another engine
    /// has the run, executions under way ask there for their independent children too.
    fn detach_children(&self) {
        let Committer { shared, state, .. } = &self.driver.committer;
        let Some(registry) = shared.children.get().filter(|_| self.is_resumable()) else { return };
        let is_lost = matches!(self.driver.committer.journal_error(), Some(RunError::Conflict { .. }));
        registry.leave(&if is_lost { state.trace.running() } else { Vec::new() });
    }

    /// Refuses further input and drops executions in flight. After this, only the end of the run and children
    /// that have started still enter the journal.
    ///
    /// `ended_at`: when an earlier process ended the run. What is dropped is dropped at the time of `RunEnded`.
    pub(super) fn stop(&mut self, ended_at: Option<Duration>) {
        let Committer { shared, state, telemetry, journal, clock, .. } = &mut self.driver.committer;
        telemetry.compare(state);
        // The end went into the journal with the stop event. Any other end goes there next.
        let is_written = journal.as_deref().is_none_or(Journal::has_ended);
        let is_complete = matches!(state.end(), Some(End::Completed(_)));
        let ended_at = ended_at.or((is_complete && is_written).then(|| state.now()));
        // A completed run takes nothing more: a late completion is dropped at its end.
        clock.now = clock.now.min(ended_at.unwrap_or(clock.now));
        if let Some(mut check) = telemetry.check.take() {
            check.finish();
        }
        // Callers that still wait learn how the run ended.
        shared.signals.mailbox.discard();
        // Completions that wait for their turn come too late: the run refuses and reports them (S28).
        while let Some(completion) = self.driver.executor.next_completed() {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            self.driver.complete(completion, &mut 0, &mut cx);
        }
        let Committer { shared, state, clock, .. } = &mut self.driver.committer;
        // Sealed before executions are dropped, so that their display stands (S28).
        shared.shown.seal();
        shared.cancellations.close();
        let running = state.drop_running(ended_at.unwrap_or(clock.now));
        if !running.is_empty() {
            self.driver.drop_executions(running);
        }
        let continues = self.is_resumable() || self.can_be_redriven();
        self.driver.drop_in_flight(continues);
        self.driver.committer.shared.contexts.close();
    }

    /// Sets the run's result, from its state and its journal's failure.
    fn finish(&mut self) {
        let Some(end) = self.driver.committer.state.end() else { return };
        let unwritten = self.driver.committer.journal_error();
        let status = match unwritten {
            Some(_) => RunStatus::Failed,
            None if self.phase == Phase::Detached => RunStatus::Cancelled,
            None => RunStatus::from(end),
        };
        let outcome = match unwritten {
            Some(error) => Err(error),
            // It may have ended and cleaned up when it was detached.
            None if self.phase == Phase::Detached => Err(RunError::Detached),
            None => self.ended_run().outcome(end, || self.stall()),
        };
        self.set_result(status, outcome);
    }

    /// Sets the result of a run that an earlier process ended, from the last record of its journal.
    pub(super) fn finish_as(&mut self, status: RunStatus, error: Option<&str>, asked: Option<&str>) {
        let ending = self.ended_run();
        let outcome = match ending.state.end().filter(|end| RunStatus::from(*end) == status) {
            Some(End::Cancelled) => Err(RunError::Cancelled { reason: error.unwrap_or("cancelled").into() }),
            Some(end) => ending.outcome(end, || self.stall()),
            None => Err(ending.past(status, error.unwrap_or_default(), asked)),
        };
        self.set_result(status, outcome);
    }

    /// Writes the rest of the journal, and then the end of the run.
    async fn close_journal(&mut self) {
        self.driver.record_last_children();
        std::future::poll_fn(|cx| self.driver.poll_flush(cx)).await;
        let why = self.ended_run().why();
        self.driver.committer.queue_end(why);
        std::future::poll_fn(|cx| self.driver.poll_flush(cx)).await;
    }

    pub(super) fn ended_run(&self) -> EndedRun<'_> {
        let Committer { shared, state, .. } = &self.driver.committer;
        EndedRun {
            state,
            cancelled: self.driver.at_end.as_ref().and_then(|at_end| at_end.cancel_reason.as_ref()),
            // The journal of a run that cleans up has it. The engine's may be another by now.
            limit: state.timed_out_after().or(shared.time_limit()).unwrap_or_default(),
            limit_of_engine: shared.common.settings.timeout,
        }
    }

    fn stall(&self) -> StallReport {
        self.driver.view().explain().stall()
    }

    /// Keeps the state for reports and explanations, and sets the result.
    fn set_result(&mut self, status: RunStatus, outcome: Result<AnyEvent, RunError>) {
        let Committer { shared, state, clock, .. } = &mut self.driver.committer;
        shared.shown.close(status, is_left(&outcome));
        let kept =
            Some(EndedState::new(FinalState { status, state: state.take(), began_at: clock.began_at }));
        // Set already if the engine has ended without this task, which was blocked.
        let _ = shared.finished.set(Box::new(Finished { status, outcome, kept }));
    }
}

/// Whether the run may continue later: it was detached, or its store failed and nobody knows its end.
pub(super) fn is_left(outcome: &Result<AnyEvent, RunError>) -> bool {
    let is_open = |error: &RunError| matches!(error, RunError::Detached) || failure_of(error).is_some();
    outcome.as_ref().is_err_and(is_open)
}

/// Tells handles, children, parent and observers of the end. If the run's task is gone, the end is
/// "abandoned".
pub(super) fn announce(run: &RunShared) {
    let finished = finished(run);
    let status = finished.status;
    run.shown.close(status, is_left(&finished.outcome));
    run.contexts.close();
    if let Some(registry) = run.children.get() {
        registry.over();
    }
    run.cancellations.close();
    if run.has_begun() {
        run.tell(|| Observed::RunEnded { status });
    }
    super::child_records::notify_parent(run, status);
    run.status.set(status);
}

/// The run's result. Sets "abandoned" if the task is gone without one.
pub(super) fn finished(run: &RunShared) -> &Finished {
    let abandoned =
        || Box::new(Finished { status: RunStatus::Cancelled, outcome: Err(RunError::Detached), kept: None });
    run.finished.get_or_init(abandoned)
}

//! How a run ends: what it ended with, its report, and who is told.

use std::sync::Arc;

use super::RunStatus;
use super::drive::Run;
use super::shared::RunShared;
use super::view::{Kept, Past};
use crate::error::{RunError, SharedError, StepError};
use crate::event::AnyEvent;
use crate::explain::Runaway;
use crate::id::ExecutionId;
use crate::observe::Observed;
use crate::scheduler::{CandidateId, End};
use crate::table::StepIndex;

/// What is kept of an ended run.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(super) status: RunStatus,
    pub(crate) outcome: Result<AnyEvent, RunError>,
    /// Nothing for a run whose task is gone.
    pub(crate) kept: Option<Kept>,
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
            | End::AppendFailed => Self::Failed,
        }
    }
}

impl Run {
    /// Stops the run: its children end first, its journal gets what there is, and then everybody is told.
    pub(super) async fn end(&mut self) {
        self.leave_children();
        self.stop();
        // Most runs have neither, and none has them for long: the task has no room for these.
        if self.has_children() {
            Box::pin(self.end_children()).await;
        }
        if self.journal.is_some() {
            Box::pin(self.close_journal()).await;
        }
        self.finish();
        // A run that goes on elsewhere, or may, needs its contexts.
        if self.shared.contexts.are_used() && self.journal_error().is_none() && !self.is_detached() {
            Box::pin(self.shared.clear_contexts()).await;
        }
        self.admission.leave();
    }

    /// Refuses what is left and drops what runs: from here on nothing happens but what the journal has of it.
    pub(super) fn stop(&mut self) {
        self.telemetry.compare(&self.state);
        if let Some(mut check) = self.telemetry.check.take() {
            check.finish();
        }
        // Whoever still asks is told how the run ended.
        self.shared.signals.mailbox.discard();
        while let Some(completion) = self.executor.next_completed() {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            self.complete(completion, &mut 0, &mut cx);
        }
        // Sealed before executions are dropped: what they showed stands (S28).
        self.shared.shown.seal();
        self.shared.cancellations.close();
        let running = self.state.trace.running();
        if !running.is_empty() {
            self.drop_running(running);
        }
        self.executor.clear();
        self.shared.contexts.close();
    }

    fn drop_running(&mut self, running: Vec<ExecutionId>) {
        let unbegun = self.unbegun();
        for execution in running {
            let now = self.clock.now;
            self.state.trace.dropped(execution, now);
            self.drop_execution(execution, &unbegun);
        }
    }

    /// Keeps what people may ask for.
    pub(super) fn finish(&mut self) {
        let Some(end) = self.state.end().cloned() else { return };
        let unwritten = self.journal_error();
        let status = match unwritten {
            Some(_) => RunStatus::Failed,
            None if self.is_detached() => RunStatus::Cancelled,
            None => RunStatus::from(&end),
        };
        self.shared.shown.close(status);
        let outcome = unwritten.map_or_else(|| self.outcome(&end), Err);
        // Only this task finishes the run.
        let finished = Finished { status, outcome, kept: Some(self.keep(status)) };
        let _ = self.shared.finished.set(Box::new(finished));
    }

    /// The same for a run that ended earlier, as its journal says.
    pub(super) fn finish_as(&mut self, status: RunStatus, error: Option<&str>, asked: Option<&str>) {
        self.shared.shown.close(status);
        let end = self.state.end().cloned().filter(|end| RunStatus::from(end) == status);
        let outcome = match end {
            Some(End::Cancelled) => Err(RunError::Cancelled { reason: error.unwrap_or("cancelled").into() }),
            Some(end) => self.outcome(&end),
            None => Err(self.past(status, error.unwrap_or_default(), asked)),
        };
        let kept = Some(self.keep(status));
        let _ = self.shared.finished.set(Box::new(Finished { status, outcome, kept }));
    }

    /// What only the journal's last record tells of: that a precondition failed, that of this step.
    fn past(&self, status: RunStatus, error: &str, asked: Option<&str>) -> RunError {
        match asked.and_then(|step| self.host.table.step_named(step)) {
            Some(step) => self.asked_in_vain(step, &StepError::permanent(error.to_owned())),
            None => RunError::Past { status, error: error.into() },
        }
    }

    fn outcome(&self, end: &End) -> Result<AnyEvent, RunError> {
        Err(match end {
            End::Completed(seq) => {
                let stop = self.state.log.get(*seq).map(|record| record.event.clone());
                return stop.ok_or(RunError::Abandoned);
            }
            End::Failed(executions) => self.failure(executions),
            End::PreconditionFailed(candidate) => self.precondition_error(*candidate),
            End::Stalled => RunError::Stalled(Box::new(self.view().explain().stall())),
            End::Cancelled => RunError::Cancelled { reason: self.why_cancelled() },
            End::TimedOut => RunError::TimedOut { after: self.alarms.limit() },
            End::LogFull => RunError::LogFull { limit: self.state.limits().events },
            End::TooManyExecutions => self.ran_away(),
            // Said by the journal.
            End::AppendFailed => RunError::Abandoned,
        })
    }

    pub(super) fn why_cancelled(&self) -> Arc<str> {
        self.cancel_reason.clone().unwrap_or_else(|| "cancelled".into())
    }

    fn ran_away(&self) -> RunError {
        let Runaway { looping, rounds, busiest, executions } = Runaway::of(&self.state.scheduler);
        let limit = self.state.limits().executions;
        RunError::TooManyExecutions { limit, looping, rounds, busiest, executions }
    }

    fn failure(&self, executions: &[ExecutionId]) -> RunError {
        match executions {
            [execution] => self.step_failed(*execution),
            many => RunError::BranchesFailed {
                failures: many.iter().filter_map(|execution| self.state.branch_failure(*execution)).collect(),
            },
        }
    }

    fn step_failed(&self, execution: ExecutionId) -> RunError {
        let (Some(step), Some(error)) = (self.state.step_of(execution), self.state.failure_of(execution))
        else {
            return RunError::Abandoned;
        };
        let step = self.step_name(step);
        let (attempts, class) = (self.state.trace.attempts_made(execution), error.class());
        RunError::StepFailed { step, execution, attempts, class, source: SharedError::of(error) }
    }

    fn precondition_error(&self, candidate: CandidateId) -> RunError {
        let failure = self.state.precondition_failure(candidate);
        failure.map_or(RunError::Abandoned, |(step, error)| self.asked_in_vain(*step, error))
    }

    /// What nothing else in the journal says of the end: the step whose precondition failed, and the reason.
    pub(super) fn why_ended(&self) -> (Option<Arc<str>>, Option<String>) {
        match self.state.end() {
            Some(End::Cancelled) => (None, Some(self.why_cancelled().to_string())),
            Some(End::PreconditionFailed(candidate)) => {
                let failure = self.state.precondition_failure(*candidate);
                failure.map(|(step, error)| (self.step_name(*step), error.to_string())).unzip()
            }
            _ => (None, None),
        }
    }

    fn asked_in_vain(&self, step: StepIndex, error: &StepError) -> RunError {
        let precondition = &self.host.table.step(step).precondition;
        let precondition = precondition.as_ref().map_or_else(|| "".into(), |row| Arc::clone(&row.name));
        RunError::PreconditionFailed {
            step: self.step_name(step),
            precondition,
            source: SharedError::of(error),
        }
    }

    pub(super) fn step_name(&self, step: StepIndex) -> Arc<str> {
        Arc::clone(&self.host.table.step(step).name)
    }

    /// What reports and explanations are made of, if anybody asks.
    fn keep(&mut self, status: RunStatus) -> Kept {
        Kept::new(Past { status, state: self.state.take(), began_at: self.clock.began_at })
    }
}

/// Tells everyone of the end, when the run's task is done with it: of how the run finished, or that the task
/// is gone before it did.
pub(super) fn announce(run: &RunShared) {
    let status = finished(run).status;
    run.shown.close(status);
    run.contexts.close();
    if let Some(family) = run.children.get() {
        family.over();
    }
    run.cancellations.close();
    if run.has_begun() {
        run.tell(|| Observed::RunEnded { status });
    }
    super::children::part(run, status);
    run.status.set(status);
}

/// How the run finished, or that its task is gone before it did.
pub(super) fn finished(run: &RunShared) -> &Finished {
    let abandoned =
        || Box::new(Finished { status: RunStatus::Cancelled, outcome: Err(RunError::Abandoned), kept: None });
    run.finished.get_or_init(abandoned)
}

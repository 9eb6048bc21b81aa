//! The clean-up of a run: its work between its end and its clean-up steps (S31).
//!
//! ```text
//!  end ─▶ executions are dropped ─▶ CleanUpStarted ─▶ children end ─▶ clean-up steps ─▶ RunEnded
//!         └───────── begin_clean_up ──────────────┘                    driven like any others
//!                                                                      each within its time
//! ```
//!
//! The scheduler decides which steps run, in which order. The journal has the plan, so that a resume continues the
//! clean-up, also with a table that has further clean-up steps by now.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::before_attempt::{ErrorOf, in_doubt_unless_returned};
use super::commit::Committer;
use super::drive::Run;
use super::driver::Driver;
use super::ending::EndedRun;
use super::executor::Executor;
use super::in_flight::{Completion, DropSignal, Due};
use super::journal::Journal;
use super::state::{Batch, CleanUpStart, RunState, Stop, TraceState};
use super::view::View;
use crate::error::StepError;
use crate::id::{ExecutionId, RunStatus};
use crate::observe::Observed;
use crate::report::{CleanUpReport, CleanUpResult, CleanUpStep, Ending, FailedExecution};
use crate::retry::NotRetried;
use crate::scheduler::{CleanUp, CleanUpState, End, OpenStep, PlannedStep};
use crate::store::{ReachedLimit, Record};

/// The driver's part of the end of its run.
#[derive(Default)]
pub(super) struct AtEnd {
    /// The reason of the cancel request that ended the run, if one did.
    pub(super) cancel_reason: Option<Arc<str>>,
    /// The ends that the clean-up steps wait for: of the children, and of dropped executions.
    children: Option<BoxFuture<'static, ()>>,
    /// Whether the run cleans up.
    cleans_up: bool,
    /// The time of the clean-up step that is open, once that counts.
    time: Option<StepTime>,
}

/// The time of one clean-up step.
struct StepTime {
    /// The place of the step in the clean-up.
    place: usize,
    limit: Duration,
    /// Drops the wait for its end.
    wait: Arc<DropSignal>,
}

impl Run {
    /// Whether the run has ended and its clean-up steps are to run.
    pub(super) fn is_to_clean_up(&self) -> bool {
        self.driver.committer.state.scheduler.is_to_clean_up()
    }

    /// Drops what runs, and journals that clean-up begins. Its steps are effects of that record, and begin once the
    /// children have ended.
    pub(super) fn begin_clean_up(&mut self) {
        // A run that waited does not wait any more.
        self.driver.committer.note_running();
        self.driver.withhold_drops();
        self.drop_work();
        if self.driver.committer.journal_error().is_some() {
            let Committer { state, clock, .. } = &mut self.driver.committer;
            let _ = state.apply(Batch::Stopped(Stop::JournalFailed), clock.now);
            return;
        }
        let start = self.ended_run().clean_up_start();
        let _ = self.driver.commit(Batch::CleanUpStarted(Box::new(start)), None);
        self.driver.withheld_until_here();
        self.clean_up();
    }

    /// Ends the children, tells executions why the run ends, and bounds the time of the first step. Also for a run that
    /// was resumed in its clean-up: the time of the open step counts anew.
    pub(super) fn clean_up(&mut self) {
        self.note_ending();
        self.driver.admission.forget_inbox();
        let Committer { shared, state, .. } = &self.driver.committer;
        shared.status.set(RunStatus::CleaningUp);
        if let Some(end) = state.end() {
            shared.tell(|| Observed::CleanUpStarted { status: end.into() });
        }
        let children = self.driver.end_children();
        let at_end = self.driver.at_end.get_or_insert_default();
        (at_end.children, at_end.cleans_up) = (children, true);
        if !self.driver.ends_children() && self.driver.admission.is_admitted() {
            self.driver.bound_clean_up();
        }
    }

    /// Notes why the run ends, for its clean-up steps and its report.
    pub(super) fn note_ending(&self) {
        let Committer { shared, state, .. } = &self.driver.committer;
        if state.scheduler.clean_up().is_some_and(CleanUp::has_begun)
            && let Some(ending) = self.ended_run().ending()
        {
            // A redrive of the clean-up alone is not one of them: its steps have the keys that they had.
            let before = state.lives.redrives().iter().filter(|redrive| !redrive.clean_up);
            shared.signals.set_ending(ending, before.count());
        }
    }

    /// Drops everything in flight. Results that wait for their turn come too late: the run refuses and reports them
    /// (S28).
    fn drop_work(&mut self) {
        let Committer { telemetry, state, .. } = &mut self.driver.committer;
        telemetry.compare(state);
        while let Some(completion) = self.driver.executor.next_completed() {
            // An error that comes too late is no failure of the run.
            if matches!(completion, Completion::Execution(_, Ok(_))) {
                let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                self.driver.complete(completion, &mut 0, &mut cx);
            }
        }
        self.driver.committer.close_requests();
        // Sealed before executions are dropped, so that their display stands.
        self.driver.committer.shared.shown.seal();
        let running = self.driver.committer.state.trace.running();
        if !running.is_empty() {
            self.driver.drop_executions(running);
        }
        self.driver.stop_counting_time();
        self.driver.drop_in_flight(true);
        self.driver.executor = Executor::default();
        self.driver.alarms.forget();
        self.driver.committer.shared.shown.unseal();
    }
}

impl Driver {
    /// Ends the children of executions that were dropped, which clean up before their parent does, and then waits for aborted
    /// tasks. The run gives up its permit meanwhile, since theirs may depend on it. Returns the ends, if there are any.
    fn end_children(&mut self) -> Option<BoxFuture<'static, ()>> {
        let Committer { shared, state, .. } = &self.committer;
        if self.children().is_none() && !shared.may_have_orphans() {
            return None;
        }
        // An earlier process may have begun children for its clean-up steps.
        let before = state.scheduler.clean_up().and_then(CleanUp::first);
        let (run, cancelled) = (Arc::clone(shared), matches!(state.end(), Some(End::Cancelled)));
        self.admission.give_up_permit();
        Some(Box::pin(async move {
            super::child_records::end_before(&run, cancelled, false, before).await;
            // A step that still has its thread may ask for a child, and gets none.
            run.common.lingering.gone(&run.id).await;
            if let Some(registry) = run.children.get() {
                registry.reopen();
            }
        }))
    }

    /// Whether the clean-up steps wait for the ends of children.
    #[inline]
    pub(super) fn ends_children(&self) -> bool {
        self.at_end.as_ref().is_some_and(|at_end| at_end.children.is_some())
    }

    /// Polls the ends of the children that clean-up waits for. They end once the store has that the run cleans up: before,
    /// a resume would go on with them. After a failed write it does.
    #[inline]
    pub(super) fn poll_children(&mut self, cx: &mut Context<'_>) {
        if let Some(at_end) = &mut self.at_end
            && let Some(children) = &mut at_end.children
            && self.committer.journal.as_deref().is_none_or(Journal::is_written)
            && children.as_mut().poll(cx).is_ready()
        {
            at_end.children = None;
        }
    }

    /// Bounds the time of the open clean-up step from here on, unless it is bounded already (S85).
    #[inline]
    pub(super) fn bound_clean_up(&mut self) {
        if self.at_end.as_ref().is_some_and(|at_end| at_end.cleans_up) {
            self.bound_clean_up_step();
        }
    }

    #[cold]
    fn bound_clean_up_step(&mut self) {
        let open = self.committer.state.scheduler.clean_up().and_then(CleanUp::open_step);
        let (Some(OpenStep { place, step, .. }), Some(at_end)) = (open, &mut self.at_end) else { return };
        if at_end.time.as_ref().is_some_and(|time| time.place == place) {
            return;
        }
        self.executor.drop_wait(at_end.time.take().map(|time| time.wait));
        let common = &self.committer.shared.common;
        let limit = self.host.clean_up_time(step, common.settings.clean_up);
        let wait = self.executor.wait(Due::CleanUp, common.clock.sleep(limit));
        at_end.time = Some(StepTime { place, limit, wait });
    }

    /// The time of a clean-up step is over: drops its execution, and fails it. The next step has its turn.
    #[cold]
    pub(super) fn clean_up_time_is_over(&mut self) {
        let open = self.committer.state.scheduler.clean_up().and_then(CleanUp::open_step);
        let time = self.at_end.as_mut().and_then(|at_end| at_end.time.take());
        let (Some(OpenStep { place, step, state }), Some(StepTime { place: of, limit, .. })) = (open, time)
        else {
            return;
        };
        if place != of {
            return;
        }
        let error = StepError::transient(format!("its time for clean-up was over after {limit:?}"));
        match state {
            CleanUpState::Executed(execution) => {
                self.drop_future(execution);
                self.executor.discard_results(&[execution]);
                let at_most_once = self.host.table.step(step).policy.at_most_once;
                let error = if at_most_once { in_doubt_unless_returned(error, ErrorOf::Run) } else { error };
                self.execution_failed(execution, error, NotRetried::CleanUpTime);
            }
            CleanUpState::Asking(asked) => {
                self.executor.drop_questions(|candidate| candidate != asked);
                self.answer(asked, step, Err(error));
            }
            // It has not begun: another process has the run, or the run waits for a permit.
            _ => {}
        }
    }
}

impl EndedRun<'_> {
    /// Why the run ends, for its clean-up steps; `None` for an end without clean-up.
    pub(super) fn ending(&self) -> Option<Ending> {
        Some(match self.state.end()? {
            End::Completed(_) | End::AppendFailed => return None,
            End::Stalled => Ending::Stalled,
            End::Cancelled => Ending::Cancelled { reason: self.reason() },
            End::TimedOut => match self.state.passed_deadline() {
                Some(deadline) => Ending::DeadlinePassed { deadline },
                None => Ending::TimedOut { after: self.limit },
            },
            end => {
                let error = self.error_of(end).to_string().into();
                let failed: &[ExecutionId] = if let End::Failed(failed) = end { failed } else { &[] };
                let executions = failed.iter().filter_map(|execution| self.failed(*execution)).collect();
                Ending::Failed { error, executions }
            }
        })
    }

    fn failed(&self, execution: ExecutionId) -> Option<FailedExecution> {
        let (step, error) = (self.state.step_of(execution)?, self.state.failure_of(execution)?);
        let (step, class) = (self.name_of(step), error.class());
        Some(FailedExecution { step, execution, class, error: error.to_string() })
    }

    /// The limit of active time that ended the run.
    fn after(&self) -> Option<Duration> {
        let has_timed_out = matches!(self.state.end(), Some(End::TimedOut));
        (has_timed_out && self.state.passed_deadline().is_none()).then_some(self.limit)
    }

    /// The facts with which the clean-up begins, for the journal.
    fn clean_up_start(&self) -> CleanUpStart {
        let scheduler = &self.state.scheduler;
        let (step, error) = self.why();
        let limits = self.state.limits();
        let (limit, excess) = match scheduler.end() {
            Some(End::LogFull) => (Some(ReachedLimit::Events(limits.events)), None),
            Some(End::TooManyExecutions) => (Some(ReachedLimit::Executions(limits.executions)), None),
            Some(End::TooManyEvents(excess)) => {
                (Some(ReachedLimit::Events(limits.events)), Some(excess.clone()))
            }
            Some(End::TooManyItems(excess)) => {
                (Some(ReachedLimit::Executions(limits.executions)), Some(excess.clone()))
            }
            _ => (None, None),
        };
        let planned = scheduler.clean_up().map_or(&[][..], |clean_up| clean_up.steps());
        CleanUpStart {
            status: scheduler.end().map_or(RunStatus::Failed, RunStatus::from),
            step,
            error,
            limit,
            excess,
            deadline: self.state.passed_deadline(),
            after: self.after(),
            steps: planned.iter().map(|planned| planned.step).collect(),
            first: scheduler.next_execution(),
        }
    }
}

impl View<'_> {
    /// The clean-up for the report; `None` before it has begun.
    pub(super) fn clean_up(&self) -> Option<CleanUpReport> {
        let clean_up = self.state.scheduler.clean_up().filter(|clean_up| clean_up.has_begun())?;
        let steps = clean_up.steps().iter().map(|planned| CleanUpStep {
            step: Arc::clone(&self.state.table().step(planned.step).name),
            result: result(self.state, planned.state),
        });
        let ending = self.run.signals.ending()?;
        // A run that stops here without an end cleans up elsewhere.
        let is_left = self.run.finished.get().is_some_and(|finished| finished.left_by().is_some());
        let incomplete = if is_left { Vec::new() } else { incomplete(self.state) };
        Some(CleanUpReport { ending: Ending::clone(ending), steps: steps.collect(), incomplete })
    }
}

/// The unfinished steps of a clean-up that is over, in their order (S86): those that failed, were dropped or did not
/// run. A step whose precondition said no has nothing to do.
pub(super) fn incomplete(state: &RunState) -> Vec<Arc<str>> {
    let clean_up = state.scheduler.clean_up().filter(|clean_up| clean_up.has_begun());
    let steps = clean_up.filter(|_| state.scheduler.is_over()).map_or(&[][..], CleanUp::steps);
    let is_complete = |planned: &&PlannedStep| match planned.state {
        CleanUpState::Refused => true,
        CleanUpState::Executed(execution) => {
            state.trace.entry(execution).is_some_and(|entry| entry.state == TraceState::Succeeded)
        }
        CleanUpState::Planned | CleanUpState::Asking(_) | CleanUpState::PreconditionFailed(_) => false,
    };
    let unfinished = steps.iter().filter(|planned| !is_complete(planned));
    unfinished.map(|planned| Arc::clone(&state.table().step(planned.step).name)).collect()
}

/// The same by the records of a run that has ended, since its last redrive.
pub(super) fn recorded_incomplete(records: &[Record]) -> Vec<Arc<str>> {
    let begins =
        |record: &Record| matches!(record, Record::CleanUpStarted { .. } | Record::RunRedriven { .. });
    let Some(at) = records.iter().rposition(begins) else { return Vec::new() };
    let Record::CleanUpStarted { steps, .. } = &records[at] else { return Vec::new() };
    let done = records[at..].iter().filter_map(|record| match record {
        Record::ExecutionSucceeded { step, .. }
        | Record::PreconditionAnswered { step, answer: false, error: None, .. } => Some(step),
        _ => None,
    });
    let done: Vec<&Arc<str>> = done.collect();
    steps.iter().filter(|step| !done.contains(step)).cloned().collect()
}

fn result(state: &RunState, step: CleanUpState) -> CleanUpResult {
    match step {
        CleanUpState::Planned => CleanUpResult::NotReached,
        CleanUpState::Asking(_) => CleanUpResult::Asked,
        CleanUpState::Refused => CleanUpResult::Refused,
        CleanUpState::PreconditionFailed(candidate) => {
            let failure = state.precondition_failure(candidate);
            let error = failure.map_or_else(String::new, |(_, error)| error.to_string());
            CleanUpResult::PreconditionFailed { error }
        }
        CleanUpState::Executed(execution) => CleanUpResult::Executed(execution),
    }
}

/// The reason of the cancel whose clean-up an earlier process has begun.
pub(super) fn recorded_reason(records: &[Record]) -> Option<Arc<str>> {
    let of_end =
        |record: &&Record| matches!(record, Record::CleanUpStarted { .. } | Record::RunRedriven { .. });
    match records.iter().rev().find(of_end)? {
        Record::CleanUpStarted { status: RunStatus::Cancelled, error, .. } => {
            Some(error.as_deref().unwrap_or("cancelled").into())
        }
        _ => None,
    }
}

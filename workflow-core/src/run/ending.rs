//! The outcome of a run that has ended, from its state: for its handles, and for the last record of its
//! journal.

use std::sync::Arc;
use std::time::Duration;

use super::state::RunState;
use crate::error::{Excess, SharedError, StepError};
use crate::event::AnyEvent;
use crate::explain::{Runaway, StallReport};
use crate::id::{ExecutionId, RunStatus};
use crate::outcome::RunError;
use crate::scheduler::End;
use crate::table::{DependencyTable, StepIndex};

/// A run that has ended.
#[derive(Clone, Copy)]
pub(super) struct EndedRun<'a> {
    pub(super) state: &'a RunState,
    /// The reason of the cancel, if there was one.
    pub(super) cancelled: Option<&'a Arc<str>>,
    /// The limit on its active time.
    pub(super) limit: Duration,
    /// The engine's limit on the active time of its runs.
    pub(super) limit_of_engine: Option<Duration>,
}

impl EndedRun<'_> {
    /// The outcome for the handles. `stall` is called only for a stalled run, because it costs more than the
    /// rest.
    pub(super) fn outcome(
        &self,
        end: &End,
        stall: impl FnOnce() -> StallReport,
    ) -> Result<AnyEvent, RunError> {
        Err(match end {
            End::Completed(seq) => {
                let stop = self.state.log.get(*seq).map(|record| record.event.clone());
                return stop.ok_or(RunError::Detached);
            }
            End::Stalled => RunError::Stalled(Box::new(stall())),
            End::Cancelled => RunError::Cancelled { reason: self.reason() },
            End::TimedOut => {
                let of_engine = self.limit_of_engine == Some(self.limit);
                let timed_out = RunError::TimedOut { after: self.limit, of_engine };
                let passed = self.state.passed_deadline();
                passed.map_or(timed_out, |deadline| RunError::DeadlinePassed { deadline })
            }
            failed => self.error_of(failed),
        })
    }

    /// The error of a run that failed.
    pub(super) fn error_of(&self, end: &End) -> RunError {
        match end {
            End::Failed(executions) => self.failure(executions),
            End::PreconditionFailed(candidate) => {
                let failure = self.state.precondition_failure(*candidate);
                failure.map_or(RunError::Detached, |(step, error)| self.precondition_error(*step, error))
            }
            End::LogFull => self.log_full(None),
            End::TooManyEvents(excess) => self.log_full(Some(excess.clone())),
            End::TooManyExecutions => self.ran_away(None),
            End::TooManyItems(excess) => self.ran_away(Some(excess.clone())),
            // Only a detached run gets here: a failed journal has its own error (`Committer::journal_error`).
            _ => RunError::Detached,
        }
    }

    /// The outcome of an end that the state does not lead to, from the journal's last record. `asked` is the
    /// step whose precondition failed.
    pub(super) fn past(&self, status: RunStatus, error: &str, asked: Option<&str>) -> RunError {
        match asked.and_then(|step| self.state.table().step_named(step)) {
            Some(step) => self.precondition_error(step, &StepError::permanent(error.to_owned())),
            None => RunError::Past { status, error: error.into() },
        }
    }

    /// The facts about the end that only the last record has: the step of a failed precondition, and the
    /// error or reason. A limit that was exceeded at once has its error there.
    pub(super) fn why(&self) -> (Option<Arc<str>>, Option<String>) {
        match self.state.end() {
            Some(End::Cancelled) => (None, Some(self.reason().to_string())),
            Some(End::PreconditionFailed(candidate)) => {
                let failure = self.state.precondition_failure(*candidate);
                failure.map(|(step, error)| (self.name_of(*step), error.to_string())).unzip()
            }
            // The state does not lead there without the limit.
            Some(end @ (End::TooManyEvents(_) | End::TooManyItems(_))) => {
                (None, Some(self.error_of(end).to_string()))
            }
            _ => (None, None),
        }
    }

    pub(super) fn reason(&self) -> Arc<str> {
        self.cancelled.map_or_else(|| "cancelled".into(), Arc::clone)
    }

    fn log_full(&self, excess: Option<Box<Excess>>) -> RunError {
        let events = &self.state.table().events;
        let mut counts = vec![0_u64; events.len()];
        self.state.log.records().for_each(|(_, record)| counts[record.index.get()] += 1);
        // The first of those that are equally frequent.
        let most = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count);
        let (busiest, events) =
            most.map_or(("".into(), 0), |(at, count)| (Arc::clone(&events[at].name), *count));
        RunError::LogFull { limit: self.state.limits().events, busiest, events, excess }
    }

    fn ran_away(&self, excess: Option<Box<Excess>>) -> RunError {
        let Runaway { looping, rounds, busiest, executions } = Runaway::of(&self.state.scheduler);
        let limit = self.state.limits().executions;
        RunError::TooManyExecutions { limit, looping, rounds, busiest, executions, excess }
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
            return RunError::Detached;
        };
        let step = self.name_of(step);
        let (attempts, class) = (self.state.trace.attempts_made(execution), error.class());
        let item = self.state.item_of(execution).map(Box::new);
        RunError::StepFailed { step, execution, attempts, class, item, source: SharedError::of(error) }
    }

    fn precondition_error(&self, step: StepIndex, error: &StepError) -> RunError {
        self.state.table().precondition_error(&self.name_of(step), error)
    }

    pub(super) fn name_of(&self, step: StepIndex) -> Arc<str> {
        Arc::clone(&self.state.table().step(step).name)
    }
}

impl DependencyTable {
    /// The error of a run that ended with a failed precondition of the step of this name.
    pub(super) fn precondition_error(&self, step: &Arc<str>, error: &StepError) -> RunError {
        let row = self.step_named(step).map(|index| self.step(index));
        let precondition = row.and_then(|row| row.precondition.as_ref());
        RunError::PreconditionFailed {
            step: Arc::clone(step),
            precondition: precondition.map_or_else(|| "".into(), |row| Arc::clone(&row.name)),
            source: SharedError::of(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;
    use crate::retry::NotRetried;
    use crate::run::bare_run::{BareRun, Done, Draft, WRITE};
    use crate::run::state::{Batch, EffectKind, Stop};

    fn ending<'a>(run: &'a BareRun, cancelled: Option<&'a Arc<str>>) -> EndedRun<'a> {
        EndedRun { state: &run.state, cancelled, limit: Duration::from_secs(9), limit_of_engine: None }
    }

    fn outcome(run: &BareRun) -> Result<AnyEvent, RunError> {
        let end = run.state.end().expect("it has ended");
        ending(run, None).outcome(end, || panic!("it has not stalled"))
    }

    /// The precondition of `send`, which is asked.
    fn asked(run: &mut BareRun) -> crate::scheduler::CandidateId {
        run.state.trace.begin(WRITE, Duration::ZERO);
        run.apply(1, run.returned(WRITE, Draft));
        let effects = std::iter::from_fn(|| run.state.next_effect(None));
        let mut asked = effects.filter_map(|begins| match begins {
            EffectKind::Precondition(candidate) => Some(candidate),
            _ => None,
        });
        asked.next().expect("it is asked")
    }

    fn answer(run: &mut BareRun, answer: Result<bool, StepError>) {
        let (candidate, step) = (asked(run), run.step("send"));
        run.apply(2, Batch::Answered { candidate, step, answer });
    }

    #[test]
    fn a_run_that_completed_has_its_stop_event_as_outcome() {
        let mut run = BareRun::begun();
        answer(&mut run, Ok(true));
        run.apply(3, run.returned(ExecutionId(2), Done));
        assert!(outcome(&run).is_ok_and(|stop| stop.name() == "Done"));
        assert_eq!(ending(&run, None).why(), (None, None));
    }

    #[test]
    fn a_run_that_was_stopped_says_why() {
        let mut run = BareRun::begun();
        run.apply(1, Batch::Stopped(Stop::Cancelled));
        let reason: Arc<str> = "no time".into();
        let end = run.state.end().unwrap();
        let cancelled = ending(&run, Some(&reason));
        let outcome_of = |ending: EndedRun<'_>| ending.outcome(end, || panic!("it has not stalled"));
        assert!(
            matches!(outcome_of(cancelled), Err(RunError::Cancelled { reason }) if &*reason == "no time")
        );
        assert_eq!(cancelled.why(), (None, Some("no time".into())));
        assert_eq!(ending(&run, None).why(), (None, Some("cancelled".into())), "nobody gave a reason");

        let mut run = BareRun::begun();
        run.apply(1, Batch::Stopped(Stop::TimedOut));
        let after = Duration::from_secs(9);
        assert!(
            matches!(outcome(&run), Err(RunError::TimedOut { after: it, of_engine: false }) if it == after)
        );
    }

    #[test]
    fn a_run_whose_step_failed_names_the_step_and_its_attempts() {
        let mut run = BareRun::begun();
        run.state.trace.begin(WRITE, Duration::ZERO);
        run.apply(1, BareRun::retried(WRITE, ErrorClass::Tool, Duration::ZERO));
        run.state.trace.attempted_again(WRITE);
        let error = StepError::tool("out of ink");
        run.apply(2, Batch::Failed { execution: WRITE, error, not_retried: NotRetried::Class });
        let Err(RunError::StepFailed { step, attempts, class, .. }) = outcome(&run) else {
            panic!("it failed")
        };
        assert_eq!((&*step, attempts, class), ("write", 2, ErrorClass::Tool));
    }

    #[test]
    fn a_failed_precondition_reads_the_same_from_the_state_and_from_the_journal() {
        let mut run = BareRun::begun();
        answer(&mut run, Err(StepError::permanent("no list")));
        let failed = outcome(&run).unwrap_err();
        assert!(
            matches!(&failed, RunError::PreconditionFailed { step, .. } if &**step == "send"),
            "{failed}"
        );
        let (step, error) = ending(&run, None).why();
        assert_eq!((step.as_deref(), error.as_deref()), (Some("send"), Some("no list")));
        let past = ending(&run, None).past(RunStatus::Failed, "no list", Some("send"));
        assert_eq!(past.to_string(), failed.to_string());
        let past = ending(&run, None).past(RunStatus::Failed, "no list", None);
        assert!(matches!(past, RunError::Past { status: RunStatus::Failed, .. }), "{past}");
    }
}

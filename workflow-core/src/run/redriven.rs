//! The write that reopens a run that has ended (S39), and the facts of the journal that forbid it.

use std::sync::Arc;
use std::time::SystemTime;

use super::clean_up::recorded_incomplete;
use super::deadline::begun_by;
use super::pause::is_paused;
use crate::id::{Redriver, RunId, RunStatus};
use crate::outcome::{RedriveError, ResumeError};
use crate::store::{Record, RunSummary, Write};
use crate::table::DependencyTable;

/// How a run is redriven, and the demands of its caller.
///
/// ```
/// use workflow_core::Redrive;
///
/// let redrive = Redrive::new().despite_clean_up().again("pay");
/// assert_ne!(redrive, Redrive::new());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Redrive {
    despite_clean_up: bool,
    clean_up: bool,
    again: Vec<Arc<str>>,
    deadline: Option<SystemTime>,
}

impl Redrive {
    /// Insists on nothing, as [`Engine::redrive`](crate::Engine::redrive) does.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also redrives a run whose clean-up has begun. Its log still shows as done the work that the clean-up steps
    /// undid, and the run continues from that log. If it ends again, its clean-up steps run again.
    pub fn despite_clean_up(self) -> Self {
        Self { despite_clean_up: true, ..self }
    }

    /// Runs only the unfinished clean-up steps of the run again
    /// ([`CleanUpReport::incomplete`](crate::report::CleanUpReport::incomplete)), in their order. Nothing else of the run
    /// begins, and it then ends as it had: its outcome stays.
    ///
    /// Executions of these steps begin anew, with the same idempotency keys, the next attempt number, and retries that
    /// count from the start; a step that had not run, runs. A deadline does not count.
    /// [`despite_clean_up`](Self::despite_clean_up) and [`deadline`](Self::deadline) have no meaning with it.
    ///
    /// ```
    /// use workflow_core::Redrive;
    ///
    /// assert_ne!(Redrive::new().clean_up(), Redrive::new());
    /// ```
    pub fn clean_up(self) -> Self {
        Self { clean_up: true, ..self }
    }

    /// Makes the executions of this step again, also those that are in doubt: the step is `at_most_once`, and an attempt
    /// may have begun whose end nobody knows. Find out first whether it had its effect. Other steps begin anew without
    /// being named. Executions that succeeded, and failures that were caught, stay as they are.
    ///
    /// If the process ends under the new attempt too, that is in doubt in its turn.
    pub fn again(mut self, step: impl AsRef<str>) -> Self {
        let step = Arc::from(step.as_ref());
        if !self.again.contains(&step) {
            self.again.push(step);
        }
        self
    }

    /// Sets another deadline, instead of that of the run ([`RunOptions::deadline`](crate::RunOptions::deadline)). A run
    /// whose deadline has passed is only redriven with another one.
    pub fn deadline(self, at: SystemTime) -> Self {
        Self { deadline: Some(at), ..self }
    }

    /// Checks that the workflow has the steps that are made again.
    pub(crate) fn check(&self, table: &DependencyTable) -> Result<(), RedriveError> {
        let Some(step) = self.again.iter().find(|step| table.step_named(step).is_none()) else {
            return Ok(());
        };
        let steps = table.steps.iter().map(|step| step.name.to_string()).collect();
        Err(RedriveError::UnknownStep { workflow: table.name.to_string(), step: step.to_string(), steps })
    }

    /// The write that reopens the run of this journal.
    ///
    /// # Errors
    /// If the run is unknown, open, complete, or a child; if its clean-up began, unless the caller insists; or if it
    /// ended at a limit and cleaned up; or if its deadline has passed, or the other one that the caller gives. Of a clean-up
    /// alone, if no step of it is unfinished.
    pub(crate) fn write(
        &self,
        run: &RunId,
        records: &[Record],
        by: Redriver,
        at: SystemTime,
    ) -> Result<Write, RedriveError> {
        let run = || run.clone();
        let unknown = || ResumeError::UnknownRun { run: run() };
        let begun = begun_by(records).ok_or_else(unknown)?;
        // The clean-up of an end before the last redrive is past.
        let of_end =
            |record: &&Record| matches!(record, Record::CleanUpStarted { .. } | Record::RunRedriven { .. });
        let clean_up = records.iter().rev().find(of_end).and_then(|record| match record {
            Record::CleanUpStarted { limit, steps, .. } => Some((*limit, steps)),
            _ => None,
        });
        // A run that waits may write that it is kept.
        let last = records.iter().rfind(|record| !matches!(record, Record::RunKept { .. }));
        match (last, clean_up) {
            (Some(Record::RunEnded { status: RunStatus::Completed, .. }), _) => {
                return Err(RedriveError::Completed { run: run() });
            }
            (Some(Record::RunEnded { .. }), _) => {}
            (_, Some(_)) => return Err(RedriveError::NotEnded { run: run(), status: RunStatus::CleaningUp }),
            (Some(Record::RunWaiting { .. }), _) => {
                let status = if is_paused(records) { RunStatus::Paused } else { RunStatus::Waiting };
                return Err(RedriveError::NotEnded { run: run(), status });
            }
            _ => return Err(RedriveError::NotEnded { run: run(), status: RunStatus::Running }),
        }
        if let Some(parent) = begun.parent {
            return Err(RedriveError::Child { run: run(), parent });
        }
        if self.clean_up {
            let steps = recorded_incomplete(records);
            if steps.is_empty() {
                return Err(RedriveError::NothingToCleanUp { run: run() });
            }
            let run = RunSummary { incomplete_clean_up: Arc::new(steps.clone()), ..begun.cleaning_up() };
            let record = Record::CleanUpRedriven { by, steps, again: self.again.clone(), at };
            return Ok(Write { records: vec![record], run });
        }
        match clean_up {
            // The events beyond the limit are in no journal.
            Some((Some(limit), _)) => return Err(RedriveError::AtLimit { run: run(), limit }),
            Some((None, steps)) if !self.despite_clean_up => {
                let steps = steps.iter().map(ToString::to_string).collect();
                return Err(RedriveError::CleanedUp { run: run(), steps });
            }
            _ => {}
        }
        let deadline = self.deadline.or(begun.deadline);
        if let Some(deadline) = deadline.filter(|deadline| *deadline <= at) {
            return Err(RedriveError::DeadlinePassed { run: run(), deadline });
        }
        let record = Record::RunRedriven { by, again: self.again.clone(), deadline: self.deadline, at };
        Ok(Write { records: vec![record], run: RunSummary { deadline, ..begun } })
    }
}

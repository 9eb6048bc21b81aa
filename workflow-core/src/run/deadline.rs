//! The deadline of a run by the wall clock (S73): which one holds by the journal, and how it ends a run that is driven.
//! The alarm for it is that of the timers, which fall due by the same clock.
//!
//! ```text
//! overdue ─▶ nothing begins ─▶ timers that were due before it enter the log ─▶ Stop::DeadlinePassed ─▶ as after any timeout
//! ```

use std::time::SystemTime;

use super::commit::Committer;
use super::driver::Driver;
use super::view::View;
use crate::outcome::StartError;
use crate::report::DeadlineReport;
use crate::store::{Record, RunSummary};

/// The deadline of the run of these records: that of its start, or of the latest redrive with another one.
pub(crate) fn deadline_of(records: &[Record]) -> Option<SystemTime> {
    let latest = records.iter().rev().find_map(|record| match record {
        Record::RunRedriven { deadline: Some(deadline), .. } => Some(Some(*deadline)),
        Record::RunStarted { deadline, .. } => Some(*deadline),
        _ => None,
    });
    latest.flatten()
}

/// The open run of these records, as a summary; `None` if they begin no run.
pub(super) fn begun_by(records: &[Record]) -> Option<RunSummary> {
    let begun = RunSummary::begun_by(records.first()?)?;
    Some(RunSummary { deadline: deadline_of(records), ..begun })
}

/// Refuses a start whose deadline has passed.
pub(crate) fn check_deadline(
    deadline: Option<SystemTime>,
    now: impl FnOnce() -> SystemTime,
) -> Result<(), StartError> {
    match deadline {
        Some(deadline) if deadline <= now() => Err(StartError::DeadlinePassed { deadline }),
        _ => Ok(()),
    }
}

impl Driver {
    /// Whether the run has a timer or a deadline.
    #[inline]
    pub(super) fn waits_for_time(&self) -> bool {
        let Committer { shared, state, .. } = &self.committer;
        !state.timers.is_empty() || shared.deadline().is_some()
    }

    /// Whether the deadline has passed, of a run that has not ended: then nothing begins any more.
    #[inline]
    pub(super) fn is_overdue(&self) -> bool {
        let Committer { shared, state, clock, .. } = &self.committer;
        let has_passed = |deadline| self.alarms.has_come(deadline, clock.wall());
        shared.deadline().is_some_and(|deadline| state.end().is_none() && has_passed(deadline))
    }
}

impl View<'_> {
    /// The deadline for the report.
    pub(super) fn deadline(&self) -> Option<DeadlineReport> {
        let passed = self.state.passed_deadline();
        let at = passed.or(self.run.deadline())?;
        Some(DeadlineReport { at, ended_run: passed.is_some() })
    }
}

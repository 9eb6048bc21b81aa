//! The trace: when each execution began and ended, what it emitted, and which attempts failed.
//!
//! The scheduler knows executions only as far as its decisions need. The trace has the rest, for retries and
//! for reports ([`view`](crate::run::view)). It decides nothing. There is one small entry for each execution;
//! failed attempts and failures are apart, because most executions have none.
//!
//! ```text
//! schedule ─▶ begin ─┬─▶ failed_attempt ─▶ attempted_again ─┐
//!                    │ ▲────────────────────────────────────┘
//!                    ├─▶ committed     Succeeded    (retract takes it back: the store refused the batch)
//!                    ├─▶ failed        Failed       (caught, if the failure is an event)
//!                    ├─▶ dropped       Dropped
//!                    └─▶ refused       Refused      (it returned events after the run's end)
//! ```
//!
//! Invariants: an execution ends once, and a later end changes nothing; `redrive` alone makes it run again. Orders are given in the order in which the
//! scheduler starts executions, so a live run and its replay give the same ones. No journal has the start times, the
//! begins of retries, and the events that the run refused after its end.
//!
//! Example: `fetch` is scheduled by the batch at 1 s, and gets a permit at 3 s. `started` is 1 s at first, and 3 s once
//! the attempt begins. The attempt fails at 5 s, and the next one is due at 15 s. `attempts_made` is 1 until then.

#![expect(
    clippy::inline_always,
    reason = "every step goes through here: as one function its parts pass no values through memory"
)]

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{ErrorClass, StepError};
use crate::id::{ExecutionId, Seq};
use crate::paged::Paged;
use crate::report::ExecutionOutcome;
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::Entry;
use crate::table::StepIndex;

/// The scheduled executions of a run, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Execution n is at n - 1. The scheduler may start a higher number first; the entry of an execution that
    /// is not scheduled yet has order 0.
    entries: Paged<TraceEntry>,
    /// How many executions are scheduled: the last `order` given.
    scheduled: u32,
    /// Failed attempts, of executions that have another attempt or will have one.
    attempts: FxHashMap<ExecutionId, Attempts>,
    /// Failures, of executions that failed for good.
    failures: FxHashMap<ExecutionId, Failure>,
    /// Events that executions returned after the run had ended (S28).
    pub(crate) violations: Vec<(ExecutionId, StepIndex, Vec<String>)>,
}

/// The trace of a suspended run, in which nothing has failed.
#[derive(Debug)]
pub(super) struct SuspendedTrace {
    /// All entries; each execution has succeeded.
    entries: Box<[TraceEntry]>,
    /// The last `order` given.
    scheduled: u32,
}

/// The attempts of an execution before its current one.
#[derive(Debug, Default)]
struct Attempts {
    /// Oldest first. Each was followed by another attempt, or is to be.
    failed: Vec<FailedAttempt>,
    /// When the next attempt is due; `None` once it has begun.
    next: Option<Duration>,
    /// How many attempts the ends of the run dropped. They count for the number of an attempt only.
    dropped: u32,
    /// How many of `failed` are from before the latest redrive. Retry policies do not count them.
    before_redrive: usize,
}

/// One execution. Each lives until the run is gone, so it is small. Times are from the beginning of the run's
/// clock.
#[derive(Debug)]
pub(crate) struct TraceEntry {
    /// The sequence number of the first event that it emitted.
    pub(crate) first_emitted: Seq,
    /// How many events it emitted.
    pub(crate) emitted: u32,
    /// Its place in the order in which executions were scheduled, from 1; 0 while it is not scheduled.
    pub(crate) order: u32,
    /// When the execution was scheduled, until its first attempt begins; then that time.
    started: Nanos,
    /// Equal to `started` while the execution runs.
    ended: Nanos,
    /// Changes once, from `Running`; `retract` and `redrive` alone set it back.
    pub(crate) state: TraceState,
}

/// How far an execution has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceState {
    /// It runs, or waits for its turn or its next attempt.
    Running,
    /// Its batch is in the log.
    Succeeded,
    /// The error is in `Trace::failures`.
    Failed,
    /// The execution returned events after the run had ended (S28).
    Refused,
    /// The run dropped it.
    Dropped,
}

/// The failure of an execution.
#[derive(Debug)]
struct Failure {
    /// An [`ExecutionOutcome::Failed`]; of an execution whose fan-out failed, that it succeeded (S60).
    outcome: ExecutionOutcome,
    /// The sequence number of the failure as an event, if a step catches it.
    caught: Option<Seq>,
}

/// A time in nanoseconds, at most 580 years.
#[derive(Debug, Clone, Copy)]
struct Nanos(u64);

impl From<Duration> for Nanos {
    fn from(time: Duration) -> Self {
        let seconds = time.as_secs().saturating_mul(1_000_000_000);
        Self(seconds.saturating_add(u64::from(time.subsec_nanos())))
    }
}

impl From<Nanos> for Duration {
    fn from(Nanos(time): Nanos) -> Self {
        Self::from_nanos(time)
    }
}

impl TraceEntry {
    /// The entry of an execution that is not scheduled yet.
    fn unscheduled() -> Self {
        let (first_emitted, started, ended) = (Seq(0), Nanos(0), Nanos(0));
        Self { first_emitted, emitted: 0, order: 0, started, ended, state: TraceState::Running }
    }

    /// When the execution was scheduled, or when its first attempt began if that was later.
    pub(crate) fn started(&self) -> Duration {
        self.started.into()
    }

    /// When the execution ended.
    pub(crate) fn ended(&self) -> Duration {
        self.ended.into()
    }

    /// How long the execution took; zero while it runs.
    pub(crate) fn took(&self) -> Duration {
        Duration::from(self.ended).saturating_sub(self.started.into())
    }
}

impl Trace {
    /// Whether the trace fits [`SuspendedTrace`]: nothing has failed.
    pub(super) fn can_suspend(&self) -> bool {
        let Self { entries: _, scheduled: _, attempts, failures, violations } = self;
        attempts.is_empty() && failures.is_empty() && violations.is_empty()
    }

    pub(super) fn suspend(&mut self) -> SuspendedTrace {
        let Self { entries, scheduled, .. } = std::mem::take(self);
        SuspendedTrace { entries: entries.into_boxed(), scheduled }
    }

    pub(super) fn restore(SuspendedTrace { entries, scheduled }: SuspendedTrace) -> Self {
        Self { entries: entries.into_iter().collect(), scheduled, ..Self::default() }
    }

    /// The scheduler has started this execution. Returns whether it did so for the first time, and not after a redrive.
    #[inline(always)]
    pub(super) fn schedule(&mut self, execution: ExecutionId, now: Duration) -> bool {
        let Some(place) = place_of(execution) else { return true };
        if place < self.entries.len()
            && let Some(known) = self.entry_mut(execution)
        {
            // It keeps its place in the order.
            (known.started, known.ended) = (now.into(), now.into());
            return false;
        }
        self.scheduled = self.scheduled.saturating_add(1);
        let (order, now) = (self.scheduled, Nanos::from(now));
        let entry = TraceEntry { order, started: now, ended: now, ..TraceEntry::unscheduled() };
        // Most executions are scheduled in the order of their numbers.
        if place == self.entries.len() {
            self.entries.push(entry);
            return true;
        }
        // The numbers between belong to executions that start later.
        while self.entries.len() < place {
            self.entries.push(TraceEntry::unscheduled());
        }
        match self.entries.get_mut(place) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        true
    }

    /// The run continues after its end. These executions begin anew: they have not ended, and their next attempt has a
    /// number that no attempt before can have had. Some may not be scheduled.
    pub(super) fn redrive(&mut self, now: Duration, anew: &FxHashSet<ExecutionId>) {
        for execution in anew.iter().copied() {
            let attempts = self.attempts.entry(execution).or_default();
            match self.failures.remove(&execution).map(|failure| failure.outcome) {
                Some(ExecutionOutcome::Failed { class, error, .. }) => {
                    attempts.failed.push(FailedAttempt::before_redrive(class, error));
                }
                _ => attempts.dropped = attempts.dropped.saturating_add(1),
            }
            (attempts.next, attempts.before_redrive) = (None, attempts.failed.len());
            if let Some(entry) = self.entry_mut(execution) {
                (entry.state, entry.started, entry.ended) = (TraceState::Running, now.into(), now.into());
            }
        }
    }

    /// The class of the error with which an execution failed; `None` if it did not.
    pub(super) fn class_of_failure(&self, execution: ExecutionId) -> Option<ErrorClass> {
        match &self.failures.get(&execution)?.outcome {
            ExecutionOutcome::Failed { class, .. } => Some(*class),
            _ => None,
        }
    }

    /// Whether the run dropped the execution, or its time for clean-up was over: nobody knows how its attempt ended.
    pub(super) fn was_dropped(&self, execution: ExecutionId) -> bool {
        let is_over = |failure: &Failure| {
            matches!(failure.outcome, ExecutionOutcome::Failed { not_retried: NotRetried::CleanUpTime, .. })
        };
        self.failures.get(&execution).map_or_else(|| self.entry(execution).is_some(), is_over)
    }

    /// The first attempt begins, after a wait for permits or for the store.
    #[inline]
    pub(crate) fn begin(&mut self, execution: ExecutionId, now: Duration) {
        if let Some(entry) = self.entry_mut(execution) {
            (entry.started, entry.ended) = (now.into(), now.into());
        }
    }

    /// The entry of a scheduled execution.
    #[inline]
    pub(crate) fn entry(&self, execution: ExecutionId) -> Option<&TraceEntry> {
        self.entries.get(place_of(execution)?).filter(|entry| entry.order > 0)
    }

    /// The entry of a scheduled execution.
    #[inline]
    fn entry_mut(&mut self, execution: ExecutionId) -> Option<&mut TraceEntry> {
        self.entries.get_mut(place_of(execution)?).filter(|entry| entry.order > 0)
    }

    /// The scheduled executions, by their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (ExecutionId, &TraceEntry)> {
        (1..).map(ExecutionId).zip(self.entries.iter()).filter(|(_, entry)| entry.order > 0)
    }

    /// The scheduled executions, in the order in which they were scheduled. O(n log n).
    pub(crate) fn ordered(&self) -> Vec<(ExecutionId, &TraceEntry)> {
        let mut ordered: Vec<_> = self.numbered().collect();
        ordered.sort_unstable_by_key(|(_, entry)| entry.order);
        ordered
    }

    /// The running executions, in the order in which they were scheduled.
    pub(crate) fn running(&self) -> Vec<ExecutionId> {
        let running = self.numbered().filter(|(_, entry)| entry.state == TraceState::Running);
        let mut running: Vec<_> = running.map(|(execution, entry)| (entry.order, execution)).collect();
        running.sort_unstable();
        running.into_iter().map(|(_, execution)| execution).collect()
    }

    /// How long the execution took; zero while it runs.
    pub(crate) fn took(&self, execution: ExecutionId) -> Duration {
        self.entry(execution).map_or(Duration::ZERO, TraceEntry::took)
    }

    /// The failed attempts of an execution that were, or are to be, followed by another.
    pub(crate) fn attempts(&self, execution: ExecutionId) -> &[FailedAttempt] {
        self.attempts.get(&execution).map_or(&[], |attempts| &attempts.failed)
    }

    /// Those of the [`attempts`](Self::attempts) that count for retry policies: a redrive begins to count anew.
    pub(crate) fn counted_attempts(&self, execution: ExecutionId) -> &[FailedAttempt] {
        let attempts = self.attempts.get(&execution);
        attempts.map_or(&[], |attempts| attempts.failed.get(attempts.before_redrive..).unwrap_or_default())
    }

    /// When the next attempt is due. Some while the execution waits for it, and after it ended in that wait.
    pub(crate) fn next_attempt(&self, execution: ExecutionId) -> Option<Duration> {
        self.attempts.get(&execution)?.next
    }

    /// The running executions whose next attempt is due later than now, by their numbers.
    pub(crate) fn delayed(&self, now: Duration) -> Vec<ExecutionId> {
        let is_delayed = |(id, attempts): (&ExecutionId, &Attempts)| {
            let runs = self.entry(*id).is_some_and(|entry| entry.state == TraceState::Running);
            (runs && attempts.next.is_some_and(|due| due > now)).then_some(*id)
        };
        let mut delayed: Vec<_> = self.attempts.iter().filter_map(is_delayed).collect();
        delayed.sort_unstable();
        delayed
    }

    /// A caller ended the delays: the next attempts are due now.
    pub(super) fn end_delays(&mut self, now: Duration) {
        for attempts in self.attempts.values_mut() {
            attempts.next = attempts.next.map(|due| due.min(now));
        }
    }

    /// How many attempts of a begun execution have begun. A retry counts once it starts.
    pub(crate) fn attempts_made(&self, execution: ExecutionId) -> u32 {
        self.attempt(execution) - u32::from(self.next_attempt(execution).is_some())
    }

    /// The number of the current attempt from 1, or of the next one while the execution waits for it.
    pub(crate) fn attempt(&self, execution: ExecutionId) -> u32 {
        let failed = u32::try_from(self.attempts(execution).len()).unwrap_or(u32::MAX);
        let dropped = self.attempts.get(&execution).map_or(0, |attempts| attempts.dropped);
        failed.saturating_add(dropped).saturating_add(1)
    }

    /// The time since the first attempt began.
    pub(crate) fn elapsed(&self, execution: ExecutionId, now: Duration) -> Duration {
        self.entry(execution).map_or(Duration::ZERO, |entry| now.saturating_sub(entry.started()))
    }

    /// An attempt failed, and another follows.
    pub(super) fn failed_attempt(&mut self, execution: ExecutionId, now: Duration, attempt: FailedAttempt) {
        let attempts = self.attempts.entry(execution).or_default();
        attempts.next = Some(now.saturating_add(attempt.retry_in));
        attempts.failed.push(attempt);
    }

    /// The next attempt begins.
    #[inline]
    pub(crate) fn attempted_again(&mut self, execution: ExecutionId) {
        if !self.attempts.is_empty()
            && let Some(attempts) = self.attempts.get_mut(&execution)
        {
            attempts.next = None;
        }
    }

    /// The execution succeeded, and its emissions are in the log.
    #[inline(always)]
    pub(super) fn committed(&mut self, execution: ExecutionId, now: Duration, entries: &[Entry]) {
        if let Some(entry) = self.entry_mut(execution) {
            (entry.ended, entry.state) = (now.into(), TraceState::Succeeded);
            if let Some(first) = entries.first() {
                entry.first_emitted = first.seq;
                entry.emitted = u32::try_from(entries.len()).unwrap_or(u32::MAX);
            }
        }
        self.attempted_again(execution);
    }

    /// The execution failed for good.
    pub(super) fn failed(
        &mut self,
        execution: ExecutionId,
        now: Duration,
        error: &StepError,
        not_retried: NotRetried,
    ) {
        let (class, error) = (error.class(), error.to_string());
        let outcome = ExecutionOutcome::Failed { class, error, not_retried };
        self.end(execution, now, TraceState::Failed);
        self.failures.insert(execution, Failure { outcome, caught: None });
    }

    /// Ends an execution; returns false if it had ended before.
    /// Returns false for an execution that is not scheduled, too.
    fn end(&mut self, execution: ExecutionId, now: Duration, state: TraceState) -> bool {
        let Some(entry) = self.entry_mut(execution).filter(|entry| entry.state == TraceState::Running) else {
            return false;
        };
        (entry.ended, entry.state) = (now.into(), state);
        true
    }

    /// The run dropped the execution. Returns false if it had ended before.
    pub(crate) fn dropped(&mut self, execution: ExecutionId, now: Duration) -> bool {
        self.end(execution, now, TraceState::Dropped)
    }

    /// The run refused the events that the execution returned after the end.
    pub(crate) fn refused(
        &mut self,
        (execution, step): (ExecutionId, StepIndex),
        now: Duration,
        events: &[Arc<str>],
    ) {
        if self.end(execution, now, TraceState::Refused) {
            let events = events.iter().map(ToString::to_string).collect();
            self.violations.push((execution, step, events));
        }
    }

    /// Takes back a commit that the store refused. The caller then notes the execution as refused or dropped: its events are
    /// in no journal, and its report must not name positions that the log no longer has.
    pub(super) fn retract(&mut self, execution: ExecutionId) {
        if let Some(entry) = self.entry_mut(execution) {
            (entry.state, entry.first_emitted, entry.emitted) = (TraceState::Running, Seq(0), 0);
        }
    }

    /// Removes executions whose triggers are in no log. Their entries stay as placeholders, since places are numbers.
    pub(super) fn unschedule(&mut self, is_gone: impl Fn(ExecutionId) -> bool) {
        let gone: Vec<_> = self.numbered().map(|(id, _)| id).filter(|id| is_gone(*id)).collect();
        for execution in gone {
            if let Some(entry) = self.entry_mut(execution) {
                entry.order = 0;
            }
        }
    }

    /// Removes the executions from this one on, which no journal has.
    pub(super) fn renumber_from(&mut self, first: ExecutionId) {
        let Some(place) = place_of(first) else { return };
        if place < self.entries.len() {
            self.entries.truncate(place);
            self.scheduled = self.entries.iter().map(|entry| entry.order).max().unwrap_or(0);
        }
    }

    /// Takes from a later trace of the same run what no journal has: the start times of executions, and which
    /// attempts have begun.
    pub(super) fn inherit(&mut self, later: &Self) {
        for (execution, known) in later.numbered() {
            let Some(entry) = self.entry_mut(execution) else { continue };
            entry.started = known.started;
            if entry.state == TraceState::Running {
                entry.ended = known.started;
            }
        }
        for (execution, attempts) in &mut self.attempts {
            let known = later.attempts.get(execution);
            // The next attempt begins only after the wait, so more failed attempts, or none due, show that it
            // did.
            let has_begun =
                |known: &Attempts| known.next.is_none() || known.failed.len() > attempts.failed.len();
            if known.is_some_and(has_begun) {
                attempts.next = None;
            }
        }
    }

    /// The failure of the execution is in the log as an event. An execution that succeeded fails with its fan-out (S60).
    pub(super) fn caught(&mut self, execution: ExecutionId, failure: Seq) {
        let succeeded = || Failure { outcome: ExecutionOutcome::Succeeded, caught: None };
        self.failures.entry(execution).or_insert_with(succeeded).caught = Some(failure);
    }

    /// The outcome of an execution, for reports.
    pub(crate) fn outcome(&self, execution: ExecutionId, entry: &TraceEntry) -> ExecutionOutcome {
        match entry.state {
            TraceState::Succeeded => ExecutionOutcome::Succeeded,
            TraceState::Refused => ExecutionOutcome::Refused,
            TraceState::Dropped => ExecutionOutcome::Dropped,
            TraceState::Running | TraceState::Failed => {
                let failure = self.failures.get(&execution);
                failure.map_or(ExecutionOutcome::Running, |failure| failure.outcome.clone())
            }
        }
    }

    /// The sequence number of an execution's failure as an event, if a step catches it.
    pub(crate) fn caught_failure(&self, execution: ExecutionId) -> Option<Seq> {
        self.failures.get(&execution)?.caught
    }

    /// The failures that are events in the log.
    pub(crate) fn caught_failures(&self) -> impl Iterator<Item = Seq> {
        self.failures.values().filter_map(|failure| failure.caught)
    }
}

/// The index of an execution among the entries.
fn place_of(execution: ExecutionId) -> Option<usize> {
    usize::try_from(execution.0).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_listed_in_the_order_in_which_they_were_scheduled() {
        let mut trace = Trace::default();
        for id in [2, 1, 4] {
            trace.schedule(ExecutionId(id), Duration::from_secs(id));
        }
        let order: Vec<u64> = trace.ordered().iter().map(|(execution, _)| execution.0).collect();
        assert_eq!(order, [2, 1, 4]);
        assert!(trace.entry(ExecutionId(3)).is_none());
        assert!(trace.dropped(ExecutionId(1), Duration::from_secs(9)));
        assert!(!trace.dropped(ExecutionId(1), Duration::from_secs(9)), "it has ended");
        assert_eq!(trace.running(), [ExecutionId(2), ExecutionId(4)]);
    }

    #[test]
    fn a_retry_counts_as_an_attempt_once_it_starts() {
        let (mut trace, execution) = (Trace::default(), ExecutionId(1));
        trace.schedule(execution, Duration::ZERO);
        let error = StepError::permanent("no");
        let failed = FailedAttempt {
            class: error.class(),
            error: error.to_string(),
            retry_in: Duration::from_secs(5),
            compacts: false,
            redriven: false,
        };
        trace.failed_attempt(execution, Duration::from_secs(1), failed);
        assert_eq!((trace.attempt(execution), trace.attempts_made(execution)), (2, 1));
        assert_eq!(trace.next_attempt(execution), Some(Duration::from_secs(6)));
        trace.attempted_again(execution);
        assert_eq!((trace.attempts_made(execution), trace.next_attempt(execution)), (2, None));
    }
}

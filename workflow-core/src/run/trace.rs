//! The record of a run's executions: written while it runs, read when a report is asked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::log::BranchRecord;
use super::report::{BoundInput, BranchReport, ExecutionOutcome, ExecutionTrace, Violation};
use crate::error::StepError;
use crate::id::{ExecutionId, RunId, ScopeId, Seq};
use crate::paged::Paged;
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::{Bound, Entry, Inputs, Start};
use crate::table::{DependencyTable, StepIndex};

/// The executions of a run while it runs.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Execution n is at n - 1. The scheduler starts those that wait later than others: what has not begun stands there
    /// without a place in the order.
    entries: Paged<Entered>,
    /// How many have begun.
    begun: u32,
    /// Of those that were, or are to be, attempted again.
    attempts: FxHashMap<ExecutionId, Attempts>,
    /// Of those that failed for good.
    failures: FxHashMap<ExecutionId, Failure>,
    pub(super) violations: Vec<(ExecutionId, StepIndex, Vec<String>)>,
}

/// The trace of a run that waits, in which nothing has failed.
#[derive(Debug)]
pub(super) struct ParkedTrace {
    entries: Box<[Entered]>,
    begun: u32,
}

/// What an execution has behind it besides the attempt that it is at.
#[derive(Debug, Default)]
struct Attempts {
    failed: Vec<FailedAttempt>,
    /// When the attempt after the last of these is due; none once it has begun.
    next: Option<Duration>,
}

/// There is one for each execution until the run ends, so it is small.
#[derive(Debug)]
struct Entered {
    trigger: Seq,
    inputs: Inputs,
    /// The first of the events that it left in the log.
    first_emitted: Seq,
    /// How many there are.
    emitted: u32,
    step: StepIndex,
    scope: ScopeId,
    /// Its place in the order in which executions begin, from 1; 0 if it has not begun.
    order: u32,
    state: State,
    /// Both from the beginning of the run's clock.
    started: Nanos,
    ended: Nanos,
}

/// How far an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Succeeded,
    /// With what is among the failures.
    Failed,
    Refused,
    Dropped,
}

/// What an execution failed with.
#[derive(Debug)]
struct Failure {
    /// It is an [`ExecutionOutcome::Failed`].
    outcome: ExecutionOutcome,
    /// The event that it is, if a step catches it.
    caught: Option<Seq>,
}

/// A time in nanoseconds: 580 years at most.
#[derive(Debug, Clone, Copy)]
struct Nanos(u64);

impl From<Duration> for Nanos {
    fn from(time: Duration) -> Self {
        Self(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(Nanos(time): Nanos) -> Self {
        Self::from_nanos(time)
    }
}

impl Entered {
    /// In the place of one that has not begun.
    fn unbegun() -> Self {
        Self {
            trigger: Seq(0),
            inputs: Inputs::TRIGGER,
            first_emitted: Seq(0),
            emitted: 0,
            step: StepIndex::at(0),
            scope: ScopeId::ROOT,
            order: 0,
            state: State::Running,
            started: Nanos(0),
            ended: Nanos(0),
        }
    }

    fn took(&self) -> Duration {
        Duration::from(self.ended).saturating_sub(self.started.into())
    }
}

impl Trace {
    /// Whether it can be parked: nothing has failed.
    pub(super) fn can_park(&self) -> bool {
        let Self { entries: _, begun: _, attempts, failures, violations } = self;
        attempts.is_empty() && failures.is_empty() && violations.is_empty()
    }

    pub(super) fn park(&mut self) -> ParkedTrace {
        let Self { entries, begun, .. } = std::mem::take(self);
        ParkedTrace { entries: entries.into_boxed(), begun }
    }

    pub(super) fn unpark(ParkedTrace { entries, begun }: ParkedTrace) -> Self {
        Self { entries: entries.into_iter().collect(), begun, ..Self::default() }
    }

    /// How long the execution took; nothing while it runs.
    pub(super) fn took(&self, execution: ExecutionId) -> Duration {
        self.entry(execution).map_or(Duration::ZERO, Entered::took)
    }

    /// The first attempt begins.
    pub(super) fn start(&mut self, start: Start, now: Duration) {
        let Start { execution, step, scope, trigger, inputs } = start;
        let Some(place) = place_of(execution) else { return };
        self.begun = self.begun.saturating_add(1);
        let (order, now) = (self.begun, Nanos::from(now));
        let begun =
            Entered { trigger, inputs, step, scope, order, started: now, ended: now, ..Entered::unbegun() };
        (self.entries.len()..place).for_each(|_| self.entries.push(Entered::unbegun()));
        if self.entries.len() == place {
            self.entries.push(begun);
        } else if let Some(entry) = self.entries.get_mut(place) {
            *entry = begun;
        }
    }

    /// Unless it has not begun.
    fn entry(&self, execution: ExecutionId) -> Option<&Entered> {
        self.entries.get(place_of(execution)?).filter(|entry| entry.order > 0)
    }

    fn entry_mut(&mut self, execution: ExecutionId) -> Option<&mut Entered> {
        self.entries.get_mut(place_of(execution)?).filter(|entry| entry.order > 0)
    }

    pub(super) fn has_begun(&self, execution: ExecutionId) -> bool {
        self.entry(execution).is_some()
    }

    /// Those that have begun, by their numbers.
    fn numbered(&self) -> impl Iterator<Item = (ExecutionId, &Entered)> {
        (1..).map(ExecutionId).zip(self.entries.iter()).filter(|(_, entry)| entry.order > 0)
    }

    /// Those that have begun, in the order in which they did. O(n log n).
    fn ordered(&self) -> Vec<(ExecutionId, &Entered)> {
        in_order(self.numbered())
    }

    pub(super) fn scope_of(&self, execution: ExecutionId) -> Option<ScopeId> {
        self.entry(execution).map(|entry| entry.scope)
    }

    pub(super) fn step_of(&self, execution: ExecutionId) -> Option<StepIndex> {
        self.entry(execution).map(|entry| entry.step)
    }

    /// What was evaluated: the step, where, and by which event.
    pub(super) fn origin(&self, execution: ExecutionId) -> Option<(StepIndex, ScopeId, Seq)> {
        self.entry(execution).map(|entry| (entry.step, entry.scope, entry.trigger))
    }

    /// What the execution was begun as.
    pub(super) fn begun_as(&self, execution: ExecutionId) -> Option<Start> {
        let Entered { step, scope, trigger, inputs, .. } = self.entry(execution)?;
        Some(Start { execution, step: *step, scope: *scope, trigger: *trigger, inputs: inputs.clone() })
    }

    /// The failed attempts that were, or are to be, followed by another.
    pub(super) fn attempts(&self, execution: ExecutionId) -> &[FailedAttempt] {
        self.attempts.get(&execution).map_or(&[], |attempts| &attempts.failed)
    }

    /// When the attempt is, or was, due that the execution waits for, or waited for when it ended.
    pub(super) fn next_attempt(&self, execution: ExecutionId) -> Option<Duration> {
        self.attempts.get(&execution)?.next
    }

    /// How many attempts have begun, of an execution that has.
    pub(super) fn attempts_made(&self, execution: ExecutionId) -> u32 {
        self.attempt(execution) - u32::from(self.next_attempt(execution).is_some())
    }

    /// Which attempt the current one is, or the next while the execution waits for it, from 1.
    pub(super) fn attempt(&self, execution: ExecutionId) -> u32 {
        u32::try_from(self.attempts(execution).len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// How long ago the first attempt began.
    pub(super) fn elapsed(&self, execution: ExecutionId, now: Duration) -> Duration {
        self.entry(execution).map_or(Duration::ZERO, |entry| now.saturating_sub(entry.started.into()))
    }

    /// An attempt failed and is to be followed by another.
    pub(super) fn failed_attempt(&mut self, execution: ExecutionId, now: Duration, attempt: FailedAttempt) {
        let attempts = self.attempts.entry(execution).or_default();
        attempts.next = Some(now.saturating_add(attempt.retry_in));
        attempts.failed.push(attempt);
    }

    /// The next attempt begins.
    pub(super) fn attempted_again(&mut self, execution: ExecutionId) {
        if let Some(attempts) = self.attempts.get_mut(&execution) {
            attempts.next = None;
        }
    }

    fn end(&mut self, execution: ExecutionId, now: Duration, state: State) -> Option<&Entered> {
        let entry = self.entry_mut(execution)?;
        entry.ended = now.into();
        entry.state = state;
        Some(entry)
    }

    /// The execution's step, unless it has ended.
    pub(super) fn running_step(&self, execution: ExecutionId) -> Option<StepIndex> {
        let entry = self.entry(execution)?;
        (entry.state == State::Running).then_some(entry.step)
    }

    /// The step returned; whether its batch is accepted is not known yet.
    pub(super) fn returned(&mut self, execution: ExecutionId, now: Duration) {
        if let Some(entry) = self.entry_mut(execution) {
            entry.ended = now.into();
        }
    }

    /// The step returned this one event, which is in the log.
    pub(super) fn committed(&mut self, execution: ExecutionId, now: Duration, event: Seq) {
        if let Some(entry) = self.entry_mut(execution) {
            (entry.ended, entry.state) = (now.into(), State::Succeeded);
            (entry.first_emitted, entry.emitted) = (event, 1);
        }
    }

    pub(super) fn succeeded(&mut self, execution: ExecutionId) -> Option<StepIndex> {
        let entry = self.entry_mut(execution)?;
        entry.state = State::Succeeded;
        Some(entry.step)
    }

    pub(super) fn failed(
        &mut self,
        execution: ExecutionId,
        now: Duration,
        error: &StepError,
        not_retried: NotRetried,
    ) {
        let (class, error) = (error.class(), error.to_string());
        let outcome = ExecutionOutcome::Failed { class, error, not_retried };
        self.end(execution, now, State::Failed);
        self.failures.insert(execution, Failure { outcome, caught: None });
    }

    pub(super) fn dropped(&mut self, execution: ExecutionId, now: Duration) -> Option<StepIndex> {
        let step = self.running_step(execution)?;
        self.end(execution, now, State::Dropped);
        Some(step)
    }

    pub(super) fn refused(
        &mut self,
        execution: ExecutionId,
        now: Duration,
        events: &[&'static str],
    ) -> Option<StepIndex> {
        let step = self.end(execution, now, State::Refused)?.step;
        let events = events.iter().map(ToString::to_string).collect();
        self.violations.push((execution, step, events));
        Some(step)
    }

    pub(super) fn emitted(&mut self, execution: ExecutionId, entries: &[Entry]) {
        if let (Some(entry), Some(first)) = (self.entry_mut(execution), entries.first()) {
            entry.first_emitted = first.seq;
            entry.emitted = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        }
    }

    /// The failure of the execution is in the log.
    pub(super) fn caught(&mut self, execution: ExecutionId, failure: Seq) {
        if let Some(failed) = self.failures.get_mut(&execution) {
            failed.caught = Some(failure);
        }
    }

    /// How many executions of each step have begun.
    pub(super) fn begun(&self, table: &DependencyTable) -> Vec<u64> {
        let mut begun = vec![0; table.steps.len()];
        self.numbered().for_each(|(_, entry)| begun[entry.step.get()] += 1);
        begun
    }

    /// The executions that still run.
    pub(super) fn running(&self) -> Vec<ExecutionId> {
        in_order(self.numbered().filter(|(_, entry)| entry.state == State::Running))
            .into_iter()
            .map(|(execution, _)| execution)
            .collect()
    }

    pub(super) fn report(
        &self,
        table: &DependencyTable,
        began: Duration,
        children: &HashMap<ExecutionId, Vec<RunId>>,
    ) -> Vec<ExecutionTrace> {
        let takers = self.takers_of_failures();
        let traced = self.ordered().into_iter().map(|(execution, entry)| {
            let failure = self.caught_failure(execution);
            let caught_by = failure.and_then(|seq| takers.get(&seq)).cloned().unwrap_or_default();
            ExecutionTrace {
                outcome: self.outcome(execution, entry),
                failure,
                caught_by,
                children: children.get(&execution).cloned().unwrap_or_default(),
                attempts: self.attempts(execution).to_vec(),
                next_attempt: self.next_attempt(execution).map(|due| due.saturating_sub(began)),
                ..traced(execution, entry, table, began)
            }
        });
        traced.collect()
    }

    fn outcome(&self, execution: ExecutionId, entry: &Entered) -> ExecutionOutcome {
        match entry.state {
            State::Succeeded => ExecutionOutcome::Succeeded,
            State::Refused => ExecutionOutcome::Refused,
            State::Dropped => ExecutionOutcome::Dropped,
            State::Running | State::Failed => {
                let failure = self.failures.get(&execution);
                failure.map_or(ExecutionOutcome::Running, |failure| failure.outcome.clone())
            }
        }
    }

    /// The event that the failure of an execution is, if a step catches it.
    fn caught_failure(&self, execution: ExecutionId) -> Option<Seq> {
        self.failures.get(&execution)?.caught
    }

    /// Per failure that is an event the executions that it triggered or was handed to. O(executions).
    fn takers_of_failures(&self) -> HashMap<Seq, Vec<ExecutionId>> {
        let failures = self.failures.values().filter_map(|failure| Some((failure.caught?, Vec::new())));
        let mut takers: HashMap<Seq, Vec<ExecutionId>> = failures.collect();
        if takers.is_empty() {
            return takers;
        }
        for (execution, entry) in self.ordered() {
            let single = entry.inputs.others().into_iter().flatten().filter_map(|bound| match bound {
                Bound::One(seq) if *seq != entry.trigger => Some(*seq),
                _ => None,
            });
            for seq in single.chain([entry.trigger]) {
                if let Some(takers) = takers.get_mut(&seq) {
                    takers.push(execution);
                }
            }
        }
        takers
    }

    /// The branches with what ran in them. O(executions + branches).
    pub(super) fn branches(
        &self,
        records: impl Iterator<Item = BranchRecord>,
        table: &DependencyTable,
    ) -> Vec<BranchReport> {
        let mut branches: Vec<BranchReport> =
            records.filter_map(|record| self.branch(record, table)).collect();
        for (execution, entry) in self.numbered().filter(|(_, entry)| entry.scope != ScopeId::ROOT) {
            if let Some(branch) = branches.get_mut(entry.scope.0 as usize - 1) {
                branch.executions += 1;
                let failed = entry.state == State::Failed;
                branch.failed |= failed && self.caught_failure(execution).is_none();
            }
        }
        branches
    }

    fn branch(&self, record: BranchRecord, table: &DependencyTable) -> Option<BranchReport> {
        let BranchRecord { scope, parent, item, opener } = record;
        let step = Arc::clone(&table.step(self.step_of(opener)?).name);
        Some(BranchReport { scope, parent, step, opener, item, executions: 0, failed: false })
    }

    pub(super) fn violations(&self, table: &DependencyTable) -> Vec<Violation> {
        let violations = self.violations.iter().map(|(execution, step, events)| Violation::CommitAfterEnd {
            execution: *execution,
            step: Arc::clone(&table.step(*step).name),
            events: events.clone(),
        });
        violations.collect()
    }
}

fn in_order<'a>(
    entries: impl Iterator<Item = (ExecutionId, &'a Entered)>,
) -> Vec<(ExecutionId, &'a Entered)> {
    let mut ordered: Vec<_> = entries.collect();
    ordered.sort_unstable_by_key(|(_, entry)| entry.order);
    ordered
}

/// The place of an execution among the entries.
fn place_of(execution: ExecutionId) -> Option<usize> {
    usize::try_from(execution.0).ok()?.checked_sub(1)
}

/// What an entry says by itself.
fn traced(
    execution: ExecutionId,
    entry: &Entered,
    table: &DependencyTable,
    began: Duration,
) -> ExecutionTrace {
    let row = table.step(entry.step);
    let emitted = (entry.first_emitted.0..).map(Seq).take(entry.emitted as usize);
    ExecutionTrace {
        execution,
        step: Arc::clone(&row.name),
        scope: entry.scope,
        trigger: entry.trigger,
        inputs: entry.inputs.binding(row, entry.trigger).iter().map(bound_input).collect(),
        emitted: emitted.collect(),
        started: Duration::from(entry.started).saturating_sub(began),
        took: entry.took(),
        attempts: Vec::new(),
        next_attempt: None,
        outcome: ExecutionOutcome::Running,
        failure: None,
        caught_by: Vec::new(),
        children: Vec::new(),
    }
}

pub(super) fn bound_input(bound: &Bound) -> BoundInput {
    match bound {
        Bound::Nothing => BoundInput::Nothing,
        Bound::One(seq) => BoundInput::One(*seq),
        Bound::List(prefixes) => BoundInput::List(prefixes.iter().map(|(_, count)| count).sum()),
    }
}

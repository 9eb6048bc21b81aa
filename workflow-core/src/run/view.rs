//! Reports and explanations of a run, made from its state on request. A run that nobody asks about pays
//! nothing for them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use super::RunShared;
use super::clean_up::incomplete;
use super::clock::RunClock;
use super::executor::Executor;
use super::records::origin_of_end;
use super::state::{BranchRecord, RunState, TraceEntry, TraceState, bound_input};
use super::state_box::StateBox;
use super::waiting::Deferred;
use crate::event::Gathered;
use crate::explain::Explanation;
use crate::id::{ExecutionId, Origin, RunId, RunStatus, ScopeId, Seq};
use crate::outcome::RunError;
use crate::report::{
    BranchReport, ChildReport, ExecutionTrace, LoggedEvent, PauseReport, PendingTimer, Quality,
    RedriveReport, RunReport, RunningAttempt, StepReport, Violation,
};
use crate::scheduler::{Bound, Cause, Execution};
use crate::store::RunSummary;
use crate::table::StepIndex;

/// The state of an ended run, with its report and explanation once someone asked for them.
#[derive(Debug)]
pub(crate) struct EndedState {
    past: FinalState,
    report: OnceLock<Arc<RunReport>>,
    explanation: OnceLock<Arc<Explanation>>,
}

/// The state of a run at its end.
#[derive(Debug)]
pub(super) struct FinalState {
    pub(super) status: RunStatus,
    pub(super) state: StateBox,
    pub(super) began_at: SystemTime,
}

impl EndedState {
    pub(super) fn new(past: FinalState) -> Self {
        Self { past, report: OnceLock::new(), explanation: OnceLock::new() }
    }

    pub(crate) fn report(&self, run: &RunShared) -> Arc<RunReport> {
        Arc::clone(self.report.get_or_init(|| Arc::new(self.past.view(run).report())))
    }

    /// The unfinished clean-up steps.
    pub(super) fn incomplete_clean_up(&self) -> Vec<Arc<str>> {
        incomplete(&self.past.state)
    }

    /// Whether the run had ended before, and only its clean-up ran again.
    pub(super) fn only_cleaned_up(&self) -> bool {
        self.past.state.lives.redrives().last().is_some_and(|redrive| redrive.clean_up)
    }

    /// Whether the run's journal has the act of this origin.
    pub(super) fn knows(&self, origin: &Origin) -> bool {
        self.past.state.knows(origin)
    }

    pub(crate) fn explanation(&self, run: &RunShared) -> Arc<Explanation> {
        Arc::clone(self.explanation.get_or_init(|| Arc::new(self.past.view(run).explain())))
    }
}

impl FinalState {
    fn view<'a>(&'a self, run: &'a RunShared) -> View<'a> {
        let Self { status, state, began_at } = self;
        View { run, status: *status, state, deferred: None, began_at: *began_at, in_flight: None }
    }
}

/// A run at one moment, running or ended.
pub(super) struct View<'a> {
    pub(super) run: &'a RunShared,
    pub(super) status: RunStatus,
    pub(super) state: &'a RunState,
    /// The executions that have not begun; `None` once the run has ended.
    pub(super) deferred: Option<Deferred<'a>>,
    pub(super) began_at: SystemTime,
    /// The attempts in flight; `None` if there are none.
    pub(super) in_flight: Option<InFlightNow<'a>>,
}

/// The attempts in flight, with when they were last heard of.
pub(super) struct InFlightNow<'a> {
    executor: &'a Executor,
    /// When each attempt showed its latest retained item, as moments of the engine's clock.
    shown: HashMap<(ExecutionId, u32), u64>,
    /// This moment, by the clock of the run, and by that of the engine.
    now: Duration,
    moment: u64,
}

impl<'a> InFlightNow<'a> {
    /// O(retained items of the display), if something is in flight.
    pub(super) fn of(executor: &'a Executor, run: &RunShared, clock: &RunClock) -> Option<Self> {
        if executor.executing() == 0 {
            return None;
        }
        let shown = run.latest_shown();
        Some(Self { executor, shown, now: clock.current(), moment: run.common.clock.moment(Instant::now()) })
    }
}

/// How well a run with this status went so far, for its report and its summary.
pub(super) fn quality(status: RunStatus, state: &RunState, run: &RunShared) -> Quality {
    match status {
        RunStatus::Failed | RunStatus::Stalled | RunStatus::Cancelled | RunStatus::TimedOut => {
            Quality::Failed
        }
        _ if state.scheduler.is_degraded() => Quality::Degraded,
        _ if run.children.get().is_some_and(|registry| registry.has_failures()) => Quality::Degraded,
        _ => Quality::Clean,
    }
}

/// An ended run as a store lists it; `None` if its task is gone. It has no journal, and thus no positions in one.
pub(crate) fn summary_of_ended(run: &RunShared, ended: SystemTime) -> Option<RunSummary> {
    let FinalState { status, state, began_at } = &run.finished.get()?.kept.as_ref()?.past;
    let running = RunSummary::running(Arc::clone(&run.table.name), *began_at + state.log.began());
    Some(RunSummary {
        thread: Some(run.thread().clone()),
        metadata: Arc::new(run.metadata().clone()),
        parent: run.parent().cloned(),
        deadline: run.deadline(),
        ended: Some(ended),
        quality: Some(quality(*status, state, run)),
        incomplete_clean_up: Arc::new(incomplete(state)),
        ..running.ended(*status)
    })
}

impl View<'_> {
    pub(super) fn explain(&self) -> Explanation {
        Explanation::of(&self.state.scheduler, &self.report())
    }

    pub(super) fn report(&self) -> RunReport {
        let children = self.run.children.get().map(|registry| registry.reports()).unwrap_or_default();
        RunReport {
            run: self.run.id.clone(),
            thread: self.run.thread().clone(),
            workflow: Arc::clone(&self.state.table().name),
            status: self.status,
            quality: quality(self.status, self.state, self.run),
            steps: self.steps(),
            parent: self.run.parent().cloned(),
            waiting: self
                .deferred
                .as_ref()
                .map(|deferred| deferred.executions(self.state))
                .unwrap_or_default(),
            trace: self.trace(&by_execution(&children)),
            log: self.logged_events(),
            timers: self.timers(),
            branches: self.branches(),
            violations: self.violations(),
            clean_up: self.clean_up(),
            children,
            metadata: self.run.metadata().clone(),
            redrives: self.redrives(),
            cancelled_by: origin_of_end(self.state),
            cancel_reason: self.cancel_reason(),
            paused: self.paused(),
            deadline: self.deadline(),
        }
    }

    fn cancel_reason(&self) -> Option<Arc<str>> {
        match &self.run.finished.get()?.outcome {
            Err(RunError::Cancelled { reason }) => Some(Arc::clone(reason)),
            _ => None,
        }
    }

    fn paused(&self) -> Option<PauseReport> {
        let began = self.state.log.began();
        let pause = self.state.lives.pause().filter(|_| self.state.is_paused())?;
        Some(PauseReport {
            since: pause.since.saturating_sub(began),
            with_parent: !pause.own,
            origin: pause.origin.as_ref().map(|origin| (**origin).clone()),
        })
    }

    fn redrives(&self) -> Vec<RedriveReport> {
        let began = self.state.log.began();
        let redrives = self.state.lives.redrives().iter().cloned();
        redrives.map(|redrive| RedriveReport { at: redrive.at.saturating_sub(began), ..redrive }).collect()
    }

    /// Whether the execution has begun; it may have ended.
    fn has_begun(&self, execution: ExecutionId) -> bool {
        self.deferred.as_ref().is_none_or(|deferred| !deferred.has(execution))
    }

    /// The executions that have begun, in the order in which they were scheduled.
    fn begun(&self) -> impl Iterator<Item = (ExecutionId, &TraceEntry, &Execution)> {
        let begun = self.state.trace.ordered().into_iter().filter(|(id, _)| self.has_begun(*id));
        begun.filter_map(|(id, entry)| Some((id, entry, self.state.scheduler.executions().get(id)?)))
    }

    fn steps(&self) -> Vec<StepReport> {
        let table = self.state.table();
        let mut executions = vec![0; table.steps.len()];
        self.begun().for_each(|(_, _, execution)| executions[execution.step.get()] += 1);
        let report = |(row, executions): (usize, u64)| StepReport {
            step: Arc::clone(&table.steps[row].name),
            executions,
            surplus: self.state.scheduler.surplus_of(StepIndex::at(row)),
        };
        executions.into_iter().enumerate().map(report).collect()
    }

    fn trace(&self, children: &HashMap<ExecutionId, Vec<RunId>>) -> Vec<ExecutionTrace> {
        let (table, trace, began) = (self.state.table(), &self.state.trace, self.state.log.began());
        let takers = self.takers_of_failures();
        let traced = self.begun().map(|(id, entry, execution)| {
            let failure = trace.caught_failure(id);
            let row = table.step(execution.step);
            let inputs = execution.inputs.binding(row, execution.trigger);
            let emitted = (entry.first_emitted.0..).map(Seq).take(entry.emitted as usize);
            ExecutionTrace {
                execution: id,
                step: Arc::clone(&row.name),
                scope: execution.scope,
                trigger: execution.trigger,
                inputs: inputs.iter().map(bound_input).collect(),
                emitted: emitted.collect(),
                started: entry.started().saturating_sub(began),
                took: entry.took(),
                attempts: trace.attempts(id).to_vec(),
                next_attempt: trace.next_attempt(id).map(|due| due.saturating_sub(began)),
                running: if entry.state == TraceState::Running { self.running(id) } else { None },
                outcome: trace.outcome(id, entry),
                failure,
                caught_by: failure.and_then(|seq| takers.get(&seq)).cloned().unwrap_or_default(),
                children: children.get(&id).cloned().unwrap_or_default(),
            }
        });
        traced.collect()
    }

    /// The attempt of the execution that is under way in this process.
    fn running(&self, execution: ExecutionId) -> Option<RunningAttempt> {
        let InFlightNow { executor, shown, now, moment } = self.in_flight.as_ref()?;
        let (signs, trace) = (executor.last_sign(execution)?, &self.state.trace);
        if trace.next_attempt(execution).is_some() {
            return None;
        }
        // A clock that was set back may have shown items later than now.
        let shown = shown.get(&(execution, trace.attempt(execution))).filter(|shown| *shown <= moment);
        let last = shown.map_or(signs.last, |shown| signs.last.max(*shown));
        let running_for = now.saturating_sub(signs.began);
        let silent_for = Duration::from_nanos(moment.saturating_sub(last)).min(running_for);
        Some(RunningAttempt { running_for, silent_for })
    }

    /// The executions that took each caught failure as trigger or single input. O(executions).
    fn takers_of_failures(&self) -> HashMap<Seq, Vec<ExecutionId>> {
        let failures = self.state.trace.caught_failures().map(|seq| (seq, Vec::new()));
        let mut takers: HashMap<Seq, Vec<ExecutionId>> = failures.collect();
        if takers.is_empty() {
            return takers;
        }
        for (id, _, execution) in self.begun() {
            let single = execution.inputs.others().into_iter().flatten().filter_map(|bound| match bound {
                Bound::One(seq) if *seq != execution.trigger => Some(*seq),
                _ => None,
            });
            for seq in single.chain([execution.trigger]) {
                if let Some(takers) = takers.get_mut(&seq) {
                    takers.push(id);
                }
            }
        }
        takers
    }

    /// The branches, with the executions in them. O(executions + branches).
    fn branches(&self) -> Vec<BranchReport> {
        let branches = self.state.log.branches().filter_map(|record| self.branch(record));
        let mut branches: Vec<BranchReport> = branches.collect();
        for (id, entry, execution) in
            self.begun().filter(|(_, _, execution)| execution.scope != ScopeId::ROOT)
        {
            if let Some(branch) = branches.get_mut(execution.scope.0 as usize - 1) {
                branch.executions += 1;
                let failed = entry.state == TraceState::Failed;
                branch.failed |= failed && self.state.trace.caught_failure(id).is_none();
            }
        }
        self.mark_dropped(&mut branches);
        branches
    }

    /// Marks the branches that their gathers list as dropped. O(events) in a run with branches.
    fn mark_dropped(&self, branches: &mut [BranchReport]) {
        let is_there = !branches.is_empty();
        let gathers = self.state.log.records().filter(|_| is_there);
        let gathers = gathers.filter_map(|(_, record)| record.event.payload_ref::<Gathered>());
        for dropped in gathers.flat_map(|gather| &gather.branches).filter(|branch| branch.is_dropped()) {
            if let Some(branch) = branches.get_mut(dropped.scope.0 as usize - 1) {
                branch.dropped = true;
            }
        }
    }

    fn branch(&self, record: BranchRecord) -> Option<BranchReport> {
        let BranchRecord { scope, parent, item, opener } = record;
        let step = Arc::clone(&self.state.table().step(self.state.step_of(opener)?).name);
        Some(BranchReport { scope, parent, step, opener, item, executions: 0, failed: false, dropped: false })
    }

    fn violations(&self) -> Vec<Violation> {
        let violations = self.state.trace.violations.iter();
        let violations = violations.map(|(execution, step, events)| Violation::CommitAfterEnd {
            execution: *execution,
            step: Arc::clone(&self.state.table().step(*step).name),
            events: events.clone(),
        });
        violations.collect()
    }

    /// The pending timers, in the order in which they fire.
    pub(super) fn timers(&self) -> Vec<PendingTimer> {
        if self.deferred.is_none() {
            return Vec::new();
        }
        let table = self.state.table();
        let began = self.began_at + self.state.log.began();
        let pending = self.state.timers.pending(&self.state.scheduler).filter_map(|(due, entry)| {
            let step = self.state.step_of(entry.execution)?;
            Some(PendingTimer {
                timer: entry.timer,
                step: Arc::clone(&table.step(step).name),
                event: Arc::clone(&table.event(entry.event).name),
                scope: entry.scope,
                request: entry.request,
                due,
                after: due.duration_since(began).unwrap_or(Duration::ZERO),
            })
        });
        pending.collect()
    }

    fn logged_events(&self) -> Vec<LoggedEvent> {
        let table = self.state.table();
        let records = self.state.log.records().map(|(seq, record)| LoggedEvent {
            seq,
            scope: record.scope,
            event: Arc::clone(&table.event(record.index).name),
            value: record.event.clone(),
            execution: match record.cause {
                Cause::Execution(execution) | Cause::Failure(execution) | Cause::Timer { execution, .. } => {
                    Some(execution)
                }
                _ => None,
            },
            timer: if let Cause::Timer { timer, .. } = record.cause { Some(timer) } else { None },
            expired: if let Cause::Expired(request) = record.cause { Some(request) } else { None },
            at: self.began_at + record.at,
            origin: self.state.origin_of(seq).map(|origin| (**origin).clone()),
            reply_to: if let Cause::Reply(request) = record.cause { Some(request) } else { None },
        });
        records.collect()
    }
}

/// The ids of the children of each execution.
fn by_execution(children: &[ChildReport]) -> HashMap<ExecutionId, Vec<RunId>> {
    let mut ids: HashMap<ExecutionId, Vec<RunId>> = HashMap::new();
    for ChildReport { child, .. } in children {
        ids.entry(child.execution).or_default().push(child.run.clone());
    }
    ids
}

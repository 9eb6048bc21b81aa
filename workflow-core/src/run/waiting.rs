//! Executions that are due and have not begun, and the limits that they wait for (S21). Nothing is stored for
//! them: a report looks at the scheduler and at [admission](super::admission) when it is made.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::admission::Admission;
use super::commit::Committer;
use super::limited::{LimitedAttempts, WaitsAt};
use super::state::{EffectKind, RunState, bound_input};
use crate::id::{ExecutionId, RunId};
use crate::limit::{Arrival, Requester};
use crate::report::{HOLDERS, LimitHolder, WaitingExecution, WaitsFor};
use crate::scheduler::{ExecutionStart, QueuedExecution};
use crate::table::StepIndex;

/// The executions of a run that have not begun, and the limits that they wait for.
#[derive(Default)]
pub(super) struct Deferred<'a> {
    /// The limit on executions of the run, if it is reached.
    full: Option<usize>,
    /// The inbox or the limit for which the run waits, if it does.
    gate: Option<WaitsFor>,
    unbegun: FxHashSet<ExecutionId>,
    /// The executions of which a later attempt has not begun.
    again: FxHashSet<ExecutionId>,
    due: Vec<ExecutionStart>,
    /// The executions under which processes ended, and which wait for their turn.
    turns: Vec<ExecutionStart>,
    /// The execution whose turn it is.
    turn: Option<(RunId, ExecutionId)>,
    /// The waits of attempts of steps with named limits.
    limited: FxHashMap<ExecutionId, WaitsAt<'a>>,
    /// The attempt for which the run keeps a permit of its own and one of the step.
    preferred: Option<ExecutionId>,
    /// Whether the engine shuts down: nothing begins.
    shuts_down: bool,
}

impl<'a> Deferred<'a> {
    pub(super) fn new(committer: &Committer, admission: &'a Admission) -> Self {
        let state: &RunState = &committer.state;
        let is_wanted = |start: &&ExecutionStart| state.scheduler.is_running(start.execution);
        let mut due: Vec<_> = admission.due(state).filter(is_wanted).cloned().collect();
        let first = due.len();
        // In a pause the state knows them.
        let queued = state.effects.iter().map(|effect| &effect.begins).filter(|_| !state.is_paused());
        due.extend(queued.chain(admission.deferred()).filter_map(|begins| match begins {
            EffectKind::Attempt(execution) => state.start_of(*execution).filter(|start| is_wanted(&start)),
            _ => None,
        }));
        due.extend(state.deferred_attempts());
        let turns = admission.turns_before_begin();
        let turns: Vec<_> = turns.filter_map(|(id, _)| state.start_of(id)).collect();
        let turn = if turns.is_empty() { None } else { committer.shared.common.turns.holder() };
        let unbegun = due[..first].iter().chain(&turns).map(|start| start.execution).collect();
        let (full, gate, shuts_down) = (admission.full(), admission.waits_for(), committer.begins_nothing());
        let again = due[first..].iter().map(|start| start.execution).collect();
        let limited = admission.limited().map(|limited| limited.waits().collect()).unwrap_or_default();
        let preferred = admission.limited().and_then(LimitedAttempts::preferred);
        Self { full, gate, unbegun, again, due, turns, turn, limited, preferred, shuts_down }
    }

    /// The executions that a run without a driver has deferred: those that wait for the end of its pause.
    pub(super) fn recorded(state: &RunState) -> Self {
        let due: Vec<_> = state.deferred_attempts().collect();
        let again = due.iter().map(|start| start.execution).collect();
        Self { again, due, ..Self::default() }
    }

    /// Whether the state has the execution as running although it has not begun.
    pub(super) fn has(&self, execution: ExecutionId) -> bool {
        self.unbegun.contains(&execution)
    }

    /// The executions that have not begun, by their ids.
    pub(super) fn executions(&self, state: &RunState) -> Vec<WaitingExecution> {
        let due = self.due.iter().chain(&self.turns);
        let due = due.map(|start| QueuedExecution { start: start.clone(), full: None });
        let unbegun = state.scheduler.board().queued_executions().chain(due);
        let mut holders = Holders { state, deferred: self, of_run: None, of_steps: FxHashMap::default() };
        let mut waiting: Vec<_> = unbegun.map(|unbegun| self.waiting(&unbegun, &mut holders)).collect();
        waiting.sort_unstable_by_key(|waiting| waiting.execution);
        waiting
    }

    /// The execution with the first limit on its way: a pause, its step's, its run's, then those of runs.
    fn waiting(&self, unbegun: &QueuedExecution, holders: &mut Holders<'_>) -> WaitingExecution {
        let start = &unbegun.start;
        let row = holders.state.table().step(start.step);
        WaitingExecution {
            execution: start.execution,
            step: Arc::clone(&row.name),
            scope: start.scope,
            trigger: start.trigger,
            inputs: start.binding(row).iter().map(bound_input).collect(),
            waits_for: match (self.limited.get(&start.execution), unbegun.full, self.full) {
                _ if holders.state.is_paused() => WaitsFor::Pause,
                _ if self.turns.iter().any(|waits| waits.execution == start.execution) => {
                    let (run, execution) = self.turn.clone().unzip();
                    let attempts = holders.state.lives.of(start.execution).interruptions;
                    WaitsFor::Interrupted { attempts, run, execution }
                }
                (_, None, _) if self.shuts_down => WaitsFor::ShutDown,
                (Some(WaitsAt::Limit(arrival)), ..) => waits_for(arrival),
                (Some(WaitsAt::Key), ..) => WaitsFor::Nothing,
                (Some(&WaitsAt::Step(limit)), ..) | (None, Some(limit), _) => WaitsFor::Step {
                    step: Arc::clone(&row.name),
                    limit,
                    held_by: holders.of_step(start.step),
                },
                (None, None, Some(limit)) => WaitsFor::Run { limit, held_by: holders.of_run() },
                (None, None, None) => self.gate.clone().unwrap_or(WaitsFor::Nothing),
            },
        }
    }
}

/// The named limit on which an attempt waits, with what holds it up.
fn waits_for(arrival: &Arrival) -> WaitsFor {
    let (limiter, state) = (arrival.limiter(), arrival.wait_state(HOLDERS));
    let holder = |Requester { run, execution }| LimitHolder { run, execution };
    WaitsFor::Limit {
        name: Arc::clone(limiter.name()),
        key: Some(arrival.key()).filter(|key| !key.is_empty()).cloned(),
        limit: limiter.limit(),
        held_by: state.held_by.into_iter().map(holder).collect(),
        before: state.before,
    }
}

/// The first executions that hold the places of limits. Waiting executions share the lists.
struct Holders<'a> {
    state: &'a RunState,
    deferred: &'a Deferred<'a>,
    of_run: Option<Arc<[ExecutionId]>>,
    of_steps: FxHashMap<StepIndex, Arc<[ExecutionId]>>,
}

impl Holders<'_> {
    fn of_run(&mut self) -> Arc<[ExecutionId]> {
        let first = self.of_run.take().unwrap_or_else(|| self.first(|_| true));
        Arc::clone(self.of_run.insert(first))
    }

    fn of_step(&mut self, step: StepIndex) -> Arc<[ExecutionId]> {
        if let Some(first) = self.of_steps.get(&step) {
            return Arc::clone(first);
        }
        let first = self.first(|execution| self.state.step_of(execution) == Some(step));
        self.of_steps.insert(step, Arc::clone(&first));
        first
    }

    /// The first running executions that fit, oldest first. O(executions).
    fn first(&self, fits: impl Fn(ExecutionId) -> bool) -> Arc<[ExecutionId]> {
        let running = self.state.trace.running().into_iter();
        let Deferred { again, preferred, .. } = self.deferred;
        let begun =
            running.filter(|id| *preferred == Some(*id) || !self.deferred.has(*id) && !again.contains(id));
        begun.filter(|id| fits(*id)).take(HOLDERS).collect()
    }
}

//! Executions that are due and have not begun, and the limits that they wait for (S21). Nothing is stored for
//! them: a report looks at the scheduler and at [admission](super::admission) when it is made.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::admission::Admission;
use super::commit::Committer;
use super::permits::Limit;
use super::state::{RunState, bound_input};
use crate::id::{ExecutionId, RunId};
use crate::report::{HOLDERS, WaitingExecution, WaitsFor};
use crate::scheduler::{ExecutionStart, QueuedExecution};
use crate::table::StepIndex;

/// The executions of a run that have not begun, and the limits that they wait for.
#[derive(Default)]
pub(super) struct Deferred<'a> {
    /// The limit on executions of the run, if it is reached.
    full: Option<usize>,
    /// The limit at which the run waits for a permit, if it does.
    gate: Option<&'a Limit>,
    unbegun: FxHashSet<ExecutionId>,
    due: Vec<ExecutionStart>,
    /// The executions under which processes ended, and which wait for their turn.
    turns: Vec<ExecutionStart>,
    /// The execution whose turn it is.
    turn: Option<(RunId, ExecutionId)>,
    /// Whether the engine shuts down: nothing begins.
    shuts_down: bool,
}

impl<'a> Deferred<'a> {
    pub(super) fn new(committer: &Committer, admission: &'a Admission) -> Self {
        let state: &RunState = &committer.state;
        let is_wanted = |start: &&ExecutionStart| state.scheduler.is_running(start.execution);
        let due: Vec<_> = admission.due(state).filter(is_wanted).cloned().collect();
        let turns = admission.turns_before_begin();
        let turns: Vec<_> = turns.filter_map(|(id, _)| state.start_of(id)).collect();
        let turn = if turns.is_empty() { None } else { committer.shared.common.turns.holder() };
        let unbegun = due.iter().chain(&turns).map(|start| start.execution).collect();
        let (full, gate, shuts_down) = (admission.full(), admission.waits_at(), committer.begins_nothing());
        Self { full, gate, unbegun, due, turns, turn, shuts_down }
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

    /// The execution with the first limit on its way: its step's, its run's, then those of runs.
    fn waiting(&self, unbegun: &QueuedExecution, holders: &mut Holders<'_>) -> WaitingExecution {
        let start = &unbegun.start;
        let row = holders.state.table().step(start.step);
        WaitingExecution {
            execution: start.execution,
            step: Arc::clone(&row.name),
            scope: start.scope,
            trigger: start.trigger,
            inputs: start.binding(row).iter().map(bound_input).collect(),
            waits_for: match (unbegun.full, self.full) {
                _ if self.turns.iter().any(|waits| waits.execution == start.execution) => {
                    let (run, execution) = self.turn.clone().unzip();
                    let attempts = holders.state.lives.of(start.execution).interruptions;
                    WaitsFor::Interrupted { attempts, run, execution }
                }
                (None, _) if self.shuts_down => WaitsFor::ShutDown,
                (Some(limit), _) => WaitsFor::Step {
                    step: Arc::clone(&row.name),
                    limit,
                    held_by: holders.of_step(start.step),
                },
                (None, Some(limit)) => WaitsFor::Run { limit, held_by: holders.of_run() },
                (None, None) => self.gate.map_or(WaitsFor::Nothing, Limit::waits_for),
            },
        }
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
        running.filter(|id| !self.deferred.has(*id) && fits(*id)).take(HOLDERS).collect()
    }
}

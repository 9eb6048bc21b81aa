//! Executions: starting them within their limits (S21), and what their success or failure means.

use std::collections::{HashSet, VecDeque};

use smallvec::SmallVec;

use super::{Action, Emission, End, Evaluated, Inputs, Scheduler, Start, Wanted};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::output::FanOutPolicy;
use crate::table::StepIndex;

/// One execution, from creation to its end.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) step: StepIndex,
    pub(super) scope: ScopeId,
    trigger: Seq,
    state: ExecutionState,
    /// Where it is among those that run in branches, while it does.
    place: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum ExecutionState {
    Waiting,
    Running,
    Ended,
}

/// A step over all scopes.
#[derive(Debug, Default)]
pub(super) struct StepTotals {
    pub(super) executions: u64,
    pub(super) surplus: u64,
    pub(super) running: u32,
    /// The surplus over the step's and the run's concurrency, in order.
    waiting: VecDeque<(ExecutionId, Inputs)>,
}

impl StepTotals {
    /// Those of a step of which nothing runs or waits.
    pub(super) fn at_rest(executions: u64, surplus: u64) -> Self {
        Self { executions, surplus, ..Self::default() }
    }
}

/// An execution that was created and not handed out, or that nobody has begun.
#[derive(Debug)]
pub(crate) struct Unbegun {
    pub(crate) start: Start,
    /// What there is no room in.
    pub(crate) full: Option<Full>,
}

/// A limit that is reached, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The step's.
    Step(u32),
    /// The run's.
    Run(usize),
}

impl Unbegun {
    /// Of what was handed out to be started.
    pub(crate) fn of(wanted: &Wanted) -> Option<Self> {
        Some(Self { start: wanted.start()?.clone(), full: None })
    }
}

impl Execution {
    pub(super) fn new(step: StepIndex, scope: ScopeId, trigger: Seq) -> Self {
        Self { step, scope, trigger, state: ExecutionState::Waiting, place: 0 }
    }

    /// In the place of one that the run has not come to yet.
    pub(super) fn unknown() -> Self {
        let state = ExecutionState::Ended;
        Self { step: StepIndex::at(0), scope: ScopeId::ROOT, trigger: Seq(0), state, place: 0 }
    }

    /// It runs from here on, at this place if it does so in a branch.
    pub(super) fn begin(&mut self, place: usize) {
        self.state = ExecutionState::Running;
        self.place = u32::try_from(place).expect("fewer executions run than there are numbers for");
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == ExecutionState::Running
    }
}

impl Scheduler {
    pub(super) fn execution(&mut self, id: ExecutionId) -> Option<&mut Execution> {
        self.executions.get_mut(usize::try_from(id.0).ok()?.checked_sub(1)?)
    }

    pub(super) fn execution_at(&self, id: ExecutionId) -> Option<&Execution> {
        self.executions.get(usize::try_from(id.0).ok()?.checked_sub(1)?)
    }

    /// How many executions there were so far.
    pub(super) fn executed(&self) -> u64 {
        // A journal may tell of one number twice.
        let untaken = self.recalled.as_ref().map_or(0, |recalled| recalled.left());
        self.executions.len().saturating_sub(untaken) as u64
    }

    /// Takes a new execution into account, and numbers it.
    pub(super) fn count_execution(&mut self, evaluated: Evaluated) -> ExecutionId {
        let (step, scope, trigger) = evaluated;
        if let Some(scope) = self.scopes.get_mut(scope) {
            scope.executed(step, self.table.step(step));
        }
        self.totals[step.get()].executions += 1;
        self.number_execution(Execution::new(step, scope, trigger), evaluated)
    }

    /// Numbers a new execution: as the journal does, if one tells of it, else as the next that it does not tell of.
    fn number_execution(&mut self, execution: Execution, evaluated: Evaluated) -> ExecutionId {
        if let Some(id) = self.recalled.as_mut().and_then(|recalled| recalled.number(evaluated)) {
            if let Some(place) = self.execution(id) {
                *place = execution;
            }
            return id;
        }
        self.executions.push(execution);
        ExecutionId(self.executions.len() as u64)
    }

    pub(super) fn schedule(&mut self, start: Start) {
        let has_room = self.has_room(start.step);
        let totals = &mut self.totals[start.step.get()];
        if totals.waiting.is_empty() && has_room {
            self.start(start);
        } else {
            totals.waiting.push_back((start.execution, start.inputs));
            self.waiting += 1;
        }
    }

    pub(super) fn has_room(&self, step: StepIndex) -> bool {
        self.full(step).is_none()
    }

    fn full(&self, step: StepIndex) -> Option<Full> {
        let most = self.table.step(step).policy.concurrency;
        let most = most.filter(|most| self.totals[step.get()].running >= *most);
        let limit = self.limits.concurrent_executions;
        most.map(Full::Step).or_else(|| (self.running >= limit).then_some(Full::Run(limit)))
    }

    /// The executions that wait for room, and those that have some and were not handed out yet.
    pub(crate) fn unbegun(&self) -> impl Iterator<Item = Unbegun> {
        let waiting = self.totals.iter().enumerate().flat_map(move |(at, totals)| {
            let full = self.full(StepIndex::at(at));
            totals.waiting.iter().filter_map(move |(id, inputs)| {
                Some(Unbegun { start: self.start_of(*id, inputs.clone())?, full })
            })
        });
        waiting.chain(self.actions.iter().filter_map(Unbegun::of))
    }

    fn start(&mut self, start: Start) {
        self.run(start.execution, start.step, start.scope);
        self.actions.push_back(Wanted::Start(start));
    }

    /// What waits, to be started.
    fn start_of(&self, id: ExecutionId, inputs: Inputs) -> Option<Start> {
        let Execution { step, scope, trigger, .. } = *self.execution_at(id)?;
        Some(Start { execution: id, step, scope, trigger, inputs })
    }

    /// Starts what waited, oldest first, as far as there is room. O(steps) per execution started.
    pub(super) fn start_waiting(&mut self) {
        while self.waiting > 0 && !self.refuses() {
            let heads = self.totals.iter().enumerate().filter_map(|(i, totals)| {
                let (id, _) = totals.waiting.front()?;
                self.has_room(StepIndex::at(i)).then_some((*id, i))
            });
            let Some((_, step)) = heads.min() else { return };
            let Some((id, inputs)) = self.totals[step].waiting.pop_front() else { return };
            self.waiting -= 1;
            if let Some(start) = self.start_of(id, inputs) {
                self.start(start);
            }
        }
    }

    /// Ends an execution; `None` if it is not running, be it unknown, ended or dropped.
    pub(super) fn end_execution(&mut self, id: ExecutionId) -> Option<(StepIndex, ScopeId)> {
        let execution = self.execution(id).filter(|execution| execution.is_running())?;
        execution.state = ExecutionState::Ended;
        let (step, scope, place) = (execution.step, execution.scope, execution.place);
        self.totals[step.get()].running -= 1;
        self.running -= 1;
        if scope != ScopeId::ROOT {
            self.leave_branch(place);
        }
        Some((step, scope))
    }

    /// The execution at this place runs in its branch no more; the last one takes its place.
    fn leave_branch(&mut self, place: u32) {
        self.running_in_branches.swap_remove(place as usize);
        let moved = self.running_in_branches.get(place as usize).copied();
        if let Some(moved) = moved.and_then(|moved| self.execution(moved)) {
            moved.place = place;
        }
    }

    /// S23: what the execution emitted goes to the log as one batch.
    pub(super) fn succeed(&mut self, id: ExecutionId, emissions: &SmallVec<[Emission; 1]>) {
        let Some((_, scope)) = self.end_execution(id) else { return };
        if self.refuses() {
            self.want(Action::RefuseCommit { execution: id });
            return;
        }
        self.commit(id, scope, emissions);
        self.release(scope);
        self.start_waiting();
    }

    /// S29. A failure that is caught is an event of the scope it happened in, which has not failed. One that comes
    /// after the stop event does not change how the run ends (S28).
    pub(super) fn fail(&mut self, id: ExecutionId) {
        let Some((step, scope)) = self.end_execution(id) else { return };
        if self.refuses() {
            return;
        }
        let row = self.table.step(step);
        if let Some(failed) = row.failed {
            self.degraded = true;
            self.append_failure(id, scope, failed);
        } else if row.policy.continue_on_error {
            self.degraded = true;
        } else {
            self.fail_scope(scope, vec![id]);
        }
        self.release(scope);
        self.start_waiting();
    }

    /// A failure in a scope: it ends the run at the root, and goes by the fan-out's policy in a branch (S49).
    pub(super) fn fail_scope(&mut self, id: ScopeId, failures: Vec<ExecutionId>) {
        let Some(scope) = self.scopes.get_mut(id) else { return };
        let Some((group, _)) = scope.branch else {
            self.finish(End::Failed(failures));
            return;
        };
        scope.failures.extend(failures.iter().copied());
        match self.groups.get(&group).map(|group| (group.policy, group.opener)) {
            Some((FanOutPolicy::FailAll, opener)) => {
                self.drop_group(group);
                self.fail_scope(opener, failures);
                self.release(opener);
            }
            Some((FanOutPolicy::ContinueOthers, _)) => self.degraded = true,
            Some((FanOutPolicy::WaitAll, _)) | None => {}
        }
    }

    /// Drops every execution, candidate, request and timer of scopes that are being dropped. O(what is
    /// open), however much has ended.
    pub(super) fn drop_work(&mut self, scopes: &HashSet<ScopeId>) {
        self.candidates.retain(|_, candidate| !scopes.contains(&candidate.scope));
        self.requests.retain(|_, request| !scopes.contains(&request.scope));
        self.timers.retain(|_, timer| !scopes.contains(&timer.scope));
        self.unevaluated.retain(|event| !scopes.contains(&event.entry.scope));
        let unstarted = self.drop_starts(scopes);
        self.drop_waiting(scopes);
        self.drop_running(scopes, &unstarted);
    }

    /// Takes back what was not handed out yet, and returns the executions among it.
    fn drop_starts(&mut self, scopes: &HashSet<ScopeId>) -> HashSet<ExecutionId> {
        let mut unstarted = HashSet::new();
        self.actions.retain(|wanted| match wanted {
            Wanted::Start(Start { execution, scope, .. }) if scopes.contains(scope) => {
                unstarted.insert(*execution);
                false
            }
            Wanted::Act(Action::AskPrecondition { scope, .. }) => !scopes.contains(scope),
            _ => true,
        });
        unstarted
    }

    fn drop_waiting(&mut self, scopes: &HashSet<ScopeId>) {
        let executions = &self.executions;
        let stays = |id: ExecutionId| {
            let at = usize::try_from(id.0 - 1).ok();
            !at.is_some_and(|at| scopes.contains(&executions[at].scope))
        };
        for totals in &mut self.totals {
            totals.waiting.retain(|(id, _)| stays(*id));
        }
        self.waiting = self.totals.iter().map(|totals| totals.waiting.len()).sum();
    }

    fn drop_running(&mut self, scopes: &HashSet<ScopeId>, unstarted: &HashSet<ExecutionId>) {
        let lies_there = |id: &ExecutionId| {
            self.execution_at(*id).is_some_and(|execution| scopes.contains(&execution.scope))
        };
        let mut dropped: Vec<ExecutionId> =
            self.running_in_branches.iter().copied().filter(lies_there).collect();
        dropped.sort_unstable();
        for execution in dropped {
            self.end_execution(execution);
            if !unstarted.contains(&execution) {
                self.want(Action::DropExecution { execution });
            }
        }
    }
}

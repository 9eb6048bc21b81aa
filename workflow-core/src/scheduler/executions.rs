//! The executions of a run from creation to end, with their numbers and the concurrency of steps (S21). The
//! module knows steps and scopes by their numbers only. The batch of an execution is the concern of
//! [`commit`](super::commit).
//!
//! ```text
//!  Unknown ─▶ Waiting ─▶ Running ─▶ Ended
//!     │          └── the step has reached its concurrency
//!     └── the number is reserved: a journal has a higher one
//! ```
//!
//! Invariants: `running` and `waiting` are the numbers of entries in these states. A waiting queue of a step
//! exists only while an execution waits, and its order is the order of creation.
//!
//! An example of `concurrency = 1`: executions 1, 2 and 3 of a step are created. `admit` runs 1 and queues 2
//! and 3. When 1 ends, `next_waiting` runs 2. Executions of other steps pass the queue.
//!
//! On resume the scheduler creates the executions of the journal again, perhaps in another order than that of
//! their ends. [`RecordedNumbers`] has the journal's numbers, so that each gets the number it had.

#![expect(clippy::inline_always, reason = "this is the hot path: inlined parts pass values in registers")]

use std::collections::{HashSet, VecDeque};

use smallvec::SmallVec;

use super::by_scope::ByScope;
use super::recorded_numbers::RecordedNumbers;
use super::{EvaluationKey, ExecutionStart, Inputs};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::paged::Paged;
use crate::table::{DependencyTable, StepIndex};

/// The most executions that a journal may have beyond those that its replay leads to.
const MOST_MISSING: usize = 1 << 16;

/// The executions of a run. Execution n is at n - 1.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    /// Every execution created so far, and placeholders for reserved numbers. Entries never move.
    entries: Paged<Execution>,
    /// The numbers that a journal has for executions to be created again; `None` in a run that was not
    /// resumed.
    recalled: Option<Box<RecordedNumbers>>,
    /// Totals by step. A small table needs no allocation for them.
    totals: SmallVec<[StepTotals; 4]>,
    /// The number of running executions.
    running: usize,
    /// The running executions of branches, which can be dropped with them. Each execution knows its place in
    /// here.
    running_in_branches: Vec<ExecutionId>,
    /// The running and waiting executions by scope. Only dropped branches ask.
    in_branches: ByScope,
    /// The number of executions that wait for the concurrency of their steps.
    waiting: usize,
}

/// One execution. An entry exists for each execution until the run ends, so it is small.
#[derive(Debug)]
pub(crate) struct Execution {
    /// The step to call.
    pub(crate) step: StepIndex,
    /// The scope in which the step was evaluated; the emissions belong to it.
    pub(crate) scope: ScopeId,
    /// The event that triggered the evaluation. With step and scope this identifies the execution on resume.
    pub(crate) trigger: Seq,
    /// The binding, kept for later attempts and for reports.
    pub(crate) inputs: Inputs,
    /// The place in `running_in_branches`; meaningful only while the execution runs in a branch.
    place: u32,
    /// Set by `create`, `run` and `end`; an ended execution stays ended, unless it begins anew.
    state: ExecutionState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExecutionState {
    /// Not created yet: a journal has a higher number.
    Unknown,
    /// Created; others of its step use up the concurrency, or `admit` comes next.
    Waiting,
    /// Started, in all its attempts and the delays between them.
    Running,
    /// Succeeded, failed for good, or dropped. A waiting execution that is dropped never gets here: only its queue
    /// entry is removed.
    Ended,
}

/// The totals of a step over all scopes.
#[derive(Debug, Default)]
struct StepTotals {
    /// The executions created so far.
    executions: u64,
    /// The events that came after a fixed list of the step was full (S17).
    surplus: u64,
    /// The executions that run, which `concurrency` bounds.
    running: u32,
    /// The executions over the step's concurrency, oldest first; `None` if none waits.
    #[expect(
        clippy::box_collection,
        reason = "few steps have a queue, which takes four times the room of a pointer"
    )]
    waiting: Option<Box<VecDeque<ExecutionId>>>,
}

/// The executions of a suspended run: none runs or waits.
#[derive(Debug)]
pub(super) struct SuspendedExecutions {
    /// All executions; each has ended.
    entries: Box<[Execution]>,
    /// By step, the number of executions and the surplus.
    totals: Box<[(u64, u64)]>,
}

/// An execution that was created and has not begun.
#[derive(Debug)]
pub(crate) struct QueuedExecution {
    /// The execution with its binding.
    pub(crate) start: ExecutionStart,
    /// The concurrency of the step, if the step has reached it.
    pub(crate) full: Option<u32>,
}

impl Execution {
    /// A placeholder for a number that is not created yet.
    fn unknown() -> Self {
        Self {
            step: StepIndex::at(0),
            scope: ScopeId::ROOT,
            trigger: Seq(0),
            inputs: Inputs::TRIGGER,
            place: 0,
            state: ExecutionState::Unknown,
        }
    }

    /// Whether it was started and has neither ended nor been dropped.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.state == ExecutionState::Running
    }

    /// Whether it has not ended. Also true of one that was dropped before it started.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, ExecutionState::Waiting | ExecutionState::Running)
    }

    /// The execution and its state in words, for snapshots.
    pub(super) fn snapshot(&self) -> String {
        let Self { step, scope, trigger, inputs, place: _, state } = self;
        format!("{step:?} in {scope} by {trigger} with {inputs:?} {state:?}")
    }

    /// The execution as an action to start it.
    pub(crate) fn start(&self, execution: ExecutionId) -> ExecutionStart {
        let Self { step, scope, trigger, ref inputs, .. } = *self;
        ExecutionStart { execution, step, scope, trigger, inputs: inputs.clone() }
    }
}

impl StepTotals {
    /// The executions that wait for others of this step, oldest first.
    fn waiting(&self) -> impl Iterator<Item = ExecutionId> {
        self.waiting.iter().flat_map(|waiting| waiting.iter().copied())
    }
}

impl Executions {
    #[inline]
    pub(super) fn new(steps: usize) -> Self {
        let totals = (0..steps).map(|_| StepTotals::default()).collect();
        Self { totals, ..Self::default() }
    }

    /// The execution; `None` if it was not created yet.
    #[inline]
    pub(crate) fn get(&self, id: ExecutionId) -> Option<&Execution> {
        self.entries.get(place_of(id)?).filter(|execution| execution.state != ExecutionState::Unknown)
    }

    #[inline]
    fn get_mut(&mut self, id: ExecutionId) -> Option<&mut Execution> {
        self.entries.get_mut(place_of(id)?)
    }

    /// The created executions, by number.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (ExecutionId, &Execution)> {
        let numbered = (1..).map(ExecutionId).zip(self.entries.iter());
        numbered.filter(|(_, execution)| execution.state != ExecutionState::Unknown)
    }

    /// By step: the number of executions, of running ones, the surplus, and the waiting executions.
    pub(super) fn counts(&self) -> Vec<(u64, u32, u64, Vec<ExecutionId>)> {
        let counts = self.totals.iter().map(|totals| {
            let StepTotals { executions, surplus, running, .. } = *totals;
            (executions, running, surplus, totals.waiting().collect())
        });
        counts.collect()
    }

    /// The number of executions created so far.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        // Saturating, since a journal may have one number twice.
        let reserved = self.recalled.as_ref().map_or(0, |recalled| recalled.left());
        self.entries.len().saturating_sub(reserved) as u64
    }

    pub(super) fn count_of(&self, step: StepIndex) -> u64 {
        self.totals[step.get()].executions
    }

    pub(super) fn surplus_of(&self, step: StepIndex) -> u64 {
        self.totals[step.get()].surplus
    }

    #[cfg(test)]
    pub(super) fn forget_surplus(&mut self, step: StepIndex) {
        self.totals[step.get()].surplus = 0;
    }

    pub(super) fn add_surplus(&mut self, step: StepIndex) {
        self.totals[step.get()].surplus += 1;
    }

    /// The number of executions that wait for the concurrency of their steps.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether no execution runs or waits.
    #[inline]
    pub(super) fn are_idle(&self) -> bool {
        self.running + self.waiting == 0
    }

    /// Reserves the numbers that a journal has, up to `most`. A created execution gets its number from the
    /// journal, or the lowest number that the journal does not have.
    pub(super) fn reserve_numbers(
        &mut self,
        numbers: impl Iterator<Item = (EvaluationKey, ExecutionId)>,
        most: u64,
    ) {
        let recalled = RecordedNumbers::new(numbers, most);
        while self.entries.len() < recalled.last() {
            self.entries.push(Execution::unknown());
        }
        self.recalled = Some(Box::new(recalled));
    }

    /// Creates and numbers an execution. The execution waits until [`admit`](Self::admit) lets it run.
    #[inline(always)]
    pub(super) fn create(&mut self, evaluated: EvaluationKey, inputs: Inputs) -> ExecutionStart {
        let (step, scope, trigger) = evaluated;
        let state = ExecutionState::Waiting;
        let created = Execution { step, scope, trigger, inputs: inputs.clone(), place: 0, state };
        let execution = self.number(created);
        ExecutionStart { execution, step, scope, trigger, inputs }
    }

    /// Creates an execution that runs at once and is bound to its trigger alone. The caller knows that the step has room
    /// and that none waits: the same effect as [`create`](Self::create) and [`admit`](Self::admit), without a queue.
    #[inline(always)]
    pub(super) fn create_running(&mut self, evaluated: EvaluationKey) -> ExecutionId {
        let (step, scope, trigger) = evaluated;
        let (place, state) = (self.place_in_branches(), ExecutionState::Running);
        let created = Execution { step, scope, trigger, inputs: Inputs::TRIGGER, place, state };
        let execution = self.number(created);
        self.note_running(execution, step, scope);
        execution
    }

    /// Stores a new execution under its number: the recorded one, a free one below the greatest recorded one,
    /// or the next.
    #[inline(always)]
    fn number(&mut self, created: Execution) -> ExecutionId {
        let Execution { step, scope, trigger, .. } = created;
        let evaluated = (step, scope, trigger);
        self.totals[step.get()].executions += 1;
        // A run that was not resumed has no recorded numbers, and the execution is appended.
        let recalled = self.recalled.as_mut().and_then(|recalled| recalled.number(evaluated));
        let execution = recalled.unwrap_or(ExecutionId(self.entries.len() as u64 + 1));
        // A recorded number has a placeholder; any other execution gets the next entry.
        match recalled.and_then(|id| self.get_mut(id)) {
            Some(place) => *place = created,
            None => self.entries.push(created),
        }
        execution
    }

    /// Runs a new execution and returns it, or queues it behind others of its step. A new execution never passes
    /// one that waits, even if there is room: executions of a step start in the order of their creation (S21).
    #[inline]
    pub(super) fn admit(&mut self, start: ExecutionStart, table: &DependencyTable) -> Option<ExecutionStart> {
        if self.totals[start.step.get()].waiting.is_none() && self.has_room(start.step, table) {
            self.run(&start);
            return Some(start);
        }
        self.defer(&start);
        None
    }

    /// Queues a new execution behind others of its step.
    pub(super) fn defer(&mut self, start: &ExecutionStart) {
        self.totals[start.step.get()].waiting.get_or_insert_default().push_back(start.execution);
        self.waiting += 1;
        self.in_branches.add(start.scope, start.execution.0);
    }

    /// Returns an execution that has not begun to the queue of its step, where it has the place of its number. Does
    /// nothing if it does not run.
    pub(super) fn withdraw(&mut self, id: ExecutionId) {
        let Some(execution) = self.get_mut(id).filter(|execution| execution.is_running()) else { return };
        execution.state = ExecutionState::Waiting;
        let (step, scope, place) = (execution.step, execution.scope, execution.place);
        self.running -= 1;
        if scope != ScopeId::ROOT {
            // It stays in `in_branches`, which has those that wait too.
            self.leave_branch(place);
        }
        let totals = &mut self.totals[step.get()];
        totals.running -= 1;
        let waiting = totals.waiting.get_or_insert_default();
        waiting.insert(waiting.partition_point(|other| *other < id), id);
        self.waiting += 1;
    }

    /// Whether another execution of the step may run.
    #[inline]
    pub(super) fn has_room(&self, step: StepIndex, table: &DependencyTable) -> bool {
        self.full(step, table).is_none()
    }

    /// The concurrency of the step, if that many executions run.
    #[inline]
    fn full(&self, step: StepIndex, table: &DependencyTable) -> Option<u32> {
        let most = table.step(step).scheduled_concurrency();
        most.filter(|most| self.totals[step.get()].running >= *most)
    }

    /// Marks a waiting execution as running.
    #[inline]
    pub(super) fn run(&mut self, start: &ExecutionStart) {
        let place = self.place_in_branches();
        if let Some(entry) = self.get_mut(start.execution) {
            (entry.state, entry.place) = (ExecutionState::Running, place);
        }
        self.note_running(start.execution, start.step, start.scope);
    }

    /// The place that the next running execution of a branch gets.
    #[inline]
    fn place_in_branches(&self) -> u32 {
        u32::try_from(self.running_in_branches.len()).expect("fewer than 4 billion executions run at a time")
    }

    /// Counts an execution that runs from here on.
    #[inline]
    fn note_running(&mut self, execution: ExecutionId, step: StepIndex, scope: ScopeId) {
        self.totals[step.get()].running += 1;
        self.running += 1;
        if scope != ScopeId::ROOT {
            self.running_in_branches.push(execution);
            self.in_branches.add(scope, execution.0);
        }
    }

    /// Runs and returns the oldest waiting execution whose step has room. O(steps), or O(1) if none waits.
    #[inline]
    pub(super) fn next_waiting(&mut self, table: &DependencyTable) -> Option<ExecutionStart> {
        if self.waiting == 0 { None } else { self.next_of_waiting(table) }
    }

    /// The oldest is the one with the lowest number among the heads of the steps' queues.
    fn next_of_waiting(&mut self, table: &DependencyTable) -> Option<ExecutionStart> {
        // Each queue is in the order of numbers, so its head is the oldest of the step.
        let heads = self.totals.iter().enumerate().filter_map(|(row, totals)| {
            let id = totals.waiting().next()?;
            self.has_room(StepIndex::at(row), table).then_some((id, row))
        });
        let (id, row) = heads.min()?;
        let waiting = &mut self.totals[row].waiting;
        waiting.as_mut()?.pop_front();
        waiting.take_if(|waiting| waiting.is_empty());
        self.waiting -= 1;
        let start = self.get(id)?.start(id);
        self.run(&start);
        Some(start)
    }

    /// The executions that wait for others of their steps, for reports: step by step, oldest first.
    pub(super) fn queued_executions<'a>(
        &'a self,
        table: &'a DependencyTable,
    ) -> impl Iterator<Item = QueuedExecution> + 'a {
        self.totals.iter().enumerate().flat_map(move |(row, totals)| {
            let full = self.full(StepIndex::at(row), table);
            totals
                .waiting()
                .filter_map(move |id| Some(QueuedExecution { start: self.get(id)?.start(id), full }))
        })
    }

    /// Ends a running execution. `None` if it is unknown, waiting, ended or dropped. So of several ends of one execution
    /// only the first counts.
    #[inline(always)]
    pub(super) fn end(&mut self, id: ExecutionId) -> Option<(StepIndex, ScopeId)> {
        let execution = self.get_mut(id).filter(|execution| execution.is_running())?;
        execution.state = ExecutionState::Ended;
        let (step, scope, place) = (execution.step, execution.scope, execution.place);
        self.totals[step.get()].running -= 1;
        self.running -= 1;
        if scope != ScopeId::ROOT {
            self.leave_branch(place);
            self.in_branches.remove(scope, id.0);
        }
        Some((step, scope))
    }

    /// Removes a place from `running_in_branches`; the last execution moves into it.
    fn leave_branch(&mut self, place: u32) {
        self.running_in_branches.swap_remove(place as usize);
        // `swap_remove` moved the last execution to this place, unless it was the removed one.
        let moved = self.running_in_branches.get(place as usize).copied();
        if let Some(moved) = moved.and_then(|moved| self.get_mut(moved)) {
            moved.place = place;
        }
    }

    /// Drops the running and waiting executions of these scopes. Returns those that ran and those that waited, by
    /// number. O(log of all open ones) for each, after the first time.
    pub(super) fn drop_in(&mut self, scopes: &[ScopeId]) -> (Vec<ExecutionId>, Vec<ExecutionId>) {
        if self.running_in_branches.is_empty() && self.waiting == 0 {
            return (Vec::new(), Vec::new());
        }
        // Taken out, since all of them are looked up in `self`.
        let mut in_branches = std::mem::take(&mut self.in_branches);
        let waiting = self.totals.iter().flat_map(StepTotals::waiting);
        let open = waiting.chain(self.running_in_branches.iter().copied());
        let all = open.filter_map(|id| Some((self.get(id)?.scope, id.0)));
        let taken = in_branches.take(scopes, all);
        self.in_branches = in_branches;
        let (mut ran, mut waited) = (Vec::new(), Vec::new());
        for id in taken.into_iter().map(ExecutionId) {
            if self.end(id).is_some() {
                ran.push(id);
            } else {
                self.drop_waiting(id);
                waited.push(id);
            }
        }
        ran.sort_unstable();
        waited.sort_unstable();
        (ran, waited)
    }

    /// The running and waiting executions of these scopes.
    pub(super) fn open_in(&self, scopes: &HashSet<ScopeId>) -> Vec<ExecutionId> {
        let waiting = self.totals.iter().flat_map(StepTotals::waiting);
        let open = self.running_in_branches.iter().copied().chain(waiting);
        open.filter(|id| self.get(*id).is_some_and(|it| scopes.contains(&it.scope))).collect()
    }

    /// The scopes of the running and waiting executions, once for each.
    pub(super) fn open_scopes(&self) -> impl Iterator<Item = ScopeId> {
        let running = self.numbered().filter(|(_, execution)| execution.is_running());
        let waiting = self.totals.iter().flat_map(StepTotals::waiting).filter_map(|id| self.get(id));
        running.map(|(_, execution)| execution).chain(waiting).map(|execution| execution.scope)
    }

    /// Returns the running executions, and these that had ended, to the queues of their steps, where they wait in
    /// the order of their numbers (S39).
    pub(super) fn begin_anew(&mut self, ended: impl Iterator<Item = ExecutionId>) {
        let mut open: Vec<ExecutionId> = ended.filter(|id| self.get(*id).is_some()).collect();
        open.extend(self.numbered().filter(|(_, execution)| execution.is_running()).map(|(id, _)| id));
        open.extend(self.totals.iter().flat_map(StepTotals::waiting));
        open.sort_unstable();
        open.dedup();
        self.running_in_branches.clear();
        // Put in order again by the next drop.
        self.in_branches = ByScope::default();
        (self.running, self.waiting) = (0, open.len());
        for totals in &mut self.totals {
            (totals.running, totals.waiting) = (0, None);
        }
        for id in open {
            let Some(entry) = self.get_mut(id) else { continue };
            entry.state = ExecutionState::Waiting;
            let step = entry.step;
            self.totals[step.get()].waiting.get_or_insert_default().push_back(id);
        }
    }

    /// Removes an execution from the queue of its step.
    /// Its entry stays `Waiting`, and no queue has it, so nothing starts it.
    fn drop_waiting(&mut self, id: ExecutionId) {
        let Some(step) = self.get(id).map(|execution| execution.step) else { return };
        let waiting = &mut self.totals[step.get()].waiting;
        let Some(queue) = waiting else { return };
        // The queue is in the order of numbers, except perhaps behind a resume.
        let place = queue.binary_search(&id).ok().or_else(|| queue.iter().position(|other| *other == id));
        if place.and_then(|place| queue.remove(place)).is_some() {
            self.waiting -= 1;
        }
        waiting.take_if(|waiting| waiting.is_empty());
    }

    /// Ends all executions that run or wait, and returns them.
    pub(super) fn drop_all(&mut self) -> Vec<ExecutionId> {
        let running = self.numbered().filter(|(_, execution)| execution.is_running()).map(|(id, _)| id);
        let open = running.chain(self.totals.iter().flat_map(StepTotals::waiting)).collect();
        for place in 0..self.entries.len() {
            match self.entries.get_mut(place) {
                Some(entry) if entry.state != ExecutionState::Unknown => entry.state = ExecutionState::Ended,
                _ => {}
            }
        }
        for totals in &mut self.totals {
            (totals.running, totals.waiting) = (0, None);
        }
        (self.running, self.waiting) = (0, 0);
        self.running_in_branches.clear();
        open
    }

    /// The number of the next execution behind all others.
    pub(super) fn next(&self) -> ExecutionId {
        ExecutionId(self.entries.len() as u64 + 1)
    }

    /// Lets the next execution have this number: removes those from it on, which the journal never had.
    pub(super) fn renumber_from(&mut self, first: ExecutionId) {
        let Some(place) = place_of(first) else { return };
        for at in place..self.entries.len() {
            if let Some(surplus) = self.entries.get(at).filter(|it| it.state != ExecutionState::Unknown) {
                self.totals[surplus.step.get()].executions -= 1;
            }
        }
        self.entries.truncate(place);
        // A damaged journal names no number that so many records could not lead to.
        while self.entries.len() < place && place - self.entries.len() <= MOST_MISSING {
            self.entries.push(Execution::unknown());
        }
        self.recalled = None;
    }

    /// Whether none runs or waits and no number of a journal is reserved.
    pub(super) fn can_suspend(&self) -> bool {
        self.are_idle() && self.running_in_branches.is_empty() && self.recalled.is_none()
    }

    pub(super) fn suspend(&mut self) -> SuspendedExecutions {
        let Self { entries, totals, .. } = std::mem::take(self);
        let totals = totals.into_iter().map(|totals| (totals.executions, totals.surplus)).collect();
        SuspendedExecutions { entries: entries.into_boxed(), totals }
    }

    pub(super) fn restore(suspended: SuspendedExecutions) -> Self {
        let SuspendedExecutions { entries, totals } = suspended;
        let totals = totals.into_iter();
        let totals =
            totals.map(|(executions, surplus)| StepTotals { executions, surplus, ..StepTotals::default() });
        Self { entries: entries.into_iter().collect(), totals: totals.collect(), ..Self::default() }
    }
}

#[inline]
fn place_of(id: ExecutionId) -> Option<usize> {
    usize::try_from(id.0).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Roles;
    use crate::spec::StepPolicy;
    use crate::table::{EventDef, InputDef, StepDef};

    /// Two steps, the first of which runs one execution at a time.
    fn table() -> DependencyTable {
        let event = EventDef::new("E", Roles::NONE.start());
        let bounded = StepDef::new("bounded").input(InputDef::one("E"));
        DependencyTable::builder("two")
            .event(event)
            .step(bounded.policy(StepPolicy::DEFAULT.concurrency(1)))
            .step(StepDef::new("free").input(InputDef::one("E")))
            .build_unchecked()
            .expect("the table is sound")
    }

    fn create(
        executions: &mut Executions,
        table: &DependencyTable,
        step: usize,
        scope: u32,
    ) -> Option<ExecutionId> {
        let start = executions.create((StepIndex::at(step), ScopeId(scope), Seq(1)), Inputs::TRIGGER);
        executions.admit(start, table).map(|start| start.execution)
    }

    #[test]
    fn the_surplus_over_a_steps_concurrency_waits_in_order_and_others_pass_it() {
        // S21
        let table = table();
        let mut executions = Executions::new(2);
        assert_eq!(create(&mut executions, &table, 0, 0), Some(ExecutionId(1)));
        assert_eq!(create(&mut executions, &table, 0, 0), None);
        assert_eq!(create(&mut executions, &table, 0, 0), None);
        assert_eq!(create(&mut executions, &table, 1, 0), Some(ExecutionId(4)));
        assert!(executions.next_waiting(&table).is_none());
        assert_eq!(
            executions.queued_executions(&table).map(|unbegun| unbegun.full).collect::<Vec<_>>(),
            [Some(1); 2]
        );
        assert!(executions.end(ExecutionId(1)).is_some());
        assert!(executions.end(ExecutionId(1)).is_none());
        assert_eq!(executions.next_waiting(&table).map(|start| start.execution), Some(ExecutionId(2)));
        assert_eq!((executions.waiting(), executions.count()), (1, 4));
    }

    // S61
    #[test]
    fn an_execution_that_is_withdrawn_waits_in_the_place_of_its_number() {
        let table = table();
        let mut executions = Executions::new(2);
        for (step, scope) in [(1, 1), (1, 1), (0, 0), (0, 0)] {
            let _ = create(&mut executions, &table, step, scope);
        }
        for id in [3, 2, 1, 1, 4, 9] {
            executions.withdraw(ExecutionId(id));
        }
        assert_eq!((executions.waiting(), executions.open_scopes().count()), (4, 4));
        let begun = std::iter::from_fn(|| executions.next_waiting(&table)).map(|start| start.execution.0);
        assert_eq!(begun.collect::<Vec<_>>(), [1, 2, 3], "and within the concurrency of its step");
        executions.withdraw(ExecutionId(2));
        let (ran, waited) = executions.drop_in(&[ScopeId(1)]);
        assert_eq!((ran, waited), (vec![ExecutionId(1)], vec![ExecutionId(2)]), "the second one never began");
        assert_eq!(executions.waiting(), 1);
    }

    #[test]
    fn dropped_branches_drop_their_own_executions_only() {
        let table = table();
        let mut executions = Executions::new(2);
        for (step, scope) in [(0, 1), (0, 2), (1, 1), (1, 2), (1, 0)] {
            let _ = create(&mut executions, &table, step, scope);
        }
        let (ran, waited) = executions.drop_in(&[ScopeId(1), ScopeId(2)]);
        assert_eq!(
            (ran, waited),
            (vec![ExecutionId(1), ExecutionId(3), ExecutionId(4)], vec![ExecutionId(2)])
        );
        assert_eq!(executions.waiting(), 0);
        assert!(executions.end(ExecutionId(5)).is_some());
        assert!(executions.are_idle());
    }

    // S39
    #[test]
    fn executions_begin_anew_in_the_order_of_their_numbers_and_within_the_concurrency() {
        let table = table();
        let mut executions = Executions::new(2);
        for step in [0, 0, 1] {
            let _ = create(&mut executions, &table, step, 0);
        }
        assert!(executions.end(ExecutionId(1)).is_some());
        assert_eq!(executions.next_waiting(&table).map(|start| start.execution), Some(ExecutionId(2)));
        executions.begin_anew([ExecutionId(1), ExecutionId(9)].into_iter());
        let begun = std::iter::from_fn(|| executions.next_waiting(&table)).map(|start| start.execution.0);
        assert_eq!(begun.collect::<Vec<_>>(), [1, 3]);
        assert_eq!((executions.waiting(), executions.open_scopes().count()), (1, 3));
    }

    #[test]
    fn executions_get_their_numbers_of_the_journal() {
        let table = table();
        let mut executions = Executions::new(2);
        executions
            .reserve_numbers([((StepIndex::at(1), ScopeId::ROOT, Seq(1)), ExecutionId(2))].into_iter(), 10);
        assert_eq!(executions.count(), 0);
        assert_eq!(create(&mut executions, &table, 1, 0), Some(ExecutionId(2)));
        assert!(executions.get(ExecutionId(1)).is_none());
        assert_eq!(create(&mut executions, &table, 0, 0), Some(ExecutionId(1)));
        assert_eq!(executions.count(), 2);
    }
}

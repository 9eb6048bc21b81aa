//! The board: the state that all parts of a scheduler share, with two queues. The board owns scopes,
//! executions, open requests, timers, the events that are not evaluated yet, and the actions that are not
//! taken yet. The board numbers events, counts the pending work of each scope (S47), and queues actions.
//!
//! The board decides neither which step an event makes run nor when a fan-out is gathered:
//! [`Evaluation`](super::evaluate::Evaluation) and [`Groups`](super::Groups) do.
//!
//! Invariant: every event in `unevaluated`, candidate, execution, open request, pending timer and open
//! fan-out counts once in `pending` of its scope ([`Scopes::add_pending`]). A timer that closes a request shares the
//! request's count. Where work turns into other work of the same scope, the count passes from one to the
//! other: from an execution to its batch, from a batch to its last event.
//!
//! ```text
//!   commit ─ log ─▶ unevaluated ─ next_event ─▶ Evaluation ─ create ─▶ executions ─┬▶ actions ─▶ run
//!                                                                                 └▶ waiting, until one of
//!                                                                                    its step ends
//! ```
//!
//! Example, of `concurrency = 1`: `Begin` leads to executions 1 and 2 of `fetch`. `create` numbers both and
//! queues `Start` of 1. Execution 2 waits, and has its count in the scope. When 1 ends, `start_waiting`
//! queues `Start` of 2.
//!
//! A direct commit bypasses both queues: [`direct_successor`](Board::direct_successor) finds the only step that an event
//! leads to, if nothing else is queued. The effect is the same as through the queues, and a hop from step to
//! step costs no queue operation.

#![expect(clippy::inline_always, reason = "this is the hot path: inlined parts pass values in registers")]

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use super::actions::{Actions, QueuedAction};
use super::awaited::{Awaited, OpenRequest, Taken};
use super::bind::{Binder, key_of};
use super::clean_up::CleanUp;
use super::progress::Progress;
use super::scope::{Scope, Scopes};
use super::{
    Binding, Bound, End, Entry, EvaluationKey, Executions, Inputs, QueuedExecution, SchedulerLimits,
    TimerEntry, Verdict,
};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, StepIndex, StepRow};

/// The shared state of a scheduler's parts.
#[derive(Debug)]
pub(crate) struct Board {
    /// The table of the workflow; it never changes.
    pub(super) table: Arc<DependencyTable>,
    /// The end of the log, the limits, and whether the run waits or has ended.
    pub(crate) progress: Progress,
    /// The tree of scopes: visible events, executed combinations and pending work.
    pub(super) scopes: Scopes,
    /// All executions of the run, also those that ended.
    pub(crate) executions: Executions,
    /// Open requests and pending timers.
    pub(crate) awaited: Awaited,
    /// The actions that the run has not taken yet, in order.
    pub(super) actions: Actions,
    /// The clean-up, once the run has ended and clean-up steps are to run (S31).
    pub(super) clean_up: Option<Box<CleanUp>>,
    /// The events of the log that are not evaluated yet, in order (S11). Each counts in its scope.
    unevaluated: VecDeque<Entry>,
}

impl Board {
    /// Creates the board of a run with an empty log.
    #[inline]
    pub(super) fn new(table: Arc<DependencyTable>, limits: SchedulerLimits) -> Self {
        let (scopes, executions) = (Scopes::new(&table), Executions::new(table.steps.len()));
        Self::of(table, Progress::new(limits), scopes, executions, Awaited::default())
    }

    /// Creates the board of a run in which nothing is left to do: both queues are empty.
    #[inline]
    pub(super) fn of(
        table: Arc<DependencyTable>,
        progress: Progress,
        scopes: Scopes,
        executions: Executions,
        awaited: Awaited,
    ) -> Self {
        let (actions, clean_up, unevaluated) = (Actions::default(), None, VecDeque::new());
        Self { table, progress, scopes, executions, awaited, actions, clean_up, unevaluated }
    }

    /// Whether all actions are taken, no event waits for its evaluation and no branch waits to be settled.
    /// The evaluation may still be working on one event.
    /// Callers that mean all of it ask [`Evaluation::is_done`](super::evaluate::Evaluation::is_done) as well.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.actions.is_empty() && self.unevaluated.is_empty() && self.scopes.are_settled()
    }

    /// Whether no event waits for its evaluation.
    #[inline]
    pub(super) fn is_evaluated(&self) -> bool {
        self.unevaluated.is_empty()
    }

    /// Whether the scope is open, so that steps can be evaluated in it.
    pub(crate) fn is_open(&self, scope: ScopeId) -> bool {
        self.scopes.get(scope).is_some()
    }

    /// Whether the branch only waits for replies and timers, and a bound leaves it out (S50).
    pub(crate) fn only_waits(&self, scope: ScopeId) -> bool {
        self.scopes.get(scope).is_some_and(Scope::only_waits)
    }

    /// The executions that were created and have not begun: those that wait for the concurrency of their
    /// steps, and those whose action was not taken yet.
    pub(crate) fn queued_executions(&self) -> impl Iterator<Item = QueuedExecution> {
        self.executions.queued_executions(&self.table).chain(self.actions.queued_executions())
    }

    /// Binds the inputs of steps at this trigger, as the scope sees the log.
    #[inline]
    pub(super) fn binder(&self, trigger: Entry, scope: ScopeId) -> Binder<'_> {
        Binder { table: &self.table, scopes: &self.scopes, trigger, scope }
    }

    /// Gives an event the next position. If the log is full, ends the run and returns `None`.
    /// A position that is given stays given: the caller lets the event take effect, or the run ends.
    #[inline(always)]
    pub(super) fn number(&mut self, scope: ScopeId, event: EventIndex) -> Option<Entry> {
        let Some(seq) = self.progress.next_seq() else {
            self.finish(End::LogFull);
            return None;
        };
        Some(Entry { seq, scope, event })
    }

    /// Queues an event of the log for evaluation, and opens it if it is a request.
    pub(super) fn queue_evaluation(&mut self, entry: Entry) {
        // One count for the event, removed when it is evaluated, and one for the open request, which passes
        // to its reply.
        self.scopes.add_pending(entry.scope);
        self.unevaluated.push_back(entry);
        let row = self.table.event(entry.event);
        if let Some(reply) = row.reply.filter(|_| row.roles.is_request()) {
            self.scopes.add_wait(entry.scope);
            self.awaited.open(entry.seq, OpenRequest::new(entry.scope, entry.event, reply));
        }
    }

    /// Makes a timer pending. A timer that closes a request shares the count of the request in the scope.
    pub(super) fn set_timer(&mut self, timer: TimerEntry) {
        if self.awaited.set_timer(timer) && timer.request.is_none() {
            self.scopes.add_wait(timer.scope);
        }
    }

    /// Takes the next event to evaluate.
    #[inline]
    pub(super) fn next_event(&mut self) -> Option<Entry> {
        self.unevaluated.pop_front()
    }

    /// Makes an event visible: from here on every step sees it (S12). Returns whether its scope is open.
    #[inline(always)]
    pub(super) fn count(&mut self, entry: Entry) -> bool {
        let Some(scope) = self.scopes.get_mut(entry.scope) else { return false };
        scope.count(&self.table, entry.event, entry.seq);
        // The table knows which types a fixed list takes, so all others skip the look.
        if self.table.event(entry.event).fills {
            self.count_surplus(entry);
        }
        true
    }

    /// S17: counts the event as surplus of each fixed list that was full before.
    fn count_surplus(&mut self, entry: Entry) {
        for topic in &self.table.event(entry.event).topics {
            for (step, count) in &self.table.topic(*topic).fixed {
                // S31: a clean-up step waits for nothing, so nothing is too much for it.
                let is_fed = !self.table.step(*step).cleans_up();
                if is_fed && self.scopes.visible(entry.scope, *topic) > *count {
                    self.executions.add_surplus(*step);
                }
            }
        }
    }

    /// Whether the event may have completed a condition of a step below its scope: at most as many events of
    /// a topic are here as some condition asks for. With more of them here, each branch had its condition met
    /// before this event, so the sweep need not look for newly ready steps.
    pub(super) fn may_complete(&self, Entry { scope, event, .. }: Entry) -> bool {
        let Some(scope) = self.scopes.get(scope) else { return false };
        self.table.event(event).topics.iter().any(|topic| {
            let (count, row) = (scope.count_of(*topic), self.table.topic(*topic));
            row.conditions.iter().any(|condition| count <= condition.least)
        })
    }

    /// The step of a direct commit: one step takes this event and takes it alone, and nothing else is queued
    /// or in its way. Then the execution can start without the queues.
    ///
    /// `direct` of the table rules out preconditions, lists and `max_executions`, so no rule of
    /// [`obstacle`](Self::obstacle) can apply. A request needs the queue, since `queue_evaluation` opens it. An event with
    /// open branches below needs it too, since the branches are swept.
    #[inline(always)]
    pub(super) fn direct_successor(&self, entry: Entry) -> Option<StepIndex> {
        let row = self.table.event(entry.event);
        let step = row.direct.filter(|_| !row.roles.is_request())?;
        let is_leaf = self.scopes.get(entry.scope).is_some_and(Scope::is_leaf);
        let executions = &self.executions;
        // A waiting execution of any step would come first, so nothing may start before it.
        let may_start = !self.progress.paused
            && executions.waiting() == 0
            && executions.count() < self.progress.limits.executions
            && executions.has_room(step, &self.table);
        (self.is_quiet() && is_leaf && may_start).then_some(step)
    }

    /// Why the combination must not be executed: the step took its gather before (S48), or the whole combination
    /// (S20), or it reached `max_executions` (S19). `None` if nothing prevents it.
    /// S20 is before S19: a duplicate must not look as if it used the limit up.
    #[inline]
    pub(super) fn obstacle(&self, step: StepIndex, scope: ScopeId, binding: &Binding) -> Option<Verdict> {
        let row = self.table.step(step);
        let (may_repeat, most) = (row.may_repeat, row.policy.max_executions);
        let own = self.scopes.get(scope)?;
        if row.joins_gather
            && let Some(taker) = gathers(row, binding).find_map(|gather| own.taker_of(step, gather))
        {
            return Some(Verdict::GatherTaken(taker));
        }
        if may_repeat && own.has_executed(step, &key_of(row, binding)) {
            return Some(Verdict::Duplicate);
        }
        most.is_some_and(|most| own.executions(step) >= most).then_some(Verdict::LimitReached)
    }

    /// Creates an execution of this combination and stores the combination where it could repeat (S20).
    #[inline]
    pub(super) fn create_with(&mut self, binding: Binding, evaluated: EvaluationKey) -> Verdict {
        let (step, scope, trigger) = evaluated;
        let row = self.table.step(step);
        // Only fixed lists can give the same combination twice, so no other step stores its combinations.
        if row.may_repeat
            && let Some(state) = self.scopes.step_mut(scope, step)
        {
            state.record(key_of(row, &binding));
        }
        if row.joins_gather {
            return self.create_joining(binding, evaluated);
        }
        let inputs = Inputs::of(binding, row, trigger);
        self.create(evaluated, inputs)
    }

    /// Creates an execution that takes gathers, and stores that they are taken (S48).
    fn create_joining(&mut self, binding: Binding, evaluated: EvaluationKey) -> Verdict {
        let (step, scope, trigger) = evaluated;
        let row = self.table.step(step);
        let gathers: SmallVec<[Seq; 2]> = gathers(row, &binding).collect();
        let inputs = Inputs::of(binding, row, trigger);
        let verdict = self.create(evaluated, inputs);
        if let Verdict::Executed(execution) = verdict
            && let Some(state) = self.scopes.step_mut(scope, step)
        {
            gathers.into_iter().for_each(|gather| state.take_gather(gather, execution));
        }
        verdict
    }

    /// Creates an execution, which counts in its scope. At the run's limit of executions, ends the run
    /// instead.
    /// The caller has asked [`obstacle`](Self::obstacle), or knows that none exists. The limit of the run
    /// comes first, so that nothing is counted for an execution that does not exist.
    #[inline]
    pub(super) fn create(&mut self, evaluated: EvaluationKey, inputs: Inputs) -> Verdict {
        if self.executions.count() >= self.progress.limits.executions {
            self.finish(End::TooManyExecutions);
            return Verdict::RunLimitReached;
        }
        let (step, scope, _) = evaluated;
        self.scopes.add_pending(scope);
        if let Some(scope) = self.scopes.get_mut(scope) {
            scope.executed(step, self.table.step(step));
        }
        let start = self.executions.create(evaluated, inputs);
        let verdict = Verdict::Executed(start.execution);
        if self.progress.paused {
            self.executions.defer(&start);
        } else if let Some(start) = self.executions.admit(start, &self.table) {
            self.actions.push(QueuedAction::Start(start));
        }
        verdict
    }

    /// Starts waiting executions, the oldest first, while their steps have room. O(steps) per started
    /// execution.
    /// Called wherever executions end: after a success, a failure, and a group that fails. Also where a pause ends (S61).
    #[inline(always)]
    pub(super) fn start_waiting(&mut self) {
        while !self.progress.has_ended()
            && !self.progress.paused
            && let Some(start) = self.executions.next_waiting(&self.table)
        {
            self.actions.push(QueuedAction::Start(start));
        }
    }

    /// Drops the work in these scopes, which are closed already, and returns their requests and timers. `dropped` and
    /// `scopes` have the same scopes. The run frees them, unless a redrive may open them again.
    /// The evaluation has dropped its questions before. No count is removed, since the counts are gone with the
    /// scopes.
    pub(super) fn drop_in(&mut self, dropped: &[ScopeId], scopes: &HashSet<ScopeId>, frees: bool) -> Taken {
        self.unevaluated.retain(|entry| !scopes.contains(&entry.scope));
        // `Free` comes before `Drop`: the run frees lists at once, and futures that still run have their own
        // prefixes.
        for scope in dropped.iter().filter(|_| frees) {
            self.actions.push(QueuedAction::Free(*scope));
        }
        let awaited = self.awaited.take_in(dropped);
        let (ran, waited) = self.executions.drop_in(dropped);
        for execution in waited.into_iter().filter(|_| self.progress.redrivable) {
            self.actions.push(QueuedAction::DropWaiting(execution));
        }
        if ran.is_empty() {
            return awaited;
        }
        // An execution whose start was not taken yet is dropped silently: the run does not know it.
        let unstarted = self.actions.take_starts_in(scopes);
        for execution in ran {
            if !unstarted.contains(&execution) {
                self.actions.push(QueuedAction::Drop(execution));
            }
        }
        awaited
    }

    /// Reports that the run waits: only an arrival or a timer continues it.
    pub(super) fn wait(&mut self) {
        self.progress.waits = true;
        self.actions.push(QueuedAction::Wait);
    }

    /// Ends the run and reports it, unless the run has ended before. The first end counts (S28).
    pub(super) fn finish(&mut self, end: End) {
        if !self.progress.has_ended() {
            self.plan_clean_up(&end);
            self.close(end.clone());
            let ending = self.ending(end);
            self.actions.say(ending);
        }
    }

    /// The executions that were dropped while they waited, in drops that the run has not taken yet.
    pub(crate) fn dropped_waiting(&self) -> impl Iterator<Item = ExecutionId> {
        self.actions.dropped_waiting()
    }

    /// Ends the run without reporting it, and drops the work that is left. The caller reports the end: for a stop
    /// event `apply` does so, behind the batch that has the event.
    pub(super) fn close(&mut self, end: End) {
        self.progress.finish(end);
        self.unevaluated.clear();
        self.actions.close();
    }

    /// Gives back memory that is needed only while work is queued.
    pub(super) fn shrink(&mut self) {
        self.actions.shrink();
        self.unevaluated.shrink_to_fit();
    }
}

/// The gathers of a binding.
pub(super) fn gathers<'a>(row: &'a StepRow, binding: &'a Binding) -> impl Iterator<Item = Seq> {
    row.inputs.iter().zip(binding).filter_map(|(input, bound)| match bound {
        Bound::One(seq) if input.kind == InputKind::Gather => Some(*seq),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::id::{ExecutionId, Seq};
    use crate::scheduler::Bound;
    use crate::scheduler::fixtures::{self, entry, entry_in, step};

    fn board() -> Board {
        fixtures::board(SchedulerLimits::default())
    }

    fn drained(board: &mut Board) -> Vec<String> {
        std::iter::from_fn(|| board.actions.pop()).map(|action| format!("{action:?}")).collect()
    }

    /// A board with one open branch.
    fn with_branch() -> (Board, ScopeId) {
        let mut board = board();
        let branch = board.scopes.reserve();
        board.scopes.open(branch, ScopeId::ROOT, (crate::scheduler::GroupId::of(0), 0), false);
        (board, branch)
    }

    #[test]
    fn a_full_log_ends_the_run_once() {
        let mut board = fixtures::board(SchedulerLimits { events: 1, ..SchedulerLimits::default() });
        let note = fixtures::event(&board, "Note");
        assert!(board.number(ScopeId::ROOT, note).is_some_and(|entry| entry.seq == Seq(1)));
        assert!((0..2).all(|_| board.number(ScopeId::ROOT, note).is_none()));
        assert_eq!(board.progress.end(), Some(&End::LogFull));
        assert_eq!(drained(&mut board).len(), 1);
    }

    #[test]
    fn a_logged_event_is_to_be_evaluated_and_a_request_is_open() {
        let mut board = board();
        let (note, ask) = (entry(&mut board, "Note"), entry(&mut board, "Ask"));
        board.queue_evaluation(note);
        board.queue_evaluation(ask);
        assert!(!board.is_evaluated() && !board.is_quiet());
        assert!(board.awaited.requests().map(|(seq, _)| seq).eq([ask.seq]));
        assert_eq!([(); 3].map(|()| board.next_event()), [Some(note), Some(ask), None]);
        assert!(board.is_quiet());
    }

    #[test]
    fn an_event_for_one_step_alone_is_committed_directly_if_nothing_else_is_queued() {
        let mut board = board();
        let (begin, note) = (entry(&mut board, "Begin"), entry(&mut board, "Note"));
        assert_eq!(
            (board.direct_successor(begin), board.direct_successor(note)),
            (Some(step(&board, "open")), None)
        );
        board.actions.push(QueuedAction::Wait);
        assert_eq!(board.direct_successor(begin), None);
        assert!(board.actions.pop().is_some());
        board.queue_evaluation(note);
        assert_eq!(board.direct_successor(begin), None);
    }

    // S17
    #[test]
    fn events_behind_a_full_list_are_surplus() {
        let mut board = board();
        let pair = step(&board, "pair");
        for surplus in [0, 0, 1, 2] {
            let note = entry(&mut board, "Note");
            assert!(board.count(note));
            assert_eq!(board.executions.surplus_of(pair), surplus);
        }
        let nowhere = entry_in(&mut board, ScopeId(9), "Note");
        assert!(!board.count(nowhere));
    }

    // S20
    #[test]
    fn a_combination_is_executed_once() {
        let mut board = board();
        let pair = step(&board, "pair");
        let binding: Binding = smallvec![Bound::List([(ScopeId::ROOT, 2)].into_iter().collect())];
        assert_eq!(board.obstacle(pair, ScopeId::ROOT, &binding), None);
        let verdict = board.create_with(binding.clone(), (pair, ScopeId::ROOT, Seq(2)));
        assert_eq!(verdict, Verdict::Executed(ExecutionId(1)));
        assert_eq!(board.obstacle(pair, ScopeId::ROOT, &binding), Some(Verdict::Duplicate));
        assert_eq!(board.queued_executions().count(), 1);
    }

    #[test]
    fn one_execution_too_many_ends_the_run() {
        let mut board = fixtures::board(SchedulerLimits { executions: 1, ..SchedulerLimits::default() });
        let evaluated = (step(&board, "open"), ScopeId::ROOT, Seq(1));
        assert_eq!(board.create(evaluated, Inputs::TRIGGER), Verdict::Executed(ExecutionId(1)));
        assert_eq!(board.create(evaluated, Inputs::TRIGGER), Verdict::RunLimitReached);
        assert_eq!(board.progress.end(), Some(&End::TooManyExecutions));
        assert_eq!(board.queued_executions().count(), 0, "an ended run begins nothing");
    }

    #[test]
    fn a_dropped_branch_leaves_no_work_and_its_running_executions_are_dropped() {
        let (mut board, branch) = with_branch();
        let ask = step(&board, "ask");
        assert_eq!(board.create((ask, branch, Seq(1)), Inputs::TRIGGER), Verdict::Executed(ExecutionId(1)));
        assert!(board.actions.pop().is_some(), "the first one has begun");
        board.create((ask, branch, Seq(2)), Inputs::TRIGGER);
        let item = entry_in(&mut board, branch, "Item");
        board.queue_evaluation(item);
        assert!(board.scopes.close(branch).is_some() && !board.is_open(branch));
        let _ = board.drop_in(&[branch], &HashSet::from([branch]), true);
        assert_eq!(drained(&mut board), ["Free(ScopeId(1))", "Drop(ExecutionId(1))"]);
        assert!(board.is_quiet() && board.executions.are_idle());
    }

    #[test]
    fn a_run_that_ended_has_nothing_left_to_evaluate() {
        let mut board = board();
        let note = entry(&mut board, "Note");
        board.queue_evaluation(note);
        board.wait();
        board.finish(End::Cancelled);
        board.finish(End::Stalled);
        assert!(board.is_evaluated());
        let said = drained(&mut board);
        assert!(said.len() == 1 && said[0].contains("Cancelled"), "{said:?}");
    }
}

//! The evaluation: decides which steps an event makes run. The evaluation handles one control event after the
//! other in order of position, and for each the steps that take its type, in order of declaration (S11). Each
//! step is evaluated in the scope of the event first, and then in each open branch below in which the event
//! can make one run (S46).
//!
//! ```text
//!  event ─▶ count: from here on visible (S12)
//!    └─ for each step that takes it:
//!        not ready ............................ NotReady         (S13)
//!        binds no event of this branch ........ Covered          (S46)
//!        took this gather before .............. GatherTaken      (S48)
//!        executed with this combination ....... Duplicate        (S20)
//!        max_executions reached ............... LimitReached     (S19)
//!        has a precondition ─▶ Asking ─▶ yes / no / failed       (S18)
//!        the run has all its executions ....... RunLimitReached, and the run ends
//!        otherwise ............................ Executed
//! ```
//!
//! The module owns the place in this loop, the open questions to preconditions, and the recorded decisions.
//! The events that are left are on the [`Board`].
//!
//! Invariant: each unit of work is one step at one event in one scope, so that a run can stop between any
//! two. The decisions stand in the order of these units.
//!
//! An example, of `pack(Item, Note)` and two open branches with items at 4 and 5, in scopes 1 and 2. The
//! event `Note` at 6 belongs to the root:
//!
//! | unit | step, scope | verdict |
//! | --- | --- | --- |
//! | 1 | `pack`, root | `NotReady`: the root has no item |
//! | 2 | `pack`, scope 1 | `Executed` with 4 and 6 |
//! | 3 | `pack`, scope 2 | `Executed` with 5 and 6 |
//!
//! Another `Item`, which a step emits at 7 in scope 1, is evaluated in scope 1 only, since no branch lies
//! below: `pack` executes with 7 and 6.

#![expect(clippy::inline_always, reason = "this is the hot path: inlined parts pass values in registers")]

use std::collections::HashSet;
use std::collections::hash_map::Entry as MapEntry;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::actions::{Actions, QueuedAction};
use super::board::Board;
use super::candidates::{Candidate, Candidates, VerdictSlot};
use super::scope::Scope;
use super::sweep::{Sweeps, Until};
use super::{
    Answer, CandidateId, Decision, DirectStart, End, Entry, EvaluationKey, Inputs, LoggedBatch, Verdict,
};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::table::{EventIndex, StepIndex};

/// The state of the evaluation: its cursor, the open questions, and every verdict so far.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    /// The event being evaluated; `None` between two events. After the end of a run, the event at which it
    /// ended may remain here.
    cursor: Option<Cursor>,
    /// The ready steps whose preconditions have not answered.
    pub(super) candidates: Candidates,
    /// The recorded decisions in order. A short run needs no allocation for them.
    pub(super) decisions: SmallVec<[Decision; 4]>,
    /// The evaluations in branches below the scopes of their events.
    pub(super) sweeps: Sweeps,
    /// The questions that a redrive asks again (S39). `None` if there never was one. A suspended run forgets them: a
    /// redrive begins with a replay.
    refused: Option<Box<Refused>>,
}

/// Questions with their numbers.
pub(super) type Questions = Vec<(CandidateId, Candidate)>;

/// Questions that were answered, and not with yes.
#[derive(Debug, Default)]
struct Refused {
    /// The latest answered question of a step in a scope, with the question itself if the answer was no. Absent where
    /// the answer was yes, and no earlier question is open.
    latest: FxHashMap<(ScopeId, StepIndex), (CandidateId, Option<Candidate>)>,
    /// The question whose failure ended the run.
    failed: Option<(CandidateId, Candidate)>,
}

/// The event being evaluated, and how much of it is done.
#[derive(Debug)]
struct Cursor {
    /// The event with its position and scope.
    entry: Entry,
    /// The number of the sweep, while the branches below are evaluated; `None` in the event's own scope.
    sweep: Option<u32>,
    /// The branches that are left, the next one last.
    scopes: Vec<ScopeId>,
    /// The scope in which it is evaluated now: its own first, and then the branches.
    scope: ScopeId,
    /// The number of steps already evaluated in `scope`, of those that take the event.
    taker: usize,
}

impl Evaluation {
    /// Whether nothing is evaluated or asked and no branch was ever swept.
    pub(super) fn can_suspend(&self) -> bool {
        self.cursor.is_none() && self.candidates.is_empty() && self.sweeps.history().is_none()
    }

    /// Takes all decisions and the number of the next candidate.
    pub(super) fn suspend(&mut self) -> (Box<[Decision]>, u64) {
        (std::mem::take(&mut self.decisions).into_boxed_slice(), self.candidates.next())
    }

    pub(super) fn restore(decisions: Box<[Decision]>, next_candidate: u64) -> Self {
        let candidates = Candidates::from(next_candidate);
        Self { candidates, decisions: decisions.into_vec().into(), ..Self::default() }
    }

    /// Whether no event is being evaluated and none is left.
    #[inline]
    pub(super) fn is_done(&self, board: &Board) -> bool {
        self.cursor.is_none() && board.is_evaluated()
    }

    /// Whether the run will continue by itself: an execution or a question is open, or the start event is
    /// still to come.
    /// Timers and open requests do not count: with one of those the run waits.
    #[inline]
    pub(super) fn is_busy(&self, board: &Board) -> bool {
        !board.executions.are_idle() || !self.candidates.is_empty() || board.progress.last_seq() == Seq(0)
    }

    /// The open questions in words and in order, for snapshots. No journal has which of them were asked.
    pub(super) fn questions(&self) -> Vec<String> {
        let words = |(id, candidate): (CandidateId, &Candidate)| {
            let Candidate { step, scope, trigger, binding, place, deferred: _ } = candidate;
            format!("question {id:?}: {step:?} in {scope} by {trigger} with {binding:?} at {place:?}")
        };
        self.candidates.iter().map(words).collect()
    }

    /// Drops and returns the questions of these scopes, also those whose action was not taken yet.
    /// The caller closes the scopes afterwards.
    pub(super) fn drop_in(&mut self, scopes: &HashSet<ScopeId>, actions: &mut Actions) -> Questions {
        let dropped = self.candidates.drop_in(scopes);
        // These questions end without an answer: the history records `Asking`, which is derived from the open
        // candidates until now.
        for (sweep, at) in dropped.iter().filter_map(|(_, candidate)| candidate.asked_below()) {
            self.sweeps.conclude(sweep, at, Verdict::Asking);
        }
        if !dropped.is_empty() {
            actions.drop_questions(&self.candidates);
            // One entry for all of them: the driver compares its questions with `candidates` when it takes
            // the entry.
            actions.push(QueuedAction::QuestionsDropped);
        }
        dropped
    }

    /// No redrive follows.
    #[inline]
    pub(super) fn forget_all_refused(&mut self) {
        self.refused = None;
    }

    /// A branch has closed for good: nothing asks its questions again.
    pub(super) fn forget_refused(&mut self, scope: ScopeId) {
        if let Some(refused) = &mut self.refused {
            refused.latest.retain(|(of, _), _| *of != scope);
        }
    }

    /// Asks the open questions again, and then, by their numbers, those of reopened branches and those whose answer
    /// was no or a failure (S39).
    pub(super) fn ask_again(&mut self, mut reopened: Questions, board: &mut Board) {
        // Those of a run that ended while it was paused are asked with the others.
        let _ = self.candidates.take_deferred();
        for (_, candidate) in &mut reopened {
            candidate.deferred = false;
        }
        for (id, _) in self.candidates.iter() {
            board.actions.push(QueuedAction::Ask(id));
        }
        let mut refused = self.refused.take();
        reopened.extend(refused.as_deref_mut().and_then(|refused| refused.failed.take()));
        // A later question of the step that is open, or failed, stands for it.
        let mut open = self.candidates.iter().map(|(id, it)| (it.scope, it.step, id)).collect::<Vec<_>>();
        open.extend(reopened.iter().map(|(id, it)| (it.scope, it.step, *id)));
        open.sort_unstable();
        let is_latest = |id: CandidateId, it: &Candidate| {
            let next = open.partition_point(|open| *open <= (it.scope, it.step, id));
            open.get(next).is_none_or(|(scope, step, _)| (*scope, *step) != (it.scope, it.step))
        };
        if let Some(refused) = refused.as_deref_mut() {
            let latest = refused.latest.values_mut().filter_map(|(id, it)| Some((*id, it.take()?)));
            reopened.extend(latest.filter(|(id, it)| is_latest(*id, it)));
        }
        self.refused = refused;
        reopened.retain(|(_, candidate)| board.is_open(candidate.scope));
        reopened.sort_unstable_by_key(|(id, _)| *id);
        for (_, candidate) in reopened {
            match candidate.place {
                VerdictSlot::At(place) => self.decisions[place].verdict = Verdict::Asking,
                VerdictSlot::Below { sweep } => {
                    self.sweeps.ask_again(sweep, (candidate.step, candidate.scope));
                }
                VerdictSlot::CleanUp => continue,
            }
            board.actions.push(QueuedAction::Ask(self.candidates.add(candidate)));
        }
    }

    /// The scopes of the open questions, once for each.
    pub(super) fn asked_scopes(&self) -> impl Iterator<Item = ScopeId> {
        self.candidates.iter().map(|(_, candidate)| candidate.scope)
    }

    /// Drops and returns all questions, because the run has ended. They stay without an answer, unless a redrive asks
    /// them again.
    pub(super) fn drop_questions(&mut self) -> Questions {
        let asked: Vec<_> =
            self.candidates.iter().filter_map(|(_, candidate)| candidate.asked_below()).collect();
        for (sweep, at) in asked {
            self.sweeps.conclude(sweep, at, Verdict::Asking);
        }
        self.candidates.take_all()
    }

    /// Removes the evaluations of events from this position on, which the store refused. The run has ended or ends
    /// next, so no candidate uses its place in the decisions any more.
    pub(super) fn retract(&mut self, from: Seq) {
        // First: the sweeps count the decisions that leave.
        self.sweeps.retract(from, &self.decisions);
        self.decisions.retain(|decision| decision.trigger < from);
    }

    /// Notes that the executions from this one on do not exist: the live run had reached its limit.
    pub(super) fn retract_executions(&mut self, from: ExecutionId) {
        for decision in &mut self.decisions {
            if matches!(decision.verdict, Verdict::Executed(execution) if execution >= from) {
                decision.verdict = Verdict::RunLimitReached;
            }
        }
    }

    /// Every open question of a sweep: the sweep, the step and the branch.
    pub(super) fn asked_below(&self) -> impl Iterator<Item = (u32, StepIndex, ScopeId)> {
        let asked = self.candidates.iter().filter_map(|(_, candidate)| candidate.asked_below());
        asked.map(|(sweep, (step, scope))| (sweep, step, scope))
    }

    /// The place of the sweep in progress; `None` between sweeps.
    pub(super) fn swept_until(&self) -> Option<Until> {
        let cursor = self.cursor.as_ref().filter(|cursor| cursor.sweep.is_some())?;
        Some((cursor.scope, cursor.taker))
    }

    /// Gives back memory that is needed only while work is queued.
    pub(super) fn shrink(&mut self) {
        self.decisions.shrink_to_fit();
        self.sweeps.shrink();
    }

    /// Commits one event as a batch of its own. The caller's count in the scope passes to the batch. `None`
    /// if the log is full.
    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        scope: ScopeId,
        event: EventIndex,
        board: &mut Board,
    ) -> Option<LoggedBatch> {
        let entry = board.number(scope, event)?;
        Some(LoggedBatch::One(entry, self.enter_single(entry, board)))
    }

    /// Makes the event take effect. Returns the execution of a direct commit, if the event leads to that
    /// alone.
    #[inline(always)]
    fn enter_single(&mut self, entry: Entry, board: &mut Board) -> Option<DirectStart> {
        // A stop event is in the log and is never evaluated (S28).
        if board.table.event(entry.event).roles.is_stop() {
            board.close(End::Completed(entry.seq));
            return None;
        }
        // Direct commit: nothing else is evaluated or queued, so the order of events is the same as through
        // the queue.
        if let Some(step) = board.direct_successor(entry).filter(|_| self.cursor.is_none()) {
            return Some(self.commit_direct(step, entry, board));
        }
        board.queue_evaluation(entry);
        // `queue_evaluation` has added the count of the event, so the count of its source can leave.
        board.scopes.remove_pending(entry.scope);
        None
    }

    /// Evaluates the event of a direct commit at once. Its count in the scope passes to the execution.
    ///
    /// The same effects as `queue_evaluation`, `begin_next` and `create`, in their order: the event becomes visible, the
    /// execution gets its number, and the decision is recorded. So a run with a journal, whose replay takes this
    /// way too, gets the same numbers.
    #[inline(always)]
    fn commit_direct(&mut self, step: StepIndex, trigger: Entry, board: &mut Board) -> DirectStart {
        let Entry { seq, scope, .. } = trigger;
        self.count(trigger, board);
        if let Some(scope) = board.scopes.get_mut(scope) {
            scope.executed(step, board.table.step(step));
        }
        let evaluated = (step, scope, seq);
        let execution = board.executions.create_running(evaluated);
        self.record(evaluated, Verdict::Executed(execution));
        DirectStart { execution, step }
    }

    /// Evaluates one step; `false` if no event is left.
    ///
    /// The cursor walks: all takers in the event's own scope, then per branch below the takers that join
    /// there. The last unit of a scope also moves the cursor on, so a step without further takers costs one
    /// unit, not two.
    pub(super) fn evaluate_next(&mut self, board: &mut Board) -> bool {
        if self.cursor.is_none() && !self.begin_next(board) {
            return false;
        }
        let Some(cursor) = &mut self.cursor else { return true };
        let takers = &board.table.event(cursor.entry.event).takers;
        let (entry, scope, sweep) = (cursor.entry, cursor.scope, cursor.sweep);
        // In the event's own scope every taker is evaluated. In a branch below, only a step that joins there
        // and is ready; its verdict elsewhere follows from the history.
        while let Some(step) = takers.get(cursor.taker).copied() {
            cursor.taker += 1;
            if sweep.is_none() || self.sweeps.is_ready(step, scope) {
                let is_last = cursor.taker == takers.len();
                self.evaluate(step, entry, scope, sweep, board);
                // After the end of the run the cursor stays: nothing is evaluated any more.
                if !is_last || board.progress.has_ended() {
                    return true;
                }
                break;
            }
        }
        let Some(cursor) = &mut self.cursor else { return true };
        // All takers are done in this scope: continue in the next branch, begin the sweep of the branches
        // below, or finish the event.
        if let Some(scope) = cursor.scopes.pop() {
            (cursor.scope, cursor.taker) = (scope, 0);
        } else if sweep.is_none() && !board.scopes.get(scope).is_none_or(Scope::is_leaf) {
            let (sweep, scopes) = self.sweeps.sweep(entry, self.decisions.len(), board);
            // No taker is left in the event's own scope, so the next call moves to the first branch.
            let (sweep, taker) = (Some(sweep), usize::MAX);
            self.cursor = Some(Cursor { entry, sweep, scopes, scope, taker });
        } else {
            self.cursor = None;
            board.scopes.remove_pending(entry.scope);
        }
        true
    }

    /// Takes the next event off the board, makes it visible, and sets the cursor on it, unless no step takes
    /// it or a single one does directly. `false` if no event is left.
    fn begin_next(&mut self, board: &mut Board) -> bool {
        let Some(entry) = board.next_event() else { return false };
        self.count(entry, board);
        let row = board.table.event(entry.event);
        if row.takers.is_empty() {
            board.scopes.remove_pending(entry.scope);
            return true;
        }
        // With open branches below, even a single taker needs the cursor, which leads on to the sweep.
        let is_leaf = board.scopes.get(entry.scope).is_none_or(Scope::is_leaf);
        if let Some(step) = row.direct.filter(|_| is_leaf) {
            // This step requires nothing else, and no earlier execution can have bound this event.
            let evaluated = (step, entry.scope, entry.seq);
            let verdict = board.create(evaluated, Inputs::TRIGGER);
            self.record(evaluated, verdict);
            board.scopes.remove_pending(entry.scope);
        } else {
            let (sweep, scopes, scope) = (None, Vec::new(), entry.scope);
            self.cursor = Some(Cursor { entry, sweep, scopes, scope, taker: 0 });
        }
        true
    }

    /// Makes the event visible to every step from here on (S12).
    #[inline(always)]
    fn count(&mut self, entry: Entry, board: &mut Board) {
        if board.count(entry) && entry.scope != ScopeId::ROOT {
            // In a branch the new event also lets later outer events make steps run here.
            self.sweeps.join(entry, board);
        }
    }

    /// Evaluates one step at one event in one scope: decides by the first of the rules that applies, in the
    /// order of the module's picture. Exactly one verdict is recorded, which
    /// [`Decisions`](super::decisions::Decisions) relies on.
    fn evaluate(
        &mut self,
        step: StepIndex,
        trigger: Entry,
        scope: ScopeId,
        sweep: Option<u32>,
        board: &mut Board,
    ) {
        let evaluated = (step, scope, trigger.seq);
        let binder = board.binder(trigger, scope);
        if !binder.is_ready(step) {
            self.decide(evaluated, sweep, Verdict::NotReady);
            return;
        }
        // Readiness is cheap and mostly decides, so nothing is bound before.
        let binding = binder.bind(step);
        if !binder.binds_own(step, &binding) {
            self.decide(evaluated, sweep, Verdict::Covered);
            return;
        }
        if let Some(verdict) = board.obstacle(step, scope, &binding) {
            self.decide(evaluated, sweep, verdict);
            return;
        }
        // The decision is recorded before the precondition answers, so that decisions stand in the order of
        // evaluation.
        let place = match sweep {
            None => VerdictSlot::At(self.record(evaluated, Verdict::Asking)),
            Some(sweep) => VerdictSlot::Below { sweep },
        };
        let candidate = Candidate { step, scope, trigger: trigger.seq, binding, place, deferred: false };
        if board.table.step(step).precondition.is_some() {
            board.scopes.add_pending(scope);
            let asked = self.candidates.add(candidate);
            if board.progress.paused {
                self.candidates.defer(asked);
            } else {
                board.actions.push(QueuedAction::Ask(asked));
            }
        } else {
            self.create(candidate, board);
        }
    }

    /// S18. A failed precondition ends the run; the other steps of the trigger are evaluated by now, since a fact
    /// takes effect only after everything that follows from earlier facts.
    pub(super) fn answer(&mut self, id: CandidateId, answer: Answer, board: &mut Board) {
        let Some(candidate) = self.candidates.remove(id) else { return };
        let (scope, at) = (candidate.scope, (candidate.step, candidate.scope));
        let stores = board.progress.redrivable;
        if stores && answer == Answer::Yes && (self.refused.is_some() || id.0 > self.candidates.first()) {
            self.note_answer(id, (scope, candidate.step), None);
        }
        match answer {
            // Between the question and the answer, another trigger may have executed this combination.
            Answer::Yes => match board.obstacle(candidate.step, scope, &candidate.binding) {
                Some(verdict) => self.conclude(candidate.place, at, verdict),
                None => self.create(candidate, board),
            },
            Answer::No => {
                self.conclude(candidate.place, at, Verdict::Refused);
                if stores {
                    self.note_answer(id, (scope, candidate.step), Some(candidate));
                }
            }
            Answer::Failed => {
                self.conclude(candidate.place, at, Verdict::PreconditionFailed);
                self.refused.get_or_insert_default().failed = Some((id, candidate));
                board.finish(End::PreconditionFailed(id));
            }
        }
        // The question's count leaves last: an execution has added its own by now, so the branch does not
        // settle between.
        board.scopes.remove_pending(scope);
    }

    /// Notes the answer to a question for a redrive, unless a later question of the step in this scope was answered
    /// before. The answer yes is noted only if an earlier question may still be answered.
    fn note_answer(&mut self, id: CandidateId, at: (ScopeId, StepIndex), candidate: Option<Candidate>) {
        let is_noted = candidate.is_some() || id.0 > self.candidates.first();
        match self.refused.get_or_insert_default().latest.entry(at) {
            MapEntry::Occupied(latest) if latest.get().0 > id => {}
            MapEntry::Occupied(mut latest) if is_noted => *latest.get_mut() = (id, candidate),
            MapEntry::Occupied(latest) => drop(latest.remove()),
            MapEntry::Vacant(none) if is_noted => drop(none.insert((id, candidate))),
            MapEntry::Vacant(_) => {}
        }
    }

    /// Executes the combination of the candidate.
    fn create(&mut self, candidate: Candidate, board: &mut Board) {
        let Candidate { step, scope, trigger, binding, place, .. } = candidate;
        let verdict = board.create_with(binding, (step, scope, trigger));
        self.conclude(place, (step, scope), verdict);
    }

    /// Records a verdict and returns its place in the decisions, so that a later answer can replace it.
    #[inline]
    fn record(&mut self, (step, scope, trigger): EvaluationKey, verdict: Verdict) -> usize {
        self.decisions.push(Decision { trigger, step, scope, verdict });
        self.decisions.len() - 1
    }

    /// Records a verdict: among the decisions, or with the sweep if the scope is a branch below the event's
    /// scope.
    fn decide(&mut self, evaluated: EvaluationKey, sweep: Option<u32>, verdict: Verdict) {
        match sweep {
            None => drop(self.record(evaluated, verdict)),
            Some(sweep) => self.sweeps.conclude(sweep, (evaluated.0, evaluated.1), verdict),
        }
    }

    /// Completes the verdict of a candidate.
    fn conclude(&mut self, place: VerdictSlot, at: (StepIndex, ScopeId), verdict: Verdict) {
        match place {
            VerdictSlot::At(at) => self.decisions[at].verdict = verdict,
            VerdictSlot::Below { sweep } => self.sweeps.conclude(sweep, at, verdict),
            // The clean-up itself has it.
            VerdictSlot::CleanUp => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ExecutionId;
    use crate::scheduler::SchedulerLimits;
    use crate::scheduler::fixtures::{self, entry, event, step};

    fn evaluate_all(evaluation: &mut Evaluation, board: &mut Board) {
        while !board.progress.has_ended() && evaluation.evaluate_next(board) {}
    }

    fn entered(name: &str) -> (Evaluation, Board, Option<LoggedBatch>) {
        let (mut evaluation, mut board) =
            (Evaluation::default(), fixtures::board(SchedulerLimits::default()));
        let event = event(&board, name);
        board.scopes.add_pending(ScopeId::ROOT);
        let entered = evaluation.enter(ScopeId::ROOT, event, &mut board);
        (evaluation, board, entered)
    }

    fn verdicts(evaluation: &Evaluation) -> Vec<Verdict> {
        evaluation.decisions.iter().map(|decision| decision.verdict).collect()
    }

    #[test]
    fn an_event_that_one_step_takes_alone_makes_it_run_without_a_queue() {
        let (evaluation, board, entered) = entered("Begin");
        let next = entered.and_then(|entered| entered.next());
        assert!(next.is_some_and(|start| start.step == step(&board, "open")));
        assert!(board.is_quiet() && evaluation.is_done(&board) && evaluation.is_busy(&board));
        assert_eq!(verdicts(&evaluation), [Verdict::Executed(ExecutionId(1))]);
    }

    // S28
    #[test]
    fn a_stop_event_ends_the_run() {
        let (evaluation, board, entered) = entered("Done");
        assert!(entered.is_some_and(|entered| entered.next().is_none()));
        assert_eq!(board.progress.end(), Some(&End::Completed(Seq(1))));
        assert!(evaluation.decisions.is_empty());
    }

    // S11
    #[test]
    fn an_event_is_evaluated_for_each_step_that_takes_it_in_order_of_declaration() {
        let (mut evaluation, mut board, _) = entered("Item");
        evaluate_all(&mut evaluation, &mut board);
        assert_eq!(verdicts(&evaluation), [Verdict::Executed(ExecutionId(1)), Verdict::NotReady]);
        let steps = evaluation.decisions.iter().map(|decision| decision.step);
        assert!(steps.eq(["ask", "pack"].map(|name| step(&board, name))));
        assert!(evaluation.is_done(&board));
    }

    // S18
    #[test]
    fn the_first_answer_decides_and_others_are_ignored() {
        for (answer, verdict) in [
            (Answer::Yes, Verdict::Executed(ExecutionId(1))),
            (Answer::No, Verdict::Refused),
            (Answer::Failed, Verdict::PreconditionFailed),
        ] {
            let (mut evaluation, mut board, _) = entered("Packed");
            evaluate_all(&mut evaluation, &mut board);
            assert_eq!(verdicts(&evaluation), [Verdict::Asking]);
            let asked = CandidateId(0);
            assert!(matches!(board.actions.pop(), Some(QueuedAction::Ask(id)) if id == asked));
            evaluation.answer(asked, answer, &mut board);
            evaluation.answer(asked, Answer::Yes, &mut board);
            assert_eq!(verdicts(&evaluation), [verdict]);
            assert_eq!(board.progress.has_ended(), answer == Answer::Failed);
        }
    }

    #[test]
    fn nothing_is_evaluated_behind_the_end_of_the_run() {
        let limits = SchedulerLimits { executions: 0, ..SchedulerLimits::default() };
        let (mut evaluation, mut board) = (Evaluation::default(), fixtures::board(limits));
        let item = entry(&mut board, "Item");
        board.queue_evaluation(item);
        evaluate_all(&mut evaluation, &mut board);
        assert_eq!(verdicts(&evaluation), [Verdict::RunLimitReached]);
        assert_eq!(evaluation.swept_until(), None);
    }

    #[test]
    fn dropped_scopes_drop_their_questions() {
        let (mut evaluation, mut board, _) = entered("Packed");
        evaluate_all(&mut evaluation, &mut board);
        evaluation.drop_in(&HashSet::from([ScopeId(7)]), &mut board.actions);
        assert_eq!(board.actions.len(), 1, "nothing of the root was dropped");
        evaluation.drop_in(&HashSet::from([ScopeId::ROOT]), &mut board.actions);
        assert!(
            matches!(board.actions.pop(), Some(QueuedAction::QuestionsDropped)) && board.actions.is_empty()
        );
        assert!(evaluation.questions().is_empty());
    }
}

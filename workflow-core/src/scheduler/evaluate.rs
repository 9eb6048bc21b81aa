//! Evaluation: once per control event, in order of position, for the steps that take its type, in
//! declaration order (S11), there and in each open branch below where it can make one run (S46).

#![expect(
    clippy::inline_always,
    reason = "every step goes through here: as one function its parts pass no values through memory"
)]

use std::collections::{HashSet, VecDeque};

use smallvec::SmallVec;

use super::bind::{Binder, key_of};
use super::candidates::{Candidate, Candidates, Place};
use super::scope::Scope;
use super::sweep::Until;
use super::{
    Answer, Binding, CandidateId, Decision, End, Entry, Evaluated, Inputs, QueuedAction, Scheduler, Verdict,
};
use crate::id::ScopeId;
use crate::table::StepIndex;

/// What is left to evaluate, what is being asked, and what came of every evaluation.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    /// Events of the log that were not evaluated yet, in order (S11).
    unevaluated: VecDeque<Entry>,
    /// The event being evaluated, and where.
    cursor: Option<Cursor>,
    pub(super) candidates: Candidates,
    /// Those of a short run need no memory of their own.
    pub(super) decisions: SmallVec<[Decision; 4]>,
}

/// The event being evaluated, and how far that is.
#[derive(Debug)]
struct Cursor {
    entry: Entry,
    /// Which sweep it is, once it is evaluated below its own scope.
    sweep: Option<u32>,
    /// The branches still to be evaluated in, the next one last.
    scopes: Vec<ScopeId>,
    scope: ScopeId,
    /// How many of the steps that take the event were evaluated in `scope`.
    taker: usize,
}

impl Evaluation {
    /// Of a run that waits: nothing is left to evaluate, and nothing is asked.
    pub(super) fn of(decisions: Box<[Decision]>, next_candidate: u64) -> Self {
        Self {
            candidates: Candidates::from(next_candidate),
            decisions: decisions.into_vec().into(),
            ..Self::default()
        }
    }

    /// Whether no event is left to evaluate.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.cursor.is_none() && self.unevaluated.is_empty()
    }

    /// Whether a precondition is being asked.
    #[inline]
    pub(super) fn is_asking(&self) -> bool {
        !self.candidates.is_empty()
    }

    pub(super) fn next_candidate(&self) -> u64 {
        self.candidates.next()
    }

    /// What is being asked, in words and in order.
    pub(super) fn questions(&self) -> Vec<String> {
        self.candidates.iter().map(|(id, candidate)| format!("question {id:?}: {candidate:?}")).collect()
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.unevaluated.push_back(entry);
    }

    /// Nothing is evaluated any more.
    pub(super) fn close(&mut self) {
        self.cursor = None;
        self.unevaluated.clear();
    }

    /// Drops what is left to do in these scopes: what was asked below the scopes of its triggers, and in which sweep.
    pub(super) fn drop_in(&mut self, scopes: &HashSet<ScopeId>) -> Vec<(u32, (StepIndex, ScopeId))> {
        self.unevaluated.retain(|entry| !scopes.contains(&entry.scope));
        let dropped = self.candidates.drop_in(scopes);
        dropped.iter().filter_map(Candidate::asked_below).collect()
    }

    /// Every sweep, step and branch whose precondition is being asked.
    pub(super) fn asked_below(&self) -> impl Iterator<Item = (u32, StepIndex, ScopeId)> {
        let asked = self.candidates.iter().filter_map(|(_, candidate)| candidate.asked_below());
        asked.map(|(sweep, (step, scope))| (sweep, step, scope))
    }

    /// How far the evaluation below the scope of an event is, if it is not over.
    pub(super) fn swept_until(&self) -> Option<Until> {
        let cursor = self.cursor.as_ref().filter(|cursor| cursor.sweep.is_some())?;
        Some((cursor.scope, cursor.taker))
    }

    /// Gives back the memory that it needs only while there is something to do.
    pub(super) fn shrink(&mut self) {
        self.unevaluated.shrink_to_fit();
        self.decisions.shrink_to_fit();
    }

    /// Records an evaluation and returns its place, so that a late answer can complete it.
    #[inline]
    pub(super) fn decide(&mut self, (step, scope, trigger): Evaluated, verdict: Verdict) -> usize {
        self.decisions.push(Decision { trigger, step, scope, verdict });
        self.decisions.len() - 1
    }
}

impl Scheduler {
    /// Evaluates one step; `false` if no event is left to evaluate.
    pub(super) fn evaluate_next(&mut self) -> bool {
        if self.evaluation.cursor.is_none() && !self.begin_next() {
            return false;
        }
        let Some(cursor) = &mut self.evaluation.cursor else { return true };
        let takers = &self.table.event(cursor.entry.event).takers;
        let (entry, scope, sweep) = (cursor.entry, cursor.scope, cursor.sweep);
        while let Some(step) = takers.get(cursor.taker).copied() {
            cursor.taker += 1;
            if sweep.is_none() || self.sweeps.is_ready(step, scope) {
                let is_last = cursor.taker == takers.len();
                self.evaluate(step, entry, scope, sweep);
                if !is_last {
                    return true;
                }
                break;
            }
        }
        // It is closed where the evaluation has ended the run.
        let Some(cursor) = &mut self.evaluation.cursor else { return true };
        if let Some(scope) = cursor.scopes.pop() {
            (cursor.scope, cursor.taker) = (scope, 0);
        } else if sweep.is_none() && !self.scopes.get(scope).is_none_or(Scope::is_leaf) {
            let (sweep, scopes) = self.sweep(entry);
            self.evaluation.cursor =
                Some(Cursor { entry, sweep: Some(sweep), scopes, scope, taker: usize::MAX });
        } else {
            self.evaluation.cursor = None;
            self.scopes.release(entry.scope);
        }
        true
    }

    fn begin_next(&mut self) -> bool {
        let Some(entry) = self.evaluation.unevaluated.pop_front() else { return false };
        self.count(entry);
        let row = self.table.event(entry.event);
        if row.takers.is_empty() {
            self.scopes.release(entry.scope);
            return true;
        }
        let is_leaf = self.scopes.get(entry.scope).is_none_or(Scope::is_leaf);
        if let Some(step) = row.direct.filter(|_| is_leaf) {
            // With it the step is ready, and it was not executed with it before.
            let evaluated = (step, entry.scope, entry.seq);
            let verdict = self.create(evaluated, Inputs::TRIGGER);
            self.evaluation.decide(evaluated, verdict);
            self.scopes.release(entry.scope);
        } else {
            let (sweep, scopes, scope) = (None, Vec::new(), entry.scope);
            self.evaluation.cursor = Some(Cursor { entry, sweep, scopes, scope, taker: 0 });
        }
        true
    }

    /// Takes the event into account; from here on every step sees it (S12).
    #[inline(always)]
    pub(super) fn count(&mut self, entry: Entry) {
        let Some(scope) = self.scopes.get_mut(entry.scope) else { return };
        scope.count(&self.table, entry.event, entry.seq);
        if entry.scope != ScopeId::ROOT {
            self.join(entry);
        }
        if !self.table.event(entry.event).fills {
            return;
        }
        // S17.
        for topic in &self.table.event(entry.event).topics {
            for (step, count) in &self.table.topic(*topic).fixed {
                if self.scopes.visible(entry.scope, *topic) > *count {
                    self.executions.add_surplus(*step);
                }
            }
        }
    }

    fn evaluate(&mut self, step: StepIndex, trigger: Entry, scope: ScopeId, sweep: Option<u32>) {
        let evaluated = (step, scope, trigger.seq);
        let binder = Binder { table: &self.table, scopes: &self.scopes, trigger, scope };
        if !binder.is_ready(step) {
            self.decide(evaluated, sweep, Verdict::NotReady);
            return;
        }
        let binding = binder.bind(step);
        if !binder.binds_own(step, &binding) {
            self.decide(evaluated, sweep, Verdict::Covered);
            return;
        }
        if let Some(verdict) = self.obstacle(step, scope, &binding) {
            self.decide(evaluated, sweep, verdict);
            return;
        }
        let place = match sweep {
            None => Place::At(self.evaluation.decide(evaluated, Verdict::Asking)),
            Some(sweep) => Place::Below { sweep },
        };
        let candidate = Candidate { step, scope, trigger: trigger.seq, binding, place };
        if self.table.step(step).precondition.is_some() {
            self.ask(candidate);
        } else {
            self.create_of(candidate);
        }
    }

    /// Why the combination must not be executed: it was before (S20), or the step had its share (S19).
    fn obstacle(&self, step: StepIndex, scope: ScopeId, binding: &Binding) -> Option<Verdict> {
        let row = self.table.step(step);
        let (may_repeat, most) = (row.may_repeat, row.policy.max_executions);
        let own = self.scopes.get(scope)?;
        if may_repeat && own.has_seen(step, &key_of(binding)) {
            return Some(Verdict::Duplicate);
        }
        most.is_some_and(|most| own.executions(step) >= most).then_some(Verdict::LimitReached)
    }

    fn ask(&mut self, candidate: Candidate) {
        self.scopes.hold(candidate.scope);
        let candidate = self.evaluation.candidates.add(candidate);
        self.actions.push_back(QueuedAction::Ask(candidate));
    }

    /// The same where everything that follows from the batches before is complete.
    pub(crate) fn answered(&mut self, id: CandidateId, answer: Answer) {
        self.waits = false;
        self.answer(id, answer);
    }

    /// S18. An error ends the run; the other steps of the trigger are evaluated by now.
    pub(super) fn answer(&mut self, id: CandidateId, answer: Answer) {
        if self.end.is_some() {
            return;
        }
        let Some(candidate) = self.evaluation.candidates.remove(id) else { return };
        let (scope, at) = (candidate.scope, (candidate.step, candidate.scope));
        match answer {
            Answer::Yes => self.create_if_still_due(candidate),
            Answer::No => self.conclude(candidate.place, at, Verdict::Refused),
            Answer::Failed => {
                self.conclude(candidate.place, at, Verdict::PreconditionFailed);
                self.finish(End::PreconditionFailed(id));
            }
        }
        self.scopes.release(scope);
    }

    /// Between the question and the answer another trigger may have used the combination up.
    fn create_if_still_due(&mut self, candidate: Candidate) {
        match self.obstacle(candidate.step, candidate.scope, &candidate.binding) {
            Some(verdict) => self.conclude(candidate.place, (candidate.step, candidate.scope), verdict),
            None => self.create_of(candidate),
        }
    }

    fn conclude(&mut self, place: Place, at: (StepIndex, ScopeId), verdict: Verdict) {
        match place {
            Place::At(at) => self.evaluation.decisions[at].verdict = verdict,
            Place::Below { sweep } => self.sweeps.conclude(sweep, at, verdict),
        }
    }

    /// The combination is executed.
    fn create_of(&mut self, candidate: Candidate) {
        let Candidate { step, scope, trigger, binding, place } = candidate;
        let row = self.table.step(step);
        if row.may_repeat
            && let Some(state) = self.scopes.step_mut(scope, step)
        {
            state.saw(key_of(&binding));
        }
        let inputs = Inputs::of(binding, row, trigger);
        let verdict = self.create((step, scope, trigger), inputs);
        self.conclude(place, (step, scope), verdict);
    }

    /// Creates an execution, unless the run has had as many as it may.
    fn create(&mut self, evaluated: Evaluated, inputs: Inputs) -> Verdict {
        if self.executions.count() >= self.limits.executions {
            self.finish(End::TooManyExecutions);
            return Verdict::RunLimitReached;
        }
        let (step, scope, _) = evaluated;
        self.scopes.hold(scope);
        if let Some(scope) = self.scopes.get_mut(scope) {
            scope.executed(step, self.table.step(step));
        }
        let start = self.executions.create(evaluated, inputs);
        let verdict = Verdict::Executed(start.execution);
        if let Some(start) = self.executions.admit(start, &self.table) {
            self.actions.push_back(QueuedAction::Start(start));
        }
        verdict
    }
}

//! Evaluation: once per control event, in order of position, for the steps that take its type, in
//! declaration order (S11), there and in each open branch below (S46).

use super::bind::{Binder, key_of};
use super::execution::Execution;
use super::{Action, Answer, Binding, CandidateId, End, Entry, Scheduler, Verdict};
use crate::id::{ScopeId, Seq};
use crate::table::StepIndex;

/// An event in the log that was not evaluated yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unevaluated {
    pub(super) entry: Entry,
}

/// The event being evaluated, and how far that is.
#[derive(Debug)]
pub(super) struct Cursor {
    entry: Entry,
    /// The scopes still to be evaluated in, the next one last.
    scopes: Vec<ScopeId>,
    scope: ScopeId,
    /// How many of the steps that take the event were evaluated in `scope`.
    taker: usize,
}

/// A step that is ready and whose precondition is being asked.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) step: StepIndex,
    pub(super) scope: ScopeId,
    pub(super) trigger: Seq,
    pub(super) binding: Binding,
    decision: usize,
}

impl Scheduler {
    /// Evaluates one step; `false` if no event is left to evaluate.
    pub(super) fn evaluate_next(&mut self) -> bool {
        let Some(cursor) = &mut self.cursor else { return self.begin_next() };
        let takers = &self.table.event(cursor.entry.event).takers;
        if let Some(step) = takers.get(cursor.taker).copied() {
            cursor.taker += 1;
            let (entry, scope) = (cursor.entry, cursor.scope);
            self.evaluate(step, entry, scope);
        } else if let Some(scope) = cursor.scopes.pop() {
            (cursor.scope, cursor.taker) = (scope, 0);
        } else {
            let scope = cursor.entry.scope;
            self.cursor = None;
            self.end_trigger(scope);
        }
        true
    }

    fn begin_next(&mut self) -> bool {
        let Some(Unevaluated { entry }) = self.unevaluated.pop_front() else { return false };
        self.count(entry);
        let mut scopes = Vec::new();
        if !self.table.event(entry.event).takers.is_empty() {
            self.scopes.below(entry.scope, &mut scopes);
            scopes.reverse();
        }
        self.cursor = Some(Cursor { entry, scopes, scope: entry.scope, taker: 0 });
        true
    }

    /// Takes the event into account; from here on every step sees it (S12).
    fn count(&mut self, entry: Entry) {
        let Some(scope) = self.scopes.get_mut(entry.scope) else { return };
        scope.count(&self.table, entry.event, entry.seq);
        for topic in &self.table.event(entry.event).topics {
            for (step, count) in &self.table.topic(*topic).fixed {
                if self.scopes.visible(entry.scope, *topic) > *count {
                    self.totals[step.get()].surplus += 1;
                }
            }
        }
    }

    fn end_trigger(&mut self, scope: ScopeId) {
        self.release(scope);
        if let Some(candidate) = self.failing.take() {
            self.finish(End::PreconditionFailed(candidate));
        }
    }

    fn evaluate(&mut self, step: StepIndex, trigger: Entry, scope: ScopeId) {
        if self.scopes.get(scope).is_none() {
            return;
        }
        let binder = Binder { table: &self.table, scopes: &self.scopes, trigger, scope };
        if !binder.is_ready(step) {
            self.decide(step, scope, trigger.seq, Verdict::NotReady);
            return;
        }
        let binding = binder.bind(step);
        if !binder.binds_own(step, &binding) {
            self.decide(step, scope, trigger.seq, Verdict::Covered);
            return;
        }
        if let Some(verdict) = self.obstacle(step, scope, &binding) {
            self.decide(step, scope, trigger.seq, verdict);
            return;
        }
        let decision = self.decide(step, scope, trigger.seq, Verdict::Asking);
        let candidate = Candidate { step, scope, trigger: trigger.seq, binding, decision };
        if self.table.step(step).precondition.is_some() {
            self.ask(candidate);
        } else {
            self.create(candidate);
        }
    }

    /// Why the combination must not be executed: it was before (S20), or the step had its share (S19).
    fn obstacle(&mut self, step: StepIndex, scope: ScopeId, binding: &Binding) -> Option<Verdict> {
        let row = self.table.step(step);
        let (may_repeat, most) = (row.may_repeat, row.policy.max_executions);
        let state = self.scopes.step_mut(scope, step)?;
        if may_repeat && state.has_seen(&key_of(binding)) {
            return Some(Verdict::Duplicate);
        }
        most.is_some_and(|most| state.executions >= most).then_some(Verdict::LimitReached)
    }

    fn ask(&mut self, candidate: Candidate) {
        let id = CandidateId(self.next_candidate);
        self.next_candidate += 1;
        self.hold(candidate.scope);
        let Candidate { step, scope, trigger, ref binding, .. } = candidate;
        let binding = binding.clone();
        self.actions.push_back(Action::AskPrecondition { candidate: id, step, scope, trigger, binding });
        self.candidates.insert(id, candidate);
    }

    /// S18.
    pub(super) fn answer(&mut self, id: CandidateId, answer: Answer) {
        if self.refuses() {
            return;
        }
        let Some(candidate) = self.candidates.remove(&id) else { return };
        let scope = candidate.scope;
        match answer {
            Answer::Yes => self.create_if_still_due(candidate),
            Answer::No => self.decisions[candidate.decision].verdict = Verdict::Refused,
            Answer::Failed => {
                self.decisions[candidate.decision].verdict = Verdict::PreconditionFailed;
                self.fail_by_precondition(id);
            }
        }
        self.release(scope);
    }

    fn fail_by_precondition(&mut self, id: CandidateId) {
        if self.cursor.is_some() {
            self.failing.get_or_insert(id);
        } else {
            self.finish(End::PreconditionFailed(id));
        }
    }

    /// Between the question and the answer another trigger may have used the combination up.
    fn create_if_still_due(&mut self, candidate: Candidate) {
        match self.obstacle(candidate.step, candidate.scope, &candidate.binding) {
            Some(verdict) => self.decisions[candidate.decision].verdict = verdict,
            None => self.create(candidate),
        }
    }

    fn create(&mut self, candidate: Candidate) {
        let Candidate { step, scope, trigger, binding, decision } = candidate;
        if self.executed() >= self.limits.executions {
            self.decisions[decision].verdict = Verdict::RunLimitReached;
            self.finish(End::TooManyExecutions);
            return;
        }
        let may_repeat = self.table.step(step).may_repeat;
        let Some(state) = self.scopes.step_mut(scope, step) else { return };
        state.executions += 1;
        if may_repeat {
            state.saw(key_of(&binding));
        }
        let id = self.number_execution(Execution::new(step, scope, trigger), (step, scope, trigger));
        self.decisions[decision].verdict = Verdict::Executed(id);
        self.hold(scope);
        self.schedule(id, binding);
    }
}

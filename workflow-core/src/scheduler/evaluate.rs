//! Evaluation: once per control event, in order of position, for the steps that take its type, in
//! declaration order (S11), there and in each open branch below (S46).

use super::bind::{Binder, key_of};
use super::{Action, Answer, Binding, CandidateId, End, Entry, Evaluated, Inputs, Scheduler, Start, Verdict};
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
        let row = self.table.event(entry.event);
        if row.takers.is_empty() {
            self.release(entry.scope);
            return true;
        }
        let (mut scopes, direct) = (Vec::new(), row.direct);
        self.scopes.below(entry.scope, &mut scopes);
        scopes.reverse();
        if let Some(step) = direct.filter(|_| scopes.is_empty()) {
            self.evaluate_direct(step, entry);
        } else {
            self.cursor = Some(Cursor { entry, scopes, scope: entry.scope, taker: 0 });
        }
        true
    }

    /// The whole trigger, of an event that makes one step run, whatever else there is: with it the step is ready, and it
    /// was not executed with it before.
    fn evaluate_direct(&mut self, step: StepIndex, trigger: Entry) {
        let Entry { seq, scope, .. } = trigger;
        if self.scopes.get(scope).is_some() {
            let verdict = self.create((step, scope, seq), Inputs::TRIGGER);
            self.decide(step, scope, seq, verdict);
        }
        self.release(scope);
    }

    /// Takes the event into account; from here on every step sees it (S12).
    pub(super) fn count(&mut self, entry: Entry) {
        let Some(scope) = self.scopes.get_mut(entry.scope) else { return };
        scope.count(&self.table, entry.event, entry.seq);
        if self.table.event(entry.event).fills {
            self.count_surplus(entry);
        }
    }

    /// S17.
    fn count_surplus(&mut self, entry: Entry) {
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
        let id = CandidateId(self.next_candidate);
        self.next_candidate += 1;
        self.hold(candidate.scope);
        let Candidate { step, scope, trigger, ref binding, .. } = candidate;
        let binding = binding.clone();
        self.want(Action::AskPrecondition { candidate: id, step, scope, trigger, binding });
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
            None => self.create_of(candidate),
        }
    }

    /// The combination is executed.
    fn create_of(&mut self, candidate: Candidate) {
        let Candidate { step, scope, trigger, binding, decision } = candidate;
        let row = self.table.step(step);
        if row.may_repeat
            && let Some(state) = self.scopes.step_mut(scope, step)
        {
            state.saw(key_of(&binding));
        }
        let inputs = Inputs::of(binding, row, trigger);
        self.decisions[decision].verdict = self.create((step, scope, trigger), inputs);
    }

    /// Creates an execution, unless the run has had as many as it may.
    fn create(&mut self, evaluated: Evaluated, inputs: Inputs) -> Verdict {
        if self.executed() >= self.limits.executions {
            self.finish(End::TooManyExecutions);
            return Verdict::RunLimitReached;
        }
        let (step, scope, trigger) = evaluated;
        self.hold(scope);
        let execution = self.count_execution(evaluated);
        self.schedule(Start { execution, step, scope, trigger, inputs });
        Verdict::Executed(execution)
    }
}

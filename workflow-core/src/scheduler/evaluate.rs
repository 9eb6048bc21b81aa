//! Evaluation: once per control event, in order of position, for the steps that take its type, in
//! declaration order (S11), there and in each open branch below (S46).

use std::collections::{HashSet, VecDeque};

use super::bind::{Binder, key_of};
use super::candidates::{Candidate, Candidates};
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
    pub(super) decisions: Vec<Decision>,
}

/// The event being evaluated, and how far that is.
#[derive(Debug)]
struct Cursor {
    entry: Entry,
    /// The scopes still to be evaluated in, the next one last.
    scopes: Vec<ScopeId>,
    scope: ScopeId,
    /// How many of the steps that take the event were evaluated in `scope`.
    taker: usize,
}

impl Evaluation {
    /// Of a run that waits: nothing is left to evaluate, and nothing is asked.
    pub(super) fn of(decisions: Vec<Decision>, next_candidate: u64) -> Self {
        Self { candidates: Candidates::from(next_candidate), decisions, ..Self::default() }
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

    /// Drops what is left to do in these scopes.
    pub(super) fn drop_in(&mut self, scopes: &HashSet<ScopeId>) {
        self.candidates.drop_in(scopes);
        self.unevaluated.retain(|entry| !scopes.contains(&entry.scope));
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
        let Some(cursor) = &mut self.evaluation.cursor else { return self.begin_next() };
        let takers = &self.table.event(cursor.entry.event).takers;
        if let Some(step) = takers.get(cursor.taker).copied() {
            cursor.taker += 1;
            let (entry, scope) = (cursor.entry, cursor.scope);
            self.evaluate(step, entry, scope);
        } else if let Some(scope) = cursor.scopes.pop() {
            (cursor.scope, cursor.taker) = (scope, 0);
        } else {
            let scope = cursor.entry.scope;
            self.evaluation.cursor = None;
            self.scopes.release(scope);
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
        let (mut scopes, direct) = (Vec::new(), row.direct);
        self.scopes.below(entry.scope, &mut scopes);
        scopes.reverse();
        match direct.filter(|_| scopes.is_empty()) {
            // With it the step is ready, and it was not executed with it before.
            Some(step) => {
                let evaluated = (step, entry.scope, entry.seq);
                let verdict = self.create(evaluated, Inputs::TRIGGER);
                self.evaluation.decide(evaluated, verdict);
                self.scopes.release(entry.scope);
            }
            None => {
                self.evaluation.cursor = Some(Cursor { entry, scopes, scope: entry.scope, taker: 0 });
            }
        }
        true
    }

    /// Takes the event into account; from here on every step sees it (S12).
    #[inline]
    pub(super) fn count(&mut self, entry: Entry) {
        let Some(scope) = self.scopes.get_mut(entry.scope) else { return };
        scope.count(&self.table, entry.event, entry.seq);
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

    fn evaluate(&mut self, step: StepIndex, trigger: Entry, scope: ScopeId) {
        let evaluated = (step, scope, trigger.seq);
        let binder = Binder { table: &self.table, scopes: &self.scopes, trigger, scope };
        if !binder.is_ready(step) {
            self.evaluation.decide(evaluated, Verdict::NotReady);
            return;
        }
        let binding = binder.bind(step);
        if !binder.binds_own(step, &binding) {
            self.evaluation.decide(evaluated, Verdict::Covered);
            return;
        }
        if let Some(verdict) = self.obstacle(step, scope, &binding) {
            self.evaluation.decide(evaluated, verdict);
            return;
        }
        let decision = self.evaluation.decide(evaluated, Verdict::Asking);
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
        self.scopes.hold(candidate.scope);
        let candidate = self.evaluation.candidates.add(candidate);
        self.actions.push_back(QueuedAction::Ask(candidate));
    }

    /// S18. An error ends the run; the other steps of the trigger are evaluated by now.
    pub(super) fn answer(&mut self, id: CandidateId, answer: Answer) {
        if self.end.is_some() {
            return;
        }
        let Some(candidate) = self.evaluation.candidates.remove(id) else { return };
        let scope = candidate.scope;
        match answer {
            Answer::Yes => self.create_if_still_due(candidate),
            Answer::No => self.evaluation.decisions[candidate.decision].verdict = Verdict::Refused,
            Answer::Failed => {
                self.evaluation.decisions[candidate.decision].verdict = Verdict::PreconditionFailed;
                self.finish(End::PreconditionFailed(id));
            }
        }
        self.scopes.release(scope);
    }

    /// Between the question and the answer another trigger may have used the combination up.
    fn create_if_still_due(&mut self, candidate: Candidate) {
        match self.obstacle(candidate.step, candidate.scope, &candidate.binding) {
            Some(verdict) => self.evaluation.decisions[candidate.decision].verdict = verdict,
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
        self.evaluation.decisions[decision].verdict = self.create((step, scope, trigger), inputs);
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

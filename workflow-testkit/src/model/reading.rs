//! What a scope sees of the log, and how a step is bound (S12–S17, S45, S46).

use std::collections::VecDeque;

use workflow_core::scheduler::Verdict;

use super::events::Events;
use super::line::Call;
use super::{Model, PlannedInput, Take};

impl Model {
    /// Evaluates one step in one scope; `false` if nothing is left to evaluate.
    pub(super) fn evaluate_next(&mut self) -> bool {
        if let Some((scope, step)) = self.todo.pop_front() {
            self.evaluate(scope, step);
        } else if self.trigger.take().is_some() {
            // Nothing is left to evaluate at the trigger.
        } else if let Some(seq) = self.unread.pop_front() {
            self.begin(seq);
        } else {
            return false;
        }
        true
    }

    /// From here on every step sees the event. The steps that take its type evaluate it in its own scope and then in
    /// each open branch below (S46), in declaration order (S11).
    fn begin(&mut self, seq: u64) {
        self.read.push(seq);
        self.trigger = Some(seq);
        let logged = self.logged(seq);
        self.count_surplus(logged.scope, logged.event);
        // S31: events do not trigger clean-up.
        let takes = |step: &usize| {
            self.plan.steps[*step].on_end.is_none()
                && self.triggering(*step).any(|(_, events)| events.contains(logged.event))
        };
        let steps: Vec<usize> = (0..self.taken.len()).filter(takes).collect();
        let scopes = self.open_below(logged.scope);
        self.todo =
            scopes.iter().flat_map(|scope| steps.iter().map(|step| (*scope, *step))).collect::<VecDeque<_>>();
    }

    /// S17: counts later events as surplus for each fixed list that is full in the event's scope.
    fn count_surplus(&mut self, scope: u32, event: usize) {
        for step in 0..self.taken.len() {
            if self.plan.steps[step].on_end.is_some() {
                continue;
            }
            for slot in 0..self.taken[step].len() {
                if let Take::Fixed(count) = self.plan.steps[step].inputs[slot].take
                    && self.taken[step][slot].contains(event)
                    && self.visible(scope, self.taken[step][slot]).len() > count as usize
                {
                    self.surplus[step] += 1;
                }
            }
        }
    }

    fn evaluate(&mut self, scope: u32, step: usize) {
        let Some(trigger) = self.trigger.filter(|_| self.is_open(scope)) else { return };
        let place = (step, scope, trigger);
        let Some(binding) = self.binding(step, scope, trigger) else {
            return self.evaluated(place, Verdict::NotReady);
        };
        let call = Call { step, scope, trigger, binding };
        if !self.has_own_event(&call) {
            return self.evaluated(place, Verdict::Covered);
        }
        if let Some(verdict) = self.used_up(&call) {
            return self.evaluated(place, verdict);
        }
        self.evaluated(place, Verdict::Asking);
        if self.plan.steps[step].has_precondition {
            self.ask(call);
        } else {
            self.execute(call);
        }
    }

    /// The binding of each parameter; `None` if a required input is missing (S13).
    fn binding(&self, step: usize, scope: u32, trigger: u64) -> Option<Vec<Vec<u64>>> {
        let inputs = self.plan.steps[step].inputs.iter().zip(&self.taken[step]);
        let bound = inputs.map(|(input, events)| {
            let mut seqs = self.bound(input.take, *events, scope, trigger);
            // S48: an optional gather that was taken is left out; a required one is the obstacle.
            if input.take == Take::Gather && input.optional {
                seqs.retain(|gather| self.taker_of(step, scope, *gather).is_none());
            }
            (input.can_lack() || !seqs.is_empty()).then_some(seqs)
        });
        bound.collect()
    }

    fn bound(&self, take: Take, events: Events, scope: u32, trigger: u64) -> Vec<u64> {
        let visible = self.visible(scope, events);
        match take {
            // S16: all there is.
            Take::List => visible,
            // S17: the first N, or none at all.
            Take::Fixed(count) if visible.len() < count as usize => Vec::new(),
            Take::Fixed(count) => visible[..count as usize].to_vec(),
            // S15: the trigger where it matches, else the latest.
            _ if events.contains(self.logged(trigger).event) => vec![trigger],
            _ => self.latest(scope, &visible).into_iter().collect(),
        }
    }

    /// S12, S45: the evaluated events of these types in the scope and its ancestors, by position.
    pub(super) fn visible(&self, scope: u32, events: Events) -> Vec<u64> {
        let chain = self.chain(scope);
        let seen = self.read.iter().copied().filter(|seq| {
            let logged = self.logged(*seq);
            events.contains(logged.event) && chain.contains(&logged.scope)
        });
        let mut seqs: Vec<u64> = seen.collect();
        seqs.sort_unstable();
        seqs
    }

    /// S45: the latest of the innermost scope that has one.
    pub(super) fn latest(&self, scope: u32, visible: &[u64]) -> Option<u64> {
        let of = |scope: u32| visible.iter().rev().copied().find(|seq| self.logged(*seq).scope == scope);
        self.chain(scope).into_iter().find_map(of)
    }

    /// S46: a branch skips a binding without an event of its own, because an outer scope evaluates it.
    fn has_own_event(&self, call: &Call) -> bool {
        let combination = self.combination(call.step, &call.binding);
        let mut seqs = combination.into_iter().flatten();
        call.scope == 0 || seqs.any(|seq| self.logged(*seq).scope == call.scope)
    }

    /// S58: the inputs of the step that trigger it, each with its event types.
    pub(super) fn triggering(&self, step: usize) -> impl Iterator<Item = (&PlannedInput, Events)> {
        let inputs = self.plan.steps[step].inputs.iter().zip(self.taken[step].iter().copied());
        inputs.filter(|(input, _)| !input.passive)
    }

    /// S58: the binding without the passive inputs.
    pub(super) fn combination<'b>(&self, step: usize, binding: &'b [Vec<u64>]) -> Vec<&'b [u64]> {
        let inputs = self.plan.steps[step].inputs.iter().zip(binding);
        inputs.filter(|(input, _)| !input.passive).map(|(_, seqs)| &**seqs).collect()
    }
}

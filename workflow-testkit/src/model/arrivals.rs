//! S30: whether any arrival can still make a step run in an idle run. Tries every possible arrival for every step in
//! every scope.

use std::collections::BTreeSet;

use super::branches::ScopeState;
use super::events::Events;
use super::line::Call;
use super::{Model, PlannedInput, Take};

/// An event that can come, and its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    scope: u32,
    event: usize,
}

impl Model {
    /// Assumes that arrivals repeat any number of times, and that preconditions may agree.
    pub(super) fn can_go_on(&self) -> bool {
        let can_end = self.plan.events.iter().any(|event| event.external && event.stop);
        let coming = self.coming();
        can_end || self.triggers(&coming).iter().any(|(arrival, scope)| self.runs(&coming, *arrival, *scope))
    }

    /// External events at the root, replies in the scopes of their requests, and gathers in the scopes of fan-outs
    /// whose branches wait for replies.
    fn coming(&self) -> BTreeSet<Arrival> {
        let events = self.plan.events.iter().enumerate();
        let external =
            events.filter(|(_, event)| event.external).map(|(event, _)| Arrival { scope: 0, event });
        let replies = self.open_requests().into_iter().filter_map(|seq| {
            let asked = self.logged(seq);
            Some(Arrival { scope: asked.scope, event: self.plan.events[asked.event].reply? })
        });
        let gathers = self.open_fan_outs().into_iter();
        let gathers = gathers.map(|(fan_out, scope)| Arrival { scope, event: self.plan.gathered(fan_out) });
        external.chain(replies).chain(gathers).collect()
    }

    /// Possible arrivals with each scope to evaluate: the scope itself and the open ones below. An item arrives in its
    /// own branch when the branch opens.
    fn triggers(&self, coming: &BTreeSet<Arrival>) -> Vec<(Arrival, u32)> {
        let mut triggers = Vec::new();
        for arrival in coming {
            triggers.extend(self.open_below(arrival.scope).into_iter().map(|scope| (*arrival, scope)));
        }
        for (scope, event) in self.items_to_come() {
            triggers.push((Arrival { scope, event }, scope));
        }
        triggers
    }

    fn runs(&self, coming: &BTreeSet<Arrival>, arrival: Arrival, scope: u32) -> bool {
        let steps = (0..self.taken.len())
            .filter(|step| self.plan.steps[*step].on_end.is_none())
            .filter(|step| self.triggering(*step).any(|(_, events)| events.contains(arrival.event)));
        steps.into_iter().any(|step| {
            !self.limit_is_reached(step, scope)
                && self.slots(step).all(|(input, events)| {
                    input.can_lack()
                        || events.contains(arrival.event)
                        || (self.is_satisfied(input, events, scope)
                            && !self.is_taken(step, (input, events), scope))
                        || self.can_see_one(coming, events, scope)
                })
                && self.has_new_combination(step, arrival, scope)
        })
    }

    fn slots(&self, step: usize) -> impl Iterator<Item = (&PlannedInput, Events)> {
        self.plan.steps[step].inputs.iter().zip(self.taken[step].iter().copied())
    }

    fn limit_is_reached(&self, step: usize, scope: u32) -> bool {
        let calls = self.executions.iter().map(|execution| &execution.call);
        let had = calls.filter(|call| call.step == step && call.scope == scope).count();
        self.plan.steps[step].max_executions.is_some_and(|most| had >= most as usize)
    }

    fn is_satisfied(&self, input: &PlannedInput, events: Events, scope: u32) -> bool {
        let least = if let Take::Fixed(count) = input.take { count as usize } else { 1 };
        self.visible(scope, events).len() >= least
    }

    /// S48: whether the step took the latest gather in this scope.
    fn is_taken(&self, step: usize, (input, events): (&PlannedInput, Events), scope: u32) -> bool {
        let latest = self.latest(scope, &self.visible(scope, events));
        input.take == Take::Gather
            && latest.is_some_and(|gather| self.taker_of(step, scope, gather).is_some())
    }

    fn can_see_one(&self, coming: &BTreeSet<Arrival>, events: Events, scope: u32) -> bool {
        let seen = self.chain(scope);
        coming.iter().any(|other| seen.contains(&other.scope) && events.contains(other.event))
    }

    /// Whether the step would get a new combination (S20), with an event of the scope's own (S46).
    fn has_new_combination(&self, step: usize, arrival: Arrival, scope: u32) -> bool {
        // A fixed list is new in a new branch: the item may be older than the events that complete the list in outer
        // scopes.
        let is_new = self.scope_state(scope) == ScopeState::Unopened;
        let is_full = |input: &PlannedInput, events| {
            matches!(input.take, Take::Fixed(_)) && !is_new && self.is_satisfied(input, events, scope)
        };
        let takes = |events: Events| events.contains(arrival.event);
        if self.triggering(step).any(|(input, events)| takes(events) && !is_full(input, events)) {
            let own = |events| self.visible(scope, events).iter().any(|seq| self.logged(*seq).scope == scope);
            let keeps_own = |(input, events): (&PlannedInput, Events)| {
                let is_list = matches!(input.take, Take::List | Take::Fixed(_));
                own(events) && (is_list || !takes(events))
            };
            return arrival.scope == scope || self.triggering(step).any(keeps_own);
        }
        // Only full lists take the event, so the step would get nothing new.
        let bound = self.slots(step).map(|slot| {
            if self.is_taken(step, slot, scope) {
                slot.0.can_lack().then(Vec::new)
            } else {
                self.binding_without_trigger(slot, scope)
            }
        });
        let binding: Option<Vec<Vec<u64>>> = bound.collect();
        binding.is_some_and(|binding| {
            let combination = self.combination(step, &binding);
            let mut seqs = combination.iter().copied().flatten();
            let has_own = scope == 0 || seqs.any(|seq| self.logged(*seq).scope == scope);
            let mut calls = self.executions.iter().map(|execution| &execution.call);
            let is_same = |call: &Call| self.combination(step, &call.binding) == combination;
            has_own && !calls.any(|call| call.step == step && call.scope == scope && is_same(call))
        })
    }

    /// The binding of a parameter that does not take the trigger (S15–S17).
    fn binding_without_trigger(
        &self,
        (input, events): (&PlannedInput, Events),
        scope: u32,
    ) -> Option<Vec<u64>> {
        let visible = self.visible(scope, events);
        let seqs = match input.take {
            Take::List => visible,
            Take::Fixed(count) => visible.get(..count as usize).map(<[u64]>::to_vec).unwrap_or_default(),
            _ => self.latest(scope, &visible).into_iter().collect(),
        };
        (input.can_lack() || !seqs.is_empty()).then_some(seqs)
    }

    /// The items of branches that have not opened yet (S50).
    fn items_to_come(&self) -> Vec<(u32, usize)> {
        let branches = self.open_groups().flat_map(|opening| &opening.branches);
        let is_unopened = |scope: u32| self.scope_state(scope) == ScopeState::Unopened;
        branches.filter(|(scope, _)| is_unopened(*scope)).map(|(scope, item)| (*scope, item.event)).collect()
    }
}

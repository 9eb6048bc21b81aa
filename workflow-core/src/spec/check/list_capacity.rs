//! List capacity: finds fixed lists that no run can fill, by bounding the number of events of each type.
//! Where no bound is known the number is unlimited, so that no list is refused that some run can fill.
//!
//! A fixed point from above: all steps start without a bound. Each round bounds executions by the events that
//! trigger them, and events by the executions that emit them, in the order of `order`. Stopping after any round is safe,
//! since bounds only become lower.
//!
//! Example: a start event occurs once, so `ask`, which takes it and returns one `Question`, runs once. A
//! `FixedList<Question, 2>` is never full.
//!
//! ```text
//!  before    ask: any number   Question: any number
//!  round 1   ask: 1            Question: 1               ask takes the start event, which occurs once
//!  round 2   nothing is lower: the bounds are final
//! ```
//!
//! Invariant: each bound is at least the number in any run. A round keeps this, since a step cannot run more often than
//! the bounds of its events allow, and an event cannot occur more often than the bounds of its emitters allow.

use super::graph::{Fault, Input, Output, RuleGraph};
use super::nodes::Step;
use super::order::Node;
use crate::spec::InputKind;

/// No known bound.
const MANY: u64 = u64::MAX;

impl RuleGraph<'_, '_> {
    /// Sets the fault of fixed lists that are never full.
    pub(super) const fn note_short_lists(&mut self) {
        if !self.has_fixed_list() {
            return;
        }
        self.put_in_order();
        self.assume_many();
        let (mut round, mut forwards) = (0, true);
        // Every round gives bounds; further rounds only lower them.
        // A loop of steps may lower its bounds a little in each round, so the rounds are bounded.
        while round <= self.steps.len() && self.lower_bounds(forwards) {
            forwards = !forwards;
            round += 1;
        }
        let mut input = 0;
        while input < self.inputs.len() {
            self.note_short_list(input);
            input += 1;
        }
    }

    /// Sets the fault of a required fixed list that is longer than the bound of its events.
    const fn note_short_list(&mut self, input: usize) {
        let row = self.inputs.get(input);
        if let (InputKind::Fixed(least), None, false) =
            (row.kind, row.fault, row.optional || row.step.is_none())
        {
            // A parameter with another fault has its message; one of a precondition repeats one of its step.
            let most = self.most_taken(input);
            if most < least as u64 {
                self.inputs.row(input).fault = Some(Fault::Short(most));
            }
        }
    }

    /// Whether any required fixed list has more than one event. Without one, the search has nothing to find.
    const fn has_fixed_list(&self) -> bool {
        let mut input = 0;
        while input < self.inputs.len() {
            let row = self.inputs.get(input);
            if matches!(row.kind, InputKind::Fixed(2..)) && !row.optional {
                return true;
            }
            input += 1;
        }
        false
    }

    /// Starts with no bound for any step or event.
    const fn assume_many(&mut self) {
        self.forget_marks();
        let mut step = 0;
        while step < self.steps.len() {
            self.steps.row(step).most = MANY;
            self.count_distinct(step);
            step += 1;
        }
        let mut event = 0;
        while event < self.events.len() {
            self.events.row(event).most = MANY;
            event += 1;
        }
    }

    /// Bounds each event by the steps that emit it, and each step by the events that it takes. Returns whether a bound is
    /// lower now.
    const fn lower_bounds(&mut self, forwards: bool) -> bool {
        let (mut place, mut lowered) = (0, false);
        while place < self.order.len() {
            match self.node(place, forwards) {
                Node::Event(event) => {
                    let most = self.most_events(event);
                    lowered |= most < self.events.get(event).most;
                    self.events.row(event).most = most;
                }
                Node::Step(step) => {
                    let (known, most) = (self.steps.get(step).most, self.most_executions(step));
                    lowered |= most < known;
                    self.steps.row(step).most = if most < known { most } else { known };
                }
            }
            place += 1;
        }
        lowered
    }

    /// The most events of a type: by arrivals from outside, and by the executions of the steps that emit it.
    const fn most_events(&self, event: usize) -> u64 {
        let row = self.events.get(event);
        // A run begins with one start event. An external one can be sent again.
        let begins = row.roles.is_start() && !row.roles.is_external();
        // An event that nothing brings about is reported at its own place. Here it counts as repaired.
        let is_internal = row.gathers.is_some() || row.fails.is_some();
        let is_known = begins || !row.given && (is_internal || self.is_produced(event));
        let mut most = if is_known { begins as u64 } else { MANY };
        if let Some(fan_out) = row.gathers {
            // Once per execution.
            most = most.saturating_add(self.steps.get(self.fan_outs.get(fan_out).step).most);
        }
        if let Some(step) = row.fails {
            most = most.saturating_add(self.most_failures(step));
        }
        if let Some(request) = row.request {
            most = most.saturating_add(self.events.get(request).most);
        }
        let mut emitted = row.emitted;
        while let Some(output) = emitted {
            let &Output { step, many, fan_out, same_event, .. } = self.outputs.get(output);
            let executions = self.steps.get(step).most;
            // Items occur in branches. A step that never runs emits nothing, however many events one execution may
            // emit.
            let any_number = (many || fan_out.is_some()) && executions > 0;
            most = most.saturating_add(if any_number { MANY } else { executions });
            emitted = same_event;
        }
        most
    }

    /// The most failures of a step (S60): an execution fails once, or each fan-out that it opened does.
    const fn most_failures(&self, step: usize) -> u64 {
        let &Step { outputs, most, .. } = self.steps.get(step);
        let (mut output, mut fan_outs) = (outputs.start, 0);
        while output < outputs.end {
            fan_outs += self.outputs.get(output).fan_out.is_some() as u64;
            output += 1;
        }
        most.saturating_mul(if fan_outs > 1 { fan_outs } else { 1 })
    }

    /// The most executions of a step: one for each event that it takes, and for a fixed list one when it is
    /// full. The first events of its other required parameters do not run it, since something is still
    /// missing: of n distinct required parameters, the first events of n - 1 come too early.
    const fn most_executions(&self, step: usize) -> u64 {
        let row = self.steps.get(step);
        // In branches a step is counted anew. A step with a message counts as repaired.
        if row.unclear || row.deadlock.is_some() || row.disjoint.is_some() || self.runs_in_branch(step) {
            return MANY;
        }
        let (mut input, mut triggers) = (row.inputs.start, 0_u64);
        while input < row.inputs.end {
            let of_input = self.inputs.get(input);
            if of_input.fault.is_some() {
                return MANY;
            }
            if of_input.triggers() {
                triggers = triggers.saturating_add(match of_input.kind {
                    InputKind::Fixed(_) => 1 + of_input.optional as u64,
                    _ => self.most_taken(input),
                });
            }
            input += 1;
        }
        let early = row.distinct.saturating_sub(1);
        let most = if triggers == MANY { MANY } else { triggers.saturating_sub(early) };
        match row.limit {
            Some(limit) if limit > 0 && (limit as u64) < most => limit as u64,
            _ => most,
        }
    }

    /// Whether the step can run in a branch, where executions count per branch and no bound holds for the
    /// run.
    const fn runs_in_branch(&self, step: usize) -> bool {
        let mut visit = self.steps.get(step).visits;
        while let Some(at) = visit {
            if self.scopes.visits.row(at) > 0 && self.is_run(at) {
                return true;
            }
            visit = self.scopes.visits.next_in_column(at);
        }
        false
    }

    /// Counts the required parameters that no earlier one shares an event with. Two parameters that one event fills are
    /// ready together, so only one of them is counted as coming too early.
    const fn count_distinct(&mut self, step: usize) {
        let Step { inputs, .. } = *self.steps.get(step);
        let (mut input, mut distinct, mut gathers) = (inputs.start, 0, false);
        while input < inputs.end {
            let row = *self.inputs.get(input);
            if row.triggers() {
                let is_gather = matches!(row.kind, InputKind::Gather);
                let has_events = row.members.len() > 0;
                let is_shared = self.mark_members(step, &row) || (is_gather && gathers && has_events);
                distinct += (!row.optional && !is_shared) as u64;
                gathers |= is_gather;
            }
            input += 1;
        }
        self.steps.row(step).distinct = distinct;
    }

    /// Marks the parameter's events as those of the step. Returns whether an earlier parameter has marked one.
    const fn mark_members(&mut self, step: usize, input: &Input) -> bool {
        let (mut member, mut is_shared) = (input.members.start, false);
        while member < input.members.end {
            let event = self.members.get(member).event;
            is_shared |= matches!(self.events.get(event).mark, Some(by) if by == step);
            member += 1;
        }
        member = input.members.start;
        while member < input.members.end {
            self.events.row(self.members.get(member).event).mark = Some(step);
            member += 1;
        }
        is_shared
    }

    /// The most events that the parameter can take.
    const fn most_taken(&self, input: usize) -> u64 {
        let (mut linked, mut most) = (self.inputs.get(input).linked, 0_u64);
        while let Some(member) = linked {
            let member = self.members.get(member);
            most = most.saturating_add(self.events.get(member.event).most);
            linked = member.other;
        }
        most
    }
}

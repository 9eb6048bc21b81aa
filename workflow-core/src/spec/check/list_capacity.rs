//! List capacity: finds fixed lists that no run can fill, by bounding the number of events of each type.
//! Where no bound is known the number is unlimited, so that no list is refused that some run can fill.
//!
//! A fixed point from above: all steps start without a bound. Each round bounds executions by the events that
//! trigger them, and events by the executions that emit them. Stopping after any round is safe, since bounds
//! only become lower.
//!
//! Example: a start event occurs once, so `ask`, which takes it and returns one `Question`, runs once. A
//! `FixedList<Question, 2>` is never full.
//!
//! ```text
//!  round 0   ask: any number   Question: any number
//!  round 1   ask: 1            Question: 1               ask takes the start event, which occurs once
//!  round 2   nothing is lower: the bounds are final
//! ```
//!
//! Invariant: each bound is at least the number in any run. A round keeps this, since a step cannot run more often than
//! the bounds of its events allow, and an event cannot occur more often than the bounds of its emitters allow.

use super::graph::{Event, Fault, RuleGraph, Step};
use crate::spec::InputKind;

/// No known bound.
const MANY: u64 = u64::MAX;

impl RuleGraph<'_, '_> {
    /// Sets the fault of fixed lists that are never full.
    pub(super) const fn note_short_lists(&mut self) {
        if !self.has_fixed_list() {
            return;
        }
        self.assume_many();
        let mut round = 0;
        // Every round gives bounds; further rounds only lower them.
        // A loop of steps may lower its bounds a little in each round, so the rounds are bounded.
        while round <= self.steps.len() && self.lower_bounds() {
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

    /// Starts with no bound for any step.
    const fn assume_many(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            self.steps.row(step).most = MANY;
            step += 1;
        }
        self.count_events();
    }

    /// Bounds executions by events and then events by executions. Returns whether a bound is lower now.
    const fn lower_bounds(&mut self) -> bool {
        let (mut step, mut lowered) = (0, false);
        while step < self.steps.len() {
            let most = self.most_executions(step);
            if most < self.steps.get(step).most {
                self.steps.row(step).most = most;
                lowered = true;
            }
            step += 1;
        }
        self.count_events();
        lowered
    }

    /// Bounds events by the executions of the steps that emit them and by arrivals from outside.
    const fn count_events(&mut self) {
        let mut event = 0;
        while event < self.events.len() {
            let row = self.events.get(event);
            // A run begins with one start event. An external one can be sent again.
            let begins = row.roles.is_start() && !row.roles.is_external();
            // An event that nothing brings about is reported at its own place. Here it counts as repaired.
            let is_internal = row.gathers.is_some() || row.fails.is_some();
            let is_known = begins || !row.given && (is_internal || self.is_produced(event));
            self.events.row(event).most = if is_known { begins as u64 } else { MANY };
            event += 1;
        }
        let mut step = 0;
        while step < self.steps.len() {
            self.count_outputs(step);
            step += 1;
        }
        // Replies come last, since they follow from the bounds of their requests.
        let mut request = 0;
        while request < self.events.len() {
            let &Event { reply, most, .. } = self.events.get(request);
            if let Some(reply) = reply {
                self.add(reply, most);
            }
            request += 1;
        }
    }

    /// Adds the outputs of a step, bounded by its executions, to the bounds of their events.
    const fn count_outputs(&mut self, step: usize) {
        let &Step { outputs, most, failed, .. } = self.steps.get(step);
        if let Some(failed) = failed {
            // S60: an execution fails once, or each fan-out that it opened does.
            let (mut output, mut fan_outs) = (outputs.start, 0);
            while output < outputs.end {
                fan_outs += self.outputs.get(output).fan_out.is_some() as u64;
                output += 1;
            }
            self.add(failed, most.saturating_mul(if fan_outs > 1 { fan_outs } else { 1 }));
        }
        let mut output = outputs.start;
        while output < outputs.end {
            let row = *self.outputs.get(output);
            // A step that never runs emits nothing, however many events one execution may emit.
            let any_number = if most == 0 { 0 } else { MANY };
            match row.fan_out {
                Some(fan_out) => {
                    // Items occur in branches; the end of the fan-out once per execution.
                    self.add(row.event, any_number);
                    self.add(self.fan_outs.get(fan_out).gathered, most);
                }
                None => self.add(row.event, if row.many { any_number } else { most }),
            }
            output += 1;
        }
    }

    /// Adds to the bound of an event. `MANY` stays `MANY`.
    const fn add(&mut self, event: usize, more: u64) {
        let most = self.events.get(event).most;
        self.events.row(event).most = most.saturating_add(more);
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
        let (mut input, mut triggers, mut distinct) = (row.inputs.start, 0_u64, 0_u64);
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
                distinct += (!of_input.optional && self.is_distinct(row, input)) as u64;
            }
            input += 1;
        }
        let most = if triggers == MANY { MANY } else { triggers.saturating_sub(distinct.saturating_sub(1)) };
        match row.limit {
            Some(limit) if limit > 0 && (limit as u64) < most => limit as u64,
            _ => most,
        }
    }

    /// Whether the step can run in a branch, where executions count per branch and no bound holds for the
    /// run.
    const fn runs_in_branch(&self, step: usize) -> bool {
        let mut scope = 1;
        while scope <= self.fan_outs.len() {
            if self.runs_in(step, scope) {
                return true;
            }
            scope += 1;
        }
        false
    }

    /// Whether no earlier parameter can be filled by the same event. Two parameters that one event fills are ready
    /// together, so only one of them is counted as coming too early.
    const fn is_distinct(&self, step: &Step<'_>, input: usize) -> bool {
        let wanted = self.inputs.get(input);
        let is_gather = matches!(wanted.kind, InputKind::Gather);
        let mut before = step.inputs.start;
        while before < input {
            let row = self.inputs.get(before);
            let mut member = wanted.members.start;
            while member < wanted.members.end && row.triggers() {
                let both_gather = is_gather && matches!(row.kind, InputKind::Gather);
                if both_gather || self.names(row, self.members.get(member).event) {
                    return false;
                }
                member += 1;
            }
            before += 1;
        }
        true
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

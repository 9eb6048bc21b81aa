//! The scopes of a graph: which events the root and each fan-out's branches can have and see. From them
//! follow the gathers that fit a fan-out, and whether its branches can end (S48).
//!
//! Scopes start with the events that open them, and a step that can run in a scope adds its outputs there. A gather fits
//! a fan-out once a branch can have its event, and then lets further steps run. `scopes` has the search.
//!
//! Example: `split` fans out `Page`, and `read` emits `Text` for each. The branches can have `Page` and
//! `Text`, so `Gather<Text>` fits this fan-out.
//!
//! ```text
//!               root (0)                        branches of `split` (1)
//!  own          Book, end of fan-out            Page, Text
//!  seen         Book, end of fan-out            Page, Text, Book, end of fan-out
//! ```
//!
//! Invariant: all branches of one fan-out share one scope here, since they can have the same events.

use super::graph::{FanOut, Input, Member, RuleGraph};
use super::names::same;
use super::nodes::Event;
use crate::event::Roles;
use crate::spec::InputKind;

impl RuleGraph<'_, '_> {
    /// Links each event to the parameters of steps that take it.
    pub(super) const fn link_inputs(&mut self) {
        let mut input = 0;
        while input < self.inputs.len() {
            let row = *self.inputs.get(input);
            // A passive parameter triggers nothing, and has no links.
            // A gather is triggered by the event that says that it is due, not by those that it collects.
            if let Some(step) = row.step
                && row.triggers()
                && !matches!(row.kind, InputKind::Gather)
            {
                self.link_input(step, input);
            }
            input += 1;
        }
    }

    /// Links the events of one parameter to it. Gathers are linked later, by `link_gathers`.
    const fn link_input(&mut self, step: usize, input: usize) {
        let members = self.inputs.get(input).members;
        let mut member = members.start;
        while member < members.end {
            let event = self.members.get(member).event;
            if self.events.get(event).roles.is_failure() {
                self.link_failures(step, input);
            } else {
                self.link(event, step, input);
            }
            member += 1;
        }
    }

    /// Finds the scopes and links the gathers. A table without fan-outs has no scopes, and their cells stay empty: other
    /// rules ask for scopes only if there are fan-outs.
    pub(super) const fn match_gathers(&mut self) {
        self.open_fan_outs();
        if self.fan_outs.len() == 0 || self.overflowed() {
            return;
        }
        self.note_gathers();
        self.seed_scopes();
        self.grow_scopes();
        self.note_stops();
    }

    /// Adds a row for each fan-out output.
    const fn open_fan_outs(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            let outputs = self.steps.get(step).outputs;
            let mut output = outputs.start;
            while output < outputs.end {
                if self.outputs.get(output).fan_out.is_some() {
                    self.open_fan_out(step, output);
                }
                output += 1;
            }
            step += 1;
        }
    }

    /// Adds a fan-out and the internal event that marks its end.
    const fn open_fan_out(&mut self, step: usize, output: usize) {
        let (index, item) = (self.fan_outs.len(), self.outputs.get(output).event);
        // An event without a name counts as given, since the compiler has reported it. This one has no name
        // by design.
        let event = Event { gathers: Some(index), given: false, ..Event::new("", Roles::NONE) };
        let gathered = self.events.push(event);
        self.outputs.row(output).fan_out = Some(index);
        let same_item = self.events.get(item).opens;
        self.fan_outs.push(FanOut { step, item, gathered, same_item, ..FanOut::NONE });
        self.events.row(item).opens = Some(index);
    }

    /// Links the gathers that name an item to all fan-outs with this item (S59). Lists the others by their event: they
    /// fit a fan-out once its branches can have it.
    const fn note_gathers(&mut self) {
        let mut input = 0;
        while input < self.inputs.len() {
            let row = *self.inputs.get(input);
            if let (Some(step), InputKind::Gather) = (row.step, row.kind) {
                match (row.item, self.first_event(&row)) {
                    (Some(item), _) => self.link_gather_of(item, step, input),
                    (None, Some(event)) => {
                        self.inputs.row(input).same_event = self.events.get(event).gathered;
                        self.events.row(event).gathered = Some(input);
                    }
                    (None, None) => {}
                }
            }
            input += 1;
        }
    }

    const fn link_gather_of(&mut self, item: usize, step: usize, input: usize) {
        let mut opened = self.events.get(item).opens;
        while let Some(fan_out) = opened {
            let FanOut { gathered, same_item, .. } = *self.fan_outs.get(fan_out);
            self.link(gathered, step, input);
            opened = same_item;
        }
    }

    /// Links the gathers of the event to a fan-out whose branches can have it. The item counts as well: branches have it
    /// from their opening.
    pub(super) const fn link_gathers_of(&mut self, fan_out: usize, event: usize) {
        let mut gather = self.events.get(event).gathered;
        while let Some(input) = gather {
            let Input { step, same_event, passive, .. } = *self.inputs.get(input);
            if let Some(step) = step {
                let gathered = self.fan_outs.get(fan_out).gathered;
                self.link(gathered, step, input);
                // Scopes that have the end of the fan-out have been visited without this link.
                let mut held = self.events.get(gathered).held;
                while let (Some(cell), false) = (held, passive) {
                    self.visit(step, self.scopes.own.row(cell));
                    held = self.scopes.own.next_in_column(cell);
                }
            }
            gather = same_event;
        }
    }

    /// Starts the scopes: the root with the events from outside, each branch with its item.
    const fn seed_scopes(&mut self) {
        let mut event = 0;
        while event < self.events.len() {
            let row = self.events.get(event);
            // An event that no step emits counts as given here. Whether it really comes is the question of another
            // rule, whose message must stay the only one.
            let is_internal = row.gathers.is_some() || row.fails.is_some() || row.roles.is_failure();
            let is_alone = row.last_emitter.is_none() && !is_internal && !row.roles.is_reply();
            if row.given || is_alone {
                self.enter(0, event);
            }
            event += 1;
        }
        let mut fan_out = 0;
        while fan_out < self.fan_outs.len() {
            // The scope of a fan-out is its number plus 1, since the root is 0.
            self.enter(fan_out + 1, self.fan_outs.get(fan_out).item);
            fan_out += 1;
        }
    }

    /// Adds the outputs of a step that runs in the scope. Items enter the branches below, and the end of the
    /// fan-out enters this scope.
    pub(super) const fn enter_outputs(&mut self, step: usize, scope: usize) {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        // A caught failure is an event of the scope in which the step failed (S29).
        if let Some(failed) = self.steps.get(step).failed {
            self.enter(scope, failed);
        }
        while output < outputs.end {
            let row = *self.outputs.get(output);
            // A fan-out's items lie in branches below; that it is gathered is said in the step's own scope.
            match row.fan_out {
                Some(fan_out) => {
                    self.enter(scope, self.fan_outs.get(fan_out).gathered);
                    self.put_around(fan_out, scope);
                }
                None => self.enter(scope, row.event),
            }
            output += 1;
        }
    }

    /// Whether a branch of the fan-out can have the event itself.
    pub(super) const fn holds(&self, fan_out: usize, event: usize) -> bool {
        self.scopes.own.has(fan_out + 1, event)
    }

    /// Whether branches of a fan-out that the gather takes can have one of its events. Without events to collect, there
    /// is nothing that they could lack.
    pub(super) const fn collects(&self, input: usize) -> bool {
        let Input { members, linked, .. } = *self.inputs.get(input);
        let mut linked = linked;
        while let Some(member) = linked {
            let Member { event, other, .. } = *self.members.get(member);
            if let Some(fan_out) = self.events.get(event).gathers {
                let (mut member, mut has) = (members.start, members.start == members.end);
                while member < members.end && !has {
                    has = self.holds(fan_out, self.members.get(member).event);
                    member += 1;
                }
                if has {
                    return true;
                }
            }
            linked = other;
        }
        false
    }

    /// Whether the gather is linked to fan-outs of several items.
    pub(super) const fn has_several_items(&self, input: usize) -> bool {
        let (mut linked, mut first) = (self.inputs.get(input).linked, None);
        while let Some(member) = linked {
            let Member { event, other, .. } = *self.members.get(member);
            if let Some(fan_out) = self.events.get(event).gathers {
                let item = self.name(self.fan_outs.get(fan_out).item);
                match first {
                    Some(first) if !same(item, first) => return true,
                    Some(_) => {}
                    None => first = Some(item),
                }
            }
            linked = other;
        }
        false
    }

    /// Whether branches of the fan-out can end in a gather or a stop.
    /// A fan-out without such an end would leave its branches without any effect on the run.
    pub(super) const fn ends(&self, fan_out: usize) -> bool {
        let row = self.fan_outs.get(fan_out);
        row.stops || self.events.get(row.gathered).taken.is_some()
    }

    /// Marks the fan-outs whose branches can stop the run, and those around them.
    const fn note_stops(&mut self) {
        let mut cell = 0;
        while cell < self.scopes.own.len() {
            let (scope, event) = (self.scopes.own.row(cell), self.scopes.own.column(cell));
            if scope > 0 && self.events.get(event).stops {
                self.note_stop(scope - 1);
            }
            cell += 1;
        }
        // The end of a fan-out ends the run too, if an event in its branches ends the run first.
        while let Some(fan_out) = self.pending.pop() {
            let mut held = self.events.get(self.fan_outs.get(fan_out).gathered).held;
            while let Some(cell) = held {
                if self.scopes.own.row(cell) > 0 {
                    self.note_stop(self.scopes.own.row(cell) - 1);
                }
                held = self.scopes.own.next_in_column(cell);
            }
        }
    }

    const fn note_stop(&mut self, fan_out: usize) {
        if !self.fan_outs.get(fan_out).stops {
            self.fan_outs.row(fan_out).stops = true;
            self.pending.push(fan_out);
        }
    }
}

//! Preconditions: their parameters must be among the inputs of their step, in the same form (S9, S18).
//!
//! ```text
//!  step(&Order, notes: List<Note>)
//!  precondition(&Order)                covered
//!  precondition(Option<&Order>)        covered: the step has it in any case
//!  precondition(&Note)                 not covered: the step takes `List<Note>`
//!  precondition(&Paid)                 not covered: the step does not take it
//! ```
//!
//! Invariant: a parameter is covered by an input with the same types, in the same order and the same form.
//! The table fills it from that input, so the precondition sees exactly the events that the step will see
//! (S12).

use super::graph::{Input, RuleGraph, same_item, same_kind};
use super::mistake::Mistake;
use super::nodes::{Step, StepPrecondition};
use super::text::Text;
use crate::spec::InputKind;

impl<'n> RuleGraph<'_, 'n> {
    /// The mistake of a parameter of the step's precondition.
    pub(super) const fn mistake_of_precondition(&self, step: usize, input: usize) -> Option<Mistake<'n>> {
        let row = self.steps.get(step);
        let Some(StepPrecondition { name, inputs }) = row.precondition else { return None };
        let input = inputs.start + input;
        // Injected parameters need no input, and a step with a reported parameter may have the missing one.
        if !self.is_unfilled(row, input) {
            return None;
        }
        let wanted = self.inputs.get(input);
        // The message names the form in which the step takes the event, if it does.
        let instead = match self.resembles(row, wanted) {
            Some(input) => self.form(self.inputs.get(input)),
            None => Text::EMPTY,
        };
        let parameter = self.form(wanted);
        Some(Mistake::PreconditionInput { step: row.name, precondition: name, parameter, instead })
    }

    /// Whether no input of the step covers this parameter of its precondition.
    const fn is_unfilled(&self, step: &Step<'_>, input: usize) -> bool {
        let wanted = self.inputs.get(input);
        wanted.kind.takes_events() && !step.unclear && !self.is_filled_by(step, wanted)
    }

    /// Whether an input of the step takes the same events in the same way. An optional input does not cover a
    /// required parameter.
    const fn is_filled_by(&self, step: &Step<'_>, wanted: &Input) -> bool {
        let mut input = step.inputs.start;
        while input < step.inputs.end {
            let row = self.inputs.get(input);
            let is_there = wanted.optional || !row.optional;
            if is_there
                && row.passive == wanted.passive
                && same_kind(row.kind, wanted.kind)
                && same_item(row, wanted)
                && self.takes_same(row, wanted)
            {
                return true;
            }
            input += 1;
        }
        false
    }

    /// Whether both parameters have the same event types in the same order.
    const fn takes_same(&self, one: &Input, other: &Input) -> bool {
        let count = one.members.end - one.members.start;
        let mut at = 0;
        while at < count && count == other.members.end - other.members.start {
            let events = (one.members.start + at, other.members.start + at);
            if self.members.get(events.0).event != self.members.get(events.1).event {
                return false;
            }
            at += 1;
        }
        at == count && count == other.members.end - other.members.start
    }

    /// An input of the step that takes one of the same events in another way.
    const fn resembles(&self, step: &Step<'_>, wanted: &Input) -> Option<usize> {
        let mut input = step.inputs.start;
        while input < step.inputs.end {
            let row = self.inputs.get(input);
            let mut member = wanted.members.start;
            while member < wanted.members.end && row.kind.takes_events() {
                if self.names(row, self.members.get(member).event) {
                    return Some(input);
                }
                member += 1;
            }
            input += 1;
        }
        None
    }

    /// The parameter as its type is written in source.
    const fn form(&self, input: &Input) -> Text {
        let around = match (input.passive, input.optional) {
            (true, _) => "Passive<",
            (false, true) => "Option<",
            (false, false) => "",
        };
        let text = Text::of(around);
        let text = match input.kind {
            InputKind::List => text.and("List<"),
            InputKind::Fixed(_) => text.and("FixedList<"),
            InputKind::Reply => text.and("Reply<"),
            InputKind::Gather => text.and("Gather<"),
            _ => text,
        };
        let text = self.members_of(input, &text);
        let text = match input.kind {
            InputKind::Fixed(count) => text.and(", ").number(count).and(">"),
            InputKind::Gather => self.item_of(input, &text).and(">"),
            InputKind::List | InputKind::Reply => text.and(">"),
            _ => text,
        };
        if input.optional { text.and(">") } else { text }
    }

    /// Appends the item that a gather names.
    const fn item_of(&self, input: &Input, text: &Text) -> Text {
        match input.item {
            Some(item) => text.and(", ").and(self.name(item)),
            None => *text,
        }
    }

    /// Appends the event types. A reply appears as its request, as `Reply<R>` is written.
    const fn members_of(&self, input: &Input, text: &Text) -> Text {
        let (mut text, mut member) = (*text, input.members.start);
        while member < input.members.end {
            let event = self.members.get(member).event;
            let named = match self.events.get(event).request {
                Some(request) => request,
                None => event,
            };
            let separator = if member == input.members.start { "" } else { " | " };
            text = text.and(separator).and(self.name(named));
            member += 1;
        }
        text
    }
}

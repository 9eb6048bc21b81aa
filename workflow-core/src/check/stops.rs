//! What runs can end with, and what can be sent to them.

use super::graph::Graph;
use super::mistake::Mistake;
use super::names::Names;
use crate::event::Roles;
use crate::input::InputKind;

impl<'n> Graph<'_, 'n> {
    /// Whether nothing that the workflow's output can be made of ends a run.
    pub(super) const fn mistake_of_output_type(&self) -> Option<Mistake<'n>> {
        if !self.expects || self.expects_stop() {
            return None;
        }
        Some(Mistake::OutputEndsNothing { events: self.expected() })
    }

    const fn expects_stop(&self) -> bool {
        let mut event = 0;
        while event < self.events.len() {
            let row = self.events.get(event);
            if row.expected && row.stops {
                return true;
            }
            event += 1;
        }
        false
    }

    const fn expected(&self) -> Names<'n> {
        let (mut names, mut event) = (Names::NONE, 0);
        while event < self.events.len() {
            if self.events.get(event).expected {
                names.push(self.name(event));
            }
            event += 1;
        }
        names
    }

    /// What to say of a step that ends the run with an event that the workflow's output cannot be made of.
    /// Where it can be made of no stop event at all, that is said instead.
    pub(super) const fn unexpected(&self, step: usize, event: usize) -> Option<Mistake<'n>> {
        if !self.is_unexpected(event) || !self.expects_stop() {
            return None;
        }
        let (step, event) = (self.steps.get(step).name, self.name(event));
        Some(Mistake::UnexpectedStop { step, event, expected: self.expected() })
    }

    /// Whether the event ends the run and is not among those that the workflow's output can be made of.
    pub(super) const fn is_unexpected(&self, event: usize) -> bool {
        let row = self.events.get(event);
        self.expects && row.stops && !row.expected
    }

    /// A stop event that the step returns and that the workflow's output cannot be made of.
    pub(super) const fn unexpected_return(&self, step: usize) -> Option<Mistake<'n>> {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            if row.returned && self.is_unexpected(row.event) {
                return self.unexpected(step, row.event);
            }
            output += 1;
        }
        None
    }

    /// The same of an emitter, and whether it emits failures.
    pub(super) const fn mistake_of_emitter(&self, step: usize, input: usize) -> Option<Mistake<'n>> {
        let row = self.inputs.get(input);
        let mut member = row.members.start;
        while member < row.members.end && matches!(row.kind, InputKind::Emitter) {
            let event = self.members.get(member).event;
            if self.events.get(event).roles.is_failure() {
                return Some(self.failure_emitted(step, event));
            }
            if self.is_unexpected(event) {
                return self.unexpected(step, event);
            }
            member += 1;
        }
        None
    }

    /// The events that steps take and that come from outside in the way of these roles.
    pub(super) const fn taken_like(&self, roles: Roles) -> Names<'n> {
        let (mut names, mut event) = (Names::NONE, 0);
        while event < self.events.len() {
            let row = self.events.get(event);
            let starts = roles.is_start() && row.roles.is_start();
            let comes = roles.is_external() && row.roles.is_external();
            if row.taken.is_some() && (starts || comes) {
                names.push(row.name);
            }
            event += 1;
        }
        names
    }
}

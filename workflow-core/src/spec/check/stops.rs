//! The ends of runs: which stop events a workflow's declared output can hold, and which events can be sent to
//! its runs.

use super::graph::Graph;
use super::mistake::Mistake;
use super::names::Names;
use crate::event::Roles;
use crate::spec::InputKind;

impl<'n> Graph<'_, 'n> {
    /// The mistake of a declared output that holds no stop event.
    pub(crate) const fn mistake_of_output_type(&self) -> Option<Mistake<'n>> {
        if !self.expects || self.expects_stop() {
            return None;
        }
        Some(Mistake::OutputEndsNothing { events: self.expected() })
    }

    /// Whether the declared output holds some stop event.
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

    /// The names of the events that the declared output can hold.
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

    /// The mistake of a step that ends the run with an event that the declared output cannot hold. `None` if
    /// the output holds no stop event at all, which has its own message.
    pub(super) const fn unexpected(&self, step: usize, event: usize) -> Option<Mistake<'n>> {
        if !self.is_unexpected(event) || !self.expects_stop() {
            return None;
        }
        let (step, event) = (self.steps.get(step).name, self.name(event));
        Some(Mistake::UnexpectedStop { step, event, expected: self.expected() })
    }

    /// Whether the event ends the run and the declared output cannot hold it.
    pub(super) const fn is_unexpected(&self, event: usize) -> bool {
        let row = self.events.get(event);
        self.expects && row.stops && !row.expected
    }

    /// The mistake of a step that returns such a stop event.
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

    /// The mistake of an emitter of such a stop event, or of failures.
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

    /// The events that steps take and that come from outside with these roles.
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

//! What runs can end with, and what can be sent to them.

use super::graph::Graph;
use super::names::Names;
use super::say;
use super::text::Text;
use crate::event::Roles;

impl<'n> Graph<'_, 'n> {
    /// Whether steps return more than one stop event.
    pub(super) const fn has_many_stops(&self) -> bool {
        let Some((first, from)) = self.first_stop() else { return false };
        let mut step = from;
        while step < self.steps.len() {
            if self.other_stop_of(step, first).is_some() {
                return true;
            }
            step += 1;
        }
        false
    }

    /// What to say of a step that returns another stop event than the first one.
    pub(super) const fn second_stop_of(&self, step: usize) -> Option<Text> {
        let Some((first, by)) = self.first_stop() else { return None };
        let Some(second) = self.other_stop_of(step, first) else { return None };
        let (second, first) = (self.events.get(second).name, self.events.get(first).name);
        Some(say::second_stop(self.steps.get(step).name, second, first, self.steps.get(by).name))
    }

    const fn other_stop_of(&self, step: usize, first: usize) -> Option<usize> {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            let event = self.outputs.get(output).event;
            if event != first && self.is_returned_stop(output) {
                return Some(event);
            }
            output += 1;
        }
        None
    }

    const fn first_stop(&self) -> Option<(usize, usize)> {
        let mut step = 0;
        while step < self.steps.len() {
            let outputs = self.steps.get(step).outputs;
            let mut output = outputs.start;
            while output < outputs.end {
                if self.is_returned_stop(output) {
                    return Some((self.outputs.get(output).event, step));
                }
                output += 1;
            }
            step += 1;
        }
        None
    }

    const fn is_returned_stop(&self, output: usize) -> bool {
        let row = self.outputs.get(output);
        row.returned && self.events.get(row.event).stops
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

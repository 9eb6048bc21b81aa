//! The ends of runs: which stop events a workflow's declared output can hold, and which events can be sent to
//! its runs.
//!
//! ```text
//!  #[workflow(output = Receipt)]     Receipt is a stop event     steps may stop with Receipt only
//!                                    Receipt is none             OutputEndsNothing, at the output, and no more
//!  no output declared                any stop event ends a run
//! ```
//!
//! Example: the output is `Receipt`, and `abort` returns the stop event `Aborted`. The message stands at the
//! return type of `abort`.

use super::graph::{RuleGraph, Wanted};
use super::mistake::Mistake;
use super::names::{Names, same};
use crate::event::Roles;
use crate::spec::InputKind;

impl<'n> RuleGraph<'_, 'n> {
    /// The mistake of a declared output that holds no stop event.
    pub(super) const fn mistake_of_output_type(&self) -> Option<Mistake<'n>> {
        if !self.expects || self.first(Wanted::ExpectedStop).is_some() {
            return None;
        }
        Some(Mistake::OutputEndsNothing { events: self.expected() })
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

    /// The mistake of emitting the event: only the library emits failures, and the declared output cannot hold every
    /// stop event. An output that holds no stop event has a message of its own instead.
    pub(super) const fn mistake_of_emission(&self, step: usize, event: usize) -> Option<Mistake<'n>> {
        let (row, step) = (self.events.get(event), self.steps.get(step).name);
        if row.roles.is_failure() {
            return Some(Mistake::FailureEmitted { step, event: row.name });
        }
        if !self.expects || !row.stops || row.expected || self.first(Wanted::ExpectedStop).is_none() {
            return None;
        }
        Some(Mistake::UnexpectedStop { step, event: row.name, expected: self.expected() })
    }

    /// The same of what an emitter emits.
    pub(super) const fn mistake_of_emitter(&self, step: usize, input: usize) -> Option<Mistake<'n>> {
        let row = self.inputs.get(input);
        let (mut member, mut mistake) = (row.members.start, None);
        let emits = matches!(row.kind, InputKind::Emitter) && member < row.members.end;
        if emits && self.steps.get(step).cleans_up {
            let event = self.name(self.members.get(member).event);
            return Some(Mistake::CleanUpEmits { step: self.steps.get(step).name, event });
        }
        while member < row.members.end && matches!(row.kind, InputKind::Emitter) && mistake.is_none() {
            mistake = self.mistake_of_emission(step, self.members.get(member).event);
            member += 1;
        }
        mistake
    }

    /// Whether runs can end with the stop event of this name: a step emits it, or the declared output holds it.
    pub(super) const fn ends_with(&self, name: &str) -> bool {
        let mut event = 0;
        while event < self.events.len() {
            let row = self.events.get(event);
            if row.stops && same(row.name, name) && (row.expected || self.is_produced(event)) {
                return true;
            }
            event += 1;
        }
        false
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

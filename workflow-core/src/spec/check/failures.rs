//! Steps that catch failures (S29). Each step whose failure is caught gets an internal event, which links it
//! to the catching steps as other events link to the steps that take them.
//!
//! ```text
//!  fetch ─▶ internal event `fails: fetch` ─▶ report(&StepFailed)
//!  store ─▶ internal event `fails: store` ─▶ report(&StepFailed), undo(&StepFailed) with catches = [store]
//! ```
//!
//! Invariant: a step whose failure no step catches has no internal event, so nothing follows from its failure:
//! the run ends.
//!
//! Example, with the picture: `report` names no steps. It catches the failures of every step that takes none itself,
//! so it does not catch those of `undo`. Steps without names thus never catch each other.

use super::graph::{Input, RuleGraph, Wanted};
use super::mistake::Mistake;
use super::nodes::Event;
use crate::event::Roles;
use crate::spec::InputKind;

impl<'n> RuleGraph<'_, 'n> {
    /// Adds an internal event for each step whose failure is caught.
    pub(super) const fn note_failures(&mut self) {
        // A table without a failure event has no catching step.
        let Some(event) = self.first(Wanted::Failure) else { return };
        self.note_takers();
        let (mut step, steps, name) = (0, self.steps.len(), self.name(event));
        let mut catches_all = false;
        while step < steps {
            catches_all |= self.catches_all(step);
            self.mark_caught(step);
            step += 1;
        }
        step = 0;
        while step < steps {
            let row = self.steps.get(step);
            let by_default = catches_all && !row.takes_failures && !row.cleans_up;
            if row.is_caught || by_default {
                // It has a name, since an event without one counts as reported by the compiler.
                let failed = Event { fails: Some(step), given: false, ..Event::new(name, Roles::NONE) };
                let place = self.events.push(failed);
                self.steps.row(step).failed = Some(place);
            }
            step += 1;
        }
    }

    /// Marks the steps with a parameter that takes failures.
    const fn note_takers(&mut self) {
        let mut input = 0;
        while input < self.inputs.len() {
            let row = self.inputs.get(input);
            if let (Some(step), true) = (row.step, self.takes_failures(row)) {
                self.steps.row(step).takes_failures = true;
            }
            input += 1;
        }
    }

    /// Whether the parameter takes failures.
    pub(super) const fn takes_failures(&self, input: &Input) -> bool {
        let mut member = input.members.start;
        while member < input.members.end {
            if self.events.get(self.members.get(member).event).roles.is_failure() {
                // A gather takes no failure: branches keep theirs, and the gather has them beside its events.
                return input.triggers() && !matches!(input.kind, InputKind::Gather);
            }
            member += 1;
        }
        false
    }

    /// Whether the step catches the failures of every step that catches none.
    const fn catches_all(&self, by: usize) -> bool {
        let row = self.steps.get(by);
        // S31: clean-up neither catches nor is caught.
        row.takes_failures && !row.cleans_up && row.catches.is_empty()
    }

    /// Marks the steps that the step catches by name.
    const fn mark_caught(&mut self, by: usize) {
        let (catches, mut at) = (self.steps.get(by).catches, 0);
        while at < catches.len() {
            if self.catches(by, catches[at]) {
                self.steps.row(catches[at]).is_caught = true;
            }
            at += 1;
        }
    }

    /// Whether the step `by` catches failures of `step`, which is one that it names, or without names any step.
    const fn catches(&self, by: usize, step: usize) -> bool {
        let (row, step) = (self.steps.get(by), self.steps.get(step));
        if !row.takes_failures || row.cleans_up || step.cleans_up {
            return false;
        }
        // Without names, two such steps would catch each other.
        !row.catches.is_empty() || !step.takes_failures
    }

    /// How many steps may be caught by this one: those it names, or without names all.
    const fn candidates(&self, by: usize) -> usize {
        let row = self.steps.get(by);
        if row.catches.is_empty() { self.steps.len() } else { row.catches.len() }
    }

    const fn candidate(&self, by: usize, at: usize) -> usize {
        let row = self.steps.get(by);
        if row.catches.is_empty() { at } else { row.catches[at] }
    }

    /// Whether any step's failures are caught by this one.
    pub(super) const fn catches_any(&self, by: usize) -> bool {
        let mut at = 0;
        while at < self.candidates(by) {
            if self.catches(by, self.candidate(by, at)) {
                return true;
            }
            at += 1;
        }
        false
    }

    /// Links a parameter to the failures that it takes.
    pub(super) const fn link_failures(&mut self, by: usize, input: usize) {
        let mut at = 0;
        while at < self.candidates(by) {
            let step = self.candidate(by, at);
            if let Some(failed) = self.steps.get(step).failed
                && self.catches(by, step)
                // A parameter may name the failure event twice, in an enum and by itself.
                && !self.was_just_linked(failed, input)
            {
                self.link(failed, by, input);
            }
            at += 1;
        }
    }

    /// Whether the last parameter that was linked to the event is this one.
    const fn was_just_linked(&self, event: usize, input: usize) -> bool {
        match self.events.get(event).taken {
            Some(member) => self.members.get(member).input == input,
            None => false,
        }
    }

    /// The mistake in the step's `catches`: names without a parameter that takes failures. An unknown name is refused
    /// where the names are looked up.
    pub(super) const fn mistake_of_catches(&self, step: usize) -> Option<Mistake<'n>> {
        let row = self.steps.get(step);
        if let Some(caught) = self.clean_up_caught_by(step) {
            return Some(Mistake::CatchesCleanUp { step: row.name, caught });
        }
        if row.cleans_up && !row.catches.is_empty() && !row.takes_failures {
            return Some(Mistake::CleanUpCatches { step: row.name });
        }
        if row.catches.is_empty() || row.takes_failures || row.unclear || self.gathers_failures(step) {
            return None;
        }
        Some(Mistake::CatchesWithoutInput { step: row.name })
    }

    /// The first clean-up step that the step names in `catches`.
    pub(super) const fn clean_up_caught_by(&self, step: usize) -> Option<&'n str> {
        let catches = self.steps.get(step).catches;
        let mut at = 0;
        while at < catches.len() {
            let caught = self.steps.get(catches[at]);
            if caught.cleans_up {
                return Some(caught.name);
            }
            at += 1;
        }
        None
    }

    /// Whether the step gathers failures, which has a message of its own.
    const fn gathers_failures(&self, step: usize) -> bool {
        let inputs = self.steps.get(step).inputs;
        let mut input = inputs.start;
        while input < inputs.end {
            let row = self.inputs.get(input);
            if matches!(row.kind, InputKind::Gather)
                && let Some(event) = self.first_event(row)
                && self.events.get(event).roles.is_failure()
            {
                return true;
            }
            input += 1;
        }
        false
    }

    /// The mistake of a parameter that takes failures.
    pub(super) const fn failure_taken(&self, step: &'n str, input: usize, event: usize) -> Mistake<'n> {
        let event = self.name(event);
        let row = self.inputs.get(input);
        match row.kind {
            InputKind::Gather => Mistake::FailuresGathered { step, event, stray: row.linked.is_none() },
            _ => Mistake::NothingToCatch { step, event },
        }
    }
}

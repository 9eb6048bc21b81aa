//! The search that finds the scopes of a graph: which events each scope can have, and which steps can run there.
//! `branches` says where it begins, and which events a step adds to its scope.
//!
//! The search is a fixed point. It visits each event of a scope once, and each step of a scope as soon as an event of
//! that scope triggers it. Such a *visit* waits for the first of its required inputs that the scope does not see. It is
//! looked at again when an event of that input enters a scope, and when its scope sees further scopes.
//!
//! ```text
//!  own      scope × event   the scope itself can have the event
//!  around   scope × scope   the first one lies in the second one, perhaps in others between
//!  visits   scope × step    an event of the scope triggers the step; the note is the input that it waits for
//!  waits    per event       the visits that wait for it
//! ```
//!
//! Invariant: cells are only set, so the search ends. A scope sees its own events, and those of the scopes around it.

use super::cells::Cells;
use super::graph::RuleGraph;
use super::rows::Rows;
use crate::spec::InputKind;

/// A visit that waits for an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    /// The visit, and the input that the event belongs to.
    visit: usize,
    input: usize,
    /// The next one that waits for the same event.
    next: Option<usize>,
}

impl Wait {
    pub(crate) const NONE: Self = Self { visit: 0, input: 0, next: None };
}

/// The findings of the search.
#[derive(Debug)]
pub(crate) struct Scopes<'s> {
    pub(crate) own: Cells<'s>,
    pub(crate) around: Cells<'s>,
    pub(crate) visits: Cells<'s>,
    pub(crate) waits: Rows<'s, Wait>,
}

impl Scopes<'_> {
    pub(super) const fn overflowed(&self) -> bool {
        self.own.overflowed() || self.around.overflowed() || self.visits.overflowed() || self.waits.overflowed
    }
}

impl RuleGraph<'_, '_> {
    /// Finds all that follows from the events in `own`.
    pub(super) const fn grow_scopes(&mut self) {
        let (mut own, mut around) = (0, 0);
        // Where a list is too small, nothing else counts.
        while !self.overflowed() {
            if around < self.scopes.around.len() {
                self.visit_again(self.scopes.around.row(around));
                around += 1;
            } else if own < self.scopes.own.len() {
                self.spread(self.scopes.own.row(own), self.scopes.own.column(own));
                own += 1;
            } else {
                return;
            }
        }
    }

    /// Adds an event to the scope, and with a request its reply.
    /// The cells are set before the reply is added, so the recursion ends.
    pub(super) const fn enter(&mut self, scope: usize, event: usize) {
        if self.scopes.own.has(scope, event) {
            return;
        }
        let held = self.events.get(event).held;
        self.events.row(event).held = Some(self.scopes.own.add(scope, event, None, held));
        if let Some(reply) = self.events.get(event).reply {
            self.enter(scope, reply);
        }
    }

    /// Lets a scope lie in another one, and in all that this one lies in.
    pub(super) const fn put_around(&mut self, fan_out: usize, around: usize) {
        if self.scopes.around.has(fan_out + 1, around) {
            return;
        }
        self.put_all_around(fan_out + 1, around);
        // So do the scopes in it.
        let mut inner = self.fan_outs.get(fan_out).inner;
        while let Some(cell) = inner {
            inner = self.scopes.around.next_in_column(cell);
            self.put_all_around(self.scopes.around.row(cell), around);
        }
    }

    const fn put_all_around(&mut self, scope: usize, around: usize) {
        self.put_one_around(scope, around);
        if around > 0 {
            let mut outer = self.fan_outs.get(around - 1).outer;
            while let Some(cell) = outer {
                outer = self.scopes.around.next_in_row(cell);
                self.put_one_around(scope, self.scopes.around.column(cell));
            }
        }
    }

    const fn put_one_around(&mut self, scope: usize, around: usize) {
        if self.scopes.around.has(scope, around) {
            return;
        }
        let outer = self.fan_outs.get(scope - 1).outer;
        // Nobody asks which scopes lie in the root: all that can be open do.
        let inner = if around > 0 { self.fan_outs.get(around - 1).inner } else { None };
        let cell = self.scopes.around.add(scope, around, outer, inner);
        self.fan_outs.row(scope - 1).outer = Some(cell);
        if around > 0 {
            self.fan_outs.row(around - 1).inner = Some(cell);
        }
    }

    /// Visits the steps that take an event of the scope, and looks again at visits that wait for it. In a branch, it may
    /// let gathers fit the fan-out.
    const fn spread(&mut self, scope: usize, event: usize) {
        self.visit_takers(scope, self.events.get(event).taken);
        self.visit_takers(scope, self.events.get(event).taken_at_end);
        if scope > 0 {
            self.link_gathers_of(scope - 1, event);
        }
        let mut wait = self.events.get(event).waits;
        while let Some(at) = wait {
            let Wait { visit, input, next } = *self.scopes.waits.get(at);
            if self.scopes.visits.note(visit) == input {
                self.advance(visit);
            }
            wait = next;
        }
    }

    const fn visit_takers(&mut self, scope: usize, taken: Option<usize>) {
        let mut taken = taken;
        while let Some(member) = taken {
            let member = *self.members.get(member);
            // A passive gather is a mistake, and linked all the same.
            if self.inputs.get(member.input).triggers() {
                self.visit(member.step, scope);
            }
            taken = member.next;
        }
    }

    /// Visits a step that an event of the scope triggers, once.
    pub(super) const fn visit(&mut self, step: usize, scope: usize) {
        if self.scopes.visits.has(scope, step) {
            return;
        }
        let in_row = if scope > 0 { self.fan_outs.get(scope - 1).visits } else { None };
        let visit = self.scopes.visits.add(scope, step, in_row, self.steps.get(step).visits);
        self.steps.row(step).visits = Some(visit);
        if scope > 0 {
            self.fan_outs.row(scope - 1).visits = Some(visit);
        }
        let first = self.steps.get(step).inputs.start;
        self.scopes.visits.set_note(visit, first);
        self.await_input(visit, first);
        self.advance(visit);
    }

    /// Looks again at the visits of a branch that sees more than before.
    const fn visit_again(&mut self, scope: usize) {
        let mut visit = self.fan_outs.get(scope - 1).visits;
        while let Some(at) = visit {
            self.advance(at);
            visit = self.scopes.visits.next_in_row(at);
        }
    }

    /// Goes on to the first required input that the scope does not see. Behind the last input, the step runs.
    const fn advance(&mut self, visit: usize) {
        let (scope, step) = (self.scopes.visits.row(visit), self.scopes.visits.column(visit));
        let end = self.steps.get(step).inputs.end;
        let mut input = self.scopes.visits.note(visit);
        if input == end || self.overflowed() {
            return;
        }
        while input < end && (!self.holds_up(input) || self.sees_input(scope, input)) {
            input += 1;
        }
        if input != self.scopes.visits.note(visit) {
            self.scopes.visits.set_note(visit, input);
            self.await_input(visit, input);
        }
        if input == end {
            self.enter_outputs(step, scope);
        }
    }

    /// Whether a step waits for the input while scopes grow. Gathers count as supplied, since a step that gathers what it
    /// emits itself has to begin somewhere.
    const fn holds_up(&self, input: usize) -> bool {
        let row = self.inputs.get(input);
        row.triggers() && !row.optional && !matches!(row.kind, InputKind::Gather)
    }

    /// Lets the visit wait for each event of the input. The links of such an input are final.
    const fn await_input(&mut self, visit: usize, input: usize) {
        if input == self.inputs.len() || !self.holds_up(input) {
            return;
        }
        let mut linked = self.inputs.get(input).linked;
        while let Some(member) = linked {
            let member = *self.members.get(member);
            let next = self.events.get(member.event).waits;
            let wait = self.scopes.waits.push(Wait { visit, input, next });
            self.events.row(member.event).waits = Some(wait);
            linked = member.other;
        }
    }

    /// Whether the scope itself can have an event of the parameter. Asks by links rather than by declared types: a
    /// gather is linked to the ends of fan-outs, and a failure to internal events.
    pub(super) const fn has_input(&self, scope: usize, input: usize) -> bool {
        let mut linked = self.inputs.get(input).linked;
        while let Some(member) = linked {
            let member = self.members.get(member);
            if self.scopes.own.has(scope, member.event) {
                return true;
            }
            linked = member.other;
        }
        false
    }

    /// Whether the scope, or one around it, can have an event of the parameter.
    pub(super) const fn sees_input(&self, scope: usize, input: usize) -> bool {
        if self.has_input(scope, input) {
            return true;
        }
        let mut around = if scope > 0 { self.fan_outs.get(scope - 1).outer } else { None };
        while let Some(cell) = around {
            if self.has_input(self.scopes.around.column(cell), input) {
                return true;
            }
            around = self.scopes.around.next_in_row(cell);
        }
        false
    }

    /// Whether the visit's step runs: its scope sees all that it requires, but for gathers.
    pub(super) const fn is_run(&self, visit: usize) -> bool {
        self.scopes.visits.note(visit) == self.steps.get(self.scopes.visits.column(visit)).inputs.end
    }

    /// Whether a branch of the scope can be opened at all.
    pub(super) const fn is_open(&self, scope: usize) -> bool {
        scope == 0 || self.scopes.around.has(scope, 0)
    }
}

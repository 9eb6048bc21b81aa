//! Disjoint inputs: steps that can never run although each event that they require can occur, since the
//! events never meet. Two reasons exist: the events belong to branches that do not see each other (S45), or
//! they follow from different start events, of which a run has one.
//!
//! Example: one fan-out opens branches with `Page` and another one with `Image`. A step `(&Page, &Image)`
//! sees both in no scope.
//!
//! For branches the search compares scopes: a step is disjoint if each required event is seen in some scope,
//! but the step can run in no scope. For start events it compares bit sets: each event has the bits of the
//! start events that lead to it, and the sets of a step's required events have no common bit.
//!
//! ```text
//!  by branches      scope      root    Page branches    Image branches
//!                   sees       -       Page             Image              (&Page, &Image) runs in none
//!
//!  by starts        event      Begin   Resume   Draft (from Begin)   Loaded (from Resume)
//!                   bits       01      10       01                   10
//!                   step (&Draft, &Loaded): 01 & 10 = 0
//! ```
//!
//! Invariant: only a step that could run otherwise gets this message. A step that lacks an event has another
//! mistake, or waits for a step that has one.

use super::graph::{Fault, RuleGraph};
use super::mistake::Mistake;
use super::names::Names;
use super::nodes::{Disjoint, Event, Step};
use super::order::Node;
use crate::spec::InputKind;

/// All start events.
const ALL: u64 = u64::MAX;

impl<'n> RuleGraph<'_, 'n> {
    /// Marks the steps whose events no scope sees together. Steps that merely wait for such a step see too
    /// little yet and are not marked.
    pub(super) const fn note_disjoint_by_branches(&mut self) {
        let mut step = 0;
        while step < self.steps.len() && self.fan_outs.len() > 0 {
            // The scopes are final here.
            let cleans_up = self.steps.get(step).cleans_up;
            if !cleans_up && !self.runs_somewhere(step) && self.could_run(step, Disjoint::Branches) {
                self.steps.row(step).disjoint = Some(Disjoint::Branches);
                self.has_disjoint = true;
            }
            step += 1;
        }
    }

    /// Marks the steps whose events follow from no common start event.
    pub(super) const fn note_disjoint_by_starts(&mut self) {
        if !self.has_several_starts() {
            return;
        }
        self.seed_starts();
        self.put_in_order();
        // A fixed point: bits are only added.
        let mut forwards = true;
        while self.spread_starts(forwards) {
            forwards = !forwards;
        }
        let mut step = 0;
        while step < self.steps.len() {
            // A step that is disjoint by branches has its message.
            let is_open = self.steps.get(step).disjoint.is_none() && self.starts_of(step) == 0;
            if is_open && self.could_run(step, Disjoint::Starts) {
                self.steps.row(step).disjoint = Some(Disjoint::Starts);
            }
            step += 1;
        }
    }

    /// Whether each required event can occur by itself: some scope, or some start event, leads to each of them. A step
    /// that requires nothing is never disjoint.
    const fn could_run(&self, step: usize, by: Disjoint) -> bool {
        let &Step { inputs, unclear, .. } = self.steps.get(step);
        let (mut input, mut requires) = (inputs.start, false);
        while input < inputs.end {
            if self.is_required(input) {
                requires = true;
                if !self.meet(input, input, by) {
                    return false;
                }
            }
            input += 1;
        }
        requires && !unclear
    }

    /// Whether the parameter takes events and is not optional.
    pub(super) const fn is_required(&self, input: usize) -> bool {
        let row = self.inputs.get(input);
        row.kind.takes_events() && !row.optional
    }

    /// Whether one scope, or one start event, can fill both parameters. A parameter asked against itself: whether
    /// anything can fill it.
    const fn meet(&self, one: usize, other: usize, by: Disjoint) -> bool {
        if matches!(by, Disjoint::Starts) {
            return self.starts_of_input(one) & self.starts_of_input(other) != 0;
        }
        let mut scope = 0;
        while scope <= self.fan_outs.len() {
            let sees_both = self.sees_input(scope, one) && self.sees_input(scope, other);
            if self.is_open(scope) && sees_both {
                return true;
            }
            scope += 1;
        }
        false
    }

    /// The mistake of a step whose events never meet.
    pub(super) const fn disjoint(&self, step: usize) -> Option<Mistake<'n>> {
        let &Step { name: step_name, disjoint, .. } = self.steps.get(step);
        match disjoint {
            None => None,
            Some(by @ Disjoint::Branches) => {
                Some(Mistake::DisjointBranches { step: step_name, events: self.disjoint_events(step, by) })
            }
            Some(by @ Disjoint::Starts) => {
                Some(Mistake::DisjointStarts { step: step_name, events: self.disjoint_events(step, by) })
            }
        }
    }

    /// The events of the first two parameters that never meet, or of all required ones if each pair can meet. Three
    /// events may meet in pairs only, so the second case exists.
    const fn disjoint_events(&self, step: usize, by: Disjoint) -> Names<'n> {
        let inputs = self.steps.get(step).inputs;
        let (mut one, mut all) = (inputs.start, Names::NONE);
        while one < inputs.end {
            let mut other = one + 1;
            while other < inputs.end && self.is_required(one) {
                if self.is_required(other) && !self.meet(one, other, by) {
                    let mut both = Names::NONE;
                    self.push_names(one, &mut both);
                    self.push_names(other, &mut both);
                    return both;
                }
                other += 1;
            }
            if self.is_required(one) {
                self.push_names(one, &mut all);
            }
            one += 1;
        }
        all
    }

    /// Adds the names of the parameter's events. A reply appears under the name of its request.
    const fn push_names(&self, input: usize, names: &mut Names<'n>) {
        let members = self.inputs.get(input).members;
        let mut member = members.start;
        while member < members.end {
            let event = self.members.get(member).event;
            let name = match self.events.get(event).request {
                Some(request) => self.name(request),
                None => self.name(event),
            };
            if !names.has(name) {
                names.push(name);
            }
            member += 1;
        }
    }

    /// Whether the mistake may follow from a step that runs in no branch or is unclear, which is mistake enough. Such a
    /// step might emit, in a branch, the event that the gather lacks.
    pub(super) const fn follows(&self, mistake: &Mistake<'n>) -> bool {
        let of_branches =
            matches!(mistake, Mistake::GatherFitsNothing { .. } | Mistake::FanOutNeverEnds { .. });
        of_branches && (self.has_disjoint || self.unclear || self.has_unclear_step())
    }

    /// Whether some scope that can be open runs the step and has the gathers that it requires.
    const fn runs_somewhere(&self, step: usize) -> bool {
        let mut visit = self.steps.get(step).visits;
        while let Some(at) = visit {
            let scope = self.scopes.visits.row(at);
            if self.is_run(at) && self.is_open(scope) && self.sees_gathers(step, scope) {
                return true;
            }
            visit = self.scopes.visits.next_in_column(at);
        }
        false
    }

    /// Whether the scope sees the gathers that the step requires. They are taken for granted while scopes grow.
    const fn sees_gathers(&self, step: usize, scope: usize) -> bool {
        let inputs = self.steps.get(step).inputs;
        let mut input = inputs.start;
        while input < inputs.end {
            let is_gather = matches!(self.inputs.get(input).kind, InputKind::Gather);
            if is_gather && self.is_required(input) && !self.sees_input(scope, input) {
                return false;
            }
            input += 1;
        }
        true
    }

    /// Whether steps take more than one start event, so that they can differ in what they follow from.
    const fn has_several_starts(&self) -> bool {
        let (mut event, mut starts) = (0, 0);
        while event < self.events.len() {
            let row = self.events.get(event);
            starts += (row.roles.is_start() && row.taken.is_some()) as usize;
            event += 1;
        }
        starts > 1
    }

    /// Gives each start event a bit; those beyond 64 share the last one. External events follow from every
    /// start event.
    const fn seed_starts(&mut self) {
        let (mut event, mut bit) = (0, 0);
        while event < self.events.len() {
            let &Event { roles, given, .. } = self.events.get(event);
            if roles.is_start() && !roles.is_external() {
                self.add_starts(event, 1 << bit);
                // A shared bit can only hide a mistake, and never invents one.
                bit += (bit < 63) as u32;
            } else if given {
                self.add_starts(event, ALL);
            }
            event += 1;
        }
    }

    /// Adds the start events of each step to those of its outputs. Returns whether anything is new.
    const fn spread_starts(&mut self, forwards: bool) -> bool {
        let (mut place, mut grew) = (0, false);
        while place < self.order.len() {
            if let Node::Step(step) = self.node(place, forwards) {
                grew |= self.spread_starts_of(step);
            }
            place += 1;
        }
        grew
    }

    /// The same for one step. Internal events are outputs here as well, so failures and gathers pass start events on.
    const fn spread_starts_of(&mut self, step: usize) -> bool {
        let (starts, mut effect, mut grew) = (self.starts_of(step), 0, false);
        while effect < self.effects(step) {
            if let Some(event) = self.effect(step, effect) {
                grew |= self.add_starts(event, starts);
            }
            effect += 1;
        }
        grew
    }

    /// Adds start events to an event, and to its reply. Returns whether any is new.
    const fn add_starts(&mut self, event: usize, starts: u64) -> bool {
        let &Event { starts: known, reply, .. } = self.events.get(event);
        // The return value drives the fixed point, so it must be exact.
        let grew = known | starts != known;
        self.events.row(event).starts = known | starts;
        match reply {
            Some(reply) => self.add_starts(reply, starts) || grew,
            None => grew,
        }
    }

    /// The start events after which the step can run; all of them for a step that has a message already.
    const fn starts_of(&self, step: usize) -> u64 {
        let &Step { inputs, unclear, deadlock, disjoint, .. } = self.steps.get(step);
        let (mut input, mut requires, mut takes) = (inputs.start, false, false);
        let (mut every, mut any) = (ALL, 0);
        while input < inputs.end {
            if self.inputs.get(input).triggers() {
                takes = true;
                any |= self.starts_of_input(input);
            }
            if self.is_required(input) {
                requires = true;
                every &= self.starts_of_input(input);
            }
            input += 1;
        }
        // As if repaired: such a step restricts nothing.
        if unclear || !takes || deadlock.is_some() || disjoint.is_some() {
            return ALL;
        }
        // Required events must share a start event; of optional ones any is enough.
        if requires { every } else { any }
    }

    /// The start events that lead to some event of the parameter; all of them for a parameter that has a
    /// message already.
    const fn starts_of_input(&self, input: usize) -> u64 {
        let row = self.inputs.get(input);
        if matches!(row.fault, Some(Fault::Empty | Fault::Stop(_) | Fault::Unproduced | Fault::Failure(_))) {
            return ALL;
        }
        let (mut linked, mut starts) = (row.linked, 0);
        while let Some(member) = linked {
            let member = self.members.get(member);
            starts |= self.events.get(member.event).starts;
            linked = member.other;
        }
        starts
    }
}

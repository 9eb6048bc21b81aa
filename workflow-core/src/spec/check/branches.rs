//! The scopes of a graph: which events the root and each fan-out's branches can have and see. From them
//! follow the gathers that fit a fan-out, and whether its branches can end (S48).
//!
//! A fixed point: scopes start with the events that open them, and a step that can run in a scope adds its
//! outputs there. A gather fits a fan-out once a branch can have its event, and then lets further steps run.
//! The two steps repeat until neither finds anything new.
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
//! Invariants: cells are only ever set, so the fixed point exists and is reached. All branches of one fan-out share one
//! scope here, since they can have the same events. `own` is a part of `seen` in every scope.

use super::graph::{Event, FanOut, RuleGraph};
use super::rows::Rows;
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

    /// Grows the scopes and links the gathers, until nothing changes. A table without fan-outs has no scopes, and its
    /// cells stay empty: other rules ask for scopes only if there are fan-outs.
    pub(super) const fn match_gathers(&mut self) {
        self.open_fan_outs();
        if self.fan_outs.len() == 0 || self.overflowed() {
            return;
        }
        self.seed_scopes();
        // Not `||`: each round needs both parts, since a grown scope may fit a gather, and a gather may let a
        // step run.
        while self.grow_scopes() | self.link_gathers() {}
        // One round per fan-out is enough, since fan-outs nest at most that deep.
        let mut nested = 0;
        while nested < self.fan_outs.len() {
            self.note_stops();
            nested += 1;
        }
    }

    /// Adds a row for each fan-out output, and the cells of all scopes.
    const fn open_fan_outs(&mut self) {
        let mut output = 0;
        while output < self.outputs.len() {
            if self.outputs.get(output).fan_out.is_some() {
                self.open_fan_out(output);
            }
            output += 1;
        }
        if self.fan_outs.len() == 0 {
            return;
        }
        // After all internal events have their rows, so that the number of events is final.
        let cells = (self.fan_outs.len() + 1) * self.events.len();
        while self.own.len() < cells && !self.own.overflowed {
            self.own.push(false);
            self.seen.push(false);
        }
    }

    /// Adds a fan-out and the internal event that marks its end.
    const fn open_fan_out(&mut self, output: usize) {
        let (index, item) = (self.fan_outs.len(), self.outputs.get(output).event);
        // An event without a name counts as given, since the compiler has reported it. This one has no name
        // by design.
        let event = Event { gathers: Some(index), given: false, ..Event::new("", Roles::NONE) };
        let gathered = self.events.push(event);
        self.outputs.row(output).fan_out = Some(index);
        self.fan_outs.push(FanOut { item, gathered, ..FanOut::NONE });
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

    /// Adds the outputs of each step to every scope in which the step can run. Returns whether anything is
    /// new.
    const fn grow_scopes(&mut self) -> bool {
        let (mut scope, mut grew) = (0, false);
        while scope <= self.fan_outs.len() {
            let mut step = 0;
            while step < self.steps.len() {
                if self.runs_in(step, scope) {
                    grew |= self.enter_outputs(step, scope);
                }
                step += 1;
            }
            scope += 1;
        }
        grew
    }

    /// Whether the step can run in the scope: an event of the scope itself triggers it, and the scope sees
    /// all it requires. Gathers count as supplied, since a step that gathers what it emits itself has to
    /// begin somewhere.
    pub(super) const fn runs_in(&self, step: usize, scope: usize) -> bool {
        let inputs = self.steps.get(step).inputs;
        let (mut input, mut triggered) = (inputs.start, false);
        while input < inputs.end {
            let row = self.inputs.get(input);
            let is_gather = matches!(row.kind, InputKind::Gather);
            if row.triggers() {
                // A step whose events all come from outer scopes runs out there (S46).
                triggered = triggered || self.is_among(input, scope, &self.own);
                if !row.optional && !is_gather && !self.is_among(input, scope, &self.seen) {
                    return false;
                }
            }
            input += 1;
        }
        triggered
    }

    /// Whether the parameter takes one of these events of the scope. Asks by links rather than by declared types: a
    /// gather is linked to the ends of fan-outs, and a failure to internal events.
    pub(super) const fn is_among(&self, input: usize, scope: usize, events: &Rows<'_, bool>) -> bool {
        let (mut linked, base) = (self.inputs.get(input).linked, scope * self.events.len());
        while let Some(member) = linked {
            let member = self.members.get(member);
            if *events.get(base + member.event) {
                return true;
            }
            linked = member.other;
        }
        false
    }

    /// Adds the outputs of a step that runs in the scope. Items enter the branches below, and the end of the
    /// fan-out enters this scope. Returns whether anything is new.
    const fn enter_outputs(&mut self, step: usize, scope: usize) -> bool {
        let outputs = self.steps.get(step).outputs;
        let (mut output, mut grew) = (outputs.start, false);
        // A caught failure is an event of the scope in which the step failed (S29).
        if let Some(failed) = self.steps.get(step).failed {
            grew = self.enter(scope, failed);
        }
        while output < outputs.end {
            let row = *self.outputs.get(output);
            // A fan-out's items lie in branches below; that it is gathered is said in the step's own scope.
            grew |= match row.fan_out {
                Some(fan_out) => {
                    let gathered = self.fan_outs.get(fan_out).gathered;
                    // Not `||`: all three change the graph.
                    self.open(fan_out, scope) | self.enter(scope, gathered) | self.show(scope, fan_out + 1)
                }
                None => self.enter(scope, row.event),
            };
            output += 1;
        }
        grew
    }

    /// Marks the fan-out as opened if the scope in which it opens can be open. Returns whether that is new. Cells of a
    /// fan-out that no run opens are filled all the same, so that gathers of it have no further message.
    const fn open(&mut self, fan_out: usize, scope: usize) -> bool {
        let opens = self.is_open(scope) && !self.fan_outs.get(fan_out).opened;
        self.fan_outs.row(fan_out).opened |= opens;
        opens
    }

    /// Adds an event to the scope, and with a request its reply. Returns whether that is new.
    /// The cells are set before the reply is added, so the recursion ends.
    const fn enter(&mut self, scope: usize, event: usize) -> bool {
        let cell = scope * self.events.len() + event;
        if *self.own.get(cell) {
            return false;
        }
        *self.own.row(cell) = true;
        *self.seen.row(cell) = true;
        if let Some(reply) = self.events.get(event).reply {
            self.enter(scope, reply);
        }
        true
    }

    /// Lets a scope see all that the scope around it sees. Returns whether that is new. Called in each round, since the
    /// scope around may have grown.
    const fn show(&mut self, around: usize, scope: usize) -> bool {
        let (mut event, mut grew) = (0, false);
        while event < self.events.len() {
            let cell = scope * self.events.len() + event;
            if *self.seen.get(around * self.events.len() + event) && !*self.seen.get(cell) {
                *self.seen.row(cell) = true;
                grew = true;
            }
            event += 1;
        }
        grew
    }

    /// Whether a branch of the fan-out can have the event itself.
    pub(super) const fn holds(&self, fan_out: usize, event: usize) -> bool {
        *self.own.get((fan_out + 1) * self.events.len() + event)
    }

    /// Links each gather to the fan-outs that it fits. Returns whether a link is new.
    const fn link_gathers(&mut self) -> bool {
        let (mut input, mut found) = (0, false);
        while input < self.inputs.len() {
            let row = self.inputs.get(input);
            if let (Some(step), InputKind::Gather) = (row.step, row.kind) {
                found |= self.link_gather(step, input);
            }
            input += 1;
        }
        found
    }

    /// Links one gather to each fan-out with the item that it names (S59), or whose branches can have its event. Returns
    /// whether a link is new.
    const fn link_gather(&mut self, step: usize, input: usize) -> bool {
        let Some(event) = self.first_event(self.inputs.get(input)) else { return false };
        let (mut fan_out, mut found) = (0, false);
        while fan_out < self.fan_outs.len() {
            let FanOut { gathered, item, .. } = *self.fan_outs.get(fan_out);
            let fits = match self.inputs.get(input).item {
                Some(named) => named == item,
                // The item type counts as well: branches have it from their opening.
                None => self.holds(fan_out, event),
            };
            if fits && !self.is_linked(gathered, input) {
                self.link(gathered, step, input);
                found = true;
            }
            fan_out += 1;
        }
        found
    }

    /// Whether branches of a fan-out that the gather takes can have one of its events. Without events to collect, there
    /// is nothing that they could lack.
    pub(super) const fn collects(&self, input: usize) -> bool {
        let members = self.inputs.get(input).members;
        let mut fan_out = 0;
        while fan_out < self.fan_outs.len() {
            let is_taken = self.is_linked(self.fan_outs.get(fan_out).gathered, input);
            let (mut member, mut has) = (members.start, members.start == members.end);
            while member < members.end && !has {
                has = self.holds(fan_out, self.members.get(member).event);
                member += 1;
            }
            if is_taken && has {
                return true;
            }
            fan_out += 1;
        }
        false
    }

    /// Whether branches of the fan-out can end in a gather or a stop.
    /// A fan-out without such an end would leave its branches without any effect on the run.
    pub(super) const fn ends(&self, fan_out: usize) -> bool {
        let row = self.fan_outs.get(fan_out);
        row.stops || self.events.get(row.gathered).taken.is_some()
    }

    /// Marks the fan-outs whose branches can stop the run. Each call reaches one level of nesting further.
    const fn note_stops(&mut self) {
        let mut fan_out = 0;
        while fan_out < self.fan_outs.len() {
            let mut event = 0;
            while event < self.events.len() {
                if self.holds(fan_out, event) && self.stops(event) {
                    self.fan_outs.row(fan_out).stops = true;
                }
                event += 1;
            }
            fan_out += 1;
        }
    }

    /// Whether the event ends the run. The end of a fan-out does so if an event in its branches ends the run
    /// first.
    const fn stops(&self, event: usize) -> bool {
        let row = self.events.get(event);
        match row.gathers {
            Some(fan_out) => self.fan_outs.get(fan_out).stops,
            None => row.stops,
        }
    }
}

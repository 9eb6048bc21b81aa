//! Reachability: which events can occur in a run, and therefore which steps can run. The search starts from
//! the events that open runs or come from outside, and follows each to the steps that take it and to what
//! they emit.
//!
//! A mistake with its own message counts as repaired: the parameter counts as filled, so that steps behind it
//! are not reported too.
//!
//! Example: `a(&Begin) -> X`, `b(&X) -> Y`, `c(&Z)`. The start event `Begin` reaches `a`, so `X` occurs and
//! reaches `b`. Nothing produces `Z`: the parameter of `c` gets a fault and counts as filled, and `c` as
//! reached.
//!
//! ```text
//!  note_emitters, note_failures     who emits an event; internal events of failures
//!  link_inputs, match_gathers       who takes an event; scopes; gathers of fan-outs
//!  note_disjoint_by_branches        needs the final scopes
//!  judge                            faults of parameters; faulty ones count as filled
//!  give_events                      the search from the events from outside
//!  note_deadlocks                   needs to know which steps the search did not reach
//!  disjoint by starts, lists, loops need faults and deadlocks, to leave out the steps that have a message
//! ```
//!
//! Invariant: an event arrives once and a step is reached once, so the search costs O(links).

use super::graph::{Fault, Input, RuleGraph};
use super::nodes::{Event, Step};
use crate::spec::InputKind;

impl RuleGraph<'_, '_> {
    /// Derives everything that the rules ask about the graph. The order matters: each phase uses the results
    /// of the ones before.
    pub(crate) const fn explore(&mut self) {
        self.note_emitters();
        self.note_failures();
        self.link_inputs();
        self.match_gathers();
        if self.overflowed() {
            return;
        }
        self.note_disjoint_by_branches();
        self.judge();
        self.give_events();
        self.note_deadlocks();
        self.note_disjoint_by_starts();
        self.note_short_lists();
        // Of a workflow whose runs cannot end in any case, loops are not mentioned, nor where the way out of one may
        // be in what is unclear.
        if self.may_loop() && self.has_stop() && !self.unclear {
            self.note_loops();
        }
    }

    /// Stores for each event the outputs and the last step that emit it.
    const fn note_emitters(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            let outputs = self.steps.get(step).outputs;
            let mut output = outputs.start;
            while output < outputs.end {
                let event = self.outputs.get(output).event;
                // Steps come in order, so the last one stays.
                self.events.row(event).last_emitter = Some(step);
                self.outputs.row(output).same_event = self.events.get(event).emitted;
                self.events.row(event).emitted = Some(output);
                output += 1;
            }
            step += 1;
        }
    }

    /// Whether a step emits the event or it comes from outside; for a reply, whether that holds of its
    /// request too.
    pub(super) const fn is_produced(&self, event: usize) -> bool {
        let row = self.events.get(event);
        let origin = match row.request {
            Some(request) => self.events.get(request),
            None => row,
        };
        row.given || row.last_emitter.is_some() || origin.given || origin.last_emitter.is_some()
    }

    /// Finds the faults of all parameters. Reaches the steps that need no event to arrive, since their faults
    /// have messages of their own.
    const fn judge(&mut self) {
        let mut step = 0;
        while step < self.steps.len() {
            let &Step { inputs, unclear, cleans_up, .. } = self.steps.get(step);
            self.mark_outputs(step);
            let (mut input, mut takes, mut filled, mut lacks) = (inputs.start, false, false, 0);
            while input < inputs.end {
                let row = self.inputs.get(input);
                takes = takes || row.triggers();
                if row.kind.takes_events() {
                    self.judge_input(step, input);
                }
                let row = self.inputs.get(input);
                filled = filled || row.filled;
                lacks += (row.kind.takes_events() && !row.filled && !row.optional) as usize;
                input += 1;
            }
            self.steps.row(step).lacks = lacks;
            // Before any event has arrived: all that the step requires has a message. A step with optional parameters
            // only runs as soon as one of them is filled (S9).
            let is_ready = filled && lacks == 0;
            // A clean-up step runs at the end, whatever the search finds.
            if !takes || unclear || cleans_up || is_ready {
                self.reach(step);
            }
            step += 1;
        }
    }

    /// Takes back all marks of events.
    pub(super) const fn forget_marks(&mut self) {
        let mut event = 0;
        while event < self.events.len() {
            self.events.row(event).mark = None;
            event += 1;
        }
    }

    /// Marks the events that the step emits, so that its parameters can be compared with them.
    const fn mark_outputs(&mut self, step: usize) {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            self.events.row(self.outputs.get(output).event).mark = Some(step);
            output += 1;
        }
    }

    /// Finds the fault of one parameter. A faulty parameter counts as filled, except for one that only takes
    /// its own step's event.
    const fn judge_input(&mut self, step: usize, input: usize) {
        let fault = self.fault_of(step, input);
        let row = self.inputs.row(input);
        row.fault = fault;
        // A step that takes its own event may still get it from another step, so this fault fills nothing.
        row.filled =
            matches!(fault, Some(Fault::Empty | Fault::Stop(_) | Fault::Unproduced | Fault::Failure(_)))
                && !row.passive;
    }

    /// The fault of a parameter, the most basic one first: a stop event, a gathered failure, length 0, an own
    /// event, no producer.
    const fn fault_of(&self, step: usize, input: usize) -> Option<Fault> {
        let row = self.inputs.get(input);
        let is_gather = matches!(row.kind, InputKind::Gather);
        // Fan-outs with one item type count as one.
        let is_ambiguous = is_gather && row.item.is_none() && self.has_several_items(input);
        // A gather is unproduced if no fan-out fits, or has none of its events. Any other required parameter, if none of its types
        // comes.
        let mut unproduced = if is_gather { !self.collects(input) } else { !row.optional };
        let (mut member, mut own) = (row.members.start, None);
        while member < row.members.end {
            let event = self.members.get(member).event;
            if self.events.get(event).stops {
                return Some(Fault::Stop(event));
            }
            let is_failure = self.events.get(event).roles.is_failure();
            if is_failure && (is_gather || self.steps.get(step).cleans_up) {
                return Some(Fault::Failure(event));
            }
            if row.passive && is_failure {
                return Some(Fault::Passive);
            }
            // A step that emits a failure event is reported at its output. A step may emit the event that it reads.
            if !is_gather && !is_failure && !row.passive && own.is_none() && self.is_own(step, input, event) {
                own = Some(event);
            }
            let comes = if is_failure { self.catches_any(step) } else { self.is_produced(event) };
            unproduced = unproduced && (is_gather || !comes);
            member += 1;
        }
        match (row.kind, own) {
            (kind, _) if row.passive && !matches!(kind, InputKind::One | InputKind::List) => {
                Some(Fault::Passive)
            }
            (InputKind::Fixed(0), _) => Some(Fault::Empty),
            (_, Some(event)) => Some(Fault::Own(event)),
            _ if is_ambiguous => Some(Fault::Ambiguous),
            _ if unproduced => Some(self.fault_of_unproduced(row)),
            _ => None,
        }
    }

    /// The fault of a parameter without a source. Where failures are among its types, the message is about
    /// these.
    const fn fault_of_unproduced(&self, input: &Input) -> Fault {
        let mut member = input.members.start;
        while member < input.members.end {
            let event = self.members.get(member).event;
            if self.events.get(event).roles.is_failure() {
                return Fault::Failure(event);
            }
            member += 1;
        }
        Fault::Unproduced
    }

    /// Whether the step emits the event without `#[step(loops)]`, and no earlier parameter takes it too.
    const fn is_own(&self, step: usize, input: usize, event: usize) -> bool {
        let (row, is_emitted) =
            (self.steps.get(step), matches!(self.events.get(event).mark, Some(by) if by == step));
        is_emitted && !row.loops && !self.is_taken_before(row, input, event)
    }

    /// Whether an earlier parameter of the step takes the event.
    const fn is_taken_before(&self, step: &Step<'_>, input: usize, event: usize) -> bool {
        let mut before = step.inputs.start;
        while before < input {
            let row = self.inputs.get(before);
            if row.triggers() && self.names(row, event) {
                return true;
            }
            before += 1;
        }
        false
    }

    /// Starts the search with the events from outside.
    const fn give_events(&mut self) {
        let mut event = 0;
        while event < self.events.len() {
            if self.events.get(event).given {
                self.arrive(event);
            }
            event += 1;
        }
        self.follow();
    }

    /// Marks that the event can occur, and with a request its reply.
    const fn arrive(&mut self, event: usize) {
        let &Event { arrives, reply, .. } = self.events.get(event);
        if arrives {
            return;
        }
        self.events.row(event).arrives = true;
        self.pending.push(event);
        if let Some(reply) = reply {
            self.arrive(reply);
        }
    }

    /// Follows the pending events to the steps that take them and on to what these emit.
    pub(super) const fn follow(&mut self) {
        while let Some(event) = self.pending.pop() {
            let mut taken = self.events.get(event).taken;
            while let Some(member) = taken {
                let member = *self.members.get(member);
                // The parameter may be one of several that the event fills, each of which has a row here.
                self.fill(member.step, member.input);
                taken = member.next;
            }
        }
    }

    /// Fills a parameter, and reaches a step that has all it requires now. One filled parameter is enough for a step with
    /// optional parameters only (S9).
    const fn fill(&mut self, step: usize, input: usize) {
        let row = self.inputs.row(input);
        let is_new = !row.filled;
        row.filled = true;
        let is_required = is_new && !row.optional;
        let row = self.steps.row(step);
        row.lacks -= is_required as usize;
        if row.lacks == 0 && !row.reached {
            self.reach(step);
        }
    }

    /// Marks that the step can run, so that its outputs can occur.
    pub(super) const fn reach(&mut self, step: usize) {
        self.steps.row(step).reached = true;
        let mut effect = 0;
        while effect < self.effects(step) {
            if let Some(event) = self.effect(step, effect) {
                self.arrive(event);
            }
            effect += 1;
        }
    }
}

//! Fills a graph from a constant table. Event types are numbered by wire name, since constant evaluation can
//! compare nothing else. The memory has a fixed size.
//!
//! ```text
//!  StepSpec a(&Begin) -> Option<X>      events   0 Begin, 1 X
//!                                       input    One, member 0
//!                                       output   event 1, not always, not many
//! ```
//!
//! Invariants: a wire name has one number, however many specs name it. A number is never used again, so
//! rows may refer to it while the graph grows. Where the memory ends, `overflowed` is set, and the caller
//! evaluates nothing.
//!
//! Example: the return type `(Report, Vec<Note>)` is `All([Event(Report), Many(Event(Note))])`. `Report` is
//! an output that is always emitted once, and `Note` one that is emitted any number of times.

use super::cells::{Cell, Cells};
use super::graph::{FanOut, Input, Member, Output, RuleGraph};
use super::names::{hash, same};
use super::nodes::{Event, Step};
use super::rows::Rows;
use super::scopes::{Scopes, Wait};
use crate::event::{EventType, Roles};
use crate::spec::{InputKind, InputSpec, OutputSpec, StepSpec};

// The capacity of the compiler's checks. For a larger table the compiler warns that it does not check it, and
// building an engine checks it instead. The bounds are far beyond usual workflows and keep compilation fast.
const STEPS: usize = 512;
/// Includes the internal events of fan-outs and caught failures.
const EVENTS: usize = 1152;
const INPUTS: usize = 1024;
const MEMBERS: usize = 4096;
const OUTPUTS: usize = 1024;
const FAN_OUTS: usize = 128;
/// The events and the steps of all scopes, and the scopes around others. Powers of two.
const OWN: usize = 8192;
const VISITS: usize = 4096;
const AROUND: usize = 2048;
/// A power of two greater than the number of events, which keeps lookups short.
const SLOTS: usize = 2048;

/// The memory of a graph, as constant evaluation needs it.
pub(super) struct Space<'n> {
    /// The memory of each list, in the order of the fields of [`RuleGraph`].
    events: [Event<'n>; EVENTS],
    steps: [Step<'n>; STEPS],
    inputs: [Input; INPUTS],
    members: [Member; MEMBERS],
    outputs: [Output; OUTPUTS],
    fan_outs: [FanOut; FAN_OUTS],
    pending: [usize; EVENTS],
    order: [usize; EVENTS + STEPS],
    /// Cells, and slots to find them by, of which there are twice as many.
    own: ([Cell; OWN], [u32; 2 * OWN]),
    around: ([Cell; AROUND], [u32; 2 * AROUND]),
    visits: ([Cell; VISITS], [u32; 2 * VISITS]),
    waits: [Wait; MEMBERS],
}

#[expect(
    clippy::large_stack_arrays,
    reason = "made in constant evaluation, where there is no stack to exhaust"
)]
impl<'n> Space<'n> {
    pub(super) const EMPTY: Self = Self {
        events: [Event::new("", Roles::NONE); EVENTS],
        steps: [Step::new(""); STEPS],
        inputs: [Input::NONE; INPUTS],
        members: [Member::NONE; MEMBERS],
        outputs: [Output::NONE; OUTPUTS],
        fan_outs: [FanOut::NONE; FAN_OUTS],
        pending: [0; EVENTS],
        order: [0; EVENTS + STEPS],
        own: ([Cell::NONE; OWN], [0; 2 * OWN]),
        around: ([Cell::NONE; AROUND], [0; 2 * AROUND]),
        visits: ([Cell::NONE; VISITS], [0; 2 * VISITS]),
        waits: [Wait::NONE; MEMBERS],
    };

    /// Creates an empty graph in this memory.
    pub(super) const fn graph(&mut self) -> RuleGraph<'_, 'n> {
        RuleGraph {
            events: Rows::in_memory(&mut self.events),
            steps: Rows::in_memory(&mut self.steps),
            inputs: Rows::in_memory(&mut self.inputs),
            members: Rows::in_memory(&mut self.members),
            outputs: Rows::in_memory(&mut self.outputs),
            fan_outs: Rows::in_memory(&mut self.fan_outs),
            pending: Rows::in_memory(&mut self.pending),
            order: Rows::in_memory(&mut self.order),
            scopes: Scopes {
                own: Cells::in_memory(&mut self.own.0, &mut self.own.1),
                around: Cells::in_memory(&mut self.around.0, &mut self.around.1),
                visits: Cells::in_memory(&mut self.visits.0, &mut self.visits.1),
                waits: Rows::in_memory(&mut self.waits),
            },
            expects: false,
            has_disjoint: false,
            unclear: false,
        }
    }
}

/// Adds the steps of a table and the types of its declared output.
pub(super) const fn fill<'n>(graph: &mut RuleGraph<'_, 'n>, steps: &'n [StepSpec], output: &'n [EventType]) {
    let mut numbers = Numbers { slots: [0; SLOTS], hashes: [0; EVENTS] };
    let mut step = 0;
    while step < steps.len() && !graph.overflowed() {
        numbers.step(graph, &steps[step]);
        step += 1;
    }
    let mut event = 0;
    while event < graph.events.len() && graph.unclear {
        // An output that the compiler has reported may be any event. So no event counts as unproduced.
        graph.events.row(event).given = true;
        event += 1;
    }
    let mut member = 0;
    // An output type that the compiler has reported is as if none were declared.
    while member < output.len() && !graph.overflowed() && !has_nameless(output) {
        let event = numbers.event(graph, &output[member]);
        graph.expect(event);
        member += 1;
    }
}

/// Whether one of the types has no name, since the compiler has reported it.
const fn has_nameless(events: &[EventType]) -> bool {
    let mut at = 0;
    while at < events.len() {
        if events[at].name.is_empty() {
            return true;
        }
        at += 1;
    }
    false
}

/// The number of times that one execution emits an event.
#[derive(Clone, Copy)]
enum Times {
    /// Every execution emits it exactly once.
    Once,
    /// An execution emits it or not: it stands in an `Option`, or among alternatives.
    AtMostOnce,
    /// An execution emits it any number of times: it stands in a `Vec`, or an emitter sends it.
    AnyNumber,
}

impl Times {
    const fn is_once(self) -> bool {
        matches!(self, Self::Once)
    }

    /// The number of times inside an `Option`.
    const fn at_most(self) -> Self {
        if self.is_once() { Self::AtMostOnce } else { self }
    }
}

/// Numbers event types, with a hash table by name.
struct Numbers {
    /// The number of an event plus 1; 0 for an empty slot. Collisions move to the next slot. Some slot is always empty,
    /// since there are more slots than events.
    slots: [u16; SLOTS],
    /// The hash of each event's name, compared before the name itself.
    hashes: [usize; EVENTS],
}

impl Numbers {
    /// Adds a step with its parameters, its precondition, its outputs and its emitters. The order is that of the rows:
    /// the graph gives each parameter and output to the last step.
    const fn step<'n>(&mut self, graph: &mut RuleGraph<'_, 'n>, spec: &'n StepSpec) {
        let policy = spec.policy;
        let step = Step {
            limit: policy.max_executions,
            loops: policy.loops,
            cleans_up: spec.on_end.is_some(),
            catches: spec.catches,
            unclear: has_unclear(spec.inputs),
            ..Step::new(spec.name)
        };
        graph.push_step(step);
        self.inputs(graph, spec.inputs);
        graph.close_inputs();
        if let Some(precondition) = &spec.precondition {
            self.inputs(graph, precondition.inputs);
            graph.close_precondition(precondition.name);
        }
        self.output(graph, &spec.output, Times::Once);
        self.emitters(graph, spec.inputs);
    }

    /// Adds parameters to the last step or precondition.
    const fn inputs<'n>(&mut self, graph: &mut RuleGraph<'_, 'n>, specs: &'n [InputSpec]) {
        let mut input = 0;
        while input < specs.len() {
            self.input(graph, &specs[input]);
            input += 1;
        }
    }

    /// Adds a parameter with its event types. For a reply also its request, so that the two are paired.
    const fn input<'n>(&mut self, graph: &mut RuleGraph<'_, 'n>, spec: &'n InputSpec) {
        graph.push_input(spec.kind, spec.optional, spec.passive);
        let mut member = 0;
        while member < spec.events.len() {
            let event = self.event(graph, &spec.events[member]);
            graph.push_member(event);
            if let Some(request) = &spec.request {
                let request = self.event(graph, request);
                graph.pair(request, event);
            }
            member += 1;
        }
        if let Some(item) = &spec.item {
            let item = self.event(graph, item);
            graph.set_item(item);
        }
    }

    /// Adds the outputs of a return type, each with the number of times that one execution emits it.
    const fn output<'n>(&mut self, graph: &mut RuleGraph<'_, 'n>, spec: &'n OutputSpec, times: Times) {
        match spec {
            OutputSpec::Nothing => {}
            // An empty tuple stands for a type that the compiler has reported; `()` is `Nothing`.
            OutputSpec::All([]) => graph.unclear = true,
            // An event of a timer is emitted too, only later.
            OutputSpec::Event(event) | OutputSpec::Timed(event) => self.emitted(graph, event, times, 0, true),
            OutputSpec::Expiring { request, reply, expired } => {
                self.emitted(graph, request, times, 0, true);
                let (request, reply) = (self.event(graph, request), self.event(graph, reply));
                graph.pair(request, reply);
                // The expiry occurs only if no reply comes first.
                self.emitted(graph, expired, times.at_most(), 0, true);
            }
            OutputSpec::FanOut(event) => {
                let event = self.event(graph, event);
                // Which fan-out it is, is known once all events have their numbers.
                graph.push_output(Output { event, fan_out: Some(0), returned: true, ..Output::NONE });
            }
            OutputSpec::OneOf(events) => {
                let mut member = 0;
                while member < events.len() {
                    // An `EventSet` with one variant is that event. Of several, one is certain, which the
                    // first row of them says.
                    let is_only = events.len() == 1;
                    let choices = if times.is_once() && member == 0 && !is_only { events.len() } else { 0 };
                    let times = if is_only { times } else { times.at_most() };
                    self.emitted(graph, &events[member], times, choices, true);
                    member += 1;
                }
            }
            OutputSpec::Optional(inner) => self.output(graph, inner, times.at_most()),
            // Inside a `Vec`, even a single alternative is not certain, since the `Vec` may be empty.
            OutputSpec::Many(inner) => self.output(graph, inner, Times::AnyNumber),
            OutputSpec::All(each) => {
                let mut inner = 0;
                while inner < each.len() {
                    self.output(graph, &each[inner], times);
                    inner += 1;
                }
            }
        }
    }

    /// Adds the events of the step's emitters, each any number of times.
    const fn emitters<'n>(&mut self, graph: &mut RuleGraph<'_, 'n>, specs: &'n [InputSpec]) {
        let mut input = 0;
        while input < specs.len() {
            let InputSpec { kind, events, .. } = specs[input];
            let mut member = 0;
            while member < events.len() && matches!(kind, InputKind::Emitter) {
                self.emitted(graph, &events[member], Times::AnyNumber, 0, false);
                member += 1;
            }
            input += 1;
        }
    }

    /// Adds one output. `choices` is the number of alternatives that begin with it, or 0.
    const fn emitted<'n>(
        &mut self,
        graph: &mut RuleGraph<'_, 'n>,
        event: &'n EventType,
        times: Times,
        choices: usize,
        returned: bool,
    ) {
        let event = self.event(graph, event);
        let (always, many) = (times.is_once(), matches!(times, Times::AnyNumber));
        graph.push_output(Output { event, always, choices, many, returned, ..Output::NONE });
    }

    /// The number of an event type, which is added if it is new.
    #[expect(clippy::cast_possible_truncation, reason = "numbers are below the bound on events")]
    const fn event<'n>(&mut self, graph: &mut RuleGraph<'_, 'n>, event: &'n EventType) -> usize {
        let hash = hash(event.name);
        let mut slot = hash % SLOTS;
        while self.slots[slot] != 0 {
            let known = self.slots[slot] as usize - 1;
            if self.hashes[known] == hash && same(graph.events.get(known).name, event.name) {
                return known;
            }
            slot = (slot + 1) % SLOTS;
        }
        let number = graph.events.push(Event::new(event.name, event.roles));
        // A number that did not fit is 0 and belongs to another event, so it gets no slot.
        if !graph.events.overflowed {
            self.slots[slot] = number as u16 + 1;
            self.hashes[number] = hash;
        }
        number
    }
}

/// Whether the compiler has reported a parameter. Generated code replaces it by an injected parameter without
/// a name.
const fn has_unclear(specs: &[InputSpec]) -> bool {
    let mut input = 0;
    while input < specs.len() {
        if matches!(specs[input].kind, InputKind::Injected) && specs[input].label.is_empty() {
            return true;
        }
        input += 1;
    }
    false
}

//! The graph that the rules examine: events, steps, and the links between them. Rows refer to each other by
//! number. The caller provides the memory, since the compiler cannot allocate in constant evaluation.
//!
//! ```text
//!  Step ─ inputs ──▶ Input ─ members ──▶ Member ─ event ──▶ Event
//!    │                                                     │ taken
//!    │                                     Member ◀────────┘   one row per taking parameter,
//!    │                                       └─ next ─▶ ...     as a linked list
//!    └── outputs ──▶ Output ─ event ──▶ Event
//!                       └─ fan_out ──▶ FanOut ─ item, gathered ──▶ Event
//! ```
//!
//! Beside the declared events there are internal ones: one per fan-out, which says that it is gathered, and
//! one per step whose failure a step catches. So the search treats gathers and failures like other events.
//!
//! The rows have two kinds of fields: declared ones, which are set while the graph is filled, and derived
//! ones, which `explore` sets.
//!
//! Invariant: a number of a row stays valid, since rows are only added. Both users fill a graph in the same
//! order: `push_step`, its parameters, `close_inputs`, the parameters of its precondition,
//! `close_precondition`, its outputs.
//!
//! Example: `a(&Begin) -> X` gives events 0 `Begin` and 1 `X`, step 0, input 0 with a member for event 0, and
//! an output for event 1. `link_inputs` adds a second member row, which `Begin` finds by `taken` and input 0
//! by `linked`.

use super::nodes::{Event, Step, StepPrecondition};
use super::rows::Rows;
use super::scopes::Scopes;
use crate::spec::InputKind;

/// A range of neighbouring rows of one list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// The first row.
    pub(crate) start: usize,
    /// The row behind the last one. Equal to `start` for no row.
    pub(crate) end: usize,
}

impl Span {
    pub(crate) const NONE: Self = Self { start: 0, end: 0 };

    pub(crate) const fn len(self) -> usize {
        self.end - self.start
    }
}

/// A parameter of a step or of a precondition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input {
    /// The step that it is a parameter of, if not of a precondition.
    pub(crate) step: Option<usize>,
    /// How the parameter takes events, if it does.
    pub(crate) kind: InputKind,
    /// Whether the step runs without it.
    pub(crate) optional: bool,
    /// Whether it never triggers the step (S58). Then it is optional too.
    pub(crate) passive: bool,
    /// The declared event types, in order. Several only for an `EventSet`.
    pub(crate) members: Span,
    /// For a gather that names its fan-out: the item.
    pub(crate) item: Option<usize>,
    /// Derived: the most basic fault. A faulty parameter gets one message.
    pub(crate) fault: Option<Fault>,
    /// Derived: the first of the members by which events find it; [`Member::other`] leads to the others. Gathers find
    /// it by the ends of fan-outs, and failures by internal events, so these are not its `members`.
    pub(crate) linked: Option<usize>,
    /// Derived: the next gather by event that names the same event.
    pub(crate) same_event: Option<usize>,
    /// Derived: whether one of its events can occur, or could without the fault.
    pub(crate) filled: bool,
}

/// The fault of a parameter, with the events concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// A fixed list of length 0.
    Empty,
    /// Takes this event, which ends the run.
    Stop(usize),
    /// Takes this event, which its own step emits.
    Own(usize),
    /// Is passive, and takes its events neither one at a time nor as a list, or takes failures.
    Passive,
    /// Takes or gathers failures where it must not or where nothing can fail.
    Failure(usize),
    /// A fixed list longer than this number of events, which is the most that a run can have.
    Short(u64),
    /// Gathers events that branches of fan-outs with several items have, and names no item.
    Ambiguous,
    /// Nothing produces any of its events, or it gathers events that no branch has.
    Unproduced,
}

impl Input {
    pub(crate) const NONE: Self = Self::new(InputKind::One, 0);

    /// A parameter whose members are those that are added from here on.
    const fn new(kind: InputKind, start: usize) -> Self {
        Self {
            step: None,
            kind,
            optional: false,
            passive: false,
            members: Span { start, end: start },
            item: None,
            fault: None,
            linked: None,
            same_event: None,
            filled: false,
        }
    }

    /// Whether the events of the parameter trigger its step.
    pub(crate) const fn triggers(&self) -> bool {
        self.kind.takes_events() && !self.passive
    }
}

/// Links a parameter to an event type that it takes. Parameters of steps have two rows: one found by the
/// parameter and one by the event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    /// The event type.
    pub(crate) event: usize,
    /// The step of the parameter. Meaningful only in a row that an event finds.
    pub(crate) step: usize,
    /// The parameter. Meaningful only in a row that an event finds.
    pub(crate) input: usize,
    /// The next row of the same event.
    pub(crate) next: Option<usize>,
    /// The next row of the same parameter.
    pub(crate) other: Option<usize>,
}

impl Member {
    pub(crate) const NONE: Self = Self { event: 0, step: 0, input: 0, next: None, other: None };
}

/// One event that a step emits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// The emitted event; for a fan-out its item.
    pub(crate) event: usize,
    /// Whether every execution emits it.
    pub(crate) always: bool,
    /// The number of alternatives that begin with this output, of which every execution emits one; 0 if it
    /// begins none.
    pub(crate) choices: usize,
    /// Whether an execution may emit several.
    pub(crate) many: bool,
    /// The fan-out, whose number is known once `open_fan_outs` has run; `None` for any other output.
    pub(crate) fan_out: Option<usize>,
    /// Whether the step returns it, rather than sends it with an emitter.
    pub(crate) returned: bool,
    /// Derived: the step.
    pub(crate) step: usize,
    /// Derived: the next output that emits the same event.
    pub(crate) same_event: Option<usize>,
}

impl Output {
    pub(crate) const NONE: Self = Self {
        event: 0,
        always: false,
        choices: 0,
        many: false,
        fan_out: None,
        returned: false,
        step: 0,
        same_event: None,
    };
}

/// An output that opens branches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FanOut {
    /// The step that opens it.
    pub(crate) step: usize,
    /// The first event of each branch.
    pub(crate) item: usize,
    /// The internal event that says that all branches are settled.
    pub(crate) gathered: usize,
    /// Derived: whether an event in its branches, or below them, can end the run.
    pub(crate) stops: bool,
    /// The next fan-out with the same item.
    pub(crate) same_item: Option<usize>,
    /// Derived: the first cells of its scope: the scopes around it, those in it, and the visits in it.
    pub(crate) outer: Option<usize>,
    pub(crate) inner: Option<usize>,
    pub(crate) visits: Option<usize>,
}

impl FanOut {
    pub(crate) const NONE: Self = Self {
        step: 0,
        item: 0,
        gathered: 0,
        stops: false,
        same_item: None,
        outer: None,
        inner: None,
        visits: None,
    };
}

/// A kind of event.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// A failure of a step.
    Failure,
    /// A start event.
    Start,
    /// A start event that some step takes.
    TakenStart,
    /// A stop event that can occur.
    Stop,
    /// A stop event that the declared output can hold.
    ExpectedStop,
}

/// A workflow as a graph, in memory of the caller.
#[derive(Debug)]
pub(crate) struct RuleGraph<'s, 'n> {
    /// The declared events, and behind them the internal ones.
    pub(crate) events: Rows<'s, Event<'n>>,
    /// The steps, in order of declaration.
    pub(crate) steps: Rows<'s, Step<'n>>,
    /// All parameters, step by step; behind those of a step, those of its precondition.
    pub(crate) inputs: Rows<'s, Input>,
    /// The declared members, and behind them the rows that link events to parameters.
    pub(crate) members: Rows<'s, Member>,
    /// All outputs, step by step.
    pub(crate) outputs: Rows<'s, Output>,
    /// One row per output that fans out. Scope n + 1 has the branches of row n.
    pub(crate) fan_outs: Rows<'s, FanOut>,
    /// Events of the current search whose takers are not visited yet.
    pub(crate) pending: Rows<'s, usize>,
    /// Which events scopes have, and which steps run in them. Scope 0 is the root, scope n + 1 the branches of fan-out n.
    pub(crate) scopes: Scopes<'s>,
    /// All events and steps, each behind those that it leads to; once [`put_in_order`](Self::put_in_order) has run.
    pub(crate) order: Rows<'s, usize>,
    /// Whether the workflow declares an output of known types.
    pub(crate) expects: bool,
    /// Whether some steps run nowhere, since they require events of branches that do not see each other.
    pub(crate) has_disjoint: bool,
    /// Whether it is not known of all steps what they emit.
    pub(crate) unclear: bool,
}

impl<'n> RuleGraph<'_, 'n> {
    /// Whether some list was too small. Then numbers may be wrong, and no rule may be evaluated.
    pub(crate) const fn overflowed(&self) -> bool {
        self.events.overflowed
            || self.steps.overflowed
            || self.inputs.overflowed
            || self.members.overflowed
            || self.outputs.overflowed
            || self.fan_outs.overflowed
            || self.pending.overflowed
            || self.order.overflowed
            || self.scopes.overflowed()
    }

    /// Adds an event type to the last parameter.
    pub(crate) const fn push_member(&mut self, event: usize) {
        let place = self.members.push(Member { event, ..Member::NONE });
        let input = self.inputs.len() - 1;
        self.inputs.row(input).members.end = place + 1;
    }

    /// Adds a parameter that has no event types yet.
    pub(crate) const fn push_input(&mut self, kind: InputKind, optional: bool, passive: bool) {
        let input = Input::new(kind, self.members.len());
        self.inputs.push(Input { optional, passive, ..input });
    }

    /// Names the item of the last parameter, which is a gather.
    pub(crate) const fn set_item(&mut self, item: usize) {
        let input = self.inputs.len() - 1;
        self.inputs.row(input).item = Some(item);
    }

    /// Adds an output to the last step.
    pub(crate) const fn push_output(&mut self, output: Output) {
        let step = self.steps.len() - 1;
        let place = self.outputs.push(Output { step, ..output });
        self.steps.row(step).outputs.end = place + 1;
    }

    /// Adds a step. The parameters and outputs added afterwards belong to it.
    pub(crate) const fn push_step(&mut self, step: Step<'n>) {
        let (inputs, outputs) = (self.inputs.len(), self.outputs.len());
        let step = Step {
            inputs: Span { start: inputs, end: inputs },
            outputs: Span { start: outputs, end: outputs },
            ..step
        };
        self.steps.push(step);
    }

    /// Ends the parameters of the last step. Those added afterwards belong to its precondition.
    pub(crate) const fn close_inputs(&mut self) {
        let (step, end) = (self.steps.len() - 1, self.inputs.len());
        self.steps.row(step).inputs.end = end;
        let mut input = self.steps.get(step).inputs.start;
        while input < end {
            self.inputs.row(input).step = Some(step);
            input += 1;
        }
    }

    /// Adds a precondition to the last step, with the parameters added since
    /// [`close_inputs`](Self::close_inputs).
    pub(crate) const fn close_precondition(&mut self, name: &'n str) {
        let (step, end) = (self.steps.len() - 1, self.inputs.len());
        let start = self.steps.get(step).inputs.end;
        self.steps.row(step).precondition = Some(StepPrecondition { name, inputs: Span { start, end } });
    }

    /// Links a request and its reply.
    pub(crate) const fn pair(&mut self, request: usize, reply: usize) {
        self.events.row(request).reply = Some(reply);
        self.events.row(reply).request = Some(request);
    }

    /// Adds the event to those that the declared output can hold.
    pub(crate) const fn expect(&mut self, event: usize) {
        self.events.row(event).expected = true;
        self.expects = true;
    }

    /// The first event of a kind.
    pub(super) const fn first(&self, wanted: Wanted) -> Option<usize> {
        let mut event = 0;
        while event < self.events.len() {
            let row = self.events.get(event);
            let is_wanted = match wanted {
                Wanted::Failure => row.roles.is_failure(),
                Wanted::Start => row.roles.is_start(),
                // Of an event type without a name, which the compiler has reported, anything can be true.
                Wanted::TakenStart => row.taken.is_some() && (row.roles.is_start() || row.name.is_empty()),
                Wanted::Stop => row.arrives && row.stops,
                Wanted::ExpectedStop => row.stops && row.expected,
            };
            if is_wanted {
                return Some(event);
            }
            event += 1;
        }
        None
    }

    /// Links an event to a parameter of a step that takes it.
    pub(super) const fn link(&mut self, event: usize, step: usize, input: usize) {
        // The new row becomes the head of both lists.
        let (next, other) = (self.events.get(event).taken, self.inputs.get(input).linked);
        // Nothing follows from an event by way of a clean-up step, so no walk finds one.
        let at_end = self.steps.get(step).cleans_up;
        let next = if at_end { self.events.get(event).taken_at_end } else { next };
        let place = self.members.push(Member { event, step, input, next, other });
        if at_end {
            self.events.row(event).taken_at_end = Some(place);
        } else {
            self.events.row(event).taken = Some(place);
        }
        self.inputs.row(input).linked = Some(place);
    }

    /// Whether the parameter is found by the event.
    pub(super) const fn is_linked(&self, event: usize, input: usize) -> bool {
        let mut linked = self.inputs.get(input).linked;
        while let Some(member) = linked {
            let member = self.members.get(member);
            if member.event == event {
                return true;
            }
            linked = member.other;
        }
        false
    }

    /// The first event type of a gather or a reply, else the item of a gather; `None` if the compiler has reported it.
    pub(super) const fn first_event(&self, input: &Input) -> Option<usize> {
        if input.members.start == input.members.end {
            return input.item;
        }
        Some(self.members.get(input.members.start).event)
    }

    /// How many [`effects`](Self::effect) a step has at most.
    pub(super) const fn effects(&self, step: usize) -> usize {
        1 + 3 * self.steps.get(step).outputs.len()
    }

    /// An event that follows from the step, by number: its failure, and then for each output its event, the reply to
    /// it, and the end of its fan-out. `None` for a number without an event.
    ///
    /// ```text
    ///  0         1         2        3            4         5        6
    ///  failure   output    reply    end of       output    reply    end of
    ///            0         to it    its fan-out  1         to it    its fan-out
    /// ```
    pub(super) const fn effect(&self, step: usize, at: usize) -> Option<usize> {
        if at == 0 {
            return self.steps.get(step).failed;
        }
        let row = self.outputs.get(self.output_of(step, at));
        match (at % 3, row.fan_out) {
            // Of a fan-out too: its item occurs, in branches.
            (1, _) => Some(row.event),
            (2, _) => self.events.get(row.event).reply,
            (_, Some(fan_out)) => Some(self.fan_outs.get(fan_out).gathered),
            _ => None,
        }
    }

    /// The output that an effect belongs to.
    pub(super) const fn output_of(&self, step: usize, effect: usize) -> usize {
        self.steps.get(step).outputs.start + (effect - 1) / 3
    }

    /// Whether the event is among the parameter's types.
    pub(super) const fn names(&self, input: &Input, event: usize) -> bool {
        let mut member = input.members.start;
        while member < input.members.end {
            if self.members.get(member).event == event {
                return true;
            }
            member += 1;
        }
        false
    }
}

/// Whether both parameters take events in the same way.
pub(super) const fn same_kind(one: InputKind, other: InputKind) -> bool {
    use InputKind::{Emitter, Fixed, Gather, Injected, List, One, Reply};
    if let (Fixed(one), Fixed(other)) = (one, other) {
        return one == other;
    }
    let injected = matches!((one, other), (Injected, Injected) | (Emitter, Emitter));
    injected || matches!((one, other), (One, One) | (List, List) | (Reply, Reply) | (Gather, Gather))
}

/// Whether both gathers name the same item, or none.
pub(super) const fn same_item(one: &Input, other: &Input) -> bool {
    match (one.item, other.item) {
        (Some(one), Some(other)) => one == other,
        (None, None) => true,
        _ => false,
    }
}

//! The graph that the rules look at: events, steps and what leads from one to the other, by number. It lies
//! in memory that whoever makes it brings along, so that the same rules are evaluated by the compiler, which
//! cannot allocate, and at run time.

use super::rows::Rows;
use crate::event::Roles;
use crate::input::InputKind;

/// Rows that stand together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) const NONE: Self = Self { start: 0, end: 0 };

    pub(crate) const fn len(self) -> usize {
        self.end - self.start
    }
}

/// An event type.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the event")]
pub(crate) struct Event<'n> {
    pub(crate) name: &'n str,
    pub(crate) roles: Roles,
    /// Whether it can come from anywhere but a step: it opens a run or is sent in. An event type without a
    /// name, which the compiler has reported already, is taken to.
    pub(crate) given: bool,
    /// Whether it ends the run.
    pub(crate) stops: bool,
    /// Whether the workflow's output can be made of it.
    pub(crate) expected: bool,
    /// The reply to it, and what it is the reply to.
    pub(crate) reply: Option<usize>,
    pub(crate) request: Option<usize>,
    /// The fan-out that it says is gathered.
    pub(crate) gathers: Option<usize>,
    /// The step that it says failed.
    pub(crate) fails: Option<usize>,
    /// The first of the members that take it; each knows the next.
    pub(crate) taken: Option<usize>,
    /// The last step that emits it.
    pub(crate) last_emitter: Option<usize>,
    /// Whether it can be there in a run.
    pub(crate) arrives: bool,
    /// The start events that it can follow from, as bits, where there are several.
    pub(crate) starts: u64,
    /// The most that a run can have of it.
    pub(crate) most: u64,
    /// From which step a walk over the graph came by.
    pub(crate) from: Option<usize>,
}

impl<'n> Event<'n> {
    pub(crate) const fn new(name: &'n str, roles: Roles) -> Self {
        Self {
            name,
            roles,
            given: roles.is_start() || roles.is_external() || name.is_empty(),
            stops: roles.is_stop(),
            expected: false,
            reply: None,
            request: None,
            gathers: None,
            fails: None,
            taken: None,
            last_emitter: None,
            arrives: false,
            starts: 0,
            most: 0,
            from: None,
        }
    }
}

/// A step.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the step")]
pub(crate) struct Step<'n> {
    pub(crate) name: &'n str,
    pub(crate) inputs: Span,
    pub(crate) outputs: Span,
    pub(crate) precondition: Option<Asked<'n>>,
    /// The most executions it may have in a scope.
    pub(crate) limit: Option<u32>,
    /// The most that it can have in a run.
    pub(crate) most: u64,
    pub(crate) loops: bool,
    /// The steps whose failures it takes, if it names them.
    pub(crate) catches: &'n [usize],
    /// Whether it takes failures.
    pub(crate) takes_failures: bool,
    /// The event that its failure is, if a step catches it.
    pub(crate) failed: Option<usize>,
    /// Whether the compiler has reported a parameter already, so that nothing is known of it.
    pub(crate) unclear: bool,
    /// Whether it can run.
    pub(crate) reached: bool,
    /// Why it cannot.
    pub(crate) stuck: Option<Stuck>,
    /// Why the events that it requires never come together.
    pub(crate) parted: Option<Parted>,
    /// Whether a walk over the graph came by.
    pub(crate) walked: bool,
    /// Whether each of its executions leads to another one of a step like it.
    pub(crate) endless: bool,
    /// Whether it is the first step of a loop with no way out.
    pub(crate) begins_loop: bool,
}

impl<'n> Step<'n> {
    pub(crate) const fn new(name: &'n str) -> Self {
        Self {
            name,
            inputs: Span::NONE,
            outputs: Span::NONE,
            precondition: None,
            limit: None,
            most: 0,
            loops: false,
            catches: &[],
            takes_failures: false,
            failed: None,
            unclear: false,
            reached: false,
            stuck: None,
            parted: None,
            walked: false,
            endless: false,
            begins_loop: false,
        }
    }
}

/// What keeps a step from ever running.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stuck {
    /// It waits for an event of a step that waits for it.
    Behind { event: usize, emitter: usize },
    /// Nothing it takes can be there.
    Idle,
}

/// What keeps the events that a step requires from coming together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Parted {
    /// They lie in branches that do not see each other.
    Branches,
    /// They follow from different start events.
    Starts,
}

/// A precondition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'n> {
    pub(crate) name: &'n str,
    pub(crate) inputs: Span,
}

/// A parameter of a step or a precondition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input {
    /// The step that it is a parameter of, if not of a precondition.
    pub(crate) step: Option<usize>,
    pub(crate) kind: InputKind,
    pub(crate) optional: bool,
    pub(crate) members: Span,
    pub(crate) fault: Option<Fault>,
    /// The first of the members by which events find it; each knows the next.
    pub(crate) linked: Option<usize>,
    /// Whether one of its events can be there, or would be but for its fault.
    pub(crate) filled: bool,
}

/// What is wrong with a parameter, by number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// It is a fixed list of no events.
    Empty,
    /// It takes an event that ends the run.
    Stop(usize),
    /// It takes what its step emits.
    Own(usize),
    /// It takes failures where nothing can fail, or gathers them.
    Failure(usize),
    /// It is a fixed list of more events than a run can have, which is so many.
    Short(u64),
    /// Nothing brings any of its events about, or it gathers what no branch has.
    Unproduced,
}

impl Input {
    pub(crate) const NONE: Self = Self::new(InputKind::One, false, 0);

    /// A parameter whose members are those that are added from here on.
    const fn new(kind: InputKind, optional: bool, start: usize) -> Self {
        let members = Span { start, end: start };
        Self { step: None, kind, optional, members, fault: None, linked: None, filled: false }
    }
}

/// That a parameter takes an event type. For the parameters of steps there is a second row, found by its
/// event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    pub(crate) event: usize,
    pub(crate) step: usize,
    pub(crate) input: usize,
    /// The next one of the same event, and of the same parameter.
    pub(crate) next: Option<usize>,
    pub(crate) other: Option<usize>,
}

impl Member {
    pub(crate) const NONE: Self = Self { event: 0, step: 0, input: 0, next: None, other: None };
}

/// One thing a step emits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) event: usize,
    /// Whether every execution emits it.
    pub(crate) always: bool,
    /// How many outputs from this one on are a choice of which every execution emits one; 0 if it begins none.
    pub(crate) choices: usize,
    /// Whether an execution may emit more than one.
    pub(crate) many: bool,
    pub(crate) fan_out: Option<usize>,
    /// Whether the step returns it; an emitter is the other way.
    pub(crate) returned: bool,
}

impl Output {
    pub(crate) const NONE: Self =
        Self { event: 0, always: false, choices: 0, many: false, fan_out: None, returned: false };
}

/// A place where branches open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FanOut {
    pub(crate) item: usize,
    /// The event that says that its branches are settled.
    pub(crate) gathered: usize,
    /// Whether something in its branches can end the run.
    pub(crate) stops: bool,
    /// Whether a step that opens it can run.
    pub(crate) opened: bool,
}

impl FanOut {
    pub(crate) const NONE: Self = Self { item: 0, gathered: 0, stops: false, opened: false };
}

/// A kind of event.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    Failure,
    Start,
    TakenStart,
    Stop,
    ExpectedStop,
}

/// A workflow as a graph.
#[derive(Debug)]
pub(crate) struct Graph<'s, 'n> {
    pub(crate) events: Rows<'s, Event<'n>>,
    pub(crate) steps: Rows<'s, Step<'n>>,
    pub(crate) inputs: Rows<'s, Input>,
    pub(crate) members: Rows<'s, Member>,
    pub(crate) outputs: Rows<'s, Output>,
    pub(crate) fan_outs: Rows<'s, FanOut>,
    /// Events that are still to be followed to the steps that take them.
    pub(crate) pending: Rows<'s, usize>,
    /// For the root and the branches of each fan-out, and for each event, whether the scope itself can have it.
    pub(crate) own: Rows<'s, bool>,
    /// The same for what it can see: its own events, and those of the scopes around it.
    pub(crate) seen: Rows<'s, bool>,
    /// Whether it is known what the workflow's output can be made of.
    pub(crate) expects: bool,
    /// Whether there are steps that run in no branch, because they require events of several.
    pub(crate) has_parted: bool,
    /// Whether it is not known of all steps what they emit.
    pub(crate) unclear: bool,
}

impl<'n> Graph<'_, 'n> {
    pub(crate) const fn overflowed(&self) -> bool {
        self.events.overflowed
            || self.steps.overflowed
            || self.inputs.overflowed
            || self.members.overflowed
            || self.outputs.overflowed
            || self.fan_outs.overflowed
            || self.pending.overflowed
            || self.own.overflowed
            || self.seen.overflowed
    }

    /// Adds an event type to the parameter that was added last.
    pub(crate) const fn push_member(&mut self, event: usize) {
        let place = self.members.push(Member { event, ..Member::NONE });
        let input = self.inputs.len() - 1;
        self.inputs.row(input).members.end = place + 1;
    }

    /// Adds a parameter without event types.
    pub(crate) const fn push_input(&mut self, kind: InputKind, optional: bool) {
        self.inputs.push(Input::new(kind, optional, self.members.len()));
    }

    /// Adds an output to the step that was added last.
    pub(crate) const fn push_output(&mut self, output: Output) {
        let place = self.outputs.push(output);
        let step = self.steps.len() - 1;
        self.steps.row(step).outputs.end = place + 1;
    }

    /// Adds a step; its parameters and outputs are those that are added from here on.
    pub(crate) const fn push_step(&mut self, step: Step<'n>) {
        let (inputs, outputs) = (self.inputs.len(), self.outputs.len());
        let step = Step {
            inputs: Span { start: inputs, end: inputs },
            outputs: Span { start: outputs, end: outputs },
            ..step
        };
        self.steps.push(step);
    }

    /// Closes the parameters of the step that was added last. Those added after it are the precondition's.
    pub(crate) const fn close_inputs(&mut self) {
        let (step, end) = (self.steps.len() - 1, self.inputs.len());
        self.steps.row(step).inputs.end = end;
        let mut input = self.steps.get(step).inputs.start;
        while input < end {
            self.inputs.row(input).step = Some(step);
            input += 1;
        }
    }

    /// Makes the parameters added since [`close_inputs`](Self::close_inputs) those of a precondition.
    pub(crate) const fn close_precondition(&mut self, name: &'n str) {
        let (step, end) = (self.steps.len() - 1, self.inputs.len());
        let start = self.steps.get(step).inputs.end;
        self.steps.row(step).precondition = Some(Asked { name, inputs: Span { start, end } });
    }

    /// Notes that one is the request and the other its reply.
    pub(crate) const fn pair(&mut self, request: usize, reply: usize) {
        self.events.row(request).reply = Some(reply);
        self.events.row(reply).request = Some(request);
    }

    /// Notes that the workflow's output can be made of the event.
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

    /// Lets a parameter of a step be found by an event that it takes.
    pub(super) const fn link(&mut self, event: usize, step: usize, input: usize) {
        let (next, other) = (self.events.get(event).taken, self.inputs.get(input).linked);
        let place = self.members.push(Member { event, step, input, next, other });
        self.events.row(event).taken = Some(place);
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

    /// The one event type of a gather or a reply.
    pub(super) const fn only_event(&self, input: &Input) -> Option<usize> {
        if input.members.start == input.members.end {
            return None;
        }
        Some(self.members.get(input.members.start).event)
    }

    /// How many [`effects`](Self::effect) a step has at most.
    pub(super) const fn effects(&self, step: usize) -> usize {
        1 + 3 * self.steps.get(step).outputs.len()
    }

    /// An event that follows from the step, by number: its failure, and then for each output its event, the reply to
    /// it, and what says that its branches are settled.
    pub(super) const fn effect(&self, step: usize, at: usize) -> Option<usize> {
        if at == 0 {
            return self.steps.get(step).failed;
        }
        let row = self.outputs.get(self.output_of(step, at));
        match (at % 3, row.fan_out) {
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

    /// Whether the parameter names the event among its types.
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

    /// Whether the step emits the event, be it as the item of a fan-out.
    pub(super) const fn emits(&self, step: usize, event: usize) -> bool {
        let outputs = self.steps.get(step).outputs;
        let mut output = outputs.start;
        while output < outputs.end {
            if self.outputs.get(output).event == event {
                return true;
            }
            output += 1;
        }
        false
    }
}

/// Whether both take events in the same way.
pub(super) const fn same_kind(one: InputKind, other: InputKind) -> bool {
    use InputKind::{Emitter, Fixed, Gather, Injected, List, One, Reply};
    if let (Fixed(one), Fixed(other)) = (one, other) {
        return one == other;
    }
    let injected = matches!((one, other), (Injected, Injected) | (Emitter, Emitter));
    injected || matches!((one, other), (One, One) | (List, List) | (Reply, Reply) | (Gather, Gather))
}

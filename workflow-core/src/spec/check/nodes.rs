//! The events and the steps of a graph, as rows. [`graph`](super::graph) has the rows between them, and says how rows
//! refer to each other.

use super::graph::Span;
use super::order::Walk;
use crate::event::Roles;

/// An event type of the table, or an internal event.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the event")]
pub(crate) struct Event<'n> {
    /// The wire name. Empty for an event that the compiler has reported, and for the end of a fan-out.
    pub(crate) name: &'n str,
    /// The roles of the type; none for an internal event.
    pub(crate) roles: Roles,
    /// Whether it can come from outside: it opens a run or is sent in. Also set for an event type without a
    /// name, which the compiler has reported already.
    pub(crate) given: bool,
    /// Whether the event ends the run.
    pub(crate) stops: bool,
    /// Whether the declared output of the workflow can hold it.
    pub(crate) expected: bool,
    /// For a request its reply. If the request can occur, so can the reply.
    pub(crate) reply: Option<usize>,
    /// For a reply its request, under whose name messages mention it.
    pub(crate) request: Option<usize>,
    /// The fan-out whose end this internal event marks.
    pub(crate) gathers: Option<usize>,
    /// The step whose failure this internal event stands for.
    pub(crate) fails: Option<usize>,
    /// Derived: the first parameter that takes the event; [`Member::next`] leads to the others.
    pub(crate) taken: Option<usize>,
    /// Derived: the same for parameters of clean-up steps, which the event does not trigger.
    pub(crate) taken_at_end: Option<usize>,
    /// Derived: the first gather by event that names it; [`Input::same_event`] leads to the others.
    pub(crate) gathered: Option<usize>,
    /// Derived: the first fan-out that it is the item of; [`FanOut::same_item`] leads to the others.
    pub(crate) opens: Option<usize>,
    /// Derived: the first output that emits it; [`Output::same_event`] leads to the others.
    pub(crate) emitted: Option<usize>,
    /// Derived: the first cell that says that a scope itself has it.
    pub(crate) held: Option<usize>,
    /// Derived: the first visit of a scope that waits for it.
    pub(crate) waits: Option<usize>,
    /// Derived: the last step in declaration order that emits the event.
    pub(crate) last_emitter: Option<usize>,
    /// Derived: whether the event can occur in a run.
    pub(crate) arrives: bool,
    /// Derived: the start events that lead to it, one bit each. Set only if the workflow has several.
    pub(crate) starts: u64,
    /// Derived: the most that a run can have of the event.
    pub(crate) most: u64,
    /// Derived: the steps that run at every event of the type and have no end.
    pub(crate) triggers: Triggers,
    /// Derived: whether something that follows from it ends the run.
    pub(crate) leads_to_stop: bool,
    /// Scratch: the step for which it was last marked.
    pub(crate) mark: Option<usize>,
    /// Scratch: the walk that puts the nodes in order.
    pub(crate) walk: Walk,
}

/// The steps without an end that an event always triggers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Triggers {
    None,
    One(usize),
    Several,
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
            taken_at_end: None,
            gathered: None,
            opens: None,
            emitted: None,
            held: None,
            waits: None,
            last_emitter: None,
            arrives: false,
            starts: 0,
            most: 0,
            triggers: Triggers::None,
            leads_to_stop: false,
            mark: None,
            walk: Walk::NONE,
        }
    }
}

/// A step of the table.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the step")]
pub(crate) struct Step<'n> {
    /// The name of the function, for messages.
    pub(crate) name: &'n str,
    /// The parameters, in order of declaration.
    pub(crate) inputs: Span,
    /// The events that it returns, and then those that its emitters send.
    pub(crate) outputs: Span,
    /// The precondition, if it has one. A step with one may run or not, so no rule counts on its runs.
    pub(crate) precondition: Option<StepPrecondition<'n>>,
    /// The declared `max_executions`.
    pub(crate) limit: Option<u32>,
    /// Derived: the most executions that a run can have of the step.
    pub(crate) most: u64,
    /// Whether `#[step(loops)]` says that it may take what it emits.
    pub(crate) loops: bool,
    /// Whether it is a clean-up step: no event triggers it, and its inputs are those of the root.
    pub(crate) cleans_up: bool,
    /// The steps whose failures the step catches by name; empty for all others.
    pub(crate) catches: &'n [usize],
    /// Derived: whether a parameter takes failures.
    pub(crate) takes_failures: bool,
    /// Derived: whether a step catches its failures by name.
    pub(crate) is_caught: bool,
    /// Derived: the internal event of its failure, if a step catches it.
    pub(crate) failed: Option<usize>,
    /// Whether the compiler has reported a parameter already, so that its type is unknown. Such a step gets
    /// no further messages.
    pub(crate) unclear: bool,
    /// Derived: how many of its required parameters are not filled.
    pub(crate) lacks: usize,
    /// Derived: whether the step can run.
    pub(crate) reached: bool,
    /// Derived: the first visit of a scope in which an event triggers it.
    pub(crate) visits: Option<usize>,
    /// Derived: why the step can never be reached.
    pub(crate) deadlock: Option<Deadlock>,
    /// Derived: why the events that the step requires never meet.
    pub(crate) disjoint: Option<Disjoint>,
    /// Derived: how many of its required parameters no one event fills together.
    pub(crate) distinct: u64,
    /// Scratch: the walk that puts the nodes in order.
    pub(crate) walk: Walk,
    /// Derived: whether each execution triggers another step with the same property.
    pub(crate) endless: bool,
    /// Derived: whether something that follows from it, be it only sometimes, ends the run.
    pub(crate) leads_to_stop: bool,
    /// Derived: whether it is the first step of an endless loop.
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
            cleans_up: false,
            catches: &[],
            takes_failures: false,
            is_caught: false,
            failed: None,
            unclear: false,
            lacks: 0,
            reached: false,
            visits: None,
            deadlock: None,
            disjoint: None,
            distinct: 0,
            walk: Walk::NONE,
            endless: false,
            leads_to_stop: false,
            begins_loop: false,
        }
    }
}

/// Why a step can never be reached.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deadlock {
    /// A deadlock: it waits for an event of a step that waits for it.
    Behind { event: usize, emitter: usize },
    /// None of the events that it takes can occur.
    Idle,
}

/// Why the events that a step requires never meet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Disjoint {
    /// They belong to branches that do not see each other.
    Branches,
    /// They follow from different start events.
    Starts,
}

/// The precondition of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepPrecondition<'n> {
    /// The name of the function or method.
    pub(crate) name: &'n str,
    /// Its parameters, which stand behind those of the step.
    pub(crate) inputs: Span,
}

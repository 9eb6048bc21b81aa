//! The dependency table: which step takes which event, compiled into dense indices and bit masks. A table
//! comes from a workflow's constant [`TableSpec`] or from [`DependencyTable::builder`] at run time. The
//! scheduler treats both alike.
//!
//! ```text
//!  TableSpec (constant) ─┐                  ┌─ rows checked by themselves
//!                        ├─▶ a draft ───────┼─ graph rules
//!  TableBuilder (names) ─┘                  └─ compile ─▶ DependencyTable
//!                                                           │ shape
//!  journal ◀──────────── RecordedTable ◀──────────────── TableShape ─ differences
//! ```
//!
//! The module owns the static structure of a workflow and what follows from it alone: forecasts, shapes,
//! fingerprints and differences. The module knows nothing of runs.
//!
//! How readiness becomes a mask: inputs that take the same set of event types share a *topic*, and each
//! number of events that some input of a topic waits for is a *condition* with a bit. A step is ready if
//! `required`, its conditions, is a subset of the bits that a scope has satisfied. For `join(&A, &B)` and
//! `pair(FixedList<A, 2>)` the conditions are: bit 0, one `A`; bit 1, one `B`; bit 2, two `A`.

use std::any::TypeId;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::config::ConfigType;
use crate::event::{Decode, Reader, Roles, Upgrade};

mod builder;
mod compile;
mod difference;
mod draft;
mod edges;
mod failures;
mod forecast;
mod graph;
mod keys;
mod lists;
mod mask;
mod names;
#[cfg(test)]
mod random;
mod reach;
mod rows;
mod shape;

pub use crate::spec::{
    InputKind, OnEnd, PreconditionSpec, StepPolicy, StepSpec, TableError, TableProblem, TableSpec,
};
pub use builder::{EventDef, InputDef, OutputDef, PreconditionDef, StepDef, TableBuilder};
pub use difference::TableDifference;
pub use forecast::Forecast;
pub use shape::{
    EventShape, InputShape, OutputShape, PreconditionShape, RecordedTable, StepShape, TableShape,
};

pub(crate) use edges::{Edges, EventForm};
pub(crate) use keys::{KeyHistory, KeyParts, slots_of};
pub(crate) use lists::Lists;
pub(crate) use mask::Mask;
pub(crate) use names::Names;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The index in the table, from 0.
            pub const fn get(self) -> usize {
                self.0 as usize
            }

            pub(crate) fn at(position: usize) -> Self {
                Self(u32::try_from(position).expect("a table has fewer than 4 billion rows"))
            }
        }
    };
}

index! {
    /// The index of an event type in a [`DependencyTable`].
    EventIndex
}
index! {
    /// The index of a step in a [`DependencyTable`], in declaration order.
    StepIndex
}
index! {
    /// The index of a fan-out output in a [`DependencyTable`].
    FanOutIndex
}
index! {
    /// The index of a set of event types that some input takes.
    TopicIndex
}

/// The compiled table of a workflow: which step takes and emits which events.
///
/// A table never changes. An engine shares one table among all runs of a workflow.
///
/// ```
/// use workflow_core::signature::Roles;
/// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
///
/// let table = DependencyTable::builder("greeter")
///     .event(EventDef::new("Greet", Roles::NONE.start()))
///     .event(EventDef::new("Greeting", Roles::NONE.stop()))
///     .step(StepDef::new("greet").input(InputDef::one("Greet")).output(OutputDef::event("Greeting")))
///     .build()?;
/// assert_eq!(table.steps().len(), 1);
/// # Ok::<(), workflow_core::table::TableError>(())
/// ```
#[derive(Debug)]
pub struct DependencyTable {
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) steps: Vec<StepRow>,
    /// The sets of event types that inputs take, each once.
    pub(crate) topics: Vec<TopicRow>,
    /// The outputs that open branches, by step and output.
    pub(crate) fan_outs: Vec<FanOutRow>,
    /// The clean-up steps, in declaration order (S31).
    pub(crate) clean_up: Vec<StepIndex>,
    /// The number of conditions, which is the number of bits in the masks.
    pub(crate) conditions: usize,
    /// The events by Rust type; empty in a table built at run time.
    pub(crate) by_type: FxHashMap<TypeId, EventIndex>,
    /// The rows by name.
    names: Names,
    /// What the outside of runs needs.
    pub(crate) edges: Edges,
    /// The table in the form that journals store, made at the first use.
    recorded: OnceLock<RecordedTable>,
    /// The forecast of each step, made at the first use.
    forecasts: OnceLock<Vec<Forecast>>,
}

/// One event type of a table.
#[derive(Debug)]
pub struct EventRow {
    pub(crate) name: Arc<str>,
    pub(crate) roles: Roles,
    pub(crate) type_id: Option<TypeId>,
    pub(crate) type_name: Option<&'static str>,
    /// The version of the event's serialised form.
    pub(crate) version: u32,
    /// Reads the event back from a journal; `None` in a table built at run time.
    pub(crate) decode: Option<Decode>,
    /// Converts the JSON of an older version to this one.
    pub(crate) upgrade: Option<Upgrade>,
    /// The steps that take the event, in declaration order.
    pub(crate) takers: SmallVec<[StepIndex; 2]>,
    /// The step of a direct commit: the only step that takes the event, which takes nothing else and runs at
    /// each arrival.
    pub(crate) direct: Option<StepIndex>,
    /// Whether a fixed list takes the event.
    pub(crate) fills: bool,
    /// Whether a list of any kind takes the event, so that the log keeps one.
    pub(crate) listed: bool,
    /// The topics that contain the event.
    pub(crate) topics: SmallVec<[TopicIndex; 2]>,
    /// For a request: its reply.
    pub(crate) reply: Option<EventIndex>,
    /// For a request that can expire: the event that reports the expiry.
    pub(crate) expired: Option<EventIndex>,
    /// For the internal event that completes a fan-out: the fan-out.
    pub(crate) gathers: Option<FanOutIndex>,
    /// For the internal event that reports a caught failure: the step that failed (S29).
    pub(crate) fails: Option<StepIndex>,
    /// Whether some gather collects the event.
    pub(crate) carried: bool,
}

/// One step of a table.
#[derive(Debug)]
pub struct StepRow {
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) inputs: Vec<InputRow>,
    pub(crate) outputs: Vec<OutputRow>,
    pub(crate) precondition: Option<PreconditionRow>,
    pub(crate) policy: StepPolicy,
    /// The ends at which it runs, of a clean-up step (S31).
    pub(crate) on_end: Option<OnEnd>,
    /// The engine's limit of the step's attempts (S70). Thin, since few steps have one.
    pub(crate) limit: Option<Box<Arc<str>>>,
    /// The method that makes the idempotency key of an execution (S84). Thin, since few steps have one.
    pub(crate) key: Option<Box<Arc<str>>>,
    /// The internal event of the step's failure, if a step catches it (S29).
    pub(crate) failed: Option<EventIndex>,
    /// The bits of the conditions that must hold for the step to be ready (S13). Few, however large the table is.
    pub(crate) required: SmallVec<[usize; 2]>,
    /// Whether the same binding can come up at two triggers, so that S20 needs a check. Only fixed lists
    /// allow that.
    pub(crate) may_repeat: bool,
    /// Whether the step takes a gather beside other events, so that a later event could bind the gather again. S48
    /// needs a check then.
    pub(crate) joins_gather: bool,
}

/// One parameter of a step.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts about the parameter")]
pub struct InputRow {
    pub(crate) kind: InputKind,
    pub(crate) optional: bool,
    /// Whether it never triggers its step (S58). Such an input is optional too.
    pub(crate) passive: bool,
    /// The event types that the input takes; for a gather the internal events that complete the fan-outs.
    pub(crate) events: SmallVec<[EventIndex; 2]>,
    /// For a gather: the events that it collects.
    pub(crate) gathered: Vec<EventIndex>,
    /// For a gather that names its fan-out: the item.
    pub(crate) item: Option<EventIndex>,
    /// The topic of the input's event types; `None` for an injected parameter.
    pub(crate) topic: Option<TopicIndex>,
    /// The condition that makes the input ready; `None` for an optional or injected one.
    pub(crate) condition: Option<Condition>,
    pub(crate) config: Option<ConfigType>,
    /// Whether the parameter reads or writes a context.
    pub(crate) uses_context: bool,
    /// Whether the step may start children by the parameter.
    pub(crate) may_start_children: bool,
    pub(crate) label: Arc<str>,
}

/// "At least `least` events of this topic", with its bit in the masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Condition {
    /// The bit in [`StepRow::required`] and in the masks of scopes.
    pub(crate) bit: usize,
    pub(crate) topic: TopicIndex,
    pub(crate) least: u32,
}

/// One event type that a step may emit.
#[derive(Debug, Clone, Copy)]
pub struct OutputRow {
    pub(crate) event: EventIndex,
    /// The fewest events that one execution emits.
    pub(crate) least: u32,
    /// Whether one execution may emit several.
    pub(crate) many: bool,
    /// Whether the event enters the log when a timer fires.
    pub(crate) timed: bool,
    pub(crate) fan_out: Option<FanOutIndex>,
}

/// The precondition of a step.
#[derive(Debug)]
pub(crate) struct PreconditionRow {
    pub(crate) name: Arc<str>,
    /// For each parameter of the precondition the input of the step that fills it. `None` for an injected
    /// parameter, and in a faulty table for one that no input fills.
    pub(crate) slots: Vec<Option<usize>>,
    pub(crate) configs: Vec<ConfigType>,
    /// The label of a parameter that reads or writes a context.
    pub(crate) context: Option<Arc<str>>,
}

/// A set of event types that some input takes together.
#[derive(Debug, Default)]
pub(crate) struct TopicRow {
    pub(crate) events: SmallVec<[EventIndex; 2]>,
    /// Whether some input takes the topic as a list, so that the log keeps one.
    pub(crate) listed: bool,
    /// The conditions on this topic, one for each number of events that some input waits for.
    pub(crate) conditions: SmallVec<[Condition; 1]>,
    /// The steps with a fixed list of the topic, and the length of the list.
    pub(crate) fixed: Vec<(StepIndex, u32)>,
    /// The greatest count that matters: further events change no condition and fill no fixed list.
    pub(crate) most: u32,
}

/// An output that opens branches.
#[derive(Debug)]
pub(crate) struct FanOutRow {
    pub(crate) step: StepIndex,
    pub(crate) item: EventIndex,
    /// The internal event that completes the fan-out.
    pub(crate) gathered: EventIndex,
    /// The events that gathers of this fan-out collect.
    pub(crate) carried: Vec<EventIndex>,
    /// All events that a branch itself can have, by index.
    pub(crate) own: Vec<EventIndex>,
}

impl DependencyTable {
    /// Starts building a table at run time.
    pub fn builder(name: impl Into<Arc<str>>) -> TableBuilder {
        TableBuilder::new(name.into())
    }

    /// Compiles a workflow's constant table.
    ///
    /// About O(size of the table), and O(nested fan-outs²) for the deepest nesting.
    ///
    /// # Errors
    /// [`TableError`] with every problem of the table.
    pub fn from_spec(spec: &TableSpec) -> Result<Self, TableError> {
        draft::TableDraft::from_spec(spec).compile(graph::Strictness::Everything)
    }

    /// Compiles a table even with problems, and returns both, so that building an engine can report the
    /// problems of all its workflows together.
    pub(crate) fn with_problems(spec: &TableSpec) -> (Self, Option<TableError>) {
        match draft::TableDraft::from_spec(spec).compile_with_problems(graph::Strictness::Everything) {
            (table, problems) if problems.is_empty() => (table, None),
            (table, problems) => (table, Some(TableError::new(spec.name, problems))),
        }
    }

    /// The same table under another name.
    pub(crate) fn renamed(self, name: Arc<str>) -> Self {
        Self { name, ..self }
    }

    /// Compiles a table for a drawing or for its shape, whatever its problems: a drawing helps to find them.
    pub(crate) fn for_drawing(spec: &TableSpec) -> Self {
        draft::TableDraft::from_spec(spec).compile_with_problems(graph::Strictness::Scheduler).0
    }

    /// The name of the workflow.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description of the workflow.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The event types, by index. Behind the declared ones are internal ones: the ends of fan-outs, and
    /// caught failures.
    pub fn events(&self) -> &[EventRow] {
        &self.events
    }

    /// The steps, by index, in declaration order.
    pub fn steps(&self) -> &[StepRow] {
        &self.steps
    }

    /// The event type of this wire name. O(length of the name).
    pub fn event_named(&self, name: &str) -> Option<EventIndex> {
        self.names.event(name)
    }

    /// The step of this name. O(length of the name).
    pub fn step_named(&self, name: &str) -> Option<StepIndex> {
        self.names.step(name)
    }

    #[inline]
    pub(crate) fn event(&self, index: EventIndex) -> &EventRow {
        &self.events[index.get()]
    }

    #[inline]
    pub(crate) fn step(&self, index: StepIndex) -> &StepRow {
        &self.steps[index.get()]
    }

    #[inline]
    pub(crate) fn topic(&self, index: TopicIndex) -> &TopicRow {
        &self.topics[index.get()]
    }

    pub(crate) fn fan_out(&self, index: FanOutIndex) -> &FanOutRow {
        &self.fan_outs[index.get()]
    }

    /// Whether a branch may wait for a reply or a timer: the table has requests or timers. O(table).
    pub(crate) fn can_wait(&self) -> bool {
        let mut outputs = self.steps.iter().flat_map(|step| &step.outputs);
        self.events.iter().any(|event| event.roles.is_request()) || outputs.any(|output| output.timed)
    }

    /// Every type of configuration that a step or a precondition takes.
    pub(crate) fn configs(&self) -> impl Iterator<Item = ConfigType> {
        let of_steps = self.steps.iter().flat_map(|step| step.inputs.iter().filter_map(|input| input.config));
        let preconditions = self.steps.iter().filter_map(|step| step.precondition.as_ref());
        of_steps.chain(preconditions.flat_map(|row| row.configs.iter().copied()))
    }

    /// Whether a step may start children, without middleware. O(table).
    pub(crate) fn may_start_children(&self) -> bool {
        let mut inputs = self.steps.iter().flat_map(|step| &step.inputs);
        self.edges.steps.is_some() || inputs.any(|input| input.may_start_children)
    }

    /// The first step that takes a context, itself or by its precondition, with the label of that parameter.
    pub(crate) fn context_taker(&self) -> Option<(&StepRow, &Arc<str>)> {
        self.steps.iter().find_map(|step| {
            let input = step.inputs.iter().find(|input| input.uses_context).map(|input| &input.label);
            let of_precondition = || step.precondition.as_ref()?.context.as_ref();
            Some((step, input.or_else(of_precondition)?))
        })
    }
}

impl FanOutRow {
    /// Whether a branch itself can have the event. O(log events of the branch).
    pub(crate) fn has(&self, event: EventIndex) -> bool {
        self.own.binary_search(&event).is_ok()
    }
}

impl EventRow {
    /// How to read the event back from a journal; `None` in a table built at run time.
    pub(crate) fn reader(&self) -> Option<Reader> {
        let Self { version, upgrade, decode, .. } = *self;
        Some(Reader { version, upgrade, decode: decode? })
    }

    /// The wire name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The roles of the event.
    pub fn roles(&self) -> Roles {
        self.roles
    }

    /// The version of the event's serialised form, from 1.
    pub fn version(&self) -> u32 {
        self.version
    }
}

impl StepRow {
    /// The name of the step.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description of the step: its doc comment.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The parameters of the step, in order.
    pub fn inputs(&self) -> &[InputRow] {
        &self.inputs
    }

    /// The event types that the step may emit.
    pub fn outputs(&self) -> &[OutputRow] {
        &self.outputs
    }

    /// The event that enters the log when the step fails. `None`: no step catches that.
    pub fn failure(&self) -> Option<EventIndex> {
        self.failed
    }

    /// Whether the step runs at an end, and at no other time (S31).
    #[inline]
    pub(crate) fn cleans_up(&self) -> bool {
        self.on_end.is_some()
    }

    /// The ends of a run at which the step runs, of a clean-up step; `None` for any other step.
    pub fn on_end(&self) -> Option<OnEnd> {
        self.on_end
    }

    /// The name of the engine's [limit](crate::Limit) of the step's attempts; `None` without one.
    pub fn limit(&self) -> Option<&str> {
        self.limit.as_deref().map(|name| &**name)
    }

    /// The name of the method that makes the [idempotency key](crate::RunInfo::idempotency_key) of an execution; `None` for
    /// the positions of its events.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref().map(|name| &**name)
    }

    /// The `concurrency` of the step, if the scheduler bounds it. The executions of a step with a named limit begin in
    /// an order that no journal has (S70), so the run bounds those.
    #[inline]
    pub(crate) fn scheduled_concurrency(&self) -> Option<u32> {
        self.policy.concurrency.filter(|_| self.limit.is_none())
    }

    /// The name of the step's precondition; `None` without one.
    pub fn precondition(&self) -> Option<&str> {
        self.precondition.as_ref().map(|row| &*row.name)
    }
}

impl InputRow {
    /// The kind of the parameter.
    pub fn kind(&self) -> InputKind {
        self.kind
    }

    /// Whether the step can run without the input.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// Whether the step reads the input when another one triggers it.
    pub fn is_passive(&self) -> bool {
        self.passive
    }

    /// Whether the events of the input trigger its step.
    pub(crate) fn triggers(&self) -> bool {
        self.kind.takes_events() && !self.passive
    }

    /// The name of an injected parameter; empty for one that takes events.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The event types that the input takes.
    pub fn events(&self) -> &[EventIndex] {
        &self.events
    }
}

impl OutputRow {
    /// The event type that the step emits.
    pub fn event(&self) -> EventIndex {
        self.event
    }

    /// Whether the event enters the log later than the step commits it: as a [`Timer`](crate::Timer), or as
    /// the expiry of a [request](crate::Expiring).
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// Whether the output opens a branch per item.
    pub fn is_fan_out(&self) -> bool {
        self.fan_out.is_some()
    }

    /// The fan-out that the output opens; `None` if it opens none.
    pub fn fan_out(&self) -> Option<FanOutIndex> {
        self.fan_out
    }
}

//! The dependency table: which step wants which event, compiled into dense indices and bit masks. It is
//! made from a workflow's constant [`TableSpec`] or at run time with [`DependencyTable::builder`]; the
//! scheduler does not know the difference.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::config::ConfigType;
use crate::error::TableError;
use crate::event::{Decode, Reader, Roles, Upgrade};
use crate::input::InputKind;

mod builder;
mod compile;
mod difference;
mod draft;
mod failures;
mod forecast;
mod graph;
mod mask;
mod reach;
mod rows;
mod shape;
mod spec;

pub use builder::{EventDef, InputDef, OutputDef, PreconditionDef, StepDef, TableBuilder};
pub use difference::TableDifference;
pub use forecast::Forecast;
pub use shape::{
    EventShape, InputShape, OutputShape, PreconditionShape, RecordedTable, StepShape, TableShape,
};
pub use spec::{PreconditionSpec, StepPolicy, StepSpec, TableSpec};

pub(crate) use mask::Mask;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The position in the table.
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
    /// The position of an event type in a [`DependencyTable`].
    EventIndex
}
index! {
    /// The position of a step in a [`DependencyTable`], which is its place in declaration order.
    StepIndex
}
index! {
    /// The position of a fan-out output in a [`DependencyTable`].
    FanOutIndex
}
index! {
    /// The position of a set of event types that some input waits for.
    TopicIndex
}

/// Which step wants which event, and what each step emits.
///
/// ```
/// use workflow_core::{DependencyTable, EventDef, InputDef, OutputDef, Roles, StepDef};
///
/// let table = DependencyTable::builder("greeter")
///     .event(EventDef::new("Greet", Roles::NONE.start()))
///     .event(EventDef::new("Greeting", Roles::NONE.stop()))
///     .step(StepDef::new("greet").input(InputDef::one("Greet")).output(OutputDef::event("Greeting")))
///     .build()?;
/// assert_eq!(table.steps().len(), 1);
/// # Ok::<(), workflow_core::TableError>(())
/// ```
#[derive(Debug)]
pub struct DependencyTable {
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) steps: Vec<StepRow>,
    pub(crate) topics: Vec<TopicRow>,
    pub(crate) fan_outs: Vec<FanOutRow>,
    pub(crate) conditions: usize,
    pub(crate) by_type: HashMap<TypeId, EventIndex>,
    /// The table as journals have it, once one was asked for.
    recorded: OnceLock<RecordedTable>,
}

/// One event type of a table.
#[derive(Debug)]
pub struct EventRow {
    pub(crate) name: Arc<str>,
    pub(crate) roles: Roles,
    pub(crate) type_id: Option<TypeId>,
    pub(crate) type_name: Option<&'static str>,
    /// The version of its shape.
    pub(crate) version: u32,
    /// How it is read back from a journal.
    pub(crate) decode: Option<Decode>,
    /// What makes this version of an older one.
    pub(crate) upgrade: Option<Upgrade>,
    /// The steps that take it, in declaration order.
    pub(crate) takers: Vec<StepIndex>,
    /// The only step that takes it, if that takes nothing else, and once each time: it runs whenever one comes.
    pub(crate) direct: Option<StepIndex>,
    /// Whether some step takes exactly so many of it.
    pub(crate) fills: bool,
    /// Whether some step takes it in a list.
    pub(crate) listed: bool,
    /// The topics it belongs to.
    pub(crate) topics: Vec<TopicIndex>,
    /// For a request: the event that replies to it.
    pub(crate) reply: Option<EventIndex>,
    /// For a request that can expire: the event that says so.
    pub(crate) expired: Option<EventIndex>,
    /// For the event that says that a fan-out is gathered: which one.
    pub(crate) gathers: Option<FanOutIndex>,
    /// For the event that says that a step failed: which one (S29).
    pub(crate) fails: Option<StepIndex>,
    /// Whether some gather of some fan-out hands it on.
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
    /// The event that its failure is, if a step catches it (S29).
    pub(crate) failed: Option<EventIndex>,
    /// The conditions that must hold for the step to be ready (S13).
    pub(crate) required: Mask,
    /// Whether a trigger can leave the binding unchanged, so that S20 has something to check.
    pub(crate) may_repeat: bool,
}

/// One parameter of a step.
#[derive(Debug)]
pub struct InputRow {
    pub(crate) kind: InputKind,
    pub(crate) optional: bool,
    /// The event types it takes; for a gather the events that say a fan-out is gathered.
    pub(crate) events: Vec<EventIndex>,
    /// What a gather collects.
    pub(crate) gathered: Option<EventIndex>,
    pub(crate) topic: Option<TopicIndex>,
    pub(crate) condition: Option<Condition>,
    pub(crate) config: Option<ConfigType>,
    pub(crate) label: Arc<str>,
}

/// "At least so many events of this topic."
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) bit: usize,
    pub(crate) topic: TopicIndex,
    pub(crate) least: u32,
}

/// One thing a step may emit.
#[derive(Debug, Clone, Copy)]
pub struct OutputRow {
    pub(crate) event: EventIndex,
    /// How many of it one execution emits at least.
    pub(crate) least: u32,
    /// Whether one execution may emit more than one.
    pub(crate) many: bool,
    /// Whether it enters the log only when its time has come.
    pub(crate) timed: bool,
    pub(crate) fan_out: Option<FanOutIndex>,
}

/// The precondition of a step.
#[derive(Debug)]
pub(crate) struct PreconditionRow {
    pub(crate) name: Arc<str>,
    /// For each parameter of the precondition the step's slot that fills it; none for an injectable, and for
    /// what no slot fills in a table with problems.
    pub(crate) slots: Vec<Option<usize>>,
    pub(crate) configs: Vec<ConfigType>,
}

/// A set of event types that some input takes as one, and who counts them.
#[derive(Debug, Default)]
pub(crate) struct TopicRow {
    pub(crate) events: Vec<EventIndex>,
    /// Whether an input takes it as a list, so that the log keeps one.
    pub(crate) listed: bool,
    pub(crate) conditions: Vec<Condition>,
    /// The steps that take exactly so many of it.
    pub(crate) fixed: Vec<(StepIndex, u32)>,
    /// From how many on another one changes no condition, and fills no fixed list.
    pub(crate) most: u32,
}

/// A place where branches open.
#[derive(Debug)]
pub(crate) struct FanOutRow {
    pub(crate) step: StepIndex,
    pub(crate) item: EventIndex,
    /// The event that says that it is gathered.
    pub(crate) gathered: EventIndex,
    /// The events its gathers hand on.
    pub(crate) carried: Vec<EventIndex>,
    /// Everything that can be emitted in a branch's own scope.
    pub(crate) own: Vec<EventIndex>,
}

impl DependencyTable {
    /// Begins a table at run time.
    pub fn builder(name: impl Into<Arc<str>>) -> TableBuilder {
        TableBuilder::new(name.into())
    }

    /// Compiles a workflow's constant table. O(steps × inputs + fan-outs × steps).
    ///
    /// # Errors
    /// [`TableError`] with every problem the table has.
    pub fn from_spec(spec: &TableSpec) -> Result<Self, TableError> {
        draft::TableDraft::from_spec(spec).compile(graph::Rigour::Everything)
    }

    /// The table whatever its problems, and these: who builds an engine looks on for others.
    pub(crate) fn with_problems(spec: &TableSpec) -> (Self, Option<TableError>) {
        match draft::TableDraft::from_spec(spec).compile_anyway(graph::Rigour::Everything) {
            (table, problems) if problems.is_empty() => (table, None),
            (table, problems) => (table, Some(TableError::new(spec.name, problems))),
        }
    }

    /// The table for drawing, whatever its problems: who has a mistake to find needs to see it.
    pub(crate) fn for_drawing(spec: &TableSpec) -> Self {
        draft::TableDraft::from_spec(spec).compile_anyway(graph::Rigour::Scheduler).0
    }

    /// The name of the workflow.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description of the workflow.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The event types, dense from 0.
    pub fn events(&self) -> &[EventRow] {
        &self.events
    }

    /// The steps in declaration order.
    pub fn steps(&self) -> &[StepRow] {
        &self.steps
    }

    /// The event of this wire name. O(events).
    pub fn event_named(&self, name: &str) -> Option<EventIndex> {
        self.events.iter().position(|row| &*row.name == name).map(EventIndex::at)
    }

    /// The step of this name. O(steps).
    pub fn step_named(&self, name: &str) -> Option<StepIndex> {
        self.steps.iter().position(|row| &*row.name == name).map(StepIndex::at)
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

    /// Every configuration that a step or a precondition takes.
    pub(crate) fn configs(&self) -> impl Iterator<Item = ConfigType> {
        let of_steps = self.steps.iter().flat_map(|step| step.inputs.iter().filter_map(|input| input.config));
        let preconditions = self.steps.iter().filter_map(|step| step.precondition.as_ref());
        of_steps.chain(preconditions.flat_map(|row| row.configs.iter().copied()))
    }
}

impl EventRow {
    /// How such an event is read back; none in a table built at run time.
    pub(crate) fn reader(&self) -> Option<Reader> {
        let Self { version, upgrade, decode, .. } = *self;
        Some(Reader { version, upgrade, decode: decode? })
    }

    /// The wire name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the event is for.
    pub fn roles(&self) -> Roles {
        self.roles
    }

    /// The version of the event's shape, from 1.
    pub fn version(&self) -> u32 {
        self.version
    }
}

impl StepRow {
    /// The step's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The step's doc comment.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The step's parameters, in order.
    pub fn inputs(&self) -> &[InputRow] {
        &self.inputs
    }

    /// What the step may emit.
    pub fn outputs(&self) -> &[OutputRow] {
        &self.outputs
    }

    /// The event that enters the log when the step fails, if another step catches that.
    pub fn failure(&self) -> Option<EventIndex> {
        self.failed
    }

    /// The name of the step's precondition.
    pub fn precondition(&self) -> Option<&str> {
        self.precondition.as_ref().map(|row| &*row.name)
    }
}

impl InputRow {
    /// What kind of parameter it is.
    pub fn kind(&self) -> InputKind {
        self.kind
    }

    /// Whether the step can run without it.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// The name of an injectable; empty for an input that takes events.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The event types it takes.
    pub fn events(&self) -> &[EventIndex] {
        &self.events
    }
}

impl OutputRow {
    /// The event type it emits.
    pub fn event(&self) -> EventIndex {
        self.event
    }

    /// Whether it enters the log later, when its time has come: a [`Timer`](crate::Timer), or that a request has
    /// [expired](crate::Expiring).
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// Whether it opens a branch per item.
    pub fn is_fan_out(&self) -> bool {
        self.fan_out.is_some()
    }

    /// Which fan-out it opens, if it is one.
    pub fn fan_out(&self) -> Option<FanOutIndex> {
        self.fan_out
    }
}

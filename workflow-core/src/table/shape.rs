//! A table as data: what decides how the scheduler behaves, by names, for journals and for whoever reads them without
//! the program that wrote them. How two of them differ is `difference`'s.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::Roles;
use crate::input::InputKind;

mod fingerprint;
mod of;
mod recorded;
mod text;

pub use recorded::RecordedTable;

/// A [`DependencyTable`](crate::DependencyTable) as data: the events and steps of a workflow, and what decides when a
/// step runs and what follows from that.
///
/// Each journal has that of its workflow ([`RecordedTable`](crate::RecordedTable)), so that a run can be explained and
/// drawn without the program that wrote it, and so that it is known what has changed when a run is to go on.
/// What only people read (descriptions), what is only handed in, what only checks ask (`reruns`, `loops`), and what
/// an attempt is bound by (retries, timeouts) is not in it.
///
/// ```
/// use workflow_core::{DependencyTable, EventDef, InputDef, OutputDef, Roles, StepDef};
///
/// let table = DependencyTable::builder("greeter")
///     .event(EventDef::new("Greet", Roles::NONE.start()))
///     .event(EventDef::new("Greeting", Roles::NONE.stop()))
///     .step(StepDef::new("greet").input(InputDef::one("Greet")).output(OutputDef::event("Greeting")))
///     .build()?;
/// let shape = table.shape();
/// assert_eq!(DependencyTable::from_shape(&shape)?.shape(), shape);
/// assert_eq!(shape.fingerprint(), "3573902dba8966da");
/// # Ok::<(), workflow_core::TableError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableShape {
    /// The name of the workflow.
    pub workflow: Arc<str>,
    /// The event types, in the table's order. What the table adds by itself (that a fan-out is gathered, that a step
    /// failed) is not among them.
    pub events: Vec<EventShape>,
    /// The steps, in declaration order.
    pub steps: Vec<StepShape>,
}

/// An event type of a [`TableShape`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventShape {
    /// The wire name.
    pub name: Arc<str>,
    /// What the event is for.
    #[serde(default, skip_serializing_if = "is_none")]
    pub roles: Roles,
    /// The version of its shape, from 1.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub version: u32,
    /// For a reply: the request that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_to: Option<Arc<str>>,
    /// For what says that a request expired: the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Arc<str>>,
}

/// A step of a [`TableShape`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepShape {
    /// The step's name.
    pub name: Arc<str>,
    /// Its parameters that take events, in their order.
    pub inputs: Vec<InputShape>,
    /// What it may emit, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputShape>,
    /// Its precondition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<PreconditionShape>,
    /// The steps whose failures it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub catches: Vec<Arc<str>>,
    /// How often it executes per scope, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_executions: Option<u32>,
    /// How many of its executions there are at a time, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Whether the run goes on when it fails.
    #[serde(default, skip_serializing_if = "is_false")]
    pub continue_on_error: bool,
}

/// A parameter of a [`StepShape`] that takes events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputShape {
    /// How it takes them.
    pub kind: InputKind,
    /// Whether the step can run without it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// The event types that it takes any of, in order; for a gather the event that it collects.
    pub events: Vec<Arc<str>>,
}

/// What a [`StepShape`] may emit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputShape {
    /// The event type.
    pub event: Arc<str>,
    /// How many one execution emits at least.
    pub least: u32,
    /// Whether one execution may emit more than one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub many: bool,
    /// Whether each is the item of a branch.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fan_out: bool,
    /// Whether it enters the log only when its time has come.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed: bool,
}

/// The precondition of a [`StepShape`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PreconditionShape {
    /// Its name.
    pub name: Arc<str>,
    /// Which of the step's inputs it takes, by their places.
    pub inputs: Vec<usize>,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_first(version: &u32) -> bool {
    *version == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(roles: &Roles) -> bool {
    *roles == Roles::NONE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl TableShape {
    /// A short text that tells tables apart: 16 hexadecimal digits, the 64-bit FNV-1a hash of the shape's JSON as this
    /// crate writes it. It is the same in every process and on every machine. Two tables that differ have the same one by
    /// accident alone, about once in 10¹⁹ pairs; it is no proof against whoever tries. O(rows).
    pub fn fingerprint(&self) -> String {
        fingerprint::of(self.json().get().as_bytes())
    }

    /// The event of this name. O(events).
    pub fn event(&self, name: &str) -> Option<&EventShape> {
        self.events.iter().find(|event| &*event.name == name)
    }

    /// The step of this name. O(steps).
    pub fn step(&self, name: &str) -> Option<&StepShape> {
        self.steps.iter().find(|step| &*step.name == name)
    }
}

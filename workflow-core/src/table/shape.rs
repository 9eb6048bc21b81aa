//! Shapes: tables as data, by names. A shape has all that decides how the scheduler behaves. Journals store
//! shapes, so their readers need no program. The module [`difference`](super::difference) compares two
//! shapes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::Roles;
use crate::spec::{InputKind, OnEnd};

mod fingerprint;
mod of;
mod recorded;
mod text;

pub use recorded::RecordedTable;

/// A [`DependencyTable`](crate::table::DependencyTable) as data: all that decides when a step runs and what follows.
///
/// Each journal has the shape of its workflow's table ([`RecordedTable`](crate::table::RecordedTable)). With it, a
/// run can be explained and drawn without the program that wrote it, and an engine can compare tables before
/// it resumes a run.
///
/// A shape lacks descriptions, injected parameters, keys that only checks use (`reruns`, `loops`), and
/// settings of attempts (retries, timeouts).
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
/// let shape = table.shape();
/// assert_eq!(DependencyTable::from_shape(&shape)?.shape(), shape);
/// assert_eq!(shape.fingerprint(), "3573902dba8966da");
/// # Ok::<(), workflow_core::table::TableError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableShape {
    /// The name of the workflow.
    pub workflow: Arc<str>,
    /// The declared event types, in the order of the table. Internal events, which complete fan-outs or
    /// report caught failures, are absent.
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
    /// The roles of the event.
    #[serde(default, skip_serializing_if = "is_none")]
    pub roles: Roles,
    /// The version of the event's serialised form, from 1.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub version: u32,
    /// For a reply: its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_to: Option<Arc<str>>,
    /// For an event that reports the expiry of a request: the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Arc<str>>,
}

/// A step of a [`TableShape`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepShape {
    /// The name of the step.
    pub name: Arc<str>,
    /// The inputs that take events, in order.
    pub inputs: Vec<InputShape>,
    /// The event types that the step may emit, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputShape>,
    /// The precondition, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<PreconditionShape>,
    /// The steps whose failures it catches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub catches: Vec<Arc<str>>,
    /// The most executions per scope; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_executions: Option<u32>,
    /// The most concurrent executions; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Whether the run continues when the step fails.
    #[serde(default, skip_serializing_if = "is_false")]
    pub continue_on_error: bool,
    /// Whether an attempt that may have begun is not made again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_most_once: bool,
    /// The ends of a run at which the step runs, of a clean-up step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_end: Option<OnEnd>,
    /// The engine's [limit](crate::Limit) of the step's attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Arc<str>>,
    /// The method that makes the [idempotency key](crate::RunInfo::idempotency_key) of an execution; `None` for the
    /// positions of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
}

/// A parameter of a [`StepShape`] that takes events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputShape {
    /// How the input takes its events.
    pub kind: InputKind,
    /// Whether the step can run without the input.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// Whether the step reads the input when another one triggers it. Such an input is optional too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub passive: bool,
    /// The event types, in order; for a gather those that it collects.
    pub events: Vec<Arc<str>>,
    /// For a gather that names its fan-out, the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Arc<str>>,
}

/// An event type that a [`StepShape`] may emit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputShape {
    /// The event type.
    pub event: Arc<str>,
    /// The fewest events that one execution emits.
    pub least: u32,
    /// Whether one execution may emit several.
    #[serde(default, skip_serializing_if = "is_false")]
    pub many: bool,
    /// Whether each event is the item of a branch.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fan_out: bool,
    /// Whether the event enters the log when a timer fires.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed: bool,
}

/// The precondition of a [`StepShape`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PreconditionShape {
    /// The name of the precondition.
    pub name: Arc<str>,
    /// The inputs of the step that it takes, as places in [`StepShape::inputs`].
    pub inputs: Vec<usize>,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_first(version: &u32) -> bool {
    *version == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_none(roles: &Roles) -> bool {
    *roles == Roles::NONE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl TableShape {
    /// A short text that identifies the table: 16 hexadecimal digits.
    ///
    /// The digits are the 64-bit FNV-1a hash of the shape's JSON as this crate writes it. The same table has
    /// the same fingerprint in every process and on every machine. Different tables collide about once in
    /// 10¹⁹ pairs. The fingerprint does not protect against deliberate collisions. O(rows).
    pub fn fingerprint(&self) -> String {
        fingerprint::of(self.json().get().as_bytes())
    }

    /// The event type of this name. O(events).
    pub fn event(&self, name: &str) -> Option<&EventShape> {
        self.events.iter().find(|event| &*event.name == name)
    }

    /// The step of this name. O(steps).
    pub fn step(&self, name: &str) -> Option<&StepShape> {
        self.steps.iter().find(|step| &*step.name == name)
    }
}

impl StepShape {
    /// The `concurrency` of the step, if the scheduler bounded it (S70).
    pub(crate) fn scheduled_concurrency(&self) -> Option<u32> {
        self.concurrency.filter(|_| self.limit.is_none())
    }
}

//! Tables built at run time, with events named by text.

use std::sync::Arc;

use super::graph::Rigour;
use super::{DependencyTable, StepPolicy};
use crate::error::TableError;
use crate::event::Roles;
use crate::input::InputKind;

mod from_shape;
mod resolve;

/// Builds a [`DependencyTable`] at run time; nothing is checked before [`build`](Self::build).
#[derive(Debug)]
pub struct TableBuilder {
    name: Arc<str>,
    description: Arc<str>,
    events: Vec<EventDef>,
    steps: Vec<StepDef>,
}

/// An event type of a run-time table.
#[derive(Debug, Clone)]
pub struct EventDef {
    name: Arc<str>,
    roles: Roles,
    replies_to: Option<Arc<str>>,
    expires: Option<Arc<str>>,
    version: u32,
}

impl EventDef {
    /// An event type with this wire name and these roles.
    pub fn new(name: impl Into<Arc<str>>, roles: Roles) -> Self {
        Self { name: name.into(), roles, replies_to: None, expires: None, version: 1 }
    }

    /// That a step failed, which no step emits: what an input that names it takes is the failures of the steps
    /// that its step [catches](StepDef::catches). A [`StepFailed`](crate::StepFailed) in a workflow.
    ///
    /// ```
    /// use workflow_core::{DependencyTable, EventDef, InputDef, OutputDef, Roles, StepDef};
    ///
    /// let table = DependencyTable::builder("research")
    ///     .event(EventDef::new("Question", Roles::NONE.start()))
    ///     .event(EventDef::new("Answer", Roles::NONE.stop()))
    ///     .event(EventDef::failure("StepFailed"))
    ///     .step(StepDef::new("answer").input(InputDef::one("Question")).output(OutputDef::event("Answer")))
    ///     .step(StepDef::new("fallback").input(InputDef::one("StepFailed")).output(OutputDef::event("Answer")))
    ///     .build()?;
    /// let failure = table.steps()[0].failure().unwrap();
    /// assert_eq!(table.events()[failure.get()].name(), "answer.failed");
    /// # Ok::<(), workflow_core::TableError>(())
    /// ```
    pub fn failure(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, Roles::NONE.failure())
    }

    /// The reply to the request of this name.
    pub fn reply_to(name: impl Into<Arc<str>>, request: impl Into<Arc<str>>) -> Self {
        Self { replies_to: Some(request.into()), ..Self::new(name, Roles::NONE.reply()) }
    }

    /// What says that the request of this name has expired, which has to have a reply too. A step that makes such requests emits both: the
    /// request as an [`event`](OutputDef::event), and this as a [`timer`](OutputDef::timer).
    pub fn expiry_of(name: impl Into<Arc<str>>, request: impl Into<Arc<str>>) -> Self {
        Self { expires: Some(request.into()), ..Self::new(name, Roles::NONE) }
    }

    /// Sets the version of its shape. Default: 1.
    pub fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }
}

/// One parameter of a step of a run-time table.
#[derive(Debug, Clone)]
pub struct InputDef {
    kind: InputKind,
    optional: bool,
    events: Vec<Arc<str>>,
}

impl InputDef {
    fn of<N: Into<Arc<str>>>(kind: InputKind, events: impl IntoIterator<Item = N>) -> Self {
        Self { kind, optional: false, events: events.into_iter().map(Into::into).collect() }
    }

    /// One event of this type.
    pub fn one(event: impl Into<Arc<str>>) -> Self {
        Self::of(InputKind::One, [event])
    }

    /// One event of any of these types.
    pub fn one_of<N: Into<Arc<str>>>(events: impl IntoIterator<Item = N>) -> Self {
        Self::of(InputKind::One, events)
    }

    /// Every event of these types so far.
    pub fn list<N: Into<Arc<str>>>(events: impl IntoIterator<Item = N>) -> Self {
        Self::of(InputKind::List, events)
    }

    /// Exactly the first `count` events of these types.
    pub fn fixed<N: Into<Arc<str>>>(count: u32, events: impl IntoIterator<Item = N>) -> Self {
        Self::of(InputKind::Fixed(count), events)
    }

    /// The reply of this name.
    pub fn reply(event: impl Into<Arc<str>>) -> Self {
        Self::of(InputKind::Reply, [event])
    }

    /// The settled branches that emitted this event.
    pub fn gather(event: impl Into<Arc<str>>) -> Self {
        Self::of(InputKind::Gather, [event])
    }

    /// The same, but the step can run without it.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
}

/// One thing a step of a run-time table may emit.
#[derive(Debug, Clone)]
pub struct OutputDef {
    event: Arc<str>,
    least: u32,
    many: bool,
    fan_out: bool,
    timed: bool,
}

impl OutputDef {
    /// Exactly one event of this type.
    pub fn event(event: impl Into<Arc<str>>) -> Self {
        Self { event: event.into(), least: 1, many: false, fan_out: false, timed: false }
    }

    /// One event of this type, or none.
    pub fn optional(event: impl Into<Arc<str>>) -> Self {
        Self { least: 0, ..Self::event(event) }
    }

    /// Any number of events of this type.
    pub fn many(event: impl Into<Arc<str>>) -> Self {
        Self { least: 0, many: true, ..Self::event(event) }
    }

    /// A branch per item of this type.
    pub fn fan_out(event: impl Into<Arc<str>>) -> Self {
        Self { fan_out: true, ..Self::event(event) }
    }

    /// Any number of events of this type, each when its time has come.
    pub fn timer(event: impl Into<Arc<str>>) -> Self {
        Self { timed: true, ..Self::many(event) }
    }
}

/// The precondition of a step of a run-time table.
#[derive(Debug, Clone)]
pub struct PreconditionDef {
    name: Arc<str>,
    inputs: Vec<InputDef>,
}

impl PreconditionDef {
    /// A precondition of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), inputs: Vec::new() }
    }

    /// Adds a parameter, which has to be among the step's inputs.
    pub fn input(mut self, input: InputDef) -> Self {
        self.inputs.push(input);
        self
    }
}

/// One step of a run-time table.
#[derive(Debug, Clone)]
pub struct StepDef {
    name: Arc<str>,
    description: Arc<str>,
    inputs: Vec<InputDef>,
    outputs: Vec<OutputDef>,
    precondition: Option<PreconditionDef>,
    policy: StepPolicy,
    catches: Option<Vec<Arc<str>>>,
}

impl StepDef {
    /// A step of this name, with neither inputs nor outputs.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: "".into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            precondition: None,
            policy: StepPolicy::DEFAULT,
            catches: None,
        }
    }

    /// Sets what drawings say of the step.
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// Adds a parameter.
    pub fn input(mut self, input: InputDef) -> Self {
        self.inputs.push(input);
        self
    }

    /// Adds something the step may emit.
    pub fn output(mut self, output: OutputDef) -> Self {
        self.outputs.push(output);
        self
    }

    /// Sets the precondition.
    pub fn precondition(self, precondition: PreconditionDef) -> Self {
        Self { precondition: Some(precondition), ..self }
    }

    /// Names the steps whose failures it takes. Without it a step that takes failures takes those of all
    /// steps that take none.
    pub fn catches<N: Into<Arc<str>>>(self, steps: impl IntoIterator<Item = N>) -> Self {
        Self { catches: Some(steps.into_iter().map(Into::into).collect()), ..self }
    }

    /// Sets the policy.
    pub fn policy(self, policy: StepPolicy) -> Self {
        Self { policy, ..self }
    }
}

impl TableBuilder {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self { name, description: "".into(), events: Vec::new(), steps: Vec::new() }
    }

    /// Sets what drawings say of the workflow.
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// Adds an event type.
    pub fn event(mut self, event: EventDef) -> Self {
        self.events.push(event);
        self
    }

    /// Adds a step; steps are evaluated in the order in which they were added.
    pub fn step(mut self, step: StepDef) -> Self {
        self.steps.push(step);
        self
    }

    /// Compiles the table, with the same checks as the compiler makes of a workflow's signatures.
    ///
    /// # Errors
    /// [`TableError`] with every problem the table has, unknown event names among them.
    pub fn build(self) -> Result<DependencyTable, TableError> {
        self.compile(Rigour::Everything)
    }

    /// Compiles the table with no more checks than the scheduler needs: that names are known, unique and well
    /// formed, replies belong to requests, limits are not 0, every step takes an event and every input names
    /// one, preconditions take what their steps take, gathers fit a fan-out and fan-outs end.
    ///
    /// Runs of such a table can be impossible to begin or to complete, loop for ever, and have steps that
    /// never run. That is of use to test or to explore the [`scheduler`](crate::scheduler), and for a table
    /// that is still being put together.
    ///
    /// ```
    /// use workflow_core::{DependencyTable, EventDef, InputDef, Roles, StepDef, TableProblem};
    ///
    /// let unfinished = || {
    ///     DependencyTable::builder("greeter")
    ///         .event(EventDef::new("Greet", Roles::NONE.start()))
    ///         .step(StepDef::new("greet").input(InputDef::one("Greet")))
    /// };
    /// assert_eq!(unfinished().build().unwrap_err().problems, [TableProblem::NoStop]);
    /// assert!(unfinished().build_unchecked().is_ok());
    /// ```
    ///
    /// # Errors
    /// [`TableError`] with every problem of these that the table has.
    pub fn build_unchecked(self) -> Result<DependencyTable, TableError> {
        self.compile(Rigour::Scheduler)
    }

    fn compile(self, rigour: Rigour) -> Result<DependencyTable, TableError> {
        self.draft().compile(rigour)
    }
}

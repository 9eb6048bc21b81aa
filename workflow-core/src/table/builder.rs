//! Builds tables at run time, from events and steps that refer to each other by name.

use std::sync::Arc;

use serde_json::Value;

use super::DependencyTable;
use super::graph::Strictness;
use crate::event::Roles;
use crate::retry::RetryPolicy;
use crate::spec::{InputKind, OnEnd, StepPolicy, TableError};

mod from_shape;
mod resolve;

/// Builds a [`DependencyTable`] at run time. [`build`](Self::build) checks it.
#[derive(Debug)]
pub struct TableBuilder {
    name: Arc<str>,
    description: Arc<str>,
    events: Vec<EventDef>,
    steps: Vec<StepDef>,
}

/// An event type of a table built at run time.
#[derive(Debug, Clone)]
pub struct EventDef {
    name: Arc<str>,
    roles: Roles,
    replies_to: Option<Arc<str>>,
    expires: Option<Arc<str>>,
    version: u32,
    schema: Option<Value>,
}

impl EventDef {
    /// Declares an event type with this wire name and these roles.
    pub fn new(name: impl Into<Arc<str>>, roles: Roles) -> Self {
        Self { name: name.into(), roles, replies_to: None, expires: None, version: 1, schema: None }
    }

    /// Declares the failure event, which no step emits.
    ///
    /// A step with an input of this event takes the failures of the steps that it
    /// [catches](StepDef::catches). In a typed workflow the event is [`StepFailed`](crate::StepFailed).
    ///
    /// ```
    /// use workflow_core::signature::Roles;
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
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
    /// # Ok::<(), workflow_core::table::TableError>(())
    /// ```
    pub fn failure(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, Roles::NONE.failure())
    }

    /// Declares the reply to the request of this name.
    pub fn reply_to(name: impl Into<Arc<str>>, request: impl Into<Arc<str>>) -> Self {
        Self { replies_to: Some(request.into()), ..Self::new(name, Roles::NONE.reply()) }
    }

    /// Declares the event that reports the expiry of the request of this name.
    ///
    /// The request must have a reply too. A step that makes such requests emits both: the request as an
    /// [`event`](OutputDef::event), and this event as a [`timer`](OutputDef::timer).
    pub fn expiry_of(name: impl Into<Arc<str>>, request: impl Into<Arc<str>>) -> Self {
        Self { expires: Some(request.into()), ..Self::new(name, Roles::NONE) }
    }

    /// Sets the version of the event's serialised form. Default: 1.
    pub fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// Sets the JSON schema of the event's data, of a reply that of the reply. Default: none.
    ///
    /// It is for front ends, which find it in [`Engine::hosted`](crate::Engine::hosted) and in open requests. The
    /// library does not check it: a [`RuntimeWorkflow`](crate::RuntimeWorkflow) checks JSON from outside in
    /// [`accept`](crate::Steps::accept).
    pub fn schema(self, schema: Value) -> Self {
        Self { schema: Some(schema), ..self }
    }
}

/// One parameter of a step of a table built at run time.
#[derive(Debug, Clone)]
pub struct InputDef {
    kind: InputKind,
    optional: bool,
    passive: bool,
    events: Vec<Arc<str>>,
    item: Option<Arc<str>>,
}

impl InputDef {
    fn of<N: Into<Arc<str>>>(kind: InputKind, events: impl IntoIterator<Item = N>) -> Self {
        let events = events.into_iter().map(Into::into).collect();
        Self { kind, optional: false, passive: false, events, item: None }
    }

    /// Takes one event of this type: the triggering one, else the latest.
    pub fn one(event: impl Into<Arc<str>>) -> Self {
        Self::of(InputKind::One, [event])
    }

    /// Takes one event of any of these types.
    pub fn one_of<N: Into<Arc<str>>>(events: impl IntoIterator<Item = N>) -> Self {
        Self::of(InputKind::One, events)
    }

    /// Takes every event of these types so far.
    pub fn list<N: Into<Arc<str>>>(events: impl IntoIterator<Item = N>) -> Self {
        Self::of(InputKind::List, events)
    }

    /// Takes exactly the first `count` events of these types.
    pub fn fixed<N: Into<Arc<str>>>(count: u32, events: impl IntoIterator<Item = N>) -> Self {
        Self::of(InputKind::Fixed(count), events)
    }

    /// Takes the reply of this name. That is the name of the reply, as [`EventDef::reply_to`] declares it, and not that of
    /// the request.
    pub fn reply(event: impl Into<Arc<str>>) -> Self {
        Self::of(InputKind::Reply, [event])
    }

    /// Takes the settled branches of the fan-outs whose branches can have this event.
    pub fn gather(event: impl Into<Arc<str>>) -> Self {
        Self::of(InputKind::Gather, [event])
    }

    /// Takes the settled branches of the fan-outs with this item and of no others, and their events of these types, in
    /// the order of each branch.
    ///
    /// Without any type, the branches come without events: with their items, failures and order.
    ///
    /// ```
    /// use workflow_core::signature::Roles;
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
    ///
    /// let table = DependencyTable::builder("review")
    ///     .event(EventDef::new("Book", Roles::NONE.start()))
    ///     .event(EventDef::new("Page", Roles::NONE))
    ///     .event(EventDef::new("Praise", Roles::NONE))
    ///     .event(EventDef::new("Blame", Roles::NONE))
    ///     .event(EventDef::new("Review", Roles::NONE.stop()))
    ///     .step(StepDef::new("split").input(InputDef::one("Book")).output(OutputDef::fan_out("Page")))
    ///     .step(
    ///         StepDef::new("read")
    ///             .input(InputDef::one("Page"))
    ///             .output(OutputDef::many("Praise"))
    ///             .output(OutputDef::many("Blame")),
    ///     )
    ///     .step(
    ///         StepDef::new("sum")
    ///             .input(InputDef::gather_of("Page", ["Praise", "Blame"]))
    ///             .output(OutputDef::event("Review")),
    ///     )
    ///     .build()?;
    /// assert_eq!(table.shape().steps[2].inputs[0].events, ["Praise".into(), "Blame".into()]);
    /// # Ok::<(), workflow_core::table::TableError>(())
    /// ```
    pub fn gather_of<N: Into<Arc<str>>>(
        item: impl Into<Arc<str>>,
        events: impl IntoIterator<Item = N>,
    ) -> Self {
        Self { item: Some(item.into()), ..Self::of(InputKind::Gather, events) }
    }

    /// Lets the step run without this input.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Reads the input when another one triggers the step, as [`Passive`](crate::Passive) does: of [`one`](Self::one),
    /// [`one_of`](Self::one_of) and [`list`](Self::list).
    ///
    /// The step runs without it too. Building a table reports any other kind of passive input.
    ///
    /// ```
    /// use workflow_core::signature::Roles;
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
    ///
    /// let table = DependencyTable::builder("desk")
    ///     .event(EventDef::new("Order", Roles::NONE.start()))
    ///     .event(EventDef::new("Price", Roles::NONE.external()))
    ///     .event(EventDef::new("Receipt", Roles::NONE.stop()))
    ///     .step(
    ///         StepDef::new("sell")
    ///             .input(InputDef::one("Order"))
    ///             .input(InputDef::one("Price").passive())
    ///             .output(OutputDef::event("Receipt")),
    ///     )
    ///     .build()?;
    /// assert!(table.steps()[0].inputs()[1].is_passive());
    /// # Ok::<(), workflow_core::table::TableError>(())
    /// ```
    pub fn passive(self) -> Self {
        Self { passive: true, ..self.optional() }
    }
}

/// One event type that a step of a table built at run time may emit.
#[derive(Debug, Clone)]
pub struct OutputDef {
    event: Arc<str>,
    least: u32,
    many: bool,
    fan_out: bool,
    timed: bool,
}

impl OutputDef {
    /// Emits exactly one event of this type.
    pub fn event(event: impl Into<Arc<str>>) -> Self {
        Self { event: event.into(), least: 1, many: false, fan_out: false, timed: false }
    }

    /// Emits at most one event of this type.
    pub fn optional(event: impl Into<Arc<str>>) -> Self {
        Self { least: 0, ..Self::event(event) }
    }

    /// Emits any number of events of this type.
    pub fn many(event: impl Into<Arc<str>>) -> Self {
        Self { least: 0, many: true, ..Self::event(event) }
    }

    /// Opens a branch per item of this type.
    pub fn fan_out(event: impl Into<Arc<str>>) -> Self {
        Self { fan_out: true, ..Self::event(event) }
    }

    /// Opens a branch per item of this type, or emits no fan-out at all.
    ///
    /// Without a fan-out, no gather of it follows; an empty one is gathered at once.
    pub fn optional_fan_out(event: impl Into<Arc<str>>) -> Self {
        Self { least: 0, ..Self::fan_out(event) }
    }

    /// Sets any number of timers for this event type. A due timer logs its event.
    pub fn timer(event: impl Into<Arc<str>>) -> Self {
        Self { timed: true, ..Self::many(event) }
    }
}

/// The precondition of a step of a table built at run time.
#[derive(Debug, Clone)]
pub struct PreconditionDef {
    name: Arc<str>,
    inputs: Vec<InputDef>,
}

impl PreconditionDef {
    /// Declares a precondition of this name, without parameters.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), inputs: Vec::new() }
    }

    /// Adds a parameter, which must be among the inputs of the step.
    pub fn input(mut self, input: InputDef) -> Self {
        self.inputs.push(input);
        self
    }
}

/// One step of a table built at run time.
#[derive(Debug, Clone)]
pub struct StepDef {
    name: Arc<str>,
    description: Arc<str>,
    inputs: Vec<InputDef>,
    outputs: Vec<OutputDef>,
    precondition: Option<PreconditionDef>,
    policy: StepPolicy,
    limit: Option<Arc<str>>,
    /// The method that makes the idempotency key of an execution, of a table that comes from a shape.
    key: Option<Arc<str>>,
    catches: Option<Vec<Arc<str>>>,
    on_end: Option<OnEnd>,
    retry: Option<RetryPolicy>,
    uses_context: bool,
}

impl StepDef {
    /// Declares a step of this name, without inputs and outputs.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: Arc::default(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            precondition: None,
            policy: StepPolicy::DEFAULT,
            limit: None,
            key: None,
            catches: None,
            on_end: None,
            retry: None,
            uses_context: false,
        }
    }

    /// Sets the description that drawings show. Default: empty.
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// Adds a parameter.
    pub fn input(mut self, input: InputDef) -> Self {
        self.inputs.push(input);
        self
    }

    /// Adds an event type that the step may emit.
    pub fn output(mut self, output: OutputDef) -> Self {
        self.outputs.push(output);
        self
    }

    /// Sets the precondition.
    pub fn precondition(self, precondition: PreconditionDef) -> Self {
        Self { precondition: Some(precondition), ..self }
    }

    /// Names the steps whose failures this step takes. Default: a step that takes failures takes those of all
    /// steps that take none.
    pub fn catches<N: Into<Arc<str>>>(self, steps: impl IntoIterator<Item = N>) -> Self {
        Self { catches: Some(steps.into_iter().map(Into::into).collect()), ..self }
    }

    /// Makes this a clean-up step: it runs at these ends of a run, and at no other time.
    ///
    /// A clean-up step emits nothing, catches nothing and is not caught. Its inputs belong to the run itself, not to
    /// branches.
    ///
    /// ```
    /// use workflow_core::signature::Roles;
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OnEnd, OutputDef, StepDef};
    ///
    /// let table = DependencyTable::builder("trip")
    ///     .event(EventDef::new("Trip", Roles::NONE.start()))
    ///     .event(EventDef::new("Booked", Roles::NONE))
    ///     .event(EventDef::new("Paid", Roles::NONE.stop()))
    ///     .step(StepDef::new("book").input(InputDef::one("Trip")).output(OutputDef::event("Booked")))
    ///     .step(StepDef::new("pay").input(InputDef::one("Booked")).output(OutputDef::event("Paid")))
    ///     .step(StepDef::new("unbook").input(InputDef::one("Booked")).on_end(OnEnd::ANY))
    ///     .build()?;
    /// assert_eq!(table.steps()[2].on_end(), Some(OnEnd::ANY));
    /// # Ok::<(), workflow_core::table::TableError>(())
    /// ```
    pub fn on_end(self, ends: OnEnd) -> Self {
        Self { on_end: Some(ends), ..self }
    }

    /// Names the engine's [limit](crate::Limit) of the step's attempts. Default: none.
    ///
    /// The scheduler then leaves the step's `concurrency` to the run, whose attempts wait for the limit.
    ///
    /// ```
    /// use workflow_core::signature::Roles;
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
    ///
    /// let table = DependencyTable::builder("order")
    ///     .event(EventDef::new("Order", Roles::NONE.start()))
    ///     .event(EventDef::new("Paid", Roles::NONE.stop()))
    ///     .step(StepDef::new("pay").input(InputDef::one("Order")).output(OutputDef::event("Paid")).limit("bank"))
    ///     .build()?;
    /// assert_eq!(table.steps()[0].limit(), Some("bank"));
    /// # Ok::<(), workflow_core::table::TableError>(())
    /// ```
    pub fn limit(self, name: impl Into<Arc<str>>) -> Self {
        Self { limit: Some(name.into()), ..self }
    }

    /// Sets the step's own retry policy. Default: that of the engine.
    ///
    /// A [`RuntimeWorkflow`](crate::RuntimeWorkflow) keeps it. It is no part of the table's shape.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        Self { retry: Some(policy), ..self }
    }

    /// Declares that the step uses the context of its run or its thread.
    ///
    /// [`StepCall::run_context`](crate::signature::StepCall::run_context) fails without it, and the builder of an engine
    /// refuses it where a restart would lose contexts.
    pub fn uses_context(self) -> Self {
        Self { uses_context: true, ..self }
    }

    /// Sets the policy. Default: [`StepPolicy::DEFAULT`].
    pub fn policy(self, policy: StepPolicy) -> Self {
        Self { policy, ..self }
    }
}

impl TableBuilder {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self { name, description: Arc::default(), events: Vec::new(), steps: Vec::new() }
    }

    /// Sets the description that drawings show. Default: empty.
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// Adds an event type.
    pub fn event(mut self, event: EventDef) -> Self {
        self.events.push(event);
        self
    }

    /// Adds a step. The scheduler evaluates steps in the order of these calls.
    pub fn step(mut self, step: StepDef) -> Self {
        self.steps.push(step);
        self
    }

    /// Compiles the table, with the checks that the compiler makes of a typed workflow.
    ///
    /// The cost grows about with the size of the table, where a branch counts once for each fan-out around it: 10,000 steps
    /// take some tens of milliseconds.
    ///
    /// # Errors
    /// [`TableError`] with every problem of the table, unknown event names among them.
    pub fn build(self) -> Result<DependencyTable, TableError> {
        self.compile(Strictness::Everything)
    }

    /// Compiles the table with only those checks that the scheduler needs.
    ///
    /// They are: names are known, unique and well formed; replies belong to requests; limits and timeouts are not 0; every
    /// step takes an event, and every input names one; a precondition takes what its step takes; gathers fit
    /// a fan-out, and fan-outs end.
    ///
    /// Runs of such a table may be impossible to begin or to complete, may loop for ever, and may have steps
    /// that never run. Use it to test or explore the [`scheduler`](crate::scheduler), and for a table that is
    /// not finished yet.
    ///
    /// ```
    /// use workflow_core::signature::Roles;
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, StepDef, TableProblem};
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
    /// [`TableError`] with every problem of this kind.
    pub fn build_unchecked(self) -> Result<DependencyTable, TableError> {
        self.compile(Strictness::Scheduler)
    }

    fn compile(self, strictness: Strictness) -> Result<DependencyTable, TableError> {
        self.draft().compile(strictness)
    }
}

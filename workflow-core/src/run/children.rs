//! Workflows that run workflows: the injectable through which a step starts child runs, and the names of child and
//! parent.
//!
//! ```text
//! parent run ── ChildRegistry: all its children, for its report and its end
//!    └ attempt ── AttemptChildren: the children of this attempt, their ids; drops awaited children with the attempt
//!         └ child run ── ParentLink: its link up (weak), the signal that it is no longer awaited, the lent permit
//! ```
//!
//! `Reattach` re-attaches parent and child after a resume. Limits and permits belong to the engine.
//!
//! Invariant: an awaited child ends before its execution, or learns that the store has the end of that (S38). Every child
//! ends before its cancelled parent (S31). Parents hold their children strongly, for their reports; children hold their parents weakly.

use std::any::Any;
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use crate::error::StepError;
use crate::event::{AnyEvent, StartEvent};
use crate::id::RunId;
use crate::input::{Injectables, Slot, StartedChildren, StepCall, StepInput};
use crate::outcome::{RunError, StartError};
use crate::run::{AnyRun, RunHandle, RunOptions, Start, output_of};
use crate::spec::InputSpec;
use crate::workflow::Workflow;
use futures_util::future::BoxFuture;
use serde::Serialize;

mod asking;
mod attempt;
mod parent_link;
mod reattach;
mod registry;

pub(super) use attempt::AttemptChildren;
pub(crate) use parent_link::{HostsRuns, ParentLink, Spawned};
pub(crate) use reattach::Reattach;
pub(crate) use registry::{ChildRegistry, Unrecorded};

/// Runs other workflows from within a step: `children: &Children`.
///
/// A child is a run of its own, with its own log, report and journal. The engine of the parent has to host its
/// workflow. It belongs to the execution that started it:
///
/// | | [`run`](Self::run) | [`start`](Self::start) |
/// |---|---|---|
/// | the step gets | the child's output, or how it ended | a [`RunHandle`] |
/// | the child ends with | the execution at the latest: when the future is dropped, the execution ends, is dropped or is cancelled | itself; when the parent is cancelled |
/// | the end of the parent | waits for the child's | waits for it only if the parent is cancelled |
/// | in the parent's report | with its own report | with its status |
/// | its thread | the parent's | the parent's, unless that was made for the parent alone |
///
/// A child's failure is a value; with `?` it becomes the step's error.
///
/// # Ids
/// A child's id begins with its parent's: `order-17/price-x3.1` is the first child of execution `x3`, an execution of
/// step `price`, in run `order-17`. Children are numbered in the order of the calls, and not of the polls. An id in
/// [`RunOptions`] replaces the number: `order-17/price-x3.eu`. A later attempt of the execution has children of its
/// own, because the awaited ones have ended: `order-17/price-x3.a2.1`.
///
/// # After a restart
/// An interrupted execution runs again, and finds the children that it began before by their ids. Open children
/// continue, and ended ones return their outcome. The child's journal counts: its thread, time, configuration, metadata
/// and start event are those of the first call, whatever the second call passes. So a step may depend on the time or on
/// chance. A call for another workflow is refused with [`StartError::WrongWorkflow`]. A call is refused with
/// [`StartError::DuplicateRun`] if the id belongs to a run that is no child of the execution, or if it mixes `run` and
/// `start`.
///
/// # Limits
/// Children nest three deep, or [`max_child_depth`](crate::EngineBuilder::max_child_depth). Eight children of an engine
/// have a permit to execute steps, or [`max_concurrent_children`](crate::EngineBuilder::max_concurrent_children).
/// Further children begin, and their steps wait for a permit, in order. A child that waits for a timer, a reply or an
/// external event needs no permit. A child with children of its own lends them its permit, so nested children never wait for each
/// other. Its other steps may run meanwhile, so more children may be active than there are permits. Children use no
/// permits of [`max_concurrent_runs`](crate::EngineBuilder::max_concurrent_runs).
///
/// # Display and observers
/// A parent also shows the items that its child shows, as [`DisplayItem::Child`](crate::DisplayItem::Child), and
/// retracts them with the items of its own attempt. Observers see [`ChildStarted`](crate::observe::Observed::ChildStarted) and
/// [`ChildEnded`](crate::observe::Observed::ChildEnded), and the child's own observations as those of any run. The child's
/// `tracing` span is inside the span of the execution.
///
/// ```
/// use workflow_core::prelude::*;
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(start)]
/// struct Order { prices: Vec<u64> }
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(start)]
/// struct PriceAsked { cents: u64 }
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(stop)]
/// struct Price { cents: u64 }
///
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// #[event(stop)]
/// struct Invoice { cents: u64 }
///
/// struct Pricing;
///
/// #[workflow]
/// impl Pricing {
///     #[step]
///     async fn price(&self, asked: &PriceAsked) -> Price {
///         Price { cents: asked.cents + asked.cents / 5 }
///     }
/// }
///
/// struct Orders;
///
/// #[workflow]
/// impl Orders {
///     #[step]
///     async fn bill(&self, order: &Order, children: &Children) -> Result<Invoice, RunError> {
///         let asked = order.prices.iter().map(|cents| PriceAsked { cents: *cents });
///         let prices = asked.map(|asked| children.run::<Pricing>(asked));
///         let prices = futures::future::try_join_all(prices).await?;
///         Ok(Invoice { cents: prices.iter().map(|price| price.cents).sum() })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Orders).workflow(Pricing).build()?;
/// let run = engine.start::<Orders>(Order { prices: vec![100, 200] }).await?;
/// assert_eq!(run.outcome().await?, Invoice { cents: 360 });
/// assert_eq!(run.report().await?.children.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Children {
    /// `None`: they belong to no attempt.
    children: Option<Arc<AttemptChildren>>,
}

impl StepCall {
    /// The children of this attempt.
    ///
    /// # Errors
    /// In a precondition, which runs no children.
    pub fn children(&self) -> Result<Children, StepError> {
        Ok(Children::of(self.attempt_children()?))
    }
}

impl Injectables {
    /// The children of the attempt.
    pub fn children(&self) -> Children {
        Children::of(self.attempt_children())
    }
}

impl Children {
    fn of(children: Arc<dyn StartedChildren>) -> Self {
        let children: Arc<dyn Any + Send + Sync> = children;
        Self { children: children.downcast().ok() }
    }

    /// Children of no run, to call a step in a test. They start nothing, as if the step had ended:
    /// [`StartError::ParentEnded`].
    ///
    /// ```
    /// use workflow_core::Children;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ask;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer;
    /// # struct Asking;
    /// # #[workflow]
    /// # impl Asking {
    /// #     #[step]
    /// #     async fn answer(&self, _ask: &Ask) -> Answer { Answer }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// assert!(Children::detached().run::<Asking>(Ask).await.is_err());
    /// # }
    /// ```
    pub fn detached() -> Self {
        Self { children: None }
    }

    fn run_start(&self, start: Start, options: RunOptions) -> BoxFuture<'static, Result<AnyEvent, RunError>> {
        match &self.children {
            Some(children) => children.run(start, options),
            None => Box::pin(ready(Err(no_parent().into()))),
        }
    }

    fn begin(&self, start: Start, options: RunOptions) -> BoxFuture<'static, Result<Spawned, StartError>> {
        match &self.children {
            Some(children) => children.start(start, options),
            None => Box::pin(ready(Err(no_parent()))),
        }
    }

    /// Runs a child to its end and returns its output, or the error that ended it.
    ///
    /// The child begins when the future is first polled. The engine cancels the child when the future is dropped or the
    /// execution ends. A start event that no step of `C` takes does not compile.
    ///
    /// # Errors
    /// As [`RunHandle::outcome`]. [`RunError::Start`] with an error of [`start`](Self::start), if the child was not
    /// started.
    ///
    /// The step does not see an error of the child's store, because the child has no outcome then. The parent stops as
    /// well, with [`RunError::Store`], and both can be resumed. With a store the same holds in these cases: the child's
    /// task is gone ([`RunError::Detached`]), another engine drives the child ([`StartError::Elsewhere`]), or the
    /// child's journal does not fit its workflow any more or the engine does not host it.
    ///
    /// ```
    /// # use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ask(String);
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer(String);
    /// # struct Careful;
    /// # #[workflow]
    /// # impl Careful {
    /// #     #[step]
    /// #     async fn answer(&self, ask: &Ask) -> Answer { Answer(ask.0.clone()) }
    /// # }
    /// # struct Quick;
    /// # #[workflow]
    /// # impl Quick {
    /// #     #[step]
    /// #     async fn answer(&self, ask: &Ask) -> Answer { Answer(ask.0.clone()) }
    /// # }
    /// async fn answer(ask: &Ask, children: &Children) -> Result<Answer, RunError> {
    ///     match children.run::<Careful>(ask.clone()).await {
    ///         Ok(answer) => Ok(answer),
    ///         Err(_) => children.run::<Quick>(ask.clone()).await,
    ///     }
    /// }
    /// ```
    pub fn run<C: Workflow>(
        &self,
        event: impl StartEvent,
    ) -> BoxFuture<'static, Result<C::Output, RunError>> {
        self.run_with::<C>(event, RunOptions::new())
    }

    /// Runs a child with an id, a thread, configuration or metadata of its own.
    ///
    /// An id in the options is the last part of the child's id.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::RunOptions;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ask;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer { parent: String }
    /// struct Child;
    ///
    /// #[workflow]
    /// impl Child {
    ///     #[step]
    ///     async fn answer(&self, _ask: &Ask, info: &RunInfo) -> Answer {
    ///         // A run that no step started has no parent.
    ///         Answer { parent: info.parent().map(|parent| parent.run.to_string()).unwrap_or_default() }
    ///     }
    /// }
    ///
    /// struct Parent;
    ///
    /// #[workflow]
    /// impl Parent {
    ///     #[step]
    ///     async fn delegate(&self, ask: &Ask, children: &Children) -> Result<Answer, RunError> {
    ///         children.run_with::<Child>(ask.clone(), RunOptions::new().id("eu")).await
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Parent).workflow(Child).build()?;
    /// let run = engine.start_with::<Parent>(Ask, RunOptions::new().id("order-17")).await?;
    /// assert_eq!(run.outcome().await?, Answer { parent: "order-17".into() });
    /// assert_eq!(run.report().await?.children[0].child.run.as_str(), "order-17/delegate-x1.eu");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_with<C: Workflow>(
        &self,
        event: impl StartEvent,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<C::Output, RunError>> {
        assert_taken::<C, _>(&event);
        let ended = self.run_start(Start::of::<C, _>(event), options);
        Box::pin(async move { output_of::<C>(&ended.await?) })
    }

    /// Starts an independent child and returns a handle on it.
    ///
    /// With a store the future completes when the store has the child's beginning.
    ///
    /// Unlike with [`run`](Self::run), the step sees an error of the child's store: here as [`StartError::Store`], and
    /// later from the handle as [`RunError::Store`]. The child's journal stays as it is, and
    /// [`resume_open_runs`](crate::Engine::resume_open_runs) or [`attach`](crate::Engine::attach) resumes the child. If
    /// the execution has ended by then, its result stands.
    ///
    /// A step of a *child* that waits for the outcome of a started child keeps its permit meanwhile, which
    /// [`run`](Self::run) would have lent. If every permit is held by such a step, they deadlock.
    ///
    /// # Errors
    /// [`StartError::UnknownWorkflow`] if the parent's engine does not host the workflow, [`StartError::TooDeep`],
    /// [`StartError::ParentEnded`] if the execution has ended, and the errors of
    /// [`Engine::start_with`](crate::Engine::start_with).
    pub fn start<C: Workflow>(
        &self,
        event: impl StartEvent,
    ) -> BoxFuture<'static, Result<RunHandle<C>, StartError>> {
        self.start_with::<C>(event, RunOptions::new())
    }

    /// Starts a child with an id, a thread, configuration or metadata of its own.
    ///
    /// An id in the options is the last part of the child's id.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with<C: Workflow>(
        &self,
        event: impl StartEvent,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<RunHandle<C>, StartError>> {
        assert_taken::<C, _>(&event);
        let started = self.begin(Start::of::<C, _>(event), options);
        Box::pin(async move { Ok(RunHandle::new(started.await?.shared)) })
    }
}

/// A child whose types the caller does not know.
impl Children {
    /// Runs a child to its end, by the names of its workflow and its start event, and returns its stop event.
    ///
    /// The start event comes as JSON, and is read as its type before the child begins. A
    /// [workflow](RunOptions::workflow) in the options counts for nothing.
    ///
    /// ```
    /// use serde_json::{Value, json};
    /// use workflow_core::prelude::*;
    /// use workflow_core::RunOptions;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Call { workflow: String, event: String, data: Value }
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Double(u32);
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Doubled(u32);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer(Value);
    /// # struct Doubling;
    /// # #[workflow]
    /// # impl Doubling {
    /// #     #[step]
    /// #     async fn double(&self, double: &Double) -> Doubled { Doubled(double.0 * 2) }
    /// # }
    /// struct Dispatcher;
    ///
    /// #[workflow]
    /// impl Dispatcher {
    ///     #[step]
    ///     async fn call(&self, call: &Call, children: &Children) -> Result<Answer, StepError> {
    ///         let child = children.run_json(&call.workflow, &call.event, &call.data, RunOptions::new());
    ///         Ok(Answer(child.await?.to_json().map_err(StepError::permanent)?))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Dispatcher).workflow(Doubling).build()?;
    /// let call = Call { workflow: "Doubling".into(), event: "Double".into(), data: json!(21) };
    /// assert_eq!(engine.start::<Dispatcher>(call).await?.outcome().await?, Answer(json!(42)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run). [`RunError::Start`] with [`StartError::UnknownEvent`] or [`StartError::Unfit`] if the JSON
    /// is no start event of the workflow.
    pub fn run_json(
        &self,
        workflow: &str,
        event: &str,
        data: impl Serialize,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<AnyEvent, RunError>> {
        self.run_start(Start::json(workflow, event, &data), options)
    }

    /// Starts an independent child, by the names of its workflow and its start event, which comes as JSON.
    ///
    /// # Errors
    /// As [`start`](Self::start), and [`StartError::UnknownEvent`] or [`StartError::Unfit`] if the JSON is no start event
    /// of the workflow.
    pub fn start_json(
        &self,
        workflow: &str,
        event: &str,
        data: impl Serialize,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<AnyRun, StartError>> {
        let started = self.begin(Start::json(workflow, event, &data), options);
        Box::pin(async move { Ok(AnyRun::new(started.await?.shared)) })
    }
}

fn no_parent() -> StartError {
    StartError::ParentEnded { run: RunId::new("detached") }
}

/// Does not compile if no step of `C` takes the event. An argument, because callers cannot name the event's type.
fn assert_taken<C: Workflow, S: StartEvent>(_: &S) {
    const { crate::spec::check::taken_from_outside::<S>(C::TABLE) };
}

impl fmt::Debug for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.children {
            Some(children) => write!(f, "Children of {children:?}"),
            None => f.write_str("Children of no run"),
        }
    }
}

impl Slot<'_> {
    /// The child runs of this execution.
    ///
    /// # Errors
    /// If the call is that of a precondition, which cannot start children.
    pub fn children(&self) -> Result<Children, StepError> {
        Ok(Children::of(self.attempt_children()?))
    }
}

impl StepInput for Children {
    const SPEC: InputSpec = InputSpec::injected("Children");
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Ok(Self::of(slot.attempt_children()?))
    }
}

impl StepInput for &Children {
    const SPEC: InputSpec = InputSpec::injected("Children");
    type Item<'a> = &'a Children;

    fn fill(slot: Slot<'_>) -> Result<&Children, StepError> {
        let children = Children::of(slot.attempt_children()?);
        Ok(slot.keep(children))
    }
}

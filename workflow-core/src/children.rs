//! Workflows that run workflows: the injectable through which a step starts child runs, and how a child and its
//! parent name each other. What a run knows of its children is in `family`, what a child knows of its parent in
//! `birth`, and what one execution has started in `brood`, and how parent and child
//! find each other after a restart in `reunion`; places and limits are the engine's.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::engine::Start;
use crate::error::{RunError, StartError, StepError};
use crate::event::StartEvent;
use crate::id::{ExecutionId, RunId};
use crate::input::{InputSpec, Slot, StepInput};
use crate::run::{RunHandle, RunOptions, output_of};
use crate::workflow::Workflow;

mod birth;
mod brood;
mod family;
mod reunion;

pub(crate) use birth::{Birth, HostsRuns, Spawned};
pub(crate) use brood::Brood;
pub(crate) use family::Family;
pub(crate) use reunion::Reunion;

/// Runs other workflows from within a step: `children: &Children`.
///
/// A child is a run of its own, with its own log, report and journal. The engine of the parent has to host its
/// workflow. It belongs to the execution that started it:
///
/// | | [`run`](Self::run) | [`start`](Self::start) |
/// |---|---|---|
/// | the step gets | the child's output, or how it ended | a [`RunHandle`] |
/// | the child ends with | the execution at the latest: when the future is dropped, the execution ends, is dropped or is cancelled | itself; when the parent is cancelled |
/// | the end of the parent | waits for the child's (S31) | waits for it only if the parent is cancelled |
/// | in the parent's report | with its own report | with its status |
/// | its thread | the parent's | the parent's, unless that was made for the parent alone |
///
/// A child's failure is a value; with `?` it becomes the step's error.
///
/// # Ids
/// A child's id is made of its parent's: `order-17/price-x3.1` is the first child of execution `x3`, which is one of
/// `price`, in the run `order-17`. They are numbered by the calls, not by who is polled first. An id that is given in
/// [`RunOptions`] stands for the number: `order-17/price-x3.eu`. A later attempt of the execution has children of its
/// own, since the first one's have ended: `order-17/price-x3.a2.1`.
///
/// # After a restart
/// An execution that had not ended runs again (S39), and finds the children that it began before under their ids: those
/// that go on do so, and of those that have ended it is told how. What their journals say counts: thread, time, configuration,
/// metadata and start event are those of the first time, whatever the call says now, so that what a step makes of the time
/// or of chance does no harm. Another workflow is refused with [`StartError::WrongWorkflow`], and the id of a run that is
/// no child of the execution, or is one of the other of `run` and `start`, with [`StartError::DuplicateRun`].
///
/// # Limits
/// Children nest three deep, or [`max_child_depth`](crate::EngineBuilder::max_child_depth). Eight children of an
/// engine have a place in which they execute steps, or
/// [`max_concurrent_children`](crate::EngineBuilder::max_concurrent_children); those above that begin, and their steps
/// wait for a place, in the order in which they come to it. A child that waits for a reply or an event takes no place.
/// One that runs children of its own lends them its place, so that nested children never wait for each other; its other
/// steps may go on meanwhile, so that more children may be at work than there are places. Children take none of the
/// places of [`max_concurrent_runs`](crate::EngineBuilder::max_concurrent_runs).
///
/// # What is seen of them
/// What a child shows is shown by its parent as well, as [`DisplayItem::Child`](crate::DisplayItem::Child), and is
/// taken back with what the parent's attempt showed (S25). Observers see
/// [`ChildStarted`](crate::Observed::ChildStarted) and [`ChildEnded`](crate::Observed::ChildEnded), and the child's own
/// observations as those of any run. Its `tracing` span lies in that of the execution.
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
    brood: Arc<Brood>,
}

impl Children {
    pub(crate) fn new(brood: Arc<Brood>) -> Self {
        Self { brood }
    }

    /// Runs a child to its end and returns its output, or how it ended without.
    ///
    /// The child begins when the future is first polled; dropping it cancels the child, and so does the end of the
    /// execution, wherever the future has gone. A start event that no step of `C` takes does not compile.
    ///
    /// # Errors
    /// As [`RunHandle::outcome`]; [`RunError::Start`] with what [`start`](Self::start) says if it was not started.
    ///
    /// That the store did not take what the child wrote is not told to the step, for it says nothing of how the child
    /// ends: the parent stops as well, with [`RunError::Store`], and both are left as they are, to be gone on with. With a
    /// store the same is true of a child whose task is gone ([`RunError::Abandoned`]), one that goes on in another engine
    /// ([`StartError::Elsewhere`]), and one that was begun before and cannot go on with its workflow as that is now, or
    /// whose workflow is not hosted any more.
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

    /// The same with a name, a thread, configuration or metadata of the child's own. An id in the options is the last
    /// part of the child's.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_with<C: Workflow>(
        &self,
        event: impl StartEvent,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<C::Output, RunError>> {
        assert_taken::<C, _>(&event);
        let ended = self.brood.run(Start::of::<C, _>(event), options);
        Box::pin(async move { output_of::<C>(&ended.await?) })
    }

    /// Starts a child that goes on by itself, and returns a handle on it; with a store, when the store has its
    /// beginning.
    ///
    /// Other than with [`run`](Self::run), the step is told if the store lets the child down: here with
    /// [`StartError::Store`], later by the handle, with [`RunError::Store`]. The child is left as it is then, and goes on with
    /// [`resume_open_runs`](crate::Engine::resume_open_runs) or [`attach`](crate::Engine::attach); the execution may have ended
    /// by then, and what it made of the error stands.
    ///
    /// A step of a *child* that waits for the outcome of what it has started keeps its place meanwhile, which
    /// [`run`](Self::run) would have lent: enough of them wait for each other.
    ///
    /// # Errors
    /// [`StartError::UnknownWorkflow`] if the parent's engine does not host the workflow,
    /// [`StartError::TooDeep`], [`StartError::ParentEnded`] if the execution has ended, and whatever
    /// [`Engine::start_with`](crate::Engine::start_with) says.
    pub fn start<C: Workflow>(
        &self,
        event: impl StartEvent,
    ) -> BoxFuture<'static, Result<RunHandle<C>, StartError>> {
        self.start_with::<C>(event, RunOptions::new())
    }

    /// The same with a name, a thread, configuration or metadata of the child's own. An id in the options is the last
    /// part of the child's.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with<C: Workflow>(
        &self,
        event: impl StartEvent,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<RunHandle<C>, StartError>> {
        assert_taken::<C, _>(&event);
        let started = self.brood.start(Start::of::<C, _>(event), options);
        Box::pin(async move { Ok(RunHandle::new(started.await?.shared)) })
    }
}

/// Does not compile if no step of `C` takes the event, whose type has no name where it is given.
fn assert_taken<C: Workflow, S: StartEvent>(_: &S) {
    const { crate::check::taken_from_outside::<C, S>() };
}

impl fmt::Debug for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Children of {:?}", self.brood)
    }
}

impl StepInput for Children {
    const SPEC: InputSpec = InputSpec::injected("Children");
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        slot.children()
    }
}

impl StepInput for &Children {
    const SPEC: InputSpec = InputSpec::injected("Children");
    type Item<'a> = &'a Children;

    fn fill(slot: Slot<'_>) -> Result<&Children, StepError> {
        let children = slot.children()?;
        Ok(slot.keep(children))
    }
}

/// A child run, as its parent knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildRun {
    /// The child.
    pub run: RunId,
    /// Its workflow.
    pub workflow: Arc<str>,
    /// The step that started it.
    pub step: Arc<str>,
    /// The execution of that step.
    pub execution: ExecutionId,
    /// The attempt of that execution.
    pub attempt: u32,
    /// Whether the execution waits for it: it was [run](Children::run), not [started](Children::start).
    pub awaited: bool,
}

/// The parent of a child run, as the child knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ParentRun {
    /// The parent.
    pub run: RunId,
    /// The step of it that started the child.
    pub step: Arc<str>,
    /// The execution of that step.
    pub execution: ExecutionId,
    /// The attempt of that execution.
    pub attempt: u32,
}

impl ParentRun {
    /// Why a child of it is cancelled.
    pub(crate) fn why_unwanted(&self, awaited: bool) -> Arc<str> {
        let Self { run, step, execution, .. } = self;
        if awaited {
            format!("{execution} of step `{step}` in run `{run}` no longer waits for it").into()
        } else {
            format!("its parent `{run}` was cancelled").into()
        }
    }

    /// Who the child is, as its parent names it.
    pub(crate) fn child(&self, run: RunId, workflow: Arc<str>, awaited: bool) -> ChildRun {
        let Self { step, execution, attempt, .. } = self.clone();
        ChildRun { run, workflow, step, execution, attempt, awaited }
    }
}

//! The handle of a run whose workflow is known: a typed view of the handle of any run.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{AnyRun, RunShared};
use crate::event::{AnyEvent, ExternalEvent, FromEvent};
use crate::id::Origin;
use crate::outcome::{RunError, SendError};
use crate::panics::{Panicked, caught};
use crate::workflow::Workflow;

/// A handle of a run of workflow `W`.
///
/// It dereferences to [`AnyRun`], which has the methods that need no type, and adds those that do. Clones are handles of
/// the same run. A run does not depend on its handles: it continues after the last one
/// is dropped. All methods can be called at any time. Their futures are `Send`; dropping one abandons the
/// call, never the run.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, greet: &Greet) -> Greeting {
/// #         Greeting(format!("Hello, {}!", greet.name))
/// #     }
/// # }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).build()?;
/// let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
/// assert_eq!(run.outcome().await?, Greeting("Hello, Ada!".into()));
/// assert_eq!(run.report().await?.executions("greet"), 1);
/// # Ok(())
/// # }
/// ```
pub struct RunHandle<W> {
    run: AnyRun,
    workflow: PhantomData<fn() -> W>,
}

impl<W> RunHandle<W> {
    pub(crate) fn new(shared: Arc<RunShared>) -> Self {
        Self { run: AnyRun::new(shared), workflow: PhantomData }
    }

    /// The same handle, whose events, replies and cancels have this origin.
    ///
    /// [`AnyRun::with_origin`] says what that means.
    pub fn with_origin(&self, origin: Origin) -> Self {
        Self { run: self.run.with_origin(origin), workflow: PhantomData }
    }

    /// The handle without the type of its workflow.
    pub fn any(&self) -> &AnyRun {
        &self.run
    }
}

impl<W: Workflow> RunHandle<W> {
    /// Sends an event to the run, and returns once the event is in the log.
    ///
    /// An event type that no step of `W` takes does not compile, unless it is a stop event of `W` too: then the
    /// send ends the run. If the returned future is dropped early, the event may or may not enter the log.
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run has ended. [`SendError::TooLarge`] if the event is larger than the
    /// engine's [`max_event_bytes`](crate::EngineBuilder::max_event_bytes). [`SendError::Unfit`] if the event
    /// has no JSON that the engine's store could give back. [`SendError::Refused`] if the store refuses the
    /// event for another reason. [`SendError::NotLoaded`] if the run waits unloaded in its store, and the
    /// store cannot read it now.
    pub fn send<E: ExternalEvent>(&self, event: E) -> BoxFuture<'_, Result<(), SendError>> {
        const { crate::spec::check::taken_from_outside::<E>(W::TABLE) };
        self.run.send(event)
    }

    /// Waits for the end, and returns the run's output. Can be called any number of times.
    ///
    /// # Errors
    /// A [`RunError`] with the reason why the run did not complete.
    pub async fn outcome(&self) -> Result<W::Output, RunError> {
        output_of::<W>(&self.run.shared.outcome().await?)
    }
}

impl<W> Deref for RunHandle<W> {
    type Target = AnyRun;

    fn deref(&self) -> &AnyRun {
        &self.run
    }
}

/// The run's output, from the stop event.
pub(crate) fn output_of<W: Workflow>(stop: &AnyEvent) -> Result<W::Output, RunError> {
    let event = || stop.name().into();
    let output = caught(|| W::Output::from_event(stop))
        .map_err(|Panicked { message }| RunError::OutputPanicked { event: event(), message })?;
    output.ok_or_else(|| RunError::UnexpectedStop { event: event(), workflow: W::TABLE.name() })
}

impl<W> Clone for RunHandle<W> {
    fn clone(&self) -> Self {
        Self { run: self.run.clone(), workflow: PhantomData }
    }
}

impl<W> fmt::Debug for RunHandle<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("run", &self.run.shared).finish_non_exhaustive()
    }
}

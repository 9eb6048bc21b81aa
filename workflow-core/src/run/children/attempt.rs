//! The children of one attempt of an execution: their ids, and the signal that drops the awaited ones with the attempt.

use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;

use super::registry::tell;
use super::{ParentLink, Spawned};
use crate::display::Display;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, ParentRun, RunId};
use crate::input::{CallContext, StartedChildren};
use crate::outcome::{RunError, StartError};
use crate::run::{DropSignal, RunOptions, RunShared, Start, begun};

/// The children that one attempt has started, shared by the `Children` values of the step.
pub(crate) struct AttemptChildren {
    /// The parent. A strong handle, because the attempt belongs to the parent.
    run: Arc<RunShared>,
    /// The names of run, step, execution and attempt in ids and journals of the children.
    names: ParentRun,
    display: Display,
    /// How often the execution had begun again when the attempt began.
    asked_in: u32,
    /// How many children the step asked for; the number in the next id.
    asked: AtomicU32,
    /// The drop signals of awaited children; `None` once the attempt has ended.
    awaited: Mutex<Option<Vec<Arc<DropSignal>>>>,
}

impl AttemptChildren {
    pub(crate) fn of(run: Arc<RunShared>, call: &CallContext, display: Display) -> Self {
        let (step, execution, attempt) = (run.step_name(call.step), call.execution, call.attempt);
        Self {
            names: ParentRun { run: run.id.clone(), step, execution, attempt },
            asked_in: run.children.get().map_or(0, |registry| registry.asked_in_under_way(execution)),
            run,
            display,
            asked: AtomicU32::new(0),
            awaited: Mutex::new(Some(Vec::new())),
        }
    }

    /// Runs a child to its end. The id is made before the first poll, so that it depends only on the order of the
    /// calls.
    pub(super) fn run(
        self: &Arc<Self>,
        start: Start,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<AnyEvent, RunError>> {
        let (children, options) = (Arc::clone(self), self.named(options));
        Box::pin(async move {
            let link = children.parent_link(true);
            let _until_here = EndOnDrop(Arc::clone(&children), Arc::clone(&link.drop_signal));
            children.wait_for(&link.drop_signal)?;
            let outcome = match children.spawn(start, options, link).await {
                Ok(spawned) => outcome(spawned).await,
                Err(error) => Err(error.into()),
            };
            if outcome
                .as_ref()
                .is_err_and(|error| children.run.stop_on_failure_of_child(error, children.asked()))
            {
                // The parent stops, or begins the execution anew, and drops this future.
                pending::<()>().await;
            }
            outcome
        })
    }

    /// Starts an independent child.
    pub(super) fn start(
        self: &Arc<Self>,
        start: Start,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<Spawned, StartError>> {
        let (children, options) = (Arc::clone(self), self.named(options));
        Box::pin(async move {
            if children.has_ended() {
                return Err(children.ended());
            }
            let spawned = children.spawn(start, options, children.parent_link(false)).await;
            if let Err(error @ StartError::Elsewhere { .. }) = &spawned {
                children.run.stop_on_child_store_failure(&error.clone().into());
            }
            if spawned.is_err() && children.run.stops() {
                pending::<()>().await;
            }
            let mut child = spawned?;
            if let Some(written) = child.written.take() {
                begun(&child.shared, written).await?;
            }
            Ok(child)
        })
    }

    /// The execution, and how often it had begun again.
    fn asked(&self) -> (ExecutionId, u32) {
        (self.names.execution, self.asked_in)
    }

    /// Awaited children were dropped. They learn of that once the store has the cause, unless their user dropped them.
    fn drop_children(&self, signals: Vec<Arc<DropSignal>>) {
        match self.run.children.get() {
            Some(registry) => registry.drop_children(self.asked(), signals),
            None => tell(signals),
        }
    }

    fn parent_link(&self, awaited: bool) -> ParentLink {
        ParentLink::of(&self.run, (self.names.clone(), self.asked_in), awaited, self.display.clone())
    }

    /// Starts the child, or finds it if an earlier process may have begun it.
    async fn spawn(
        &self,
        start: Start,
        mut options: RunOptions,
        link: ParentLink,
    ) -> Result<Spawned, StartError> {
        // The child takes turns of its own, and must not wait for this one.
        self.run.common.turns.release(&self.run.id, self.names.execution);
        let engine = self.run.common.engine().ok_or_else(|| self.ended())?;
        // A private thread ends with the parent, so an independent child does not share it.
        if link.awaited || !self.run.has_private_thread() {
            options.thread.get_or_insert_with(|| self.run.thread().clone());
        }
        let options = options.within_trace(self.run.trace_parent());
        let spawned = if link.may_have_earlier_children || engine.asks_sources(&start, &options) {
            // If the run ends meanwhile, it closes the registry, so that the child does not join it then.
            self.run.child_registry();
            engine.find_child(start, options, link).await
        } else {
            engine.start_child(start, options, link)
        };
        if matches!(spawned, Err(StartError::ShutDown))
            && self.run.common.is_durable
            && self.run.begins_nothing()
        {
            // The refusal is no answer for the step, which runs again in the next process.
            self.run.hold_up(self.names.execution).await;
        }
        spawned
    }

    fn wait_for(&self, drop_signal: &Arc<DropSignal>) -> Result<(), StartError> {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.as_mut().ok_or_else(|| self.ended())?.push(Arc::clone(drop_signal));
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn ended(&self) -> StartError {
        StartError::ParentEnded { run: self.names.run.clone() }
    }

    /// The options with the child's complete id.
    fn named(&self, mut options: RunOptions) -> RunOptions {
        let nth = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let name = options.id.take().map_or_else(|| nth.to_string(), |id| id.to_string());
        let ParentRun { run, step, execution, attempt } = &self.names;
        let again = if *attempt > 1 { format!(".a{attempt}") } else { String::new() };
        options.id(RunId::new(format!("{run}/{step}-{execution}{again}.{name}")))
    }
}

impl StartedChildren for AttemptChildren {
    /// Ends the attempt: its awaited children are dropped, even if the futures that await them are elsewhere.
    fn end(&self) {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner).take();
        // After the lock, because a woken child may end at once.
        if let Some(signals) = awaited {
            self.drop_children(signals);
        }
    }
}

impl fmt::Debug for AttemptChildren {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} in {}", self.names.execution, self.names.step, self.names.run)
    }
}

/// Waits until the store has the child's beginning, and then for its outcome.
async fn outcome(spawned: Spawned) -> Result<AnyEvent, RunError> {
    let Spawned { shared, written, .. } = spawned;
    if let Some(written) = written {
        begun(&shared, written).await?;
    }
    shared.outcome().await
}

/// Signals an awaited child that its future was dropped. A child that has ended ignores the signal.
struct EndOnDrop(Arc<AttemptChildren>, Arc<DropSignal>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.drop_children(vec![Arc::clone(&self.1)]);
    }
}

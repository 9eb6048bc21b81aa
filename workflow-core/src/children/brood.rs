//! The children of one attempt of an execution: their ids, and the end of those that it waits for.

use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;

use super::{Birth, ParentRun, Spawned};
use crate::display::Display;
use crate::engine::{Start, begun};
use crate::error::{RunError, StartError};
use crate::event::AnyEvent;
use crate::id::RunId;
use crate::input::CallContext;
use crate::run::{Dropped, RunOptions, RunShared};

/// What one attempt of an execution has started.
pub(crate) struct Brood {
    run: Arc<RunShared>,
    names: ParentRun,
    display: Display,
    /// How many children it was asked for.
    asked: AtomicU32,
    /// How to end those that it waits for; none once the attempt has ended.
    awaited: Mutex<Option<Vec<Arc<Dropped>>>>,
}

impl Brood {
    pub(crate) fn of(context: &CallContext, display: Display) -> Self {
        let CallContext { run, step, execution, attempt, .. } = context;
        let (step, execution, attempt) = (run.step_name(*step), *execution, *attempt);
        Self {
            names: ParentRun { run: run.id.clone(), step, execution, attempt },
            run: Arc::clone(run),
            display,
            asked: AtomicU32::new(0),
            awaited: Mutex::new(Some(Vec::new())),
        }
    }

    /// Runs a child to its end. Its id is taken now, so that it depends on the order of the calls alone.
    pub(super) fn run(
        self: &Arc<Self>,
        start: Start,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<AnyEvent, RunError>> {
        let (brood, options) = (Arc::clone(self), self.named(options));
        Box::pin(async move {
            let birth = brood.birth(true);
            let _until_here = EndOnDrop(Arc::clone(&birth.unwanted));
            brood.wait_for(&birth.unwanted)?;
            let outcome = match brood.spawn(start, options, birth).await {
                Ok(spawned) => outcome(spawned).await,
                Err(error) => Err(error.into()),
            };
            if outcome.as_ref().is_err_and(|error| brood.run.stops_after_child(error)) {
                // The run stops.
                pending::<()>().await;
            }
            outcome
        })
    }

    /// Starts a child that goes on by itself.
    pub(super) fn start(
        self: &Arc<Self>,
        start: Start,
        options: RunOptions,
    ) -> BoxFuture<'static, Result<Spawned, StartError>> {
        let (brood, options) = (Arc::clone(self), self.named(options));
        Box::pin(async move {
            if brood.has_ended() {
                return Err(brood.ended());
            }
            let spawned = brood.spawn(start, options, brood.birth(false)).await;
            if let Err(error @ StartError::Elsewhere { .. }) = &spawned {
                brood.run.stops_after_child(&error.clone().into());
            }
            if spawned.is_err() && brood.run.stops() {
                pending::<()>().await;
            }
            let mut child = spawned?;
            if let Some(written) = child.written.take() {
                begun(&child.shared, written).await?;
            }
            Ok(child)
        })
    }

    /// The attempt has ended: so do the children that it waits for, wherever the futures of them are.
    pub(crate) fn end(&self) {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Told after the lock: who is woken may end at once.
        for unwanted in awaited.into_iter().flatten() {
            unwanted.tell();
        }
    }

    fn birth(&self, awaited: bool) -> Birth {
        Birth::of(&self.run, self.names.clone(), awaited, self.display.clone())
    }

    async fn spawn(
        &self,
        start: Start,
        mut options: RunOptions,
        birth: Birth,
    ) -> Result<Spawned, StartError> {
        let engine = self.run.common.engine.upgrade().ok_or_else(|| self.ended())?;
        // A thread that was made for the parent alone goes with it.
        if birth.awaited || !self.run.has_private_thread() {
            options.thread.get_or_insert_with(|| self.run.thread().clone());
        }
        if birth.is_of_resumed {
            engine.find_child(start, options, birth).await
        } else {
            engine.start_child(start, options, birth)
        }
    }

    fn wait_for(&self, unwanted: &Arc<Dropped>) -> Result<(), StartError> {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.as_mut().ok_or_else(|| self.ended())?.push(Arc::clone(unwanted));
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn ended(&self) -> StartError {
        StartError::ParentEnded { run: self.names.run.clone() }
    }

    /// The options with the child's whole id.
    fn named(&self, mut options: RunOptions) -> RunOptions {
        let nth = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let name = options.id.take().map_or_else(|| nth.to_string(), |id| id.to_string());
        let ParentRun { run, step, execution, attempt } = &self.names;
        let again = if *attempt > 1 { format!(".a{attempt}") } else { String::new() };
        options.id(RunId::new(format!("{run}/{step}-{execution}{again}.{name}")))
    }
}

impl fmt::Debug for Brood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} in {}", self.names.execution, self.names.step, self.names.run)
    }
}

async fn outcome(spawned: Spawned) -> Result<AnyEvent, RunError> {
    let Spawned { shared, written, .. } = spawned;
    if let Some(written) = written {
        begun(&shared, written).await?;
    }
    shared.outcome().await
}

/// Ends a child that nobody waits for any more; one that has ended takes no notice.
struct EndOnDrop(Arc<Dropped>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.tell();
    }
}

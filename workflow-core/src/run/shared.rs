//! What a run's task, its handles and its executions share.

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;

use super::{CancelNote, Finished, LeaveNote, LetDown, Mailbox, RunReport, RunStatus};
use crate::cancel::Cancellations;
use crate::children::{Birth, Family, HostsRuns, ParentRun};
use crate::clock::EngineClock;
use crate::config::Config;
use crate::context::{
    ContextChange, ContextError, ContextScope, ContextStore, ContextValue, RunContext, ThreadContext,
};
use crate::display::{Display, DisplayHub};
use crate::engine::Lease;
use crate::error::RunError;
use crate::event::AnyEvent;
use crate::id::{EngineId, ExecutionId, RunId, ThreadId};
use crate::observe::{Observation, Observed, Observers};
use crate::store::StoreError;
use crate::table::DependencyTable;

pub(crate) struct RunShared {
    pub(crate) id: RunId,
    pub(crate) mailbox: Mailbox,
    pub(crate) thread: ThreadId,
    /// Whether the thread was made for this run alone.
    pub(crate) private_thread: bool,
    pub(crate) table: Arc<DependencyTable>,
    pub(crate) configs: HashMap<TypeId, Arc<dyn std::any::Any + Send + Sync>>,
    pub(crate) contexts: Arc<RunContexts>,
    pub(crate) context_used: AtomicBool,
    pub(crate) display: DisplayHub,
    pub(crate) cancellations: Cancellations,
    pub(crate) cancel_note: CancelNote,
    pub(crate) leave_note: LeaveNote,
    pub(crate) let_down: LetDown,
    /// Whether it has a journal.
    pub(crate) is_kept: bool,
    pub(crate) observers: Observers,
    /// The most bytes of JSON that an event may have.
    pub(crate) max_event_bytes: Option<usize>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) clock: EngineClock,
    /// The lease of its engine, if that takes one.
    pub(crate) lease: Option<Arc<Lease>>,
    /// How long the run may be active.
    pub(crate) timeout: Option<Duration>,
    pub(crate) status: watch::Sender<RunStatus>,
    /// Whether anybody was told that the run began.
    pub(crate) begun: AtomicBool,
    pub(crate) finished: OnceLock<Finished>,
    /// Who starts its children, and loads it again after it was let go of.
    pub(crate) engine: Weak<dyn HostsRuns>,
    /// How long it waits before it is let go of; none of one that never is.
    pub(crate) release_after: Option<Duration>,
    /// Dropped with the last handle of a run that was let go of.
    pub(crate) _gone: Option<HandlesGone>,
    /// Where it comes from, if it is a child.
    pub(crate) birth: Option<Birth>,
    /// The run that it is a child of, as its journal says.
    pub(crate) parent: Option<ParentRun>,
    /// Whether it goes on after an earlier process.
    pub(crate) resumed: bool,
    /// Made for the first child.
    pub(crate) children: OnceLock<Arc<Family>>,
}

impl RunShared {
    pub(crate) fn run_context(&self) -> RunContext {
        self.context_used.store(true, Ordering::Relaxed);
        RunContext::new(self.id.clone(), Arc::clone(&self.contexts) as _)
    }

    pub(crate) fn thread_context(&self) -> ThreadContext {
        self.context_used.store(true, Ordering::Relaxed);
        ThreadContext::new(self.thread.clone(), Arc::clone(&self.contexts) as _)
    }

    pub(crate) fn config<C: Send + Sync + 'static>(&self) -> Option<Config<C>> {
        let config = Arc::clone(self.configs.get(&TypeId::of::<C>())?);
        config.downcast().ok().map(Config::from_arc)
    }

    pub(crate) fn step_name(&self, step: usize) -> Arc<str> {
        Arc::clone(&self.table.steps[step].name)
    }

    pub(crate) fn display_for(&self, step: usize, execution: ExecutionId, attempt: u32) -> Display {
        self.display.display(self.step_name(step), execution, attempt)
    }

    /// Tells the observers, if there are any.
    pub(crate) fn tell(&self, what: impl FnOnce() -> Observed) {
        if !self.observers.is_empty() {
            self.observers.tell(&Observation {
                run: self.id.clone(),
                workflow: Arc::clone(&self.table.name),
                at: self.clock.now(),
                what: what(),
            });
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
        self.tell(|| Observed::RunStarted);
    }

    /// Tells of a run that an earlier process began.
    pub(super) fn goes_on(&self) {
        if !self.begun.swap(true, Ordering::Relaxed) {
            self.tell(|| Observed::RunResumed);
            // For whoever waits for that.
            self.status.send_modify(|_| {});
        }
    }

    /// Tells of a run that goes on after it was let go of.
    pub(super) fn loaded(&self) {
        self.begun.store(true, Ordering::Relaxed);
        self.status
            .send_if_modified(|status| std::mem::replace(status, RunStatus::Waiting) != RunStatus::Waiting);
        self.tell(|| Observed::RunLoaded);
    }

    /// Loads the run again if it was let go of; whether it goes on.
    pub(super) async fn wake(&self) -> Result<bool, StoreError> {
        match self.engine.upgrade() {
            Some(engine) => engine.wake(self.id.clone()).await,
            None => Ok(false),
        }
    }

    /// Cancels the run, also from where nothing can be waited for.
    pub(crate) fn cancel(self: &Arc<Self>, reason: &Arc<str>) {
        self.cancel_note.leave(reason);
        if let Some(engine) = self.engine.upgrade() {
            engine.note_left(Arc::clone(self));
        }
    }

    /// Whether a run that is to go on here does, once that is known.
    pub(crate) async fn went_on(&self) -> bool {
        let mut status = self.status.subscribe();
        // The sender lives in `self`.
        let _ = status.wait_for(|status| self.has_begun() || status.is_ended()).await;
        self.has_begun()
    }

    /// Who writes its journal, if its engine takes leases.
    pub(super) fn owner(&self) -> Option<&EngineId> {
        self.lease.as_ref().map(|lease| lease.engine())
    }

    /// Whether it, or a run above it, goes on after an earlier process: its children may have journals already.
    pub(crate) fn is_of_resumed(&self) -> bool {
        self.resumed || self.birth.as_ref().is_some_and(Birth::is_of_resumed)
    }

    pub(crate) fn status(&self) -> RunStatus {
        *self.status.borrow()
    }

    /// Which run it is a child of.
    pub(crate) fn parent(&self) -> Option<&ParentRun> {
        self.birth.as_ref().map(|birth| &birth.parent).or(self.parent.as_ref())
    }

    pub(crate) fn family(&self) -> &Arc<Family> {
        self.children.get_or_init(Arc::default)
    }

    /// What the run did, if it has ended and its task is not gone.
    pub(crate) fn report(&self) -> Option<Arc<RunReport>> {
        Some(self.finished.get()?.kept.as_ref()?.report())
    }

    pub(crate) async fn ended(&self) {
        self.wait_for(|status| status.is_ended()).await;
    }

    /// What the run ended with.
    pub(crate) async fn outcome(&self) -> Result<AnyEvent, RunError> {
        self.finished().await.outcome.clone()
    }

    pub(super) async fn finished(&self) -> &Finished {
        self.wait_for(|status| status.is_ended()).await;
        self.finished.get().expect("a run that has ended says how before it says so")
    }

    pub(super) async fn wait_for(&self, is_due: fn(&RunStatus) -> bool) -> RunStatus {
        let mut status = self.status.subscribe();
        // The sender lives in `self`.
        let due = status.wait_for(is_due).await.map(|status| *status);
        due.unwrap_or_else(|_| self.status())
    }

    /// Forgets what belongs to this run alone.
    pub(crate) async fn clear_contexts(&self) {
        if !self.context_used.load(Ordering::Relaxed) {
            return;
        }
        // A store that cannot clear keeps what it has; the run has its outcome already.
        let _ = self.contexts.store.clear(&ContextScope::Run(self.id.clone())).await;
        if self.private_thread {
            let _ = self.contexts.store.clear(&ContextScope::Thread(self.thread.clone())).await;
        }
    }
}

/// Tells the engine that a run has no handles any more.
pub(crate) struct HandlesGone {
    engine: Weak<dyn HostsRuns>,
    run: RunId,
}

impl HandlesGone {
    pub(crate) fn of(engine: Weak<dyn HostsRuns>, run: RunId) -> Self {
        Self { engine, run }
    }
}

impl Drop for HandlesGone {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.handles_gone(&self.run);
        }
    }
}

/// The context store as one run sees it: closed once the run has ended, so that a step which is still being
/// stopped cannot write any more.
pub(crate) struct RunContexts {
    store: Arc<dyn ContextStore>,
    closed: AtomicBool,
}

impl RunContexts {
    pub(crate) fn new(store: Arc<dyn ContextStore>) -> Self {
        Self { store, closed: AtomicBool::new(false) }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    fn open(&self) -> Result<&dyn ContextStore, ContextError> {
        if self.closed.load(Ordering::Acquire) { Err(ContextError::RunEnded) } else { Ok(&*self.store) }
    }
}

impl ContextStore for RunContexts {
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.open().map_or_else(refused, |store| store.get(scope, key))
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.open().map_or_else(refused, |store| store.set(scope, key, value))
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.open().map_or_else(refused, |store| store.update(scope, key, change))
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        self.open().map_or_else(refused, |store| store.list(scope, after, at_most))
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        self.open().map_or_else(refused, |store| store.clear(scope))
    }
}

fn refused<'a, T: Send + 'a>(error: ContextError) -> BoxFuture<'a, Result<T, ContextError>> {
    Box::pin(std::future::ready(Err(error)))
}

impl fmt::Debug for RunShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .field("workflow", &self.table.name)
            .finish_non_exhaustive()
    }
}

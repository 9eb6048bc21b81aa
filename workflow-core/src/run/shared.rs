//! What a run's task, its handles and its executions share.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::task::AtomicWaker;

use super::{CancelNote, Common, Finished, LetDown, Mailbox, RunReport, RunStatus, Standing};
use crate::cancel::Cancellations;
use crate::children::{Birth, Family, ParentRun};
use crate::config::Config;
use crate::context::{
    ContextChange, ContextError, ContextScope, ContextStore, ContextValue, MemoryContexts, PRIVATE_THREAD,
    RunContext, ThreadContext,
};
use crate::display::{Display, DisplayHub, DisplayItem, Shown};
use crate::error::RunError;
use crate::event::AnyEvent;
use crate::id::{EngineId, ExecutionId, RunId, ThreadId};
use crate::observe::{Observation, Observed};
use crate::store::StoreError;
use crate::table::DependencyTable;

/// There is one for each run, so that what only some of them have is made when it is needed.
pub(crate) struct RunShared {
    pub(crate) id: RunId,
    pub(crate) common: Arc<Common>,
    pub(crate) table: Arc<DependencyTable>,
    /// Made when somebody asks for it, if the run was given none.
    thread: OnceLock<ThreadId>,
    /// How long the run may be active.
    pub(crate) timeout: Option<Duration>,
    peculiar: Option<Box<Peculiar>>,
    /// Wakes its task: something is in the mailbox, or a note beside it.
    pub(crate) bell: AtomicWaker,
    pub(crate) mailbox: Mailbox,
    pub(crate) standing: Standing,
    pub(crate) cancel_note: CancelNote,
    pub(crate) leave_note: AtomicBool,
    pub(crate) let_down: LetDown,
    /// Whether anybody was told that the run began.
    begun: AtomicBool,
    /// Whether the thread was made for this run alone.
    private_thread: bool,
    pub(crate) contexts: Contexts,
    pub(crate) shown: Shown,
    pub(crate) cancellations: Cancellations,
    /// Made for the first child.
    pub(crate) children: OnceLock<Arc<Family>>,
    pub(crate) finished: OnceLock<Box<Finished>>,
}

/// What few runs have.
#[derive(Default)]
pub(crate) struct Peculiar {
    pub(crate) configs: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    pub(crate) metadata: BTreeMap<String, String>,
    /// Where it comes from, if it is a child.
    pub(crate) birth: Option<Birth>,
    /// The run that it is a child of, as its journal says.
    pub(crate) parent: Option<ParentRun>,
    /// Whether it goes on after an earlier process.
    pub(crate) resumed: bool,
}

impl Peculiar {
    fn is_nothing(&self) -> bool {
        let Self { configs, metadata, birth, parent, resumed } = self;
        configs.is_empty() && metadata.is_empty() && birth.is_none() && parent.is_none() && !resumed
    }
}

impl RunShared {
    pub(crate) fn new(
        id: RunId,
        thread: Option<ThreadId>,
        timeout: Option<Duration>,
        table: Arc<DependencyTable>,
        common: Arc<Common>,
        peculiar: Peculiar,
    ) -> Self {
        Self {
            id,
            table,
            private_thread: thread.is_none(),
            thread: thread.map(OnceLock::from).unwrap_or_default(),
            timeout,
            peculiar: (!peculiar.is_nothing()).then(|| Box::new(peculiar)),
            bell: AtomicWaker::new(),
            mailbox: Mailbox::new(common.settings.mailbox_capacity),
            standing: Standing::new(),
            cancel_note: CancelNote::default(),
            leave_note: AtomicBool::new(false),
            let_down: LetDown::default(),
            begun: AtomicBool::new(false),
            contexts: Contexts::default(),
            shown: Shown::default(),
            cancellations: Cancellations::default(),
            children: OnceLock::new(),
            finished: OnceLock::new(),
            common,
        }
    }

    /// The same as its journal tells of it.
    pub(crate) fn restored(mut self, private_thread: bool, timeout: Option<Duration>) -> Self {
        (self.private_thread, self.timeout) = (private_thread, timeout);
        // What it has in contexts may be an earlier process's.
        self.contexts.note_use();
        self
    }

    /// The same as one that goes on after an earlier process.
    pub(crate) fn resumed(mut self, parent: Option<ParentRun>) -> Self {
        let peculiar = self.peculiar.get_or_insert_default();
        (peculiar.parent, peculiar.resumed) = (parent, true);
        self
    }

    pub(crate) fn thread(&self) -> &ThreadId {
        self.thread.get_or_init(ThreadId::generate)
    }

    pub(crate) fn has_private_thread(&self) -> bool {
        self.private_thread
    }

    pub(crate) fn metadata(&self) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.peculiar.as_ref().map_or(&NONE, |peculiar| &peculiar.metadata)
    }

    pub(crate) fn birth(&self) -> Option<&Birth> {
        self.peculiar.as_ref()?.birth.as_ref()
    }

    pub(crate) fn run_context(self: &Arc<Self>) -> RunContext {
        RunContext::new(self.id.clone(), self.contexts.of(self))
    }

    pub(crate) fn thread_context(self: &Arc<Self>) -> ThreadContext {
        ThreadContext::new(self.thread().clone(), self.contexts.of(self))
    }

    /// The thread that the run writes to, if it was made for one run alone: for this one, or for one above it that waits
    /// for this one. O(1).
    pub(crate) fn private_thread(self: &Arc<Self>) -> Option<PrivateThread> {
        if self.private_thread {
            let (owner, run, thread) = (Arc::downgrade(self), self.id.clone(), self.thread().clone());
            return Some(PrivateThread { owner, run, thread });
        }
        let lent = self.birth()?.private_thread.as_ref();
        lent.filter(|lent| lent.thread == *self.thread()).cloned()
    }

    pub(crate) fn config<C: Send + Sync + 'static>(&self) -> Option<Config<C>> {
        let config = Arc::clone(self.peculiar.as_ref()?.configs.get(&TypeId::of::<C>())?);
        config.downcast().ok().map(Config::from_arc)
    }

    pub(crate) fn step_name(&self, step: usize) -> Arc<str> {
        Arc::clone(&self.table.steps[step].name)
    }

    /// What it shows; it is told to the observers too, if there are any.
    pub(crate) fn display(&self) -> DisplayHub {
        self.shown.hub(|| {
            let hub = DisplayHub::new(self.common.settings.display_capacity);
            if self.common.observers.is_empty() {
                return hub;
            }
            let (run, workflow) = (self.id.clone(), Arc::clone(&self.table.name));
            let common = Arc::clone(&self.common);
            hub.heard_by(move |item| {
                // Observers have heard it of the child.
                if matches!(item, DisplayItem::Child { .. }) {
                    return;
                }
                let (run, workflow, what) = (run.clone(), Arc::clone(&workflow), Observed::Displayed(item));
                common.observers.tell(&Observation { run, workflow, at: common.clock.shown(), what });
            })
        })
    }

    pub(crate) fn display_for(&self, step: usize, execution: ExecutionId, attempt: u32) -> Display {
        self.display().display(self.step_name(step), execution, attempt)
    }

    /// Tells the observers, if there are any.
    #[inline]
    pub(crate) fn tell(&self, what: impl FnOnce() -> Observed) {
        if !self.common.observers.is_empty() {
            self.observed(what());
        }
    }

    fn observed(&self, what: Observed) {
        let (run, workflow) = (self.id.clone(), Arc::clone(&self.table.name));
        self.common.observers.tell(&Observation { run, workflow, at: self.common.clock.shown(), what });
    }

    /// Whether there is something in the mailbox or beside it.
    pub(super) fn has_news(&self) -> bool {
        self.mailbox.has_commands() || self.cancel_note.left().is_some()
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
            self.standing.look_again();
        }
    }

    /// Tells of a run that goes on after it was let go of.
    pub(super) fn loaded(&self) {
        self.begun.store(true, Ordering::Relaxed);
        if self.status() != RunStatus::Waiting {
            self.standing.set(RunStatus::Waiting);
        }
        self.tell(|| Observed::RunLoaded);
    }

    /// Loads the run again if it was let go of; whether it goes on. One that has ended does not, whatever run has its id by
    /// now.
    pub(super) async fn wake(&self) -> Result<bool, StoreError> {
        match self.common.engine.upgrade().filter(|_| self.finished.get().is_none()) {
            Some(engine) => engine.wake(self.id.clone()).await,
            None => Ok(false),
        }
    }

    /// Cancels the run, also from where nothing can be waited for.
    pub(crate) fn cancel(self: &Arc<Self>, reason: &Arc<str>) {
        self.note_cancel(reason);
        if let Some(engine) = self.common.engine.upgrade().filter(|_| self.finished.get().is_none()) {
            engine.note_left(Arc::clone(self));
        }
    }

    /// Whether a run that is to go on here does, once that is known.
    pub(crate) async fn went_on(&self) -> bool {
        self.standing.wait_for(|status| self.has_begun() || status.is_ended()).await;
        self.has_begun()
    }

    /// Who writes its journal, if its engine takes leases.
    pub(super) fn owner(&self) -> Option<&EngineId> {
        self.common.lease.as_ref().map(|lease| lease.engine())
    }

    /// Whether it, or a run above it, goes on after an earlier process: its children may have journals already.
    pub(crate) fn is_of_resumed(&self) -> bool {
        let is_resumed = |peculiar: &Peculiar| {
            peculiar.resumed || peculiar.birth.as_ref().is_some_and(|birth| birth.is_of_resumed)
        };
        self.peculiar.as_deref().is_some_and(is_resumed)
    }

    pub(crate) fn status(&self) -> RunStatus {
        self.standing.now()
    }

    /// Which run it is a child of.
    pub(crate) fn parent(&self) -> Option<&ParentRun> {
        let peculiar = self.peculiar.as_ref()?;
        peculiar.birth.as_ref().map(|birth| &birth.parent).or(peculiar.parent.as_ref())
    }

    pub(crate) fn family(&self) -> &Arc<Family> {
        self.children.get_or_init(Arc::default)
    }

    /// What the run did, if it has ended and its task is not gone.
    pub(crate) fn report(&self) -> Option<Arc<RunReport>> {
        if let Some(family) = self.children.get() {
            family.make_reports();
        }
        self.made_report()
    }

    /// The same where the reports of its children have been made.
    pub(crate) fn made_report(&self) -> Option<Arc<RunReport>> {
        Some(self.finished.get()?.kept.as_ref()?.report(self))
    }

    pub(crate) async fn ended(&self) {
        self.wait_for(RunStatus::is_ended).await;
    }

    /// What the run ended with.
    pub(crate) async fn outcome(&self) -> Result<AnyEvent, RunError> {
        self.finished().await.outcome.clone()
    }

    pub(super) async fn finished(&self) -> &Finished {
        self.wait_for(RunStatus::is_ended).await;
        self.finished.get().expect("a run that has ended says how before it says so")
    }

    pub(super) async fn wait_for(&self, is_due: fn(RunStatus) -> bool) -> RunStatus {
        self.standing.wait_for(is_due).await
    }

    /// Forgets what belongs to this run alone.
    pub(crate) async fn clear_contexts(&self) {
        // A store that cannot clear keeps what it has until runs are resumed or removed; the run has its outcome already.
        if let Some(engine) = self.common.engine.upgrade() {
            let thread = self.thread.get().filter(|_| self.private_thread).cloned();
            engine.clear_contexts(self.id.clone(), thread).await;
        }
    }
}

/// A thread that was made for one run alone: what is in it goes with the run.
#[derive(Debug, Clone)]
pub(crate) struct PrivateThread {
    owner: Weak<RunShared>,
    run: RunId,
    thread: ThreadId,
}

impl Drop for RunShared {
    /// The engine keeps nothing for the handles of a run that was let go of once there are none.
    fn drop(&mut self) {
        if self.common.settings.idle_timeout.is_some()
            && let Some(engine) = self.common.engine.upgrade()
        {
            engine.handles_gone(&self.id);
        }
    }
}

/// The contexts of one run.
#[derive(Default)]
pub(crate) struct Contexts(Mutex<HandedOut>);

#[derive(Default)]
struct HandedOut {
    /// Made for the first who wants a context.
    contexts: Option<Arc<RunContexts>>,
    /// Whether there may be something in them.
    used: bool,
    closed: bool,
}

impl Contexts {
    fn of(&self, run: &Arc<RunShared>) -> Arc<dyn ContextStore> {
        let mut out = self.lock();
        let closed = out.closed;
        let open = if closed { None } else { run.common.contexts.upgrade() };
        // Of a run that has ended, and of one without an engine, nobody can use them.
        let Some(store) = open else { return Arc::new(RunContexts::closed()) };
        out.used = true;
        let made = || Arc::new(RunContexts::of(store, run));
        Arc::<RunContexts>::clone(out.contexts.get_or_insert_with(made))
    }

    fn note_use(&self) {
        self.lock().used = true;
    }

    /// Whether there is something to be cleared.
    pub(super) fn are_used(&self) -> bool {
        self.lock().used
    }

    /// From here on nobody can use them. Executions that are still being stopped may have them, the run does not.
    pub(super) fn close(&self) {
        let mut out = self.lock();
        out.closed = true;
        let contexts = out.contexts.take();
        drop(out);
        if let Some(contexts) = contexts {
            contexts.closed.store(true, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HandedOut> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The context store as one run sees it: closed once the run has ended, so that a step which is still being
/// stopped cannot write any more.
struct RunContexts {
    store: Arc<dyn ContextStore>,
    closed: AtomicBool,
    /// The thread of the run, if it goes with a run.
    private: Option<PrivateThread>,
    /// Whether its journal outlives the process, and the contexts with it.
    is_kept: bool,
    /// Whether the store knows that the thread goes with a run, or need not.
    marked: AtomicBool,
}

impl RunContexts {
    fn of(store: Arc<dyn ContextStore>, run: &Arc<RunShared>) -> Self {
        let private = run.private_thread();
        let (closed, is_kept, marked) = (false.into(), run.common.is_kept, private.is_none().into());
        Self { store, closed, private, is_kept, marked }
    }

    fn closed() -> Self {
        let store = Arc::new(MemoryContexts::default());
        Self { store, closed: true.into(), private: None, is_kept: false, marked: true.into() }
    }

    fn open(&self) -> Result<&dyn ContextStore, ContextError> {
        if self.closed.load(Ordering::Acquire) { Err(ContextError::RunEnded) } else { Ok(&*self.store) }
    }

    /// The thread that the scope is, if nobody has said yet that it goes with a run.
    fn unmarked(&self, scope: &ContextScope) -> Option<&PrivateThread> {
        let private = self.private.as_ref().filter(|_| !self.marked.load(Ordering::Acquire))?;
        matches!(scope, ContextScope::Thread(thread) if *thread == private.thread).then_some(private)
    }

    /// Says which run the thread goes with, before the first value of it is written: to the run, and to the store, for
    /// the case that the process ends before the run's contexts are cleared.
    async fn mark(&self, private: &PrivateThread) -> Result<(), ContextError> {
        let PrivateThread { owner, run, thread } = private;
        if let Some(owner) = owner.upgrade() {
            owner.contexts.note_use();
        }
        if self.is_kept {
            let (scope, value) = (ContextScope::Run(run.clone()), ContextValue::new(thread.clone()));
            self.open()?.set(&scope, PRIVATE_THREAD, Some(value)).await?;
        }
        self.marked.store(true, Ordering::Release);
        Ok(())
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
        let store = match self.open() {
            Ok(store) => store,
            Err(error) => return refused(error),
        };
        match self.unmarked(scope) {
            None => store.set(scope, key, value),
            Some(private) => Box::pin(async move {
                self.mark(private).await?;
                self.open()?.set(scope, key, value).await
            }),
        }
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        let store = match self.open() {
            Ok(store) => store,
            Err(error) => return refused(error),
        };
        match self.unmarked(scope) {
            None => store.update(scope, key, change),
            Some(private) => Box::pin(async move {
                self.mark(private).await?;
                self.open()?.update(scope, key, change).await
            }),
        }
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

    fn serialises(&self) -> bool {
        self.store.serialises()
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

//! The contexts of one run: its own, and that of its thread. They are closed when the run ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use futures_util::future::BoxFuture;

use super::RunShared;
use crate::context::{ContextChange, ContextError, ContextScope, ContextStore, ContextValue, PRIVATE_THREAD};
use crate::id::{RunId, ThreadId};
use crate::panics::locked;

/// The thread of a run, and the context store as its executions see it.
pub(crate) struct Contexts {
    /// Generated on first use, if the run was started without a thread.
    thread: OnceLock<ThreadId>,
    /// Whether the thread belongs to this run alone.
    is_private: bool,
    out: Mutex<HandedOut>,
}

#[derive(Default)]
struct HandedOut {
    /// Created for the first execution that uses a context.
    contexts: Option<Arc<RunContexts>>,
    /// Whether the contexts may have values, which the end of the run then clears.
    used: bool,
    closed: bool,
}

/// A thread that belongs to one run alone: its context is cleared with the run.
#[derive(Debug, Clone)]
pub(crate) struct PrivateThread {
    owner: Weak<RunShared>,
    run: RunId,
    thread: ThreadId,
}

impl PrivateThread {
    /// The thread of a run that has one of its own.
    pub(super) fn of(run: &Arc<RunShared>) -> Self {
        Self { owner: Arc::downgrade(run), run: run.id.clone(), thread: run.thread().clone() }
    }

    pub(super) fn is(&self, thread: &ThreadId) -> bool {
        self.thread == *thread
    }
}

impl Contexts {
    /// The contexts of a run on this thread, or on a generated one of its own.
    pub(super) fn new(thread: Option<ThreadId>) -> Self {
        let is_private = thread.is_none();
        Self { thread: thread.map(OnceLock::from).unwrap_or_default(), is_private, out: Mutex::default() }
    }

    /// Prepares for a resumed run, whose contexts may have values from an earlier process.
    pub(super) fn restore(&mut self, is_private: bool) {
        self.is_private = is_private;
        self.note_use();
    }

    pub(super) fn thread(&self) -> &ThreadId {
        self.thread.get_or_init(ThreadId::generate)
    }

    pub(super) fn thread_is_private(&self) -> bool {
        self.is_private
    }

    /// The thread that belongs to this run alone, if it has been generated.
    pub(super) fn own_thread(&self) -> Option<&ThreadId> {
        self.thread.get().filter(|_| self.is_private)
    }

    /// The context store as this run sees it. It refuses every call if the run has ended or has no engine.
    pub(super) fn of(&self, run: &Arc<RunShared>) -> Arc<dyn ContextStore> {
        let mut out = locked(&self.out);
        let closed = out.closed;
        let open = if closed { None } else { run.common.contexts.upgrade() };
        // Contexts of an ended run, and of one without an engine, are unusable.
        let Some(store) = open else { return Arc::new(RunContexts::closed()) };
        out.used = true;
        let made = || Arc::new(RunContexts::of(store, run));
        Arc::<RunContexts>::clone(out.contexts.get_or_insert_with(made))
    }

    fn note_use(&self) {
        locked(&self.out).used = true;
    }

    /// Whether the contexts may have values to clear.
    pub(super) fn are_used(&self) -> bool {
        locked(&self.out).used
    }

    /// Closes the contexts. Executions that are still being stopped may hold them; they then get errors.
    pub(super) fn close(&self) {
        let mut out = locked(&self.out);
        out.closed = true;
        let contexts = out.contexts.take();
        drop(out);
        if let Some(contexts) = contexts {
            contexts.close();
        }
    }
}

/// The context store as one run sees it. It is closed once the run has ended, so a step that is still being
/// stopped cannot write, and does not keep the store.
struct RunContexts {
    /// The engine's store; `None` once the run has ended.
    store: Mutex<Option<Arc<dyn ContextStore>>>,
    serialises: bool,
    /// The thread, if it belongs to one run alone.
    private: Option<PrivateThread>,
    /// Whether the run has a journal, so that its contexts outlive the process.
    is_durable: bool,
    /// Whether the store knows that the thread belongs to a run, or need not know.
    marked: AtomicBool,
}

impl RunContexts {
    /// The contexts of a run over the engine's store.
    fn of(store: Arc<dyn ContextStore>, run: &Arc<RunShared>) -> Self {
        let private = run.private_thread();
        let (is_durable, marked) = (run.common.is_durable, private.is_none().into());
        let serialises = store.serialises();
        Self { store: Mutex::new(Some(store)), serialises, private, is_durable, marked }
    }

    /// A store that refuses every call.
    fn closed() -> Self {
        let store = Mutex::new(None);
        Self { store, serialises: false, private: None, is_durable: false, marked: true.into() }
    }

    /// Refuses every call from here on, and drops the store.
    fn close(&self) {
        let store = locked(&self.store).take();
        // Dropped without the lock, since the `Drop` of a store may call anything.
        drop(store);
    }

    /// The store, unless the run has ended.
    fn open(&self) -> Result<Arc<dyn ContextStore>, ContextError> {
        locked(&self.store).clone().ok_or(ContextError::RunEnded)
    }

    /// The private thread, if the scope is that thread and the store does not know it yet.
    fn unmarked(&self, scope: &ContextScope) -> Option<&PrivateThread> {
        let private = self.private.as_ref().filter(|_| !self.marked.load(Ordering::Acquire))?;
        matches!(scope, ContextScope::Thread(thread) if *thread == private.thread).then_some(private)
    }

    /// Records the owner of a private thread before the thread's first value is written. The owner then
    /// clears it at its end; the store has the record in case the process ends before.
    async fn mark(&self, private: &PrivateThread) -> Result<(), ContextError> {
        let PrivateThread { owner, run, thread } = private;
        self.open()?;
        if let Some(owner) = owner.upgrade() {
            owner.contexts.note_use();
        }
        if self.is_durable {
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
        Box::pin(async move { self.open()?.get(scope, key).await })
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        Box::pin(async move {
            if let Some(private) = self.unmarked(scope) {
                self.mark(private).await?;
            }
            self.open()?.set(scope, key, value).await
        })
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        Box::pin(async move {
            if let Some(private) = self.unmarked(scope) {
                self.mark(private).await?;
            }
            self.open()?.update(scope, key, change).await
        })
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        Box::pin(async move { self.open()?.list(scope, after, at_most).await })
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        Box::pin(async move { self.open()?.clear(scope).await })
    }

    fn serialises(&self) -> bool {
        self.serialises
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::clock::EngineClock;
    use crate::context::MemoryContexts;
    use crate::engine::fixtures::greeter;
    use crate::run::{EngineParts, RunExtras};

    /// A run with a journal on this thread.
    fn run(contexts: &Arc<MemoryContexts>, thread: Option<&str>) -> Arc<RunShared> {
        let contexts = Arc::clone(contexts) as Arc<dyn ContextStore>;
        let contexts = Arc::downgrade(&contexts);
        let common =
            EngineParts { contexts, is_durable: true, ..EngineParts::without_engine(EngineClock::default()) };
        let (table, common) = (Arc::clone(&greeter().table), Arc::new(common));
        let thread = thread.map(ThreadId::from);
        Arc::new(RunShared::new("r".into(), thread, None, table, common, RunExtras::default()))
    }

    fn set(store: &dyn ContextStore, scope: &ContextScope) -> Result<(), ContextError> {
        store.set(scope, "seen", Some(ContextValue::new(1))).now_or_never().unwrap().map(drop)
    }

    fn noted(store: &MemoryContexts) -> Option<ThreadId> {
        let run = ContextScope::Run("r".into());
        let noted = store.get(&run, PRIVATE_THREAD).now_or_never().unwrap().unwrap();
        noted.map(|noted| noted.get().unwrap())
    }

    #[test]
    fn the_contexts_of_an_ended_run_do_not_keep_the_store() {
        let store = Arc::new(MemoryContexts::default());
        let run = run(&store, None);
        let held = run.contexts.of(&run);
        assert_eq!(Arc::strong_count(&store), 2);
        run.contexts.close();
        assert_eq!(Arc::strong_count(&store), 1, "a step that is still being stopped holds them");
        drop(held);
    }

    #[test]
    fn the_contexts_of_an_ended_run_refuse_every_call() {
        let store = Arc::new(MemoryContexts::default());
        let run = run(&store, None);
        assert!(!run.contexts.are_used());
        let (before, scope) = (run.contexts.of(&run), ContextScope::Run("r".into()));
        set(&*before, &scope).unwrap();
        assert!(run.contexts.are_used());
        run.contexts.close();
        for contexts in [before, run.contexts.of(&run)] {
            assert!(matches!(set(&*contexts, &scope), Err(ContextError::RunEnded)));
        }
    }

    #[test]
    fn the_store_knows_that_a_thread_is_the_runs_alone_once_it_has_a_value() {
        let store = Arc::new(MemoryContexts::default());
        let run = run(&store, None);
        let contexts = run.contexts.of(&run);
        assert_eq!(noted(&store), None);
        let scope = ContextScope::Thread(run.thread().clone());
        set(&*contexts, &scope).unwrap();
        assert_eq!(noted(&store).as_ref(), Some(run.thread()));
        assert_eq!(run.contexts.own_thread(), Some(run.thread()));
    }

    #[test]
    fn a_thread_that_runs_share_is_no_runs_alone() {
        let store = Arc::new(MemoryContexts::default());
        let run = run(&store, Some("shared"));
        set(&*run.contexts.of(&run), &ContextScope::Thread("shared".into())).unwrap();
        assert_eq!((noted(&store), run.contexts.own_thread()), (None, None));
        assert!(run.private_thread().is_none());
    }

    #[test]
    fn the_contexts_of_a_resumed_run_may_have_values() {
        let mut contexts = Contexts::new(Some("t".into()));
        assert!(!contexts.are_used() && !contexts.thread_is_private());
        contexts.restore(true);
        assert!(contexts.are_used() && contexts.thread_is_private());
    }
}

//! The part of a run that its task, its handles and its executions share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{
    Common, Contexts, Finished, PrivateThread, RunExtras, RunReport, RunStatus, Signals, StatusCell,
};
use crate::cancel::Cancellations;
use crate::children::{Birth, Family, ParentRun};
use crate::config::Config;
use crate::context::{RunContext, ThreadContext};
use crate::display::{Display, DisplayHub, DisplayItem, Shown};
use crate::error::RunError;
use crate::event::AnyEvent;
use crate::id::{EngineId, ExecutionId, RunId, ThreadId};
use crate::observe::Observed;
use crate::store::StoreError;
use crate::table::DependencyTable;

/// There is one for each run, so that what only some of them have is made when it is needed.
pub(crate) struct RunShared {
    pub(crate) id: RunId,
    pub(crate) common: Arc<Common>,
    pub(crate) table: Arc<DependencyTable>,
    /// How long the run may be active.
    pub(crate) timeout: Option<Duration>,
    extras: Option<Box<RunExtras>>,
    pub(crate) signals: Signals,
    pub(crate) status: StatusCell,
    pub(crate) contexts: Contexts,
    pub(crate) shown: Shown,
    pub(crate) cancellations: Cancellations,
    /// Made for the first child.
    pub(crate) children: OnceLock<Arc<Family>>,
    pub(crate) finished: OnceLock<Box<Finished>>,
}

impl RunShared {
    pub(crate) fn new(
        id: RunId,
        thread: Option<ThreadId>,
        timeout: Option<Duration>,
        table: Arc<DependencyTable>,
        common: Arc<Common>,
        extras: RunExtras,
    ) -> Self {
        Self {
            id,
            table,
            timeout,
            extras: extras.boxed(),
            signals: Signals::new(common.settings.mailbox_capacity),
            status: StatusCell::new(),
            contexts: Contexts::new(thread),
            shown: Shown::default(),
            cancellations: Cancellations::default(),
            children: OnceLock::new(),
            finished: OnceLock::new(),
            common,
        }
    }

    /// The same as its journal tells of it.
    pub(crate) fn restored(mut self, private_thread: bool, timeout: Option<Duration>) -> Self {
        self.contexts.restore(private_thread);
        self.timeout = timeout;
        self
    }

    /// The same as one that was resumed after an earlier process.
    pub(crate) fn resumed(mut self, parent: Option<ParentRun>) -> Self {
        let extras = self.extras.get_or_insert_default();
        (extras.parent, extras.resumed) = (parent, true);
        self
    }

    pub(crate) fn thread(&self) -> &ThreadId {
        self.contexts.thread()
    }

    pub(crate) fn has_private_thread(&self) -> bool {
        self.contexts.thread_is_private()
    }

    pub(crate) fn metadata(&self) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.extras.as_ref().map_or(&NONE, |extras| &extras.metadata)
    }

    pub(crate) fn birth(&self) -> Option<&Birth> {
        self.extras.as_ref()?.birth.as_ref()
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
        if self.has_private_thread() {
            return Some(PrivateThread::of(self));
        }
        self.birth()?.private_thread.as_ref().filter(|lent| lent.is(self.thread())).cloned()
    }

    pub(crate) fn config<C: Send + Sync + 'static>(&self) -> Option<Config<C>> {
        self.extras.as_ref()?.config()
    }

    pub(crate) fn step_name(&self, step: usize) -> Arc<str> {
        Arc::clone(&self.table.steps[step].name)
    }

    /// What it shows. Observers see that too.
    pub(crate) fn display(&self) -> DisplayHub {
        self.shown.hub(|| {
            let hub = DisplayHub::new(self.common.settings.display_capacity);
            if self.common.observers.is_empty() {
                return hub;
            }
            let (run, table, common) = (self.id.clone(), Arc::clone(&self.table), Arc::clone(&self.common));
            hub.heard_by(move |item| {
                // Observers have heard it of the child.
                if !matches!(item, DisplayItem::Child { .. }) {
                    common.observed(&run, &table.name, Observed::Displayed(item));
                }
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
            self.common.observed(&self.id, &self.table.name, what());
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.status.has_begun()
    }

    pub(super) fn begin(&self) {
        self.status.begin();
        self.tell(|| Observed::RunStarted);
    }

    /// Tells of a run that an earlier process began.
    pub(super) fn goes_on(&self) {
        if self.status.begin() {
            self.tell(|| Observed::RunResumed);
            self.status.look_again();
        }
    }

    /// Tells of a run that goes on after it was unloaded.
    pub(super) fn loaded(&self) {
        self.status.begin();
        if self.status() != RunStatus::Waiting {
            self.status.set(RunStatus::Waiting);
        }
        self.tell(|| Observed::RunLoaded);
    }

    /// Loads the run again if it was unloaded; whether it runs. One that has ended does not, even if another run has its id
    /// by now.
    pub(super) async fn wake(&self) -> Result<bool, StoreError> {
        match self.common.engine.upgrade().filter(|_| self.finished.get().is_none()) {
            Some(engine) => engine.wake(self.id.clone()).await,
            None => Ok(false),
        }
    }

    /// Signals the run that it is to be cancelled.
    pub(crate) fn note_cancel(&self, reason: &Arc<str>) {
        self.signals.cancel(reason);
    }

    /// Cancels the run, also from where nothing can be waited for.
    pub(crate) fn cancel(self: &Arc<Self>, reason: &Arc<str>) {
        self.note_cancel(reason);
        if let Some(engine) = self.common.engine.upgrade().filter(|_| self.finished.get().is_none()) {
            engine.note_left(Arc::clone(self));
        }
    }

    /// The engine that writes its journal, if it takes leases.
    pub(super) fn owner(&self) -> Option<&EngineId> {
        self.common.lease.as_ref().map(|lease| lease.engine())
    }

    /// Whether it, or a run above it, goes on after an earlier process: its children may have journals already.
    pub(crate) fn is_of_resumed(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.is_of_resumed())
    }

    pub(crate) fn status(&self) -> RunStatus {
        self.status.now()
    }

    /// Which run it is a child of.
    pub(crate) fn parent(&self) -> Option<&ParentRun> {
        self.extras.as_ref()?.parent()
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
        self.status.wait_for(is_due).await
    }

    /// Forgets what belongs to this run alone.
    pub(crate) async fn clear_contexts(&self) {
        // A store that cannot clear keeps what it has until runs are resumed or removed; the run has its outcome already.
        if let Some(engine) = self.common.engine.upgrade() {
            let thread = self.contexts.own_thread().cloned();
            engine.clear_contexts(self.id.clone(), thread).await;
        }
    }
}

impl Drop for RunShared {
    /// Once an unloaded run has no handles, the engine keeps nothing for them.
    fn drop(&mut self) {
        if self.common.settings.idle_timeout.is_some()
            && let Some(engine) = self.common.engine.upgrade()
        {
            engine.handles_gone(&self.id);
        }
    }
}

impl fmt::Debug for RunShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .field("workflow", &self.table.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::clock::EngineClock;
    use crate::engine::fixtures::greeter;

    fn run(extras: RunExtras) -> RunShared {
        let common = Arc::new(Common::without_engine(EngineClock::default()));
        RunShared::new("r".into(), None, None, Arc::clone(&greeter().table), common, extras)
    }

    #[test]
    fn what_runs_share_takes_no_more_memory_than_before() {
        assert!(size_of::<RunShared>() <= 432, "{}", size_of::<RunShared>());
    }

    #[test]
    fn a_resumed_run_begins_once_it_goes_on() {
        let run = run(RunExtras::default()).restored(false, None).resumed(None);
        assert!(run.is_of_resumed() && !run.has_private_thread() && !run.has_begun());
        assert!(run.status.begun().now_or_never().is_none());
        run.goes_on();
        assert_eq!(run.status.begun().now_or_never(), Some(true));
    }

    #[test]
    fn a_loaded_run_waits() {
        let run = run(RunExtras::default());
        run.loaded();
        assert_eq!((run.has_begun(), run.status()), (true, RunStatus::Waiting));
    }

    #[test]
    fn a_run_without_an_engine_cannot_be_loaded_and_can_be_cancelled() {
        let run = Arc::new(run(RunExtras::default()));
        assert!(matches!(run.wake().now_or_never(), Some(Ok(false))));
        run.cancel(&"enough".into());
        assert_eq!(run.signals.unread_cancel().as_deref(), Some("enough"));
    }

    #[test]
    fn the_outcome_is_there_once_the_run_has_ended() {
        let run = run(RunExtras::default());
        assert!(run.outcome().now_or_never().is_none());
        crate::run::give_up(&run, RunError::Abandoned);
        assert!(matches!(run.outcome().now_or_never(), Some(Err(RunError::Abandoned))));
        assert_eq!(run.status(), RunStatus::Cancelled);
    }
}

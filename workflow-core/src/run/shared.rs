//! The part of a run that its task, its handles and its executions share.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use super::{Contexts, EngineParts, Finished, PrivateThread, RunExtras, Signals, StatusCell};
use crate::cancel::Cancellations;
use crate::context::{RunContext, ThreadContext};
use crate::display::{Display, DisplayHub, DisplayItem, Shown};
use crate::event::AnyEvent;
use crate::id::{EngineId, ExecutionId, ParentRun, RunId, RunStatus, ThreadId, TraceParent};
use crate::observe::Observed;
use crate::outcome::RunError;
use crate::report::RunReport;
use crate::run::{ChildRegistry, ParentLink};
use crate::store::{Record, StoreError};
use crate::table::DependencyTable;

/// The shared part of a run. Every run has one, so that anything that only some runs need is created on first
/// use.
pub(crate) struct RunShared {
    pub(crate) id: RunId,
    pub(crate) common: Arc<EngineParts>,
    pub(crate) table: Arc<DependencyTable>,
    /// The limit on the run's active time that its start states, as its journal has it.
    pub(crate) timeout: Option<Duration>,
    extras: Option<Box<RunExtras>>,
    pub(crate) signals: Signals,
    pub(crate) status: StatusCell,
    pub(crate) contexts: Contexts,
    pub(crate) shown: Shown,
    pub(crate) cancellations: Cancellations,
    /// Created for the first child.
    pub(crate) children: OnceLock<Arc<ChildRegistry>>,
    /// The result of the run. Set before the status says that the run has ended.
    pub(crate) finished: OnceLock<Box<Finished>>,
}

impl RunShared {
    pub(crate) fn new(
        id: RunId,
        thread: Option<ThreadId>,
        timeout: Option<Duration>,
        table: Arc<DependencyTable>,
        common: Arc<EngineParts>,
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

    /// The limit on the run's active time (S32): of that of the start and that of the workflow the shorter one. The journal
    /// lacks that of the workflow, so that a run which goes on has the present one.
    pub(crate) fn time_limit(&self) -> Option<Duration> {
        [self.timeout, self.table.edges.timeout].into_iter().flatten().min()
    }

    /// The same run with the settings from its journal.
    pub(crate) fn restored(mut self, private_thread: bool, timeout: Option<Duration>) -> Self {
        self.contexts.restore(private_thread);
        self.timeout = timeout;
        self
    }

    /// The same run as one that this process resumed after an earlier one.
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

    /// When the run ends at the latest (S73).
    #[inline]
    pub(crate) fn deadline(&self) -> Option<SystemTime> {
        self.extras.as_ref()?.deadline
    }

    pub(crate) fn parent_link(&self) -> Option<&ParentLink> {
        self.extras.as_ref()?.link.as_ref()
    }

    /// Whether a parent that is driven here has the run among its children.
    pub(crate) fn has_parent_here(&self) -> bool {
        self.parent_link().is_some() || self.signals.reattached().is_some()
    }

    pub(crate) fn run_context(self: &Arc<Self>) -> RunContext {
        RunContext::new(self.id.clone(), self.contexts.of(self))
    }

    pub(crate) fn thread_context(self: &Arc<Self>) -> ThreadContext {
        ThreadContext::new(self.thread().clone(), self.contexts.of(self))
    }

    /// The run's thread, if that is private to this run, or to a run above it that waits for this one. O(1).
    pub(crate) fn private_thread(self: &Arc<Self>) -> Option<PrivateThread> {
        if self.has_private_thread() {
            return Some(PrivateThread::of(self));
        }
        self.parent_link()?.private_thread.as_ref().filter(|lent| lent.is(self.thread())).cloned()
    }

    pub(crate) fn config(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
        self.extras.as_ref()?.config(of)
    }

    pub(crate) fn step_name(&self, step: usize) -> Arc<str> {
        Arc::clone(&self.table.steps[step].name)
    }

    /// The hub of the run's display. Observers receive every item too.
    pub(crate) fn display(&self) -> DisplayHub {
        self.shown.hub(|| {
            let hub = DisplayHub::new(self.common.settings.display_capacity);
            let (run, table, common) = (self.id.clone(), Arc::clone(&self.table), Arc::clone(&self.common));
            hub.heard_by(move |item| {
                // Observers have received the item of a child from the child.
                if !common.observers.is_empty() && !matches!(item, DisplayItem::Child { .. }) {
                    common.observed(&run, &table.name, Observed::Displayed(item.clone()));
                }
                common.clock.moment(Instant::now())
            })
        })
    }

    /// When each attempt, or a child that it started, showed its latest item of those that the run retains, as moments of
    /// the engine's clock. O(retained items).
    pub(super) fn latest_shown(&self) -> HashMap<(ExecutionId, u32), u64> {
        self.shown.latest()
    }

    /// Someone views the run, so it tells of its requests, and so do the runs below (S64).
    pub(crate) fn view(self: &Arc<Self>) {
        self.tell_from_here(|run| run.signals.view(false), |is_told| is_told);
    }

    /// The display above is new, and `is_viewed` or not. If anybody views a run from here down, it tells of its requests
    /// again: the new display lacks them.
    pub(crate) fn view_above(self: &Arc<Self>, is_viewed: bool) {
        let is_told = |run: &Self| (is_viewed || run.signals.is_viewed()) && run.signals.view(true);
        // A run that nobody views may have children that somebody does.
        self.tell_from_here(is_told, |_| true);
    }

    /// Wakes those of this run and the runs below that are told: in a loop, because runs may nest deeply.
    fn tell_from_here(self: &Arc<Self>, is_told: impl Fn(&Self) -> bool, goes_below: impl Fn(bool) -> bool) {
        let mut runs = vec![Arc::clone(self)];
        while let Some(run) = runs.pop() {
            let is_told = is_told(&run);
            if let Some(registry) = run.children.get().filter(|_| goes_below(is_told)) {
                runs.extend(registry.alive());
            }
            if !is_told {
                continue;
            }
            run.signals.wake();
            if let Some(engine) = run.common.engine().filter(|_| run.finished.get().is_none()) {
                engine.deliver_signal(run);
            }
        }
    }

    /// Items have positions that no earlier display of the run had: numbered by the journal, which grows with each resume.
    pub(super) fn begin_display(&self, records: &[Record]) {
        self.shown.begin_epoch(u32::try_from(records.len()).unwrap_or(u32::MAX));
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

    pub(crate) fn has_begun(&self) -> bool {
        self.status.has_begun()
    }

    pub(super) fn begin(&self) {
        self.status.begin();
        self.tell(|| Observed::RunStarted);
    }

    /// Announces a run whose journal was here before this engine, unless it was announced before. Returns whether it was
    /// not. One that was queued begins only now.
    pub(super) fn announce_taken_up(&self, is_queued: bool) -> bool {
        let is_new = self.status.begin();
        if is_new {
            self.tell(|| if is_queued { Observed::RunStarted } else { Observed::RunResumed });
            self.status.look_again();
        }
        is_new
    }

    /// Announces a run that was loaded again after it was unloaded: it waits, or is paused.
    pub(super) fn announce_loaded(&self, status: RunStatus) {
        self.status.begin();
        if self.status() != status {
            self.status.set(status);
        }
        self.tell(|| Observed::RunReloaded);
    }

    /// Loads the run again if it was unloaded. Returns whether a task drives it now. An ended run stays
    /// ended, even if another run has its id by now.
    pub(super) async fn wake(&self) -> Result<bool, StoreError> {
        match self.common.engine().filter(|_| self.finished.get().is_none()) {
            Some(engine) => engine.wake(self.id.clone()).await,
            None => Ok(false),
        }
    }

    /// Signals the run to cancel. Does not load the run if it is unloaded.
    pub(crate) fn note_cancel(&self, reason: &Arc<str>) {
        self.signals.cancel(reason);
    }

    /// Signals the run to cancel, and has it loaded if it is unloaded. Does not wait, so any code may call
    /// it.
    pub(crate) fn cancel(self: &Arc<Self>, reason: &Arc<str>) {
        self.note_cancel(reason);
        if let Some(engine) = self.common.engine().filter(|_| self.finished.get().is_none()) {
            engine.deliver_signal(Arc::clone(self));
        }
    }

    /// The engine that owns the run's journal, if the engine takes leases.
    pub(super) fn owner(&self) -> Option<&EngineId> {
        self.common.lease.as_ref().map(|lease| lease.engine())
    }

    /// Whether this run or one above it was resumed. Its children may then have journals already.
    pub(crate) fn may_have_earlier_children(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.may_have_earlier_children())
            || self.signals.has_detached_children()
    }

    /// Whether executions of an earlier process may have begun children for which no execution waits any more.
    pub(crate) fn may_have_orphans(&self) -> bool {
        let may_start = || self.common.settings.has_middleware || self.table.may_start_children();
        self.may_have_earlier_children() && (self.children.get().is_some() || may_start())
    }

    /// How often the execution has begun again since the run has children.
    pub(crate) fn asked_in(&self, execution: ExecutionId) -> u32 {
        self.children.get().map_or(0, |registry| registry.asked_in(execution))
    }

    /// Whether the execution may have children that its last attempt has not asked for.
    pub(crate) fn has_unasked(&self, execution: ExecutionId) -> bool {
        self.children.get().is_some_and(|registry| registry.has_unasked(execution))
    }

    pub(crate) fn status(&self) -> RunStatus {
        self.status.now()
    }

    /// The parent of the run, if it is a child.
    pub(crate) fn parent(&self) -> Option<&ParentRun> {
        self.extras.as_ref()?.parent()
    }

    /// The place of the run in a distributed trace.
    pub(crate) fn trace_parent(&self) -> Option<TraceParent> {
        self.extras.as_ref()?.trace_parent
    }

    pub(crate) fn child_registry(&self) -> &Arc<ChildRegistry> {
        self.children.get_or_init(Arc::default)
    }

    /// The report, if the run has ended and its task did not disappear. Makes the children's reports first.
    pub(crate) fn report(&self) -> Option<Arc<RunReport>> {
        if let Some(registry) = self.children.get() {
            registry.make_reports();
        }
        self.made_report()
    }

    /// Whether the run has ended with a state to report.
    pub(crate) fn has_report(&self) -> bool {
        self.finished.get().is_some_and(|finished| finished.kept.is_some())
    }

    /// The report, once the reports of the children are made.
    pub(crate) fn made_report(&self) -> Option<Arc<RunReport>> {
        Some(self.finished.get()?.kept.as_ref()?.report(self))
    }

    pub(crate) async fn ended(&self) {
        self.wait_for(RunStatus::is_ended).await;
    }

    /// Waits for the end, and returns the outcome.
    pub(crate) async fn outcome(&self) -> Result<AnyEvent, RunError> {
        self.finished().await.outcome.clone()
    }

    pub(crate) async fn finished(&self) -> &Finished {
        self.wait_for(RunStatus::is_ended).await;
        self.finished.get().expect("a run that has ended says how before it says so")
    }

    pub(super) async fn wait_for(&self, is_due: fn(RunStatus) -> bool) -> RunStatus {
        self.status.wait_for(is_due).await
    }

    /// Clears the contexts that belong to this run alone.
    pub(crate) async fn clear_contexts(&self) {
        // A store that cannot clear keeps the values until its runs are resumed or removed. The run has its
        // outcome already.
        if let Some(engine) = self.common.engine() {
            let thread = self.contexts.own_thread().cloned();
            engine.clear_contexts(self.id.clone(), thread).await;
        }
    }
}

impl Drop for RunShared {
    /// Lets the engine forget the handles of an unloaded run, once there are none.
    fn drop(&mut self) {
        if self.common.settings.idle_timeout.is_some()
            && let Some(engine) = self.common.engine()
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
    use futures::FutureExt as _;

    use super::*;
    use crate::clock::EngineClock;
    use crate::engine::fixtures::greeter;

    fn run(extras: RunExtras) -> RunShared {
        let common = Arc::new(EngineParts::without_engine(EngineClock::default()));
        RunShared::new("r".into(), None, None, Arc::clone(&greeter().table), common, extras)
    }

    #[test]
    fn the_shared_part_of_a_run_is_at_most_432_bytes() {
        assert!(size_of::<RunShared>() <= 432, "{}", size_of::<RunShared>());
    }

    #[test]
    fn a_resumed_run_is_announced_once() {
        let run = run(RunExtras::default()).restored(false, None).resumed(None);
        assert!(run.may_have_earlier_children() && !run.has_private_thread() && !run.has_begun());
        assert!(run.status.begun().now_or_never().is_none());
        run.announce_taken_up(false);
        assert_eq!(run.status.begun().now_or_never(), Some(true));
    }

    #[test]
    fn a_loaded_run_waits() {
        let run = run(RunExtras::default());
        run.announce_loaded(RunStatus::Waiting);
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
        crate::run::end_unloaded(&run, RunError::Detached);
        assert!(matches!(run.outcome().now_or_never(), Some(Err(RunError::Detached))));
        assert_eq!(run.status(), RunStatus::Cancelled);
    }
}

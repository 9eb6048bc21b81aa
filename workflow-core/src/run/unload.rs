//! Unloading a waiting run. With a store, the journal is all that there is to know of the run, so its memory
//! is dropped until a timer falls due or someone needs the run. An unloaded run is loaded again by replay.

use std::any::Any;
use std::num::NonZeroU64;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;

use super::commit::Committer;
use super::drive::{Phase, Run};
use super::driver::Driver;
use super::finish::{Finished, announce, is_left};
use super::meter::GaugeEntry;
use super::{Derived, Journal, RunShared};
use crate::id::RunStatus;
use crate::observe::Observed;
use crate::outcome::RunError;
use crate::panics::discard;
use crate::store::Position;

/// The lock of one run. While it is held, nobody else loads the run, looks for it in the store or unloads it.
pub(crate) type RunLockGuard = Box<dyn Any + Send>;

/// The run's entry in the engine's registry.
pub(crate) trait Registration: Send + 'static {
    /// Acquires the lock of the run, which loading and unloading need.
    fn hold(&self) -> BoxFuture<'static, RunLockGuard>;

    /// Notes that the run is unloaded and has not ended. A signal that was set for it meanwhile is not lost.
    fn release(self, released: UnloadedRun, run: Arc<RunShared>);
}

/// Everything that the engine knows of an unloaded run.
#[derive(Debug)]
pub(crate) struct UnloadedRun {
    /// The end of its journal.
    pub(crate) end: Position,
    /// The term of the engine's lease in which the run belonged to the engine, from 1; `None` without a
    /// lease.
    pub(crate) term: Option<NonZeroU64>,
    /// When the earliest of its timers is due, or its deadline.
    pub(crate) due: Option<SystemTime>,
    /// The part that its handles share; empty once there are no handles.
    pub(crate) run: Weak<RunShared>,
    /// Whether this process has not driven the run so far: its first loading is a resume.
    pub(crate) is_new: bool,
    /// Keeps the run counted among the waiting ones.
    pub(crate) _level: Option<GaugeEntry>,
}

impl UnloadedRun {
    /// A run of this workflow that waited when another process left it.
    pub(crate) fn taken_up(end: Position, due: Option<SystemTime>, workflow: &Arc<str>) -> Self {
        let level = Some(GaugeEntry::waiting(workflow));
        Self { end, term: None, due, run: Weak::new(), is_new: true, _level: level }
    }
}

/// The reason why a run's task stops polling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paused {
    /// The run has ended.
    Ended,
    /// The run waits for its handles alone: suspend it.
    Suspendable,
    /// The run has waited, or was paused, for the idle timeout: unload it.
    Idle,
}

impl Run {
    /// Handles a run with nothing to do: suspends it, or unloads it after the idle timeout.
    pub(super) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        let Committer { shared, .. } = &self.driver.committer;
        let after = shared.common.settings.idle_timeout;
        let is_due = shared.signals.unloads_paused() && shared.status() == RunStatus::Paused;
        let after = after.map(|after| if is_due { Duration::ZERO } else { after });
        let Some(after) = after.filter(|_| self.can_unload()) else {
            self.driver.alarms.idle = None;
            return if self.can_suspend() { Poll::Ready(Paused::Suspendable) } else { Poll::Pending };
        };
        let Driver { committer: Committer { shared, .. }, alarms, .. } = &mut self.driver;
        let idle_timeout = alarms.idle.get_or_insert_with(|| shared.common.clock.sleep(after));
        idle_timeout.as_mut().poll(cx).map(|()| {
            alarms.idle = None;
            Paused::Idle
        })
    }

    /// Waits for the lock of the run; `None` if the run ends first. Polls the run meanwhile, because the
    /// present holder may hold it for long.
    pub(super) async fn acquire_lock(
        &mut self,
        mut held: BoxFuture<'static, RunLockGuard>,
    ) -> Option<RunLockGuard> {
        let polled = std::future::poll_fn(|cx| match held.as_mut().poll(cx) {
            Poll::Ready(held) => Poll::Ready(Some(held)),
            Poll::Pending => match self.poll_run(cx) {
                Poll::Ready(Paused::Ended) => Poll::Ready(None),
                Poll::Ready(Paused::Idle | Paused::Suspendable) | Poll::Pending => Poll::Pending,
            },
        });
        polled.await
    }

    /// Whether the run can be unloaded: it waits or is paused, nothing would load it again at once, the store has its whole
    /// journal, and no run that is driven here depends on it.
    fn can_unload(&self) -> bool {
        let Committer { shared, state, journal, pending, .. } = &self.driver.committer;
        let waits =
            || state.scheduler.waits() && shared.status() == RunStatus::Waiting && !state.has_effects();
        // Due work begins after the pause, and a replay finds it in the journal; it does not find attempts that were lost.
        let is_paused = || {
            shared.status() == RunStatus::Paused
                && state.is_paused()
                && self.driver.has_paused()
                && state.lives.lost().next().is_none()
        };
        (waits() || is_paused())
            && shared.parent().is_none()
            && shared.children.get().is_none_or(|family| !family.is_alive())
            && !shared.signals.mailbox.is_in_use()
            && !self.driver.executor.has_completed()
            && !self.driver.would_be_loaded()
            && pending.is_empty()
            && journal.as_deref().is_some_and(Journal::is_open_and_written)
    }

    /// Closes the mailbox if the run can be unloaded. Returns false, with the mailbox open, if a command, a
    /// cancel, a first viewer or a detach came meanwhile. The caller holds the run's lock.
    ///
    /// Commands that are there are handled now, without waiting: a sender in the middle of a send may never
    /// be polled again.
    pub(super) fn closes(&mut self) -> bool {
        let shared = Arc::clone(&self.driver.committer.shared);
        shared.signals.mailbox.close();
        let mut had_commands = false;
        // Taken regardless of the task's budget.
        while let Some(command) = self.driver.next_command() {
            had_commands = true;
            self.driver.handle_command(command);
        }
        let is_called = shared.signals.cancel_is_unread() || shared.signals.has_new_viewer();
        if had_commands || !self.can_unload() || is_called || shared.is_to_detach() {
            shared.signals.mailbox.reopen();
            return false;
        }
        true
    }

    /// Drops the run and returns what the engine needs to load it again. The caller keeps the part that
    /// handles share.
    pub(super) fn unload(mut self: Box<Self>) -> UnloadedRun {
        let Driver { committer: Committer { shared, state, journal, telemetry, .. }, admission, .. } =
            &mut self.driver;
        let end = journal.as_deref().map_or(Position(0), Journal::end);
        let timer = state.timers.pending(&state.scheduler).map(|(due, _)| due).next();
        let due = timer.into_iter().chain(shared.deadline()).min();
        let run = if Arc::strong_count(shared) > 2 { Arc::downgrade(shared) } else { Weak::new() };
        shared.tell(|| Observed::RunUnloaded);
        self.phase = Phase::Unloaded;
        let term = journal.as_deref().and_then(|journal| admission.term(journal)).and_then(NonZeroU64::new);
        let released = UnloadedRun { end, term, due, run, is_new: false, _level: telemetry.meter.level() };
        // Dropping the state runs user code. A panic there must not harm the run.
        discard(self);
        released
    }

    /// Drops a run that could not be loaded: it stays unloaded.
    pub(crate) fn stay_unloaded(mut self: Box<Self>) {
        self.phase = Phase::Unloaded;
        discard(self);
    }

    /// Drives a run that was loaded again to its end. `term` is the lease's term in which it was unloaded.
    pub(crate) async fn drive_loaded<R: Registration>(
        mut self: Box<Self>,
        Derived(derived): Derived,
        term: Option<u64>,
        registered: R,
    ) {
        if let Some(guard) = self.driver.admission.lease_guard_mut() {
            guard.set_term(term);
        }
        let Committer { shared, state, telemetry, .. } = &mut self.driver.committer;
        shared.announce_loaded(if state.is_paused() { RunStatus::Paused } else { RunStatus::Waiting });
        state.effects.remove_wait();
        telemetry.open_loaded(shared);
        self.driver.stop_counting_time();
        if !derived.is_empty() {
            Box::pin(self.claim(derived)).await;
        }
        Box::pin(self.look_for_children()).await;
        self.drive_to_end(registered, false).await;
    }
}

impl RunShared {
    /// Whether the run has stopped here and its journal is open: another engine, or this one later, continues it.
    pub(crate) fn is_left_open(&self) -> bool {
        self.finished.get().is_some_and(|finished| is_left(&finished.outcome))
    }

    /// The same of a run whose journal may lack a cancel.
    pub(crate) fn is_left_uncancelled(&self) -> bool {
        self.is_left_open() && !self.signals.cancel_is_kept()
    }
}

/// Ends a run for its handles though its task is still there: a step blocks its thread. What the task then does changes
/// nothing for them.
pub(crate) fn end_blocked(run: &RunShared, error: RunError) {
    let (status, outcome) = (RunStatus::Cancelled, Err(error));
    let is_left = is_left(&outcome);
    if run.finished.set(Box::new(Finished { status, outcome, kept: None })).is_ok() {
        run.shown.close(status, is_left);
        run.status.set(status);
    }
}

/// Ends an unloaded run for its handles, without loading it. Its journal stays as it is.
pub(crate) fn end_unloaded(run: &RunShared, error: RunError) {
    let is_left = matches!(error, RunError::Detached);
    let status = if is_left { RunStatus::Cancelled } else { RunStatus::Failed };
    if run.finished.set(Box::new(Finished { status, outcome: Err(error), kept: None })).is_ok() {
        announce(run);
    }
}

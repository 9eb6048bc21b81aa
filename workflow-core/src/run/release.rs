//! Letting go of a run that waits: with a store its journal is all that there is to know, so that nothing of it needs to
//! be kept until a timer is due or somebody wants something of it.

use std::any::Any;
use std::num::NonZeroU64;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::SystemTime;

use futures_util::future::BoxFuture;

use super::commit::Committer;
use super::drive::{Phase, Run};
use super::driver::Driver;
use super::finish::{Finished, announce};
use super::meter::Level;
use super::{Derived, Journal, RunShared, RunStatus};
use crate::error::RunError;
use crate::observe::Observed;
use crate::panics::discard;
use crate::store::Position;

/// Until it is dropped, nobody else loads the run, looks for it in the store or lets go of it.
pub(crate) type Held = Box<dyn Any + Send>;

/// A run's entry among those of its engine.
pub(crate) trait Registration: Send + 'static {
    /// Whoever has it, and nobody else, loads the run or lets go of it.
    fn hold(&self) -> BoxFuture<'static, Held>;

    /// The run is not driven any more, and has not ended. A note that was left for it meanwhile is not lost.
    fn release(self, released: Released, run: Arc<RunShared>);
}

/// All that is known of a run that was let go of.
#[derive(Debug)]
pub(crate) struct Released {
    /// Where its journal ends.
    pub(crate) end: Position,
    /// The term of its engine's lease for which it was the engine's, the first of which is 1; none if it had no lease.
    pub(crate) term: Option<NonZeroU64>,
    /// When the first of its timers is due.
    pub(crate) due: Option<SystemTime>,
    /// The run as its handles know it; nothing once there are none.
    pub(crate) run: Weak<RunShared>,
    /// It is still counted among those that wait.
    pub(crate) _level: Option<Level>,
}

/// Why a run is not polled on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paused {
    /// It has ended.
    Ended,
    /// It waits for its handles alone: suspend it.
    Suspendable,
    /// It has waited for the idle timeout: unload it.
    Idle,
}

impl Run {
    /// There is nothing to do. A run that waits for long is let go of.
    pub(super) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Paused> {
        let after = self.driver.committer.shared.common.settings.idle_timeout;
        let Some(after) = after.filter(|_| self.can_unload()) else {
            self.driver.alarms.idle = None;
            return if self.can_suspend() { Poll::Ready(Paused::Suspendable) } else { Poll::Pending };
        };
        let Driver { committer: Committer { shared, .. }, alarms, .. } = &mut self.driver;
        let patience = alarms.idle.get_or_insert_with(|| shared.common.clock.sleep(after));
        patience.as_mut().poll(cx).map(|()| {
            alarms.idle = None;
            Paused::Idle
        })
    }

    /// Waits until nobody else has hold of it; none if it has ended before. It does what there is to do meanwhile: whoever
    /// has it may wait for long.
    pub(super) async fn take_hold(&mut self, mut held: BoxFuture<'static, Held>) -> Option<Held> {
        let polled = std::future::poll_fn(|cx| match held.as_mut().poll(cx) {
            Poll::Ready(held) => Poll::Ready(Some(held)),
            Poll::Pending => match self.poll_on(cx) {
                Poll::Ready(Paused::Ended) => Poll::Ready(None),
                Poll::Ready(Paused::Idle | Paused::Suspendable) | Poll::Pending => Poll::Pending,
            },
        });
        polled.await
    }

    /// Whether the run can be unloaded: it waits, the store has its whole journal, and no run that is driven here
    /// depends on it.
    fn can_unload(&self) -> bool {
        let Committer { shared, state, journal, pending, .. } = &self.driver.committer;
        state.scheduler.waits()
            && shared.status() == RunStatus::Waiting
            && shared.parent().is_none()
            && shared.children.get().is_none_or(|family| !family.is_alive())
            && !state.has_effects()
            && !shared.signals.mailbox.is_in_use()
            && !self.driver.executor.has_completed()
            && pending.is_empty()
            && journal.as_deref().is_some_and(Journal::is_open_and_written)
    }

    /// Whether the run can be let go of: nobody has told it anything meanwhile. Called by whoever holds it.
    ///
    /// It does not wait: whoever is about to tell it something may never be polled again.
    pub(super) fn closes(&mut self) -> bool {
        let shared = Arc::clone(&self.driver.committer.shared);
        shared.signals.mailbox.close();
        let mut told = false;
        // What is there is taken whatever turns the task has left.
        while let Some(command) = shared.signals.mailbox.take() {
            told = true;
            self.driver.handle_command(command);
        }
        if told || !self.can_unload() || shared.signals.cancel_is_unread() || shared.is_to_detach() {
            shared.signals.mailbox.reopen();
            return false;
        }
        true
    }

    /// Lets go of everything but what it takes to load it again. Who does so has hold of what the handles share.
    pub(super) fn released(mut self: Box<Self>) -> Released {
        let Driver { committer: Committer { shared, state, journal, telemetry, .. }, admission, .. } =
            &mut self.driver;
        let end = journal.as_deref().map_or(Position(0), Journal::end);
        let due = state.timers.pending(&state.scheduler).map(|(due, _)| due).next();
        let run = if Arc::strong_count(shared) > 2 { Arc::downgrade(shared) } else { Weak::new() };
        shared.tell(|| Observed::RunReleased);
        self.phase = Phase::Unloaded;
        let term = admission.term().and_then(NonZeroU64::new);
        let released = Released { end, term, due, run, _level: telemetry.meter.level() };
        // What it has in memory is the user's too: where dropping that panics, the run is no worse for it.
        discard(self);
        released
    }

    /// It was to be loaded and cannot be: it is where it was.
    pub(crate) fn stays_released(mut self: Box<Self>) {
        self.phase = Phase::Unloaded;
        discard(self);
    }

    /// Drives a run to its end that was let go of, in that term of the lease, and stands again where its journal ends.
    pub(crate) async fn drive_loaded<R: Registration>(
        mut self: Box<Self>,
        Derived(derived): Derived,
        term: Option<u64>,
        registered: R,
    ) {
        if let Some(fence) = self.driver.admission.fence_mut() {
            fence.is_of(term);
        }
        let Committer { shared, state, telemetry, .. } = &mut self.driver.committer;
        shared.loaded();
        state.effects.is_known_to_wait();
        telemetry.meter.waits();
        self.driver.stop_counting_time();
        if !derived.is_empty() {
            Box::pin(self.claim(derived)).await;
        }
        self.drive_on(registered, false).await;
    }
}

/// Ends a run that was let go of and is not to be loaded again. Its journal is left as it is.
pub(crate) fn give_up(run: &RunShared, error: RunError) {
    let is_left = matches!(error, RunError::Abandoned);
    let status = if is_left { RunStatus::Cancelled } else { RunStatus::Failed };
    if run.finished.set(Box::new(Finished { status, outcome: Err(error), kept: None })).is_ok() {
        announce(run);
    }
}

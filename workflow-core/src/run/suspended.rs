//! A suspended run: the compact form of a run that waits only for its handles. There may be very many of
//! them.
//!
//! ```text
//! Run ──suspend──▶ Suspended ──news (command, cancel)──▶ restore ──▶ Run
//! ```
//!
//! Only a run without a journal is suspended; one with a journal is [unloaded](super::unload). Nothing may
//! be in flight, pending, deferred or timed, so the compact form needs no executor, no alarms and no effects.
//! The task of the run stays.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::admission::Admission;
use super::check::ReplayCheck;
use super::clock::{RunClock, SuspendedClock};
use super::commit::Committer;
use super::drive::{Phase, Run};
use super::driver::Driver;
use super::host::Host;
use super::meter::Meter;
use super::own_permit::OwnPermit;
use super::shared::RunShared;
use super::state::SuspendedState;
use super::state_box::StateBox;
use super::telemetry::Telemetry;

/// A waiting run with at most this many events in its log frees memory that it may need again soon.
///
/// A run that waits again and again thus allocates a bounded amount each time. Beside a longer log, that
/// memory is small, so the run keeps it.
const SHORT: u64 = 16;

/// A suspended run; empty once it is restored.
pub(super) struct Suspended(Option<Box<Parts>>);

/// The parts of a run that waits only for its handles.
struct Parts {
    shared: Arc<RunShared>,
    host: Arc<Host>,
    state: SuspendedState,
    permit: (Option<Box<OwnPermit>>, usize),
    meter: Meter,
    check: Option<Box<ReplayCheck>>,
    clock: SuspendedClock,
}

impl Run {
    /// Whether the run fits [`Suspended`]: it waits for its handles alone and has no journal, parent,
    /// children or alarms. A long log does not qualify, because each suspension moves it. O(1).
    pub(super) fn can_suspend(&self) -> bool {
        // Every field is named, so that a new one cannot be forgotten here.
        let Self { driver, phase } = self;
        let Driver { host: _, executor, admission, alarms, committer, at_end } = driver;
        let Committer { shared, state, journal, pending, telemetry: _, clock: _ } = committer;
        // Few events: the log is moved at each suspension.
        let is_short = state.scheduler.last_seq().0 <= SHORT;
        let has_alarms = !alarms.are_none() || shared.time_limit().is_some();
        let is_quiet =
            executor.is_empty() && pending.is_empty() && !has_alarms && admission.allows_suspension();
        let is_plain = journal.is_none() && at_end.is_none() && *phase == Phase::Driven;
        // No parent and no children, whose ends the run would have to handle.
        let has_children = shared.children.get().is_some_and(|registry| !registry.is_unused());
        let is_alone = shared.parent_link().is_none() && !has_children;
        // Spans would be lost, and unread signals need the run.
        let is_watched = shared.common.observers.wants_spans() || shared.signals.has_news();
        is_short && is_quiet && is_plain && is_alone && !is_watched && state.can_suspend()
    }

    /// Suspends a run that [`can_suspend`](Self::can_suspend).
    pub(super) fn suspend(mut self: Box<Self>) -> Suspended {
        self.phase = Phase::Suspended;
        let Driver { host, admission, committer, .. } = &mut self.driver;
        let Committer { shared, state, telemetry, clock, .. } = committer;
        Suspended(Some(Box::new(Parts {
            shared: Arc::clone(shared),
            host: Arc::clone(host),
            state: state.suspend(),
            permit: admission.take_permit(),
            meter: telemetry.meter.take(),
            check: telemetry.check.take(),
            clock: clock.suspend(),
        })))
    }
}

impl Driver {
    /// Frees memory that a waiting run may not need soon.
    pub(super) fn give_back(&mut self) {
        let Committer { shared, state, .. } = &mut self.committer;
        shared.signals.mailbox.shrink();
        if state.scheduler.last_seq().0 <= SHORT {
            self.executor.shrink();
            state.shrink();
        }
    }
}

impl Suspended {
    /// The run as it was before it was suspended; `None` if it was restored before.
    pub(super) fn restore(mut self) -> Option<Box<Run>> {
        self.0.take().map(Parts::restore)
    }

    /// Ready when a handle has something for the run.
    pub(super) fn poll_news(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(parts) = &self.0 else { return Poll::Ready(()) };
        parts.shared.signals.register(cx.waker());
        if parts.shared.signals.has_news() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Parts {
    /// Builds the run again, with a new executor and new alarms.
    fn restore(self: Box<Self>) -> Box<Run> {
        let Self { shared, host, state, permit: (permit, most), meter, check, clock } = *self;
        let state = state.restore(Arc::clone(&host.table));
        let clock = RunClock::restore(shared.common.clock.clone(), &clock);
        let (admission, telemetry) =
            (Admission::with_permit(permit, most), Telemetry::unspanned(meter, check));
        Run::of(host, admission, Committer::new(shared, StateBox::of(state), telemetry, clock))
    }
}

impl Drop for Suspended {
    /// The task of the run is dropped: the run ends as any other would.
    fn drop(&mut self) {
        drop(self.0.take().map(Parts::restore));
    }
}

//! A run that waits in memory, in as little of it as it takes: there may be very many. It is made whole again as soon as
//! there is something to do.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::clock::RunClock;
use super::drive::Run;
use super::host::Host;
use super::log::{Log, ParkedLog};
use super::meter::Meter;
use super::rest::SHORT;
use super::seat::Seat;
use super::shared::RunShared;
use super::trace::{ParkedTrace, Trace};
use crate::scheduler::ParkedScheduler;

/// The run; none once it is whole again.
pub(super) struct Parked(Option<Box<Parts>>);

/// What is left of it while nothing runs, is on its way or is waited for but news from its handles.
struct Parts {
    shared: Arc<RunShared>,
    host: Arc<Host>,
    scheduler: ParkedScheduler,
    log: ParkedLog,
    trace: ParkedTrace,
    meter: Meter,
    clock: RunClock,
    seat: Option<Box<Seat>>,
}

impl Run {
    /// Whether it can be parked: it waits for its handles and for nothing else, and has no more than it takes for that. A
    /// long log would be moved each time that something comes in. O(1).
    pub(super) fn can_park(&self) -> bool {
        self.scheduler.last_seq().0 <= SHORT
            && self.has_nothing_to_do()
            && self.scheduler.can_park()
            && self.log.can_park()
            && self.trace.can_park()
            && !self.shared.has_news()
    }

    fn has_nothing_to_do(&self) -> bool {
        let Self {
            shared,
            host: _,
            scheduler: _,
            log: _,
            trace: _,
            in_flight,
            threads: _,
            droppable,
            dropping,
            arrived,
            committing,
            first,
            receiving,
            journal,
            failures,
            precondition_failures,
            asked,
            timers,
            budget,
            cancel_reason,
            limits: _,
            spans: _,
            meter: _,
            clock: _,
            patience,
            is_released,
            is_left,
            is_parked,
            held,
            seat: _,
            fence,
        } = self;
        let is_quiet = in_flight.is_empty() && droppable.is_empty() && *dropping == 0 && held.is_empty();
        let has_all = arrived.is_empty()
            && first.is_none()
            && receiving.is_empty()
            && committing.is_none()
            && asked.is_empty();
        let is_plain = failures.is_empty() && precondition_failures.is_empty() && cancel_reason.is_none();
        let has_no_time = timers.is_empty() && !budget.is_bounded() && patience.is_none();
        let is_kept = journal.is_some() || fence.is_some() || *is_released || *is_left || *is_parked;
        let is_alone = shared.birth().is_none() && shared.children.get().is_none();
        let is_watched = shared.common.observers.wants_spans();
        is_quiet && has_all && is_plain && has_no_time && !is_kept && is_alone && !is_watched
    }

    /// Parks the run, which [can be](Self::can_park).
    pub(super) fn park(mut self: Box<Self>) -> Parked {
        let parts = Parts {
            shared: Arc::clone(&self.shared),
            host: Arc::clone(&self.host),
            scheduler: self.scheduler.park(),
            log: self.log.park(),
            trace: self.trace.park(),
            meter: self.meter.take(),
            clock: self.clock.clone(),
            seat: self.seat.take(),
        };
        self.is_parked = true;
        Parked(Some(Box::new(parts)))
    }
}

impl Parked {
    /// The run as it was.
    pub(super) fn whole(mut self) -> Option<Box<Run>> {
        self.0.take().map(Parts::whole)
    }

    /// Ready when there is something for the run to do.
    pub(super) fn poll_news(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(parts) = &self.0 else { return Poll::Ready(()) };
        parts.shared.bell.register(cx.waker());
        if parts.shared.has_news() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Parts {
    fn whole(self: Box<Self>) -> Box<Run> {
        let Self { shared, host, scheduler, log, trace, meter, clock, seat } = *self;
        let limits = scheduler.limits();
        let scheduler = scheduler.unpark(Arc::clone(&host.table));
        let mut run = Run::of(shared, host, limits, scheduler, meter, clock);
        run.log = Log::unpark(log);
        run.trace = Trace::unpark(trace);
        run.seat = seat;
        run
    }
}

impl Drop for Parked {
    /// The task of the run is gone: it ends as any other then.
    fn drop(&mut self) {
        drop(self.0.take().map(Parts::whole));
    }
}

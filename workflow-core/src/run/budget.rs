//! How long a run may be active (S32): the time in which it does not wait for anything from outside or for a
//! timer. A run without a bound has none of this but an empty place.

use std::sync::Arc;
use std::time::Duration;

use super::drive::Run;
use super::in_flight::{Dropped, Due, InFlight};
use crate::scheduler::Fact;

/// The time that a run has, and what of it is used up.
#[derive(Debug, Default)]
pub(super) struct Budget(Option<Box<Account>>);

#[derive(Debug)]
struct Account {
    limit: Duration,
    /// Of the times before the run waited last.
    used: Duration,
    /// Since when the run is active, and how to drop the alarm for the end of its time; none while it waits.
    active: Option<(Duration, Arc<Dropped>)>,
}

impl Budget {
    pub(super) fn of(limit: Option<Duration>) -> Self {
        Self(limit.map(|limit| Box::new(Account { limit, used: Duration::ZERO, active: None })))
    }

    /// Whether there is a bound.
    pub(super) fn is_bounded(&self) -> bool {
        self.0.is_some()
    }

    /// How long the run may be active; no time for one without a bound.
    pub(super) fn limit(&self) -> Duration {
        self.0.as_ref().map_or(Duration::ZERO, |account| account.limit)
    }
}

impl Run {
    /// From here on the time counts, until the run waits.
    pub(super) fn count_time(&mut self) {
        let Some(account) = self.budget.0.as_mut().filter(|account| account.active.is_none()) else { return };
        let left = account.limit.saturating_sub(account.used);
        // A time that no clock can show does not come.
        let Some(end) = self.clock.wall().checked_add(left) else { return };
        let dropped = Arc::<Dropped>::default();
        account.active = Some((self.clock.now, Arc::clone(&dropped)));
        let sleep = self.shared.common.clock.sleep_until(end);
        self.in_flight.push(InFlight::Wait(Due::Timeout, sleep, dropped));
    }

    /// The run waits: the time that passes is not its own.
    pub(super) fn stop_counting_time(&mut self) {
        let Some(account) = &mut self.budget.0 else { return };
        if let Some((since, alarm)) = account.active.take() {
            account.used += self.clock.now.saturating_sub(since);
            self.dropping += usize::from(alarm.tell());
        }
    }

    /// In a run that comes to stand where its journal ends, time counts without an alarm.
    pub(super) fn goes_on(&mut self) {
        if let Some(account) = &mut self.budget.0 {
            account.active.get_or_insert_with(|| (self.clock.now, Arc::default()));
        }
    }

    /// The same run waits, or is where its journal ends.
    pub(super) fn rests(&mut self) {
        self.rests_since(self.clock.now);
    }

    /// It has done so since then.
    pub(super) fn rests_since(&mut self, then: Duration) {
        let Some(account) = &mut self.budget.0 else { return };
        if let Some((since, _)) = account.active.take() {
            account.used += then.saturating_sub(since);
        }
    }

    /// It has done so for that long, before it went on as it does.
    pub(super) fn has_rested(&mut self, time: Duration) {
        if let Some((since, _)) = self.budget.0.as_mut().and_then(|account| account.active.as_mut()) {
            *since = (*since + time).min(self.clock.now);
        }
    }

    /// The alarm has rung. One that rang while the run came to wait is of no more interest.
    pub(super) fn time_ran_out(&mut self) {
        if self.budget.0.as_ref().is_some_and(|account| account.active.is_some()) {
            self.scheduler.apply(Fact::TimeRanOut);
        }
    }
}

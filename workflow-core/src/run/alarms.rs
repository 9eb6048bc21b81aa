//! The times that a run waits for: the earliest of its timers, and the end of the time that it may be active (S32).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;

use super::drive::Run;
use super::in_flight::{Dropped, Due};
use super::state::{Batch, Stop};

/// What wakes a run at a time.
#[derive(Default)]
pub(super) struct Alarms {
    /// For the earliest timer, and how to drop it.
    timer: Option<(SystemTime, Arc<Dropped>)>,
    /// The latest time that an alarm has ended for: it has come, whatever the run's own reckoning says.
    rang: Option<SystemTime>,
    /// How long the run may be active.
    limit: Option<Duration>,
    /// For the end of that time; none while the run waits.
    limit_alarm: Option<Arc<Dropped>>,
    /// Until the run is unloaded, while it waits.
    pub(super) idle: Option<BoxFuture<'static, ()>>,
}

impl Alarms {
    /// Of a run that may be active for so long.
    pub(super) fn of(limit: Option<Duration>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// How long the run may be active; no time for one without a bound.
    pub(super) fn limit(&self) -> Duration {
        self.limit.unwrap_or_default()
    }

    /// The alarm for a timer that is due then has rung.
    pub(super) fn rings(&mut self, at: SystemTime) {
        self.timer.take_if(|(due, _)| *due == at);
        self.rang = self.rang.max(Some(at));
    }

    /// Timers are set from here on. The clock may have been set back since the last alarm rang: it says when they are due.
    pub(super) fn sets_timers(&mut self) {
        self.rang = None;
    }

    /// Whether there is none, and there will be none.
    pub(super) fn are_none(&self) -> bool {
        self.timer.is_none() && self.rang.is_none() && self.limit.is_none() && self.idle.is_none()
    }
}

impl Run {
    /// Fires the timer that is due, if one is; else sees to it that the run is woken for the next one.
    pub(super) fn take_timer(&mut self) -> bool {
        let state = &mut *self.state;
        let Some((due, timer)) = state.timers.next(&state.scheduler) else { return false };
        if due > self.clock.wall() && Some(due) > self.alarms.rang {
            self.set_alarm(due);
            return false;
        }
        if let Some(event) = self.state.timers.event(due, timer) {
            let next = self.commit(Batch::Fired { timer, event }, None);
            self.follow(next);
        }
        true
    }

    fn set_alarm(&mut self, due: SystemTime) {
        if self.alarms.timer.as_ref().is_some_and(|(at, _)| *at == due) {
            return;
        }
        let sleep = self.shared.common.clock.sleep_until(due);
        let alarm = self.executor.wait(Due::Timer(due), sleep);
        let earlier = self.alarms.timer.replace((due, alarm));
        self.executor.drop_wait(earlier.map(|(_, alarm)| alarm));
    }

    /// From here on the time counts, until the run waits.
    pub(super) fn count_time(&mut self) {
        let Some(limit) = self.alarms.limit.filter(|_| self.alarms.limit_alarm.is_none()) else { return };
        self.state.active.resume(self.clock.now);
        let Some(end) = self.state.active.runs_out(limit) else { return };
        let left = end.saturating_sub(self.clock.now);
        // A time that no clock can show does not come.
        let Some(end) = self.clock.wall().checked_add(left) else { return };
        let sleep = self.shared.common.clock.sleep_until(end);
        self.alarms.limit_alarm = Some(self.executor.wait(Due::Timeout, sleep));
    }

    /// The time that passes from here on is not the run's own: it waits, or others have its permit.
    pub(super) fn stop_counting_time(&mut self) {
        if self.alarms.limit.is_some() {
            self.state.active.rest(self.clock.now);
            let alarm = self.alarms.limit_alarm.take();
            self.executor.drop_wait(alarm);
        }
    }

    /// The alarm has rung. One that rang while the run came to wait is of no more interest.
    pub(super) fn time_ran_out(&mut self) {
        if self.alarms.limit_alarm.take().is_some() {
            let _ = self.commit(Batch::Stopped(Stop::TimedOut), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn set(seconds: u64) -> Alarms {
        Alarms { timer: Some((at(seconds), Arc::default())), ..Alarms::default() }
    }

    // S32
    #[test]
    fn an_alarm_rings_once_and_one_for_another_time_stays() {
        let mut alarms = set(5);
        alarms.rings(at(3));
        assert!(alarms.timer.is_some() && alarms.rang == Some(at(3)));
        alarms.rings(at(5));
        assert!(alarms.timer.is_none());
    }

    // S32
    #[test]
    fn a_time_that_has_come_has_come_until_timers_are_set() {
        let mut alarms = set(5);
        alarms.rings(at(5));
        alarms.rings(at(4));
        assert_eq!(alarms.rang, Some(at(5)), "alarms that end late take nothing back");
        assert!(!alarms.are_none());
        alarms.sets_timers();
        assert!(alarms.are_none());
    }

    #[test]
    fn a_run_with_a_bound_for_its_time_has_one_to_come() {
        assert!(Alarms::of(None).are_none());
        assert_eq!(Alarms::of(None).limit(), Duration::ZERO);
        let bounded = Alarms::of(Some(Duration::from_secs(9)));
        assert!(!bounded.are_none());
        assert_eq!(bounded.limit(), Duration::from_secs(9));
    }
}

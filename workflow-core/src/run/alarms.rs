//! The times that a run waits for: the earliest of its timers, and the end of the time that it may be active (S32).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;

use super::clock::RunClock;
use super::commit::Committer;
use super::driver::Driver;
use super::in_flight::{Dropped, Due};
use super::state::ActiveTime;

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

    /// Whether the time of a timer has come: the clock shows it, or an alarm has rung for it.
    pub(super) fn has_come(&self, due: SystemTime, wall: SystemTime) -> bool {
        due <= wall || Some(due) <= self.rang
    }

    /// Sets the alarm for the timer that is due then, unless there is one for that time. Returns the one before it, for the
    /// caller to drop.
    pub(super) fn set(
        &mut self,
        due: SystemTime,
        wait: impl FnOnce() -> Arc<Dropped>,
    ) -> Option<Arc<Dropped>> {
        if self.timer.as_ref().is_some_and(|(at, _)| *at == due) {
            return None;
        }
        self.timer.replace((due, wait())).map(|(_, alarm)| alarm)
    }

    /// Counts the time from here on, until the run waits. `wait` makes the alarm for the end of the time.
    fn count(
        &mut self,
        active: &mut ActiveTime,
        clock: &RunClock,
        wait: impl FnOnce(SystemTime) -> Arc<Dropped>,
    ) {
        let Some(limit) = self.limit.filter(|_| self.limit_alarm.is_none()) else { return };
        active.resume(clock.now);
        let Some(end) = active.runs_out(limit) else { return };
        let left = end.saturating_sub(clock.now);
        // A time that no clock can show does not come.
        self.limit_alarm = clock.wall().checked_add(left).map(wait);
    }

    /// Stops counting. Returns the alarm, for the caller to drop.
    fn rest(&mut self, active: &mut ActiveTime, now: Duration) -> Option<Arc<Dropped>> {
        self.limit?;
        active.rest(now);
        self.limit_alarm.take()
    }

    /// The alarm for the end of the time has rung; says whether that is of interest. One that rang while the run came to wait
    /// is not.
    pub(super) fn time_is_over(&mut self) -> bool {
        self.limit_alarm.take().is_some()
    }

    /// Whether there is none, and there will be none.
    pub(super) fn are_none(&self) -> bool {
        self.timer.is_none() && self.rang.is_none() && self.limit.is_none() && self.idle.is_none()
    }
}

impl Driver {
    /// From here on the time counts, until the run waits.
    pub(super) fn count_time(&mut self) {
        let Committer { shared, state, clock, .. } = &mut self.committer;
        self.alarms.count(&mut state.active, clock, |end| {
            self.executor.wait(Due::Timeout, shared.common.clock.sleep_until(end))
        });
    }

    /// The time that passes from here on is not the run's own: it waits, or others have its permit.
    pub(super) fn stop_counting_time(&mut self) {
        let Committer { state, clock, .. } = &mut self.committer;
        let alarm = self.alarms.rest(&mut state.active, clock.now);
        self.executor.drop_wait(alarm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::EngineClock;

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

    // S32
    #[test]
    fn a_timer_has_come_by_the_clock_or_by_its_alarm_and_each_time_has_one_alarm() {
        let mut alarms = Alarms::default();
        assert!(alarms.set(at(5), Arc::default).is_none());
        assert!(alarms.set(at(5), || panic!("there is one")).is_none());
        assert!(alarms.set(at(3), Arc::default).is_some(), "the one before is to be dropped");
        assert!(alarms.has_come(at(3), at(3)) && !alarms.has_come(at(3), at(2)));
        alarms.rings(at(3));
        assert!(alarms.has_come(at(3), at(2)), "the clock was set back");
    }

    // S32
    #[test]
    fn the_time_counts_from_when_it_is_said_until_the_run_waits() {
        let seconds = Duration::from_secs;
        let mut clock = RunClock::start(EngineClock::default());
        let (mut active, mut alarms) = (ActiveTime::default(), Alarms::of(Some(seconds(9))));
        alarms.count(&mut active, &clock, |_| Arc::default());
        alarms.count(&mut active, &clock, |_| panic!("it counts already"));
        assert!(alarms.rest(&mut active, seconds(4)).is_some(), "it is to be dropped");
        assert!(!alarms.time_is_over(), "the run waits");
        clock.now = seconds(20);
        alarms.count(&mut active, &clock, |_| Arc::default());
        assert_eq!(active.runs_out(seconds(9)), Some(seconds(25)));
        assert!(alarms.time_is_over() && !alarms.time_is_over());

        let mut unbounded = Alarms::default();
        unbounded.count(&mut active, &clock, |_| panic!("nothing bounds it"));
        assert!(unbounded.rest(&mut active, seconds(30)).is_none());
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

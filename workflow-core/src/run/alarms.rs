//! The alarms of a run: for its earliest timer, for the end of its active time, and for its unloading (S32).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;

use super::clock::RunClock;
use super::commit::Committer;
use super::driver::Driver;
use super::in_flight::{DropSignal, Due};
use super::state::ActiveTime;

/// The pending alarms of a run. Those for timers and active time are sleeps in the executor, with their drop
/// signals here; the task of the run polls `idle` itself.
#[derive(Default)]
pub(super) struct Alarms {
    /// The alarm for the earliest timer: its time and its drop signal.
    timer: Option<(SystemTime, Arc<DropSignal>)>,
    /// The latest time for which an alarm rang. That time has come, even if the clock was set back.
    rang: Option<SystemTime>,
    /// The alarm for the end of the active time; `None` while the run waits.
    limit_alarm: Option<Arc<DropSignal>>,
    /// The idle timeout until the run is unloaded, while it waits.
    pub(super) idle: Option<BoxFuture<'static, ()>>,
}

impl Alarms {
    /// Forgets the alarms, because the run has ended and their sleeps are dropped.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Notes that the alarm for this time rang.
    pub(super) fn rings(&mut self, at: SystemTime) {
        self.timer.take_if(|(due, _)| *due == at);
        self.rang = self.rang.max(Some(at));
    }

    /// Notes that new timers are set. From here on the clock alone decides what is due, since it may have
    /// been set back.
    pub(super) fn sets_timers(&mut self) {
        self.rang = None;
    }

    /// Whether a timer is due: by the clock, or because an alarm rang for its time.
    pub(super) fn has_come(&self, due: SystemTime, wall: SystemTime) -> bool {
        due <= wall || Some(due) <= self.rang
    }

    /// Sets the alarm for the earliest timer, unless there is one for that time. Returns the alarm before,
    /// for the caller to drop.
    pub(super) fn set(
        &mut self,
        due: SystemTime,
        wait: impl FnOnce() -> Arc<DropSignal>,
    ) -> Option<Arc<DropSignal>> {
        if self.timer.as_ref().is_some_and(|(at, _)| *at == due) {
            return None;
        }
        self.timer.replace((due, wait())).map(|(_, alarm)| alarm)
    }

    /// Starts to count active time, up to this limit. `wait` creates the alarm for its end.
    fn count(
        &mut self,
        limit: Duration,
        active: &mut ActiveTime,
        clock: &RunClock,
        wait: impl FnOnce(SystemTime) -> Arc<DropSignal>,
    ) {
        if self.limit_alarm.is_some() {
            return;
        }
        active.resume(clock.now);
        // The alarm is by the engine's clock, and the active time by the run's.
        let Some(end) = active.runs_out(limit) else { return };
        let left = end.saturating_sub(clock.now);
        // A time beyond the clock's range never comes.
        self.limit_alarm = clock.wall().checked_add(left).map(wait);
    }

    /// Stops counting active time. Returns the alarm, for the caller to drop.
    fn rest(&mut self, active: &mut ActiveTime, now: Duration) -> Option<Arc<DropSignal>> {
        active.pause(now);
        self.limit_alarm.take()
    }

    /// Notes that the alarm for the active time rang. Returns false if the run waits meanwhile: the alarm is
    /// then void.
    pub(super) fn time_is_over(&mut self) -> bool {
        self.limit_alarm.take().is_some()
    }

    /// Whether the run has no alarm. One with a timeout sets another one.
    pub(super) fn are_none(&self) -> bool {
        self.timer.is_none() && self.rang.is_none() && self.limit_alarm.is_none() && self.idle.is_none()
    }
}

impl Driver {
    /// Starts to count active time, until the run waits.
    pub(super) fn count_time(&mut self) {
        // A run that has ended has no more time to count, and clean-up has a time of its own.
        if self.committer.state.end().is_some() {
            return;
        }
        let Committer { shared, state, clock, .. } = &mut self.committer;
        let Some(limit) = shared.time_limit() else { return };
        self.alarms.count(limit, &mut state.active, clock, |end| {
            self.executor.wait(Due::Timeout, shared.common.clock.sleep_until(end))
        });
    }

    /// Stops counting active time: the run waits, or other runs have the permits.
    pub(super) fn stop_counting_time(&mut self) {
        let Committer { shared, state, clock, .. } = &mut self.committer;
        if shared.time_limit().is_some() {
            let alarm = self.alarms.rest(&mut state.active, clock.now);
            self.executor.drop_wait(alarm);
        }
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
        let (limit, mut active, mut alarms) = (seconds(9), ActiveTime::default(), Alarms::default());
        alarms.count(limit, &mut active, &clock, |_| Arc::default());
        assert!(!alarms.are_none());
        alarms.count(limit, &mut active, &clock, |_| panic!("it counts already"));
        assert!(alarms.rest(&mut active, seconds(4)).is_some(), "it is to be dropped");
        assert!(!alarms.time_is_over(), "the run waits");
        clock.now = seconds(20);
        alarms.count(limit, &mut active, &clock, |_| Arc::default());
        assert_eq!(active.runs_out(limit), Some(seconds(25)));
        assert!(alarms.time_is_over() && !alarms.time_is_over());
    }
}

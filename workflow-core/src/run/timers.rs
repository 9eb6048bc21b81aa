//! The timers of a run that are waited for: by one alarm, for the earliest. Which of them are pending is the
//! scheduler's to say; what it has dropped is forgotten here when its turn comes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::drive::{Received, Run};
use super::in_flight::{Dropped, Due, InFlight};
use crate::error::StepError;
use crate::event::AnyEvent;
use crate::id::{ScopeId, Seq, TimerId};
use crate::output::{Emitted, MAX_TIMERS, SetTimer, TimerError};
use crate::scheduler::{Fact, Scheduler, TimerEntry};

/// How many dropped timers are kept at least before they are looked for.
const SLACK: usize = 64;

/// A timer that is pending: what [`RunHandle::timers`](crate::RunHandle::timers) lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PendingTimer {
    /// Which.
    pub timer: TimerId,
    /// The step that has set it.
    pub step: Arc<str>,
    /// The wire name of the event that enters the log when it fires.
    pub event: Arc<str>,
    /// The scope that the event will be of.
    pub scope: ScopeId,
    /// For one that closes a request: the request's position.
    pub request: Option<Seq>,
    /// When it is due, by the engine's clock.
    pub due: SystemTime,
    /// The same from when the first event entered the log; 0 if it was due before.
    pub after: Duration,
}

impl fmt::Display for PendingTimer {
    /// Without a date, which is for people to choose a calendar and a place for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { timer, step, event, after, .. } = self;
        match self.request {
            Some(request) => write!(f, "{request} of `{step}` expires")?,
            None => write!(f, "timer {timer} of `{step}` fires `{event}`")?,
        }
        write!(f, " {after:?} after the run began")
    }
}

/// A timer on its way into the run.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) entry: TimerEntry,
    pub(super) due: SystemTime,
    pub(super) event: AnyEvent,
}

/// What is waited for.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// By due time and then in the order of setting, which is the order in which they fire.
    queue: BTreeMap<(SystemTime, TimerId), AnyEvent>,
    /// What wakes the run for the earliest, and how to drop it.
    alarm: Option<(SystemTime, Arc<Dropped>)>,
    /// The latest time that an alarm has ended for: it has come, whatever the run's own reckoning says.
    rang: Option<SystemTime>,
}

impl Timers {
    /// Whether none is pending.
    pub(super) fn has_none(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether nothing was set that may still come.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.alarm.is_none() && self.rang.is_none()
    }

    /// The earliest that is still pending.
    fn next(&mut self, scheduler: &Scheduler) -> Option<(SystemTime, TimerId)> {
        while let Some(((due, timer), _)) = self.queue.first_key_value() {
            if scheduler.timer(*timer).is_some() {
                return Some((*due, *timer));
            }
            self.queue.pop_first();
        }
        None
    }

    fn insert(&mut self, setting: Setting, scheduler: &Scheduler) {
        let Setting { entry, due, event } = setting;
        self.queue.insert((due, entry.timer), event);
        // The clock may have been set back since.
        self.rang = None;
        // What was dropped long before it is due must not pile up.
        if self.queue.len() > 2 * scheduler.timers().len().max(SLACK) {
            self.queue.retain(|(_, timer), _| scheduler.timer(*timer).is_some());
        }
    }

    pub(super) fn rings(&mut self, at: SystemTime) {
        self.alarm.take_if(|(due, _)| *due == at);
        self.rang = self.rang.max(Some(at));
    }

    /// Those that are pending, in the order in which they fire.
    pub(super) fn pending<'a>(
        &'a self,
        scheduler: &'a Scheduler,
    ) -> impl Iterator<Item = (SystemTime, &'a TimerEntry)> {
        self.queue.keys().filter_map(|(due, timer)| Some((*due, scheduler.timer(*timer)?)))
    }
}

impl Run {
    /// Whether the run may have so many timers more.
    pub(super) fn check_timers(&self, emitted: &Emitted) -> Result<(), StepError> {
        let more = emitted.timers();
        if more == 0 || self.scheduler.count_timers() + more <= MAX_TIMERS {
            return Ok(());
        }
        Err(TimerError::TooMany { limit: MAX_TIMERS }.into())
    }

    /// What a batch sets, each with the time that it comes to.
    pub(super) fn settings(&self, entries: Vec<TimerEntry>, timers: Vec<SetTimer>) -> Vec<Setting> {
        debug_assert_eq!(entries.len(), timers.len(), "timers are set as they were committed");
        if entries.is_empty() {
            return Vec::new();
        }
        let now = self.clock.wall();
        let timers = entries.into_iter().zip(timers);
        timers.map(|(entry, SetTimer { when, event })| Setting { entry, due: when.due(now), event }).collect()
    }

    /// The batch that sets them is in the log.
    pub(super) fn set_timers(&mut self, settings: Vec<Setting>) {
        for setting in settings {
            // One that is not pending was dropped with its branch, or with the run.
            if self.scheduler.timer(setting.entry.timer).is_some() {
                self.timers.insert(setting, &self.scheduler);
            }
        }
    }

    /// Fires the timer that is due, if one is; else sees to it that the run is woken for the next one.
    pub(super) fn take_timer(&mut self) -> bool {
        let Some((due, timer)) = self.timers.next(&self.scheduler) else { return false };
        if due > self.clock.wall() && Some(due) > self.timers.rang {
            self.set_alarm(due);
            return false;
        }
        if let Some(event) = self.timers.queue.remove(&(due, timer)) {
            self.receive(Received { event, done: None }, Fact::TimerFired { timer });
        }
        true
    }

    fn set_alarm(&mut self, due: SystemTime) {
        if self.timers.alarm.as_ref().is_some_and(|(at, _)| *at == due) {
            return;
        }
        let dropped = Arc::<Dropped>::default();
        if let Some((_, earlier)) = self.timers.alarm.replace((due, Arc::clone(&dropped))) {
            self.dropping += usize::from(earlier.tell());
        }
        let sleep = self.shared.common.clock.sleep_until(due);
        self.in_flight.push(InFlight::Wait(Due::Timer(due), sleep, dropped));
    }
}

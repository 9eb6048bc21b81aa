//! The timers of a run, by due time. The scheduler knows which are pending. This queue removes a dropped
//! timer lazily, when its turn comes or when dropped ones pile up.
//!
//! ```text
//!  scheduler    pending: 1, 3
//!  queue        (10:00, 1) (10:05, 2) (10:05, 3)      2 was dropped with its branch
//!  next         1, and after it 3: removes 2 on the way
//! ```
//!
//! Invariant: each pending timer of the scheduler is in the queue, with its event. The reverse does not hold.
//! So every look at the queue asks the scheduler.
//!
//! Example: a request with an expiry gets its reply. The scheduler removes the timer at once. The queue keeps
//! its entry until it would be the next to fire.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::event::AnyEvent;
use crate::id::TimerId;
use crate::scheduler::{Scheduler, TimerEntry};

/// The queue removes dropped timers once it has more than twice as many timers as are pending, or as this.
const SLACK: usize = 64;

/// An event and the time at which it is due.
#[derive(Debug, Clone)]
pub(crate) struct DueEvent {
    /// By the engine's clock. The journal has this time, so a resume changes nothing.
    pub(crate) due: SystemTime,
    /// The event that enters the log when the timer fires.
    pub(crate) event: AnyEvent,
}

/// Timers by due time and then by the order of setting, which is the order in which they fire.
#[derive(Debug, Default)]
pub(crate) struct TimerQueue(BTreeMap<(SystemTime, TimerId), AnyEvent>);

impl TimerQueue {
    /// Whether the queue is empty. Dropped timers that are still in it count.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn insert(
        &mut self,
        timer: TimerId,
        DueEvent { due, event }: DueEvent,
        scheduler: &Scheduler,
    ) {
        self.0.insert((due, timer), event);
        // Timers that were dropped long before they fall due must not pile up. A redrive may want them back.
        if !scheduler.is_redrivable() && self.0.len() > 2 * scheduler.timers().len().max(SLACK) {
            self.0.retain(|(_, timer), _| scheduler.board().awaited.timer(*timer).is_some());
        }
    }

    /// The earliest pending timer. Removes dropped ones before it.
    pub(crate) fn next(&mut self, scheduler: &Scheduler) -> Option<(SystemTime, TimerId)> {
        while let Some(((due, timer), _)) = self.0.first_key_value() {
            if scheduler.board().awaited.timer(*timer).is_some() {
                return Some((*due, *timer));
            }
            self.0.pop_first();
        }
        None
    }

    /// The event of a timer.
    pub(crate) fn event(&self, due: SystemTime, timer: TimerId) -> Option<AnyEvent> {
        self.0.get(&(due, timer)).cloned()
    }

    /// Removes a timer that has fired, if it is the earliest. In a replay another one may be: then the entry stays, and
    /// leaves as a dropped one does.
    pub(super) fn fired(&mut self, timer: TimerId) {
        if self.0.first_key_value().is_some_and(|((_, first), _)| *first == timer) {
            self.0.pop_first();
        }
    }

    /// The pending timers, in the order in which they fire.
    pub(crate) fn pending<'a>(
        &'a self,
        scheduler: &'a Scheduler,
    ) -> impl Iterator<Item = (SystemTime, &'a TimerEntry)> {
        self.0.keys().filter_map(|(due, timer)| Some((*due, scheduler.board().awaited.timer(*timer)?)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::event::Roles;
    use crate::table::{DependencyTable, EventDef, InputDef, StepDef};

    #[test]
    fn timers_that_the_scheduler_does_not_know_are_passed_over() {
        let table = DependencyTable::builder("none")
            .event(EventDef::new("E", Roles::NONE.start()))
            .step(StepDef::new("take").input(InputDef::one("E")))
            .build_unchecked()
            .expect("the table is sound");
        let scheduler = Scheduler::new(table.into());
        let mut timers = TimerQueue::default();
        let event = AnyEvent::from_erased(std::sync::Arc::new(crate::event::Gathered::new(Vec::new())));
        let due = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        timers.insert(TimerId(1), DueEvent { due, event }, &scheduler);
        assert_eq!(timers.pending(&scheduler).count(), 0);
        assert_eq!(timers.next(&scheduler), None);
        assert!(timers.is_empty());
    }
}

//! The progress of a run: the end of its log, its limits, and whether it waits or has ended.
//!
//! ```text
//!  start ─▶ runs ◀── accept ──▶ waits          `waits` is set by the scheduler at quiescence, unless the run is paused
//!             └───── finish ────▶ ended        until `reopen`; the first end counts (S28)
//! ```
//!
//! Example: the run waits at position 7. `accept` ends the wait, and the event gets 8. After `finish`,
//! `accept` returns false, and the caller refuses the fact.

use super::{End, SchedulerLimits};
use crate::id::Seq;

/// The progress of a run. Once `end` is set, only `reopen` changes it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts about the run")]
pub(crate) struct Progress {
    /// The limits of the run. They may change between replay and live execution.
    pub(crate) limits: SchedulerLimits,
    /// The position of the newest event; 0 before the first. Never decreases.
    last_seq: u64,
    /// Set by [`Action::Wait`](super::Action::Wait); reset by the next arrival.
    pub(super) waits: bool,
    /// Set once a failure was handled (S34).
    pub(super) degraded: bool,
    /// Whether nothing begins (S61). The end of the run ends it.
    pub(super) paused: bool,
    /// Whether everything is kept that only a redrive needs (S39): failed branches, dropped work, and questions that were
    /// answered with no. A live run keeps none of it, since a redrive begins with a replay.
    pub(super) redrivable: bool,
    /// How the run ended; `None` while it is open.
    end: Option<End>,
}

impl Progress {
    /// Creates the state of a run with an empty log.
    #[inline]
    pub(super) fn new(limits: SchedulerLimits) -> Self {
        let (waits, degraded, paused) = (false, false, false);
        Self { limits, last_seq: 0, waits, degraded, paused, redrivable: true, end: None }
    }

    /// Creates the state of a run that waits behind this position.
    pub(super) fn waiting(limits: SchedulerLimits, last: Seq, degraded: bool) -> Self {
        Self { last_seq: last.0, waits: true, degraded, redrivable: false, ..Self::new(limits) }
    }

    /// Takes the next position; `None` if the log is full.
    /// The limit may be lowered below `last_seq`, after a replay without limits: then no further event
    /// enters.
    #[inline]
    pub(super) fn next_seq(&mut self) -> Option<Seq> {
        if self.last_seq >= self.limits.events {
            return None;
        }
        self.last_seq += 1;
        Some(Seq(self.last_seq))
    }

    /// The position of the newest event; 0 before the first.
    #[inline]
    pub(super) fn last_seq(&self) -> Seq {
        Seq(self.last_seq)
    }

    /// Ends the wait, since something arrived. Returns whether the run accepts it: it has not ended.
    #[inline]
    pub(super) fn accept(&mut self) -> bool {
        self.waits = false;
        self.end.is_none()
    }

    #[inline]
    pub(super) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Ends the run, unless it has ended before.
    pub(super) fn finish(&mut self, end: End) {
        self.end.get_or_insert(end);
        self.paused = false;
    }

    /// Reopens a run that ended before it was complete. Returns false for any other end: a run that completed is
    /// over, and one that reached a limit has lost events (a replay, which has no limits, never gets there).
    pub(super) fn reopen(&mut self) -> bool {
        let reopens = match &self.end {
            None => true,
            Some(end) => end.can_reopen(),
        };
        if reopens {
            (self.end, self.waits, self.paused) = (None, false, false);
        }
        reopens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_have_no_gaps_up_to_the_limit() {
        let mut progress = Progress::new(SchedulerLimits { events: 2, ..SchedulerLimits::default() });
        assert_eq!([(); 4].map(|()| progress.next_seq()), [Some(Seq(1)), Some(Seq(2)), None, None]);
        progress.limits.events = 3;
        assert_eq!((progress.next_seq(), progress.last_seq()), (Some(Seq(3)), Seq(3)));
    }

    #[test]
    fn an_arrival_ends_the_wait_and_is_accepted_until_the_run_ends() {
        let mut progress = Progress::waiting(SchedulerLimits::default(), Seq(7), true);
        assert!(progress.waits && progress.degraded);
        assert!(progress.accept() && !progress.waits);
        progress.waits = true;
        progress.finish(End::Stalled);
        assert!(!progress.accept() && !progress.waits);
        assert_eq!(progress.last_seq(), Seq(7));
    }

    // S39
    #[test]
    fn a_run_reopens_unless_it_is_complete() {
        let mut progress = Progress::new(SchedulerLimits::default());
        progress.finish(End::Cancelled);
        assert!(progress.reopen() && !progress.has_ended());
        progress.finish(End::Completed(Seq(1)));
        assert!(!progress.reopen() && progress.has_ended());
    }

    #[test]
    fn a_run_ends_once() {
        let mut progress = Progress::new(SchedulerLimits::default());
        assert!(!progress.has_ended());
        progress.paused = true;
        progress.finish(End::Completed(Seq(1)));
        assert!(!progress.paused, "the end ends the pause (S61)");
        progress.finish(End::Cancelled);
        assert_eq!(progress.end(), Some(&End::Completed(Seq(1))));
    }
}

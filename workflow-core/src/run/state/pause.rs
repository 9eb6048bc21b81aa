//! The pause of a run (S61), as its journal determines it.
//!
//! ```text
//! RunPaused        own        ── paused, while one of both is set ──      RunUnpaused
//! RunPaused        by_parent                                              RunUnpaused by_parent
//! RunPaused        running: x1       x1 continues; of the others none has begun
//!                  dropped: x1       x1 begins again after the pause, and may have begun before (S53)
//! RunWaiting       nothing runs: active time stands still (S32)
//! RunResumed       nothing is under way any more
//! ```
//!
//! `running` and `dropped` are exact, since the live run knows what it has begun. So an execution that was scheduled
//! before the pause and had not begun is deferred by the scheduler, as those that follow later are: no life can have
//! begun it. One with earlier attempts stays where it is, and the driver holds its next attempt back.
//!
//! The scheduler knows whether the run is paused. The rest stands beside the facts about earlier lives of the run, since
//! only few runs have either.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;

use super::{Applied, PauseStart, RunState};
use crate::id::{ExecutionId, Origin};
use crate::scheduler::{CandidateId, Execution, ExecutionStart};

/// The causes of the pause, and the executions under way when it began.
#[derive(Debug, Default)]
pub(in crate::run) struct PauseState {
    /// Whether the run is paused by itself.
    pub(in crate::run) own: bool,
    /// Whether the run is paused with its parent.
    pub(in crate::run) by_parent: bool,
    /// The author of the run's own pause, if the caller named one.
    pub(in crate::run) origin: Option<Arc<Origin>>,
    /// The executions whose attempts were under way when the pause began, in this life, and have not failed since. Those
    /// that have ended may still be in here.
    pub(super) under_way: FxHashSet<ExecutionId>,
    /// When the pause began.
    pub(in crate::run) since: Duration,
    /// Whether nothing has run since the last batch.
    pub(super) rests: bool,
}

impl PauseState {
    /// The pause in words, for snapshots. Executions in order; whether the run rests is no fact of a batch.
    pub(super) fn line(&self) -> String {
        let Self { own, by_parent, origin, under_way, since, rests: _ } = self;
        let mut under_way: Vec<_> = under_way.iter().collect();
        under_way.sort_unstable();
        format!("pause own {own}, by parent {by_parent}, of {origin:?}, since {since:?}, with {under_way:?}")
    }
}

impl RunState {
    /// Whether the run is paused: nothing begins.
    #[inline]
    pub(in crate::run) fn is_paused(&self) -> bool {
        self.scheduler.is_paused()
    }

    /// Whether nothing runs in the paused run, as its journal says.
    pub(in crate::run) fn rests_in_pause(&self) -> bool {
        self.is_paused() && self.lives.pause().is_some_and(|pause| pause.rests)
    }

    /// Notes that nothing runs at this time, if the run is paused: `RunWaiting`. Its active time stands still.
    pub(in crate::run) fn note_rest(&mut self, at: Duration) {
        if self.is_paused() {
            self.active.pause(at);
            if let Some(pause) = self.lives.pause_mut() {
                pause.rests = true;
            }
        }
    }

    /// Notes that the run may run again, since a batch was applied to it.
    #[inline]
    pub(super) fn stir(&mut self) {
        if self.is_paused() {
            self.lives.note_unrest();
        }
    }

    /// Pauses the run, or pauses it for a further reason, or drops what is under way.
    #[cold]
    pub(super) fn pause(
        &mut self,
        PauseStart { by_parent, running, dropped, origin }: PauseStart,
    ) -> Applied {
        if self.end().is_some() {
            return Applied::Refused;
        }
        let unbegun = self.trace.running().into_iter().filter(|id| self.scheduler.is_running(*id));
        let unbegun = unbegun.filter(|id| !running.contains(id) && !dropped.contains(id));
        // A first attempt that no life can have begun is as one that follows later.
        let is_first = |id: &ExecutionId| self.trace.attempt(*id) == 1 && self.lives.is_untouched(*id);
        let (first, again): (Vec<_>, Vec<_>) = unbegun.partition(is_first);
        if !self.scheduler.pause(&first) {
            return Applied::Refused;
        }
        self.trace.unschedule(|id| first.contains(&id));
        self.effects.remove_attempts_of(first.into_iter());
        // The run waits again after the pause, if it still does.
        self.effects.remove_wait();
        // S34: those have begun, also where their delays passed in the very moment of the pause.
        running.iter().chain(&dropped).for_each(|id| self.trace.attempted_again(*id));
        for id in again {
            self.lives.defer(id, false);
        }
        for id in dropped {
            self.lives.defer(id, true);
        }
        if let Some(origin) = &origin {
            self.rare_mut().origins.note_act(origin);
        }
        let now = self.now;
        let pause =
            self.lives.pause_mut().get_or_insert_with(|| PauseState { since: now, ..PauseState::default() });
        let cause = if by_parent { &mut pause.by_parent } else { &mut pause.own };
        // The author of a repeated pause is not the one who paused the run.
        if !std::mem::replace(cause, true) && !by_parent {
            pause.origin = origin;
        }
        pause.under_way = running.into_iter().collect();
        self.note(1)
    }

    /// Defers the questions of the paused run that are not in flight, which were due before. No journal has which these
    /// are, since each is asked once more after a restart.
    pub(in crate::run) fn defer_questions(&mut self, is_asked: impl Fn(CandidateId) -> bool) {
        if self.is_paused() {
            let deferred = self.scheduler.defer_questions(is_asked);
            self.effects.remove_questions(&deferred);
        }
    }

    /// Ends a pause: the run's own, or that with its parent. Without another, deferred questions are asked and deferred
    /// executions begin, once the journal has that.
    #[cold]
    pub(super) fn unpause(&mut self, by_parent: bool, origin: Option<&Arc<Origin>>) -> Applied {
        let is_paused = self.is_paused();
        let is_repeated = match self.lives.pause_mut().as_mut().filter(|_| is_paused) {
            Some(pause) => !std::mem::take(if by_parent { &mut pause.by_parent } else { &mut pause.own }),
            None => true,
        };
        let has_id = origin.is_some_and(|origin| origin.id.is_some());
        if self.end().is_some() || is_repeated && !has_id {
            return Applied::Refused;
        }
        if let Some(origin) = origin {
            self.rare_mut().origins.note_act(origin);
        }
        let Some(pause) = self.lives.pause_mut().as_mut().filter(|_| !is_repeated) else {
            if !is_paused {
                // A run that waited waits again, behind the record.
                self.effects.remove_wait();
                self.scheduler.wait_again();
            }
            return self.note(1);
        };
        if !by_parent {
            pause.origin = None;
        }
        if pause.own || pause.by_parent {
            return self.note(1);
        }
        *self.lives.pause_mut() = None;
        self.scheduler.unpause();
        let applied = self.note(1);
        // Deferred work takes its place among the effects, and nothing else.
        self.advance(&mut 0);
        self.effects.ask_first();
        self.effects.postpone(self.position);
        applied
    }

    /// The executions of a paused run that began before, and whose next attempts wait for the end of the pause.
    pub(in crate::run) fn deferred_attempts(&self) -> impl Iterator<Item = ExecutionStart> {
        let pause = self.lives.pause().filter(|_| self.is_paused());
        let running = pause.map(|_| self.trace.running()).unwrap_or_default();
        let is_deferred = move |id: &ExecutionId| {
            let is_due = self.trace.next_attempt(*id).is_none_or(|due| due <= self.now);
            self.scheduler.is_running(*id)
                && is_due
                && pause.is_some_and(|pause| !pause.under_way.contains(id))
        };
        running.into_iter().filter(is_deferred).filter_map(|id| self.start_of(id))
    }

    /// The executions that were under way when the pause began, in this life, and that are still open.
    pub(super) fn under_way_of(&self, pause: &PauseState) -> Vec<ExecutionId> {
        let executions = self.scheduler.executions();
        let is_open = |id: &ExecutionId| executions.get(*id).is_some_and(Execution::is_open);
        let mut open: Vec<_> = pause.under_way.iter().copied().filter(is_open).collect();
        open.sort_unstable();
        open
    }
}

//! How a run ends, and when it rests (S28, S30).

use workflow_core::scheduler::End;

use super::line::Line;
use super::work::WorkState;
use super::{Model, Patience};

impl Model {
    /// S30: reports once that nothing is left to do, until something happens.
    pub(super) fn rest(&mut self) -> bool {
        let is_busy = self.questions.iter().any(|question| question.state == WorkState::Running)
            || self.executions.iter().any(|execution| execution.state != WorkState::Over);
        // S61: a paused run decides once it is unpaused whether it waits.
        if is_busy || self.waits || self.paused || self.log.is_empty() {
            return false;
        }
        // A timer fires by itself, with or without an effect.
        let has_timer = !self.pending_timers().is_empty();
        if has_timer || self.patience == Patience::Endless || self.can_go_on() {
            self.waits = true;
            self.out.push_back(Line::Waits);
        } else {
            self.finish(End::Stalled);
        }
        true
    }

    /// Ends the run and discards pending lines, except reports of what happened and drops.
    pub(super) fn finish(&mut self, end: End) {
        if self.end.is_some() {
            return;
        }
        self.todo.clear();
        self.trigger = None;
        let ending = self.plan_clean_up(&end);
        self.unread.clear();
        self.out.retain(Line::survives_the_end);
        self.out.push_back(ending);
        (self.end, self.paused) = (Some(end), false);
    }
}

//! How a run ends, and when it rests (S28, S30).

use workflow_core::scheduler::End;

use super::line::Line;
use super::work::WorkState;
use super::{Model, Patience};

impl Model {
    /// S30: nothing is left to do. Told once, until something happens.
    pub(super) fn rest(&mut self) -> bool {
        let is_busy = self.questions.iter().any(|question| question.state == WorkState::Running)
            || self.executions.iter().any(|execution| execution.state != WorkState::Over);
        if is_busy || self.waits || self.log.is_empty() {
            return false;
        }
        // A timer fires by itself, whatever comes of it.
        let has_timer = !self.pending_timers().is_empty();
        if has_timer || self.patience == Patience::Endless || self.can_go_on() {
            self.waits = true;
            self.out.push_back(Line::Waits);
        } else {
            self.finish(End::Stalled);
        }
        true
    }

    /// Ends the run. What was not handed out yet is not wanted any more, but for refusals.
    pub(super) fn finish(&mut self, end: End) {
        if self.end.is_some() {
            return;
        }
        self.todo.clear();
        self.trigger = None;
        self.unread.clear();
        self.out.retain(|line| {
            matches!(
                line,
                Line::RefusesCommit { .. }
                    | Line::RefusesReceived
                    | Line::Appends { .. }
                    | Line::Gathers { .. }
            )
        });
        self.out.push_back(Line::Ends(end.clone()));
        self.end = Some(end);
    }
}

//! S61: a paused run begins nothing. Work that is ready is deferred, and begins once the run is unpaused.

use super::Model;
use super::line::Line;
use super::work::WorkState;

impl Model {
    /// Whether the run is paused.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// How many questions and executions wait for the end of the pause. An execution that also waits for others of its
    /// step counts.
    pub fn deferred(&self) -> (usize, usize) {
        let questions = self.questions.iter().filter(|question| question.is_deferred && question.is_open());
        let executions = self.executions.iter().filter(|execution| execution.state == WorkState::Waiting);
        if self.paused { (questions.count(), executions.count()) } else { (0, 0) }
    }

    /// Defers the work that has not begun.
    pub(super) fn pause(&mut self) {
        if self.is_closed() {
            return;
        }
        self.paused = true;
        let (executions, questions) = (&mut self.executions, &mut self.questions);
        let place = |number: u64| usize::try_from(number).expect("work is little");
        self.out.retain(|line| match line {
            Line::Starts { execution, .. } => {
                executions[place(*execution) - 1].state = WorkState::Waiting;
                false
            }
            Line::Asks { question, .. } => {
                questions[place(*question)].is_deferred = true;
                false
            }
            _ => true,
        });
    }

    /// Questions come first, and then executions, both in order.
    pub(super) fn unpause(&mut self) {
        if !std::mem::take(&mut self.paused) {
            return;
        }
        for (question, number) in self.questions.iter_mut().zip(0..) {
            if std::mem::take(&mut question.is_deferred) && question.is_open() {
                self.out.push_back(Line::Asks { question: number, call: question.call.clone() });
            }
        }
        self.start_waiting();
    }
}

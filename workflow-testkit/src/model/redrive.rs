//! S39: a run that continues after its end. Running and failed work begins anew; committed and caught work stays.

use std::collections::BTreeMap;

use workflow_core::ExecutionId;
use workflow_core::scheduler::{End, Verdict};

use super::Model;
use super::branches::ScopeState;
use super::line::Line;
use super::work::{Question, WorkState};

impl Model {
    /// The executions whose failures end the run begin anew if it is redriven.
    pub(super) fn begin_anew_later(&mut self, failures: &[ExecutionId]) {
        for failure in failures {
            let place = usize::try_from(failure.0).expect("executions are few") - 1;
            self.executions[place].anew = true;
        }
    }

    /// How many branches are closed now, and open again if the run is redriven.
    pub fn branches_that_open_again(&self) -> usize {
        self.scopes.iter().filter(|scope| scope.anew == Some(ScopeState::Open)).count()
    }

    /// Removes the end, unless the run completed, or lost events at a limit or with its store.
    pub(super) fn redrive(&mut self) {
        let is_final = |end: &End| {
            matches!(
                end,
                End::Completed(_)
                    | End::LogFull
                    | End::TooManyExecutions
                    | End::TooManyItems(_)
                    | End::TooManyEvents(_)
                    | End::AppendFailed
            )
        };
        if self.end.as_ref().is_some_and(is_final) || self.is_to_clean_up() || self.cleans_up() {
            return;
        }
        (self.end, self.clean_up, self.paused) = (None, None, false);
        self.out.retain(|line| {
            !matches!(line, Line::Asks { .. } | Line::Starts { .. } | Line::Frees { .. } | Line::Waits)
        });
        self.reopen();
        self.begin_anew();
        self.ask_again();
    }

    /// Executions that ran, waited or failed start again, in order and within the limits of their steps.
    fn begin_anew(&mut self) {
        for place in 0..self.executions.len() {
            let is_open = self.is_open(self.executions[place].call.scope);
            let execution = &mut self.executions[place];
            if std::mem::take(&mut execution.anew) && is_open {
                execution.state = WorkState::Waiting;
                let scope = execution.call.scope;
                self.forget_failure(scope, ExecutionId(place as u64 + 1));
            } else if execution.state == WorkState::Running {
                execution.state = WorkState::Waiting;
            }
        }
        self.start_waiting();
    }

    /// Open questions first, under their numbers. Then, as new questions, those of dropped branches, and the latest of
    /// each step in each scope if it was refused.
    fn ask_again(&mut self) {
        let mut latest = BTreeMap::new();
        for (number, question) in self.questions.iter().enumerate() {
            latest.insert((question.call.step, question.call.scope), number);
            if question.state == WorkState::Running {
                let (question, call) = (number as u64, question.call.clone());
                self.out.push_back(Line::Asks { question, call });
            }
        }
        let is_again = |(number, question): &(usize, &Question)| {
            let Question { call, is_refused, anew, .. } = question;
            let is_latest = latest[&(call.step, call.scope)] == *number;
            (*anew || *is_refused && is_latest) && self.is_open(call.scope)
        };
        let again = self.questions.iter().enumerate().filter(is_again);
        let again: Vec<_> = again.map(|(_, question)| question.call.clone()).collect();
        for question in &mut self.questions {
            (question.anew, question.is_deferred) = (false, false);
        }
        for call in again {
            self.settle_evaluation(&call, Verdict::Asking);
            self.ask(call);
        }
    }
}

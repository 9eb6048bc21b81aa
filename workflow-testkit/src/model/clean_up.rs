//! Clean-up at the end of a run (S31): which steps run, in which order, one after another.

use workflow_core::RunStatus;
use workflow_core::scheduler::{Answer, End};

use super::line::{Call, Line};
use super::work::{Execution, Question, WorkState};
use super::{Model, Take};

/// The clean-up of an end.
#[derive(Debug)]
pub(super) struct CleanUp {
    /// The steps that have not begun, in the order in which they run.
    left: Vec<Call>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Planned,
    /// No step is asked or runs.
    Idle,
    /// The question of a step is open.
    Asks(u64),
    /// The execution of a step runs.
    Runs(u64),
    Over,
}

impl Model {
    /// Whether clean-up steps are to run, and have not begun.
    pub fn is_to_clean_up(&self) -> bool {
        self.clean_up.as_ref().is_some_and(|clean_up| clean_up.phase == Phase::Planned)
    }

    /// Whether clean-up steps run.
    pub fn cleans_up(&self) -> bool {
        let clean_up = self.clean_up.as_ref();
        clean_up.is_some_and(|clean_up| !matches!(clean_up.phase, Phase::Planned | Phase::Over))
    }

    /// Plans the clean-up, and returns the line that reports the end.
    pub(super) fn plan_clean_up(&mut self, end: &End) -> Line {
        let status = match end {
            End::Completed(_) | End::AppendFailed => return Line::Ends(end.clone()),
            End::Stalled => RunStatus::Stalled,
            End::Cancelled => RunStatus::Cancelled,
            End::TimedOut => RunStatus::TimedOut,
            _ => RunStatus::Failed,
        };
        // The log counts, whether evaluated or not.
        let unread: Vec<u64> =
            self.unread.iter().copied().filter(|seq| self.logged(*seq).scope == 0).collect();
        self.read.extend(unread);
        let mut planned: Vec<(u64, usize, Call)> = Vec::new();
        for (step, planned_step) in self.plan.steps.iter().enumerate() {
            if planned_step.on_end.is_some_and(|ends| ends.includes(status))
                && let Some((last, call)) = self.bound_at_end(step)
            {
                planned.push((last, step, call));
            }
        }
        // Ascending, since the last one is taken first.
        planned.sort_by_key(|(last, step, _)| (*last, *step));
        if planned.is_empty() {
            return Line::Ends(end.clone());
        }
        let left: Vec<Call> = planned.into_iter().map(|(_, _, call)| call).collect();
        let steps = left.iter().rev().map(|call| call.step).collect();
        self.clean_up = Some(CleanUp { left, phase: Phase::Planned });
        Line::CleansUp { end: end.clone(), steps }
    }

    /// The last event that the step requires, and its binding at the end; `None` if something is missing.
    fn bound_at_end(&self, step: usize) -> Option<(u64, Call)> {
        let (mut binding, mut last) = (Vec::new(), 0);
        for (input, events) in self.plan.steps[step].inputs.iter().zip(&self.taken[step]) {
            let visible = self.visible(0, *events);
            let bound = match input.take {
                Take::List => visible,
                Take::Fixed(count) if visible.len() < count as usize => Vec::new(),
                Take::Fixed(count) => visible[..count as usize].to_vec(),
                _ => visible.last().copied().into_iter().collect(),
            };
            if !input.can_lack() && bound.is_empty() {
                return None;
            }
            if !input.can_lack() {
                last = last.max(bound.last().copied().unwrap_or(0));
            }
            binding.push(bound);
        }
        // The first event triggers a step that requires nothing.
        let trigger = last.max(1);
        Some((last, Call { step, scope: 0, trigger, binding }))
    }

    /// What ran is dropped, and the first step begins.
    pub(super) fn start_clean_up(&mut self) {
        if self.is_to_clean_up() {
            self.begin_dropped_later();
            self.drop_everything();
            self.set_phase(Phase::Idle);
        }
    }

    /// What runs is dropped, and no further step begins.
    pub(super) fn stop_clean_up(&mut self) {
        let is_open = self.clean_up.as_ref().is_some_and(|clean_up| clean_up.phase != Phase::Over);
        if let Some(end) = self.end.clone().filter(|_| is_open) {
            if self.is_to_clean_up() {
                self.begin_dropped_later();
            }
            self.drop_everything();
            self.out.retain(Line::survives_the_end);
            self.set_phase(Phase::Over);
            self.out.push_back(Line::Ends(end));
        }
    }

    /// Begins the next step, or ends the run; `false` if there is nothing to do.
    pub(super) fn clean_up_next(&mut self) -> bool {
        let Some(clean_up) = self.clean_up.as_mut().filter(|clean_up| clean_up.phase == Phase::Idle) else {
            return false;
        };
        match (clean_up.left.pop(), self.end.clone()) {
            (Some(call), _) if self.plan.steps[call.step].has_precondition => {
                let question = self.questions.len() as u64;
                self.out.push_back(Line::Asks { question, call: call.clone() });
                self.questions.push(Question {
                    call,
                    state: WorkState::Running,
                    is_refused: false,
                    is_deferred: false,
                    anew: false,
                });
                self.set_phase(Phase::Asks(question));
            }
            (Some(call), _) => self.execute_clean_up(call),
            (None, Some(end)) => {
                self.set_phase(Phase::Over);
                self.out.push_back(Line::Ends(end));
            }
            (None, None) => {}
        }
        true
    }

    fn execute_clean_up(&mut self, call: Call) {
        let execution = self.executions.len() as u64 + 1;
        self.out.push_back(Line::Starts { execution, call: call.clone() });
        self.executions.push(Execution { call, state: WorkState::Running, anew: false });
        self.set_phase(Phase::Runs(execution));
    }

    /// An answer after the end: of a clean-up step, or too late.
    pub(super) fn answer_clean_up(&mut self, question: u64, answer: Answer) {
        let is_asked = self.clean_up.as_ref().is_some_and(|clean_up| clean_up.phase == Phase::Asks(question));
        if is_asked && let Some(call) = self.take_question(question) {
            match answer {
                Answer::Yes => self.execute_clean_up(call),
                Answer::No | Answer::Failed => self.set_phase(Phase::Idle),
            }
        }
    }

    /// Ends an execution of clean-up; returns `false` for any other.
    pub(super) fn end_clean_up_of(&mut self, execution: u64) -> bool {
        let runs = self.clean_up.as_ref().is_some_and(|clean_up| clean_up.phase == Phase::Runs(execution));
        if runs {
            self.set_phase(Phase::Idle);
        }
        runs
    }

    fn set_phase(&mut self, phase: Phase) {
        if let Some(clean_up) = &mut self.clean_up {
            clean_up.phase = phase;
        }
    }

    /// The work that the clean-up drops begins anew if the run is redriven.
    fn begin_dropped_later(&mut self) {
        for execution in &mut self.executions {
            execution.anew |= matches!(execution.state, WorkState::Running | WorkState::Waiting);
        }
        for question in &mut self.questions {
            question.anew |= question.state == WorkState::Running;
        }
    }

    fn drop_everything(&mut self) {
        self.questions.iter_mut().for_each(|question| question.state = WorkState::Over);
        self.executions.iter_mut().for_each(|execution| execution.state = WorkState::Over);
    }
}

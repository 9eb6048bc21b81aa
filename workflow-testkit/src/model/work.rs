//! Precondition evaluations and executions: what may execute (S18–S20) and start (S21), and the effects of success and
//! failure (S28, S29).

use workflow_core::ExecutionId;
use workflow_core::errors::Excess;
use workflow_core::scheduler::{Answer, CandidateId, Cause, Emission, End, Verdict};

use super::line::{Call, Evaluation, Line};
use super::{Model, Take};

/// A precondition in evaluation.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) call: Call,
    pub(super) state: WorkState,
    /// Whether it was answered with no.
    pub(super) is_refused: bool,
    /// Whether it was not asked yet, since the run was paused (S61).
    pub(super) is_deferred: bool,
    /// Whether it failed, or was open when its branch was dropped: a redrive asks it again.
    pub(super) anew: bool,
}

/// An execution: running, waiting for its turn, or ended.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) call: Call,
    pub(super) state: WorkState,
    /// Whether it is over, and a redrive begins it anew.
    pub(super) anew: bool,
}

impl Question {
    /// Whether it has no answer, and was not dropped.
    pub(super) fn is_open(&self) -> bool {
        self.state == WorkState::Running
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkState {
    Waiting,
    Running,
    Over,
}

impl Model {
    /// Whether the step took the gather (S48), was executed with the combination (S20), or has reached its limit (S19).
    /// All count per scope (S46).
    pub(super) fn used_up(&self, call: &Call) -> Option<Verdict> {
        let inputs = self.plan.steps[call.step].inputs.iter().zip(&call.binding);
        let mut gathers = inputs.filter(|(input, _)| input.take == Take::Gather).flat_map(|(_, seqs)| seqs);
        if let Some(taker) = gathers.find_map(|gather| self.taker_of(call.step, call.scope, *gather)) {
            return Some(Verdict::GatherTaken(taker));
        }
        let earlier = self.executions.iter().map(|execution| &execution.call);
        let earlier: Vec<&Call> =
            earlier.filter(|other| other.step == call.step && other.scope == call.scope).collect();
        let combination = self.combination(call.step, &call.binding);
        let is_duplicate =
            earlier.iter().any(|other| self.combination(call.step, &other.binding) == combination);
        let most = self.plan.steps[call.step].max_executions;
        let is_at_limit = most.is_some_and(|most| earlier.len() >= most as usize);
        let verdict = if is_duplicate { Verdict::Duplicate } else { Verdict::LimitReached };
        (is_duplicate || is_at_limit).then_some(verdict)
    }

    /// S48: the execution of the step in this scope that is bound to the gather.
    pub(super) fn taker_of(&self, step: usize, scope: u32, gather: u64) -> Option<ExecutionId> {
        let calls = (1..).map(ExecutionId).zip(self.executions.iter().map(|execution| &execution.call));
        let mut of_step = calls.filter(|(_, call)| call.step == step && call.scope == scope);
        let is_bound = |call: &Call| {
            let mut slots = self.plan.steps[step].inputs.iter().zip(&call.binding);
            slots.any(|(input, seqs)| input.take == Take::Gather && seqs.contains(&gather))
        };
        of_step.find_map(|(execution, call)| is_bound(call).then_some(execution))
    }

    pub(super) fn ask(&mut self, call: Call) {
        let question = self.questions.len() as u64;
        let is_deferred = self.paused;
        if !is_deferred {
            self.out.push_back(Line::Asks { question, call: call.clone() });
        }
        let (state, is_refused, anew) = (WorkState::Running, false, false);
        self.questions.push(Question { call, state, is_refused, is_deferred, anew });
    }

    /// Ends a question, if it is open.
    pub(super) fn take_question(&mut self, question: u64) -> Option<Call> {
        let question = self.questions.get_mut(usize::try_from(question).ok()?)?;
        let is_open = question.state == WorkState::Running;
        question.state = WorkState::Over;
        is_open.then(|| question.call.clone())
    }

    /// S18. An answer after the end, or while the run is stopping, comes too late.
    pub(super) fn answer(&mut self, question: u64, answer: Answer) {
        if self.is_closed() {
            return self.answer_clean_up(question, answer);
        }
        let Some(call) = self.take_question(question) else { return };
        let place = usize::try_from(question).expect("questions are few");
        self.questions[place].is_refused = answer == Answer::No;
        self.questions[place].anew = answer == Answer::Failed;
        match answer {
            // Between evaluation and answer, another trigger may have used the combination.
            Answer::Yes => match self.used_up(&call) {
                Some(verdict) => self.settle_evaluation(&call, verdict),
                None => self.execute(call),
            },
            Answer::No => self.settle_evaluation(&call, Verdict::Refused),
            Answer::Failed => {
                self.settle_evaluation(&call, Verdict::PreconditionFailed);
                self.finish(End::PreconditionFailed(CandidateId(question)));
            }
        }
    }

    /// Beyond the run's limit of executions, ends the run instead.
    pub(super) fn execute(&mut self, call: Call) {
        if self.executions.len() >= self.plan.executions {
            self.settle_evaluation(&call, Verdict::RunLimitReached);
            self.finish(End::TooManyExecutions);
            return;
        }
        let execution = ExecutionId(self.executions.len() as u64 + 1);
        self.settle_evaluation(&call, Verdict::Executed(execution));
        self.executions.push(Execution { call, state: WorkState::Waiting, anew: false });
        self.start_waiting();
    }

    /// S76: the items of a batch for which executions are missing.
    fn excess(&self, execution: u64, call: &Call, emissions: &[Emission]) -> Option<Excess> {
        let (mut needed, mut stops) = (0, false);
        for emission in emissions {
            let event = match *emission {
                Emission::FanOut { items: 0, .. } | Emission::Timer(_) => continue,
                Emission::Event(event) | Emission::Expiring(event) => event.get(),
                Emission::FanOut { fan_out, items, terms } => {
                    let item = self.items[fan_out.get()];
                    if self.is_certain_to_run(call.scope, item) {
                        needed += u64::from(terms.until.map_or(items, |enough| enough.get().min(items)));
                    }
                    item
                }
            };
            stops |= self.plan.events.get(event).is_some_and(|event| event.stop);
        }
        let left = self.plan.executions.saturating_sub(self.executions.len()) as u64;
        let (step, execution) = (format!("s{}", call.step).into(), ExecutionId(execution));
        (needed > left && !stops).then_some(Excess { step, execution, amount: needed, left })
    }

    /// S76: whether the item of a branch of this scope makes some step run.
    fn is_certain_to_run(&self, scope: u32, item: usize) -> bool {
        let runs = |step: &usize| {
            let planned = &self.plan.steps[*step];
            let mut inputs = planned.inputs.iter().zip(&self.taken[*step]);
            planned.on_end.is_none()
                && !planned.has_precondition
                && self.triggering(*step).any(|(_, events)| events.contains(item))
                && inputs.all(|(input, events)| {
                    let is_once = matches!(input.take, Take::Fixed(_) | Take::Gather);
                    let is_there = events.contains(item) || !self.visible(scope, *events).is_empty();
                    !is_once && (input.can_lack() || is_there)
                })
        };
        (0..self.plan.steps.len()).any(|step| runs(&step))
    }

    /// Records the result of the evaluation of this call.
    pub(super) fn settle_evaluation(&mut self, call: &Call, verdict: Verdict) {
        let place = (call.step, call.scope, call.trigger);
        let mut evaluations = self.evaluations.iter_mut();
        let of_call =
            |evaluation: &&mut Evaluation| (evaluation.step, evaluation.scope, evaluation.trigger) == place;
        if let Some(evaluation) = evaluations.find(of_call) {
            evaluation.verdict = verdict;
        }
    }

    /// S21: starts waiting executions in order, up to the limits of their steps.
    pub(super) fn start_waiting(&mut self) {
        if self.is_closed() || self.paused {
            return;
        }
        let mut running = vec![0; self.plan.steps.len()];
        for execution in self.executions.iter().filter(|execution| execution.state == WorkState::Running) {
            running[execution.call.step] += 1;
        }
        for at in 0..self.executions.len() {
            let Execution { call, state, .. } = &self.executions[at];
            // S70: the executions of a step with a named limit begin in an order that no journal has.
            let step = &self.plan.steps[call.step];
            let most = step.concurrency.filter(|_| !step.limited);
            let has_room =
                *state == WorkState::Waiting && most.is_none_or(|most| running[call.step] < most as usize);
            if has_room {
                running[call.step] += 1;
                self.out.push_back(Line::Starts { execution: at as u64 + 1, call: call.clone() });
                self.executions[at].state = WorkState::Running;
            }
        }
    }

    /// Ends an execution, if it runs.
    fn take_execution(&mut self, execution: u64) -> Option<Call> {
        let at = usize::try_from(execution).ok()?.checked_sub(1)?;
        let execution = self.executions.get_mut(at)?;
        if execution.state != WorkState::Running {
            return None;
        }
        execution.state = WorkState::Over;
        Some(execution.call.clone())
    }

    pub(super) fn succeed(&mut self, execution: u64, emissions: &[Emission]) {
        let Some(call) = self.take_execution(execution) else { return };
        if self.is_closed() {
            // S31: clean-up emits nothing.
            let cause = Cause::Execution(ExecutionId(execution));
            let line = if self.end_clean_up_of(execution) {
                Line::Appends { cause, entries: Vec::new(), timers: Vec::new() }
            } else {
                Line::RefusesCommit { execution }
            };
            self.out.push_back(line);
            return;
        }
        if let Some(excess) = self.excess(execution, &call, emissions) {
            return self.finish(End::TooManyItems(Box::new(excess)));
        }
        self.commit(execution, call.scope, emissions);
        self.start_waiting();
    }

    pub(super) fn fail(&mut self, execution: u64) {
        let Some(call) = self.take_execution(execution) else { return };
        if self.is_closed() {
            self.end_clean_up_of(execution);
            return;
        }
        // S29: a caught failure becomes an event in the scope where it happened, without any other effect.
        if let Some(event) = self.failed[call.step] {
            self.is_degraded = true;
            self.append_one(Cause::Failure(ExecutionId(execution)), call.scope, event);
        } else if self.plan.steps[call.step].continue_on_error {
            self.is_degraded = true;
        } else {
            self.fail_in(call.scope, vec![ExecutionId(execution)]);
        }
        self.start_waiting();
    }

    /// Ends all work in these scopes. An execution that has not started never does.
    /// Work begins anew with a redrive if `is_kept` says so.
    pub(super) fn drop_work(&mut self, scopes: &[u32], is_kept: bool) {
        let unread: Vec<u64> = self.unread.drain(..).collect();
        self.unread = unread.into_iter().filter(|seq| !scopes.contains(&self.logged(*seq).scope)).collect();
        for question in self.questions.iter_mut().filter(|question| scopes.contains(&question.call.scope)) {
            question.anew |= is_kept && question.state != WorkState::Over;
            question.state = WorkState::Over;
        }
        let mut unstarted = Vec::new();
        self.out.retain(|line| match line {
            Line::Asks { call, .. } => !scopes.contains(&call.scope),
            Line::Starts { execution, call } if scopes.contains(&call.scope) => {
                unstarted.push(*execution);
                false
            }
            _ => true,
        });
        for (execution, id) in self.executions.iter_mut().zip(1..) {
            if !scopes.contains(&execution.call.scope) {
                continue;
            }
            if execution.state == WorkState::Running && !unstarted.contains(&id) {
                self.out.push_back(Line::Drops { execution: id });
            }
            execution.anew |= is_kept && execution.state != WorkState::Over;
            execution.state = WorkState::Over;
        }
    }
}

//! Turns the decisions of a run into reasons.
//!
//! The moment of a decision matters: the missing inputs are those of that moment, although the log has later
//! events by now.

use std::sync::Arc;

use super::source::{Moment, Source};
use super::{Cited, CitedInput, Explanation, Reason, StepExplanation, WhyNoCleanUp, WhyNot, WhyRan};
use crate::id::{ExecutionId, RunStatus, ScopeId};
use crate::report::{BoundInput, ExecutionTrace, RunReport};
use crate::scheduler::{Decision, End, Scheduler, Verdict};
use crate::table::StepRow;

impl Explanation {
    /// Explains a run. O(events + executions + decisions), and O(decisions) more if some step never ran.
    pub(crate) fn of(scheduler: &Scheduler, report: &RunReport) -> Self {
        let source = Source::of(scheduler, report);
        let mut steps: Vec<StepExplanation> =
            source.table().steps.iter().map(|row| source.no_reasons(row)).collect();
        for (moment, decision) in scheduler.decisions().enumerate() {
            source.explain(moment, &decision, &mut steps[decision.step.get()]);
        }
        for step in &source.table().clean_up {
            source.explain_clean_up(*step, &mut steps[step.get()]);
        }
        let lacks = |step: &StepExplanation| {
            step.ran.is_empty() && matches!(step.clean_up, None | Some(WhyNoCleanUp::Missing))
        };
        let missing = source.missing_by_step(|step| lacks(&steps[step.get()]));
        for (step, missing) in steps.iter_mut().zip(missing) {
            step.missing = missing;
        }
        let completed = report.status == RunStatus::Completed;
        Self {
            run: report.run.clone(),
            workflow: Arc::clone(&report.workflow),
            status: report.status,
            incomplete_clean_up: report.clean_up.as_ref().map(|it| it.incomplete.clone()).unwrap_or_default(),
            paused: report.paused.clone(),
            deadline: report.deadline,
            steps,
            missing_stops: if completed { Vec::new() } else { source.missing_stops() },
            unconsumed: source.unconsumed(),
            failed: source.failed(),
            dropped: source.dropped(),
            timers: report.timers.clone(),
            can_arrive: source.can_arrive(),
            redrives: report.redrives.clone(),
        }
    }
}

impl Source<'_> {
    fn no_reasons(&self, row: &StepRow) -> StepExplanation {
        let passive = row.inputs.iter().filter(|input| input.passive);
        let mut reads: Vec<Arc<str>> = Vec::new();
        for event in passive.flat_map(|input| &input.events) {
            let name = &self.table().event(*event).name;
            if !reads.contains(name) {
                reads.push(Arc::clone(name));
            }
        }
        let step = Arc::clone(&row.name);
        let (ran, did_not_run, missing) = (Vec::new(), Vec::new(), Vec::new());
        StepExplanation { step, ran, did_not_run, missing, reads, clean_up: None }
    }

    fn explain(&self, moment: Moment, decision: &Decision, step: &mut StepExplanation) {
        let (scope, trigger) = (decision.scope, self.cite(decision.trigger));
        match self.reason(moment, decision) {
            Ok(trace) => step.ran.push(self.why_ran(trace, scope, trigger)),
            Err(reason) => step.did_not_run.push(WhyNot { trigger, scope, reason }),
        }
    }

    /// The trace of the execution that the decision led to, or the reason why there is none.
    fn reason(&self, moment: Moment, decision: &Decision) -> Result<&ExecutionTrace, Reason> {
        let row = self.table().step(decision.step);
        let precondition =
            || row.precondition.as_ref().map_or_else(|| "".into(), |row| Arc::clone(&row.name));
        Err(match decision.verdict {
            Verdict::Executed(execution) => {
                return self.execution(execution).ok_or_else(|| self.not_begun(execution));
            }
            Verdict::NotReady => Reason::Missing(self.missing(row, decision.scope, moment)),
            Verdict::Covered => Reason::Covered,
            Verdict::Duplicate => Reason::Duplicate,
            Verdict::GatherTaken(by) => Reason::GatherTaken { by },
            Verdict::LimitReached => {
                Reason::LimitReached { limit: row.policy.max_executions.unwrap_or(u32::MAX) }
            }
            // A clean-up has taken the number of the execution.
            Verdict::RunLimitReached if !matches!(self.scheduler.end(), Some(End::TooManyExecutions)) => {
                Reason::RunEnded
            }
            Verdict::RunLimitReached => {
                Reason::RunLimitReached { limit: self.scheduler.board().progress.limits.executions }
            }
            Verdict::Asking if self.scheduler.is_deferred(decision) => {
                Reason::Deferred { precondition: precondition() }
            }
            Verdict::Asking => Reason::Asking { precondition: precondition() },
            Verdict::Refused => Reason::Refused { precondition: precondition() },
            Verdict::PreconditionFailed => Reason::PreconditionFailed { precondition: precondition() },
        })
    }

    /// Why an execution has no trace: it waits, or was dropped.
    fn not_begun(&self, execution: ExecutionId) -> Reason {
        match self.waits_for(execution).cloned() {
            Some(waits_for) => Reason::Waiting { execution, waits_for },
            None => Reason::NeverStarted { execution },
        }
    }

    pub(super) fn why_ran(&self, trace: &ExecutionTrace, scope: ScopeId, trigger: Cited) -> WhyRan {
        let inputs = trace.inputs.iter().map(|input| match input {
            BoundInput::Nothing => CitedInput::Nothing,
            BoundInput::One(seq) => CitedInput::One(self.cite(*seq)),
            BoundInput::List(count) => CitedInput::List(*count),
        });
        WhyRan {
            execution: trace.execution,
            scope,
            trigger,
            branch: if trace.has_failed_attempts() { self.item_of(scope) } else { None },
            inputs: inputs.collect(),
            attempts: trace.attempts.clone(),
            next_attempt: trace.next_attempt,
            running: trace.running,
            outcome: trace.outcome.clone(),
        }
    }
}

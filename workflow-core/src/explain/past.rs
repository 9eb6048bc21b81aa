//! From facts to reasons.

use std::sync::Arc;

use super::source::Source;
use super::{
    Cited, CitedInput, Explanation, MissingInput, Reason, StepExplanation, WhyNot, WhyNotProduced, WhyRan,
};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::run::{BoundInput, RunReport, RunStatus};
use crate::scheduler::{Decision, Scheduler, Verdict};
use crate::table::{EventIndex, StepIndex, StepRow};

impl Explanation {
    /// O(events + decisions), and more for each missing input.
    pub(crate) fn of(scheduler: &Scheduler, report: &RunReport) -> Self {
        let source = Source::of(scheduler, report);
        let mut steps: Vec<StepExplanation> = source.table().steps.iter().map(no_reasons).collect();
        for decision in scheduler.decisions() {
            source.explain(decision, &mut steps[decision.step.get()]);
        }
        for (row, step) in source.table().steps.iter().zip(&mut steps) {
            if step.ran.is_empty() {
                step.missing = source.missing(row, ScopeId::ROOT, Seq(u64::MAX));
            }
        }
        let completed = report.status == RunStatus::Completed;
        Self {
            run: report.run.clone(),
            workflow: Arc::clone(&report.workflow),
            status: report.status,
            steps,
            unmet_stops: if completed { Vec::new() } else { source.unmet_stops() },
        }
    }
}

fn no_reasons(row: &StepRow) -> StepExplanation {
    StepExplanation {
        step: Arc::clone(&row.name),
        ran: Vec::new(),
        did_not_run: Vec::new(),
        missing: Vec::new(),
    }
}

impl Source<'_> {
    fn explain(&self, decision: &Decision, step: &mut StepExplanation) {
        let (scope, trigger) = (decision.scope, self.cite(decision.trigger));
        match self.reason(decision) {
            Ok(execution) => step.ran.push(self.why_ran(execution, scope, trigger)),
            Err(reason) => step.did_not_run.push(WhyNot { trigger, scope, reason }),
        }
    }

    fn reason(&self, decision: &Decision) -> Result<ExecutionId, Reason> {
        let row = self.table().step(decision.step);
        let precondition =
            || row.precondition.as_ref().map_or_else(|| "".into(), |row| Arc::clone(&row.name));
        Err(match decision.verdict {
            Verdict::Executed(execution) => return Ok(execution),
            Verdict::NotReady => Reason::Missing(self.missing(row, decision.scope, decision.trigger)),
            Verdict::Covered => Reason::Covered,
            Verdict::Duplicate => Reason::Duplicate,
            Verdict::LimitReached => Reason::LimitReached { limit: limit(row) },
            Verdict::Asking => Reason::Asking { precondition: precondition() },
            Verdict::Refused => Reason::Refused { precondition: precondition() },
            Verdict::PreconditionFailed => Reason::PreconditionFailed { precondition: precondition() },
        })
    }

    fn why_ran(&self, execution: ExecutionId, scope: ScopeId, trigger: Cited) -> WhyRan {
        let inputs = self.execution(execution).map(|trace| &trace.inputs[..]).unwrap_or_default();
        let inputs = inputs.iter().map(|input| match input {
            BoundInput::Nothing => CitedInput::Nothing,
            BoundInput::One(seq) => CitedInput::One(self.cite(*seq)),
            BoundInput::List(count) => CitedInput::List(*count),
        });
        WhyRan { execution, scope, trigger, inputs: inputs.collect() }
    }

    /// The required inputs that a scope did not see at a position.
    fn missing(&self, row: &StepRow, scope: ScopeId, until: Seq) -> Vec<MissingInput> {
        let required = row.inputs.iter().filter_map(|input| Some((input, input.condition?.least)));
        let missing = required.filter_map(|(input, need)| {
            let have = self.visible(scope, &input.events, until);
            (have < need).then(|| self.missing_input(&input.events, have, need, scope))
        });
        missing.collect()
    }

    fn missing_input(&self, events: &[EventIndex], have: u32, need: u32, scope: ScopeId) -> MissingInput {
        MissingInput {
            events: events.iter().map(|event| Arc::clone(&self.table().event(*event).name)).collect(),
            have,
            need,
            producers: events.iter().flat_map(|event| self.producers(*event, scope)).collect(),
        }
    }

    fn unmet_stops(&self) -> Vec<MissingInput> {
        let events = self.table().events.iter().enumerate();
        let stops = events.filter(|(_, event)| event.roles.is_stop()).map(|(i, _)| EventIndex::at(i));
        stops.map(|stop| self.missing_input(&[stop], 0, 1, ScopeId::ROOT)).collect()
    }

    fn producers(&self, event: EventIndex, scope: ScopeId) -> Vec<WhyNotProduced> {
        let row = self.table().event(event);
        if let Some(fan_out) = row.gathers {
            let step = self.table().step(self.table().fan_out(fan_out).step);
            let opened = self.report.branches.iter().any(|branch| branch.step == step.name);
            return vec![WhyNotProduced::NotGathered { step: Arc::clone(&step.name), opened }];
        }
        if let Some(request) = self.table().events.iter().position(|other| other.reply == Some(event)) {
            return vec![self.not_replied(EventIndex::at(request))];
        }
        let emits = |step: &StepRow| step.outputs.iter().any(|output| output.event == event);
        let steps = self.table().steps.iter().enumerate().filter(|(_, step)| emits(step));
        let mut producers: Vec<WhyNotProduced> =
            steps.map(|(i, step)| self.why_not_produced(StepIndex::at(i), step, event, scope)).collect();
        if row.roles.is_external() || row.roles.is_start() {
            producers.push(WhyNotProduced::NotSent { event: Arc::clone(&row.name) });
        } else if producers.is_empty() {
            producers.push(WhyNotProduced::Nobody { event: Arc::clone(&row.name) });
        }
        producers
    }

    fn not_replied(&self, request: EventIndex) -> WhyNotProduced {
        let request = Arc::clone(&self.table().event(request).name);
        let asked = self.report.log.iter().any(|logged| logged.event == request);
        WhyNotProduced::NotReplied { request, asked }
    }

    fn why_not_produced(
        &self,
        index: StepIndex,
        row: &StepRow,
        event: EventIndex,
        scope: ScopeId,
    ) -> WhyNotProduced {
        let step = Arc::clone(&row.name);
        let (seen, elsewhere) = self.emitted(row, event, scope);
        if seen > 0 {
            return WhyNotProduced::EmittedSome { step, events: seen };
        }
        if elsewhere > 0 {
            return WhyNotProduced::EmittedInBranches { step, events: elsewhere };
        }
        match self.scheduler.executions_of(index) {
            0 => self.why_idle(index, row),
            _ if self.is_running(row) => WhyNotProduced::Running { step },
            executions => match self.last_failure(row) {
                Some(error) => WhyNotProduced::Failed { step, error },
                None if self.has_verdict(index, Verdict::LimitReached) => {
                    WhyNotProduced::LimitReached { step, limit: limit(row) }
                }
                None => WhyNotProduced::EmittedNone { step, executions },
            },
        }
    }

    fn why_idle(&self, index: StepIndex, row: &StepRow) -> WhyNotProduced {
        let step = Arc::clone(&row.name);
        match &row.precondition {
            Some(precondition) if self.has_verdict(index, Verdict::Refused) => {
                WhyNotProduced::Refused { step, precondition: Arc::clone(&precondition.name) }
            }
            _ => WhyNotProduced::DidNotRun { step },
        }
    }
}

fn limit(row: &StepRow) -> u32 {
    row.policy.max_executions.unwrap_or(u32::MAX)
}

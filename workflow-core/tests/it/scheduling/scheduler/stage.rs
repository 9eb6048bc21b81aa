//! A test harness for the scheduler: takes facts by name, and records every action as a line.

use std::num::NonZeroU32;
use std::sync::Arc;

use workflow_core::scheduler::{
    Action, Answer, CandidateId, Emission, Fact, FanOutTerms, Scheduler, SchedulerLimits,
};
use workflow_core::signature::Roles;
use workflow_core::table::{
    DependencyTable, EventDef, EventIndex, InputDef, OutputRow, StepDef, StepIndex, TableBuilder,
};
use workflow_core::{ExecutionId, FanOutPolicy, Seq};
use workflow_testkit::model::{Line, Reader};

pub(super) struct Stage {
    table: Arc<DependencyTable>,
    pub(super) scheduler: Scheduler,
    reader: Reader,
    said: Vec<Line>,
}

impl Stage {
    /// All these events are external, so an idle run waits.
    pub(super) fn new(events: &[&str], steps: impl IntoIterator<Item = StepDef>) -> Self {
        let events = events.iter().map(|name| EventDef::new(*name, Roles::NONE.external()));
        Self::with(events, steps)
    }

    pub(super) fn with(
        events: impl IntoIterator<Item = EventDef>,
        steps: impl IntoIterator<Item = StepDef>,
    ) -> Self {
        Self::limited(SchedulerLimits::default(), events, steps)
    }

    pub(super) fn limited(
        limits: SchedulerLimits,
        events: impl IntoIterator<Item = EventDef>,
        steps: impl IntoIterator<Item = StepDef>,
    ) -> Self {
        let builder = events.into_iter().fold(DependencyTable::builder("staged"), TableBuilder::event);
        let builder = steps.into_iter().fold(builder, TableBuilder::step);
        let table = Arc::new(builder.build_unchecked().expect("the table has no problems"));
        Self {
            scheduler: Scheduler::with_limits(Arc::clone(&table), limits),
            reader: Reader::new(Arc::clone(&table)),
            table,
            said: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, event: &str) {
        self.tell(Fact::EventReceived { event: self.event(event) });
    }

    pub(super) fn reply(&mut self, request: u64) {
        self.tell(Fact::ReplyReceived { request: Seq(request) });
    }

    pub(super) fn answer(&mut self, question: u64, answer: Answer) {
        self.tell(Fact::PreconditionAnswered { candidate: CandidateId(question), answer });
    }

    /// The execution returns these events.
    pub(super) fn finish(&mut self, execution: u64, events: &[&str]) {
        let emissions: Vec<Emission> = events.iter().map(|event| self.emission(event)).collect();
        self.commit(execution, emissions);
    }

    pub(super) fn commit(&mut self, execution: u64, emissions: impl IntoIterator<Item = Emission>) {
        let emissions = emissions.into_iter().collect();
        self.tell(Fact::ExecutionSucceeded { execution: ExecutionId(execution), emissions });
    }

    pub(super) fn fail(&mut self, execution: u64) {
        self.tell(Fact::ExecutionFailed { execution: ExecutionId(execution) });
    }

    pub(super) fn cancel(&mut self) {
        self.tell(Fact::CancelRequested);
    }

    pub(super) fn emission(&self, event: &str) -> Emission {
        Emission::Event(self.event(event))
    }

    /// A branch per item, all at once; the failure of one is one of all.
    pub(super) fn fan_out(&self, step: &str, items: u32) -> Emission {
        self.fan_out_with(step, items, FanOutPolicy::FailAll, None)
    }

    /// The fan-out of a step that has just one.
    pub(super) fn fan_out_with(
        &self,
        step: &str,
        items: u32,
        policy: FanOutPolicy,
        concurrency: Option<u32>,
    ) -> Emission {
        let concurrency = concurrency.and_then(NonZeroU32::new);
        self.fan_out_by(
            step,
            items,
            FanOutTerms { policy, concurrency, only_busy: true, ..FanOutTerms::default() },
        )
    }

    pub(super) fn fan_out_by(&self, step: &str, items: u32, terms: FanOutTerms) -> Emission {
        let outputs = self.table.steps()[self.step(step).get()].outputs();
        let fan_out = outputs.iter().find_map(OutputRow::fan_out).expect("the step fans out");
        Emission::FanOut { fan_out, items, terms }
    }

    pub(super) fn step(&self, name: &str) -> StepIndex {
        self.table.step_named(name).expect("a step of the table")
    }

    fn event(&self, name: &str) -> EventIndex {
        self.table.event_named(name).expect("an event of the table")
    }

    /// Applies a fact and records every action that follows.
    pub(super) fn tell(&mut self, fact: Fact) {
        self.scheduler.apply(fact);
        while let Some(action) = self.scheduler.next_action() {
            self.said.push(self.reader.read(&action));
        }
    }

    /// Sends an event without recording. Each execution returns what `emissions` gives for its step.
    pub(super) fn send_quietly(
        &mut self,
        event: &str,
        emissions: impl Fn(&Self, StepIndex) -> Vec<Emission>,
    ) {
        self.scheduler.apply(Fact::EventReceived { event: self.event(event) });
        while let Some(action) = self.scheduler.next_action() {
            if let Action::StartExecution { execution, step, .. } = action {
                let emissions = emissions(self, step).into();
                self.scheduler.apply(Fact::ExecutionSucceeded { execution, emissions });
            }
        }
    }

    /// The actions since the last call, except appends and waits.
    pub(super) fn said(&mut self) -> Vec<String> {
        let said = std::mem::take(&mut self.said).into_iter();
        let telling = said.filter(|line| !matches!(line, Line::Appends { .. } | Line::Waits));
        telling.map(|line| line.text(&self.table)).collect()
    }

    /// All actions since the last call.
    pub(super) fn said_in_full(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said).iter().map(|line| line.text(&self.table)).collect()
    }
}

/// A step that takes one event of each type.
pub(super) fn step(name: &str, events: &[&str]) -> StepDef {
    events.iter().fold(StepDef::new(name), |step, event| step.input(InputDef::one(*event)))
}

pub(super) fn control(name: &str) -> EventDef {
    EventDef::new(name, Roles::NONE)
}

pub(super) fn external(name: &str) -> EventDef {
    EventDef::new(name, Roles::NONE.external())
}

pub(super) fn stop(name: &str) -> EventDef {
    EventDef::new(name, Roles::NONE.stop())
}

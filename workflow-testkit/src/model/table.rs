//! Turns a plan into a table for the scheduler. The model does not use it.

use workflow_core::signature::Roles;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, PreconditionDef, StepDef, StepPolicy, TableBuilder,
    TableProblem,
};

use super::{Plan, PlannedInput, PlannedOutput, PlannedStep, Take};

impl Plan {
    /// The plan's table, for a scheduler under test.
    ///
    /// Events and steps keep the numbers of the plan. The conversion checks only the structure of the table, not the
    /// graph.
    ///
    /// # Panics
    /// Panics if the plan makes no table: an invalid number, or a gather that fits no fan-out.
    pub fn table(&self) -> DependencyTable {
        self.builder().build_unchecked().unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// All graph problems that would prevent the table from being built.
    ///
    /// There are none for a workflow that the macros accept.
    pub fn problems(&self) -> Vec<TableProblem> {
        self.builder().build().err().map_or_else(Vec::new, |error| error.problems)
    }

    fn builder(&self) -> TableBuilder {
        let mut builder = DependencyTable::builder("planned");
        for event in 0..self.events.len() {
            builder = builder.event(self.event_def(event));
        }
        for (number, step) in self.steps.iter().enumerate() {
            builder = builder.step(self.step_def(number, step));
        }
        builder
    }

    fn event_def(&self, event: usize) -> EventDef {
        let planned = self.events[event];
        if planned.failure {
            return EventDef::failure(self.event_name(event));
        }
        if let Some(request) = planned.replies_to {
            return EventDef::reply_to(self.event_name(event), self.event_name(request));
        }
        if let Some(request) = planned.expires {
            return EventDef::expiry_of(self.event_name(event), self.event_name(request));
        }
        let mut roles = Roles::NONE;
        if planned.start {
            roles = roles.start();
        }
        if planned.stop {
            roles = roles.stop();
        }
        if planned.external {
            roles = roles.external();
        }
        if planned.reply.is_some() {
            roles = roles.request();
        }
        EventDef::new(self.event_name(event), roles)
    }

    fn step_def(&self, number: usize, step: &PlannedStep) -> StepDef {
        let mut policy = StepPolicy::DEFAULT;
        if let Some(most) = step.max_executions {
            policy = policy.max_executions(most);
        }
        if let Some(most) = step.concurrency {
            policy = policy.concurrency(most);
        }
        if step.continue_on_error {
            policy = policy.continue_on_error();
        }
        let mut def = StepDef::new(format!("s{number}")).policy(policy);
        if step.limited {
            def = def.limit("shared");
        }
        if !step.catches.is_empty() {
            def = def.catches(step.catches.iter().map(|caught| format!("s{caught}")));
        }
        if let Some(ends) = step.on_end {
            def = def.on_end(ends);
        }
        for input in &step.inputs {
            def = def.input(self.input_def(input));
        }
        for output in &step.outputs {
            def = def.output(match output {
                PlannedOutput::Events(event) | PlannedOutput::Expiring(event) => {
                    OutputDef::many(self.event_name(*event))
                }
                PlannedOutput::FanOut(item) => OutputDef::fan_out(self.event_name(*item)),
                PlannedOutput::Timer(event) => OutputDef::timer(self.event_name(*event)),
            });
            if let PlannedOutput::Expiring(request) = output
                && let Some(expired) = self.events[*request].expired
            {
                def = def.output(OutputDef::timer(self.event_name(expired)));
            }
        }
        if step.has_precondition { def.precondition(PreconditionDef::new("may")) } else { def }
    }

    fn input_def(&self, input: &PlannedInput) -> InputDef {
        let names: Vec<String> = input.events.iter().map(|event| self.event_name(*event)).collect();
        let first = names.first().cloned().unwrap_or_default();
        let def = match input.take {
            Take::One if names.len() == 1 => InputDef::one(first),
            Take::One => InputDef::one_of(names),
            Take::List => InputDef::list(names),
            Take::Fixed(count) => InputDef::fixed(count, names),
            Take::Reply => InputDef::reply(first),
            Take::Gather => match input.item {
                Some(item) => InputDef::gather_of(self.event_name(item), names),
                None => InputDef::gather(first),
            },
        };
        let def = if input.optional { def.optional() } else { def };
        if input.passive { def.passive() } else { def }
    }
}

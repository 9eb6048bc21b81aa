//! A workflow described as plainly as possible. The table under test and the model are both made from it,
//! so neither takes its knowledge of the workflow from the other.

use std::fmt::{self, Write as _};

use workflow_core::{
    DependencyTable, EventDef, InputDef, OutputDef, PreconditionDef, Roles, StepDef, StepPolicy,
    TableBuilder, TableProblem,
};

use super::gathers;

/// Events and steps by number.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) events: Vec<PlannedEvent>,
    pub(crate) steps: Vec<PlannedStep>,
    /// The most executions at a time.
    pub(crate) concurrent_executions: usize,
}

/// One event type.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlannedEvent {
    pub(crate) start: bool,
    pub(crate) stop: bool,
    pub(crate) external: bool,
    /// For a request: the event that replies to it.
    pub(crate) reply: Option<usize>,
    /// For a reply: the request.
    pub(crate) replies_to: Option<usize>,
}

/// One step.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlannedStep {
    pub(crate) inputs: Vec<PlannedInput>,
    pub(crate) outputs: Vec<PlannedOutput>,
    pub(crate) has_precondition: bool,
    pub(crate) max_executions: Option<u32>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) continue_on_error: bool,
}

/// One parameter.
#[derive(Debug, Clone)]
pub(crate) struct PlannedInput {
    pub(crate) take: Take,
    pub(crate) optional: bool,
    /// The event types it takes, several for a union; what it collects for a gather.
    pub(crate) events: Vec<usize>,
}

/// How a parameter takes its events (S5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    One,
    List,
    Fixed(u32),
    Reply,
    Gather,
}

/// One thing a step may emit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlannedOutput {
    Events(usize),
    FanOut(usize),
}

/// A place where branches open: its step and its item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FanOutPlace {
    pub(crate) step: usize,
    pub(crate) item: usize,
}

impl Plan {
    /// Every fan-out, in the order of the table.
    pub(crate) fn fan_outs(&self) -> Vec<FanOutPlace> {
        let steps = self.steps.iter().enumerate();
        let outputs =
            steps.flat_map(|(step, planned)| planned.outputs.iter().map(move |output| (step, *output)));
        let fan_outs = outputs.filter_map(|(step, output)| match output {
            PlannedOutput::FanOut(item) => Some(FanOutPlace { step, item }),
            PlannedOutput::Events(_) => None,
        });
        fan_outs.collect()
    }

    /// The event that says that a fan-out is gathered; these are numbered after all others.
    pub(crate) fn gathered(&self, fan_out: usize) -> usize {
        self.events.len() + fan_out
    }

    /// The table under test.
    ///
    /// # Panics
    /// If the table has problems, which a plan must not have.
    pub(crate) fn table(&self) -> DependencyTable {
        self.builder().build_unchecked().unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// What the rules for whole graphs say against it.
    pub(crate) fn problems(&self) -> Vec<TableProblem> {
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
        if let Some(request) = planned.replies_to {
            return EventDef::reply_to(self.event_name(event), self.event_name(request));
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
        for input in &step.inputs {
            def = def.input(self.input_def(input));
        }
        for output in &step.outputs {
            def = def.output(match output {
                PlannedOutput::Events(event) => OutputDef::many(self.event_name(*event)),
                PlannedOutput::FanOut(item) => OutputDef::fan_out(self.event_name(*item)),
            });
        }
        if step.has_precondition { def.precondition(PreconditionDef::new("may")) } else { def }
    }

    fn input_def(&self, input: &PlannedInput) -> InputDef {
        let names: Vec<String> = input.events.iter().map(|event| self.event_name(*event)).collect();
        let first = names[0].clone();
        let def = match input.take {
            Take::One if names.len() == 1 => InputDef::one(first),
            Take::One => InputDef::one_of(names),
            Take::List => InputDef::list(names),
            Take::Fixed(count) => InputDef::fixed(count, names),
            Take::Reply => InputDef::reply(first),
            Take::Gather => InputDef::gather(first),
        };
        if input.optional { def.optional() } else { def }
    }

    fn event_name(&self, event: usize) -> String {
        match self.events.get(event).map(|planned| planned.replies_to) {
            Some(Some(request)) => format!("E{request}.reply"),
            Some(None) => format!("E{event}"),
            None => format!("\"fan-out {} is gathered\"", event - self.events.len()),
        }
    }

    fn roles_text(&self, event: usize) -> String {
        let planned = self.events[event];
        let roles = [
            (planned.start, "start"),
            (planned.stop, "stop"),
            (planned.external, "external"),
            (planned.reply.is_some(), "request"),
        ];
        let roles: Vec<&str> = roles.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        if roles.is_empty() { String::new() } else { format!(" ({})", roles.join(", ")) }
    }

    fn input_text(&self, input: &PlannedInput) -> String {
        let names: Vec<String> = input.events.iter().map(|event| self.event_name(*event)).collect();
        let names = names.join(" | ");
        let text = match input.take {
            Take::One => names,
            Take::Reply => format!("reply {names}"),
            Take::List => format!("list of {names}"),
            Take::Fixed(count) => format!("first {count} of {names}"),
            Take::Gather => format!("gather of {names}"),
        };
        if input.optional { format!("[{text}]") } else { text }
    }

    fn step_text(&self, step: &PlannedStep) -> String {
        let inputs: Vec<String> = step.inputs.iter().map(|input| self.input_text(input)).collect();
        let outputs = step.outputs.iter().map(|output| match output {
            PlannedOutput::Events(event) => self.event_name(*event),
            PlannedOutput::FanOut(item) => format!("a branch per {}", self.event_name(*item)),
        });
        let outputs: Vec<String> = outputs.collect();
        let mut text = format!("({}) -> {}", inputs.join(", "), outputs.join(", "));
        if step.has_precondition {
            text.push_str("; has a precondition");
        }
        if let Some(most) = step.max_executions {
            let _ = write!(text, "; at most {most} executions");
        }
        if let Some(most) = step.concurrency {
            let _ = write!(text, "; {most} at a time");
        }
        if step.continue_on_error {
            text.push_str("; goes on after errors");
        }
        text
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in 0..self.events.len() {
            writeln!(f, "{}{}", self.event_name(event), self.roles_text(event))?;
        }
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "s{number}{}", self.step_text(step))?;
        }
        for (number, own) in gathers::own_events(self).iter().enumerate() {
            let names: Vec<String> = own.iter().map(|event| self.event_name(event)).collect();
            writeln!(f, "the branches of fan-out {number} can hold {}", names.join(", "))?;
        }
        writeln!(f, "{} executions at a time", self.concurrent_executions)
    }
}

//! The plan as text: a line for each event type, step and fan-out.

use std::fmt::{self, Write as _};

use super::{Plan, PlannedInput, PlannedOutput, PlannedStep, Take, failures, gathers};

impl Plan {
    pub(super) fn event_name(&self, event: usize) -> String {
        match self.events.get(event).map(|planned| (planned.replies_to, planned.expires)) {
            Some((Some(request), _)) => format!("E{request}.reply"),
            Some((None, Some(request))) => format!("E{request}.expired"),
            Some((None, None)) => format!("E{event}"),
            None => self.internal_name(event - self.events.len()),
        }
    }

    fn internal_name(&self, place: usize) -> String {
        let fan_outs = self.fan_outs().len();
        match place.checked_sub(fan_outs).and_then(|failed| failures::caught(self).get(failed).copied()) {
            Some(step) => format!("s{step}.failed"),
            None => format!("\"fan-out {place} is gathered\""),
        }
    }

    fn roles_text(&self, event: usize) -> String {
        let planned = self.events[event];
        let roles = [
            (planned.start, "start"),
            (planned.stop, "stop"),
            (planned.external, "external"),
            (planned.reply.is_some(), "request"),
            (planned.failure, "failure"),
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
            Take::Gather => match input.item {
                Some(item) => format!("gather of {names} by {}", self.event_name(item)),
                None => format!("gather of {names}"),
            },
        };
        let text = if input.passive { format!("passive {text}") } else { text };
        if input.optional { format!("[{text}]") } else { text }
    }

    fn step_text(&self, step: &PlannedStep) -> String {
        let inputs: Vec<String> = step.inputs.iter().map(|input| self.input_text(input)).collect();
        let outputs = step.outputs.iter().map(|output| match output {
            PlannedOutput::Events(event) => self.event_name(*event),
            PlannedOutput::FanOut(item) => format!("a branch per {}", self.event_name(*item)),
            PlannedOutput::Timer(event) => format!("{} later", self.event_name(*event)),
            PlannedOutput::Expiring(request) => format!("{} for a time", self.event_name(*request)),
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
        if step.limited {
            text.push_str("; has a limit");
        }
        if !step.catches.is_empty() {
            let caught: Vec<String> = step.catches.iter().map(|caught| format!("s{caught}")).collect();
            let _ = write!(text, "; catches {}", caught.join(" and "));
        }
        if let Some(ends) = step.on_end {
            let _ = write!(text, "; cleans up at {ends}");
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
        if self.executions == Self::default().executions {
            return Ok(());
        }
        writeln!(f, "{} executions in all", self.executions)
    }
}

//! Checks that a stand-in returns no more than its step.

use std::fmt;

use workflow_core::signature::{EventType, InputSpec, OutputSpec};
use workflow_core::table::{InputKind, StepSpec};

/// Whether the step could return everything that the stand-in returns. A stand-in may leave possibilities out, but adds
/// none. It may return the events that the step emits while it runs.
pub(super) fn fits(step: &StepSpec, output: &OutputSpec) -> bool {
    let emitted: Vec<EventType> = emitted(step).collect();
    let parts = match output {
        OutputSpec::All(parts) => parts.iter().collect(),
        one => vec![one],
    };
    is_within(output, &step.output()) || is_sequence(&parts, &emitted, &declared(&step.output()))
}

/// The events that the step emits while it runs.
fn emitted(step: &StepSpec) -> impl Iterator<Item = EventType> {
    let emitters = step.inputs().iter().filter(|input| input.kind() == InputKind::Emitter);
    emitters.flat_map(InputSpec::events).copied()
}

/// The consecutive parts of a batch.
fn declared(output: &OutputSpec) -> Vec<&OutputSpec> {
    match output {
        OutputSpec::All(parts) => parts.iter().collect(),
        OutputSpec::Nothing => Vec::new(),
        one => vec![one],
    }
}

/// Whether these parts match the declared ones in order. Optional parts may be missing, and emitted events may be
/// anywhere.
fn is_sequence(parts: &[&OutputSpec], emitted: &[EventType], declared: &[&OutputSpec]) -> bool {
    let Some((part, parts_behind)) = parts.split_first() else {
        return declared.iter().all(|declared| may_be_nothing(declared));
    };
    let is_empty = matches!(part, OutputSpec::Nothing);
    if (is_empty || is_made_of(part, emitted)) && is_sequence(parts_behind, emitted, declared) {
        return true;
    }
    let Some((first, behind)) = declared.split_first() else { return false };
    let is_first = is_within(part, first);
    let has_more = matches!(first, OutputSpec::Many(_));
    is_first && is_sequence(parts_behind, emitted, behind)
        || is_first && has_more && is_sequence(parts_behind, emitted, declared)
        || may_be_nothing(first) && is_sequence(parts, emitted, behind)
}

/// Whether the first is the second with fewer possibilities.
fn is_within(one: &OutputSpec, other: &OutputSpec) -> bool {
    match (one, other) {
        (OutputSpec::Nothing, _) => may_be_nothing(other),
        (OutputSpec::Many(one), OutputSpec::Many(_)) => is_within(one, other),
        (OutputSpec::Optional(one), _) => may_be_nothing(other) && is_within(one, other),
        // Either each part is some of the elements, or all are one element.
        (OutputSpec::All(parts), OutputSpec::Many(element)) => {
            parts.iter().all(|part| is_within(part, other)) || is_within(one, element)
        }
        (_, OutputSpec::Optional(inner) | OutputSpec::Many(inner)) => is_within(one, inner),
        (OutputSpec::All(parts), _) => is_sequence(&parts.iter().collect::<Vec<_>>(), &[], &declared(other)),
        (_, OutputSpec::All(_)) => is_sequence(&[one], &[], &declared(other)),
        (OutputSpec::FanOut(one), OutputSpec::FanOut(other))
        | (OutputSpec::Timed(one), OutputSpec::Timed(other))
        | (OutputSpec::Expiring { request: one, .. }, OutputSpec::Expiring { request: other, .. }) => {
            is_same(one, other)
        }
        (
            OutputSpec::FanOut(_) | OutputSpec::Timed(_) | OutputSpec::Expiring { .. } | OutputSpec::Many(_),
            _,
        )
        | (_, OutputSpec::FanOut(_) | OutputSpec::Timed(_)) => false,
        // An expiring request may be returned as a plain one.
        (_, OutputSpec::Expiring { request, .. }) => one_of(one).iter().all(|one| is_same(one, request)),
        _ => one_of(one).iter().all(|one| one_of(other).iter().any(|other| is_same(one, other))),
    }
}

fn may_be_nothing(output: &OutputSpec) -> bool {
    match output {
        OutputSpec::Nothing | OutputSpec::Optional(_) | OutputSpec::Many(_) => true,
        OutputSpec::All(parts) => parts.iter().all(may_be_nothing),
        _ => false,
    }
}

/// Whether it consists only of these events, any number of times.
fn is_made_of(output: &OutputSpec, events: &[EventType]) -> bool {
    let is_there = |one: &EventType| events.iter().any(|other| is_same(one, other));
    match output {
        OutputSpec::Nothing => true,
        OutputSpec::Optional(inner) | OutputSpec::Many(inner) => is_made_of(inner, events),
        OutputSpec::All(parts) => parts.iter().all(|part| is_made_of(part, events)),
        OutputSpec::FanOut(_) | OutputSpec::Timed(_) | OutputSpec::Expiring { .. } => false,
        one => one_of(one).iter().all(is_there),
    }
}

/// The alternatives if it is exactly one event.
fn one_of(output: &OutputSpec) -> &[EventType] {
    match output {
        OutputSpec::Event(event) => std::slice::from_ref(event),
        OutputSpec::OneOf(events) => events,
        _ => &[],
    }
}

fn is_same(one: &EventType, other: &EventType) -> bool {
    one.type_id() == other.type_id()
}

/// A return type as written, without a `Result` around it, which makes no difference.
pub(super) struct Shape<'a>(pub(super) &'a OutputSpec);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            OutputSpec::Nothing => f.write_str("()"),
            OutputSpec::Optional(inner) => write!(f, "Option<{}>", Shape(inner)),
            OutputSpec::Many(inner) => write!(f, "Vec<{}>", Shape(inner)),
            OutputSpec::FanOut(event) => write!(f, "FanOut<{}>", event.name()),
            OutputSpec::Timed(event) => write!(f, "Timer<{}>", event.name()),
            OutputSpec::Expiring { request, .. } => write!(f, "Expiring<{}>", request.name()),
            OutputSpec::All(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| Shape(part).to_string()).collect();
                write!(f, "({})", parts.join(", "))
            }
            one => {
                let names: Vec<&str> = one_of(one).iter().map(EventType::name).collect();
                f.write_str(&names.join(" or "))
            }
        }
    }
}

/// The return type of a step and its emitted events.
pub(super) struct Returns(pub(super) &'static StepSpec);

impl fmt::Display for Returns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", Shape(&self.0.output()))?;
        let emitted: Vec<String> = emitted(self.0).map(|event| format!("`{}`", event.name())).collect();
        if emitted.is_empty() { Ok(()) } else { write!(f, ", and emits {}", emitted.join(", ")) }
    }
}

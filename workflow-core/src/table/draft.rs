//! The draft of a table: the common form of constant and run-time tables before they are compiled. Steps
//! refer to events by their places in a list.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::config::ConfigType;
use crate::event::{Decode, EventType, JsonForm, Roles, Upgrade};
use crate::retry::RetryPolicy;
use crate::spec::{
    InputKind, InputSpec, OnEnd, OutputSpec, PreconditionSpec, StepPolicy, StepSpec, TableProblem, TableSpec,
};

/// A table whose steps refer to events by place.
#[derive(Debug, Default)]
pub(super) struct TableDraft {
    pub(super) name: Arc<str>,
    pub(super) description: Arc<str>,
    pub(super) events: Vec<EventDraft>,
    pub(super) steps: Vec<StepDraft>,
    /// The problems found so far.
    pub(super) problems: Vec<TableProblem>,
    /// The types that the workflow's declared output can hold; empty without a declared output.
    pub(super) output: &'static [EventType],
    /// The events by Rust type, of a constant table.
    pub(super) by_type: HashMap<TypeId, usize>,
}

/// An event type of a draft.
#[derive(Debug)]
pub(super) struct EventDraft {
    pub(super) name: Arc<str>,
    pub(super) roles: Roles,
    pub(super) rust: Option<(TypeId, &'static str)>,
    /// Reads the event back; `None` in a table built at run time.
    pub(super) decode: Option<Decode>,
    pub(super) json: JsonForm,
    /// The JSON schema of an event of a table built at run time.
    pub(super) schema: Option<Value>,
    /// The version of the event's serialised form.
    pub(super) version: u32,
    pub(super) upgrade: Option<Upgrade>,
    pub(super) reply: Option<usize>,
    /// For a request that can expire: the event that reports the expiry.
    pub(super) expired: Option<usize>,
    /// Whether a reported problem leaves the meaning of the event open. The graph then reports nothing that
    /// depends on it.
    pub(super) unclear: bool,
    /// Whether an output with an unknown name may mean this event.
    pub(super) meant: bool,
}

impl EventDraft {
    pub(super) fn new(name: Arc<str>, roles: Roles) -> Self {
        Self {
            name,
            roles,
            rust: None,
            decode: None,
            json: JsonForm::NONE,
            schema: None,
            version: 1,
            upgrade: None,
            reply: None,
            expired: None,
            unclear: false,
            meant: false,
        }
    }

    /// The name of the Rust type; empty in a table built at run time.
    pub(super) fn type_name(&self) -> &'static str {
        self.rust.map_or("", |(_, name)| name)
    }
}

/// A step of a draft.
#[derive(Debug)]
pub(super) struct StepDraft {
    pub(super) name: Arc<str>,
    pub(super) description: Arc<str>,
    pub(super) inputs: Vec<InputDraft>,
    pub(super) outputs: Vec<OutputDraft>,
    pub(super) precondition: Option<PreconditionDraft>,
    pub(super) policy: StepPolicy,
    /// The engine's limit of the step's attempts.
    pub(super) limit: Option<Arc<str>>,
    /// The method that makes the idempotency key of an execution.
    pub(super) key: Option<Arc<str>>,
    /// The retry policy, in a table built at run time.
    pub(super) retry: Option<RetryPolicy>,
    /// The places of the steps whose failures it catches; empty for the default rule.
    pub(super) catches: Vec<usize>,
    /// The ends at which the step runs, of a clean-up step.
    pub(super) on_end: Option<OnEnd>,
}

/// An input of a step or a precondition.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts about the parameter")]
pub(super) struct InputDraft {
    pub(super) kind: InputKind,
    pub(super) optional: bool,
    pub(super) passive: bool,
    pub(super) events: Vec<usize>,
    /// For a gather that names its fan-out: the item.
    pub(super) item: Option<usize>,
    pub(super) config: Option<ConfigType>,
    /// Whether the parameter reads or writes a context.
    pub(super) uses_context: bool,
    /// Whether the step may start children by the parameter.
    pub(super) may_start_children: bool,
    pub(super) label: Arc<str>,
}

impl InputDraft {
    /// Whether the input's events are unclear.
    pub(super) fn is_unclear(&self, events: &[EventDraft]) -> bool {
        self.takes_nothing() || self.events.iter().any(|event| events[*event].unclear)
    }

    /// Whether the input takes events but names none.
    pub(super) fn takes_nothing(&self) -> bool {
        // S59: a gather that names its item may collect nothing.
        self.kind.takes_events() && self.events.is_empty() && self.item.is_none()
    }

    /// Whether the input's events trigger its step (S58).
    pub(super) fn triggers(&self) -> bool {
        self.kind.takes_events() && !self.passive
    }

    /// Whether both inputs take the same event types in the same way, whether optional or not.
    pub(super) fn takes_same(&self, other: &Self) -> bool {
        (self.kind, self.passive) == (other.kind, other.passive)
            && self.events == other.events
            && self.item == other.item
    }
}

/// An output of a step, with what one execution emits of it.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts about the output")]
pub(super) struct OutputDraft {
    pub(super) event: usize,
    pub(super) least: u32,
    pub(super) many: bool,
    pub(super) fan_out: bool,
    /// Whether the event enters the log when a timer fires.
    pub(super) timed: bool,
    /// The number of alternatives that begin with this output, of which every execution emits one; 0 if it
    /// begins none.
    pub(super) choices: usize,
    /// Whether the step returns it, rather than sends it with an emitter.
    pub(super) returned: bool,
}

#[derive(Debug)]
pub(super) struct PreconditionDraft {
    pub(super) name: Arc<str>,
    pub(super) inputs: Vec<InputDraft>,
}

impl TableDraft {
    pub(super) fn from_spec(spec: &TableSpec) -> Self {
        let mut draft = Self {
            name: spec.name.into(),
            description: spec.description.into(),
            output: spec.output,
            ..Self::default()
        };
        for step in spec.steps {
            let step = draft.step(step);
            draft.steps.push(step);
        }
        // A stop event from outside needs no step: the send ends the run.
        for event in spec.output.iter().filter(|event| event.roles.is_stop() && event.roles.is_external()) {
            draft.event(event);
        }
        draft
    }

    fn step(&mut self, spec: &StepSpec) -> StepDraft {
        let mut outputs = Vec::new();
        self.outputs(&spec.output, 1, false, &mut outputs);
        for input in spec.inputs.iter().filter(|input| input.kind == InputKind::Emitter) {
            let emitted = input.events.iter();
            outputs.extend(emitted.map(|event| OutputDraft {
                event: self.event(event),
                least: 0,
                many: true,
                fan_out: false,
                timed: false,
                choices: 0,
                returned: false,
            }));
        }
        StepDraft {
            name: spec.name.into(),
            description: spec.description.into(),
            inputs: self.inputs(spec.inputs),
            outputs,
            precondition: spec.precondition.map(|precondition| self.precondition(&precondition)),
            policy: spec.policy,
            limit: spec.limit.map(Into::into),
            key: spec.key.map(Into::into),
            retry: None,
            catches: spec.catches.to_vec(),
            on_end: spec.on_end,
        }
    }

    fn precondition(&mut self, spec: &PreconditionSpec) -> PreconditionDraft {
        PreconditionDraft { name: spec.name.into(), inputs: self.inputs(spec.inputs) }
    }

    fn inputs(&mut self, specs: &[InputSpec]) -> Vec<InputDraft> {
        specs.iter().map(|spec| self.input(spec)).collect()
    }

    fn input(&mut self, spec: &InputSpec) -> InputDraft {
        let events: Vec<usize> = spec.events.iter().map(|event| self.event(event)).collect();
        if let Some(request) = &spec.request {
            let request = self.event(request);
            self.events[request].reply = events.first().copied();
        }
        InputDraft {
            kind: spec.kind,
            optional: spec.optional,
            passive: spec.passive,
            events,
            item: spec.item.as_ref().map(|item| self.event(item)),
            config: spec.config,
            uses_context: spec.uses_context,
            may_start_children: spec.may_start_children,
            label: spec.label.into(),
        }
    }

    /// The place of an event type, which is added if it is new.
    fn event(&mut self, event: &EventType) -> usize {
        self.place_of(event).unwrap_or_else(|| {
            let rust = Some((event.type_id, event.type_name()));
            let (version, decode, upgrade) = (event.version, Some(event.decode), event.upgrade);
            let plain = EventDraft::new(event.name.into(), event.roles);
            let json = event.json;
            self.events.push(EventDraft { rust, decode, json, version, upgrade, ..plain });
            self.by_type.insert(event.type_id, self.events.len() - 1);
            self.events.len() - 1
        })
    }

    /// The place of an event type that the draft has.
    pub(super) fn place_of(&self, event: &EventType) -> Option<usize> {
        self.by_type.get(&event.type_id).copied()
    }

    /// Flattens a return type into outputs. `least` and `many` say how often the outer types emit the inner
    /// one.
    fn outputs(&mut self, spec: &OutputSpec, least: u32, many: bool, into: &mut Vec<OutputDraft>) {
        let first = into.len();
        let plain =
            OutputDraft { event: 0, least, many, fan_out: false, timed: false, choices: 0, returned: true };
        let mut push = |draft: &mut Self, event: &EventType, output: OutputDraft| {
            let event = draft.event(event);
            into.push(OutputDraft { event, ..output });
            event
        };
        match spec {
            OutputSpec::Nothing => {}
            OutputSpec::Event(event) | OutputSpec::OneOf([event]) => drop(push(self, event, plain)),
            OutputSpec::FanOut(event) => drop(push(self, event, OutputDraft { fan_out: true, ..plain })),
            OutputSpec::Timed(event) => drop(push(self, event, OutputDraft { timed: true, ..plain })),
            OutputSpec::Expiring { request, reply, expired } => {
                let request = push(self, request, plain);
                let expired = push(self, expired, OutputDraft { least: 0, timed: true, ..plain });
                self.events[request].expired = Some(expired);
                // The request is open for a reply even if no step takes it.
                self.events[request].reply = Some(self.event(reply));
            }
            OutputSpec::OneOf(events) => {
                for event in *events {
                    push(self, event, OutputDraft { least: 0, ..plain });
                }
                if let Some(output) = into.get_mut(first).filter(|_| least > 0) {
                    output.choices = events.len();
                }
            }
            OutputSpec::Optional(inner) => self.outputs(inner, 0, many, into),
            OutputSpec::Many(inner) => self.outputs(inner, 0, true, into),
            OutputSpec::All(each) => each.iter().for_each(|inner| self.outputs(inner, least, many, into)),
        }
    }
}

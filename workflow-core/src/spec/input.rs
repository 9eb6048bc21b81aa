//! The declaration of a parameter, as constant data of the table.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::config::ConfigType;
use crate::event::{ControlEvent, EventType, Request};

/// The declaration of one parameter of a step.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts about the parameter")]
pub struct InputSpec {
    pub(crate) kind: InputKind,
    pub(crate) optional: bool,
    pub(crate) passive: bool,
    pub(crate) events: &'static [EventType],
    pub(crate) request: Option<EventType>,
    pub(crate) item: Option<EventType>,
    pub(crate) config: Option<ConfigType>,
    pub(crate) uses_context: bool,
    /// Whether the step may start children by the parameter.
    pub(crate) may_start_children: bool,
    pub(crate) label: &'static str,
}

/// The kinds of parameter that a table distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputKind {
    /// One event: the trigger where its type matches, else the latest.
    One,
    /// Every event so far.
    List,
    /// Exactly the first events, in this number.
    Fixed(u32),
    /// The latest reply, with its request.
    Reply,
    /// The settled branches of a fan-out.
    Gather,
    /// An injected value, which never affects readiness.
    Injected,
    /// A sender of events while the step runs.
    Emitter,
}

impl InputKind {
    /// Whether the parameter takes events. Unless it is passive, they trigger its step.
    pub const fn takes_events(self) -> bool {
        !matches!(self, Self::Injected | Self::Emitter)
    }
}

impl InputSpec {
    /// Declares an injected parameter of your own, with the name that tables and drawings show.
    pub const fn injected(label: &'static str) -> Self {
        Self { may_start_children: true, ..Self::provided(label) }
    }

    /// Declares that the parameter reads or writes a context, as [`RunContext`](crate::RunContext) does.
    ///
    /// [`build`](crate::EngineBuilder::build) refuses a workflow with such a parameter if its engine has a store of
    /// journals and no contexts that go with it. Without this declaration, the calls of the context fail then.
    ///
    /// ```
    /// use workflow_core::signature::InputSpec;
    ///
    /// const VISITS: InputSpec = InputSpec::injected("Visits").using_context();
    /// assert_eq!(VISITS.label(), "Visits");
    /// ```
    pub const fn using_context(self) -> Self {
        Self { uses_context: true, ..self }
    }

    /// The kind of the parameter.
    pub const fn kind(&self) -> InputKind {
        self.kind
    }

    /// Whether the step can run without an event here.
    pub const fn is_optional(&self) -> bool {
        self.optional
    }

    /// Whether the step reads the parameter when another one triggers it ([`Passive`](crate::Passive)).
    pub const fn is_passive(&self) -> bool {
        self.passive
    }

    /// The event types that the parameter takes; for an [`InputKind::Emitter`] those it emits.
    pub const fn events(&self) -> &'static [EventType] {
        self.events
    }

    /// For an [`InputKind::Reply`] its request.
    pub const fn request(&self) -> Option<EventType> {
        self.request
    }

    /// For an [`InputKind::Gather`] that names its fan-out, the item of that fan-out.
    pub const fn item(&self) -> Option<EventType> {
        self.item
    }

    /// For a [`Config<C>`](crate::Config) the type `C`.
    pub const fn config_type(&self) -> Option<ConfigType> {
        self.config
    }

    /// The name of an injected parameter; empty for others.
    pub const fn label(&self) -> &'static str {
        self.label
    }

    /// Declares an injected parameter that starts no children.
    pub(crate) const fn provided(label: &'static str) -> Self {
        Self { label, ..Self::of(InputKind::Injected, &[]) }
    }

    pub(crate) const fn config(config: ConfigType) -> Self {
        Self { config: Some(config), ..Self::provided("Config") }
    }

    /// The same parameter with this schema of its configuration. Without a configuration nothing changes.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_schema(self, schema: Option<fn() -> Value>) -> Self {
        match self.config {
            Some(config) => Self { config: Some(config.with_schema(schema)), ..self },
            None => self,
        }
    }

    const fn of(kind: InputKind, events: &'static [EventType]) -> Self {
        Self {
            kind,
            optional: false,
            passive: false,
            events,
            request: None,
            item: None,
            config: None,
            uses_context: false,
            may_start_children: false,
            label: "",
        }
    }

    pub(crate) const fn one(events: &'static [EventType]) -> Self {
        Self::of(InputKind::One, events)
    }

    pub(crate) const fn list(events: &'static [EventType]) -> Self {
        Self::of(InputKind::List, events)
    }

    pub(crate) const fn fixed(events: &'static [EventType], count: usize) -> Self {
        assert!(count <= 1 << 20, "a `FixedList` holds at most 1,048,576 events");
        #[expect(clippy::cast_possible_truncation, reason = "bounded just above")]
        Self::of(InputKind::Fixed(count as u32), events)
    }

    pub(crate) const fn reply<R: Request>() -> Self {
        let answers: &'static [EventType] = const { &[R::REPLY_TYPE] };
        Self { request: Some(R::TYPE), ..Self::of(InputKind::Reply, answers) }
    }

    /// Takes one event, whose type says that the request expired.
    pub(crate) const fn expired<R: Request>() -> Self {
        Self::of(InputKind::One, const { &[R::EXPIRED_TYPE] })
    }

    /// Gathers the events `E` of the fan-outs with this item, or of those that fit.
    pub(crate) const fn gather<E: ControlEvent>(item: Option<EventType>) -> Self {
        Self { item, ..Self::of(InputKind::Gather, const { &[E::TYPE] }) }
    }

    pub(crate) const fn emitter<E: ControlEvent>() -> Self {
        Self::of(InputKind::Emitter, const { &[E::TYPE] })
    }

    pub(crate) const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Never triggers the step, which runs without it too.
    pub(crate) const fn passive(self) -> Self {
        Self { passive: true, ..self.optional() }
    }
}

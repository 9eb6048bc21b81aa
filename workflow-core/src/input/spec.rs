//! What a parameter declares of itself, as constant data for the table.

use serde::{Deserialize, Serialize};

use crate::config::ConfigType;
use crate::event::{ControlEvent, EventType, Pattern, Request};

/// What one parameter of a step needs.
#[derive(Debug, Clone, Copy)]
pub struct InputSpec {
    pub(crate) kind: InputKind,
    pub(crate) optional: bool,
    pub(crate) events: &'static [EventType],
    pub(crate) request: Option<EventType>,
    pub(crate) config: Option<ConfigType>,
    pub(crate) label: &'static str,
}

/// The kinds of parameter a table distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputKind {
    /// One event: the trigger where it matches, else the latest (S15).
    One,
    /// Every event so far (S16).
    List,
    /// Exactly the first so many (S17).
    Fixed(u32),
    /// The latest reply, with its request.
    Reply,
    /// The settled branches of a fan-out (S48).
    Gather,
    /// Handed in; never part of readiness (S6).
    Injected,
    /// A way to emit events before the step returns (S7).
    Emitter,
}

impl InputKind {
    /// Whether the parameter takes events, and so triggers its step.
    pub const fn takes_events(self) -> bool {
        !matches!(self, Self::Injected | Self::Emitter)
    }
}

impl InputSpec {
    /// An injectable of your own, with the name that tables and drawings show.
    pub const fn injected(label: &'static str) -> Self {
        Self { kind: InputKind::Injected, optional: false, events: &[], request: None, config: None, label }
    }

    /// What kind of parameter it is.
    pub const fn kind(&self) -> InputKind {
        self.kind
    }

    /// Whether the step can run without it.
    pub const fn is_optional(&self) -> bool {
        self.optional
    }

    /// The event types it takes; for an [`InputKind::Emitter`] those it emits.
    pub const fn events(&self) -> &'static [EventType] {
        self.events
    }

    /// For an [`InputKind::Reply`] the request that it answers.
    pub const fn request(&self) -> Option<EventType> {
        self.request
    }

    /// For a [`Config<C>`](crate::Config) the type `C`.
    pub const fn config_type(&self) -> Option<ConfigType> {
        self.config
    }

    /// The name of what is handed in; empty for a parameter that takes or emits events.
    pub const fn label(&self) -> &'static str {
        self.label
    }

    pub(crate) const fn config(config: ConfigType) -> Self {
        Self { config: Some(config), ..Self::injected("Config") }
    }

    const fn of(kind: InputKind, events: &'static [EventType]) -> Self {
        Self { kind, optional: false, events, request: None, config: None, label: "" }
    }

    pub(crate) const fn one<P: Pattern>() -> Self {
        Self::one_of(P::EVENTS)
    }

    pub(crate) const fn one_of(events: &'static [EventType]) -> Self {
        Self::of(InputKind::One, events)
    }

    pub(crate) const fn list<P: Pattern>() -> Self {
        Self::of(InputKind::List, P::EVENTS)
    }

    pub(crate) const fn fixed<P: Pattern>(count: usize) -> Self {
        assert!(count <= 1 << 20, "a `FixedList` holds at most 1,048,576 events");
        #[expect(clippy::cast_possible_truncation, reason = "bounded just above")]
        Self::of(InputKind::Fixed(count as u32), P::EVENTS)
    }

    pub(crate) const fn reply<R: Request>() -> Self {
        let answers: &'static [EventType] = const { &[R::REPLY_TYPE] };
        Self { request: Some(R::TYPE), ..Self::of(InputKind::Reply, answers) }
    }

    /// One event: that it says of a request that it expired is in its type.
    pub(crate) const fn expired<R: Request>() -> Self {
        Self::of(InputKind::One, const { &[R::EXPIRED_TYPE] })
    }

    pub(crate) const fn gather<E: ControlEvent>() -> Self {
        Self::of(InputKind::Gather, const { &[E::TYPE] })
    }

    pub(crate) const fn emitter<E: ControlEvent>() -> Self {
        Self::of(InputKind::Emitter, const { &[E::TYPE] })
    }

    pub(crate) const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
}

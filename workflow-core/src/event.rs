//! Events: the immutable values a run's log is made of. This file owns what an event type is (name and
//! roles) and the erased, shared form in which a log holds events; it knows nothing of steps.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::EventTooLarge;
use crate::json::{self, ToJson};
use crate::output::{Expiring, When};
use crate::panics::release;

mod reply_form;
mod role;
mod serialised;
mod set;
mod version;

pub(crate) use reply_form::Unfit;
pub use reply_form::{NoSchema, ReplyForm, Schema};
pub use role::Roles;
pub(crate) use serialised::{EventCheck, Inadmissible, WithJson};
pub use set::{EventSet, FromEvent, Gives, Log, Pattern, SetMember};
pub(crate) use version::{Reader, Unreadable};
pub use version::{Upgrade, upgraded};

/// An immutable value that drives steps, or is shown to people (S1).
///
/// Derive it: `#[derive(Event)]` also emits the marker traits that follow from the roles. The value must
/// be serialisable, because a run may outlive its process; in memory nothing is ever serialised.
///
/// ```
/// use workflow_core::prelude::*;
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(start, name = "shop.order")]
/// struct Order {
///     lines: Vec<String>,
/// }
///
/// assert_eq!(Order::NAME, "shop.order");
/// assert!(Order::ROLES.is_start());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    label = "not an event",
    note = "derive it: `#[derive(Serialize, Deserialize, Event)]`"
)]
pub trait Event: Serialisable + Send + Sync + 'static {
    /// The wire name: stable, and unique in an engine (S1). By default the type's own name.
    const NAME: &'static str;

    /// What the event is for (S2). By default it drives steps, and that is all: an event with another marker
    /// trait must name its role here, as the derive does.
    const ROLES: Roles = Roles::NONE;

    /// Whether the event ends a run, on the level of types: a workflow's output is found with it.
    #[doc(hidden)]
    type Stop;

    /// Of a request how replies are read by who does not know their type.
    #[doc(hidden)]
    const REPLY_FORM: Option<ReplyForm> = None;

    /// The version of the shape that its JSON has, from 1: `#[event(version = 2)]`. Journals say it of each event.
    const VERSION: u32 = 1;

    /// What makes this version of the JSON of an older one: `#[event(version = 2, upgrade = path)]`. Without it only this
    /// version is read.
    const UPGRADE: Option<Upgrade> = None;

    /// Name, roles and Rust type as one value.
    const TYPE: EventType = EventType {
        name: Self::NAME,
        roles: Self::ROLES,
        version: Self::VERSION,
        upgrade: Self::UPGRADE,
        type_id: TypeId::of::<Self>(),
        type_name: std::any::type_name::<Self>,
        decode: decode::<Self>,
    };
}

/// `Serialize + DeserializeOwned`, in one name: what lacks both is one mistake.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written to a journal and read back",
    label = "lacks serde's derives",
    note = "a run may outlive its process: write `#[derive(Serialize, Deserialize)]` on it"
)]
pub trait Serialisable: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Serialisable for T {}

/// An event that enters the log and drives steps: every event but a pure display event (S2).
///
/// ```compile_fail
/// use workflow_core::prelude::*;
///
/// #[derive(Debug, Serialize, Deserialize, Event)]
/// #[event(display)]
/// struct Progress(u8);
///
/// fn drives_steps<E: workflow_core::ControlEvent>() {}
/// drives_steps::<Progress>(); // a pure display event never triggers anything
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a control event",
    label = "not an event that can drive steps",
    note = "an event drives steps unless its only role is display: `#[derive(Event)]`, or `#[event(control, display)]` for both"
)]
pub trait ControlEvent: Event {}

/// An event that opens a run: `#[event(start)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot start a run",
    label = "not a start event",
    note = "write `#[event(start)]` on the event that opens the run"
)]
pub trait StartEvent: ControlEvent {}

/// An event that ends its run: `#[event(stop)]` (S28).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not end a run",
    label = "not a stop event",
    note = "write `#[event(stop)]` on the event that ends the run"
)]
pub trait StopEvent: ControlEvent {}

/// An event that may be sent into a run from outside: `#[event(external)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent from outside",
    label = "not an external event",
    note = "write `#[event(external)]` on an event that people or other systems send"
)]
pub trait ExternalEvent: ControlEvent {}

/// An event that people can see: `#[event(display)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be displayed",
    label = "not a display event",
    note = "write `#[event(display)]` on an event that is shown to people"
)]
pub trait DisplayEvent: Event {}

/// An event that asks the outside and waits for a typed reply: `#[event(request, reply = Approval)]`.
///
/// ```
/// use workflow_core::prelude::*;
///
/// #[derive(Debug, Clone, Serialize, Deserialize)]
/// struct Approval { granted: bool }
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(request, reply = Approval)]
/// struct ApproveRefund { cents: u64 }
///
/// fn asks<R: workflow_core::Request<Reply = Approval>>() {}
/// asks::<ApproveRefund>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a request",
    label = "not a request",
    note = "write `#[event(request, reply = TheReply)]` on the event that asks"
)]
pub trait Request: ControlEvent {
    /// What the outside answers with.
    type Reply: Serialisable + Send + Sync + 'static;

    /// The wire name under which replies stand in the log: the request's name and `.reply`.
    const REPLY_NAME: &'static str;

    /// The type of the log entry that carries a reply.
    const REPLY_TYPE: EventType = EventType {
        name: Self::REPLY_NAME,
        roles: Roles::NONE.reply(),
        version: 1,
        upgrade: None,
        type_id: TypeId::of::<crate::input::Answered<Self>>(),
        type_name: std::any::type_name::<crate::input::Answered<Self>>,
        decode: crate::input::Answered::<Self>::decode,
    };

    /// The wire name under which it stands in the log that a request expired: the request's name and `.expired`.
    const EXPIRED_NAME: &'static str;

    /// The type of the log entry that says that a request expired.
    const EXPIRED_TYPE: EventType = EventType {
        name: Self::EXPIRED_NAME,
        roles: Roles::NONE,
        version: 1,
        upgrade: None,
        type_id: TypeId::of::<crate::input::ExpiredRequest<Self>>(),
        type_name: std::any::type_name::<crate::input::ExpiredRequest<Self>>,
        decode: crate::input::ExpiredRequest::<Self>::decode,
    };

    /// The request, to be closed when nobody has replied for so long since the step returned (S32).
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(request, reply = String)]
    /// # struct AskName;
    ///
    /// fn ask() -> Expiring<AskName> {
    ///     AskName.expires_in(Duration::from_secs(3_600))
    /// }
    /// ```
    fn expires_in(self, time: Duration) -> Expiring<Self> {
        Expiring::new(When::After(time), self)
    }

    /// The request, to be closed when nobody has replied by then (S32).
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(request, reply = String)]
    /// # struct AskName;
    ///
    /// fn ask(deadline: SystemTime) -> Expiring<AskName> {
    ///     AskName.expires_at(deadline)
    /// }
    /// ```
    fn expires_at(self, time: SystemTime) -> Expiring<Self> {
        Expiring::new(When::At(time), self)
    }
}

/// What a table knows of an event type: its wire name, its roles and which Rust type it is.
#[derive(Clone, Copy)]
pub struct EventType {
    pub(crate) name: &'static str,
    pub(crate) roles: Roles,
    pub(crate) version: u32,
    pub(crate) upgrade: Option<Upgrade>,
    pub(crate) type_id: TypeId,
    pub(crate) type_name: fn() -> &'static str,
    pub(crate) decode: Decode,
}

/// Reads back what stands in a log: of a reply, and of what says that a request expired, with that request.
pub(crate) type Decode = fn(&RawValue, Option<&AnyEvent>) -> Result<AnyEvent, serde_json::Error>;

fn decode<E: Event>(data: &RawValue, _: Option<&AnyEvent>) -> Result<AnyEvent, serde_json::Error> {
    serde_json::from_str(data.get()).map(AnyEvent::new::<E>)
}

/// The request that a log entry belongs to.
pub(crate) fn request_of<R: Request>(request: Option<&AnyEvent>) -> Result<Arc<R>, serde_json::Error> {
    let request = request.and_then(AnyEvent::downcast);
    request.ok_or_else(|| serde_json::Error::custom(format_args!("there is no request `{}`", R::NAME)))
}

impl EventType {
    /// The wire name (S1).
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What the event is for (S2).
    pub const fn roles(&self) -> Roles {
        self.roles
    }

    /// The version of its shape, from 1.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The full path of the Rust type, for messages.
    pub fn type_name(&self) -> &'static str {
        (self.type_name)()
    }

    /// The identity of the Rust type.
    pub const fn type_id(&self) -> TypeId {
        self.type_id
    }
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventType")
            .field("name", &self.name)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}

/// An event of any type, shared: what a log holds, and what observers and viewers are given.
///
/// Cloning copies a pointer. The value inside is immutable (S1).
///
/// ```
/// use workflow_core::{AnyEvent, prelude::*};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize, Event)]
/// struct Scored(u32);
///
/// let event = AnyEvent::new(Scored(7));
/// assert_eq!(event.name(), "Scored");
/// assert_eq!(event.downcast_ref::<Scored>(), Some(&Scored(7)));
/// assert_eq!(event.to_json().unwrap(), serde_json::json!(7));
/// ```
#[derive(Clone)]
pub struct AnyEvent {
    /// It is there until this is dropped.
    payload: Option<Arc<dyn Erased>>,
}

impl AnyEvent {
    /// Wraps a value. One allocation.
    pub fn new<E: Event>(event: E) -> Self {
        Self::from_erased(Arc::new(event))
    }

    pub(crate) fn from_erased(payload: Arc<dyn Erased>) -> Self {
        Self { payload: Some(payload) }
    }

    /// What type the event is of.
    pub fn event_type(&self) -> EventType {
        *self.known_type()
    }

    /// The same, not copied.
    #[inline]
    pub(crate) fn known_type(&self) -> &'static EventType {
        self.payload().event_type()
    }

    /// The wire name of the event's type.
    pub fn name(&self) -> &'static str {
        self.payload().event_type().name
    }

    /// The value, if it is an `E`.
    pub fn downcast_ref<E: Event>(&self) -> Option<&E> {
        self.payload_ref()
    }

    /// The shared value, if it is an `E`. Nothing is copied.
    pub fn downcast<E: Event>(&self) -> Option<Arc<E>> {
        self.payload_arc()
    }

    #[inline]
    fn payload(&self) -> &Arc<dyn Erased> {
        self.payload.as_ref().expect("an event is there until it is dropped")
    }

    pub(crate) fn payload_ref<T: Any>(&self) -> Option<&T> {
        let payload: &(dyn Any + Send + Sync) = &**self.payload();
        payload.downcast_ref().or_else(|| serialised::value_of(payload).downcast_ref())
    }

    pub(crate) fn payload_arc<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let payload: Arc<dyn Any + Send + Sync> = Arc::clone(self.payload()) as _;
        payload.downcast().or_else(|payload| serialised::shared_value_of(payload).downcast()).ok()
    }

    pub(crate) fn reply_form(&self) -> Option<&'static ReplyForm> {
        self.payload().reply_form()
    }

    /// The value as JSON.
    ///
    /// # Errors
    /// What the type's own `Serialize` reports.
    pub fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        json::to_json(self.erased())
    }

    /// Whether it is within the bound, if there is one. What has no JSON has no size either.
    #[inline]
    pub(crate) fn check_size(&self, most: Option<usize>) -> Result<(), EventTooLarge> {
        let Some(limit) = most else { return Ok(()) };
        let counted = self.json_bytes().map_or_else(|| json::size_of(self.erased(), limit), Ok);
        match counted {
            Ok(bytes) if bytes > limit => Err(EventTooLarge { event: self.name(), bytes, limit }),
            _ => Ok(()),
        }
    }
}

impl Drop for AnyEvent {
    /// Here, and nowhere else, the library drops events: a panic in the drop of a user's type goes no further, also
    /// where many events are dropped together, or while a thread panics (S27).
    #[inline]
    fn drop(&mut self) {
        if let Some(payload) = self.payload.take() {
            payload.release();
        }
    }
}

impl Serialize for AnyEvent {
    /// The value, without its name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl fmt::Debug for AnyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyEvent({})", self.name())
    }
}

/// What stands in a log: an event, a reply, or the gathered branches of a fan-out.
pub(crate) trait Erased: Any + ToJson + Send + Sync {
    fn event_type(&self) -> &'static EventType;

    /// Drops it, if nobody else has it: by [`release`](release()), which only knows how to where the type is known.
    fn release(self: Arc<Self>);

    fn reply_form(&self) -> Option<&'static ReplyForm> {
        None
    }
}

impl<E: Event> Erased for E {
    fn event_type(&self) -> &'static EventType {
        &E::TYPE
    }

    fn release(self: Arc<Self>) {
        release(self);
    }

    fn reply_form(&self) -> Option<&'static ReplyForm> {
        const { E::REPLY_FORM.as_ref() }
    }
}

/// Type-level answer of [`Event::Stop`]: the event does not end a run.
#[doc(hidden)]
#[derive(Debug)]
pub struct NotStop;

/// Type-level answer of [`Event::Stop`]: the event `E` ends a run.
#[doc(hidden)]
#[derive(Debug)]
pub struct IsStop<E>(std::marker::PhantomData<E>);

//! Events: the immutable values in a run's log. The module owns event types (names, roles, versions), event
//! sets, and the erased, shared form in which a log stores events. The module knows nothing of steps.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use crate::error::{EventTooLarge, UnfitEvent, UnfitValue};
use crate::json::{self, ToJson};
use crate::panics::{Panicked, release};

mod answered;
mod expired;
mod expiring;
mod gathered;
mod json_form;
mod kind;
mod lazy_json;
mod reply_form;
mod role;
mod serialised;
mod value;
mod version;
mod when;

pub(crate) use answered::Answered;
pub(crate) use expired::ExpiredRequest;
pub use expiring::Expiring;
pub(crate) use gathered::{BranchEnd, Gathered, GatheredBranch};
pub use json_form::{ConfigSchema, JsonForm, NoSchema, Schema};
pub(crate) use kind::{EventKind, JsonData, JsonEvent, JsonType};
pub(crate) use lazy_json::LazyJson;
pub use reply_form::ReplyForm;
pub use role::Roles;
pub(crate) use serialised::{EventCheck, Inadmissible, WithJson};
pub use value::{FromEvent, Gives, Log, SetMember};
pub(crate) use version::{Reader, Unreadable};
pub use version::{Upgrade, upgraded};
pub(crate) use when::When;

/// An immutable value that drives steps or is shown to people.
///
/// Derive it: `#[derive(Event)]` also implements the marker traits of its roles. The value must be
/// serialisable, since a run can outlive its process. Without a store the library serialises no event, unless
/// [`max_event_bytes`](crate::EngineBuilder::max_event_bytes) is set.
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
    /// The wire name: stable, and unique in an engine. The derive uses the name of the type by default.
    const NAME: &'static str;

    /// The roles of the event. Default: it only drives steps. An implementation by hand must set the role of
    /// each further marker trait, as the derive does.
    const ROLES: Roles = Roles::NONE;

    /// Whether the event ends a run, at type level. The workflow's output type is derived from it.
    #[doc(hidden)]
    type Stop;

    /// For a request: how to read replies without knowing their type.
    #[doc(hidden)]
    const REPLY_FORM: Option<ReplyForm> = None;

    /// The event as JSON from outside, and its schema.
    #[doc(hidden)]
    const JSON: JsonForm = JsonForm::NONE;

    /// The version of the serialised form, from 1: `#[event(version = 2)]`. Journals store it with each
    /// event.
    const VERSION: u32 = 1;

    /// Converts the JSON of an older version to this one: `#[event(version = 2, upgrade = path)]`. Without
    /// it, events of older versions cannot be read.
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
        json: Self::JSON,
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

/// An event that enters the log and drives steps: any event that is not display-only.
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

/// An event that ends its run: `#[event(stop)]`.
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

/// An event that is shown to people: `#[event(display)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be displayed",
    label = "not a display event",
    note = "write `#[event(display)]` on an event that is shown to people"
)]
pub trait DisplayEvent: Event {}

/// An event that asks the outside for a typed reply: `#[event(request, reply = Approval)]`.
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
    /// The type of the reply.
    type Reply: Serialisable + Send + Sync + 'static;

    /// The wire name of replies in the log: the name of the request and `.reply`.
    const REPLY_NAME: &'static str;

    /// The event type of replies in the log.
    const REPLY_TYPE: EventType = EventType {
        name: Self::REPLY_NAME,
        roles: Roles::NONE.reply(),
        version: 1,
        upgrade: None,
        type_id: TypeId::of::<crate::event::Answered<Self>>(),
        type_name: std::any::type_name::<crate::event::Answered<Self>>,
        decode: crate::event::Answered::<Self>::decode,
        json: JsonForm::shown(match Self::REPLY_FORM {
            Some(form) => form.schema,
            None => None,
        }),
    };

    /// The wire name of expiries in the log: the name of the request and `.expired`.
    const EXPIRED_NAME: &'static str;

    /// The event type of expiries in the log.
    const EXPIRED_TYPE: EventType = EventType {
        name: Self::EXPIRED_NAME,
        roles: Roles::NONE,
        version: 1,
        upgrade: None,
        type_id: TypeId::of::<crate::event::ExpiredRequest<Self>>(),
        type_name: std::any::type_name::<crate::event::ExpiredRequest<Self>>,
        decode: crate::event::ExpiredRequest::<Self>::decode,
        json: JsonForm::NONE,
    };

    /// Returns the request so that it expires after this time, counted from the step's return.
    ///
    /// With 0 nobody could reply, and the execution fails with [`TimerError`](crate::errors::TimerError). A deadline that may
    /// have passed is one of [`expires_at`](Self::expires_at).
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

    /// Returns the request so that it expires at this time, or at once if the time has passed.
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

/// An event type as tables know it: wire name, roles, version and Rust type.
#[derive(Clone, Copy)]
pub struct EventType {
    pub(crate) name: &'static str,
    pub(crate) roles: Roles,
    pub(crate) version: u32,
    pub(crate) upgrade: Option<Upgrade>,
    pub(crate) type_id: TypeId,
    pub(crate) type_name: fn() -> &'static str,
    pub(crate) decode: Decode,
    pub(crate) json: JsonForm,
}

/// Reads an entry of a log back. A reply and an expiry need their request too.
pub(crate) type Decode = fn(&str, Option<&AnyEvent>) -> Result<AnyEvent, serde_json::Error>;

fn decode<E: Event>(data: &str, _: Option<&AnyEvent>) -> Result<AnyEvent, serde_json::Error> {
    serde_json::from_str(data).map(AnyEvent::new::<E>)
}

/// The request of a log entry, in its own type.
pub(crate) fn request_of<R: Request>(request: Option<&AnyEvent>) -> Result<Arc<R>, serde_json::Error> {
    let request = request.and_then(AnyEvent::downcast);
    request.ok_or_else(|| serde_json::Error::custom(format_args!("there is no request `{}`", R::NAME)))
}

impl EventType {
    /// The wire name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The roles of the event.
    pub const fn roles(&self) -> Roles {
        self.roles
    }

    /// The version of the serialised form, from 1.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The JSON schema of the event, of a reply that of the reply.
    ///
    /// `None` unless the type implements `schemars::JsonSchema` (version 1) without a panic, derives `Event` and has no
    /// type parameters, and the feature `schemars` is on.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    ///
    /// #[derive(Debug, Serialize, Deserialize, schemars::JsonSchema, Event)]
    /// #[event(start)]
    /// struct Order { lines: Vec<String> }
    ///
    /// let schema = Order::TYPE.json_schema().expect("it has one");
    /// assert_eq!(schema["required"], serde_json::json!(["lines"]));
    /// ```
    pub fn json_schema(&self) -> Option<serde_json::Value> {
        json::schema(self.json.schema)
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

/// An event of any type, shared: the form in logs, and for observers and viewers.
///
/// Cloning copies a pointer. The value is immutable.
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
    /// `Some` until the event is dropped.
    payload: Option<Arc<dyn Erased>>,
}

impl AnyEvent {
    /// Wraps a value, with one allocation.
    pub fn new<E: Event>(event: E) -> Self {
        Self::from_erased(Arc::new(event))
    }

    pub(crate) fn from_erased(payload: Arc<dyn Erased>) -> Self {
        Self { payload: Some(payload) }
    }

    /// The type of the event, if it is a Rust type. The events of a run-time workflow are JSON without one.
    pub fn event_type(&self) -> Option<EventType> {
        match self.kind() {
            EventKind::Rust(known) => Some(*known),
            EventKind::Json(_) => None,
        }
    }

    #[inline]
    pub(crate) fn kind(&self) -> EventKind<'_> {
        self.payload().kind()
    }

    /// The wire name of the event type.
    pub fn name(&self) -> &str {
        self.kind().name()
    }

    /// The roles of the event type.
    pub fn roles(&self) -> Roles {
        self.kind().roles()
    }

    /// The version of the event type's serialised form, from 1.
    pub fn version(&self) -> u32 {
        self.kind().version()
    }

    /// The JSON of an event of a run-time workflow, without a copy. `None` for an event of a Rust type, which
    /// [`to_json`](Self::to_json) serialises, and for a [typed output](crate::JsonOutput::typed) whose `Serialize` fails.
    ///
    /// The JSON of a typed output is made by the first call, and kept.
    pub fn as_json(&self) -> Option<&serde_json::Value> {
        self.payload_ref().and_then(JsonEvent::value)
    }

    /// The value of a [typed output](crate::JsonOutput::typed) of a run-time workflow, if its type is `T`.
    ///
    /// `None` also for the same event after it was read from a store, which has its JSON alone. So a reader needs both: this
    /// for speed, and [`as_json`](Self::as_json). [`JsonOutput::typed`](crate::JsonOutput::typed) has an example.
    pub fn typed_output<T: Any>(&self) -> Option<&T> {
        self.payload_ref().and_then(JsonEvent::typed)
    }

    /// The value, if its type is `E`.
    pub fn downcast_ref<E: Event>(&self) -> Option<&E> {
        self.payload_ref()
    }

    /// The shared value, if its type is `E`. Copies nothing.
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
    /// The error of the type's own `Serialize`.
    pub fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        json::to_json(self.erased())
    }

    /// Checks the size against a bound. An event whose `Serialize` fails has no size and passes; one whose `Serialize`
    /// panics does not (S27).
    #[inline]
    pub(crate) fn check_size(&self, most: Option<usize>) -> Result<(), Inadmissible> {
        most.map_or(Ok(()), |limit| self.check_bytes(limit))
    }

    fn check_bytes(&self, limit: usize) -> Result<(), Inadmissible> {
        let event = || self.name().into();
        let counted =
            self.json_bytes().map_or_else(|| json::size_of(self.erased(), limit), |bytes| Ok(Some(bytes)));
        match counted {
            Ok(Some(bytes)) if bytes > limit => {
                Err(Inadmissible::TooLarge(EventTooLarge { event: event(), bytes, limit }))
            }
            Ok(_) => Ok(()),
            Err(Panicked { message }) => {
                let (path, problem) = (String::new(), UnfitValue::Panicked { message });
                Err(Inadmissible::Unfit(UnfitEvent { event: event(), path, problem }))
            }
        }
    }
}

impl Drop for AnyEvent {
    /// The only place where the library drops events. A panic in the drop of a user's type ends here, also
    /// when many events are dropped together or while the thread panics.
    #[inline]
    fn drop(&mut self) {
        if let Some(payload) = self.payload.take() {
            payload.release();
        }
    }
}

impl Serialize for AnyEvent {
    /// Serialises the value without its name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl fmt::Debug for AnyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyEvent({})", self.name())
    }
}

/// An entry of a log: an event, a reply, an expiry, or the result of a fan-out.
pub(crate) trait Erased: Any + ToJson + Send + Sync {
    fn kind(&self) -> EventKind<'_>;

    /// Drops the value if this is the last reference, with [`release`](release()), which needs the concrete
    /// type.
    fn release(self: Arc<Self>);

    fn reply_form(&self) -> Option<&'static ReplyForm> {
        None
    }

    /// Of a reply or an expiry: the request, with which it is decoded.
    fn request(&self) -> Option<AnyEvent> {
        None
    }
}

/// Reads JSON as this entry's own type would, and drops the result. An entry without a Rust type reads any JSON.
fn read_back(entry: &dyn Erased, json: &str) -> Result<(), serde_json::Error> {
    match entry.kind() {
        EventKind::Rust(known) => (known.decode)(json, entry.request().as_ref()).map(drop),
        EventKind::Json(_) => Ok(()),
    }
}

impl<E: Event> Erased for E {
    fn kind(&self) -> EventKind<'_> {
        EventKind::Rust(&E::TYPE)
    }

    fn release(self: Arc<Self>) {
        release(self);
    }

    fn reply_form(&self) -> Option<&'static ReplyForm> {
        const { E::REPLY_FORM.as_ref() }
    }
}

/// Answer of [`Event::Stop`]: the event does not end a run.
#[doc(hidden)]
#[derive(Debug)]
pub struct NotStop;

/// Answer of [`Event::Stop`]: the event `E` ends a run.
#[doc(hidden)]
#[derive(Debug)]
pub struct IsStop<E>(std::marker::PhantomData<E>);

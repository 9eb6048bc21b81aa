//! Step outputs: how a return type is declared and emitted. The module owns the trait [`StepOutput`] and the
//! return types that the library supports (S7). An event that a step's signature does not declare cannot be
//! emitted.

use std::marker::PhantomData;

use crate::display::Display;
use crate::error::StepError;
use crate::event::{AnyEvent, ControlEvent, Event, EventCheck, EventKind, Inadmissible, IsStop, NotStop};
use crate::spec::OutputSpec;

mod expiring;
mod fan_out;
mod json;
mod timer;

pub use fan_out::{FanOut, FanOutError, FanOutPolicy};
pub use json::{JsonOutput, OutputForm, TypedOutput};
pub use timer::{Timer, TimerError};

pub(crate) use fan_out::OpenedFanOut;
pub(crate) use json::JsonOutputTypes;
pub(crate) use timer::{MAX_TIMERS, SetTimer};

/// A return type of a step: declares its event types and emits its values.
///
/// These types implement it:
///
/// | return type | what enters the log |
/// |---|---|
/// | an event `E` | the event |
/// | `()` | nothing |
/// | `Option<T>` | nothing for `None` |
/// | `Vec<T>` | each in order, adjacent |
/// | `(A, B, …)`, up to eight | each in order |
/// | an [`EventSet`](crate::EventSet) enum | the variant's event |
/// | [`FanOut<E>`](FanOut) | a branch per item |
/// | [`Timer<E>`](Timer) | the event, later, when the timer fires |
/// | [`Expiring<R>`](crate::Expiring) | the request, which expires |
/// | `Result<T, E>` where `E: Into<StepError>` | as for `T`; an error fails the execution |
///
/// All events of one return value enter the log as one batch when the execution commits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned by a step",
    label = "not something a step can emit",
    note = "return an event that derives `Event` (and is not display only), an enum that derives `EventSet`, `FanOut<E>`, `()`, or `Option`, `Vec`, a tuple or `Result<_, E>` of these, where `E` is an error"
)]
pub trait StepOutput: Sized {
    /// The declaration of the outputs, as the table shows it.
    const SPEC: OutputSpec;

    /// The event types at type level, from which the workflow's output type is derived.
    #[doc(hidden)]
    type Events;

    /// Puts the events into the batch of the execution.
    ///
    /// # Errors
    /// The error of a `Result` that is `Err`. The execution fails with it.
    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError>;
}

/// The batch of one execution: the events that it will commit.
#[derive(Debug, Default)]
pub struct Emitted {
    items: Items,
    shown: PendingDisplay,
}

/// The entries of a batch, in order. Nearly every batch has exactly one.
#[derive(Debug, Default)]
enum Items {
    #[default]
    None,
    One(EmittedItem),
    Many(Vec<EmittedItem>),
}

impl Items {
    fn all(&self) -> &[EmittedItem] {
        match self {
            Self::None => &[],
            Self::One(item) => std::slice::from_ref(item),
            Self::Many(items) => items,
        }
    }

    fn push(&mut self, item: EmittedItem) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(item),
            Self::One(first) => Self::Many(vec![first, item]),
            Self::Many(mut items) => {
                items.push(item);
                Self::Many(items)
            }
        };
    }

    /// Makes room for more entries.
    fn reserve(&mut self, more: usize) {
        *self = match std::mem::take(self) {
            Self::None if more < 2 => Self::None,
            items => {
                let mut all = Vec::with_capacity(items.all().len() + more);
                all.extend(items.into_iter());
                Self::Many(all)
            }
        };
    }

    fn all_mut(&mut self) -> &mut [EmittedItem] {
        match self {
            Self::None => &mut [],
            Self::One(item) => std::slice::from_mut(item),
            Self::Many(items) => items,
        }
    }

    fn into_iter(self) -> impl Iterator<Item = EmittedItem> {
        let (one, many) = match self {
            Self::None => (None, Vec::new()),
            Self::One(item) => (Some(item), Vec::new()),
            Self::Many(items) => (None, items),
        };
        one.into_iter().chain(many)
    }
}

/// The display items of the attempt. An attempt can still fail after its step has returned, by middleware or
/// by its output. Dropping the batch then retracts the items (S25). Boxed, since few attempts display
/// anything.
#[derive(Debug, Default)]
struct PendingDisplay(Option<Box<Display>>);

impl Drop for PendingDisplay {
    fn drop(&mut self) {
        if let Some(display) = self.0.take() {
            display.retract();
        }
    }
}

/// One entry of a batch.
#[derive(Debug)]
pub(crate) enum EmittedItem {
    Event(AnyEvent),
    /// Boxed, since nearly every entry is an event and batches are moved around.
    FanOut(Box<OpenedFanOut>),
    Timer(Box<SetTimer>),
    /// A request, and the timer that closes it.
    Expiring(Box<(AnyEvent, SetTimer)>),
}

impl Emitted {
    /// The events of the batch in log order, including the items of fan-outs.
    pub fn events(&self) -> impl Iterator<Item = &AnyEvent> {
        self.items().iter().flat_map(EmittedItem::events)
    }

    /// The events of the batch's timers, in order. They enter the log when the timers fire.
    pub fn timed_events(&self) -> impl Iterator<Item = &AnyEvent> {
        self.items().iter().filter_map(EmittedItem::timer).map(|timer| &timer.event)
    }

    /// Checks every event of the batch, including those of timers.
    pub(crate) fn check_events(&mut self, check: EventCheck) -> Result<(), Inadmissible> {
        self.items.all_mut().iter_mut().try_for_each(|item| item.check(check))
    }

    /// Whether a fan-out of the batch has more items than branches open at a time.
    pub fn opens_branches_in_turn(&self) -> bool {
        self.items().iter().any(EmittedItem::opens_in_turn)
    }

    /// Whether a fan-out of the batch uses [`FanOutPolicy::WaitAll`].
    pub fn waits_for_all_branches(&self) -> bool {
        self.items().iter().any(EmittedItem::waits_for_all)
    }

    /// Whether a fan-out of the batch may drop branches by how many others have settled ([`FanOut::until`]) or failed
    /// ([`FanOut::tolerate`]).
    pub fn drops_branches(&self) -> bool {
        self.items().iter().any(EmittedItem::drops_branches)
    }

    /// The entries of the batch, in order.
    pub(crate) fn items(&self) -> &[EmittedItem] {
        self.items.all()
    }

    /// Appends an event.
    pub(crate) fn push(&mut self, event: AnyEvent) {
        self.put(EmittedItem::Event(event));
    }

    #[inline]
    fn put(&mut self, item: EmittedItem) {
        self.items.push(item);
    }

    /// Retracts these display items when the batch is dropped, unless [`commit_display`](Self::commit_display) was called.
    pub(crate) fn set_display(&mut self, display: Option<Display>) {
        self.shown = PendingDisplay(display.map(Box::new));
    }

    /// Marks the batch as committed: the display items stay. The caller can still retract them with the
    /// returned display.
    #[inline]
    pub(crate) fn commit_display(&mut self) -> Option<Box<Display>> {
        self.shown.0.take()
    }

    /// Takes the event out, if the batch is a single event.
    #[inline]
    pub(crate) fn take_only(&mut self) -> Option<AnyEvent> {
        match std::mem::take(&mut self.items) {
            Items::One(EmittedItem::Event(event)) => Some(event),
            items => {
                self.items = items;
                None
            }
        }
    }

    /// Appends another batch.
    pub(crate) fn append(&mut self, later: Self) {
        if self.items().is_empty() {
            *self = later;
        } else {
            later.items.into_iter().for_each(|item| self.put(item));
        }
    }

    /// Every event of the batch in log order, and every timer that it sets.
    pub(crate) fn into_parts(self) -> (Vec<AnyEvent>, Vec<SetTimer>) {
        let (mut events, mut timers) = (Vec::with_capacity(self.items().len()), Vec::new());
        for item in self.items.into_iter() {
            match item {
                EmittedItem::Event(event) => events.push(event),
                EmittedItem::FanOut(fan_out) if events.is_empty() => {
                    events = fan_out.items;
                }
                EmittedItem::FanOut(fan_out) => events.extend(fan_out.items),
                EmittedItem::Timer(timer) => timers.push(*timer),
                EmittedItem::Expiring(expiring) => {
                    let (request, timer) = *expiring;
                    events.push(request);
                    timers.push(timer);
                }
            }
        }
        (events, timers)
    }

    /// The number of timers that the batch sets.
    pub(crate) fn timers(&self) -> usize {
        self.items().iter().filter_map(EmittedItem::timer).count()
    }

    /// Appends the member of an event set; called by the derive.
    #[doc(hidden)]
    pub fn push_member(&mut self, event: AnyEvent) {
        self.push(event);
    }
}

impl EmittedItem {
    fn events(&self) -> &[AnyEvent] {
        match self {
            Self::Event(event) => std::slice::from_ref(event),
            Self::FanOut(fan_out) => &fan_out.items,
            Self::Timer(_) => &[],
            Self::Expiring(expiring) => std::slice::from_ref(&expiring.0),
        }
    }

    /// Refuses a fan-out that cannot open, and a request that expires before anyone can reply (S74, S75).
    pub(crate) fn check_terms(&self) -> Result<(), StepError> {
        match self {
            Self::FanOut(fan_out) => match &fan_out.tolerated {
                Ok(_) => Ok(()),
                Err(error) => Err(error.clone().into()),
            },
            Self::Expiring(expiring) if expiring.1.when.is_no_time() => {
                Err(TimerError::NoTime { request: expiring.0.name().into() }.into())
            }
            _ => Ok(()),
        }
    }

    /// Checks the entry. The event of a timer is recorded twice: when the timer is set, and when it fires.
    fn check(&mut self, check: EventCheck) -> Result<(), Inadmissible> {
        match self {
            Self::Event(event) => check.check(event, 1),
            Self::FanOut(fan_out) => fan_out.items.iter_mut().try_for_each(|item| check.check(item, 1)),
            Self::Timer(timer) => check.check(&mut timer.event, 2),
            Self::Expiring(expiring) => {
                let (request, timer) = &mut **expiring;
                check.check(request, 1)?;
                check.check_same(&mut timer.event, request, 2)
            }
        }
    }

    fn timer(&self) -> Option<&SetTimer> {
        match self {
            Self::Event(_) | Self::FanOut(_) => None,
            Self::Timer(timer) => Some(timer),
            Self::Expiring(expiring) => Some(&expiring.1),
        }
    }

    fn opens_in_turn(&self) -> bool {
        let Self::FanOut(fan_out) = self else { return false };
        fan_out.concurrency.is_some_and(|most| (most.get() as usize) < fan_out.items.len())
    }

    fn waits_for_all(&self) -> bool {
        matches!(self, Self::FanOut(fan_out) if fan_out.policy == FanOutPolicy::WaitAll)
    }

    fn drops_branches(&self) -> bool {
        let Self::FanOut(fan_out) = self else { return false };
        fan_out.until.is_some_and(|enough| (enough.get() as usize) < fan_out.items.len())
            || fan_out.tolerated.as_ref().is_ok_and(|tolerated| *tolerated > 0)
    }

    /// The type of the event, of the timer's event, or of the fan-out's items.
    pub(crate) fn form(&self) -> OutputForm {
        match self {
            Self::Event(_) => OutputForm::Event,
            Self::FanOut(_) => OutputForm::FanOut,
            Self::Timer(_) => OutputForm::Timer,
            Self::Expiring(_) => OutputForm::Expiring,
        }
    }

    pub(crate) fn kind(&self) -> EventKind<'_> {
        match self {
            Self::Event(event) => event.kind(),
            Self::FanOut(fan_out) => fan_out.item_type.kind(),
            Self::Timer(timer) => timer.event.kind(),
            Self::Expiring(expiring) => expiring.0.kind(),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<E: ControlEvent> StepOutput for E {
    const SPEC: OutputSpec = OutputSpec::Event(E::TYPE);
    type Events = One<E>;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        emitted.push(AnyEvent::new(self));
        Ok(())
    }
}

impl StepOutput for () {
    const SPEC: OutputSpec = OutputSpec::Nothing;
    type Events = Nothing;

    fn emit(self, _: &mut Emitted) -> Result<(), StepError> {
        Ok(())
    }
}

impl<T: StepOutput> StepOutput for Option<T> {
    const SPEC: OutputSpec = OutputSpec::Optional(&T::SPEC);
    type Events = T::Events;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        self.map_or(Ok(()), |output| output.emit(emitted))
    }
}

impl<T: StepOutput> StepOutput for Vec<T> {
    const SPEC: OutputSpec = OutputSpec::Many(&T::SPEC);
    type Events = T::Events;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        emitted.items.reserve(self.len());
        self.into_iter().try_for_each(|output| output.emit(emitted))
    }
}

impl<T: StepOutput, E: Into<StepError>> StepOutput for Result<T, E> {
    const SPEC: OutputSpec = T::SPEC;
    type Events = T::Events;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        self.map_err(Into::into)?.emit(emitted)
    }
}

macro_rules! tuple_output {
    ($($name:ident $index:tt),+) => {
        impl<$($name: StepOutput),+> StepOutput for ($($name,)+) {
            const SPEC: OutputSpec = OutputSpec::All(&[$($name::SPEC),+]);
            type Events = Each<($($name::Events,)+)>;

            fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
                $(self.$index.emit(emitted)?;)+
                Ok(())
            }
        }
    };
}

tuple_output!(A 0, B 1);
tuple_output!(A 0, B 1, C 2);
tuple_output!(A 0, B 1, C 2, D 3);
tuple_output!(A 0, B 1, C 2, D 3, E 4);
tuple_output!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple_output!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple_output!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// At type level: no event.
#[doc(hidden)]
#[derive(Debug)]
pub struct Nothing;

/// At type level: one event type.
#[doc(hidden)]
#[derive(Debug)]
pub struct One<E>(PhantomData<E>);

/// At type level: the events of each member of a tuple.
#[doc(hidden)]
#[derive(Debug)]
pub struct Each<T>(PhantomData<T>);

/// Folds the event types of all outputs into the one stop event among them.
#[doc(hidden)]
pub trait FindStop<Found> {
    /// The stop event found so far.
    type Found;
}

impl<Found> FindStop<Found> for Nothing {
    type Found = Found;
}

impl<Found: OrStop<E::Stop>, E: Event> FindStop<Found> for One<E> {
    type Found = Found::Either;
}

macro_rules! find_stop_in_tuple {
    ($first:ident $($rest:ident)*) => {
        impl<Found, $first: FindStop<Found>, $($rest,)*> FindStop<Found> for Each<($first, $($rest,)*)>
        where
            Each<($($rest,)*)>: FindStop<$first::Found>,
        {
            type Found = <Each<($($rest,)*)> as FindStop<$first::Found>>::Found;
        }
    };
}

impl<Found> FindStop<Found> for Each<()> {
    type Found = Found;
}

find_stop_in_tuple!(A);
find_stop_in_tuple!(A B);
find_stop_in_tuple!(A B C);
find_stop_in_tuple!(A B C D);
find_stop_in_tuple!(A B C D E);
find_stop_in_tuple!(A B C D E F);
find_stop_in_tuple!(A B C D E F G);
find_stop_in_tuple!(A B C D E F G H);

/// Combines the result so far with one more event type.
#[doc(hidden)]
pub trait OrStop<Other> {
    /// The stop event among both.
    type Either;
}

impl<Other> OrStop<Other> for NotStop {
    type Either = Other;
}

impl<E> OrStop<NotStop> for IsStop<E> {
    type Either = Self;
}

/// The first stop event wins. The compiler reports a second one where a step returns it.
impl<E, Other> OrStop<IsStop<Other>> for IsStop<E> {
    type Either = Self;
}

/// The single stop event of a workflow.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the workflow has no stop event",
    label = "no step returns an event that ends the run",
    note = "write `#[event(stop)]` on the event that ends the run and return it from a step"
)]
pub trait OnlyStop {
    /// The stop event.
    type Event;
}

impl<E> OnlyStop for IsStop<E> {
    type Event = E;
}

//! Lets generated code ask whether a type can stand where it is used, so that a type that cannot is reported
//! once, where a call needs it, and nowhere else: the table is there all the same, and so is what the compiler
//! has to say of the rest of it.

use std::any::TypeId;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use crate::error::StepError;
use crate::event::{
    AnyEvent, Event, EventType, FromEvent, IsStop, NotStop, Pattern, Roles, Serialisable, SetMember,
};
use crate::input::{InputSpec, Slot, Slots, StepInput};
use crate::output::{Emitted, FindStop, Nothing, One, OnlyStop, OrStop, OutputSpec, StepOutput};
use crate::table::TableSpec;
use crate::workflow::{StepFuture, Workflow};

/// `Kind::<T>::IS_OUTPUT` and its like are answered by the inherent constants if `T` implements the trait, and
/// by those of [`Unusable`], which must be in scope, if it does not.
#[doc(hidden)]
#[derive(Debug)]
pub struct Kind<T>(PhantomData<T>);

impl<T: StepOutput> Kind<T> {
    /// It can be a return type.
    pub const IS_OUTPUT: bool = true;
    /// What it declares.
    pub const OUTPUT: OutputSpec = T::SPEC;
}

impl<E: Derived> Kind<E> {
    /// Whether its derive has made it an event.
    pub const DERIVED: Option<bool> = Some(E::IS_EVENT);
}

impl<T: StepOutput> Kind<T> {
    /// Puts what a step returned into its batch.
    ///
    /// # Errors
    /// What the step returned instead of events.
    #[inline]
    pub fn emit(returned: T, emitted: &mut Emitted) -> Result<(), StepError> {
        returned.emit(emitted)
    }
}

impl<T: SetMember> Kind<T> {
    /// It can be a member of an event set.
    pub const IS_MEMBER: bool = true;
}

impl<W: Workflow> Kind<W> {
    /// Its table.
    pub const TABLE: &'static TableSpec = W::TABLE;
    /// The event types that its output can be made of.
    pub const OUTPUT_EVENTS: &'static [EventType] = <W::Output as FromEvent>::MEMBERS;
}

/// The answers for a type that cannot stand where it is used.
#[doc(hidden)]
pub trait Unusable: Sized {
    /// The type.
    type Type;

    /// It has no derive that would report why.
    const DERIVED: Option<bool> = None;
    /// It cannot be a parameter.
    const IS_INPUT: bool = false;
    /// It cannot be a return type.
    const IS_OUTPUT: bool = false;
    /// It cannot be a member of an event set.
    const IS_MEMBER: bool = false;
    /// Nothing is known of what its output is made of.
    const OUTPUT_EVENTS: &'static [EventType] = &[];

    /// Nothing is known of the parameter.
    const INPUT: InputSpec = UNCLEAR;
    /// Nothing is known of what is returned.
    const OUTPUT: OutputSpec = UNCLEAR_OUTPUT;

    /// It is never called for.
    fn fill(_: &mut Slots<'_>) -> Result<Self::Type, StepError> {
        unreachable!("a workflow with an unusable parameter does not compile")
    }

    /// It is never called for.
    fn owned(_: &Slot<'_>) -> Result<Self::Type, StepError> {
        unreachable!("a workflow with an unusable parameter does not compile")
    }

    /// It is never called for.
    fn emit(_: Self::Type, _: &mut Emitted) -> Result<(), StepError> {
        unreachable!("a workflow with an unusable return type does not compile")
    }

    /// It is never called for.
    fn ask<F: Future>(_: F) -> Pin<Box<dyn Future<Output = F::Output> + Send>> {
        unreachable!("a workflow that cannot be shared does not compile")
    }
}

impl<T> Unusable for Kind<T> {
    type Type = T;
}

/// What a parameter of type `P` declares and is given. If it is no input, [`Unusable`] gives stand-ins.
#[doc(hidden)]
#[derive(Debug)]
pub struct Fill<P>(PhantomData<P>);

impl<P: StepInput> Fill<P> {
    /// It can be a parameter.
    pub const IS_INPUT: bool = true;
    /// What it declares.
    pub const INPUT: InputSpec = P::SPEC;

    /// What the function is given.
    ///
    /// # Errors
    /// What keeps the parameter from being filled.
    pub fn fill<'a>(slots: &mut Slots<'a>) -> Result<P::Item<'a>, StepError> {
        P::fill(slots.take())
    }
}

impl<P> Unusable for Fill<P> {
    type Type = P;
}

/// A parameter that nothing is known of: an injectable without a name.
#[doc(hidden)]
pub const UNCLEAR: InputSpec = InputSpec::injected("");

/// What a step returns that nothing is known of: a tuple of nothing, which no type declares.
#[doc(hidden)]
pub const UNCLEAR_OUTPUT: OutputSpec = OutputSpec::All(&[]);

/// Fills a parameter of type `P` that is taken by value. If the log cannot give it by value, [`Unusable`] gives
/// a stand-in.
#[doc(hidden)]
#[derive(Debug)]
pub struct Owned<P>(PhantomData<P>);

impl<P: Pattern + FromEvent> Owned<P> {
    /// What the function is given.
    ///
    /// # Errors
    /// If the slot holds no event that matches.
    pub fn owned(slot: &Slot<'_>) -> Result<P, StepError> {
        P::from_event(slot.event()?).ok_or_else(|| slot.mismatch())
    }
}

impl<P> Unusable for Owned<P> {
    type Type = P;
}

/// Boxes what a workflow `W` does. If `W` cannot be shared between threads, which is reported where it is made
/// a workflow, [`Unusable`] takes futures that cannot either.
#[doc(hidden)]
#[derive(Debug)]
pub struct Launch<W>(PhantomData<W>);

impl<W: Send + Sync> Launch<W> {
    /// A step, a precondition or a compaction.
    pub fn ask<F>(future: F) -> Pin<Box<F>> {
        Box::pin(future)
    }
}

impl<W> Unusable for Launch<W> {
    type Type = W;
}

/// The answer to a call of a step that the workflow does not have.
#[doc(hidden)]
pub fn absent() -> StepFuture {
    Box::pin(std::future::ready(Err(no_such_row())))
}

/// Why there is nothing to be called.
#[doc(hidden)]
pub fn no_such_row() -> StepError {
    StepError::permanent("the workflow has no step in this row")
}

/// Stands for the call of a step that cannot be called.
#[doc(hidden)]
pub fn never() -> StepFuture {
    unreachable!("a workflow with a mistake does not compile")
}

/// Every type with `#[derive(Event)]`.
#[doc(hidden)]
pub trait Derived {
    /// That it is an event. If it is not, the derive reports why, and there is no answer.
    const IS_EVENT: bool = true;
}

/// Says yes, for a type that has serde's derives.
#[doc(hidden)]
pub const fn serialisable<T: Serialisable>() -> bool {
    true
}

/// Whether a type is asked what it lacks: not if its derive has reported it, and one without a derive only while it
/// lacked nothing where it was first named.
#[doc(hidden)]
pub const fn is_asked(derived: Option<bool>, first: bool) -> bool {
    match derived {
        Some(is_event) => is_event,
        None => first,
    }
}

/// The type `T`, to be asked whether it can stand where it is used; a stand-in that can where a mistake of it has
/// been reported.
#[doc(hidden)]
#[derive(Debug)]
pub struct Asked<T, const IS_ASKED: bool>(PhantomData<T>);

/// Which type is asked.
#[doc(hidden)]
pub trait Ask {
    /// It, or the stand-in.
    type Type;
}

impl<T> Ask for Asked<T, true> {
    type Type = T;
}

impl<T> Ask for Asked<T, false> {
    type Type = Unclear;
}

impl StepInput for Unclear {
    const SPEC: InputSpec = UNCLEAR;
    type Item<'a> = Self;

    fn fill(_: Slot<'_>) -> Result<Self, StepError> {
        Ok(Self)
    }
}

impl StepOutput for Unclear {
    const SPEC: OutputSpec = UNCLEAR_OUTPUT;
    type Events = Self;

    fn emit(self, _: &mut Emitted) -> Result<(), StepError> {
        Ok(())
    }
}

/// The events of a return type `T`; a stand-in where `T` is no output.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsOutput<T, const IS_OUTPUT: bool>(PhantomData<T>);

/// What a return type says on the level of types.
#[doc(hidden)]
pub trait Ending {
    /// The event types.
    type Events;
}

impl<T: StepOutput> Ending for AsOutput<T, true> {
    type Events = T::Events;
}

impl<T> Ending for AsOutput<T, false> {
    type Events = Unclear;
}

/// The member of an event set, of type `T`; a stand-in where `T` is no member.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsMember<T, const IS_MEMBER: bool>(PhantomData<T>);

/// What a set declares for one member.
#[doc(hidden)]
pub trait Declared {
    /// Its event type.
    const TYPE: EventType;

    /// Its event on the level of types.
    type Events;
}

impl<T: SetMember> Declared for AsMember<T, true> {
    const TYPE: EventType = <T::Event as Event>::TYPE;
    type Events = One<T::Event>;
}

impl<T> Declared for AsMember<T, false> {
    const TYPE: EventType = EventType {
        name: "",
        roles: Roles::NONE,
        version: 1,
        upgrade: None,
        type_id: TypeId::of::<()>(),
        type_name: std::any::type_name::<()>,
        decode: |_, _| Err(serde::ser::Error::custom("no event")),
    };
    type Events = Nothing;
}

/// Type level: whether an event ends the run cannot be told, because its type is unusable.
#[doc(hidden)]
#[derive(Debug)]
pub struct Unclear;

impl<Found: OrStop<Unclear>> FindStop<Found> for Unclear {
    type Found = Found::Either;
}

impl<E> OrStop<Unclear> for IsStop<E> {
    type Either = Self;
}

impl OrStop<NotStop> for Unclear {
    type Either = Self;
}

impl OrStop<Unclear> for Unclear {
    type Either = Self;
}

impl<E> OrStop<IsStop<E>> for Unclear {
    type Either = IsStop<E>;
}

impl OnlyStop for Unclear {
    type Event = Self;
}

impl FromEvent for Unclear {
    fn from_event(_: &AnyEvent) -> Option<Self> {
        None
    }
}

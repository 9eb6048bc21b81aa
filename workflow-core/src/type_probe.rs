//! Lets generated code ask whether a type may stand where it is used.
//!
//! The compiler should report an unusable type once, where a call needs it. Everything else must still
//! compile, so that the table exists and the other mistakes are reported too. So for an unusable type this
//! module supplies stand-ins.
//!
//! How it works: `Probe::<T>::X` resolves to an inherent constant if `T` implements the needed trait.
//! Otherwise it resolves to the constant of [`Unusable`], which generated code brings into scope.

use std::any::TypeId;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use crate::error::StepError;
use crate::event::{AnyEvent, Event, EventType, FromEvent, IsStop, NotStop, Roles, Serialisable, SetMember};
use crate::input::{Pattern, Slot, Slots, StepInput};
use crate::output::{Emitted, FindStop, Nothing, One, OnlyStop, OrStop, StepOutput};
use crate::spec::{InputSpec, OutputSpec, TableSpec};
use crate::workflow::{StepFuture, Workflow};

/// Answers `Probe::<T>::IS_OUTPUT` and similar questions: by inherent constants if `T` implements the trait,
/// else by those of [`Unusable`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Probe<T>(PhantomData<T>);

impl<T: StepOutput> Probe<T> {
    /// `T` can be a return type.
    pub const IS_OUTPUT: bool = true;
    /// The declaration of `T`.
    pub const OUTPUT: OutputSpec = T::SPEC;
}

impl<E: Derived> Probe<E> {
    /// Whether its derive has made it an event.
    pub const DERIVED: Option<bool> = Some(E::IS_EVENT);
}

impl<T: StepOutput> Probe<T> {
    /// Puts what a step returned into its batch.
    ///
    /// # Errors
    /// What the step returned instead of events.
    #[inline]
    pub fn emit(returned: T, emitted: &mut Emitted) -> Result<(), StepError> {
        returned.emit(emitted)
    }
}

impl<T: SetMember> Probe<T> {
    /// `T` can be a member of an event set.
    pub const IS_MEMBER: bool = true;
}

impl<W: Workflow> Probe<W> {
    /// The table of the workflow.
    pub const TABLE: &'static TableSpec = W::TABLE;
    /// The event types that the workflow's output can hold.
    pub const OUTPUT_EVENTS: &'static [EventType] = <W::Output as FromEvent>::MEMBERS;
}

/// The answers for a type that cannot stand where it is used.
#[doc(hidden)]
pub trait Unusable: Sized {
    /// The type in question.
    type Type;

    /// It has no derive that would report why.
    const DERIVED: Option<bool> = None;
    /// It cannot be a parameter.
    const IS_INPUT: bool = false;
    /// It cannot be a return type.
    const IS_OUTPUT: bool = false;
    /// The type cannot be a member of an event set.
    const IS_MEMBER: bool = false;
    /// The members of the output are unknown.
    const OUTPUT_EVENTS: &'static [EventType] = &[];

    /// The declaration of the parameter is unknown.
    const INPUT: InputSpec = UNKNOWN_INPUT;
    /// The declaration of the output is unknown.
    const OUTPUT: OutputSpec = UNKNOWN_OUTPUT;

    /// Never called: the workflow does not compile.
    fn fill(_: &mut Slots<'_>) -> Result<Self::Type, StepError> {
        unreachable!("a workflow with an unusable parameter does not compile")
    }

    /// Never called: the workflow does not compile.
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

impl<T> Unusable for Probe<T> {
    type Type = T;
}

/// Declares and fills a parameter of type `P`. [`Unusable`] has stand-ins for a type that is no input.
#[doc(hidden)]
#[derive(Debug)]
pub struct Fill<P>(PhantomData<P>);

impl<P: StepInput> Fill<P> {
    /// It can be a parameter.
    pub const IS_INPUT: bool = true;
    /// What it declares.
    pub const INPUT: InputSpec = P::SPEC;

    /// Fills the parameter of the function.
    ///
    /// # Errors
    /// The error of [`StepInput::fill`].
    pub fn fill<'a>(slots: &mut Slots<'a>) -> Result<P::Item<'a>, StepError> {
        P::fill(slots.take())
    }
}

impl<P> Unusable for Fill<P> {
    type Type = P;
}

/// The declaration of an unknown parameter: an injected one without a name.
#[doc(hidden)]
pub const UNKNOWN_INPUT: InputSpec = InputSpec::injected("");

/// The declaration of an unknown output: an empty tuple, which no type declares.
#[doc(hidden)]
pub const UNKNOWN_OUTPUT: OutputSpec = OutputSpec::All(&[]);

/// Fills a parameter of type `P` that is taken by value. If the log cannot give it by value, [`Unusable`] gives
/// a stand-in.
#[doc(hidden)]
#[derive(Debug)]
pub struct Owned<P>(PhantomData<P>);

impl<P: Pattern + FromEvent> Owned<P> {
    /// Fills the parameter of the function.
    ///
    /// # Errors
    /// If the slot has no matching event.
    pub fn owned(slot: &Slot<'_>) -> Result<P, StepError> {
        P::from_event(slot.event()?).ok_or_else(|| slot.mismatch())
    }
}

impl<P> Unusable for Owned<P> {
    type Type = P;
}

/// Boxes the futures of a workflow `W`. If threads cannot share `W`, which another message reports,
/// [`Unusable`] accepts futures that threads cannot share either.
#[doc(hidden)]
#[derive(Debug)]
pub struct Launch<W>(PhantomData<W>);

impl<W: Send + Sync> Launch<W> {
    /// Boxes a step, a precondition or a compaction.
    pub fn ask<F>(future: F) -> Pin<Box<F>> {
        Box::pin(future)
    }
}

impl<W> Unusable for Launch<W> {
    type Type = W;
}

/// The result of calling a step that the workflow does not have.
#[doc(hidden)]
pub fn absent() -> StepFuture {
    Box::pin(std::future::ready(Err(crate::workflow::no_such_row())))
}

/// A stand-in for calling a step that cannot be called.
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

/// Whether generated code asks the compiler here for the traits that a type lacks, so that each type is reported once.
/// The derive of a type has reported what it lacks. A type without a derive is reported where it is named first.
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
    const SPEC: InputSpec = UNKNOWN_INPUT;
    type Item<'a> = Self;

    fn fill(_: Slot<'_>) -> Result<Self, StepError> {
        Ok(Self)
    }
}

impl StepOutput for Unclear {
    const SPEC: OutputSpec = UNKNOWN_OUTPUT;
    type Events = Self;

    fn emit(self, _: &mut Emitted) -> Result<(), StepError> {
        Ok(())
    }
}

/// The events of a return type `T`; a stand-in where `T` is no output.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsOutput<T, const IS_OUTPUT: bool>(PhantomData<T>);

/// The event types of an output, at type level.
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

/// The event of a set's member of type `T`. A stand-in if `T` is no member.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsMember<T, const IS_MEMBER: bool>(PhantomData<T>);

/// The declaration of one member of a set.
#[doc(hidden)]
pub trait Declared {
    /// The event type of the member.
    const TYPE: EventType;

    /// The event of the member, at type level.
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
        json: crate::event::JsonForm::NONE,
    };
    type Events = Nothing;
}

/// At type level: an unusable type, of which nothing says whether it ends the run.
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

//! Lets generated code ask whether a type can stand where it is used, so that a type that cannot is reported
//! once, where the table names it, and nowhere else.

use std::any::TypeId;
use std::marker::PhantomData;

use crate::error::StepError;
use crate::event::{AnyEvent, Event, EventType, FromEvent, IsStop, NotStop, Roles, SetMember};
use crate::input::{InputSpec, Slot, StepInput};
use crate::output::{Emitted, FindStop, Nothing, One, OnlyStop, OrStop, OutputSpec, StepOutput};

/// `Kind::<T>::IS_INPUT` and its like are answered by the inherent constants if `T` implements the trait, and
/// by those of [`Unusable`], which must be in scope, if it does not.
#[doc(hidden)]
#[derive(Debug)]
pub struct Kind<T>(PhantomData<T>);

impl<T: StepInput> Kind<T> {
    /// It can be a parameter.
    pub const IS_INPUT: bool = true;
}

impl<T: StepOutput> Kind<T> {
    /// It can be a return type.
    pub const IS_OUTPUT: bool = true;
}

impl<T: SetMember> Kind<T> {
    /// It can be a member of an event set.
    pub const IS_MEMBER: bool = true;
}

/// The answers for a type that cannot stand where it is used.
#[doc(hidden)]
pub trait Unusable {
    /// It cannot be a parameter.
    const IS_INPUT: bool = false;
    /// It cannot be a return type.
    const IS_OUTPUT: bool = false;
    /// It cannot be a member of an event set.
    const IS_MEMBER: bool = false;
}

impl<T> Unusable for Kind<T> {}

/// A parameter of type `P`; a stand-in that is never called where `P` is no input.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsInput<P, const IS_INPUT: bool>(PhantomData<P>);

impl<P: StepInput> StepInput for AsInput<P, true> {
    const SPEC: InputSpec = P::SPEC;
    type Held = P::Held;
    type Item<'a> = P::Item<'a>;

    fn bind(slot: Slot<'_>) -> Result<Self::Held, StepError> {
        P::bind(slot)
    }

    fn item(held: &mut Self::Held) -> Self::Item<'_> {
        P::item(held)
    }
}

impl<P> StepInput for AsInput<P, false> {
    const SPEC: InputSpec = InputSpec::injected("");
    type Held = ();
    type Item<'a> = P;

    fn bind(_: Slot<'_>) -> Result<(), StepError> {
        Ok(())
    }

    fn item((): &mut ()) -> P {
        unreachable!("a workflow with an unusable parameter does not compile")
    }
}

/// A return value of type `T`; a stand-in that emits nothing where `T` is no output.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsOutput<T, const IS_OUTPUT: bool>(pub T);

impl<T: StepOutput> StepOutput for AsOutput<T, true> {
    const SPEC: OutputSpec = T::SPEC;
    type Events = T::Events;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        self.0.emit(emitted)
    }
}

impl<T> StepOutput for AsOutput<T, false> {
    const SPEC: OutputSpec = OutputSpec::Nothing;
    type Events = Unclear;

    fn emit(self, _: &mut Emitted) -> Result<(), StepError> {
        Ok(())
    }
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
        type_id: TypeId::of::<()>(),
        type_name: std::any::type_name::<()>,
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

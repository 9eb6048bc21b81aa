//! Lets generated code ask whether a type can stand where it is used, so that a type that cannot is reported
//! once, where the table names it, and nowhere else.

use std::any::TypeId;
use std::marker::PhantomData;

use crate::error::StepError;
use crate::event::{AnyEvent, Event, EventType, FromEvent, IsStop, NotStop, Roles, SetMember};
use crate::input::{Slot, StepCall, StepInput};
use crate::output::{Emitted, FindStop, Nothing, One, OnlyStop, OrStop, StepOutput};

/// `Kind::<T>::IS_OUTPUT` and its like are answered by the inherent constants if `T` implements the trait, and
/// by those of [`Unusable`], which must be in scope, if it does not.
#[doc(hidden)]
#[derive(Debug)]
pub struct Kind<T>(PhantomData<T>);

impl<T: StepOutput> Kind<T> {
    /// It can be a return type.
    pub const IS_OUTPUT: bool = true;
}

impl<T: SetMember> Kind<T> {
    /// It can be a member of an event set.
    pub const IS_MEMBER: bool = true;
}

impl<T: FromEvent> Kind<T> {
    /// The event types that it can be made of.
    pub const MEMBERS: &'static [EventType] = T::MEMBERS;
}

/// The answers for a type that cannot stand where it is used.
#[doc(hidden)]
pub trait Unusable: Sized {
    /// The type.
    type Type;

    /// It cannot be a return type.
    const IS_OUTPUT: bool = false;
    /// It cannot be a member of an event set.
    const IS_MEMBER: bool = false;
    /// Nothing is known of what it is made of.
    const MEMBERS: &'static [EventType] = &[];

    /// It cannot be bound.
    ///
    /// # Errors
    /// None.
    fn bind(_: Slot<'_>) -> Result<(), StepError> {
        Ok(())
    }

    /// It is never called for.
    fn item((): &mut ()) -> Self::Type {
        unreachable!("a workflow with an unusable parameter does not compile")
    }

    /// It cannot be committed.
    ///
    /// # Errors
    /// None.
    fn commit(self, _: &mut StepCall) -> Result<Emitted, StepError> {
        Ok(Emitted::default())
    }
}

impl<T> Unusable for Kind<T> {
    type Type = T;
}

/// Fills a parameter of type `P`. If it is no input, [`Unusable`] gives a stand-in that is never asked for.
#[doc(hidden)]
#[derive(Debug)]
pub struct Fill<P>(PhantomData<P>);

impl<P: StepInput> Fill<P> {
    /// Binds it.
    pub fn bind(slot: Slot<'_>) -> Result<P::Held, StepError> {
        P::bind(slot)
    }

    /// What the function is given.
    pub fn item(held: &mut P::Held) -> P::Item<'_> {
        P::item(held)
    }
}

impl<P> Unusable for Fill<P> {
    type Type = P;
}

/// What a step returned. If it is no output, [`Unusable`] commits nothing.
#[doc(hidden)]
#[derive(Debug)]
pub struct Returned<T>(pub T);

impl<T: StepOutput> Returned<T> {
    /// Ends the call with it.
    pub fn commit(self, call: &mut StepCall) -> Result<Emitted, StepError> {
        call.commit(self.0)
    }
}

impl<T> Unusable for Returned<T> {
    type Type = T;
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

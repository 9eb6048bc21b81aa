//! Compile-time warnings (S10): deprecated functions that exist for some kinds of parameter only.

use std::marker::PhantomData;

use crate::event::Pattern;
use crate::input::List;

/// Asked for each parameter of a step without a precondition; the kinds that may run a step again answer
/// with a warning.
#[derive(Debug)]
pub struct Rerun<P>(PhantomData<P>);

impl<T> Rerun<Option<T>> {
    /// Warns.
    #[deprecated(
        note = "an optional input without a precondition may run its step twice, once without and once with the event: add `precondition = …`, or `reruns` if that is meant"
    )]
    pub const fn check() {}
}

impl<P: Pattern> Rerun<List<P>> {
    /// Warns.
    #[deprecated(
        note = "a list input without a precondition runs its step for every arrival: add `precondition = …` that says when the list is complete, or `reruns` if that is meant"
    )]
    pub const fn check() {}
}

impl<P: Pattern> Rerun<&List<P>> {
    /// Warns.
    #[deprecated(
        note = "a list input without a precondition runs its step for every arrival: add `precondition = …` that says when the list is complete, or `reruns` if that is meant"
    )]
    pub const fn check() {}
}

/// Every other kind of parameter says nothing.
pub trait Quiet {
    /// Says nothing.
    fn check() {}
}

impl<P> Quiet for Rerun<P> {}

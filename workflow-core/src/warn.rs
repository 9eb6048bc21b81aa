//! Compile-time warnings: deprecated functions that exist for some types only. Generated code calls one for
//! each parameter of a step that has neither a precondition nor `reruns` (S10), and one for the workflow.

use std::marker::PhantomData;

use crate::input::{EventInput, List, Pattern};

/// A parameter of a step. Inherent functions come before those of a trait, so that the kinds of parameter
/// that may run a step again answer with a warning, and all others with [`Quiet`].
#[derive(Debug)]
pub struct Rerun<P>(PhantomData<P>);

/// Every optional input, whatever it is an option of: an optional list gets this warning and no other.
impl<T: EventInput> Rerun<Option<T>> {
    /// Warns.
    #[deprecated(
        note = "an optional input may run its step twice, once without the event and once when it arrives: write `#[step(precondition = …)]` to say when it may run, or `#[step(reruns)]` if that is meant"
    )]
    pub const fn check() {}
}

impl<P: Pattern> Rerun<List<P>> {
    /// Warns.
    #[deprecated(
        note = "a list input runs its step for every arrival, each time with a longer list: write `#[step(precondition = …)]` to say when the list is complete, or `#[step(reruns)]` if that is meant"
    )]
    pub const fn check() {}
}

impl<P: Pattern> Rerun<&List<P>> {
    /// Warns.
    #[deprecated(
        note = "a list input runs its step for every arrival, each time with a longer list: write `#[step(precondition = …)]` to say when the list is complete, or `#[step(reruns)]` if that is meant"
    )]
    pub const fn check() {}
}

/// Every other kind of parameter says nothing: a fixed list and a gather fire once, and that a step runs
/// again when an event that it requires arrives again is what requiring it means.
pub trait Quiet {
    /// Says nothing.
    fn check() {}
}

impl<P> Quiet for Rerun<P> {}

/// A workflow, by whether the compiler has checked its graph.
#[derive(Debug)]
pub struct Size<const CHECKED: bool>;

impl Size<false> {
    /// Warns.
    #[deprecated(
        note = "the workflow has more than 512 steps, 1,024 parameters or outputs, or 128 fan-outs, so the compiler does not check its graph: it is checked when an engine is built; make several workflows of it to have it checked here"
    )]
    pub const fn check() {}
}

impl<const CHECKED: bool> Quiet for Size<CHECKED> {}

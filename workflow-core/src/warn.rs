//! Compile-time warnings, as deprecated functions that exist for some types only. Generated code calls one
//! per parameter of a step with neither a precondition nor `reruns` (S10), and one per workflow.

use std::marker::PhantomData;

use crate::input::{EventInput, List, Pattern};

/// A parameter of a step. Inherent functions take precedence over those of a trait. So the kinds of parameter
/// that may run a step again answer with a warning, and all others with [`Quiet`].
#[derive(Debug)]
pub struct Rerun<P>(PhantomData<P>);

/// Every optional input, of whatever kind: an optional list gets this warning and not the one for lists.
impl<T: EventInput> Rerun<Option<T>> {
    /// Warns about an optional input.
    #[deprecated(
        note = "an optional input may run its step twice, once without the event and once when it arrives: write `#[step(precondition = …)]` to say when it may run, or `#[step(reruns)]` if that is meant"
    )]
    pub const fn check() {}
}

impl<P: Pattern> Rerun<List<P>> {
    /// Warns about a list.
    #[deprecated(
        note = "a list input runs its step for every arrival, each time with a longer list: write `#[step(precondition = …)]` to say when the list is complete, or `#[step(reruns)]` if that is meant"
    )]
    pub const fn check() {}
}

impl<P: Pattern> Rerun<&List<P>> {
    /// Warns about a borrowed list.
    #[deprecated(
        note = "a list input runs its step for every arrival, each time with a longer list: write `#[step(precondition = …)]` to say when the list is complete, or `#[step(reruns)]` if that is meant"
    )]
    pub const fn check() {}
}

/// The answer of all other kinds of parameter: no warning. A fixed list and a gather trigger once. For a
/// required input, running again at the next event is the expected behaviour.
pub trait Quiet {
    /// Does not warn.
    fn check() {}
}

impl<P> Quiet for Rerun<P> {}

/// A workflow, by whether the compiler has checked its graph.
#[derive(Debug)]
pub struct Size<const CHECKED: bool>;

impl Size<false> {
    /// Warns about a graph that is too large to check.
    #[deprecated(
        note = "the workflow has more than 512 steps, 1,024 parameters or outputs, or 128 fan-outs, so the compiler does not check its graph: it is checked when an engine is built; make several workflows of it to have it checked here"
    )]
    pub const fn check() {}
}

impl<const CHECKED: bool> Quiet for Size<CHECKED> {}

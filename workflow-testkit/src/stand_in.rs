//! Functions that stand in for steps. Their types declare their inputs, as in steps.

use std::future::Future;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_core::signature::{Emitted, Slot, StepCall};
use workflow_core::{StepError, StepInput, StepOutput};

mod shape;
mod signature;

pub(crate) use signature::{Misfit, Signature, fits_output, no_such_step, place, step};

/// The result of a step's call.
pub(crate) type Answer = BoxFuture<'static, Result<Emitted, StepError>>;

/// A function that can stand in for a step: see [`ScenarioOf::replace`](crate::ScenarioOf::replace).
///
/// Implemented for closures and functions with up to four parameters. Each parameter can be one of a step, and the
/// return type is one of a step, or a future of one that borrows nothing. A closure must name the types of its
/// parameters. The compiler infers `Types`; users implement nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand in for a step",
    label = "not a function of parameters and an output that a step could have",
    note = "take up to four parameters and name their types, as in `|question: &Question| …`: events as `&E`, `E`, `Arc<E>`, `Option<…>` of these, `&List<E>`, `&Gather<E>`, `&Reply<R>`, or injectables",
    note = "return what a step can return, or an `async move` block that owns all it needs"
)]
pub trait StandIn<Types>: Send + Sync + 'static {
    #[doc(hidden)]
    fn signature() -> Signature;

    /// Answers a call; the `n`-th parameter is in the call's slot `places[n]`.
    #[doc(hidden)]
    fn answer(&self, call: StepCall, places: &[usize]) -> Answer;
}

/// Marks stand-ins that return a future.
#[doc(hidden)]
#[derive(Debug)]
pub enum Asynchronous {}

macro_rules! stand_in {
    ($($input:ident $name:ident $at:literal),*) => {
        impl<F, T, $($input),*> StandIn<fn($($input),*) -> T> for F
        where
            F: Fn($($input),*) -> T + for<'a> Fn($($input::Item<'a>),*) -> T + Send + Sync + 'static,
            $($input: StepInput,)*
            T: StepOutput,
        {
            fn signature() -> Signature {
                Signature { inputs: vec![$($input::SPEC),*], output: T::SPEC }
            }

            fn answer(&self, call: StepCall, places: &[usize]) -> Answer {
                fn ask<$($input,)* T>(function: impl Fn($($input),*) -> T, $($name: $input),*) -> T {
                    function($($name),*)
                }
                let answer = answered(call, places, |slots| {
                    // A stand-in without parameters takes nothing from them.
                    let _ = &slots;
                    $(let $name = $input::fill(slots.take($at)?)?;)*
                    Ok(ask(self, $($name),*))
                });
                std::future::ready(answer.and_then(|(call, output)| call.commit(output))).boxed()
            }
        }

        impl<F, T, $($input),*> StandIn<(Asynchronous, fn($($input),*) -> T)> for F
        where
            F: Fn($($input),*) -> T + for<'a> Fn($($input::Item<'a>),*) -> T + Send + Sync + 'static,
            $($input: StepInput,)*
            T: Future<Output: StepOutput> + Send + 'static,
        {
            fn signature() -> Signature {
                Signature { inputs: vec![$($input::SPEC),*], output: <T::Output as StepOutput>::SPEC }
            }

            fn answer(&self, call: StepCall, places: &[usize]) -> Answer {
                fn ask<$($input,)* T>(function: impl Fn($($input),*) -> T, $($name: $input),*) -> T {
                    function($($name),*)
                }
                let answer = answered(call, places, |slots| {
                    // A stand-in without parameters takes nothing from them.
                    let _ = &slots;
                    $(let $name = $input::fill(slots.take($at)?)?;)*
                    Ok(ask(self, $($name),*))
                });
                async move {
                    let (call, output) = answer?;
                    call.commit(output.await)
                }
                .boxed()
            }
        }
    };
}

stand_in!();
stand_in!(A a 0);
stand_in!(A a 0, B b 1);
stand_in!(A a 0, B b 1, C c 2);
stand_in!(A a 0, B b 1, C c 2, D d 3);

/// Calls a stand-in, whose parameters borrow from the call, and returns the call with the result.
fn answered<T>(
    mut call: StepCall,
    places: &[usize],
    ask: impl FnOnce(&mut Places<'_>) -> Result<T, StepError>,
) -> Result<(StepCall, T), StepError> {
    let mut slots = Places { slots: call.slots().map(Some).collect(), places };
    let output = ask(&mut slots)?;
    drop(slots);
    Ok((call, output))
}

/// The slots of a call in the order of a stand-in's parameters.
struct Places<'a> {
    slots: Vec<Option<Slot<'a>>>,
    places: &'a [usize],
}

impl<'a> Places<'a> {
    fn take(&mut self, parameter: usize) -> Result<Slot<'a>, StepError> {
        let slot = self.slots.get_mut(self.places[parameter]).and_then(Option::take);
        slot.ok_or_else(|| StepError::permanent("the stand-in takes a parameter that its call does not have"))
    }
}

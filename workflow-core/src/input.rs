//! Step parameters: how they are declared and filled. The module owns the trait [`StepInput`] and decides
//! which type of parameter is of which kind, in the constant `SPEC` of each; `StepFailed` and `Children` do so where they
//! are, and the derive for an event by value. Other modules see the [`InputSpec`] that each parameter declares, with its
//! [`InputKind`](crate::spec::InputKind), and no types.

use crate::error::StepError;
use crate::spec::InputSpec;

mod call;
mod emitter;
mod expired;
mod gather;
mod injected;
mod list;
mod passive;
mod pattern;
mod reply;
mod services;
mod single;

pub use call::{CallWatch, Injectables, InputValue, JsonBranch, Slot, Slots, StepCall};
pub use emitter::{EmitError, Emitter};
pub use expired::Expired;
pub use gather::{Branch, Gather, GatherItem};
pub use injected::RunInfo;
pub use list::{FixedList, List, ListIter};
pub use passive::Passive;
pub use pattern::{EventSet, Pattern};
pub use reply::Reply;
pub use single::{borrow_set, one_input};

pub(crate) use call::{CallContext, SlotValue, SlotValues};
pub(crate) use injected::{Bound, binding_text};
pub(crate) use list::{LogEntry, Prefix};
pub(crate) use services::{RunServices, StartedChildren};

/// One parameter of a step or precondition: declares its needs and fills itself.
///
/// The type of a parameter determines its kind, never its name. So type aliases and renamed imports work.
/// These types implement the trait:
///
/// | parameter | meaning | counts for readiness |
/// |---|---|---|
/// | `&E` | the event, borrowed from the log: no copy | yes |
/// | `Arc<E>` | the event, shared: no copy | yes |
/// | `E` | a clone of the event; `E: Clone` | yes |
/// | `Option<…>` of any of these, of lists and of replies | the same, or `None` while there is none | no |
/// | [`List<E>`], `&List<E>` | every event of the type so far; taking it costs O(1) | at least one |
/// | [`FixedList<E, N>`](FixedList), `&FixedList<E, N>` | exactly the first `N` | `N` of them |
/// | an [`EventSet`](crate::EventSet) enum wherever `E` stands | any of its members | any of them |
/// | [`Reply<R>`], `&Reply<R>` | the reply to request `R`, with that very request | yes |
/// | [`StepFailed`](crate::StepFailed) wherever an event stands | a step that this one catches failed | as the event |
/// | [`Expired<R>`], `&Expired<R>` | request `R`, which expired without a reply | yes |
/// | [`Gather<E>`], `&Gather<E>` | the settled branches of a fan-out | yes |
/// | [`Passive<&E>`](Passive), [`Passive<List<E>>`](Passive) | the latest event, or every event so far, when another input triggers | no, and never triggers |
/// | [`Emitter<E>`], `&Emitter<E>` | sends events that enter the log with the step's commit | injected |
/// | [`RunContext`](crate::RunContext), [`ThreadContext`](crate::ThreadContext), [`Config<C>`](crate::Config), [`Display`](crate::Display), [`Children`](crate::Children), [`Cancellation`](crate::Cancellation), [`RunInfo`], [`Engine`](crate::Engine), each also by reference | | injected |
///
/// # Your own injectables
/// Implement the trait for a type that your steps need. An injected parameter never triggers a step, and no
/// step waits for it.
///
/// ```
/// use workflow_core::{prelude::*, StepInput};
/// use workflow_core::signature::{InputSpec, Slot};
///
/// /// A log line prefix that names the run and the step.
/// struct Prefix(String);
///
/// impl StepInput for &Prefix {
///     const SPEC: InputSpec = InputSpec::injected("Prefix");
///     type Item<'a> = &'a Prefix;
///
///     fn fill(slot: Slot<'_>) -> Result<&Prefix, StepError> {
///         let info = slot.run_info();
///         let prefix = Prefix(format!("{}/{}", info.run(), info.step()));
///         Ok(slot.keep(prefix))
///     }
/// }
/// ```
///
/// # Contract
/// The library calls `fill` once per execution and parameter, in the execution's own task, before the step's
/// body and in the order of the parameters. `fill` must not block. Its error fails the execution like an
/// error of the step.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a step",
    label = "not something that a step can be given",
    note = "take an event as `&E`, `E`, `Arc<E>`, `Option<…>` of these, `List<E>`, `FixedList<E, N>`, `Reply<R>`, `Gather<E>`, `Gather<E, Item>`, `Passive<&E>` or `Passive<List<E>>`, where `E` derives `Event` (and is not display only) or `EventSet`",
    note = "or an injectable: `&RunContext`, `&ThreadContext`, `&Display`, `&Children`, `&Cancellation`, `&RunInfo`, `&Engine`, `&Config<C>` where `C` derives `Deserialize`, `&Emitter<E>` where `E` is an event as above, or your own type that implements `StepInput`"
)]
pub trait StepInput: Sized {
    /// The declaration of the parameter, as the table shows it.
    const SPEC: InputSpec;

    /// The parameter itself. Its lifetime is that of the event in its slot, or of a value that the slot
    /// [keeps](Slot::keep).
    type Item<'a>;

    /// Makes the parameter from the contents of its slot.
    ///
    /// # Errors
    /// Any reason why the parameter cannot be filled. The execution fails with this error.
    fn fill(slot: Slot<'_>) -> Result<Self::Item<'_>, StepError>;
}

/// A parameter that takes events, so that `Option` may wrap it.
#[diagnostic::on_unimplemented(
    message = "`Option<{Self}>` cannot be a parameter of a step",
    label = "only event inputs can be optional",
    note = "injectables are always there: take them without `Option`"
)]
pub trait EventInput: StepInput {
    #[doc(hidden)]
    fn fill_optional(slot: Slot<'_>) -> Result<Option<Self::Item<'_>>, StepError> {
        if slot.is_empty() { Ok(None) } else { Self::fill(slot).map(Some) }
    }
}

impl<T: EventInput> StepInput for Option<T> {
    const SPEC: InputSpec = T::SPEC.optional();
    type Item<'a> = Option<T::Item<'a>>;

    fn fill(slot: Slot<'_>) -> Result<Option<T::Item<'_>>, StepError> {
        T::fill_optional(slot)
    }
}

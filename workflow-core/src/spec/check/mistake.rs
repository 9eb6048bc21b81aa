//! Mistakes in a graph as data. Their names borrow from the graph.
//!
//! ```text
//!  rules, output_rules, whole ─▶ Mistake ─┬─ text ─▶ message of the compiler
//!                                         └─ from ─▶ TableProblem, with names of its own
//! ```
//!
//! Invariant: a mistake has every fact of its message, so the graph may be gone when the message is made.
//!
//! Example: `ship(&Paid)`, and no step emits `Paid`: `NothingProduces { step: "ship", events: [Paid], similar: [] }`.

use super::messages;
use super::names::Names;
use super::text::Text;

/// One mistake at one place of a graph. The module [`messages`] has the message of each variant.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "nothing can be boxed in constant evaluation")]
pub(crate) enum Mistake<'n> {
    /// A parameter takes an event that ends the run.
    /// `stray`: it gathers, and no fan-out ends with it.
    StopTaken { step: &'n str, event: &'n str, stray: bool },
    /// A step names steps in `catches`, and has no parameter that takes failures.
    CatchesWithoutInput { step: &'n str },
    /// A parameter takes failures, and there is no step whose failure it could take.
    NothingToCatch { step: &'n str, event: &'n str },
    /// A clean-up step takes failures or has `catches`.
    CleanUpCatches { step: &'n str },
    /// A step names a clean-up step in `catches`.
    CatchesCleanUp { step: &'n str, caught: &'n str },
    /// A clean-up step emits an event.
    CleanUpEmits { step: &'n str, event: &'n str },
    /// A clean-up step requires events that only branches have.
    CleanUpInBranch { step: &'n str, events: Names<'n> },
    /// A step emits the failure event, which only the library may emit.
    FailureEmitted { step: &'n str, event: &'n str },
    /// A gather names the failure event, which branches keep to themselves.
    /// `stray`: no fan-out ends with it.
    FailuresGathered { step: &'n str, event: &'n str, stray: bool },
    /// A parameter is a fixed list of length 0.
    EmptyFixedList { step: &'n str },
    /// A passive parameter takes failures, or takes its events neither one at a time nor as a list.
    UnfitPassive { step: &'n str, events: Names<'n> },
    /// A step takes an event that it emits, without `#[step(loops)]`.
    TakesItsOwn { step: &'n str, event: &'n str },
    /// A required parameter takes events that no step emits and that cannot come from outside. `similar` has
    /// names of produced events that may have been meant.
    NothingProduces { step: &'n str, events: Names<'n>, similar: Names<'n> },
    /// A parameter is the reply to a request that no step emits.
    NoRequest { step: &'n str, request: &'n str },
    /// A gather names an event that no branch of the fan-outs that it takes can have. `item` is the item that it
    /// names, or empty, and `items` has the items of all fan-outs.
    GatherFitsNothing { step: &'n str, event: &'n str, item: &'n str, items: Names<'n> },
    /// A gather names no item, and fits fan-outs with these items.
    AmbiguousGather { step: &'n str, event: &'n str, items: Names<'n> },
    /// A step has no parameter that takes events. `such_as` is a start event for the example, or empty.
    NoEventInput { step: &'n str, such_as: &'n str },
    /// A step waits for an event of `emitter`, which waits for this step in turn.
    Unreachable { step: &'n str, event: &'n str, emitter: &'n str },
    /// All parameters of a step are optional, and none of their events can occur.
    NeverTriggered { step: &'n str },
    /// A parameter of a precondition is not among the inputs of its step. `instead` is the input that takes
    /// the same event in another form, or empty.
    PreconditionInput { step: &'n str, precondition: &'n str, parameter: Text, instead: Text },
    /// The branches of a fan-out end neither in a gather nor in a stop.
    FanOutNeverEnds { step: &'n str, item: &'n str },
    /// A fixed list of `count` events, of which a run has at most `most`.
    ListCapacity { step: &'n str, events: Names<'n>, count: u32, most: u64 },
    /// A step requires events of branches that do not see each other.
    DisjointBranches { step: &'n str, events: Names<'n> },
    /// A step requires events that follow from different start events.
    DisjointStarts { step: &'n str, events: Names<'n> },
    /// A step emits a stop event that the declared output cannot hold.
    UnexpectedStop { step: &'n str, event: &'n str, expected: Names<'n> },
    /// The declared output names no stop event.
    OutputEndsNothing { events: Names<'n> },
    /// No step takes a start event.
    NoStart,
    /// No stop event can occur.
    NoStop,
    /// These steps trigger each other for ever. Stands at the first of them.
    EndlessLoop { steps: Names<'n> },
}

impl Mistake<'_> {
    /// Whether the scheduler cannot work with the table, so that even unchecked tables are refused.
    ///
    /// These are a step that nothing triggers, a list or a precondition that cannot be bound, and a gather or a
    /// fan-out without the other. The scheduler works with any other mistake, but runs may stall or never end.
    pub(crate) const fn is_of_scheduler(&self) -> bool {
        matches!(
            self,
            Self::NoEventInput { .. }
                | Self::EmptyFixedList { .. }
                | Self::UnfitPassive { .. }
                | Self::PreconditionInput { .. }
                | Self::GatherFitsNothing { .. }
                | Self::AmbiguousGather { .. }
                | Self::FailuresGathered { stray: true, .. }
                | Self::StopTaken { stray: true, .. }
                | Self::FanOutNeverEnds { .. }
                | Self::CleanUpCatches { .. }
                | Self::CatchesCleanUp { .. }
                | Self::CleanUpEmits { .. }
        )
    }

    /// The message, made in constant evaluation.
    pub(crate) const fn text(&self) -> Text {
        match self {
            Self::StopTaken { step, event, .. } => messages::stop_taken(step, event),
            Self::CatchesWithoutInput { step } => messages::catches_without_input(step),
            Self::NothingToCatch { step, event } => messages::nothing_to_catch(step, event),
            Self::CleanUpCatches { step } => messages::clean_up_catches(step),
            Self::CatchesCleanUp { step, caught } => messages::catches_clean_up(step, caught),
            Self::CleanUpEmits { step, event } => messages::clean_up_emits(step, event),
            Self::CleanUpInBranch { step, events } => messages::clean_up_in_branch(step, events),
            Self::FailureEmitted { step, event } => messages::failure_emitted(step, event),
            Self::FailuresGathered { step, event, .. } => messages::failures_gathered(step, event),
            Self::EmptyFixedList { step } => messages::empty_fixed_list(step),
            Self::UnfitPassive { step, events } => messages::unfit_passive(step, events),
            Self::TakesItsOwn { step, event } => messages::takes_its_own(step, event),
            Self::NothingProduces { step, events, similar } => {
                messages::nothing_produces(step, events, similar)
            }
            Self::NoRequest { step, request } => messages::no_request(step, request),
            Self::GatherFitsNothing { step, event, item, items } => {
                messages::gather_fits_nothing(step, event, item, items)
            }
            Self::AmbiguousGather { step, event, items } => messages::ambiguous_gather(step, event, items),
            Self::NoEventInput { step, such_as } => messages::no_event_input(step, such_as),
            Self::Unreachable { step, event, emitter } => messages::unreachable(step, event, emitter),
            Self::NeverTriggered { step } => messages::never_triggered(step),
            Self::PreconditionInput { step, precondition, parameter, instead } => {
                messages::precondition_input(step, precondition, parameter.as_str(), instead.as_str())
            }
            Self::FanOutNeverEnds { step, item } => messages::fan_out_never_ends(step, item),
            Self::ListCapacity { step, events, count, most } => {
                messages::list_capacity(step, events, *count, *most)
            }
            Self::DisjointBranches { step, events } => messages::disjoint_branches(step, events),
            Self::DisjointStarts { step, events } => messages::disjoint_starts(step, events),
            Self::UnexpectedStop { step, event, expected } => {
                messages::unexpected_stop(step, event, expected)
            }
            Self::OutputEndsNothing { events } => messages::output_ends_nothing(events),
            Self::NoStart => messages::no_start(),
            Self::NoStop => messages::no_stop(),
            Self::EndlessLoop { steps } => messages::endless_loop(steps),
        }
    }
}

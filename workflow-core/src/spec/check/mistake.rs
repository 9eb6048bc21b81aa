//! Mistakes in a graph as data. Their names borrow from the graph.

use super::messages;
use super::names::Names;
use super::text::Text;

/// One mistake at one place of a graph. The module `say` documents each variant with its message.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "nothing can be boxed in constant evaluation")]
pub(crate) enum Mistake<'n> {
    StopTaken { step: &'n str, event: &'n str },
    CatchesWithoutInput { step: &'n str },
    NothingToCatch { step: &'n str, event: &'n str },
    FailureEmitted { step: &'n str, event: &'n str },
    FailuresGathered { step: &'n str, event: &'n str },
    EmptyFixedList { step: &'n str },
    TakesItsOwn { step: &'n str, event: &'n str },
    NothingProduces { step: &'n str, events: Names<'n>, similar: Names<'n> },
    NoRequest { step: &'n str, request: &'n str },
    GatherFitsNothing { step: &'n str, event: &'n str, items: Names<'n> },
    NoEventInput { step: &'n str, such_as: &'n str },
    Unreachable { step: &'n str, event: &'n str, emitter: &'n str },
    NeverTriggered { step: &'n str },
    PreconditionInput { step: &'n str, precondition: &'n str, parameter: Text, instead: Text },
    FanOutNeverEnds { step: &'n str, item: &'n str },
    ListCapacity { step: &'n str, events: Names<'n>, count: u32, most: u64 },
    DisjointBranches { step: &'n str, events: Names<'n> },
    DisjointStarts { step: &'n str, events: Names<'n> },
    UnexpectedStop { step: &'n str, event: &'n str, expected: Names<'n> },
    OutputEndsNothing { events: Names<'n> },
    NoStart,
    NoStop,
    EndlessLoop { steps: Names<'n> },
}

impl Mistake<'_> {
    /// Whether the scheduler cannot work with the table, so that even unchecked tables are refused.
    pub(crate) const fn is_of_scheduler(&self) -> bool {
        matches!(
            self,
            Self::NoEventInput { .. }
                | Self::EmptyFixedList { .. }
                | Self::PreconditionInput { .. }
                | Self::GatherFitsNothing { .. }
                | Self::FanOutNeverEnds { .. }
        )
    }

    /// The message, made in constant evaluation.
    pub(crate) const fn text(&self) -> Text {
        match self {
            Self::StopTaken { step, event } => messages::stop_taken(step, event),
            Self::CatchesWithoutInput { step } => messages::catches_without_input(step),
            Self::NothingToCatch { step, event } => messages::nothing_to_catch(step, event),
            Self::FailureEmitted { step, event } => messages::failure_emitted(step, event),
            Self::FailuresGathered { step, event } => messages::failures_gathered(step, event),
            Self::EmptyFixedList { step } => messages::empty_fixed_list(step),
            Self::TakesItsOwn { step, event } => messages::takes_its_own(step, event),
            Self::NothingProduces { step, events, similar } => {
                messages::nothing_produces(step, events, similar)
            }
            Self::NoRequest { step, request } => messages::no_request(step, request),
            Self::GatherFitsNothing { step, event, items } => {
                messages::gather_fits_nothing(step, event, items)
            }
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

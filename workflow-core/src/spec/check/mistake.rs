//! Mistakes in a graph as data. Their names borrow from the graph.

use super::names::Names;
use super::say;
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
    ListNeverFull { step: &'n str, events: Names<'n>, count: u32, most: u64 },
    PartedByBranches { step: &'n str, events: Names<'n> },
    PartedByStarts { step: &'n str, events: Names<'n> },
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
            Self::StopTaken { step, event } => say::stop_taken(step, event),
            Self::CatchesWithoutInput { step } => say::catches_without_input(step),
            Self::NothingToCatch { step, event } => say::nothing_to_catch(step, event),
            Self::FailureEmitted { step, event } => say::failure_emitted(step, event),
            Self::FailuresGathered { step, event } => say::failures_gathered(step, event),
            Self::EmptyFixedList { step } => say::empty_fixed_list(step),
            Self::TakesItsOwn { step, event } => say::takes_its_own(step, event),
            Self::NothingProduces { step, events, similar } => say::nothing_produces(step, events, similar),
            Self::NoRequest { step, request } => say::no_request(step, request),
            Self::GatherFitsNothing { step, event, items } => say::gather_fits_nothing(step, event, items),
            Self::NoEventInput { step, such_as } => say::no_event_input(step, such_as),
            Self::Unreachable { step, event, emitter } => say::unreachable(step, event, emitter),
            Self::NeverTriggered { step } => say::never_triggered(step),
            Self::PreconditionInput { step, precondition, parameter, instead } => {
                say::precondition_input(step, precondition, parameter.as_str(), instead.as_str())
            }
            Self::FanOutNeverEnds { step, item } => say::fan_out_never_ends(step, item),
            Self::ListNeverFull { step, events, count, most } => {
                say::list_never_full(step, events, *count, *most)
            }
            Self::PartedByBranches { step, events } => say::parted_by_branches(step, events),
            Self::PartedByStarts { step, events } => say::parted_by_starts(step, events),
            Self::UnexpectedStop { step, event, expected } => say::unexpected_stop(step, event, expected),
            Self::OutputEndsNothing { events } => say::output_ends_nothing(events),
            Self::NoStart => say::no_start(),
            Self::NoStop => say::no_stop(),
            Self::EndlessLoop { steps } => say::endless_loop(steps),
        }
    }
}

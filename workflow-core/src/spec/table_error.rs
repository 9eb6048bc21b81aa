//! Problems of a dependency table.

use std::fmt;

use crate::spec::check::{Mistake, Names, messages};

/// All problems of an unusable dependency table, not just the first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableError {
    /// The workflow.
    pub workflow: String,
    /// The problems.
    pub problems: Vec<TableProblem>,
}

impl TableError {
    pub(crate) fn new(workflow: &str, problems: Vec<TableProblem>) -> Self {
        Self { workflow: workflow.to_owned(), problems }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        let mistakes = if count == 1 { "mistake" } else { "mistakes" };
        write!(f, "workflow `{}` has {count} {mistakes}:", self.workflow)?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  - {problem}"))
    }
}

impl std::error::Error for TableError {}

/// One problem of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableProblem {
    /// The table has no steps.
    #[error("it has no steps")]
    NoSteps,
    /// Two steps have one name.
    #[error("two steps are named `{step}`")]
    DuplicateStep {
        /// The name.
        step: String,
    },
    /// Two event types have one wire name.
    #[error("two event types are named `{event}`{}", of_types(.types))]
    DuplicateEvent {
        /// The wire name.
        event: String,
        /// The Rust types; empty in a table built at run time.
        types: [String; 2],
    },
    /// A step, an event or a precondition has an empty name.
    #[error("{what} has no name: a name cannot be empty")]
    EmptyName {
        /// The nameless thing.
        what: &'static str,
    },
    /// A name has spaces or control characters, which would garble a log line.
    #[error("{what} is named {name:?}: a name has no spaces or control characters")]
    GarbledName {
        /// The named thing.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An event both opens a run and ends it.
    #[error("event `{event}` cannot both open a run and end it: leave out `start` or `stop`")]
    StartsAndStops {
        /// The event.
        event: String,
    },
    /// A step takes a pure display event.
    #[error(
        "step `{step}` cannot take `{event}`: it is display only and triggers nothing; \
         give it the role `control` too, or leave it out"
    )]
    DisplayTaken {
        /// The step.
        step: String,
        /// The display event.
        event: String,
    },
    /// A step emits a pure display event.
    #[error(
        "step `{step}` cannot emit `{event}`: it is display only and never in the log; \
         give it the role `control` too, or leave it out"
    )]
    DisplayEmitted {
        /// The step.
        step: String,
        /// The display event.
        event: String,
    },
    /// An input takes one of no events, or a list of none.
    #[error("step `{step}` has an input of no events, which waits for nothing: name one, or leave it out")]
    EmptyInput {
        /// The step.
        step: String,
    },
    /// An input names an event twice.
    #[error("step `{step}` has an input that holds `{event}` twice: name each event once")]
    TakenTwice {
        /// The step.
        step: String,
        /// The event.
        event: String,
    },
    /// A step names an event that the table does not have.
    #[error("step `{step}` names event `{event}`, which the table does not have{}", add_it(.similar))]
    UnknownEvent {
        /// The step.
        step: String,
        /// The name.
        event: String,
        /// Events with nearly the same names, at most three.
        similar: Vec<String>,
    },
    /// An event is the reply to a request that the table does not have.
    #[error("event `{reply}` replies to `{request}`, which the table does not have{}", add_it(.similar))]
    UnknownRequest {
        /// The reply.
        reply: String,
        /// The name of the request.
        request: String,
        /// Events with nearly the same names, at most three.
        similar: Vec<String>,
    },
    /// An event is the reply to an event that is no request.
    #[error(
        "event `{reply}` replies to `{event}`, but only a request has a reply: give `{event}` the role `request`"
    )]
    ReplyToNoRequest {
        /// The reply.
        reply: String,
        /// The event that it replies to.
        event: String,
    },
    /// A reply is a request itself.
    #[error("event `{reply}` is a reply, and a reply asks nothing: take the role `request` from it")]
    ReplyAsks {
        /// The reply.
        reply: String,
    },
    /// Two events are the reply to one request.
    #[error("request `{request}` has two replies, `{}` and `{}`: leave one of them out", replies[0], replies[1])]
    SecondReply {
        /// The request.
        request: String,
        /// The replies.
        replies: [String; 2],
    },
    /// An event is the expiry of an event that is no request, or of a request that has an expiry.
    #[error(
        "event `{event}` says that `{request}` has expired, which has to be a request, and of which no other event says it"
    )]
    StrayExpiry {
        /// The event.
        event: String,
        /// The event whose expiry it is.
        request: String,
    },
    /// A step waits for a reply to no request.
    #[error(
        "step `{step}` waits for `{event}` as a reply, but it replies to no request: make it with `EventDef::reply_to`"
    )]
    NoReply {
        /// The step.
        step: String,
        /// The event.
        event: String,
    },
    /// A fixed list has a length of 0.
    #[error("{}", messages::empty_fixed_list(.step))]
    EmptyFixedList {
        /// The step.
        step: String,
    },
    /// A passive input is neither one event nor a list, or takes failures.
    #[error("{}", messages::unfit_passive(.step, &names(.events)))]
    UnfitPassive {
        /// The step.
        step: String,
        /// The events.
        events: Vec<String>,
    },
    /// A limit of a step is 0.
    #[error("step `{step}` has `{limit} = 0`, so it could never run")]
    ZeroLimit {
        /// The step.
        step: String,
        /// The limit.
        limit: &'static str,
    },
    /// The timeout of a step is 0, so each of its attempts would fail.
    #[error(
        "step `{step}` has a timeout of 0, so every attempt would fail: give it a time, or leave the timeout out"
    )]
    ZeroTimeout {
        /// The step.
        step: String,
    },
    /// A step takes no event, so nothing can trigger it.
    #[error("{}", messages::no_event_input(.step, .such_as))]
    NoEventInput {
        /// The step.
        step: String,
        /// An event that the step could take: the first start event of the table; empty if it has none.
        such_as: String,
    },
    /// A step catches the failures of no steps.
    #[error(
        "`catches` of step `{step}` names no step: name those whose failures the step takes, \
         or leave `catches` out to take those of all"
    )]
    CatchesNoStep {
        /// The step.
        step: String,
    },
    /// A step catches its own failure.
    #[error("step `{step}` cannot catch its own failure: leave it out of `catches`")]
    CatchesItself {
        /// The step.
        step: String,
    },
    /// A step catches the failure of a step that the table does not have.
    #[error("step `{step}` catches step `{caught}`, which the table does not have{}", add_step(.similar))]
    UnknownCaught {
        /// The step.
        step: String,
        /// The name.
        caught: String,
        /// Steps with nearly the same names, at most three.
        similar: Vec<String>,
    },
    /// A step names steps to catch, and takes no failure.
    #[error("{}", messages::catches_without_input(.step))]
    CatchesWithoutInput {
        /// The step.
        step: String,
    },
    /// A step takes failures, and there is no step whose failures it could take.
    #[error("{}", messages::nothing_to_catch(.step, .event))]
    NothingToCatch {
        /// The step.
        step: String,
        /// The event.
        event: String,
    },
    /// A clean-up step takes failures or catches steps.
    #[error("{}", messages::clean_up_catches(.step))]
    CleanUpCatches {
        /// The clean-up step.
        step: String,
    },
    /// A step catches a clean-up step by name.
    #[error("{}", messages::catches_clean_up(.step, .caught))]
    CatchesCleanUp {
        /// The step.
        step: String,
        /// The clean-up step.
        caught: String,
    },
    /// A clean-up step emits an event.
    #[error("{}", messages::clean_up_emits(.step, .event))]
    CleanUpEmits {
        /// The clean-up step.
        step: String,
        /// The event.
        event: String,
    },
    /// A clean-up step requires an event that only branches have.
    #[error("{}", messages::clean_up_in_branch(.step, &names(.events)))]
    CleanUpInBranch {
        /// The clean-up step.
        step: String,
        /// The event types, any of which would do.
        events: Vec<String>,
    },
    /// A step emits the failure event, which only the library emits.
    #[error("{}", messages::failure_emitted(.step, .event))]
    FailureEmitted {
        /// The step.
        step: String,
        /// The event.
        event: String,
    },
    /// A step gathers failures.
    #[error("{}", messages::failures_gathered(.step, .event))]
    FailuresGathered {
        /// The step.
        step: String,
        /// The event.
        event: String,
    },
    /// A step takes a stop event, so it would never run.
    #[error("{}", messages::stop_taken(.step, .event))]
    StopTaken {
        /// The step.
        step: String,
        /// The stop event.
        event: String,
    },
    /// A step takes an event that it emits, and is not marked as a loop.
    #[error("{}", messages::takes_its_own(.step, .event))]
    TakesItsOwn {
        /// The step.
        step: String,
        /// The event.
        event: String,
    },
    /// A step requires an event that no step emits, and that is neither a start event nor external.
    #[error("{}", messages::nothing_produces(.step, &names(.events), &names(.similar)))]
    NothingProduces {
        /// The step.
        step: String,
        /// The event, or several, one of which it requires.
        events: Vec<String>,
        /// Events with nearly the same names, at most three.
        similar: Vec<String>,
    },
    /// A step waits for the reply to a request that no step emits.
    #[error("{}", messages::no_request(.step, .request))]
    NoRequest {
        /// The step.
        step: String,
        /// The request.
        request: String,
    },
    /// A step can never run: it waits for a step that waits for it.
    #[error("{}", messages::unreachable(.step, .event, .emitter))]
    Unreachable {
        /// The step.
        step: String,
        /// The event that it waits for.
        event: String,
        /// The step that emits that event.
        emitter: String,
    },
    /// A step can never run: all of its inputs are optional, and nothing produces any of them.
    #[error("{}", messages::never_triggered(.step))]
    NeverTriggered {
        /// The step.
        step: String,
    },
    /// A precondition takes a parameter that its step does not have.
    #[error("{}", messages::precondition_input(.step, .precondition, .parameter, .instead))]
    PreconditionInput {
        /// The step.
        step: String,
        /// The precondition.
        precondition: String,
        /// The parameter.
        parameter: String,
        /// How the step takes the same event; empty if it does not take the event.
        instead: String,
    },
    /// A gather fits no fan-out.
    #[error("{}", messages::gather_fits_nothing(.step, .event, .item.as_deref().unwrap_or_default(), &names(.items)))]
    GatherFitsNothing {
        /// The step.
        step: String,
        /// The event that it gathers.
        event: String,
        /// The item that the gather names, if it names one.
        item: Option<String>,
        /// The items of the table's fan-outs.
        items: Vec<String>,
    },
    /// A gather names no item, and fits fan-outs with several items.
    #[error("{}", messages::ambiguous_gather(.step, .event, &names(.items)))]
    AmbiguousGather {
        /// The step.
        step: String,
        /// The event that it gathers.
        event: String,
        /// The items of the fan-outs that it fits.
        items: Vec<String>,
    },
    /// The branches of a fan-out can end neither in a gather nor in a stop.
    #[error("{}", messages::fan_out_never_ends(.step, .item))]
    FanOutNeverEnds {
        /// The step.
        step: String,
        /// The item.
        item: String,
    },
    /// A step waits for a fixed list of more events than a run can have.
    #[error("{}", messages::list_capacity(.step, &names(.events), *.count, *.most))]
    ListCapacity {
        /// The step.
        step: String,
        /// The event, or several, any of which it takes.
        events: Vec<String>,
        /// How many it waits for.
        count: u32,
        /// The most events of a run.
        most: u64,
    },
    /// A step can never run: it requires events of branches that do not see each other.
    #[error("{}", messages::disjoint_branches(.step, &names(.events)))]
    DisjointBranches {
        /// The step.
        step: String,
        /// The events.
        events: Vec<String>,
    },
    /// A step can never run: it requires events that follow from different start events.
    #[error("{}", messages::disjoint_starts(.step, &names(.events)))]
    DisjointStarts {
        /// The step.
        step: String,
        /// The events.
        events: Vec<String>,
    },
    /// A step ends the run with an event that is not in the workflow's output type.
    #[error("{}", messages::unexpected_stop(.step, .event, &names(.expected)))]
    UnexpectedStop {
        /// The step.
        step: String,
        /// The event.
        event: String,
        /// The events of the output type.
        expected: Vec<String>,
    },
    /// The workflow's output type has no stop event.
    #[error("{}", messages::output_ends_nothing(&names(.events)))]
    OutputEndsNothing {
        /// The events.
        events: Vec<String>,
    },
    /// No step takes a start event.
    #[error("{}", messages::no_start())]
    NoStart,
    /// No step that can run emits a stop event.
    #[error("{}", messages::no_stop())]
    NoStop,
    /// Steps trigger each other for ever, and nothing that follows from them ends the run.
    #[error("{}", messages::endless_loop(&names(.steps)))]
    EndlessLoop {
        /// The steps, in the order in which they trigger each other.
        steps: Vec<String>,
    },
}

fn names(names: &[String]) -> Names<'_> {
    names.iter().map(String::as_str).collect()
}

impl From<Mistake<'_>> for TableProblem {
    fn from(mistake: Mistake<'_>) -> Self {
        let own = |name: &str| name.to_owned();
        match mistake {
            Mistake::NoEventInput { step, such_as } => {
                Self::NoEventInput { step: own(step), such_as: own(such_as) }
            }
            Mistake::CatchesWithoutInput { step } => Self::CatchesWithoutInput { step: own(step) },
            Mistake::NothingToCatch { step, event } => {
                Self::NothingToCatch { step: own(step), event: own(event) }
            }
            Mistake::CleanUpCatches { step } => Self::CleanUpCatches { step: own(step) },
            Mistake::CatchesCleanUp { step, caught } => {
                Self::CatchesCleanUp { step: own(step), caught: own(caught) }
            }
            Mistake::CleanUpEmits { step, event } => {
                Self::CleanUpEmits { step: own(step), event: own(event) }
            }
            Mistake::CleanUpInBranch { step, events } => {
                Self::CleanUpInBranch { step: own(step), events: events.to_vec() }
            }
            Mistake::FailureEmitted { step, event } => {
                Self::FailureEmitted { step: own(step), event: own(event) }
            }
            Mistake::FailuresGathered { step, event, .. } => {
                Self::FailuresGathered { step: own(step), event: own(event) }
            }
            Mistake::StopTaken { step, event, .. } => Self::StopTaken { step: own(step), event: own(event) },
            Mistake::UnfitPassive { step, events } => {
                Self::UnfitPassive { step: own(step), events: events.to_vec() }
            }
            Mistake::EmptyFixedList { step } => Self::EmptyFixedList { step: own(step) },
            Mistake::TakesItsOwn { step, event } => Self::TakesItsOwn { step: own(step), event: own(event) },
            Mistake::NothingProduces { step, events, similar } => {
                Self::NothingProduces { step: own(step), events: events.to_vec(), similar: similar.to_vec() }
            }
            Mistake::NoRequest { step, request } => {
                Self::NoRequest { step: own(step), request: own(request) }
            }
            Mistake::Unreachable { step, event, emitter } => {
                Self::Unreachable { step: own(step), event: own(event), emitter: own(emitter) }
            }
            Mistake::NeverTriggered { step } => Self::NeverTriggered { step: own(step) },
            Mistake::PreconditionInput { step, precondition, parameter, instead } => {
                Self::PreconditionInput {
                    step: own(step),
                    precondition: own(precondition),
                    parameter: parameter.to_string(),
                    instead: instead.to_string(),
                }
            }
            Mistake::GatherFitsNothing { step, event, item, items } => {
                let item = (!item.is_empty()).then(|| own(item));
                Self::GatherFitsNothing { step: own(step), event: own(event), item, items: items.to_vec() }
            }
            Mistake::AmbiguousGather { step, event, items } => {
                Self::AmbiguousGather { step: own(step), event: own(event), items: items.to_vec() }
            }
            Mistake::FanOutNeverEnds { step, item } => {
                Self::FanOutNeverEnds { step: own(step), item: own(item) }
            }
            Mistake::ListCapacity { step, events, count, most } => {
                Self::ListCapacity { step: own(step), events: events.to_vec(), count, most }
            }
            Mistake::DisjointBranches { step, events } => {
                Self::DisjointBranches { step: own(step), events: events.to_vec() }
            }
            Mistake::DisjointStarts { step, events } => {
                Self::DisjointStarts { step: own(step), events: events.to_vec() }
            }
            Mistake::UnexpectedStop { step, event, expected } => {
                Self::UnexpectedStop { step: own(step), event: own(event), expected: expected.to_vec() }
            }
            Mistake::OutputEndsNothing { events } => Self::OutputEndsNothing { events: events.to_vec() },
            Mistake::NoStart => Self::NoStart,
            Mistake::NoStop => Self::NoStop,
            Mistake::EndlessLoop { steps } => Self::EndlessLoop { steps: steps.to_vec() },
        }
    }
}

fn add_it(similar: &[String]) -> String {
    format!("{} add it with `TableBuilder::event`", did_you_mean(similar))
}

fn add_step(similar: &[String]) -> String {
    format!("{} add it with `TableBuilder::step`", did_you_mean(similar))
}

fn did_you_mean(similar: &[String]) -> String {
    let similar: Vec<String> = similar.iter().map(|name| format!("`{name}`")).collect();
    match &similar[..] {
        [] => ":".to_owned(),
        names => format!("; did you mean {}? Otherwise,", names.join(" or ")),
    }
}

fn of_types(types: &[String; 2]) -> String {
    let [one, other] = types;
    if one.is_empty() {
        return String::new();
    }
    format!(": `{one}` and `{other}`; give one another name with `#[event(name = \"…\")]`")
}

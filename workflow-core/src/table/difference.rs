//! The differences between two tables, as facts that people can act on (S41). Whether one prevents a run from
//! being resumed depends on the run's journal, which this module does not know.

use std::fmt;
use std::sync::Arc;

use super::{InputShape, OutputShape};
use crate::event::Roles;
use crate::spec::OnEnd;

mod find;

/// One difference between a workflow's table and an earlier one ([`TableShape::differences`]).
///
/// A difference is *compatible* if every run can be resumed with it. Other differences are *incompatible*
/// with certain runs only: those whose journals have facts that the changed table contradicts. Each variant
/// says which.
///
/// [`TableShape::differences`]: crate::table::TableShape::differences
///
/// ```
/// use workflow_core::signature::Roles;
/// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef, TableDifference};
///
/// let greeter = |greet: StepDef| {
///     DependencyTable::builder("greeter")
///         .event(EventDef::new("Greet", Roles::NONE.start()))
///         .event(EventDef::new("Mood", Roles::NONE.external()))
///         .event(EventDef::new("Greeting", Roles::NONE.stop()))
///         .step(greet.input(InputDef::one("Greet")).output(OutputDef::event("Greeting")))
///         .build_unchecked()
/// };
/// let was = greeter(StepDef::new("greet"))?.shape();
/// let is = greeter(StepDef::new("greet").input(InputDef::one("Mood").optional()))?.shape();
/// let differences = was.differences(&is);
/// assert_eq!(differences[0].to_string(), "step `greet` takes an optional `Mood` as well now");
/// assert!(differences[0].is_compatible());
/// assert!(!is.differences(&was)[0].is_compatible());
/// # Ok::<(), workflow_core::table::TableError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableDifference {
    /// A step is new. Compatible: the scheduler evaluates it for the events that the log has, and it runs.
    StepAdded {
        /// The name of the step.
        step: Arc<str>,
    },
    /// A step is missing or renamed. Incompatible with a run in which it ran or its precondition was
    /// evaluated.
    StepRemoved {
        /// The name of the step.
        step: Arc<str>,
    },
    /// A step takes another input. Compatible if the input is optional or passive; otherwise incompatible with a run in
    /// which the step ran or its precondition was evaluated.
    InputAdded {
        /// The name of the step.
        step: Arc<str>,
        /// The new input.
        input: InputShape,
    },
    /// A step lacks an input. Compatible if the input was passive; otherwise incompatible with a run in which the step
    /// ran or its precondition was evaluated.
    InputRemoved {
        /// The name of the step.
        step: Arc<str>,
        /// The former input.
        input: InputShape,
    },
    /// A step takes an input in another way. Compatible if the input is passive; otherwise incompatible with a run in
    /// which the step ran or its precondition was evaluated.
    InputChanged {
        /// The name of the step.
        step: Arc<str>,
        /// The former input.
        was: InputShape,
        /// The new input.
        is: InputShape,
    },
    /// A step may emit another event. Compatible if executions may omit it; otherwise incompatible with a run
    /// in which the step succeeded.
    OutputAdded {
        /// The name of the step.
        step: Arc<str>,
        /// The new output.
        output: OutputShape,
    },
    /// A step cannot emit an event any more. Incompatible with a run in which it did.
    OutputRemoved {
        /// The name of the step.
        step: Arc<str>,
        /// The former output.
        output: OutputShape,
    },
    /// A step emits an event in another number or way. Compatible if the new output allows all that the
    /// former one allowed; otherwise incompatible with a run in which a successful execution emitted a number
    /// or kind of events that the new output does not allow.
    OutputChanged {
        /// The name of the step.
        step: Arc<str>,
        /// The former output.
        was: OutputShape,
        /// The new output.
        is: OutputShape,
    },
    /// A step has a precondition now. Incompatible with a run in which the step ran without it.
    PreconditionAdded {
        /// The name of the step.
        step: Arc<str>,
        /// The name of the precondition.
        precondition: Arc<str>,
    },
    /// A step has no precondition any more. Incompatible with a run in which it was evaluated.
    PreconditionRemoved {
        /// The name of the step.
        step: Arc<str>,
        /// The name of the precondition.
        precondition: Arc<str>,
    },
    /// A step catches failures of another step now. Incompatible with a run that continued after such a
    /// failure without its event.
    CatchAdded {
        /// The name of the step.
        step: Arc<str>,
        /// The name of the step whose failures are caught.
        caught: Arc<str>,
    },
    /// A step does not catch failures of another step any more. Incompatible with a run that has the event of
    /// such a failure.
    CatchRemoved {
        /// The name of the step.
        step: Arc<str>,
        /// The name of the step whose failures were caught.
        caught: Arc<str>,
    },
    /// A step has another `max_executions`. Compatible if it is greater; otherwise incompatible with a run in
    /// which the step executed more often in a scope.
    MaxExecutionsChanged {
        /// The name of the step.
        step: Arc<str>,
        /// The former limit; `None` for no limit.
        was: Option<u32>,
        /// The new limit; `None` for no limit.
        is: Option<u32>,
    },
    /// A step has another `concurrency`. Compatible if it is greater; otherwise resuming a run decides it, by
    /// reading whether the journal's executions could have ended in that order.
    ConcurrencyChanged {
        /// The name of the step.
        step: Arc<str>,
        /// The former limit; `None` for no limit.
        was: Option<u32>,
        /// The new limit; `None` for no limit.
        is: Option<u32>,
    },
    /// A step has another named [limit](crate::Limit). Compatible, unless it has none any more: then resuming a run
    /// decides it, as with a lower `concurrency`.
    LimitChanged {
        /// The name of the step.
        step: Arc<str>,
        /// The name of the former limit; `None` for no limit.
        was: Option<Arc<str>>,
        /// The name of the new limit; `None` for no limit.
        is: Option<Arc<str>>,
    },
    /// Executions of a step have other [idempotency keys](crate::RunInfo::idempotency_key) now: an input is gone, or is
    /// a list and was none, or the other way round; or another method makes the key. Incompatible with a run in which an
    /// execution of the step is open and may have begun.
    KeysChanged {
        /// The name of the step.
        step: Arc<str>,
    },
    /// A step's failure ends the run now, or does not any more. Incompatible with a run that continued after
    /// such a failure without an event of it.
    OnErrorChanged {
        /// The name of the step.
        step: Arc<str>,
        /// Whether the run continues after a failure now.
        continues: bool,
    },
    /// A step is `at_most_once` now, or is not any more. Compatible: it decides only about attempts to come.
    AtMostOnceChanged {
        /// The name of the step.
        step: Arc<str>,
        /// Whether it is `at_most_once` now.
        is: bool,
    },
    /// A clean-up step runs at other ends, or a step is a clean-up step now, or not any more. Compatible between clean-up
    /// steps; otherwise incompatible with a run in which the step ran or its precondition was evaluated.
    OnEndChanged {
        /// The name of the step.
        step: Arc<str>,
        /// The former ends; `None` if it was no clean-up step.
        was: Option<OnEnd>,
        /// The new ends; `None` if it is no clean-up step.
        is: Option<OnEnd>,
    },
    /// An event type is new. Compatible.
    EventAdded {
        /// The wire name of the event.
        event: Arc<str>,
    },
    /// No step takes or emits an event type any more. Incompatible with a run that has such an event in its
    /// log or in a timer.
    EventRemoved {
        /// The wire name of the event.
        event: Arc<str>,
    },
    /// An event type has other roles. Compatible if only its display changed, or if it also opens runs or
    /// comes from outside now; otherwise incompatible with a run that has such an event.
    RolesChanged {
        /// The wire name of the event.
        event: Arc<str>,
        /// The former roles.
        was: Roles,
        /// The new roles.
        is: Roles,
    },
    /// An event type has another version. Compatible if it is a later one, although reading an old event may
    /// still fail; otherwise incompatible with a run that has such an event of a version later than the
    /// current one.
    VersionChanged {
        /// The wire name of the event.
        event: Arc<str>,
        /// The former version.
        was: u32,
        /// The new version.
        is: u32,
    },
}

impl TableDifference {
    /// Whether every run can be resumed with this difference, whatever its journal has.
    ///
    /// With an incompatible difference a run can still be resumed if its journal does not contradict the
    /// change.
    pub fn is_compatible(&self) -> bool {
        match self {
            Self::StepAdded { .. } | Self::EventAdded { .. } | Self::AtMostOnceChanged { .. } => true,
            Self::InputAdded { input, .. } => input.optional || input.passive,
            Self::InputRemoved { input, .. } => input.passive,
            Self::InputChanged { was, is, .. } => was.passive && is.passive,
            Self::OutputAdded { output, .. } => output.least == 0,
            Self::OutputChanged { was, is, .. } => was.is_covered_by(is),
            Self::MaxExecutionsChanged { was, is, .. } | Self::ConcurrencyChanged { was, is, .. } => {
                is.is_none_or(|is| was.is_some_and(|was| was <= is))
            }
            Self::LimitChanged { is, .. } => is.is_some(),
            Self::RolesChanged { was, is, .. } => keeps_meaning(*was, *is),
            Self::VersionChanged { was, is, .. } => was <= is,
            Self::OnEndChanged { was, is, .. } => was.is_some() == is.is_some(),
            Self::StepRemoved { .. }
            | Self::KeysChanged { .. }
            | Self::OutputRemoved { .. }
            | Self::PreconditionAdded { .. }
            | Self::PreconditionRemoved { .. }
            | Self::CatchAdded { .. }
            | Self::CatchRemoved { .. }
            | Self::OnErrorChanged { .. }
            | Self::EventRemoved { .. } => false,
        }
    }
}

impl OutputShape {
    /// Whether the other output allows all that this one allows.
    fn is_covered_by(&self, other: &Self) -> bool {
        let is_alike = self.fan_out == other.fan_out && self.timed == other.timed;
        is_alike && other.least <= self.least && (other.many || !self.many)
    }
}

impl InputShape {
    /// Whether the other input is this one, taken in another way perhaps.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        self.passive == other.passive && self.events.iter().any(|event| other.events.contains(event))
    }
}

/// Whether an event in a log keeps its meaning: it ends, asks, replies or fails as before, and still may come
/// from the same sources.
fn keeps_meaning(was: Roles, is: Roles) -> bool {
    let decisive = |roles: Roles| (roles.is_stop(), roles.is_request(), roles.is_reply(), roles.is_failure());
    decisive(was) == decisive(is)
        && (is.is_start() || !was.is_start())
        && (is.is_external() || !was.is_external())
}

impl fmt::Display for TableDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StepAdded { step } => write!(f, "step `{step}` is new"),
            Self::StepRemoved { step } => write!(f, "step `{step}` is gone"),
            Self::InputAdded { step, input } => write!(f, "step `{step}` takes {input} as well now"),
            Self::InputRemoved { step, input } => write!(f, "step `{step}` does not take {input} any more"),
            Self::InputChanged { step, was, is } => write!(f, "step `{step}` takes {is} now, and took {was}"),
            Self::OutputAdded { step, output } => write!(f, "step `{step}` emits {output} as well now"),
            Self::OutputRemoved { step, output } => {
                write!(f, "step `{step}` does not emit {output} any more")
            }
            Self::OutputChanged { step, was, is } => {
                write!(f, "step `{step}` emits {is} now, and emitted {was}")
            }
            Self::PreconditionAdded { step, precondition } => {
                write!(f, "step `{step}` has precondition `{precondition}` now, and had none")
            }
            Self::PreconditionRemoved { step, precondition } => {
                write!(f, "step `{step}` has no precondition now, and had `{precondition}`")
            }
            Self::CatchAdded { step, caught } => {
                write!(f, "step `{step}` takes failures of `{caught}` now, and did not")
            }
            Self::CatchRemoved { step, caught } => {
                write!(f, "step `{step}` does not take failures of `{caught}` any more")
            }
            Self::MaxExecutionsChanged { step, was, is } => {
                write!(f, "step `{step}` executes {} now, and did {}", Often(*is), Often(*was))
            }
            Self::ConcurrencyChanged { step, was, is } => {
                write!(f, "step `{step}` runs {} now, and did {}", AtATime(*is), AtATime(*was))
            }
            Self::LimitChanged { step, was, is } => {
                let named = |limit: &Option<Arc<str>>| match limit {
                    Some(limit) => format!("the limit `{limit}`"),
                    None => "no limit".to_owned(),
                };
                write!(f, "step `{step}` has {} now, and had {}", named(is), named(was))
            }
            Self::KeysChanged { step } => {
                write!(f, "executions of step `{step}` have other idempotency keys now")
            }
            Self::OnErrorChanged { step, continues: true } => {
                write!(f, "the run continues now when step `{step}` fails, and did not")
            }
            Self::OnErrorChanged { step, .. } => {
                write!(f, "the run does not continue any more when step `{step}` fails")
            }
            Self::AtMostOnceChanged { step, is: true } => {
                write!(f, "step `{step}` is `at_most_once` now, and was not")
            }
            Self::AtMostOnceChanged { step, .. } => write!(f, "step `{step}` is not `at_most_once` any more"),
            Self::OnEndChanged { step, was: Some(was), is: Some(is) } => {
                write!(f, "step `{step}` cleans up at {is} now, and did at {was}")
            }
            Self::OnEndChanged { step, is: Some(_), .. } => {
                write!(f, "step `{step}` is clean-up now, and was not")
            }
            Self::OnEndChanged { step, .. } => write!(f, "step `{step}` is no clean-up now, and was"),
            Self::EventAdded { event } => write!(f, "event `{event}` is new"),
            Self::EventRemoved { event } => write!(f, "event `{event}` is gone"),
            Self::RolesChanged { event, was, is } => {
                write!(f, "event `{event}` has the roles ({is}) now, and had ({was})")
            }
            Self::VersionChanged { event, was, is } => {
                write!(f, "event `{event}` has version {is} now, and had {was}")
            }
        }
    }
}

/// The number of executions, in words.
struct Often(Option<u32>);

impl fmt::Display for Often {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(1) => f.write_str("at most once"),
            Some(most) => write!(f, "at most {most} times"),
            None => f.write_str("any number of times"),
        }
    }
}

/// The number of concurrent executions, in words.
struct AtATime(Option<u32>);

impl fmt::Display for AtATime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(most) => write!(f, "at most {most} at a time"),
            None => f.write_str("any number at a time"),
        }
    }
}

//! How two tables differ, in facts that people can act on (S41). Whether a difference stands in the way of a run is for
//! who knows what the run's journal tells of.

use std::fmt;
use std::sync::Arc;

use super::{InputShape, OutputShape};
use crate::event::Roles;

mod find;

/// One way in which the table of a workflow differs from an earlier one ([`TableShape::differences`]).
///
/// [`TableShape::differences`]: crate::TableShape::differences
///
/// ```
/// use workflow_core::{DependencyTable, EventDef, InputDef, OutputDef, Roles, StepDef, TableDifference};
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
/// # Ok::<(), workflow_core::TableError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableDifference {
    /// A step is new. Compatible: it is evaluated for what the log has, and runs.
    StepAdded {
        /// The step.
        step: Arc<str>,
    },
    /// A step is gone, or has another name. In the way of a run in which it ran or its precondition was asked.
    StepRemoved {
        /// The step.
        step: Arc<str>,
    },
    /// A step takes something more. Compatible if that is optional; else in the way of a run in which the step ran or
    /// its precondition was asked.
    InputAdded {
        /// The step.
        step: Arc<str>,
        /// What it takes.
        input: InputShape,
    },
    /// A step takes something less. In the way of a run in which the step ran or its precondition was asked.
    InputRemoved {
        /// The step.
        step: Arc<str>,
        /// What it took.
        input: InputShape,
    },
    /// A step takes something in another way. In the way of a run in which the step ran or its precondition was asked.
    InputChanged {
        /// The step.
        step: Arc<str>,
        /// What it took.
        was: InputShape,
        /// What it takes.
        is: InputShape,
    },
    /// A step may emit something more. Compatible if not every execution emits it; else in the way of a run in which
    /// the step succeeded.
    OutputAdded {
        /// The step.
        step: Arc<str>,
        /// What it emits.
        output: OutputShape,
    },
    /// A step does not emit something any more. In the way of a run in which it did.
    OutputRemoved {
        /// The step.
        step: Arc<str>,
        /// What it emitted.
        output: OutputShape,
    },
    /// A step emits something more or less often, or in another way. Compatible if all that it could emit before can
    /// still come of it; else in the way of a run in which the step emitted that, or succeeded without and now could not.
    OutputChanged {
        /// The step.
        step: Arc<str>,
        /// What it emitted.
        was: OutputShape,
        /// What it emits.
        is: OutputShape,
    },
    /// A step has a precondition now. In the way of a run in which the step ran unasked.
    PreconditionAdded {
        /// The step.
        step: Arc<str>,
        /// The precondition.
        precondition: Arc<str>,
    },
    /// A step has no precondition any more. In the way of a run in which that was asked.
    PreconditionRemoved {
        /// The step.
        step: Arc<str>,
        /// The precondition.
        precondition: Arc<str>,
    },
    /// A step takes the failures of another that it did not take. In the way of a run that went on after such a failure
    /// without an event of it.
    CatchAdded {
        /// The step.
        step: Arc<str>,
        /// The step whose failures it takes.
        caught: Arc<str>,
    },
    /// A step does not take the failures of another any more. In the way of a run that has the event of such a failure.
    CatchRemoved {
        /// The step.
        step: Arc<str>,
        /// The step whose failures it took.
        caught: Arc<str>,
    },
    /// A step may execute more or less often per scope. Compatible if more often; else in the way of a run in which
    /// it executed more often than it may.
    MaxExecutionsChanged {
        /// The step.
        step: Arc<str>,
        /// How often it could.
        was: Option<u32>,
        /// How often it may.
        is: Option<u32>,
    },
    /// More or fewer executions of a step are there at a time. Compatible if more; else whether executions ended as
    /// they do now is seen by reading the journal.
    ConcurrencyChanged {
        /// The step.
        step: Arc<str>,
        /// How many there were at most.
        was: Option<u32>,
        /// How many there are at most.
        is: Option<u32>,
    },
    /// Whether the run goes on when a step fails is another. In the way of a run that went on after such a failure
    /// without an event of it.
    OnErrorChanged {
        /// The step.
        step: Arc<str>,
        /// Whether the run goes on now.
        continues: bool,
    },
    /// An event type is new. Compatible.
    EventAdded {
        /// Its wire name.
        event: Arc<str>,
    },
    /// No step takes or emits an event type any more. In the way of a run that has such an event, in its log or in a
    /// timer.
    EventRemoved {
        /// Its wire name.
        event: Arc<str>,
    },
    /// An event type is for something else. Compatible if it is merely shown or not, or opens runs or comes from outside
    /// as well; else in the way of a run that has such an event.
    RolesChanged {
        /// Its wire name.
        event: Arc<str>,
        /// What it was for.
        was: Roles,
        /// What it is for.
        is: Roles,
    },
    /// An event type has another version. Compatible if it is a later one, which may still not be able to read what a run
    /// has; else in the way of a run that has such an event of a later version than is known now.
    VersionChanged {
        /// Its wire name.
        event: Arc<str>,
        /// The version that it had.
        was: u32,
        /// The version that it has.
        is: u32,
    },
}

impl TableDifference {
    /// Whether it stands in no run's way by what it is, whatever the run's journal tells of. A run goes on with others too
    /// if its journal does not tell of what has changed.
    pub fn is_compatible(&self) -> bool {
        match self {
            Self::StepAdded { .. } | Self::EventAdded { .. } => true,
            Self::InputAdded { input, .. } => input.optional,
            Self::OutputAdded { output, .. } => output.least == 0,
            Self::OutputChanged { was, is, .. } => was.is_covered_by(is),
            Self::MaxExecutionsChanged { was, is, .. } | Self::ConcurrencyChanged { was, is, .. } => {
                is.is_none_or(|is| was.is_some_and(|was| was <= is))
            }
            Self::RolesChanged { was, is, .. } => keeps_meaning(*was, *is),
            Self::VersionChanged { was, is, .. } => was <= is,
            Self::StepRemoved { .. }
            | Self::InputRemoved { .. }
            | Self::InputChanged { .. }
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
    /// Whether whatever comes of it can come of the other too.
    fn is_covered_by(&self, other: &Self) -> bool {
        let is_alike = self.fan_out == other.fan_out && self.timed == other.timed;
        is_alike && other.least <= self.least && (other.many || !self.many)
    }
}

/// Whether an event in a log means what it meant: it ends or asks as before, and may come from where it came from.
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
            Self::OnErrorChanged { step, continues: true } => {
                write!(f, "the run goes on now when step `{step}` fails, and did not")
            }
            Self::OnErrorChanged { step, .. } => {
                write!(f, "the run does not go on any more when step `{step}` fails")
            }
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

/// How often a step executes.
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

/// How many executions there are at a time.
struct AtATime(Option<u32>);

impl fmt::Display for AtATime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(most) => write!(f, "at most {most} at a time"),
            None => f.write_str("any number at a time"),
        }
    }
}

//! What can be wrong with a dependency table.

use std::fmt;

/// Why a dependency table cannot be used: every problem, not just the first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableError {
    /// The workflow.
    pub workflow: String,
    /// What is wrong.
    pub problems: Vec<TableProblem>,
}

impl TableError {
    pub(crate) fn new(workflow: &str, problems: Vec<TableProblem>) -> Self {
        Self { workflow: workflow.to_owned(), problems }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workflow `{}` has {} mistakes:", self.workflow, self.problems.len())?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  - {problem}"))
    }
}

impl std::error::Error for TableError {}

/// One thing that is wrong with a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableProblem {
    /// It has no steps.
    #[error("it has no steps")]
    NoSteps,
    /// Two steps have one name.
    #[error("two steps are named `{step}`")]
    DuplicateStep {
        /// The name.
        step: String,
    },
    /// Two event types have one wire name (S1).
    #[error("two event types are named `{event}`{}", of_types(.types))]
    DuplicateEvent {
        /// The wire name.
        event: String,
        /// The Rust types; empty in a table built at run time.
        types: [String; 2],
    },
    /// A step names an event that the table does not have.
    #[error("step `{step}` names event `{event}`, which the table does not have")]
    UnknownEvent {
        /// The step.
        step: String,
        /// The name.
        event: String,
    },
    /// A step takes no event, so that nothing can trigger it (S9).
    #[error("step `{step}` takes no event, so nothing can ever trigger it")]
    NoEventInput {
        /// The step.
        step: String,
    },
    /// A fixed list of no events.
    #[error("step `{step}` takes a fixed list of 0 events, which never waits for anything: leave it out")]
    EmptyFixedList {
        /// The step.
        step: String,
    },
    /// A limit of 0.
    #[error("step `{step}` has `{limit} = 0`, so it could never run")]
    ZeroLimit {
        /// The step.
        step: String,
        /// Which limit.
        limit: &'static str,
    },
    /// A precondition asks for what its step does not have (S9).
    #[error(
        "precondition `{precondition}` takes a parameter that is not among the inputs of step `{step}`: give the step the same parameter, or take it out of the precondition"
    )]
    PreconditionInput {
        /// The step.
        step: String,
        /// The precondition.
        precondition: String,
    },
    /// A gather that fits no fan-out (S48).
    #[error(
        "step `{step}` gathers `{event}`, but no fan-out has it as its item or emits it in its branches' own scope"
    )]
    GatherFitsNothing {
        /// The step.
        step: String,
        /// What it gathers.
        event: String,
    },
    /// A fan-out whose branches can end neither in a gather nor in a stop (S48).
    #[error(
        "step `{step}` fans out `{item}`, but its branches can end neither in a gather nor in a stop: take `Gather<…>` in a step"
    )]
    FanOutNeverEnds {
        /// The step.
        step: String,
        /// The item.
        item: String,
    },
}

fn of_types(types: &[String; 2]) -> String {
    if types[0].is_empty() { String::new() } else { format!(": `{}` and `{}`", types[0], types[1]) }
}

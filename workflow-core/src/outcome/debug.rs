//! `RunError` as `Debug` prints it.

use std::fmt;

use super::RunError;

/// Written by hand, so that it is compiled here. A derived implementation would be compiled again in every program that
/// shows the error, with everything that an error can hold.
impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => f.debug_tuple("Build").field(error).finish(),
            Self::Start(error) => f.debug_tuple("Start").field(error).finish(),
            Self::StepFailed { step, execution, attempts, class, item, source } => f
                .debug_struct("StepFailed")
                .field("step", step)
                .field("execution", execution)
                .field("attempts", attempts)
                .field("class", class)
                .field("item", item)
                .field("source", source)
                .finish(),
            Self::BranchesFailed { failures } => {
                f.debug_struct("BranchesFailed").field("failures", failures).finish()
            }
            Self::PreconditionFailed { step, precondition, source } => f
                .debug_struct("PreconditionFailed")
                .field("step", step)
                .field("precondition", precondition)
                .field("source", source)
                .finish(),
            Self::Stalled(report) => f.debug_tuple("Stalled").field(report).finish(),
            Self::Cancelled { reason } => f.debug_struct("Cancelled").field("reason", reason).finish(),
            Self::TimedOut { after, of_engine } => {
                f.debug_struct("TimedOut").field("after", after).field("of_engine", of_engine).finish()
            }
            Self::DeadlinePassed { deadline } => {
                f.debug_struct("DeadlinePassed").field("deadline", deadline).finish()
            }
            Self::LogFull { limit, busiest, events, excess } => f
                .debug_struct("LogFull")
                .field("limit", limit)
                .field("busiest", busiest)
                .field("events", events)
                .field("excess", excess)
                .finish(),
            Self::TooManyExecutions { limit, looping, rounds, busiest, executions, excess } => f
                .debug_struct("TooManyExecutions")
                .field("limit", limit)
                .field("looping", looping)
                .field("rounds", rounds)
                .field("busiest", busiest)
                .field("executions", executions)
                .field("excess", excess)
                .finish(),
            Self::Store { source } => f.debug_struct("Store").field("source", source).finish(),
            Self::Conflict { run } => f.debug_struct("Conflict").field("run", run).finish(),
            Self::Incompatible { run, difference } => {
                f.debug_struct("Incompatible").field("run", run).field("difference", difference).finish()
            }
            Self::Past { status, error } => {
                f.debug_struct("Past").field("status", status).field("error", error).finish()
            }
            Self::NotEnded => f.write_str("NotEnded"),
            Self::Detached => f.write_str("Detached"),
            Self::UnexpectedStop { event, workflow } => {
                f.debug_struct("UnexpectedStop").field("event", event).field("workflow", workflow).finish()
            }
            Self::Unreadable { event, problem } => {
                f.debug_struct("Unreadable").field("event", event).field("problem", problem).finish()
            }
            Self::OutputPanicked { event, message } => {
                f.debug_struct("OutputPanicked").field("event", event).field("message", message).finish()
            }
        }
    }
}

//! `tracing` as an observer: a span per run and per execution with names for OpenTelemetry, and an event for each
//! failure.

use std::time::Duration;

use tracing::{Level, Span, field};

use super::{Observation, Observer};
use crate::error::{BranchItem, StepError};
use crate::id::{ExecutionId, RunId, RunStatus, ScopeId, ThreadId, TraceParent};
use crate::outcome::RunError;

/// Gives runs and executions `tracing` spans.
///
/// A step's own `tracing` events are in its execution's span, and that is in its run's span, also across awaits. A
/// run's span is in the current one at its start: a request's, or the span of the execution whose step starts it. Each
/// attempt of an execution has a span of its own, and a retried one counts as failed. A failed attempt, a refused
/// commit and the end of a run are events in their spans.
///
/// A run's span begins once the store has the run. A start that is refused, a look at a run that has ended, and a run
/// that cannot be resumed have none. A run that stops here without an end, since its engine shuts down or its store fails,
/// has the status `detached`; only the latter is an error.
///
/// | span | fields from the start | fields at the end |
/// |---|---|---|
/// | `workflow.run` | `workflow.name`, `workflow.run.id`, `workflow.thread.id` | `workflow.run.status` |
/// | `workflow.execution` | `workflow.step.name`, `workflow.execution.id`, `workflow.execution.attempt`, `workflow.scope.id` | `workflow.execution.outcome`: `succeeded`, `failed`, `refused` or `dropped`; after a failure in a fan-out `workflow.branch.item`: the item of its branch |
///
/// Both have the fields of bridges to OpenTelemetry: `otel.name` (`run Shop`, `execute add_up`), `otel.kind`
/// (`internal`), and after a failure `otel.status_code` (`ERROR`), `otel.status_description` and `error.type`: the
/// class of a step's error, or the kind of the run's. A description has the whole chain of causes, each once. A
/// cancelled run is no error.
///
/// ```
/// use workflow_core::Engine;
/// use workflow_core::observe::TracingObserver;
/// let engine = Engine::builder().observer(TracingObserver::new()).build()?;
/// # Ok::<(), workflow_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct TracingObserver;

impl TracingObserver {
    /// An observer that reports to the `tracing` subscriber.
    pub fn new() -> Self {
        Self
    }
}

impl Observer for TracingObserver {
    /// Does nothing: the run itself makes spans and their events.
    fn observe(&self, _: &Observation) {}

    fn wants_spans(&self) -> bool {
        true
    }
}

/// The outcome of an execution, for spans and metrics.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExecutionEnd<'a> {
    Succeeded,
    Failed(&'a StepError),
    /// The execution returned after the run had ended (S28).
    Refused,
    Dropped,
}

impl ExecutionEnd<'_> {
    /// The name in spans and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::Refused => "refused",
            Self::Dropped => "dropped",
        }
    }
}

/// The span of a run, below the one in which the run was made.
pub(crate) fn run_span(
    parent: &Span,
    (workflow, run, thread): (&str, &RunId, &ThreadId),
    trace_parent: Option<TraceParent>,
) -> Span {
    tracing::info_span!(
        parent: parent,
        "workflow.run",
        otel.name = format_args!("run {workflow}"),
        otel.kind = "internal",
        otel.status_code = field::Empty,
        otel.status_description = field::Empty,
        "error.type" = field::Empty,
        workflow.name = workflow,
        workflow.run.id = %run,
        workflow.thread.id = %thread,
        workflow.run.trace_parent = trace_parent.map(field::display),
        workflow.run.status = field::Empty,
    )
}

/// The span of an attempt of an execution, below its run's.
pub(crate) fn execution_span(
    run: &Span,
    step: &str,
    execution: ExecutionId,
    attempt: u32,
    scope: ScopeId,
) -> Span {
    tracing::info_span!(
        parent: run,
        "workflow.execution",
        otel.name = format_args!("execute {step}"),
        otel.kind = "internal",
        otel.status_code = field::Empty,
        otel.status_description = field::Empty,
        "error.type" = field::Empty,
        workflow.step.name = step,
        workflow.execution.id = %execution,
        workflow.execution.attempt = attempt,
        workflow.scope.id = scope.0,
        workflow.branch.item = field::Empty,
        workflow.execution.outcome = field::Empty,
    )
}

/// Records on the span of an attempt that it failed and another follows.
pub(crate) fn note_retry(span: &Span, error: &StepError, retry_in: Duration, item: Option<&BranchItem>) {
    note_item(span, item);
    let class = error.class();
    span.record("workflow.execution.outcome", ExecutionEnd::Failed(error).name());
    fail(span, &class, error);
    tracing::event!(parent: span, Level::WARN, %class, %error, ?retry_in, "attempt failed");
}

/// Records the outcome on an execution's span.
pub(crate) fn note_execution(span: &Span, ended: ExecutionEnd<'_>, item: Option<&BranchItem>) {
    note_item(span, item);
    span.record("workflow.execution.outcome", ended.name());
    match ended {
        ExecutionEnd::Failed(error) => {
            fail(span, &error.class(), error);
            tracing::event!(parent: span, Level::WARN, class = %error.class(), %error, "step failed");
        }
        ExecutionEnd::Refused => {
            tracing::event!(parent: span, Level::WARN, "commit refused: the run has ended");
        }
        ExecutionEnd::Succeeded | ExecutionEnd::Dropped => {}
    }
}

/// Records on the span of a failed attempt in which branch it failed.
fn note_item(span: &Span, item: Option<&BranchItem>) {
    if let Some(item) = item {
        span.record("workflow.branch.item", field::display(item));
    }
}

/// Records the final status on a run's span. Without a status the run stops here, and its journal has no end: only the
/// failure of its store is one of the run's span.
pub(crate) fn note_run(span: &Span, status: Option<RunStatus>, error: Option<&RunError>) {
    let is_failure = |error: &&RunError| status.is_some() || matches!(error, RunError::Store { .. });
    let failed = error.filter(is_failure).and_then(|error| Some((error, kind_of(error)?)));
    if let Some((error, kind)) = failed {
        fail(span, &kind, error);
    }
    let error = error.map(field::display);
    let Some(status) = status else {
        span.record("workflow.run.status", "detached");
        tracing::event!(parent: span, Level::INFO, error, "run detached");
        return;
    };
    span.record("workflow.run.status", field::display(status));
    tracing::event!(parent: span, Level::INFO, %status, error, "run ended");
}

fn fail(span: &Span, kind: &dyn std::fmt::Display, error: &dyn std::fmt::Display) {
    span.record("error.type", field::display(kind));
    span.record("otel.status_code", "ERROR");
    span.record("otel.status_description", field::display(error));
}

/// A word for each kind of error; `None` for a status that is no failure.
fn kind_of(error: &RunError) -> Option<&'static str> {
    Some(match error {
        RunError::Cancelled { .. } => return None,
        RunError::StepFailed { class, .. } => class.name(),
        RunError::BranchesFailed { .. } => "branches_failed",
        RunError::PreconditionFailed { .. } => "precondition_failed",
        RunError::Stalled(_) => "stalled",
        RunError::LogFull { .. } => "log_full",
        RunError::TooManyExecutions { .. } => "too_many_executions",
        RunError::Store { .. } | RunError::Conflict { .. } => "store",
        RunError::Detached => "abandoned",
        RunError::TimedOut { .. } => "timed_out",
        RunError::DeadlinePassed { .. } => "deadline_passed",
        RunError::Incompatible { .. } => "incompatible",
        RunError::Past { .. } => "past",
        RunError::UnexpectedStop { .. } => "unexpected_stop",
        RunError::OutputPanicked { .. } => "output_panicked",
        RunError::NotEnded => "not_ended",
        RunError::Unreadable { .. } => "unreadable",
        RunError::Build(_) | RunError::Start(_) => "not_started",
    })
}

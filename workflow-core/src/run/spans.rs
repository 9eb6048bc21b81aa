//! The `tracing` spans of one run: its own, and those of attempts that have not ended.

use std::time::Duration;

use rustc_hash::FxHashMap;
use tracing::Span;

use super::{Finished, RunShared};
use crate::error::{BranchItem, StepError};
use crate::id::{ExecutionId, ScopeId};
use crate::observe::trace_spans::{
    ExecutionEnd, execution_span, note_execution, note_retry, note_run, run_span,
};

/// The open spans of a run. All are disabled if no observer wants spans.
#[derive(Debug)]
pub(super) struct Spans {
    run: Span,
    executions: FxHashMap<ExecutionId, Span>,
}

impl Default for Spans {
    fn default() -> Self {
        Self { run: Span::none(), executions: FxHashMap::default() }
    }
}

impl Spans {
    /// Opens the run's span below the current one.
    pub(super) fn of(run: &RunShared) -> Self {
        if !run.common.observers.wants_spans() {
            return Self::default();
        }
        let run = run_span(&run.table.name, &run.id, run.thread(), run.trace_parent());
        Self { run, executions: FxHashMap::default() }
    }

    /// Opens the span of an attempt.
    #[inline]
    pub(super) fn begin(&mut self, step: &str, execution: ExecutionId, attempt: u32, scope: ScopeId) -> Span {
        if self.run.is_none() { Span::none() } else { self.begin_below(step, execution, attempt, scope) }
    }

    fn begin_below(&mut self, step: &str, execution: ExecutionId, attempt: u32, scope: ScopeId) -> Span {
        let span = execution_span(&self.run, step, execution, attempt, scope);
        if !span.is_disabled() {
            self.executions.insert(execution, span.clone());
        }
        span
    }

    /// Records on the span of an attempt that another one follows, and closes it.
    pub(super) fn retry(
        &mut self,
        execution: ExecutionId,
        error: &StepError,
        retry_in: Duration,
        item: impl FnOnce() -> Option<BranchItem>,
    ) {
        if let Some(span) = self.executions.remove(&execution) {
            note_retry(&span, error, retry_in, item().as_ref());
        }
    }

    /// Records the outcome on the span of an execution, and closes it.
    #[inline]
    pub(super) fn end(&mut self, execution: ExecutionId, ended: ExecutionEnd<'_>) {
        if self.executions.is_empty() {
            return;
        }
        if let Some(span) = self.executions.remove(&execution) {
            note_execution(&span, ended, None);
        }
    }

    /// The same for a failed execution, with the item of its branch.
    pub(super) fn fail(
        &mut self,
        execution: ExecutionId,
        error: &StepError,
        item: impl FnOnce() -> Option<BranchItem>,
    ) {
        if let Some(span) = self.executions.remove(&execution) {
            note_execution(&span, ExecutionEnd::Failed(error), item().as_ref());
        }
    }

    /// Records the end on the run's span, and closes all spans.
    pub(super) fn close(&mut self, finished: &Finished) {
        self.executions.clear();
        let run = std::mem::replace(&mut self.run, Span::none());
        if !run.is_disabled() {
            note_run(&run, finished.status, finished.outcome.as_ref().err());
        }
    }
}

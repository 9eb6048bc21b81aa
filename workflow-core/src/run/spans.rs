//! The `tracing` spans of one run: its own, and those of attempts that have not ended.

use std::time::Duration;

use rustc_hash::FxHashMap;
use tracing::Span;

use super::RunShared;
use crate::error::{BranchItem, StepError};
use crate::id::{ExecutionId, RunStatus, ScopeId};
use crate::observe::trace_spans::{
    ExecutionEnd, execution_span, note_execution, note_retry, note_run, run_span,
};
use crate::outcome::RunError;

/// The open spans of a run. All are disabled if no observer wants spans.
#[derive(Debug)]
pub(super) struct Spans {
    /// The run's own, once the run is announced: the store has it, and it is driven here (S81).
    run: Span,
    /// Those of executions. Until the run's own is open, the one in which the run was made stands under [`MADE_IN`], so that
    /// a run without spans has no room for it.
    executions: FxHashMap<ExecutionId, Span>,
}

/// The number that no execution has.
const MADE_IN: ExecutionId = ExecutionId(0);

impl Default for Spans {
    fn default() -> Self {
        Self { run: Span::none(), executions: FxHashMap::default() }
    }
}

impl Spans {
    /// The spans of a run that is made in the current one.
    pub(super) fn of(run: &RunShared) -> Self {
        let mut spans = Self::default();
        if run.common.observers.wants_spans() {
            spans.executions.insert(MADE_IN, Span::current());
        }
        spans
    }

    /// Opens the run's span.
    pub(super) fn open(&mut self, run: &RunShared) {
        if run.common.observers.wants_spans() {
            let parent = self.executions.remove(&MADE_IN).unwrap_or_else(Span::none);
            self.run = run_span(&parent, (&*run.table.name, &run.id, run.thread()), run.trace_parent());
        }
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

    /// Records the end on the run's span, and closes all spans. `status` is `None` for a run that stops here without an
    /// end.
    pub(super) fn close(&mut self, status: Option<RunStatus>, error: Option<&RunError>) {
        self.executions.clear();
        let run = std::mem::replace(&mut self.run, Span::none());
        if !run.is_disabled() {
            note_run(&run, status, error);
        }
    }
}

//! The reports of a run to observers, spans, metrics and viewers. This module decides nothing.

use std::sync::Arc;
use std::time::Duration;

use tracing::Span;

use super::RunShared;
use super::asked::Untold;
use super::check::ReplayCheck;
use super::finish::is_left;
use super::meter::Meter;
use super::spans::Spans;
use super::state::RunState;
use crate::error::StepError;
use crate::id::{ExecutionId, Seq};
use crate::observe::Observed;
use crate::observe::trace_spans::ExecutionEnd;
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::{Cause, ExecutionStart};
use crate::store::Record;
use crate::table::EventIndex;

/// The spans and metrics of one run, and its replay check in tests.
pub(super) struct Telemetry {
    pub(super) spans: Spans,
    pub(super) meter: Meter,
    pub(super) check: Option<Box<ReplayCheck>>,
    /// News of requests for viewers. Only in a run that has been viewed.
    pub(super) untold: Option<Box<Untold>>,
}

impl Telemetry {
    /// The telemetry of a run that starts or resumes. There is none before the run is announced (S81).
    pub(super) fn new(shared: &RunShared, meter: Meter) -> Self {
        Self { spans: Spans::of(shared), meter, check: None, untold: None }
    }

    /// The store has the run, and this process drives it. `begins`: no process did before.
    pub(super) fn open(&mut self, shared: &RunShared, begins: bool) {
        self.spans.open(shared);
        if begins {
            self.meter.began();
        } else {
            self.meter.runs();
        }
    }

    /// A run that waited is loaded again.
    pub(super) fn open_loaded(&mut self, shared: &RunShared) {
        self.spans.open(shared);
        self.meter.waits();
    }

    /// The telemetry of a restored run, without spans.
    pub(super) fn unspanned(meter: Meter, check: Option<Box<ReplayCheck>>) -> Self {
        Self { spans: Spans::default(), meter, check, untold: None }
    }

    /// Compares the state with the replayed one, if the replay check is on.
    #[inline]
    pub(super) fn compare(&mut self, state: &RunState) {
        if let Some(check) = &mut self.check {
            check.compare(state);
        }
    }

    /// Passes records to the replay check, if it is on.
    pub(super) fn journaled(&mut self, records: &[Record]) {
        if let Some(check) = &mut self.check {
            check.take(records);
        }
    }

    /// Reports that an execution begins. Returns the span of its first attempt.
    #[inline]
    pub(super) fn began(&mut self, shared: &RunShared, state: &RunState, start: &ExecutionStart) -> Span {
        let name = &state.table().step(start.step).name;
        let ExecutionStart { execution, scope, trigger, .. } = *start;
        shared.tell(|| Observed::ExecutionStarted { execution, step: Arc::clone(name), scope, trigger });
        self.spans.begin(name, execution, 1, scope)
    }

    /// Reports that another attempt begins. Returns its span.
    pub(super) fn began_again(
        &mut self,
        shared: &RunShared,
        state: &RunState,
        start: &ExecutionStart,
        attempt: u32,
    ) -> Span {
        let name = &state.table().step(start.step).name;
        let ExecutionStart { execution, scope, .. } = *start;
        shared.tell(|| Observed::AttemptStarted { execution, step: Arc::clone(name), attempt });
        self.spans.begin(name, execution, attempt, scope)
    }

    /// Reports a failed attempt that another one follows.
    pub(super) fn retries(
        &mut self,
        shared: &RunShared,
        state: &RunState,
        execution: ExecutionId,
        (error, failed): (&StepError, &FailedAttempt),
    ) {
        self.spans.retry(execution, error, failed.retry_in, || state.item_of(execution));
        let Some(step) = state.step_of(execution) else { return };
        let name = &state.table().step(step).name;
        self.meter.retried(name, failed.class);
        shared.tell(|| Observed::AttemptFailed {
            execution,
            step: Arc::clone(name),
            attempt: state.trace.attempt(execution),
            class: failed.class,
            error: failed.error.clone(),
            retry_in: failed.retry_in,
            compacts: failed.compacts,
        });
    }

    /// Closes the span of an execution and counts its end.
    #[inline]
    fn ended(&mut self, state: &RunState, execution: ExecutionId, ended: ExecutionEnd<'_>) {
        self.spans.end(execution, ended);
        self.count(state, execution, ended, || state.trace.took(execution));
    }

    #[inline]
    fn count(
        &mut self,
        state: &RunState,
        execution: ExecutionId,
        ended: ExecutionEnd<'_>,
        took: impl FnOnce() -> Duration,
    ) {
        if cfg!(feature = "metrics")
            && let Some(step) = state.step_of(execution)
        {
            self.meter.executed(&state.table().step(step).name, ended, took);
        }
    }

    /// Reports an execution whose batch is in the log.
    #[inline]
    pub(super) fn succeeded(&mut self, shared: &RunShared, state: &RunState, execution: ExecutionId) {
        self.ended(state, execution, ExecutionEnd::Succeeded);
        shared.tell(|| Observed::ExecutionSucceeded {
            execution,
            step: name_of(state, execution),
            took: state.trace.took(execution),
        });
    }

    pub(super) fn failed(
        &mut self,
        shared: &RunShared,
        state: &RunState,
        execution: ExecutionId,
        (error, not_retried, took): (&StepError, NotRetried, Duration),
    ) {
        self.spans.fail(execution, error, || state.item_of(execution));
        self.count(state, execution, ExecutionEnd::Failed(error), || took);
        shared.tell(|| Observed::ExecutionFailed {
            execution,
            step: name_of(state, execution),
            class: error.class(),
            error: error.to_string(),
            not_retried,
            took,
        });
    }

    pub(super) fn dropped(&mut self, shared: &RunShared, state: &RunState, execution: ExecutionId) {
        self.ended(state, execution, ExecutionEnd::Dropped);
        shared.tell(|| Observed::ExecutionDropped { execution, step: name_of(state, execution) });
    }

    /// Reports an execution whose events the run refused (S28).
    pub(super) fn refused(
        &mut self,
        shared: &RunShared,
        state: &RunState,
        execution: ExecutionId,
        events: Vec<Arc<str>>,
    ) {
        self.ended(state, execution, ExecutionEnd::Refused);
        let step = name_of(state, execution);
        shared.tell(|| Observed::CommitRefused { execution, step, events });
    }

    /// Reports an answer of a precondition; `None` if it failed.
    pub(super) fn answered(
        shared: &RunShared,
        state: &RunState,
        (step, trigger): (crate::table::StepIndex, Seq),
        answer: Option<bool>,
    ) {
        let row = state.table().step(step);
        if let Some(precondition) = &row.precondition {
            shared.tell(|| Observed::PreconditionAnswered {
                step: Arc::clone(&row.name),
                precondition: Arc::clone(&precondition.name),
                trigger,
                answer,
            });
        }
    }

    /// Reports an event that is in the log for good. An event that is both control and display is displayed
    /// now (S2).
    #[inline]
    pub(super) fn logged(&self, shared: &RunShared, state: &RunState, seq: Seq, event: EventIndex) {
        self.meter.logged();
        if !shared.common.observers.is_empty() || state.table().event(event).roles.is_display() {
            Self::show(shared, state, seq);
        }
    }

    #[inline(never)]
    fn show(shared: &RunShared, state: &RunState, seq: Seq) {
        let Some(record) = state.log.get(seq) else { return };
        let (event, scope, cause) = (&record.event, record.scope, record.cause);
        shared.tell(|| Observed::EventLogged { seq, scope, event: event.clone(), cause });
        if !event.roles().is_display() {
            return;
        }
        let (Cause::Execution(execution) | Cause::Timer { execution, .. }) = cause else {
            return shared.display().receive(event.clone());
        };
        if let Some(step) = state.step_of(execution) {
            let attempt = state.trace.attempt(execution);
            shared.display_for(step.get(), execution, attempt).show_logged(event.clone());
        }
    }

    /// Reports the end of the run, at this time from its beginning, or that it stops here without an end. Nothing of a run
    /// that was not announced.
    pub(super) fn close(&mut self, shared: &RunShared, finished: &super::Finished, now: Duration) {
        let is_left = shared.common.is_durable && is_left(&finished.outcome);
        let status = (!is_left).then_some(finished.status);
        let kept = finished.kept.as_ref();
        let incomplete = || kept.map(super::view::EndedState::incomplete_clean_up).unwrap_or_default();
        // The end of a run whose clean-up was redriven was reported before.
        let is_new = !kept.is_some_and(super::view::EndedState::only_cleaned_up);
        let error = finished.outcome.as_ref().err().filter(|_| is_new || !incomplete().is_empty());
        self.spans.close(status, error);
        if status.is_some() {
            self.meter.left_unfinished(incomplete);
        }
        self.meter.ended(status.filter(|_| is_new), now);
    }
}

fn name_of(state: &RunState, execution: ExecutionId) -> Arc<str> {
    let step = state.step_of(execution);
    step.map_or_else(|| "".into(), |step| Arc::clone(&state.table().step(step).name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;
    use crate::run::bare_run::{BareRun, Begin, Done, Draft, WRITE};
    use crate::run::state::EffectKind;

    const AT: Duration = Duration::ZERO;

    fn telemetry(run: &BareRun) -> Telemetry {
        Telemetry::new(&run.shared, Meter::new(&run.host.table.name))
    }

    /// The start of `write`.
    fn start(run: &mut BareRun) -> ExecutionStart {
        let Some(EffectKind::Execution(start)) = run.state.next_effect(None) else { panic!("it is due") };
        start
    }

    #[test]
    fn observers_learn_of_each_attempt_and_how_it_ended() {
        let mut run = BareRun::begun();
        let (mut telemetry, start) = (telemetry(&run), start(&mut run));
        telemetry.began(&run.shared, &run.state, &start);
        let (class, error) = (ErrorClass::Tool, "busy".into());
        let failed = FailedAttempt { class, error, retry_in: AT, compacts: false, redriven: false };
        let error = StepError::tool("busy");
        telemetry.retries(&run.shared, &run.state, WRITE, (&error, &failed));
        telemetry.began_again(&run.shared, &run.state, &start, 2);
        assert_eq!(run.seen.take(), ["ExecutionStarted", "AttemptFailed", "AttemptStarted"]);

        telemetry.failed(&run.shared, &run.state, WRITE, (&error, NotRetried::Class, AT));
        telemetry.dropped(&run.shared, &run.state, WRITE);
        telemetry.refused(&run.shared, &run.state, WRITE, vec!["Draft".into()]);
        telemetry.succeeded(&run.shared, &run.state, WRITE);
        let ended = ["ExecutionFailed", "ExecutionDropped", "CommitRefused", "ExecutionSucceeded"];
        assert_eq!(run.seen.take(), ended);
    }

    // S2
    #[test]
    fn an_event_that_is_shown_too_is_shown_once_it_is_in_the_log() {
        let mut run = BareRun::begun();
        let telemetry = telemetry(&run);
        telemetry.logged(&run.shared, &run.state, Seq(1), run.event::<Begin>());
        assert_eq!(run.seen.take(), ["EventLogged Begin"]);
        run.state.trace.begin(WRITE, AT);
        run.apply(1, run.returned(WRITE, Draft));
        telemetry.logged(&run.shared, &run.state, Seq(2), run.event::<Draft>());
        assert_eq!(run.seen.take(), ["EventLogged Draft", "Displayed"]);
        telemetry.logged(&run.shared, &run.state, Seq(9), run.event::<Done>());
        assert!(run.seen.take().is_empty(), "it is not in the log");
    }

    #[test]
    fn only_steps_with_a_precondition_report_answers() {
        let run = BareRun::begun();
        for step in ["write", "send"] {
            Telemetry::answered(&run.shared, &run.state, (run.step(step), Seq(1)), Some(true));
        }
        assert_eq!(run.seen.take(), ["PreconditionAnswered"]);
    }

    #[test]
    fn a_run_without_a_check_and_spans_reports_all_the_same() {
        let mut run = BareRun::begun();
        let mut telemetry = Telemetry::unspanned(Meter::new(&run.host.table.name), None);
        telemetry.compare(&run.state);
        telemetry.journaled(&[]);
        let start = start(&mut run);
        assert!(telemetry.began(&run.shared, &run.state, &start).is_none());
        telemetry.succeeded(&run.shared, &run.state, WRITE);
        assert_eq!(run.seen.take(), ["ExecutionStarted", "ExecutionSucceeded"]);
    }
}

//! Metrics of one run, through the `metrics` facade. Without the feature `metrics`, everything here is empty.

use std::sync::Arc;
use std::time::Duration;

use crate::error::ErrorClass;

#[cfg(feature = "metrics")]
pub(crate) use on::{GaugeEntry, Meter, describe};

#[cfg(not(feature = "metrics"))]
pub(crate) use off::{GaugeEntry, Meter, describe};

/// The metrics, with the feature `metrics`.
///
/// Names follow the conventions of Prometheus: a counter ends in `_total`, and a time in `_seconds`.
#[cfg(feature = "metrics")]
mod on {
    use metrics::{Counter, Label, SharedString, Unit, counter, gauge, histogram};

    use super::{Arc, Duration, ErrorClass};
    use crate::id::RunStatus;
    use crate::observe::trace_spans::ExecutionEnd;

    const STARTED: &str = "workflow_runs_started_total";
    const ENDED: &str = "workflow_runs_ended_total";
    const INCOMPLETE: &str = "workflow_cleanup_steps_incomplete_total";
    const RUN_DURATION: &str = "workflow_run_duration_seconds";
    const EXECUTIONS: &str = "workflow_executions_total";
    const EXECUTION_DURATION: &str = "workflow_execution_duration_seconds";
    const RETRIES: &str = "workflow_retries_total";
    const EVENTS: &str = "workflow_events_logged_total";
    const RUNNING: &str = "workflow_runs_running";
    const WAITING: &str = "workflow_runs_waiting";
    const QUEUED: &str = "workflow_runs_queued";

    /// A gauge that counts runs. Smaller than its name, since each run that waits in its store has one.
    #[derive(Debug, Clone, Copy)]
    enum Level {
        Running,
        Waiting,
        Queued,
    }

    impl Level {
        fn name(self) -> &'static str {
            match self {
                Self::Running => RUNNING,
                Self::Waiting => WAITING,
                Self::Queued => QUEUED,
            }
        }
    }

    const EXECUTIONS_WAITING: &str = "workflow_executions_waiting";

    /// Describes the metrics to the recorder.
    pub(crate) fn describe() {
        metrics::describe_counter!(STARTED, "Runs that began");
        metrics::describe_counter!(ENDED, "Runs that ended, by how they did");
        metrics::describe_counter!(
            INCOMPLETE,
            "Clean-up steps that are unfinished at the end of their run, by step"
        );
        metrics::describe_histogram!(RUN_DURATION, Unit::Seconds, "Time from a run's beginning to its end");
        metrics::describe_counter!(EXECUTIONS, "Executions that ended, by step and what came of them");
        metrics::describe_histogram!(
            EXECUTION_DURATION,
            Unit::Seconds,
            "Time that an execution took, with every attempt and the time between them"
        );
        metrics::describe_counter!(
            RETRIES,
            "Attempts that failed and are to be followed by another, by step and class of the failure"
        );
        metrics::describe_counter!(EVENTS, "Events that entered a log");
        metrics::describe_gauge!(
            RUNNING,
            "Runs that have begun, and neither ended nor wait for a timer or the outside nor are paused; those that \
             wait for a permit to continue are among them"
        );
        metrics::describe_gauge!(
            WAITING,
            "Runs that wait for a timer or for something from outside, or are paused"
        );
        metrics::describe_gauge!(QUEUED, "Runs that wait for a permit, to begin or to continue");
        metrics::describe_gauge!(EXECUTIONS_WAITING, "Executions that wait for their turn");
    }

    /// The metrics of one run.
    pub(crate) struct Meter {
        workflow: SharedString,
        events: Counter,
        /// The gauge that counts the run now, from its beginning to its end.
        level: Option<GaugeEntry>,
        waiting: usize,
    }

    impl Meter {
        pub(crate) fn new(workflow: &Arc<str>) -> Self {
            let workflow = SharedString::from_shared(Arc::clone(workflow));
            let events = counter!(EVENTS, vec![of(&workflow)]);
            Self { workflow, events, level: None, waiting: 0 }
        }

        pub(crate) fn began(&mut self) {
            counter!(STARTED, vec![of(&self.workflow)]).increment(1);
            self.runs();
        }

        /// Counts the run as running.
        pub(crate) fn runs(&mut self) {
            self.level = Some(GaugeEntry::rise(Level::Running, self.workflow.clone()));
        }

        /// Counts the run as waiting for a timer or the outside.
        pub(crate) fn waits(&mut self) {
            self.level = Some(GaugeEntry::rise(Level::Waiting, self.workflow.clone()));
        }

        /// Takes the run's place in its gauge, to keep it beyond this meter.
        pub(crate) fn level(&mut self) -> Option<GaugeEntry> {
            self.level.take()
        }

        pub(crate) fn logged(&self) {
            self.events.increment(1);
        }

        /// Takes the metrics out, and leaves a meter that counts nothing.
        pub(crate) fn take(&mut self) -> Self {
            let (workflow, events) = (self.workflow.clone(), self.events.clone());
            Self { workflow, events, level: self.level.take(), waiting: std::mem::take(&mut self.waiting) }
        }

        /// Counts an execution that ended.
        pub(crate) fn executed(
            &self,
            step: &Arc<str>,
            ended: ExecutionEnd<'_>,
            took: impl FnOnce() -> Duration,
        ) {
            let step = Label::new("step", SharedString::from_shared(Arc::clone(step)));
            let labels = vec![of(&self.workflow), step, Label::from_static_parts("outcome", ended.name())];
            counter!(EXECUTIONS, labels.clone()).increment(1);
            histogram!(EXECUTION_DURATION, labels).record(took());
        }

        /// Counts a failed attempt that another one follows.
        pub(crate) fn retried(&self, step: &Arc<str>, class: ErrorClass) {
            let step = Label::new("step", SharedString::from_shared(Arc::clone(step)));
            let class = Label::from_static_parts("class", class.name());
            counter!(RETRIES, vec![of(&self.workflow), step, class]).increment(1);
        }

        /// Sets how many executions wait for their turn.
        pub(crate) fn queue(&mut self, waiting: usize) {
            if waiting != self.waiting {
                let gauge = gauge!(EXECUTIONS_WAITING, vec![of(&self.workflow)]);
                gauge.increment(difference(self.waiting, waiting));
                self.waiting = waiting;
            }
        }

        /// Counts the unfinished clean-up steps of a run that has ended, if it had begun.
        pub(crate) fn left_unfinished(&self, steps: impl FnOnce() -> Vec<Arc<str>>) {
            if self.level.is_none() {
                return;
            }
            for step in steps() {
                let step = Label::new("step", SharedString::from_shared(step));
                counter!(INCOMPLETE, vec![of(&self.workflow), step]).increment(1);
            }
        }

        /// Counts the end of the run, if it had begun. `None`: it stops here without an end, or its end was counted before.
        pub(crate) fn ended(&mut self, status: Option<RunStatus>, took: Duration) {
            self.queue(0);
            if let (Some(_), Some(status)) = (self.level.take(), status) {
                let labels = vec![of(&self.workflow), Label::new("status", status.to_string())];
                counter!(ENDED, labels.clone()).increment(1);
                histogram!(RUN_DURATION, labels).record(took);
            }
        }
    }

    fn of(workflow: &SharedString) -> Label {
        Label::new("workflow", workflow.clone())
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and no queue is that long")]
    fn difference(before: usize, now: usize) -> f64 {
        now as f64 - before as f64
    }

    /// One in a gauge. Dropping it lowers the gauge.
    #[derive(Debug)]
    pub(crate) struct GaugeEntry {
        level: Level,
        workflow: SharedString,
    }

    impl GaugeEntry {
        /// Counts a run that waits for a permit.
        pub(crate) fn queued(workflow: &Arc<str>) -> Self {
            Self::rise(Level::Queued, SharedString::from_shared(Arc::clone(workflow)))
        }

        /// Counts a run that waits and is not loaded.
        pub(crate) fn waiting(workflow: &Arc<str>) -> Self {
            Self::rise(Level::Waiting, SharedString::from_shared(Arc::clone(workflow)))
        }

        fn rise(level: Level, workflow: SharedString) -> Self {
            gauge!(level.name(), vec![of(&workflow)]).increment(1.0);
            Self { level, workflow }
        }
    }

    impl Drop for GaugeEntry {
        fn drop(&mut self) {
            gauge!(self.level.name(), vec![of(&self.workflow)]).decrement(1.0);
        }
    }
}

#[cfg(not(feature = "metrics"))]
mod off {
    use super::{Arc, Duration, ErrorClass};
    use crate::id::RunStatus;
    use crate::observe::trace_spans::ExecutionEnd;

    pub(crate) fn describe() {}

    pub(crate) struct Meter;

    #[expect(clippy::unused_self, reason = "it is what the feature makes of it")]
    impl Meter {
        pub(crate) fn new(_: &Arc<str>) -> Self {
            Self
        }

        pub(crate) fn began(&mut self) {}

        pub(crate) fn runs(&mut self) {}

        pub(crate) fn waits(&mut self) {}

        pub(crate) fn level(&mut self) -> Option<GaugeEntry> {
            None
        }

        pub(crate) fn take(&mut self) -> Self {
            Self
        }

        pub(crate) fn logged(&self) {}

        pub(crate) fn executed(&self, _: &Arc<str>, _: ExecutionEnd<'_>, _: impl FnOnce() -> Duration) {}

        pub(crate) fn retried(&self, _: &Arc<str>, _: ErrorClass) {}

        pub(crate) fn queue(&mut self, _: usize) {}

        pub(crate) fn left_unfinished(&self, _: impl FnOnce() -> Vec<Arc<str>>) {}

        pub(crate) fn ended(&mut self, _: Option<RunStatus>, _: Duration) {}
    }

    #[derive(Debug)]
    pub(crate) struct GaugeEntry;

    impl GaugeEntry {
        pub(crate) fn queued(_: &Arc<str>) -> Self {
            Self
        }

        pub(crate) fn waiting(_: &Arc<str>) -> Self {
            Self
        }
    }
}

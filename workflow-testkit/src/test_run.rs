//! A run that a scenario has started, with what can be asserted of it.

use std::fmt::Debug;
use std::sync::Arc;

use workflow_core::{RunError, RunHandle, RunReport, RunStatus, Workflow};

use crate::transcript;

/// A run of a scenario: it has ended, or waits for something from outside.
#[derive(Debug)]
pub struct TestRun<W: Workflow> {
    handle: RunHandle<W>,
    status: RunStatus,
    ended: Option<Ended<W>>,
}

struct Ended<W: Workflow> {
    outcome: Result<W::Output, RunError>,
    report: Arc<RunReport>,
}

impl<W: Workflow> Debug for Ended<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ended").field("error", &self.outcome.as_ref().err()).finish_non_exhaustive()
    }
}

impl<W: Workflow> TestRun<W> {
    pub(crate) async fn settle(handle: RunHandle<W>) -> Self {
        let mut run = Self { handle, status: RunStatus::Running, ended: None };
        run.settled().await;
        run
    }

    /// Waits until the run ends or waits again: after something was sent to a waiting run.
    pub async fn settled(&mut self) -> RunStatus {
        self.status = self.handle.settled().await;
        if self.status.is_ended() {
            let outcome = self.handle.outcome().await;
            let report = self.handle.report().await;
            self.ended = report.ok().map(|report| Ended { outcome, report });
        }
        self.status
    }

    /// The handle on the run, to send, reply or cancel.
    pub fn handle(&self) -> &RunHandle<W> {
        &self.handle
    }

    /// Where the run stood when it was last settled.
    pub fn status(&self) -> RunStatus {
        self.status
    }

    /// What the run ended with.
    ///
    /// # Errors
    /// How it ended, if not with its output.
    ///
    /// # Panics
    /// If the run has not ended.
    pub fn outcome(&self) -> Result<&W::Output, &RunError> {
        self.ended().outcome.as_ref()
    }

    /// What the run did.
    ///
    /// # Panics
    /// If the run has not ended.
    pub fn report(&self) -> &RunReport {
        &self.ended().report
    }

    /// How often the step was executed, in all scopes.
    ///
    /// # Panics
    /// If the run has not ended, or the workflow has no such step.
    pub fn executions(&self, step: &str) -> u64 {
        let known = self.report().steps.iter().any(|row| &*row.step == step);
        assert!(known, "the workflow has no step `{step}`; {}", self.transcript());
        self.report().executions(step)
    }

    /// Asserts what the run ended with.
    ///
    /// # Panics
    /// If it ended with something else, with how it ended and what it did.
    pub fn assert_output(&self, expected: &W::Output)
    where
        W::Output: PartialEq + Debug,
    {
        match self.outcome() {
            Ok(output) => assert_eq!(output, expected, "the run did this:\n{}", self.transcript()),
            Err(error) => panic!("{error}\nthe run did this:\n{}", self.transcript()),
        }
    }

    /// Asserts how often a step was executed, in all scopes.
    ///
    /// # Panics
    /// If it was executed more or less often, with what the run did.
    pub fn assert_executions(&self, step: &str, expected: u64) {
        let executions = self.executions(step);
        assert_eq!(executions, expected, "executions of `{step}`; the run did this:\n{}", self.transcript());
    }

    /// What the run did, as text without times or generated names: the log's events and the executions, in
    /// order. Made for golden tests.
    ///
    /// # Panics
    /// If the run has not ended.
    pub fn transcript(&self) -> String {
        transcript::of(self.report())
    }

    fn ended(&self) -> &Ended<W> {
        let status = self.status;
        self.ended.as_ref().unwrap_or_else(|| panic!("the run has not ended: it is {status}"))
    }
}

//! A run that a scenario has started: where it stands, what it did, and what it ended with. What can be asserted of
//! it is in `assert`, and how a test goes on with one that waits in `by_hand`.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use workflow_core::{
    AnyEvent, ChildRun, ControlEvent, DisplayEvent, DisplayItem, ExecutionId, ExecutionTrace, Explanation,
    RunError, RunHandle, RunId, RunReport, RunStatus, StallReport, Workflow,
};

use crate::journal::{Called, Journal};
use crate::stage::{Settled, Stage};
use crate::start::Failure;
use crate::transcript::{self, Seen};

mod assert;
mod by_hand;

/// A run of a scenario: it has ended, or waits for something that is in no script, or for anything at all if the
/// scenario goes on [until it waits](crate::ScenarioOf::until_it_waits).
///
/// What it did is read from [`transcript`](Self::transcript) and asserted on; every assertion that fails prints the
/// transcript and the explanation of the run. A run that waits is gone on with by hand, by [`send`](Self::send),
/// [`reply`](Self::reply), [`cancel`](Self::cancel) and [`advance`](Self::advance), and ends with this value.
#[derive(Debug)]
pub struct TestRun<W: Workflow> {
    handle: RunHandle<W>,
    /// Where it goes on; none if it was driven elsewhere.
    stage: Option<Stage<W>>,
    journal: Journal,
    settled: Settled,
    displayed: Vec<DisplayItem>,
    ended: Option<Ended<W>>,
}

struct Ended<W: Workflow> {
    outcome: Result<W::Output, RunError>,
    report: Arc<RunReport>,
}

impl<W: Workflow> Debug for Ended<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended").field("error", &self.outcome.as_ref().err()).finish_non_exhaustive()
    }
}

impl<W: Workflow> TestRun<W> {
    pub(crate) async fn settle(
        mut stage: Stage<W>,
        handle: RunHandle<W>,
        journal: Journal,
    ) -> Result<Self, Failure> {
        let settled = stage.settle(Duration::ZERO).await;
        Self::seen(Some(stage), handle, journal, settled).await
    }

    /// A run that was driven on the current runtime until it ended, or waits.
    pub(crate) async fn driven(
        handle: RunHandle<W>,
        journal: Journal,
        elapsed: Duration,
    ) -> Result<Self, Failure> {
        handle.settled().await;
        let settled = Settled::of(&handle, journal.recording(), elapsed).await;
        Self::seen(None, handle, journal, settled).await
    }

    /// A run that was driven on the current runtime and goes on no further, as it stands.
    pub(crate) async fn driven_so_far(
        handle: RunHandle<W>,
        journal: Journal,
        elapsed: Duration,
    ) -> Result<Self, Failure> {
        let settled = Settled::of(&handle, journal.recording(), elapsed).await;
        Self::seen(None, handle, journal, settled).await
    }

    async fn seen(
        stage: Option<Stage<W>>,
        handle: RunHandle<W>,
        journal: Journal,
        settled: Settled,
    ) -> Result<Self, Failure> {
        let mut run = Self { handle, stage, journal, settled, displayed: Vec::new(), ended: None };
        run.look().await?;
        Ok(run)
    }

    /// Waits until the run ends or waits again: after something was sent to a waiting run. What is left of the
    /// scenario's script goes on.
    ///
    /// A run whose scenario goes on [until it waits](crate::ScenarioOf::until_it_waits) waits again as soon as nothing
    /// in it can go on and the script has nothing for it at that time; if that is so already, nothing happens.
    ///
    /// # Panics
    /// As [`Start`](crate::Start), if the run does not end.
    pub async fn settled(&mut self) -> RunStatus {
        self.settle_after(Duration::ZERO).await
    }

    /// Waits until so much virtual time has passed and the run waits, or has ended.
    async fn settle_after(&mut self, time: Duration) -> RunStatus {
        if self.ended.is_none()
            && let Some(stage) = &mut self.stage
        {
            self.settled = stage.settle(time).await;
            let looked = self.look().await;
            looked.unwrap_or_else(|failure| panic!("{failure}"));
        }
        self.settled.status
    }

    /// Takes in what the run did.
    async fn look(&mut self) -> Result<(), Failure> {
        if self.settled.status.is_ended() {
            let outcome = self.handle.outcome().await;
            let report = self.handle.report().await;
            self.ended = report.ok().map(|report| Ended { outcome, report });
        }
        self.displayed = shown(&self.handle);
        let given_up = self.settled.given_up.map(|given_up| given_up.to_string());
        match given_up.or_else(|| self.journal.endless()) {
            Some(why) => Err(Failure(format!("{why}\n{}", self.evidence()))),
            None => Ok(()),
        }
    }

    /// The handle on the run: for what else a run can be asked.
    ///
    /// Who has it need not call [`settled`](Self::settled) for the run to answer. From then on the run goes on by itself
    /// while it is not being settled, on its own thread, but its clock stands still: a step that sleeps does not wake up
    /// before `settled` is called. What two threads do at the same time comes in either order. So a test that is to be
    /// the same each time goes on with the run by [`send`](Self::send), [`reply`](Self::reply) and
    /// [`cancel`](Self::cancel).
    pub fn handle(&self) -> &RunHandle<W> {
        if let Some(stage) = &self.stage {
            stage.go_on();
        }
        &self.handle
    }

    /// Where the run stood when it was last settled.
    pub fn status(&self) -> RunStatus {
        self.settled.status
    }

    /// How much virtual time had passed since the start when the run was last settled.
    pub fn elapsed(&self) -> Duration {
        self.settled.elapsed
    }

    /// What the run ended with.
    ///
    /// # Errors
    /// How it ended, if not with its output.
    ///
    /// # Panics
    /// If the run has not ended.
    #[track_caller]
    pub fn outcome(&self) -> Result<&W::Output, &RunError> {
        self.ended().outcome.as_ref()
    }

    /// What the run did; of a run that waits, until it was last settled.
    ///
    /// # Panics
    /// If the task that drove the run is gone, and its state with it.
    #[track_caller]
    pub fn report(&self) -> &RunReport {
        let report = self.reported();
        report.unwrap_or_else(|| panic!("the task that drove the run is gone: it is {}", self.settled.status))
    }

    fn reported(&self) -> Option<&RunReport> {
        let ended = self.ended.as_ref().map(|ended| &ended.report);
        ended.or(self.settled.report.as_ref()).map(|report| &**report)
    }

    /// Why each step ran, and why it did not: of a run that waits, as it stood when it was last settled. None if the
    /// task that drove the run is gone, and its state with it.
    pub fn explanation(&self) -> Option<Arc<Explanation>> {
        if let Some(explanation) = &self.settled.explanation {
            return Some(Arc::clone(explanation));
        }
        // What is kept of an ended run answers at once.
        tokio::task::unconstrained(self.handle.explain()).now_or_never()?.ok()
    }

    /// Why the run stalled; none if it did not.
    ///
    /// # Panics
    /// If the run has not ended.
    #[track_caller]
    pub fn stall(&self) -> Option<&StallReport> {
        match self.outcome() {
            Err(RunError::Stalled(report)) => Some(report),
            _ => None,
        }
    }

    /// How often the step was executed, in all scopes; of a run that waits, until it was last settled.
    ///
    /// # Panics
    /// If the workflow has no such step.
    #[track_caller]
    pub fn executions(&self, step: &str) -> u64 {
        self.assert_step(step);
        match &self.ended {
            Some(ended) => ended.report.executions(step),
            // Others may have gone on with it before.
            None if self.stage.is_none() => self.report().executions(step),
            None => self.journal.executions(step),
        }
    }

    /// The events of type `E` that steps emitted, in the order in which they entered the log; of a run that waits,
    /// until it was last settled. What timers brought later is in the [report](Self::report)'s log.
    pub fn emitted<E: ControlEvent>(&self) -> Vec<Arc<E>> {
        let mut calls = self.journal.calls();
        if let Some(ended) = &self.ended {
            keep_committed(&mut calls, &ended.report);
        }
        calls.iter().flat_map(|call| &call.emitted).filter_map(AnyEvent::downcast).collect()
    }

    /// The events of type `E` that the run and its child runs showed and did not take back, in order. A scenario keeps the last 65,536
    /// that a run shows.
    pub fn displayed<E: DisplayEvent>(&self) -> Vec<&E> {
        let retracted: HashSet<_> = self.displayed.iter().filter_map(retracted).collect();
        let stands = self.displayed.iter().filter(|item| match item {
            DisplayItem::Shown { execution, attempt, .. } => {
                !retracted.contains(&(None, *execution, *attempt))
            }
            DisplayItem::Child { path, item } => attempts_of(path, item).all(|of| !retracted.contains(&of)),
            _ => true,
        });
        stands.filter_map(DisplayItem::event).collect()
    }

    /// What the run did, as text that is the same each time: without times and generated names. Made for golden tests.
    ///
    /// It holds, in the order in which it happened, every event of the log with where it comes from and its value,
    /// every execution with what it took, what came of it and what it showed, what preconditions answered, and when the
    /// run waited; and then how the run ended: with which event or error, or, of a run that waits, what it waits for. An
    /// execution has one line, unless something else happened between its start and its end: then it has a line for
    /// each. Values are compact JSON with sorted keys, of which the first 200 characters are there, with a digest of the
    /// whole; a value without fields is left out. What a value is made of has to be the same each time as well.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(start)]
    /// struct RefundAsked { order: u64 }
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(request, reply = bool)]
    /// struct ApproveRefund { cents: u64 }
    ///
    /// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// #[event(stop)]
    /// struct Refunded { cents: u64 }
    ///
    /// struct Refunds;
    ///
    /// #[workflow]
    /// impl Refunds {
    ///     #[step]
    ///     async fn ask(&self, refund: &RefundAsked) -> ApproveRefund {
    ///         ApproveRefund { cents: 100 * refund.order }
    ///     }
    ///
    ///     #[step]
    ///     async fn pay(&self, approval: &Reply<ApproveRefund>) -> Refunded {
    ///         Refunded { cents: if **approval { approval.request().cents } else { 0 } }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let run = Scenario::new(Refunds).start(RefundAsked { order: 17 }).await;
    /// assert_eq!(run.transcript(), "\
    /// #1 RefundAsked from outside: {\"order\":17}
    /// x1 ask by #1: succeeded
    /// #2 ApproveRefund of x1: {\"cents\":1700}
    /// waiting
    ///    for the reply to #2 ApproveRefund
    /// ");
    /// # }
    /// ```
    ///
    /// # Panics
    /// As [`report`](Self::report).
    #[track_caller]
    pub fn transcript(&self) -> String {
        self.transcript_by(self.report())
    }

    fn transcript_by(&self, report: &RunReport) -> String {
        let Settled { status, explanation, open, observed, .. } = &self.settled;
        transcript::of(&Seen {
            report,
            status: *status,
            observed: &self.journal.recording().first(*observed),
            error: self.ended.as_ref().and_then(|ended| ended.outcome.as_ref().err()),
            explanation: explanation.as_deref(),
            open,
        })
    }

    /// Everything that explains a failed assertion.
    fn evidence(&self) -> String {
        let did = self.reported().map(|report| transcript::shortened(&self.transcript_by(report)));
        let did = did.map(|transcript| format!("the run did this:\n{transcript}"));
        let explanation = self.explanation();
        let explained = explanation.map(|explanation| transcript::shortened(&explanation.to_string()));
        did.into_iter().chain(explained).collect()
    }

    fn calls(&self) -> Vec<Called> {
        self.journal.calls()
    }

    #[track_caller]
    fn ended(&self) -> &Ended<W> {
        let status = self.settled.status;
        self.ended
            .as_ref()
            .unwrap_or_else(|| panic!("the run has not ended: it is {status}\n{}", self.evidence()))
    }
}

/// Keeps the calls whose events are in the log, in the log's order.
fn keep_committed(calls: &mut Vec<Called>, report: &RunReport) {
    let first = |trace: &ExecutionTrace| Some((trace.execution, *trace.emitted.first()?));
    let committed: HashMap<_, _> = report.trace.iter().filter_map(first).collect();
    calls.retain(|call| committed.contains_key(&call.execution));
    calls.sort_by_key(|call| committed[&call.execution]);
}

/// An attempt of an execution, in this run or in a child.
type Attempt<'a> = (Option<&'a RunId>, ExecutionId, u32);

/// The attempt that took back what it had shown.
fn retracted(item: &DisplayItem) -> Option<Attempt<'_>> {
    match item {
        DisplayItem::Retracted { execution, attempt, .. } => Some((None, *execution, *attempt)),
        DisplayItem::Child { path, item } => {
            let (_, execution, attempt) = retracted(item)?;
            Some((Some(&path.last()?.run), execution, attempt))
        }
        _ => None,
    }
}

/// The attempts that have to stand for what a child showed to count: its own, and each that ran a child on the way.
fn attempts_of<'a>(path: &'a [ChildRun], item: &'a DisplayItem) -> impl Iterator<Item = Attempt<'a>> {
    let runs = std::iter::once(None).chain(path.iter().map(|child| Some(&child.run)));
    let shown = match item {
        DisplayItem::Shown { execution, attempt, .. } => Some((*execution, *attempt)),
        _ => None,
    };
    let attempts = path.iter().map(|child| (child.execution, child.attempt)).chain(shown);
    runs.zip(attempts).map(|(run, (execution, attempt))| (run, execution, attempt))
}

/// What the run showed so far.
fn shown<W: Workflow>(run: &RunHandle<W>) -> Vec<DisplayItem> {
    let mut items = run.display();
    std::iter::from_fn(|| items.next().now_or_never().flatten()).collect()
}

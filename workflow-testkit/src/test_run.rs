//! A run of a scenario: its state, its actions and its end. `assert` has the assertions, and `by_hand` the ways to
//! continue a waiting run.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use workflow_core::explain::{Explanation, StallReport};
use workflow_core::report::{ChildRun, ExecutionTrace, RunReport};
use workflow_core::{
    AnyEvent, AnyRun, ControlEvent, DisplayEvent, DisplayItem, ExecutionId, RunError, RunId, RunStatus,
};

use crate::journal::{Called, Journal};
use crate::stage::{Settled, Stage};
use crate::start::Failure;
use crate::subject::{Subject, Tested};
use crate::transcript::{self, Seen};

mod assert;
mod by_hand;

/// A run of a scenario that has ended or waits.
///
/// It waits for something outside the script, or for anything at all with
/// [`until_it_waits`](crate::ScenarioOf::until_it_waits).
///
/// Read what the run did from its [`transcript`](Self::transcript), or use the assertions. A failed assertion prints
/// the transcript and the explanation of the run, and its picture after
/// [`draw_on_panic`](crate::ScenarioOf::draw_on_panic). Continue a waiting run with [`send`](Self::send),
/// [`reply`](Self::reply), [`cancel`](Self::cancel) and [`advance`](Self::advance). Dropping this value ends the run.
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::report::Quality;
/// use workflow_core::RunStatus;
/// use workflow_testkit::Scenario;
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(start)]
/// struct RefundAsked { cents: u64 }
///
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// #[event(display)]
/// struct Asking { cents: u64 }
///
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// #[event(request, reply = bool)]
/// struct Approve { cents: u64 }
///
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// #[event(stop)]
/// struct Refunded { cents: u64 }
///
/// struct Refunds;
///
/// #[workflow]
/// impl Refunds {
///     #[step]
///     async fn ask(&self, refund: &RefundAsked, display: &Display) -> Approve {
///         display.show(Asking { cents: refund.cents });
///         Approve { cents: refund.cents }
///     }
///
///     #[step]
///     async fn pay(&self, approval: &Reply<Approve>) -> Option<Refunded> {
///         approval.then(|| Refunded { cents: approval.request().cents })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let asked = || Scenario::new(Refunds).start(RefundAsked { cents: 500 });
///
/// // A waiting run can be inspected, and continued by hand.
/// let mut run = asked().await;
/// run.assert_waiting();
/// run.assert_emitted_events(&[Approve { cents: 500 }]);
/// run.assert_displayed(&[Asking { cents: 500 }]);
/// assert_eq!(run.displayed::<Asking>().len(), 1);
/// assert!(run.explanation().unwrap().to_string().contains("`pay` did not run"));
/// let request = run.requests()[0].id::<Approve>().unwrap();
/// run.reply(request, true).await?;
/// assert_eq!(run.settled().await, RunStatus::Completed);
/// run.assert_output(&Refunded { cents: 500 });
/// run.assert_order("ask", "pay");
/// run.assert_quality(Quality::Clean);
///
/// let run = Scenario::new(Refunds).reply(|_: &Approve| false).start(RefundAsked { cents: 500 }).await;
/// run.assert_stalled("`pay` ran once and emitted nothing");
/// assert!(run.stall().is_some() && run.outcome().is_err());
///
/// let mut run = asked().await;
/// run.cancel("nobody answers").await?;
/// assert_eq!(run.settled().await, RunStatus::Cancelled);
///
/// // A handle has all other calls.
/// let run = asked().await;
/// assert_eq!(run.handle().report_so_far().await?.executions("ask"), 1);
/// # Ok(())
/// # }
/// ```
pub struct TestRun<W: Tested> {
    handle: W::Handle,
    subject: Subject,
    /// The thread of the run; `None` if it was driven elsewhere.
    stage: Option<Stage>,
    journal: Journal,
    settled: Settled,
    displayed: Vec<DisplayItem>,
    ended: Option<Ended<W>>,
}

/// A run that is driven, and what is known of it.
pub(crate) struct Driven<W: Tested> {
    pub(crate) handle: W::Handle,
    pub(crate) subject: Subject,
    pub(crate) journal: Journal,
}

struct Ended<W: Tested> {
    outcome: Result<W::Output, RunError>,
    report: Arc<RunReport>,
}

impl<W: Tested> Debug for TestRun<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestRun")
            .field("handle", &self.handle)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl<W: Tested> Debug for Ended<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended").field("error", &self.outcome.as_ref().err()).finish_non_exhaustive()
    }
}

impl<W: Tested> TestRun<W> {
    pub(crate) async fn settle(mut stage: Stage, driven: Driven<W>) -> Result<Self, Failure> {
        let settled = stage.settle(Duration::ZERO).await;
        Self::seen(Some(stage), driven, settled).await
    }

    /// A run that was driven on the current runtime until it ended or waited.
    pub(crate) async fn driven(driven: Driven<W>, elapsed: Duration) -> Result<Self, Failure> {
        W::any(&driven.handle).settled().await;
        Self::driven_so_far(driven, elapsed).await
    }

    /// The state of a run that was driven on the current runtime and will not continue.
    pub(crate) async fn driven_so_far(driven: Driven<W>, elapsed: Duration) -> Result<Self, Failure> {
        let settled = Settled::of(W::any(&driven.handle), driven.journal.recording(), elapsed).await;
        Self::seen(None, driven, settled).await
    }

    async fn seen(stage: Option<Stage>, driven: Driven<W>, settled: Settled) -> Result<Self, Failure> {
        let Driven { handle, subject, journal } = driven;
        let (displayed, ended) = (Vec::new(), None);
        let mut run = Self { handle, subject, stage, journal, settled, displayed, ended };
        run.look().await?;
        Ok(run)
    }

    /// Waits until the run ends or waits again.
    ///
    /// Call it after sending something to a waiting run. The rest of the script continues.
    ///
    /// With [`until_it_waits`](crate::ScenarioOf::until_it_waits) the run waits again once it is idle and the script
    /// has no action at that time; if so already, nothing happens.
    ///
    /// # Panics
    /// As [`Start`](crate::Start), if the run does not end.
    pub async fn settled(&mut self) -> RunStatus {
        self.settle_after(Duration::ZERO).await
    }

    /// Waits until this much virtual time has passed and the run waits, or has ended.
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

    /// Updates this value with what the run did.
    async fn look(&mut self) -> Result<(), Failure> {
        if self.settled.status.is_ended() {
            let outcome = W::outcome(&self.handle).await;
            let report = self.any().report().await;
            self.ended = report.ok().map(|report| Ended { outcome, report });
        }
        self.displayed = shown(self.any());
        let given_up = self.settled.given_up.as_ref().map(ToString::to_string);
        match given_up.or_else(|| self.journal.endless()) {
            Some(why) => Err(Failure(format!("{why}\n{}", self.evidence()))),
            None => Ok(()),
        }
    }

    /// Returns the handle on the run, for all other calls.
    ///
    /// A handle's calls need no [`settled`](Self::settled). From now on the run continues on its own thread between
    /// settlings, but with its clock stopped: a sleeping step wakes up only in `settled`. Actions of the two threads
    /// may happen in either order. So a test that must be the same each time uses [`send`](Self::send),
    /// [`reply`](Self::reply) and [`cancel`](Self::cancel).
    pub fn handle(&self) -> &W::Handle {
        if let Some(stage) = &self.stage {
            stage.go_on();
        }
        &self.handle
    }

    fn any(&self) -> &AnyRun {
        W::any(&self.handle)
    }

    /// The status of the run when it was last settled.
    pub fn status(&self) -> RunStatus {
        self.settled.status
    }

    /// The virtual time from the start to the last settling.
    pub fn elapsed(&self) -> Duration {
        self.settled.elapsed
    }

    /// The output of the run; of a run-time workflow the data of its stop event.
    ///
    /// # Errors
    /// Returns how the run ended, if without its output.
    ///
    /// # Panics
    /// Panics if the run has not ended.
    #[track_caller]
    pub fn outcome(&self) -> Result<&W::Output, &RunError> {
        self.ended().outcome.as_ref()
    }

    /// The report of the run; for a waiting run, as of the last settling.
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

    /// The explanation of each step; for a waiting run, as of the last settling.
    ///
    /// `None` if the task that drove the run is gone with its state.
    pub fn explanation(&self) -> Option<Arc<Explanation>> {
        if let Some(explanation) = &self.settled.explanation {
            return Some(Arc::clone(explanation));
        }
        // An ended run answers at once.
        tokio::task::unconstrained(self.any().explain()).now_or_never()?.ok()
    }

    /// The stall report; `None` if the run did not stall.
    ///
    /// # Panics
    /// Panics if the run has not ended.
    #[track_caller]
    pub fn stall(&self) -> Option<&StallReport> {
        match self.outcome() {
            Err(RunError::Stalled(report)) => Some(report),
            _ => None,
        }
    }

    /// The number of executions of the step in all scopes, as of the last settling.
    ///
    /// # Panics
    /// Panics if the workflow has no such step.
    #[track_caller]
    pub fn executions(&self, step: &str) -> u64 {
        self.assert_step(step);
        match &self.ended {
            Some(ended) => ended.report.executions(step),
            // An earlier process may have driven the run.
            None if self.stage.is_none() => self.report().executions(step),
            None => self.journal.executions(step),
        }
    }

    /// The events of type `E` that steps emitted, in log order.
    ///
    /// For a waiting run, as of the last settling. The [report](Self::report)'s log also has events of timers.
    pub fn emitted<E: ControlEvent>(&self) -> Vec<Arc<E>> {
        let calls = self.committed();
        calls.iter().flat_map(|call| &call.emitted).filter_map(AnyEvent::downcast).collect()
    }

    /// The data of the events of this name that steps emitted, in log order; otherwise as [`emitted`](Self::emitted).
    ///
    /// An event of a typed workflow that has no JSON counts as `null`.
    ///
    /// # Panics
    /// Panics if the workflow has no such event.
    #[track_caller]
    pub fn emitted_json(&self, event: &str) -> Vec<Value> {
        self.subject.assert_event(event, "event", |_| true);
        let calls = self.committed();
        let emitted = calls.iter().flat_map(|call| &call.emitted).filter(|emitted| emitted.name() == event);
        emitted.map(|emitted| emitted.to_json().unwrap_or_default()).collect()
    }

    /// The calls in the log's order; of an ended run, only those whose events are in the log.
    fn committed(&self) -> Vec<Called> {
        let mut calls = self.journal.calls();
        if let Some(ended) = &self.ended {
            keep_committed(&mut calls, &ended.report);
        }
        calls
    }

    /// The displayed events of type `E`, without retracted ones, in order.
    ///
    /// Includes the events of child runs. A scenario keeps the last 65,536 displayed items of a run.
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

    /// The run as reproducible text for golden tests, without times and generated names.
    ///
    /// The text contains, in order: every event of the log with its origin and value; every execution with its inputs,
    /// result and displayed items; answers of preconditions; and when the run waited. Then it tells how the run ended,
    /// with which event or error, or what a waiting run waits for. An execution has one line, or one each for start and
    /// end if something happened in between. Values are compact JSON with sorted keys, cut after 200 characters with a
    /// digest of the whole; a value without fields is left out. The values themselves must be the same each time.
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
        did.into_iter().chain(explained).chain(self.picture()).collect()
    }

    /// The run's picture, if the scenario asks for it.
    fn picture(&self) -> Option<String> {
        let report = self.reported().filter(|_| self.journal.is_drawn())?;
        let drawn = self.subject.graph().with_report(report).to_mermaid();
        Some(format!("\n```mermaid\n{drawn}```\n"))
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

/// The attempt whose displayed items were retracted.
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

/// The attempts that must not be retracted for an item of a child to count: its own, and each that ran a child on the
/// way.
fn attempts_of<'a>(path: &'a [ChildRun], item: &'a DisplayItem) -> impl Iterator<Item = Attempt<'a>> {
    let runs = std::iter::once(None).chain(path.iter().map(|child| Some(&child.run)));
    let shown = match item {
        DisplayItem::Shown { execution, attempt, .. } => Some((*execution, *attempt)),
        _ => None,
    };
    let attempts = path.iter().map(|child| (child.execution, child.attempt)).chain(shown);
    runs.zip(attempts).map(|(run, (execution, attempt))| (run, execution, attempt))
}

/// The displayed items so far.
fn shown(run: &AnyRun) -> Vec<DisplayItem> {
    let mut items = run.display();
    std::iter::from_fn(|| items.next().now_or_never().flatten()).collect()
}

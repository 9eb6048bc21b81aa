//! Whether a run goes on by itself, its children included, and the wait until it does not.

use std::pin::pin;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, select_all};
use tokio::sync::watch;
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::{AnyRun, Engine, RunId, RunStatus};

use super::GraphRun;
use super::below::{DEPTH, children, working};

impl GraphRun {
    /// Waits until the run has ended, is paused, or waits for something outside of it, as for an answer of people. A run whose
    /// node waits for a child waits if the child does.
    ///
    /// Each look costs a report of the run and of its open children, and follows a change of one of them.
    pub async fn settled(&self) -> RunStatus {
        if is_settled(self.run.status()) {
            return self.run.status();
        }
        let Some(engine) = self.run.engine() else { return self.run.settled().await };
        // It joins before the first look, so that nothing changes unseen.
        let (sender, mut changed) = watch::channel(());
        let _guard =
            engine.observe(Changed { below: format!("{}/", self.id()), root: self.id().clone(), sender });
        loop {
            changed.borrow_and_update();
            let look = look(&engine, self.run.clone(), DEPTH).await;
            if is_settled(self.run.status()) {
                return self.run.status();
            }
            if look.is_still {
                return RunStatus::Waiting;
            }
            let working =
                look.working.iter().map(|run| run.settled().boxed()).chain([self.run.settled().boxed()]);
            let (settled, wakes) = (select_all(working), pin!(changed.changed()));
            let _ = futures_util::future::select(settled, wakes).await;
        }
    }

    /// The status in which the run is settled now, as [`settled`](Self::settled) waits for it. `None` if something continues by
    /// itself.
    pub async fn settled_now(&self) -> Option<RunStatus> {
        let status = self.run.status();
        if is_settled(status) {
            return Some(status);
        }
        let look = look(&self.run.engine()?, self.run.clone(), DEPTH).await;
        look.is_still.then_some(RunStatus::Waiting)
    }
}

fn is_settled(status: RunStatus) -> bool {
    matches!(status, RunStatus::Waiting | RunStatus::Paused) || status.is_ended()
}

/// A look at a run and its children.
#[derive(Default)]
struct Look {
    /// Nothing happens in them before something comes from outside.
    is_still: bool,
    /// Children that go on by themselves.
    working: Vec<AnyRun>,
}

fn look(engine: &Engine, run: AnyRun, depth: usize) -> BoxFuture<'_, Look> {
    Box::pin(async move {
        // One without a driver goes on elsewhere, or never: its outcome says which.
        let Ok(report) = run.report_so_far().await else { return Look::default() };
        let mut found = Look { is_still: !is_overdue(&run).await, working: Vec::new() };
        let mut is_working = false;
        for execution in working(&report) {
            is_working = true;
            let mut has_children = false;
            for child in children(engine, &report, execution) {
                has_children = true;
                let Some(child) = child.filter(|_| depth > 0) else {
                    found.is_still = false;
                    continue;
                };
                let status = child.status();
                let below = match status {
                    RunStatus::Running => look(engine, child.clone(), depth - 1).await,
                    _ => {
                        Look { is_still: !status.is_ended() && !is_overdue(&child).await, ..Look::default() }
                    }
                };
                found.is_still &= below.is_still;
                found.working.extend(below.working);
                if !is_settled(status) {
                    found.working.push(child);
                }
            }
            found.is_still &= has_children && execution.next_attempt.is_none();
        }
        // An event that has not been evaluated, or an execution that waits for its turn.
        found.is_still &= is_working || report.status == RunStatus::Waiting;
        found
    })
}

/// Whether the time to answer a question is over, so that something happens at once.
async fn is_overdue(run: &AnyRun) -> bool {
    let (now, open) = (run.now(), run.requests().await.unwrap_or_default());
    open.iter().any(|request| request.expires_at().is_some_and(|end| end <= now))
}

/// Tells that something ended, began to wait or was paused in a run or below it, or that a child began. A run whose step waits
/// for a child does not say by itself that nothing else works in it.
struct Changed {
    root: RunId,
    /// The begin of the ids of all runs below it.
    below: String,
    sender: watch::Sender<()>,
}

impl Changed {
    fn concerns(&self, run: &RunId) -> bool {
        *run == self.root || run.as_str().starts_with(&self.below)
    }
}

impl Observer for Changed {
    fn observe(&self, observation: &Observation) {
        let is_change = matches!(
            observation.what,
            Observed::ChildStarted { .. }
                | Observed::ExecutionSucceeded { .. }
                | Observed::ExecutionFailed { .. }
                | Observed::ExecutionDropped { .. }
                | Observed::RunWaiting
                | Observed::RunPaused
                | Observed::RunEnded { .. }
                | Observed::Missed { .. }
        );
        if is_change && self.concerns(&observation.run) {
            self.sender.send_replace(());
        }
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

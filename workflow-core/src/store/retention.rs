//! The rules by which a store retains ended runs. Each store removes the others in its own way.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::StoredRun;
use crate::id::{RunId, RunStatus};

/// Rules for retaining ended runs: a run stays if one rule retains it.
///
/// Open runs always stay. So do the children of an open run, because the run may ask for their outcomes.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::Engine;
/// use workflow_core::store::{MemoryStore, Retention};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().store(MemoryStore::default()).build()?;
/// // The last 1,000, everything of the last week, and all failures.
/// let week = Duration::from_hours(7 * 24);
/// let kept = Retention::none().last(1_000).within(week).failed();
/// assert_eq!(engine.retain(&kept).await?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "it is applied by `Engine::retain` or `EventStore::retain`"]
pub struct Retention {
    last: usize,
    within: Duration,
    failed: bool,
    workflow: Option<Arc<str>>,
    now: Option<SystemTime>,
}

impl Retention {
    /// Retains no ended run.
    pub fn none() -> Self {
        Self::default()
    }

    /// Retains the `runs` runs that ended last.
    pub fn last(self, runs: usize) -> Self {
        Self { last: runs, ..self }
    }

    /// Retains runs that ended within `time` before now.
    pub fn within(self, time: Duration) -> Self {
        Self { within: time, ..self }
    }

    /// Retains runs that neither completed nor were cancelled, and those whose clean-up is
    /// [incomplete](super::RunSummary::incomplete_clean_up), however they ended.
    pub fn failed(self) -> Self {
        Self { failed: true, ..self }
    }

    /// Applies the rules to runs of this workflow only. Runs of other workflows stay, and do not count for
    /// [`last`](Self::last).
    pub fn workflow(self, workflow: impl Into<Arc<str>>) -> Self {
        Self { workflow: Some(workflow.into()), ..self }
    }

    /// Sets the current time. Default: the machine's clock.
    ///
    /// A run's end is the time of its last write on the clock of the store's machine, and not on the clock of its
    /// engine.
    pub fn now(self, now: SystemTime) -> Self {
        Self { now: Some(now), ..self }
    }

    /// Selects the runs to remove, for stores.
    ///
    /// `runs` has all runs of the store, in any order, each with the time of its latest write. The result begins with
    /// the run that ended last. O(runs · log runs) time and O(runs) memory.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use workflow_core::RunStatus;
    /// use workflow_core::store::{Position, Retention, RunSummary, StoredRun};
    ///
    /// let at = SystemTime::UNIX_EPOCH;
    /// let run = RunSummary::running("Orders", at);
    /// let ended = run.clone().ended(RunStatus::Completed);
    /// let stored = |id: &str, run: &RunSummary| StoredRun { id: id.into(), end: Position(2), run: run.clone() };
    /// let runs = [("a", &run), ("a/price-x1.1", &ended), ("b", &ended)];
    /// let chosen = Retention::none().choose(runs.map(|(id, run)| (stored(id, run), at)));
    /// assert_eq!(chosen, [(stored("b", &ended), at)]);
    /// ```
    pub fn choose(
        &self,
        runs: impl IntoIterator<Item = (StoredRun, SystemTime)>,
    ) -> Vec<(StoredRun, SystemTime)> {
        let (mut ended, mut open) = (Vec::new(), HashSet::<String>::new());
        for (stored, at) in runs {
            if !stored.run.status.is_ended() {
                open.insert(stored.id.as_str().to_owned());
            } else if self.workflow.as_ref().is_none_or(|workflow| *workflow == stored.run.workflow) {
                ended.push((stored, at));
            }
        }
        ended.retain(|(stored, _)| !above(&stored.id).any(|above| open.contains(above)));
        // The latest first. Among equal times, the greater id counts as later.
        ended.sort_unstable_by(|(one, at), (other, other_at)| {
            Reverse((at, &one.id)).cmp(&Reverse((other_at, &other.id)))
        });
        let now = self.now.unwrap_or_else(SystemTime::now);
        ended.into_iter().skip(self.last).filter(|(stored, at)| !self.keeps(stored, *at, now)).collect()
    }

    /// Whether a rule other than `last` retains a run with this end.
    fn keeps(&self, stored: &StoredRun, at: SystemTime, now: SystemTime) -> bool {
        let is_recent =
            !self.within.is_zero() && now.checked_sub(self.within).is_none_or(|since| at >= since);
        let failed = !matches!(stored.run.status, RunStatus::Completed | RunStatus::Cancelled)
            || !stored.run.incomplete_clean_up.is_empty();
        is_recent || self.failed && failed
    }
}

/// The ids of the runs that it may be a child of, at any depth.
fn above(run: &RunId) -> impl Iterator<Item = &str> {
    let run = run.as_str();
    run.match_indices('/').map(move |(at, _)| &run[..at])
}

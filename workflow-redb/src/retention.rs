//! Which runs are kept once they have ended, and removing the others.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::from_slice;
use workflow_core::{RunId, RunStatus, RunSummary};

use crate::error::WorkError;
use crate::format::RunEntry;
use crate::journal;
use crate::store::RedbStore;
use crate::tables::{Tables, Unread, View};

/// How many runs are removed by one call of the committer: others have their turn between.
const AT_ONCE: usize = 64;

/// Which runs are kept once they have ended: those that one of the rules keeps. Runs that have not ended are always kept,
/// and so is what cannot be decoded.
///
/// ```
/// use std::time::Duration;
/// use workflow_redb::Retention;
///
/// // The last 1,000, everything of the last week, and what failed.
/// let week = Duration::from_hours(7 * 24);
/// let kept = Retention::none().last(1_000).within(week).failed();
/// # let _ = kept;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "it is applied by `RedbStore::retain`"]
pub struct Retention {
    last: usize,
    within: Duration,
    failed: bool,
    workflow: Option<Arc<str>>,
    now: Option<SystemTime>,
}

impl Retention {
    /// Keeps no run that has ended.
    pub fn none() -> Self {
        Self::default()
    }

    /// Keeps so many runs: those that ended last.
    pub fn last(self, runs: usize) -> Self {
        Self { last: runs, ..self }
    }

    /// Keeps what ended so long ago, or less.
    pub fn within(self, time: Duration) -> Self {
        Self { within: time, ..self }
    }

    /// Keeps what ended in another way than by completing or being cancelled.
    pub fn failed(self) -> Self {
        Self { failed: true, ..self }
    }

    /// Is about the runs of this workflow: those of others are kept, and do not count.
    pub fn workflow(self, workflow: impl Into<Arc<str>>) -> Self {
        Self { workflow: Some(workflow.into()), ..self }
    }

    /// Takes this for the time that it is. Default: what the machine's clock says.
    ///
    /// When a run ended is when the store wrote its last batch, by the machine's clock, and not what its engine's clock
    /// said.
    pub fn now(self, now: SystemTime) -> Self {
        Self { now: Some(now), ..self }
    }

    /// The runs to remove of these.
    fn choose(&self, mut ended: Vec<Ended>) -> Vec<Ended> {
        let now = self.now.unwrap_or_else(SystemTime::now);
        // The latest first; of those that ended at once, the greater id counts as later.
        ended
            .sort_unstable_by(|one, other| Reverse((one.at, &one.run)).cmp(&Reverse((other.at, &other.run))));
        let since = now.checked_sub(self.within);
        let is_recent =
            |at: SystemTime| self.within > Duration::ZERO && since.is_none_or(|since| at >= since);
        let is_kept = |ended: &Ended| is_recent(ended.at) || self.failed && ended.failed;
        ended.into_iter().skip(self.last).filter(|ended| !is_kept(ended)).collect()
    }
}

/// A run that has ended, as its entry has it.
struct Ended {
    run: RunId,
    at: SystemTime,
    failed: bool,
    /// The entry: who begins the run anew changes it.
    entry: Vec<u8>,
}

impl RedbStore {
    /// Removes the runs that have ended and that no rule keeps, with their journals and their contexts; says how many.
    /// Child runs stay as long as a run above them goes on, which may ask for what became of them.
    ///
    /// Others are served meanwhile. A run that is begun anew under the id of one that had ended is not touched. A
    /// future that is dropped leaves some of them removed. The room is used for what comes, or given back by
    /// [`compact`](Self::compact). O(runs) and O(what is removed).
    ///
    /// ```
    /// use workflow_redb::Retention;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = workflow_redb::RedbStore::open(folder.path().join("runs.redb"))?;
    /// assert_eq!(store.retain(&Retention::none().last(100)).await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`WorkError`]: some of them may be removed then, each as a whole.
    pub async fn retain(&self, kept: &Retention) -> Result<usize, WorkError> {
        let workflow = kept.workflow.clone();
        let read =
            move |view: &View| ended_runs(view, workflow.as_deref()).map_err(Unread::<WorkError>::from);
        let mut chosen = kept.choose(self.shared().read(read).await?);
        let mut removed = 0;
        while !chosen.is_empty() {
            let some = chosen.split_off(chosen.len().saturating_sub(AT_ONCE));
            removed += self.shared().queue.commit(0, move |tables| remove_all(tables, &some)).await?;
        }
        Ok(removed)
    }
}

fn remove_all(tables: &mut Tables<'_>, runs: &[Ended]) -> Result<usize, redb::Error> {
    let mut removed = 0;
    for ended in runs {
        removed += usize::from(journal::remove_seen(tables, &ended.run, &ended.entry)?);
    }
    Ok(removed)
}

fn ended_runs(view: &View, workflow: Option<&str>) -> Result<Vec<Ended>, redb::Error> {
    let mut ended = Vec::new();
    // A run comes before its children: their ids begin with its own.
    let mut open: HashSet<String> = HashSet::new();
    for entry in view.runs.range::<&[u8]>(..)? {
        let (key, value) = entry?;
        let (key, value) = (key.value(), value.value());
        match (std::str::from_utf8(key), RunEntry::from_bytes(value).is_none_or(|entry| is_open(&entry))) {
            (Ok(run), true) => drop(open.insert(run.to_owned())),
            (Ok(run), false) if above(run).any(|above| open.contains(above)) => {}
            _ => ended.extend(ended_run(key, value, workflow)),
        }
    }
    Ok(ended)
}

/// Whether a run goes on, as far as is known: of one whose summary is damaged nothing is.
fn is_open(entry: &RunEntry<'_>) -> bool {
    from_slice::<RunSummary>(entry.summary).map_or(true, |summary| !summary.status.is_ended())
}

/// The ids of the runs that it may be a child of, at any depth.
fn above(run: &str) -> impl Iterator<Item = &str> {
    run.match_indices('/').map(|(at, _)| &run[..at])
}

fn ended_run(key: &[u8], value: &[u8], workflow: Option<&str>) -> Option<Ended> {
    let run = std::str::from_utf8(key).ok()?.into();
    let entry = RunEntry::from_bytes(value)?;
    let summary: RunSummary = from_slice(entry.summary).ok()?;
    let is_asked_for = workflow.is_none_or(|workflow| *summary.workflow == *workflow);
    let failed = !matches!(summary.status, RunStatus::Completed | RunStatus::Cancelled);
    (summary.status.is_ended() && is_asked_for).then(|| Ended {
        run,
        at: entry.written,
        failed,
        entry: value.to_vec(),
    })
}

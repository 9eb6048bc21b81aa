//! Which runs a store lists, in which order, and in pages. Each store finds them in its own way; `admits` and `choose` say
//! what it has to find.

use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use super::{RunSummary, StoredRun};
use crate::id::{EngineId, RunId, RunStatus, ThreadId};

/// A query for a list of runs: filters, an order, and a page.
///
/// A run is listed if all filters admit it. The order is that of the bytes of ids, or [newest first](Self::newest_first).
/// [`after`](Self::after) and [`older_than`](Self::older_than) are filters too, and lead to the next page of their orders.
///
/// ```
/// use workflow_core::store::{EventStore, MemoryStore, RunQuery};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::store::StoreError> {
/// # let store = MemoryStore::default();
/// let mut query = RunQuery::new().workflow("Orders").open();
/// loop {
///     let page = store.runs(&query).await?;
///     for run in &page {
///         assert!(!run.run.status.is_ended());
///     }
///     match page.last() {
///         Some(last) if page.len() == query.page() => query = query.after(last.id.clone()),
///         _ => break,
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    run: Option<RunId>,
    below: Option<RunId>,
    workflow: Option<Arc<str>>,
    thread: Option<ThreadId>,
    open: bool,
    incomplete_clean_up: bool,
    statuses: Vec<RunStatus>,
    not_owned_by: Vec<EngineId>,
    newest_first: bool,
    after: Option<RunId>,
    older_than: Option<(SystemTime, RunId)>,
    at_most: Option<usize>,
}

impl RunQuery {
    /// The default size of a page.
    const PAGE: usize = 1_000;

    /// Every run, in pages of 1,000, from the first one on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only the run with this id. A store reads no other run.
    ///
    /// ```
    /// use workflow_core::store::{EventStore, MemoryStore, RunQuery};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow_core::store::StoreError> {
    /// let store = MemoryStore::default();
    /// let found = store.runs(&RunQuery::new().run("order-17")).await?.pop();
    /// assert!(found.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn run(self, run: impl Into<RunId>) -> Self {
        Self { run: Some(run.into()), ..self }
    }

    /// Only runs whose ids are this id, a slash, and more: the ids that the children of a run have, and theirs.
    ///
    /// They are next to each other in the order of ids, so a store needs to read no other run.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use workflow_core::store::{RunQuery, RunSummary};
    ///
    /// let query = RunQuery::new().below("order-17");
    /// let run = RunSummary::running("Prices", SystemTime::UNIX_EPOCH);
    /// assert!(query.admits(&"order-17/price-x3.1".into(), &run));
    /// assert!(!query.admits(&"order-17".into(), &run) && !query.admits(&"order-170/price-x3.1".into(), &run));
    /// ```
    pub fn below(self, run: impl Into<RunId>) -> Self {
        Self { below: Some(run.into()), ..self }
    }

    /// Only runs of this workflow.
    pub fn workflow(self, workflow: impl Into<Arc<str>>) -> Self {
        Self { workflow: Some(workflow.into()), ..self }
    }

    /// Only runs of this thread.
    ///
    /// A run that an earlier release wrote last has no thread in its summary, and is left out.
    pub fn thread(self, thread: impl Into<ThreadId>) -> Self {
        Self { thread: Some(thread.into()), ..self }
    }

    /// Only runs that have not ended.
    pub fn open(self) -> Self {
        Self { open: true, ..self }
    }

    /// Only runs with this status. Several calls admit runs with any of theirs.
    ///
    /// ```
    /// use workflow_core::RunStatus;
    /// use workflow_core::store::RunQuery;
    ///
    /// let query = RunQuery::new().status(RunStatus::Failed).status(RunStatus::TimedOut);
    /// assert_eq!(query.statuses(), [RunStatus::Failed, RunStatus::TimedOut]);
    /// ```
    pub fn status(mut self, status: RunStatus) -> Self {
        self.statuses.push(status);
        self
    }

    /// Only runs with unfinished clean-up steps
    /// ([`incomplete_clean_up`](super::RunSummary::incomplete_clean_up)): ended ones, and those whose clean-up is redriven. A run
    /// that an earlier release ended is left out. A store may read all open runs for it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::SystemTime;
    /// use workflow_core::RunStatus;
    /// use workflow_core::store::{RunQuery, RunSummary};
    ///
    /// let mut run = RunSummary::running("Orders", SystemTime::UNIX_EPOCH).ended(RunStatus::Failed);
    /// let query = RunQuery::new().incomplete_clean_up();
    /// assert!(!query.admits(&"order-17".into(), &run));
    /// run.incomplete_clean_up = Arc::new(vec!["refund".into()]);
    /// assert!(query.admits(&"order-17".into(), &run));
    /// ```
    pub fn incomplete_clean_up(self) -> Self {
        Self { incomplete_clean_up: true, ..self }
    }

    /// Only runs whose latest write is of none of these engines: of another one, or of one without a lease.
    ///
    /// Several calls exclude the engines of all of them. With the engines that hold leases, and [open](Self::open) runs only,
    /// these are the runs that no engine drives. Ended runs stay in the list otherwise.
    pub fn not_owned_by(mut self, engines: impl IntoIterator<Item = EngineId>) -> Self {
        self.not_owned_by.extend(engines);
        self
    }

    /// Lists the run that started last first; of runs that started at once, the one with the greatest id.
    ///
    /// [`older_than`](Self::older_than) is the next page.
    ///
    /// ```
    /// use workflow_core::store::{EventStore, MemoryStore, RunQuery};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow_core::store::StoreError> {
    /// # let store = MemoryStore::default();
    /// let mut query = RunQuery::new().newest_first().at_most(100);
    /// while let Some(last) = store.runs(&query).await?.pop() {
    ///     query = query.older_than(last.run.started, last.id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn newest_first(self) -> Self {
        Self { newest_first: true, ..self }
    }

    /// Only runs with greater ids: the page after the one that ends with `run`, in the order of ids. With
    /// [`newest_first`](Self::newest_first), [`older_than`](Self::older_than) is the next page.
    pub fn after(self, run: impl Into<RunId>) -> Self {
        Self { after: Some(run.into()), ..self }
    }

    /// Only runs that started earlier, or at that time with a smaller id: the page after the one that ends with that run,
    /// [newest first](Self::newest_first).
    pub fn older_than(self, started: SystemTime, run: impl Into<RunId>) -> Self {
        Self { older_than: Some((started, run.into())), ..self }
    }

    /// The size of a page. 0 counts as 1.
    pub fn at_most(self, runs: usize) -> Self {
        Self { at_most: Some(runs.max(1)), ..self }
    }

    /// The id of the only run that the query admits; `None` for any.
    pub fn of_run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// The id above those that the query admits; `None` for any.
    pub fn of_below(&self) -> Option<&RunId> {
        self.below.as_ref()
    }

    /// The workflow of the query; `None` for all.
    pub fn of_workflow(&self) -> Option<&str> {
        self.workflow.as_deref()
    }

    /// The thread of the query; `None` for all.
    pub fn of_thread(&self) -> Option<&ThreadId> {
        self.thread.as_ref()
    }

    /// Whether the query is for open runs only.
    pub fn only_open(&self) -> bool {
        self.open
    }

    /// Whether the query is for runs only with unfinished clean-up steps.
    pub fn only_incomplete_clean_up(&self) -> bool {
        self.incomplete_clean_up
    }

    /// The statuses that the query admits; empty for all.
    pub fn statuses(&self) -> &[RunStatus] {
        &self.statuses
    }

    /// The engines whose runs the query leaves out.
    pub fn excluded_owners(&self) -> &[EngineId] {
        &self.not_owned_by
    }

    /// Whether the list is newest first; otherwise it is in the order of the bytes of ids.
    pub fn is_newest_first(&self) -> bool {
        self.newest_first
    }

    /// The most runs of a page. Default: 1,000.
    pub fn page(&self) -> usize {
        self.at_most.unwrap_or(Self::PAGE)
    }

    /// The id before the page; `None` for the first page.
    pub fn begins_after(&self) -> Option<&RunId> {
        self.after.as_ref()
    }

    /// The start and the id of the run before the page, newest first; `None` for the first page.
    pub fn begins_before(&self) -> Option<(SystemTime, &RunId)> {
        self.older_than.as_ref().map(|(started, run)| (*started, run))
    }

    /// Between which ids the runs of the query are, by [`below`](Self::below) and [`after`](Self::after); `None` if there
    /// can be none. For a store that lists runs in the order of their ids.
    ///
    /// ```
    /// use std::ops::Bound;
    /// use workflow_core::store::RunQuery;
    ///
    /// let query = RunQuery::new().below("a");
    /// assert_eq!(query.id_range(), Some((Bound::Included("a/".into()), Bound::Excluded("a0".into()))));
    /// assert_eq!(query.after("b").id_range(), None);
    /// ```
    pub fn id_range(&self) -> Option<(Bound<RunId>, Bound<RunId>)> {
        let (mut first, mut last) = (Bound::Unbounded, Bound::Unbounded);
        let mut after = self.after.clone();
        if let Some(above) = &self.below {
            // '0' follows '/'.
            let [begin, end] = ['/', '0'].map(|behind| RunId::new(format!("{above}{behind}")));
            if after.as_ref().is_some_and(|after| *after >= end) {
                return None;
            }
            after = after.filter(|after| *after >= begin);
            (first, last) = (Bound::Included(begin), Bound::Excluded(end));
        }
        Some((after.map_or(first, Bound::Excluded), last))
    }

    /// Whether the run matches the query. A store may use an index first, and has to check its result here.
    pub fn admits(&self, id: &RunId, run: &RunSummary) -> bool {
        let Self { workflow, thread, open, statuses, not_owned_by, after, older_than, .. } = self;
        let is_over = *open && run.status.is_ended();
        let left_nothing = self.incomplete_clean_up && run.incomplete_clean_up.is_empty();
        // Ids are compared last: they may be long.
        !is_over
            && !left_nothing
            && (statuses.is_empty() || statuses.contains(&run.status))
            && workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
            && thread.as_ref().is_none_or(|thread| run.thread.as_ref() == Some(thread))
            && !run.owner.as_ref().is_some_and(|owner| not_owned_by.contains(owner))
            && older_than.as_ref().is_none_or(|(started, before)| (run.started, id) < (*started, before))
            && after.as_ref().is_none_or(|after| id > after)
            && self.below.as_ref().is_none_or(|above| is_below(id, above))
            && self.run.as_ref().is_none_or(|only| id == only)
    }

    /// Selects the page out of these runs, for stores without an index.
    ///
    /// `runs` has every run that the query may admit, once and in any order. The result is the page in its order.
    /// O(runs · log admitted runs) time.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use workflow_core::store::{Position, RunQuery, RunSummary, StoredRun};
    ///
    /// let stored = |id: &str, seconds| {
    ///     let started = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    ///     StoredRun { id: id.into(), end: Position(1), run: RunSummary::running("Orders", started) }
    /// };
    /// let runs = [stored("a", 2), stored("b", 9), stored("c", 2)];
    /// let page = RunQuery::new().newest_first().at_most(2).choose(runs.clone());
    /// assert_eq!(page, [stored("b", 9), stored("c", 2)]);
    /// assert_eq!(RunQuery::new().after("a").choose(runs), [stored("b", 9), stored("c", 2)]);
    /// ```
    pub fn choose(&self, runs: impl IntoIterator<Item = StoredRun>) -> Vec<StoredRun> {
        let mut chosen: Vec<_> =
            runs.into_iter().filter(|stored| self.admits(&stored.id, &stored.run)).collect();
        if self.newest_first {
            chosen.sort_unstable_by(|one, other| {
                Reverse((one.run.started, &one.id)).cmp(&Reverse((other.run.started, &other.id)))
            });
        } else {
            chosen.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        }
        chosen.truncate(self.page());
        chosen
    }

    /// The page after the one that ends with this run.
    pub(crate) fn behind(self, last: &StoredRun) -> Self {
        if self.newest_first {
            self.older_than(last.run.started, last.id.clone())
        } else {
            self.after(last.id.clone())
        }
    }
}

/// Whether the id is that of a run above, a slash, and more.
fn is_below(id: &RunId, above: &RunId) -> bool {
    id.as_str().strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

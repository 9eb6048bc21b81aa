//! The ended runs of an engine without a store that it keeps for a while (S77): for handles, lists and reports.
//!
//! No task attends to them. Runs whose time is over are gone for every look-up, and leave memory with the next end of a
//! run or the next look-up; there are never more than the engine's most.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::clock::EngineClock;
use crate::id::RunId;
use crate::panics::{locked, release};
use crate::run::{RunShared, summary_of_ended};
use crate::store::{Position, RunQuery, StoredRun};

/// How long an engine keeps ended runs, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keeping {
    pub(super) time: Duration,
    pub(super) at_most: usize,
}

/// The table of ended runs.
pub(super) struct EndedRuns {
    keeping: Keeping,
    clock: EngineClock,
    table: Mutex<Table>,
}

/// Invariant: both maps have the same runs.
#[derive(Default)]
struct Table {
    /// In the order of their ends, whose times never decrease.
    by_end: BTreeMap<u64, Ended>,
    /// Hashed with a key of this process, because ids may come from strangers.
    by_id: HashMap<RunId, u64, foldhash::quality::RandomState>,
    /// The number of the next end.
    next: u64,
}

/// What remains of a run: the part that its handles share, which has the final state.
struct Ended {
    run: Arc<RunShared>,
    /// Its end, as it is listed.
    end: SystemTime,
    /// From when on it is kept: its end, or an earlier time if the clock was set back behind it.
    at: SystemTime,
}

impl EndedRuns {
    pub(super) fn new(keeping: Keeping, clock: EngineClock) -> Self {
        Self { keeping, clock, table: Mutex::default() }
    }

    /// Adds a run that has ended. The oldest end goes if there are too many.
    pub(super) fn add(&self, run: Arc<RunShared>) {
        let now = self.clock.shown();
        let mut table = locked(&self.table);
        let mut gone = table.take_expired(self.keeping.time, now);
        gone.extend(table.add(run, now));
        while table.by_end.len() > self.keeping.at_most {
            gone.extend(table.take_oldest());
        }
        // Dropped after the lock, because the `Drop` of a user's value may do anything.
        drop(table);
        release_all(gone);
    }

    /// The run, if its time is not over.
    pub(super) fn get(&self, run: &RunId) -> Option<Arc<RunShared>> {
        self.with_current(|table| Some(Arc::clone(&table.get(run)?.run)))
    }

    /// Whether there is the run. Drops nothing, so that it can be called while something else is locked.
    pub(super) fn has(&self, run: &RunId) -> bool {
        let now = self.clock.shown();
        locked(&self.table).get(run).is_some_and(|ended| !ended.is_expired(self.keeping.time, now))
    }

    /// Removes a run. Returns whether it was there.
    pub(super) fn remove(&self, run: &RunId) -> bool {
        let removed = self.with_current(|table| table.take(run));
        let is_removed = removed.is_some();
        release_all(removed);
        is_removed
    }

    /// A page of the runs, as a store lists them.
    pub(super) fn list(&self, query: &RunQuery) -> Vec<StoredRun> {
        let runs: Vec<(Arc<RunShared>, SystemTime)> = self.with_current(|table| match query.of_run() {
            Some(run) => table.get(run).into_iter().map(Ended::shared).collect(),
            None => table.by_end.values().map(Ended::shared).collect(),
        });
        let stored = |(run, at): &(Arc<RunShared>, SystemTime)| {
            Some(StoredRun { id: run.id.clone(), end: Position(0), run: summary_of_ended(run, *at)? })
        };
        let listed = query.choose(runs.iter().filter_map(stored));
        // Others may have been dropped from the table meanwhile.
        for (run, _) in runs {
            release(run);
        }
        listed
    }

    /// Calls this with the runs whose time is not over.
    fn with_current<T>(&self, look: impl FnOnce(&mut Table) -> T) -> T {
        let now = self.clock.shown();
        let mut table = locked(&self.table);
        let gone = table.take_expired(self.keeping.time, now);
        let found = look(&mut table);
        drop(table);
        release_all(gone);
        found
    }
}

impl Table {
    /// Adds a run, and returns the earlier one of its id, whose time was over.
    fn add(&mut self, run: Arc<RunShared>, now: SystemTime) -> Option<Arc<RunShared>> {
        let earlier = self.take(&run.id);
        // A clock that was set back does not change the order, and keeps no run for longer.
        self.by_end.values_mut().rev().take_while(|later| later.at > now).for_each(|later| later.at = now);
        self.by_id.insert(run.id.clone(), self.next);
        self.by_end.insert(self.next, Ended { run, end: now, at: now });
        self.next += 1;
        earlier
    }

    fn get(&self, run: &RunId) -> Option<&Ended> {
        self.by_end.get(self.by_id.get(run)?)
    }

    fn take(&mut self, run: &RunId) -> Option<Arc<RunShared>> {
        let number = self.by_id.remove(run)?;
        self.by_end.remove(&number).map(|ended| ended.run)
    }

    fn take_oldest(&mut self) -> Option<Arc<RunShared>> {
        let (_, Ended { run, .. }) = self.by_end.pop_first()?;
        self.by_id.remove(&run.id);
        Some(run)
    }

    fn take_expired(&mut self, time: Duration, now: SystemTime) -> Vec<Arc<RunShared>> {
        let mut expired = Vec::new();
        while self.by_end.first_key_value().is_some_and(|(_, first)| first.is_expired(time, now)) {
            expired.extend(self.take_oldest());
        }
        expired
    }
}

impl Ended {
    fn shared(&self) -> (Arc<RunShared>, SystemTime) {
        (Arc::clone(&self.run), self.end)
    }

    fn is_expired(&self, time: Duration, now: SystemTime) -> bool {
        self.at.checked_add(time).is_some_and(|until| until <= now)
    }
}

fn release_all(runs: impl IntoIterator<Item = Arc<RunShared>>) {
    runs.into_iter().for_each(release);
}

impl fmt::Debug for EndedRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = locked(&self.table).by_end.len();
        f.debug_struct("EndedRuns")
            .field("keeping", &self.keeping)
            .field("runs", &runs)
            .finish_non_exhaustive()
    }
}

//! The committer: the one thread that writes. It takes the jobs that wait, runs them in one transaction, commits, and
//! answers their callers. A job knows what it writes; the committer does not.
//!
//! ```text
//! callers ──▶ queue ──▶ committer: begin ─▶ job, job, job … ─▶ commit (one fsync) ─▶ answer all
//!                                  error ─▶ answer all with it ─▶ close the file ─▶ open it again
//! ```
//!
//! A refused job has done its work, so its refusal fails no other job. Only an error of the file fails a transaction,
//! and then redb uses the database no further. If the error was a failed sync, opening the file rewrites it (`rewrite`).
//!
//! Invariant: a caller gets `Ok` only after the commit of its job. With [`Durability::Buffered`] the commit may not be
//! on disk yet; if its later sync fails, `lost` holds the error for the next caller of `sync`.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use redb::Database;

use crate::builder::Durability;
use crate::error::{OpenError, WorkError};
use crate::opened::Opened;
use crate::queue::{Job, MAX_GROUP_BYTES, Next};
use crate::recent;
use crate::shared::{Shared, State};
use crate::tables::Tables;

/// With this many calls waiting, their writes go to the table that runs share.
const SHARED: usize = 4;

/// Opens the file again.
pub(crate) type Reopen = Box<dyn Fn() -> Result<Opened, OpenError> + Send>;

/// The state of the writing thread.
pub(crate) struct Committer {
    /// The database, the queue, and the signal of the file's release.
    pub(crate) shared: Arc<Shared>,
    pub(crate) durability: Durability,
    /// `None` if only the user can open the backend.
    pub(crate) reopen: Option<Reopen>,
    /// The time of the oldest answer that is not on disk yet.
    pub(crate) unsynced_since: Option<Instant>,
    /// The error by which answered writes may be lost, until a caller asks.
    pub(crate) lost: Option<WorkError>,
}

impl Committer {
    /// Works until the queue is closed and empty, and closes the file.
    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let worked = catch_unwind(AssertUnwindSafe(|| self.work()));
        let closed = catch_unwind(AssertUnwindSafe(|| *shared.alone() = State::Closed));
        // Also after a panic: a thread that waits for the file learns that it is released.
        shared.release.done();
        if let Err(panic) = worked.and(closed) {
            resume_unwind(panic);
        }
    }

    /// Takes work from the queue until that is closed. In between, syncs buffered commits when they are due.
    fn work(&mut self) {
        loop {
            match self.shared.queue.next(self.sync_due()) {
                Next::Jobs(jobs) => self.commit(jobs),
                Next::Sync(reply) => drop(reply.send(self.sync())),
                Next::Compact(reply) => drop(reply.send(self.compact())),
                Next::Idle => {}
                Next::Closed => break,
            }
            if self.sync_due().is_some_and(|due| due <= Instant::now()) {
                // The callers of earlier commits have their answers. The next caller of `sync` gets the error.
                if self.unsynced_since.is_some() {
                    drop(self.transact(true, |_| Ok(())));
                }
            }
        }
        drop(self.sync());
    }

    /// When buffered commits have to be on disk; `None` if all are, or with [`Durability::Sync`].
    fn sync_due(&self) -> Option<Instant> {
        match self.durability {
            Durability::Sync => None,
            // A time beyond the clock's range never comes.
            Durability::Buffered(interval) => self.unsynced_since?.checked_add(interval),
        }
    }

    /// Commits all of these jobs, in several transactions if they write too much for one.
    fn commit(&mut self, jobs: Vec<Box<dyn Job>>) {
        let mut waiting = VecDeque::from(jobs);
        while !waiting.is_empty() {
            self.commit_some(&mut waiting);
        }
    }

    /// Commits jobs together, up to `MAX_GROUP_BYTES`. After an error all of them get that as their answer.
    fn commit_some(&mut self, waiting: &mut VecDeque<Box<dyn Job>>) {
        let to_disk = self.durability == Durability::Sync;
        let (count, mut jobs) = (waiting.len(), Vec::new());
        let committed = self.transact(to_disk, |tables| {
            tables.shared = count >= SHARED;
            while tables.written < MAX_GROUP_BYTES
                && let Some(job) = waiting.pop_front()
            {
                // A job that fails or panics is answered too.
                jobs.push(job);
                jobs.last_mut().map_or(Ok(()), |job| job.work(tables))?;
            }
            Ok(())
        });
        if committed.is_ok() && !to_disk {
            self.unsynced_since.get_or_insert_with(Instant::now);
        }
        if committed.is_err() {
            jobs.extend(waiting.drain(..));
        }
        for job in jobs {
            job.answer(committed.clone());
        }
    }

    /// Puts all answered writes on disk.
    fn sync(&mut self) -> Result<(), WorkError> {
        if self.unsynced_since.is_some() {
            drop(self.transact(true, |_| Ok(())));
        }
        self.lost.take().map_or(Ok(()), Err)
    }

    /// Runs `work` in one transaction and commits it. After an error the file is opened again, because redb uses the
    /// database no further.
    fn transact(
        &mut self,
        to_disk: bool,
        work: impl FnOnce(&mut Tables<'_>) -> Result<(), redb::Error>,
    ) -> Result<(), WorkError> {
        self.recover()?;
        let committed = self.shared.with_database(|database| {
            let mut transaction = database.begin_write()?;
            let durability = if to_disk { redb::Durability::Immediate } else { redb::Durability::None };
            transaction.set_durability(durability)?;
            let mut tables = Tables::new(&transaction)?;
            work(&mut tables)?;
            drop(tables);
            Ok(transaction.commit()?)
        });
        match &committed {
            Ok(()) if to_disk => self.unsynced_since = None,
            Ok(()) => {}
            Err(error) => self.fail(error),
        }
        committed
    }

    /// Shrinks the file while no other thread uses the database. In a file that cannot grow, recent writes stay where they
    /// are: to move them needs room before any is free.
    fn compact(&mut self) -> Result<bool, WorkError> {
        match self.compact_after(settle_all) {
            Err(WorkError::Full { .. }) => self.compact_after(|_| Ok(())),
            compacted => compacted,
        }
    }

    /// Shrinks the file after this work. After an error the file is opened again.
    fn compact_after(
        &mut self,
        work: impl FnOnce(&Database) -> Result<(), redb::Error>,
    ) -> Result<bool, WorkError> {
        self.recover()?;
        let path = Arc::clone(&self.shared.path);
        let mut state = self.shared.alone();
        let database = state.database_mut(&self.shared)?;
        let compacted = catch_unwind(AssertUnwindSafe(|| {
            work(database)?;
            Ok(database.compact()?)
        }));
        drop(state);
        let compacted = match compacted {
            Ok(compacted) => compacted.map_err(|error: redb::Error| WorkError::redb(&path, error)),
            Err(panic) => Err(WorkError::panicked(&path, &*panic)),
        };
        if let Err(error) = &compacted {
            self.fail(error);
        }
        compacted
    }

    /// Closes the database, whose file may be half written, and opens it again, which repairs the file.
    fn fail(&mut self, error: &WorkError) {
        if self.unsynced_since.take().is_some() {
            self.lost = Some(error.clone());
        }
        // What a transaction without room took at the end of the file stays there when it is repaired. Closing the repaired
        // file gives it back to the disk.
        let closings = if matches!(error, WorkError::Full { .. }) && self.reopen.is_some() { 2 } else { 1 };
        for _ in 0..closings {
            // Closed first, because a process opens a file once.
            *self.shared.alone() = State::Failed(error.clone());
            // The next writing call tries again.
            drop(self.recover());
        }
    }

    /// Opens the file again, if it had to be closed. If a sync has failed, this rewrites the file.
    fn recover(&mut self) -> Result<(), WorkError> {
        if self.shared.is_open() {
            return Ok(());
        }
        // A backend that only its user can open stays closed, with the error.
        let Some(reopen) = self.reopen.as_ref() else { return self.shared.with_database(|_| Ok(())) };
        let path = Arc::clone(&self.shared.path);
        let reopened = reopen().map_err(|source| WorkError::NotReopened { path, source: Arc::new(source) });
        let (state, recovered) = match reopened {
            Ok(database) => (State::Open(database), Ok(())),
            Err(error) => (State::Failed(error.clone()), Err(error)),
        };
        *self.shared.alone() = state;
        recovered
    }
}

/// Moves all recent writes to their final table, so many in one transaction.
fn settle_all(database: &Database) -> Result<(), redb::Error> {
    let mut has_more = true;
    while has_more {
        let transaction = database.begin_write()?;
        has_more = recent::settle_some(&mut Tables::new(&transaction)?, MAX_GROUP_BYTES)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, SystemTime};

    use futures::FutureExt as _;
    use futures::executor::block_on;
    use redb::ReadableTableMetadata as _;
    use redb::backends::InMemoryBackend;
    use workflow_core::RunStatus;
    use workflow_core::store::{
        EventStore, Position, Record, RunQuery, RunSummary, StoreError, StoreFuture, Write,
    };

    use super::*;
    use crate::RedbStore;
    use crate::file::{Options, open_backend};

    fn in_memory() -> Result<Opened, OpenError> {
        let options = Options { cache: 1 << 20, create: true, verify: false };
        open_backend("memory".as_ref(), InMemoryBackend::new(), options)
    }

    fn append(store: &RedbStore, run: &str) -> StoreFuture<()> {
        let now = SystemTime::now();
        let records = vec![Record::RunEnded {
            status: RunStatus::Completed,
            step: None,
            error: None,
            deadline: None,
            origin: None,
            at: now,
        }];
        store.append(&run.into(), Position(0), Write { records, run: RunSummary::running("Orders", now) })
    }

    /// Makes the committer panic in a transaction.
    fn panic_in(store: &RedbStore) -> WorkError {
        let shared = store.shared();
        let work = |_: &mut Tables<'_>| -> Result<(), redb::Error> {
            std::panic::resume_unwind(Box::new("a bug, on purpose"))
        };
        block_on(shared.queue.commit(0, work)).unwrap_err()
    }

    #[test]
    fn after_an_error_the_file_is_opened_again() {
        let store =
            RedbStore::builder().start("runs".into(), None, in_memory().unwrap(), Some(Box::new(in_memory)));
        let store = store.unwrap();
        block_on(append(&store, "a")).unwrap();
        assert_eq!(panic_in(&store).to_string(), "work on `runs` panicked: a bug, on purpose");
        // A reopened backend in memory is empty.
        assert!(block_on(store.runs(&RunQuery::new())).unwrap().is_empty());
        block_on(append(&store, "a")).unwrap();
    }

    /// How many writes are recent after so many runs have appended in one commit.
    fn recent_of_a_commit(runs: usize) -> u64 {
        let store = RedbStore::builder().start("runs".into(), None, in_memory().unwrap(), None).unwrap();
        let (shared, (begun, begins), (go, goes)) =
            (store.shared(), std::sync::mpsc::channel(), std::sync::mpsc::channel());
        // The committer is held until all appends wait for it.
        let held = std::thread::spawn(move || {
            let work = move |_: &mut Tables<'_>| {
                begun.send(()).unwrap();
                goes.recv().unwrap();
                Ok(())
            };
            block_on(shared.queue.commit(0, work)).unwrap();
        });
        begins.recv().unwrap();
        let appends = (0..runs).map(|run| append(&store, &run.to_string()));
        let mut appends = futures::future::join_all(appends);
        assert!((&mut appends).now_or_never().is_none(), "the committer is held up");
        go.send(()).unwrap();
        assert!(block_on(appends).iter().all(Result::is_ok));
        held.join().unwrap();
        let count = |tables: &mut Tables<'_>| Ok(tables.recent.len()?);
        block_on(store.shared().queue.commit(0, count)).unwrap()
    }

    #[test]
    fn batches_of_many_runs_are_put_beside_each_other_and_those_of_few_are_not() {
        let few = SHARED - 1;
        assert_eq!([1, few, SHARED, 9].map(recent_of_a_commit), [0, 0, SHARED as u64, 9]);
    }

    #[test]
    fn a_file_that_cannot_be_opened_again_is_tried_with_each_call_that_writes() {
        let is_back = Arc::new(AtomicBool::new(false));
        let is_there = Arc::clone(&is_back);
        let reopen = move || {
            let away = || Err(OpenError::NotFound { path: "runs".into() });
            if is_there.load(Ordering::SeqCst) { in_memory() } else { away() }
        };
        let store =
            RedbStore::builder().start("runs".into(), None, in_memory().unwrap(), Some(Box::new(reopen)));
        let store = store.unwrap();
        panic_in(&store);
        let error = block_on(append(&store, "a")).unwrap_err();
        let StoreError::Unavailable { source } = &error else { panic!("{error:?}") };
        assert_eq!(source.to_string(), "`runs` cannot be used after an error");
        assert!(block_on(store.runs(&RunQuery::new())).is_err());
        is_back.store(true, Ordering::SeqCst);
        block_on(append(&store, "a")).unwrap();
    }

    /// Makes the calls while the committer is held, so that it finds all of them at once.
    fn together<T: Send + 'static>(store: &RedbStore, calls: Vec<StoreCall<T>>) -> Vec<T> {
        let (shared, (begun, begins), (go, goes)) =
            (store.shared(), std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let held = std::thread::spawn(move || {
            let work = move |_: &mut Tables<'_>| {
                begun.send(()).unwrap();
                goes.recv().unwrap();
                Ok(())
            };
            block_on(shared.queue.commit(0, work)).unwrap();
        });
        begins.recv().unwrap();
        let mut calls = futures::future::join_all(calls);
        assert!((&mut calls).now_or_never().is_none(), "the committer is held up");
        go.send(()).unwrap();
        let answers = block_on(calls);
        held.join().unwrap();
        answers
    }

    type StoreCall<T> = futures::future::BoxFuture<'static, T>;

    #[test]
    fn a_transaction_that_has_written_enough_leaves_the_rest_to_the_next() {
        let store = RedbStore::builder().start("runs".into(), None, in_memory().unwrap(), None).unwrap();
        let call = |bytes: usize| {
            let shared = store.shared();
            let work = move |tables: &mut Tables<'_>| {
                let before = tables.written;
                // Batches of others that are moved, for example.
                tables.written += bytes;
                Ok(before)
            };
            async move { shared.queue.commit(0, work).await.unwrap() }.boxed()
        };
        let half = MAX_GROUP_BYTES / 2;
        let calls = [half, half, 1, MAX_GROUP_BYTES, 7].map(call).into();
        assert_eq!(together(&store, calls), [0, half, 0, 1, 0]);
    }

    #[test]
    fn a_call_that_is_too_large_fails_alone() {
        let builder = RedbStore::builder().max_job(1_000);
        let store = builder.start("runs".into(), None, in_memory().unwrap(), None).unwrap();
        let scope = workflow_core::store::ContextScope::Run("a".into());
        let set = |length: usize| {
            let (store, scope) = (store.clone(), scope.clone());
            let value = workflow_core::store::ContextValue::new("v".repeat(length));
            async move {
                workflow_core::store::ContextStore::set(&store, &scope, "k", Some(value))
                    .await
                    .map_err(|error| std::error::Error::source(&error).unwrap().to_string())
                    .map(|_| ())
            }
            .boxed()
        };
        let refused = block_on(append(&store, &"r".repeat(1_000))).unwrap_err();
        let StoreError::Unserialisable { source } = &refused else { panic!("{refused:?}") };
        let work = source.downcast_ref();
        assert!(matches!(work, Some(WorkError::TooLarge { bytes: 1_001.., limit: 1_000, .. })), "{work:?}");
        let put = |run| append(&store, run).map(|put| put.map_err(|error| error.to_string())).boxed();
        let answers = together(&store, vec![put("a"), set(10), put("b")]);
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        let calls = vec![put("c"), set(1_000), put("d")];
        let told = "1009 bytes at once are more than the 1000 that `runs` takes";
        assert_eq!(together(&store, calls), [Ok(()), Err(told.to_owned()), Ok(())]);
        assert_eq!(block_on(store.runs(&RunQuery::new())).unwrap().len(), 4);
    }

    #[test]
    fn a_store_can_be_dropped_by_its_own_thread() {
        let store = RedbStore::builder()
            .durability(Durability::Buffered(Duration::MAX))
            .start("runs".into(), None, in_memory().unwrap(), None)
            .unwrap();
        let shared = store.shared();
        let work = move |_: &mut Tables<'_>| {
            drop(store);
            Ok(())
        };
        block_on(shared.queue.commit(0, work)).unwrap();
    }
}

//! What waits for the committer: a bounded queue of jobs, many ends to put in and one thread to take out. What a job
//! does to the tables is its own; when they are committed is the committer's.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::WorkError;
use crate::tables::Tables;

/// How many jobs are committed at once, at most.
const MAX_GROUP: usize = 1_024;

/// How many bytes are committed at once, at most, unless it is a single job. Jobs also move what others wrote before:
/// what is counted while they work bounds a transaction again.
pub(crate) const MAX_GROUP_BYTES: usize = 16 << 20;

/// How many bytes a job may have: 1 GiB. A value of redb may have three times as many, and a job is in memory as a whole.
pub(crate) const MAX_JOB_BYTES: usize = 1 << 30;

/// Something to write, and somebody who waits for it.
pub(crate) trait Job: Send {
    /// Does the work, in a transaction that others share. An error is one of the transaction: work that is
    /// refused is work that is done.
    fn work(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error>;

    /// Tells who waits, once the transaction is committed or has failed.
    fn answer(self: Box<Self>, committed: Result<(), WorkError>);
}

/// Somebody who waits to be told whether the file is smaller.
pub(crate) type Compacted = oneshot::Sender<Result<bool, WorkError>>;

/// What the committer is given.
pub(crate) enum Task {
    Group(Box<dyn Job>),
    /// Everything that was answered before is to be on disk.
    Sync(oneshot::Sender<Result<(), WorkError>>),
    /// With nobody else in the database.
    Compact(Compacted),
}

/// What the committer finds.
pub(crate) enum Next {
    Jobs(Vec<Box<dyn Job>>),
    Sync(oneshot::Sender<Result<(), WorkError>>),
    Compact(Compacted),
    /// The time that was set is over, and there was nothing to do.
    Idle,
    /// There is nothing left to do, and nothing will come.
    Closed,
}

pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    /// A permit for each task that waits.
    room: Arc<Semaphore>,
    path: Arc<Path>,
    max_job: usize,
}

#[derive(Default)]
struct Waiting {
    tasks: VecDeque<Queued>,
    closed: bool,
}

struct Queued {
    task: Task,
    bytes: usize,
    /// Given back when the committer takes the task.
    _room: OwnedSemaphorePermit,
}

impl Queue {
    pub(crate) fn new(room: usize, max_job: usize, path: &Arc<Path>) -> Self {
        Self {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            room: Arc::new(Semaphore::new(room.clamp(1, Semaphore::MAX_PERMITS))),
            path: Arc::clone(path),
            max_job,
        }
    }

    /// Refuses a job of too many bytes. It never comes to the others of a transaction.
    pub(crate) fn admit(&self, bytes: usize) -> Result<(), WorkError> {
        let (path, limit) = (Arc::clone(&self.path), self.max_job);
        if bytes <= limit { Ok(()) } else { Err(WorkError::TooLarge { path, bytes, limit }) }
    }

    /// Puts in a task of so many bytes, and waits for room if there is none. Those who wait are served in their order.
    pub(crate) async fn put(&self, task: Task, bytes: usize) -> Result<(), WorkError> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| self.is_closed())?;
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(self.is_closed());
        }
        waiting.tasks.push_back(Queued { task, bytes, _room: room });
        drop(waiting);
        self.wake.notify_one();
        Ok(())
    }

    /// Puts in work of so many bytes and waits until it is committed.
    pub(crate) async fn commit<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&mut Tables<'_>) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, WorkError> {
        self.admit(bytes)?;
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Call { work: Some(work), done: None, reply });
        self.put(Task::Group(job), bytes).await?;
        answer.await.unwrap_or_else(|_| Err(self.is_closed()))
    }

    pub(crate) fn is_closed(&self) -> WorkError {
        WorkError::Closed { path: Arc::clone(&self.path) }
    }

    /// Lets nothing more in. What waits is still done.
    pub(crate) fn close(&self) {
        self.room.close();
        self.waiting().closed = true;
        self.wake.notify_one();
    }

    /// Waits for something to do, until then if a time is set.
    pub(crate) fn next(&self, until: Option<Instant>) -> Next {
        let mut waiting = self.waiting();
        while waiting.tasks.is_empty() {
            if waiting.closed {
                return Next::Closed;
            }
            let Some(until) = until else {
                waiting = self.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Idle;
            }
            waiting = self.wake.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        waiting.take()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// As many jobs as may be committed at once, or the one task that is done alone.
    fn take(&mut self) -> Next {
        let (mut jobs, mut bytes) = (Vec::new(), 0_usize);
        while let Some(Queued { task, bytes: more, .. }) = self.tasks.pop_front_if(|next| {
            let is_job = matches!(next.task, Task::Group(_));
            jobs.is_empty()
                || is_job && jobs.len() < MAX_GROUP && bytes.saturating_add(next.bytes) <= MAX_GROUP_BYTES
        }) {
            match task {
                Task::Group(job) => jobs.push(job),
                Task::Sync(reply) => return Next::Sync(reply),
                Task::Compact(reply) => return Next::Compact(reply),
            }
            bytes = bytes.saturating_add(more);
        }
        Next::Jobs(jobs)
    }
}

/// A job that is a closure.
struct Call<T, W> {
    work: Option<W>,
    done: Option<T>,
    reply: oneshot::Sender<Result<T, WorkError>>,
}

impl<T: Send, W> Job for Call<T, W>
where
    W: FnOnce(&mut Tables<'_>) -> Result<T, redb::Error> + Send,
{
    fn work(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        if let Some(work) = self.work.take() {
            self.done = Some(work(tables)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), WorkError>) {
        let answer = match (committed, self.done) {
            (Ok(()), Some(done)) => Ok(done),
            (Err(error), _) => Err(error),
            // Without an answer, who waits is told that the store was closed.
            (Ok(()), None) => return,
        };
        // An error says that nobody waits any more.
        let _ = self.reply.send(answer);
    }
}

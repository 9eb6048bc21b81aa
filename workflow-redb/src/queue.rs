//! The queue of the committer: bounded, with many senders and one receiving thread. A job knows what it writes, and the
//! committer decides when.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::WorkError;
use crate::tables::Tables;

/// The most jobs of one commit.
const MAX_GROUP: usize = 1_024;

/// The most bytes of one commit, except for a single larger job. A job may also move earlier writes; the committer
/// counts those too, and ends the transaction at this bound.
pub(crate) const MAX_GROUP_BYTES: usize = 16 << 20;

/// The most bytes of one job: 1 GiB. redb allows values of three times the size, but a job is in memory as a whole.
pub(crate) const MAX_JOB_BYTES: usize = 1 << 30;

/// Work for the committer, with its caller's answer.
pub(crate) trait Job: Send {
    /// Works in a transaction that other jobs share. An error fails the whole transaction; a refusal is a result of the
    /// job.
    fn work(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error>;

    /// Answers the caller, once the transaction is committed or has failed.
    fn answer(self: Box<Self>, committed: Result<(), WorkError>);
}

/// The answer of a compaction: whether the file is smaller.
pub(crate) type Compacted = oneshot::Sender<Result<bool, WorkError>>;

/// A task for the committer.
pub(crate) enum Task {
    /// A job, committed with others.
    Group(Box<dyn Job>),
    /// Put everything that was answered before on disk.
    Sync(oneshot::Sender<Result<(), WorkError>>),
    /// Compact the file, while no other thread uses the database.
    Compact(Compacted),
}

/// The committer's next work.
pub(crate) enum Next {
    /// Jobs for one commit; at least one.
    Jobs(Vec<Box<dyn Job>>),
    Sync(oneshot::Sender<Result<(), WorkError>>),
    Compact(Compacted),
    /// The time is over, and there was no task.
    Idle,
    /// The queue is closed and empty.
    Closed,
}

/// A bounded queue with many senders and one receiver.
pub(crate) struct Queue {
    /// Locked for one operation at a time.
    waiting: Mutex<Waiting>,
    /// Wakes the committer.
    wake: Condvar,
    /// A permit for each waiting task.
    room: Arc<Semaphore>,
    path: Arc<Path>,
    /// The most bytes of one job.
    max_job: usize,
}

/// The waiting tasks.
#[derive(Default)]
struct Waiting {
    tasks: VecDeque<Queued>,
    /// Set by `close`. Then no task is added, and the waiting ones are still taken.
    closed: bool,
}

/// A waiting task, with its permit for a place in the queue.
struct Queued {
    task: Task,
    /// An estimate of the bytes that it adds to a commit.
    bytes: usize,
    /// Returned when the committer takes the task.
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

    /// Refuses a job of too many bytes, before it can fail the transaction of others.
    pub(crate) fn admit(&self, bytes: usize) -> Result<(), WorkError> {
        let (path, limit) = (Arc::clone(&self.path), self.max_job);
        if bytes <= limit { Ok(()) } else { Err(WorkError::TooLarge { path, bytes, limit }) }
    }

    /// Adds a task of so many bytes, and waits for room in order of arrival.
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

    /// Adds work of so many bytes and waits until it is committed.
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

    /// Refuses further tasks. Waiting tasks are still done.
    pub(crate) fn close(&self) {
        self.room.close();
        self.waiting().closed = true;
        self.wake.notify_one();
    }

    /// Waits for the next work, at most until `until` if that is given.
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
        // No code panics under this lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Takes as many jobs as one commit may have, or the one task that runs alone.
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

/// A job made of a closure.
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
            // Without an answer, the caller gets the error of a closed store.
            (Ok(()), None) => return,
        };
        // An error means that the caller no longer waits.
        let _ = self.reply.send(answer);
    }
}

//! Places among the runs that run at a time: of the engine and of each workflow, who holds one, and who waits.
//!
//! A run takes its workflow's place first and the engine's second, always, and nobody who holds one of the engine's
//! waits for one of a workflow's: whoever waits for a second place, waits for runs that wait for no place. So the
//! two limits do not deadlock, and the runs of a full workflow wait without holding what others need.
//!
//! Children have places of their own, and one may borrow its parent's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{Either, select};
use smallvec::{SmallVec, smallvec};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::meter::Level;
use super::waiting::WaitsFor;
use crate::error::StartError;
use crate::id::RunId;

/// So many runs at a time.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    most: usize,
    of: Bounded,
}

/// Whom a gate bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bounded {
    /// The runs of the engine.
    Runs,
    /// The runs of this workflow.
    RunsOf(&'static str),
    /// The child runs of the engine.
    Children,
}

impl Gate {
    pub(crate) fn new(most: usize, of: Bounded) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(most)), most, of }
    }

    /// What a run that waits here waits for.
    pub(super) fn waits_for(&self) -> WaitsFor {
        let limit = self.most;
        match self.of {
            Bounded::Runs => WaitsFor::Runs { workflow: None, limit },
            Bounded::RunsOf(workflow) => WaitsFor::Runs { workflow: Some(workflow.into()), limit },
            Bounded::Children => WaitsFor::Children { limit },
        }
    }

    pub(crate) fn workflow(&self) -> Option<&'static str> {
        if let Bounded::RunsOf(workflow) = self.of { Some(workflow) } else { None }
    }
}

/// What one run passes before it runs, in this order.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    gates: SmallVec<[Arc<Gate>; 2]>,
    queue: Arc<Queue>,
    run: RunId,
    workflow: Arc<str>,
    /// The place of the parent that waits for this run, and needs it for nothing else.
    lent: Option<Arc<Semaphore>>,
    /// At which gate the run waits, while it does. Clones share it.
    at: Arc<AtomicUsize>,
}

/// A place behind every gate. Dropping it gives all of them up.
#[derive(Debug)]
pub(crate) struct Place {
    _permits: SmallVec<[OwnedSemaphorePermit; 2]>,
}

impl Places {
    /// None if nothing bounds the run.
    pub(crate) fn of(
        run: &RunId,
        workflow: &Arc<str>,
        own: Option<&Arc<Gate>>,
        engine: Option<&Arc<Gate>>,
        queue: &Arc<Queue>,
    ) -> Option<Self> {
        let gates: SmallVec<_> = own.into_iter().chain(engine).map(Arc::clone).collect();
        (!gates.is_empty()).then(|| Self {
            gates,
            queue: Arc::clone(queue),
            run: run.clone(),
            workflow: Arc::clone(workflow),
            lent: None,
            at: Arc::default(),
        })
    }

    /// Those of a child run.
    pub(crate) fn of_child(
        run: &RunId,
        workflow: &Arc<str>,
        children: &Arc<Gate>,
        lent: Option<Arc<Semaphore>>,
        queue: &Arc<Queue>,
    ) -> Self {
        Self {
            gates: smallvec![Arc::clone(children)],
            queue: Arc::clone(queue),
            run: run.clone(),
            workflow: Arc::clone(workflow),
            lent,
            at: Arc::default(),
        }
    }

    /// The gate at which the run waits, if it does.
    pub(super) fn gate(&self) -> Option<&Gate> {
        self.gates.get(self.at.load(Ordering::Relaxed)).map(|gate| &**gate)
    }

    /// Waits for a place behind every gate, in the queue of each in turn. Dropping the future gives up the wait and
    /// the place it may have had.
    pub(crate) async fn take(self) -> Place {
        let Some(lent) = self.lent.clone() else { return self.queue_up().await };
        match select(Box::pin(lent.acquire_owned()), Box::pin(self.queue_up())).await {
            // No semaphore is ever closed.
            Either::Left((lent, _)) => Place { _permits: lent.into_iter().collect() },
            Either::Right((place, _)) => place,
        }
    }

    async fn queue_up(self) -> Place {
        let (mut permits, mut queued) = (SmallVec::new(), None);
        for (at, gate) in self.gates.iter().enumerate() {
            if let Ok(permit) = Arc::clone(&gate.places).try_acquire_owned() {
                permits.push(permit);
                continue;
            }
            queued.get_or_insert_with(|| Queue::enter(&self.queue, &self.run, &self.workflow));
            self.at.store(at, Ordering::Relaxed);
            // The semaphore is never closed.
            permits.extend(Arc::clone(&gate.places).acquire_owned().await);
        }
        Place { _permits: permits }
    }

    /// Takes a place behind every gate now, or none.
    pub(crate) fn take_now(&self) -> Result<Place, StartError> {
        let permits = self.gates.iter().map(|gate| {
            let full = |_: TryAcquireError| StartError::Full { limit: gate.most, workflow: gate.workflow() };
            Arc::clone(&gate.places).try_acquire_owned().map_err(full)
        });
        Ok(Place { _permits: permits.collect::<Result<_, _>>()? })
    }
}

/// The runs that wait for a place, by the order in which they began to.
#[derive(Debug, Default)]
pub(crate) struct Queue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    runs: BTreeMap<u64, RunId>,
    next: u64,
}

impl Queue {
    /// Those that wait now, the one that began first in front.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        self.lock().runs.values().cloned().collect()
    }

    fn enter(queue: &Arc<Self>, run: &RunId, workflow: &Arc<str>) -> Queued {
        let mut waiting = queue.lock();
        let ticket = waiting.next;
        waiting.next += 1;
        waiting.runs.insert(ticket, run.clone());
        drop(waiting);
        Queued { queue: Arc::clone(queue), ticket, _level: Level::queued(workflow) }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // What is kept here is whole between any two calls, whatever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run's place in the queue, until it is dropped.
#[derive(Debug)]
struct Queued {
    queue: Arc<Queue>,
    ticket: u64,
    _level: Level,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.queue.lock().runs.remove(&self.ticket);
    }
}

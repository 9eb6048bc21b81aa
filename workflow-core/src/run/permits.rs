//! Permits of runs: the limits of an engine and of its workflows, and the queue of the runs that wait for
//! one.
//!
//! A [`RunLimit`] is a limit. A [`Permit`] is one permit of each limit that applies to a run. [`PermitRequest`] takes
//! them.
//!
//! ```text
//! run ──▶ limit of its workflow's name ──▶ limit of its type ──▶ limit of the engine ──▶ runs
//! child run ──▶ limit of children, or the permit that its waiting parent lends ──▶ runs
//! ```
//!
//! # Invariant
//! Every run takes its permits in this order. So a run that holds a permit of the engine never waits for one of a
//! workflow, and a run that waits for a permit waits only for runs that wait for later ones. The limits cannot deadlock, and a run whose workflow is at its limit holds no
//! permit of the engine while it waits.
//!
//! # Example
//! The engine has 2 permits and workflow `Report` has 1. Runs `r1` of `Report` and `o1` of `Order` have permits. `r2`
//! of `Report` waits at its workflow and holds nothing. `o2` waits at the engine. When `o1` waits for a reply, its
//! permit goes to `o2`; when `r1` ends, its two permits go to `r2`, one after the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::{Either, select};
use smallvec::{SmallVec, smallvec};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::meter::GaugeEntry;
use crate::id::RunId;
use crate::outcome::StartError;
use crate::panics::locked;
use crate::report::{HOLDERS, WaitsFor};

/// A limit: at most this many runs at a time.
#[derive(Debug)]
pub(crate) struct RunLimit {
    /// Fair: a released permit goes to the run that has waited longest. Never closed.
    permits: Arc<Semaphore>,
    /// The number of permits, for messages; at least 1.
    runs: usize,
    /// The runs that the limit bounds, for messages.
    of: LimitOf,
    /// The runs that hold a permit, in the order in which they took it.
    holders: Mutex<Tickets>,
}

/// The runs that a limit bounds.
#[derive(Debug, Clone)]
pub(crate) enum LimitOf {
    /// The runs of the engine.
    Runs,
    /// The runs of this workflow.
    RunsOf(Arc<str>),
    /// The child runs of the engine.
    Children,
}

impl RunLimit {
    pub(crate) fn new(limit: usize, of: LimitOf) -> Self {
        let runs = limit.clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(runs)), runs, of, holders: Mutex::default() }
    }

    /// This limit, as the reason why an execution has not begun.
    pub(super) fn waits_for(&self) -> WaitsFor {
        let (limit, held_by) = (self.runs, self.held_by());
        match &self.of {
            LimitOf::Runs => WaitsFor::Runs { workflow: None, limit, held_by },
            LimitOf::RunsOf(workflow) => {
                WaitsFor::Runs { workflow: Some(Arc::clone(workflow)), limit, held_by }
            }
            LimitOf::Children => WaitsFor::Children { limit, held_by },
        }
    }

    /// The first runs that hold a permit.
    fn held_by(&self) -> Arc<[RunId]> {
        locked(&self.holders).runs.values().take(HOLDERS).cloned().collect()
    }

    fn hold(self: &Arc<Self>, run: Option<&RunId>, permit: OwnedSemaphorePermit) -> HeldPermit {
        let ticket = locked(&self.holders).enter(run);
        HeldPermit { limit: Arc::clone(self), ticket, _permit: permit }
    }

    pub(crate) fn workflow(&self) -> Option<&Arc<str>> {
        if let LimitOf::RunsOf(workflow) = &self.of { Some(workflow) } else { None }
    }
}

/// The limits of one run, in the order in which it takes their permits.
#[derive(Debug, Clone)]
pub(crate) struct PermitRequest {
    /// The limits of the workflow's name and type, where it has them, and then that of the engine. For a child, the
    /// limit of children.
    gates: SmallVec<[Arc<RunLimit>; 2]>,
    /// The engine's list of waiting runs, for its status.
    queue: Arc<PermitQueue>,
    /// The run, as it appears in that list; `None` for a permit that is taken before its run is known.
    run: Option<RunId>,
    /// Its workflow, for the gauge of queued runs.
    workflow: Arc<str>,
    /// The permit of a parent that does nothing but wait for this run: the run may use it instead.
    lent: Option<Arc<Semaphore>>,
    /// The index of the limit at which the run waits, while it does. Clones share it: one clone waits, and another
    /// answers for reports. Meaningless while nothing waits.
    at: Arc<AtomicUsize>,
}

/// One permit of each limit. Dropping it returns them all.
#[derive(Debug)]
pub(crate) struct Permit {
    permits: SmallVec<[HeldPermit; 2]>,
    /// What a parent has lent instead.
    _lent: Option<OwnedSemaphorePermit>,
}

/// A permit of one limit. Dropping it returns it.
#[derive(Debug)]
struct HeldPermit {
    limit: Arc<RunLimit>,
    ticket: u64,
    _permit: OwnedSemaphorePermit,
}

impl Drop for HeldPermit {
    fn drop(&mut self) {
        locked(&self.limit.holders).runs.remove(&self.ticket);
    }
}

impl PermitRequest {
    /// The limits of a run in the order in which it takes their permits; `None` if no limit applies. The run may become
    /// known later.
    pub(crate) fn of(
        run: Option<&RunId>,
        workflow: &Arc<str>,
        limits: [Option<&Arc<RunLimit>>; 3],
        queue: &Arc<PermitQueue>,
    ) -> Option<Self> {
        let gates: SmallVec<_> = limits.into_iter().flatten().map(Arc::clone).collect();
        (!gates.is_empty()).then(|| Self {
            gates,
            queue: Arc::clone(queue),
            run: run.cloned(),
            workflow: Arc::clone(workflow),
            lent: None,
            at: Arc::default(),
        })
    }

    /// The limits of a child run.
    pub(crate) fn of_child(
        run: &RunId,
        workflow: &Arc<str>,
        children: &Arc<RunLimit>,
        lent: Option<Arc<Semaphore>>,
        queue: &Arc<PermitQueue>,
    ) -> Self {
        Self {
            gates: smallvec![Arc::clone(children)],
            queue: Arc::clone(queue),
            run: Some(run.clone()),
            workflow: Arc::clone(workflow),
            lent,
            at: Arc::default(),
        }
    }

    /// The same limits, now that the run is known that holds this permit of them.
    pub(crate) fn of_run(self, run: &RunId, permit: &Permit) -> Self {
        for held in &permit.permits {
            locked(&held.limit.holders).runs.insert(held.ticket, run.clone());
        }
        Self { run: Some(run.clone()), ..self }
    }

    /// The limit at which the run waits, if it does.
    pub(super) fn waits_at(&self) -> Option<&RunLimit> {
        self.gates.get(self.at.load(Ordering::Relaxed)).map(|gate| &**gate)
    }

    /// Waits in the queue of each limit in turn for its permit. Dropping the future returns the permits taken
    /// so far.
    pub(crate) async fn take(self) -> Permit {
        let Some(lent) = self.lent.clone() else { return self.acquire_in_order().await };
        // The first permit counts. Dropping the other wait leaves its queue, and returns permits that it had.
        match select(Box::pin(lent.acquire_owned()), Box::pin(self.acquire_in_order())).await {
            // No semaphore is ever closed.
            Either::Left((lent, _)) => Permit { permits: SmallVec::new(), _lent: lent.ok() },
            Either::Right((place, _)) => place,
        }
    }

    /// Takes one permit of each limit, in their order. The run is in the queue as long as it waits for any of
    /// them.
    async fn acquire_in_order(self) -> Permit {
        let (mut permits, mut queued) = (SmallVec::new(), None);
        for (at, gate) in self.gates.iter().enumerate() {
            // Most runs need not wait, and never enter the list. No waiting run is passed: while one waits,
            // no permit is free.
            if let Ok(permit) = Arc::clone(&gate.permits).try_acquire_owned() {
                permits.push(gate.hold(self.run.as_ref(), permit));
                continue;
            }
            queued.get_or_insert_with(|| PermitQueue::enter(&self.queue, self.run.as_ref(), &self.workflow));
            self.at.store(at, Ordering::Relaxed);
            // The semaphore is never closed.
            let permit = Arc::clone(&gate.permits).acquire_owned().await;
            permits.extend(permit.ok().map(|permit| gate.hold(self.run.as_ref(), permit)));
        }
        Permit { permits, _lent: None }
    }

    /// Takes the permits of all limits now. A lent permit does not count.
    ///
    /// # Errors
    /// [`StartError::Full`] with the first limit that is reached; no permit is then held.
    pub(crate) fn take_now(&self) -> Result<Permit, StartError> {
        let permits = self.gates.iter().map(|gate| {
            let full = |_: TryAcquireError| StartError::Full {
                limit: gate.runs,
                workflow: gate.workflow().cloned(),
                held_by: gate.held_by(),
            };
            let permit = Arc::clone(&gate.permits).try_acquire_owned().map_err(full)?;
            Ok::<_, StartError>(gate.hold(self.run.as_ref(), permit))
        });
        Ok(Permit { permits: permits.collect::<Result<_, StartError>>()?, _lent: None })
    }
}

/// The runs that wait for a permit, in the order in which they began to wait.
#[derive(Debug, Default)]
pub(crate) struct PermitQueue(Mutex<Tickets>);

/// Runs in the order in which they came.
#[derive(Debug, Default)]
struct Tickets {
    /// By ticket, which is the order of entering.
    runs: BTreeMap<u64, RunId>,
    /// The next ticket.
    next: u64,
}

impl Tickets {
    /// Adds a run, if it is known, and returns the number under which it is removed.
    fn enter(&mut self, run: Option<&RunId>) -> u64 {
        let ticket = self.next;
        self.next += 1;
        self.runs.extend(run.map(|run| (ticket, run.clone())));
        ticket
    }
}

impl PermitQueue {
    /// The waiting runs, the longest waiting first.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        locked(&self.0).runs.values().cloned().collect()
    }

    /// Adds a run to the queue, until the entry is dropped.
    fn enter(queue: &Arc<Self>, run: Option<&RunId>, workflow: &Arc<str>) -> QueueEntry {
        let ticket = locked(&queue.0).enter(run);
        QueueEntry { queue: Arc::clone(queue), ticket, _level: GaugeEntry::queued(workflow) }
    }
}

/// The entry of a waiting run in the queue. Dropping it removes the entry.
#[derive(Debug)]
struct QueueEntry {
    /// The list that has the entry.
    queue: Arc<PermitQueue>,
    /// The key of the entry.
    ticket: u64,
    /// Counts the run as queued in the metrics, as long as the entry exists.
    _level: GaugeEntry,
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        locked(&self.queue.0).runs.remove(&self.ticket);
    }
}

//! The lease of an engine: the engine takes it, renews it, and gives it up. Another file, `engine/claim`, decides which
//! orphans the engine then claims; `owner` says whose run a run is.
//!
//! A lease is the right to drive runs until a point in time. The engine takes its lease before it writes to its first
//! run, and renews it at every third of its duration:
//!
//! ```text
//! time      0 ──────── 1/3 ─────── 2/3 ──────── 1 ──────
//! engine    take       renew       renew        renew
//!                      └ claim orphans (one search at a time)
//! lost      take       fails       fails        term() is None: no execution begins
//!           … renew ──▶ the next term: each run writes `RunKept`, and begins nothing before
//! ```
//!
//! Invariant: the engine's own view ends no later than the store's. The engine counts from the start of a call, and the
//! store from a later moment. So `term` never returns a lease that the store has already given to others.
//!
//! One call of the store is made at a time (`call_lock`). A call for a caller runs in a task of its own, because a caller
//! may stop polling its future and would block the renewals.
//!
//! Example: the engine takes the lease at 0 s for 30 s, in term 1. The renewals at 10 s and 20 s succeed. The
//! store is away from 25 s to 70 s. At 50 s, 30 s after the start of the last successful call, `term` is
//! `None`, and no run begins anything. The call at 70 s succeeds and begins term 2.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::id::EngineId;
use crate::panics::{caught, caught_in, locked};
use crate::patience::StorePatience;
use crate::store::{EventStore, StoreError};

/// The shortest lease. Renewals come at a third of it.
pub(crate) const SHORTEST: Duration = Duration::from_secs(1);

/// The lease of one engine, in the engine's own view.
pub(crate) struct Lease {
    /// This engine, in the calls of the store.
    engine: EngineId,
    /// `None` once the engine has given the lease up for good. Ended runs keep the lease, and must not keep the store.
    store: Mutex<Option<Arc<dyn EventStore>>>,
    /// How long each renewal extends the lease.
    duration: Duration,
    /// The state by the latest successful call. Runs watch it for renewals.
    held: watch::Sender<LeaseState>,
    /// Locked during each call of the store, so that no call overtakes another.
    call_lock: tokio::sync::Mutex<()>,
    /// The tasks that make these calls for callers. `give_up` waits for all of them.
    calls: TaskTracker,
    /// The task that renews the lease, and the runtime that has it.
    renewing: Mutex<Option<(JoinHandle<()>, Handle)>>,
}

/// When the lease was last renewed, and how often the engine has taken it.
#[derive(Default)]
struct LeaseState {
    /// The beginning of the latest successful call; `None` if the engine never held the lease, or gave it up.
    since: Option<Moment>,
    /// The beginning of the call that began the term.
    taken: Option<Moment>,
    /// Counts the times that the engine took the lease without holding it. A renewal in time does not change it.
    term: u64,
}

/// When a renewal began. A monotonic clock may stand still while the machine sleeps, and a system clock may be set
/// back. The larger of both elapsed times counts.
#[derive(Clone, Copy)]
struct Moment(Instant, SystemTime);

impl Moment {
    fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    /// How long ago the moment was, by the clock that says more.
    fn elapsed(self) -> Duration {
        self.0.elapsed().max(self.1.elapsed().unwrap_or_default())
    }
}

impl LeaseState {
    /// Whether the lease still lasts, in the engine's view.
    fn lasts(&self, duration: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() < duration)
    }
}

impl Lease {
    pub(crate) fn new(engine: EngineId, store: Arc<dyn EventStore>, duration: Duration) -> Self {
        Self {
            engine,
            store: Mutex::new(Some(store)),
            duration,
            held: watch::Sender::default(),
            call_lock: tokio::sync::Mutex::default(),
            calls: TaskTracker::new(),
            renewing: Mutex::default(),
        }
    }

    /// The engine that holds the lease.
    pub(crate) fn engine(&self) -> &EngineId {
        &self.engine
    }

    /// The current term, or `None` if the engine does not hold the lease. A different term means that the lease ran out
    /// in between. O(1).
    pub(crate) fn term(&self) -> Option<u64> {
        let held = self.held.borrow();
        held.lasts(self.duration).then_some(held.term)
    }

    /// Whether the engine holds its lease, and took it one duration ago or earlier. Before that it claims nothing:
    /// after an outage of the store, the other engines have to take their leases again first. O(1).
    pub(crate) fn may_claim(&self) -> bool {
        let held = self.held.borrow();
        held.lasts(self.duration) && held.taken.is_some_and(|taken| taken.elapsed() >= self.duration)
    }

    /// Completes at the first renewal after this call.
    pub(crate) fn renewed(&self) -> BoxFuture<'static, ()> {
        let mut held = self.held.subscribe();
        // An error means that the engine is gone, and no renewal will follow.
        Box::pin(async move {
            if held.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    /// Takes the lease if the engine does not hold it, and starts the task that renews it. `claims` makes the function
    /// that the task calls after each renewal.
    pub(crate) async fn hold<C>(self: &Arc<Self>, claims: impl FnOnce() -> C) -> Result<(), StoreError>
    where
        C: Fn() -> Renewed + Send + 'static,
    {
        if self.term().is_none() {
            self.take().await?;
        }
        // The lease is taken before the task starts, so that the first renewal is due a third later.
        let mut renewing = locked(&self.renewing);
        if self.term().is_some() && renewing.as_ref().is_none_or(|(task, _)| task.is_finished()) {
            // Without a runtime no run begins or resumes.
            let runtime = Handle::try_current();
            *renewing = runtime
                .ok()
                .map(|runtime| (runtime.spawn(renew_periodically(Arc::clone(self), claims())), runtime));
        }
        Ok(())
    }

    /// Takes the lease, unless the engine holds it.
    async fn take(self: &Arc<Self>) -> Result<(), StoreError> {
        let lease = Arc::clone(self);
        let take = async move {
            // Another caller may have taken the lease while this one waited for the lock.
            let _call = lease.call_lock.lock().await;
            if lease.term().is_none() { lease.call_store().await.map(drop) } else { Ok(()) }
        };
        self.call(take).await
    }

    /// Takes or renews the lease for a caller. Returns all engines that hold one, or `None` if this engine has given
    /// its lease up for good.
    pub(crate) async fn renew(self: &Arc<Self>) -> Result<Option<Vec<EngineId>>, StoreError> {
        let lease = Arc::clone(self);
        self.call(async move { lease.renew_here().await }).await
    }

    /// The same in the polling task. Only the renewing task, which is always polled, may call it.
    async fn renew_here(&self) -> Result<Option<Vec<EngineId>>, StoreError> {
        let _call = self.call_lock.lock().await;
        self.call_store().await
    }

    /// Makes a call of the store in a task of its own, so that a caller that is not polled does not stop the renewals.
    /// Dropping the future aborts the call. Without any runtime no task renews the lease, and the caller polls the
    /// call.
    async fn call<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(runtime) = Handle::try_current().ok().or_else(|| self.renewed_on()) else {
            return call.await;
        };
        let task = AbortOnDropHandle::new(runtime.spawn(self.calls.track_future(call)));
        // A task without a result was dropped with its runtime.
        task.await.unwrap_or_else(|error| Err(StoreError::unavailable(error)))
    }

    /// The runtime of the task that renews the lease, if there is one.
    fn renewed_on(&self) -> Option<Handle> {
        let renewing = locked(&self.renewing);
        renewing.as_ref().filter(|(task, _)| !task.is_finished()).map(|(_, runtime)| runtime.clone())
    }

    /// Makes the call and notes its success. The caller holds `call_lock`.
    async fn call_store(&self) -> Result<Option<Vec<EngineId>>, StoreError> {
        let Some(store) = locked(&self.store).clone() else { return Ok(None) };
        // Before the call: the store counts from a later moment, so this view ends first.
        let begun = Moment::now();
        let asked = caught_in(async { store.lease(&self.engine, self.duration).await }).await;
        let holders = asked.unwrap_or_else(|panic| Err(StoreError::unavailable(panic)))?;
        self.held.send_modify(|held| {
            // The store took the call before it answered. If the lease had not run out by now, it never had.
            if !held.lasts(self.duration) {
                held.term += 1;
                held.taken = Some(begun);
            }
            held.since = Some(begun);
        });
        Ok(Some(holders))
    }

    /// Waits for something, at most as long as from one renewal to the next; `None` if it takes longer.
    pub(crate) async fn wait<T>(&self, waits: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(self.interval(), waits).await.ok()
    }

    /// The time from one renewal to the next.
    fn interval(&self) -> Duration {
        self.duration / 3
    }

    /// Gives the lease up for good. A lease whose end the store does not learn runs out by itself.
    pub(crate) async fn give_up(&self, patience: &StorePatience) {
        // First the task, so that no renewal follows the end.
        if let Some(task) = self.stop() {
            // The task may hold the store until it has ended.
            drop(task.await);
        }
        // From here on no call gets the store. The calls that have it end: the engine bounds each by its patience.
        let store = locked(&self.store).take();
        self.calls.close();
        self.calls.wait().await;
        // A caller without a runtime may have the lock and not be polled.
        let call_lock = patience.wait(self.call_lock.lock()).await;
        if let (Ok(_call), true, Some(store)) = (call_lock, self.clear(), store) {
            drop(caught_in(async { store.lease(&self.engine, Duration::ZERO).await }).await);
        }
    }

    /// Notes that the engine holds no lease. Returns whether it held one.
    fn clear(&self) -> bool {
        let mut had_taken = false;
        self.held.send_modify(|held| had_taken = held.since.take().is_some());
        had_taken
    }

    /// Aborts the renewing task and returns it, so that the caller can wait for its end.
    fn stop(&self) -> Option<JoinHandle<()>> {
        let (task, _) = locked(&self.renewing).take()?;
        task.abort();
        Some(task)
    }
}

/// The engine's own handle on its lease. Dropping it gives the lease up.
pub(crate) struct LeaseOwner(pub(crate) Arc<Lease>);

impl Drop for LeaseOwner {
    /// No run is left, so other engines may claim at once.
    fn drop(&mut self) {
        let lease = &self.0;
        drop(lease.stop());
        let store = locked(&lease.store).take();
        // An engine that never held the lease has nothing to give up.
        let (Some(store), true) = (store, lease.clear()) else { return };
        let engine = lease.engine.clone();
        let mut asked = Box::pin(async move { store.lease(&engine, Duration::ZERO).await });
        // Without a runtime no task can wait for the store, and the lease runs out by itself.
        let polled = caught(|| (&mut asked).now_or_never().is_some());
        if let (Ok(false), Ok(runtime)) = (polled, Handle::try_current()) {
            runtime.spawn(asked);
        }
    }
}

/// The answer to a renewal: the next claim, `None` while the engine ends, or a break once the engine is gone.
pub(crate) type Renewed = ControlFlow<(), Option<BoxFuture<'static, ()>>>;

/// Renews the lease at every third of its duration and starts a claim after each renewal, until the engine is gone. A
/// slow claim delays no renewal, and at most one claim runs at a time.
async fn renew_periodically(lease: Arc<Lease>, claims: impl Fn() -> Renewed) {
    let mut claiming: Option<JoinHandle<()>> = None;
    loop {
        tokio::time::sleep(lease.interval()).await;
        // A failed call is repeated at the next third. Once the lease has run out, no run begins anything.
        match lease.renew_here().await {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => continue,
        }
        // After the renewal, so that a claim has the whole lease before it.
        if claiming.as_ref().is_none_or(JoinHandle::is_finished) {
            match claims() {
                ControlFlow::Continue(claim) => claiming = claim.map(tokio::spawn),
                ControlFlow::Break(()) => return,
            }
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("engine", &self.engine).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::EngineClock;
    use crate::engine::GuardedStore;
    use crate::id::RunId;
    use crate::store::{MemoryStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write};

    const DURATION: Duration = Duration::from_mins(1);

    /// Never answers.
    struct Silent;

    impl EventStore for Silent {
        fn append(&self, _: &RunId, _: Position, _: Write) -> StoreFuture<()> {
            StoreFuture::new(std::future::pending())
        }

        fn read(&self, _: &RunId, _: Position, _: usize) -> StoreFuture<Vec<Record>> {
            StoreFuture::new(std::future::pending())
        }

        fn runs(&self, _: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
            StoreFuture::new(std::future::pending())
        }

        fn remove(&self, _: &RunId) -> StoreFuture<bool> {
            StoreFuture::new(std::future::pending())
        }

        fn retain(&self, _: &Retention) -> StoreFuture<u64> {
            StoreFuture::new(std::future::pending())
        }

        fn lease(&self, _: &EngineId, _: Duration) -> StoreFuture<Vec<EngineId>> {
            StoreFuture::new(std::future::pending())
        }
    }

    fn lease_in(store: &Arc<MemoryStore>) -> Arc<Lease> {
        let store = Arc::clone(store) as Arc<dyn EventStore>;
        Arc::new(Lease::new(EngineId::generate(), store, DURATION))
    }

    /// Claims nothing, and counts how often it was asked to.
    fn counted(claims: &Arc<AtomicUsize>) -> impl FnOnce() -> Box<dyn Fn() -> Renewed + Send> {
        let claims = Arc::clone(claims);
        move || {
            Box::new(move || {
                claims.fetch_add(1, Ordering::SeqCst);
                ControlFlow::Continue(None)
            })
        }
    }

    /// The other engines whose leases the store knows.
    async fn holders(store: &MemoryStore, asks: &EngineId) -> Vec<EngineId> {
        let mut holders = store.lease(asks, DURATION).await.unwrap();
        holders.retain(|holder| holder != asks);
        holders
    }

    #[tokio::test]
    async fn a_lease_is_held_from_the_first_use_until_it_is_given_up() {
        let (store, claims) = (Arc::new(MemoryStore::default()), Arc::default());
        let lease = lease_in(&store);
        assert_eq!(lease.term(), None);
        lease.hold(counted(&claims)).await.unwrap();
        lease.hold(counted(&claims)).await.unwrap();
        assert_eq!(lease.term(), Some(1), "one take");
        let other = EngineId::generate();
        assert_eq!(holders(&store, &other).await, [lease.engine().clone()]);
        lease.give_up(&StorePatience::default()).await;
        assert_eq!((lease.term(), holders(&store, &other).await), (None, vec![]));
        assert!(lease.renew().await.unwrap().is_none(), "it is given up for good");
    }

    #[tokio::test(start_paused = true)]
    async fn orphans_are_claimed_with_each_renewal() {
        let (store, claims) = (Arc::new(MemoryStore::default()), Arc::default());
        let lease = lease_in(&store);
        lease.hold(counted(&claims)).await.unwrap();
        for renewals in 1..4 {
            lease.renewed().await;
            tokio::task::yield_now().await;
            assert_eq!(claims.load(Ordering::SeqCst), renewals);
        }
        lease.give_up(&StorePatience::default()).await;
    }

    #[tokio::test]
    async fn a_lease_that_is_given_up_leaves_no_handle_on_a_store_that_never_answers() {
        let (store, patience) = (Arc::new(Silent), StorePatience::default());
        let (kept, clock) = (Arc::clone(&store) as Arc<dyn EventStore>, EngineClock::default());
        let guarded = Arc::new(GuardedStore::new(kept, patience.clone(), clock));
        let lease = Arc::new(Lease::new(EngineId::generate(), guarded, DURATION));
        let mut asks = pin!(lease.renew());
        assert!(futures::poll!(asks.as_mut()).is_pending());
        tokio::task::yield_now().await;
        let mut gives_up = pin!(lease.give_up(&patience));
        assert!(futures::poll!(gives_up.as_mut()).is_pending(), "a call still has the store");
        patience.end();
        gives_up.await;
        assert_eq!(Arc::strong_count(&store), 1, "although the caller is not polled");
        assert!(matches!(asks.await, Err(StoreError::ShutDown)));
    }

    #[tokio::test]
    async fn a_lease_ends_with_the_engine() {
        let store = Arc::new(MemoryStore::default());
        let leased = LeaseOwner(lease_in(&store));
        assert!(leased.0.renew().await.unwrap().is_some());
        let other = EngineId::generate();
        assert_eq!(holders(&store, &other).await.len(), 1);
        drop(leased);
        assert!(holders(&store, &other).await.is_empty());
    }
}

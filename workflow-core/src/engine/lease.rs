//! The lease of an engine: taking it, renewing it, and giving it up. What is claimed with it is in `claim`.

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

use super::ending::Patience;
use crate::id::EngineId;
use crate::panics::{caught, caught_in, locked};
use crate::store::{EventStore, StoreError};

/// The shortest lease: renewals come at a third of it.
pub(super) const SHORTEST: Duration = Duration::from_secs(1);

/// The lease of one engine, as it knows of it itself.
pub(crate) struct Lease {
    engine: EngineId,
    /// None once it was given up for good: runs that have ended know the lease, and do not keep the store.
    store: Mutex<Option<Arc<dyn EventStore>>>,
    duration: Duration,
    held: watch::Sender<Held>,
    /// Held while the store is asked, so that no call overtakes another.
    asking: tokio::sync::Mutex<()>,
    /// The task that renews it.
    renewing: Mutex<Option<JoinHandle<()>>>,
}

/// Until when the lease lasts, and how often it was taken.
#[derive(Default)]
struct Held {
    since: Option<Moment>,
    /// Renewals of a lease that had not run out do not count.
    term: u64,
}

/// When a renewal was begun. A monotonic clock may stand still while the machine sleeps, and one that people set may be
/// set back: whichever says that more time has passed is believed.
#[derive(Clone, Copy)]
struct Moment(Instant, SystemTime);

impl Moment {
    fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    fn elapsed(self) -> Duration {
        self.0.elapsed().max(self.1.elapsed().unwrap_or_default())
    }
}

impl Held {
    fn lasts(&self, duration: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() < duration)
    }
}

impl Lease {
    pub(super) fn new(engine: EngineId, store: Arc<dyn EventStore>, duration: Duration) -> Self {
        Self {
            engine,
            store: Mutex::new(Some(store)),
            duration,
            held: watch::Sender::default(),
            asking: tokio::sync::Mutex::default(),
            renewing: Mutex::default(),
        }
    }

    /// The engine that has it.
    pub(crate) fn engine(&self) -> &EngineId {
        &self.engine
    }

    /// How often the engine has taken it, if it holds it: another number says that it had run out in between. O(1).
    pub(crate) fn term(&self) -> Option<u64> {
        let held = self.held.borrow();
        held.lasts(self.duration).then_some(held.term)
    }

    /// Ends when it was renewed after this call.
    pub(crate) fn renewed(&self) -> BoxFuture<'static, ()> {
        let mut held = self.held.subscribe();
        // An error says that the engine is gone: nothing is renewed any more.
        Box::pin(async move {
            if held.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    /// Takes it, and keeps it from then on: `claims` makes what claims orphans after each renewal.
    pub(super) async fn hold<C>(self: &Arc<Self>, claims: impl FnOnce() -> C) -> Result<(), StoreError>
    where
        C: Fn() -> Renewed + Send + 'static,
    {
        if self.term().is_none() {
            self.take().await?;
        }
        let mut renewing = locked(&self.renewing);
        if self.term().is_some() && renewing.as_ref().is_none_or(JoinHandle::is_finished) {
            // Without a runtime no run begins or goes on.
            let runtime = Handle::try_current();
            *renewing = runtime.ok().map(|runtime| runtime.spawn(keep(Arc::clone(self), claims())));
        }
        Ok(())
    }

    /// Takes it, unless the engine holds it.
    async fn take(&self) -> Result<(), StoreError> {
        let _asking = self.asking.lock().await;
        if self.term().is_none() {
            self.ask().await?;
        }
        Ok(())
    }

    /// Takes or renews it; answers the engines that hold one, or none if it was given up for good.
    pub(super) async fn renew(&self) -> Result<Option<Vec<EngineId>>, StoreError> {
        let _asking = self.asking.lock().await;
        self.ask().await
    }

    async fn ask(&self) -> Result<Option<Vec<EngineId>>, StoreError> {
        let Some(store) = locked(&self.store).clone() else { return Ok(None) };
        let begun = Moment::now();
        let asked = caught_in(async { store.lease(&self.engine, self.duration).await }).await;
        let holders = asked.unwrap_or_else(|panic| Err(StoreError::unavailable(panic)))?;
        self.held.send_modify(|held| {
            // The store took the call before this answer: if it had not run out by now, it never had.
            held.term += u64::from(!held.lasts(self.duration));
            held.since = Some(begun);
        });
        Ok(Some(holders))
    }

    /// Gives it up for good. What the store does not hear of runs out by itself.
    pub(super) async fn give_up(&self, patience: &Patience) {
        if let Some(task) = self.stop() {
            // It may have the store until it is gone.
            drop(task.await);
        }
        // Nobody takes it again. Who asks the store at this moment may not be polled.
        let store = locked(&self.store).take();
        let asking = patience.wait(self.asking.lock()).await;
        if let (Ok(_asking), true, Some(store)) = (asking, self.let_go(), store) {
            drop(caught_in(async { store.lease(&self.engine, Duration::ZERO).await }).await);
        }
    }

    /// The engine has no lease any more, as far as it knows; whether it had taken one.
    fn let_go(&self) -> bool {
        let mut had_taken = false;
        self.held.send_modify(|held| had_taken = held.since.take().is_some());
        had_taken
    }

    /// Nobody renews it any more, once the task that did is gone.
    fn stop(&self) -> Option<JoinHandle<()>> {
        locked(&self.renewing).take().inspect(JoinHandle::abort)
    }
}

/// The lease as the engine has it: it ends with the engine.
pub(super) struct Leased(pub(super) Arc<Lease>);

impl Drop for Leased {
    /// Nothing runs any more: others may have its runs at once.
    fn drop(&mut self) {
        let lease = &self.0;
        drop(lease.stop());
        let store = locked(&lease.store).take();
        let (Some(store), true) = (store, lease.let_go()) else { return };
        let engine = lease.engine.clone();
        let mut asked = Box::pin(async move { store.lease(&engine, Duration::ZERO).await });
        // Where nobody can wait for the store, the lease runs out by itself.
        let polled = caught(|| (&mut asked).now_or_never().is_some());
        if let (Ok(false), Ok(runtime)) = (polled, Handle::try_current()) {
            runtime.spawn(asked);
        }
    }
}

/// The answer to a renewal: a task that claims orphans, none if the engine ends, a break if it is gone.
pub(super) type Renewed = ControlFlow<(), Option<BoxFuture<'static, ()>>>;

/// Renews the lease at every third of it, and has orphans claimed, as long as the engine is there. A claim that takes
/// long holds up no renewal.
async fn keep(lease: Arc<Lease>, claims: impl Fn() -> Renewed) {
    let mut claiming: Option<JoinHandle<()>> = None;
    loop {
        tokio::time::sleep(lease.duration / 3).await;
        // A call that fails is repeated at the next third. Nothing begins once the lease has run out.
        match lease.renew().await {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => continue,
        }
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::ending::Ending;
    use super::*;
    use crate::store::MemoryStore;

    const DURATION: Duration = Duration::from_mins(1);

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
        assert_eq!(lease.term(), Some(1), "it was taken once");
        let other = EngineId::generate();
        assert_eq!(holders(&store, &other).await, [lease.engine().clone()]);
        lease.give_up(&Ending::default().patience()).await;
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
        lease.give_up(&Ending::default().patience()).await;
    }

    #[tokio::test]
    async fn a_lease_ends_with_the_engine() {
        let store = Arc::new(MemoryStore::default());
        let leased = Leased(lease_in(&store));
        assert!(leased.0.renew().await.unwrap().is_some());
        let other = EngineId::generate();
        assert_eq!(holders(&store, &other).await.len(), 1);
        drop(leased);
        assert!(holders(&store, &other).await.is_empty());
    }
}

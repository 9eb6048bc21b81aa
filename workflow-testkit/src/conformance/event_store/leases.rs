//! The contract of leases: their duration and holder. Engines of other checks may hold leases at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use workflow_core::store::{EngineId, EventStore};

use super::ids::ALIKE;
use super::subject::Subject;

const HOUR: Duration = Duration::from_hours(1);

/// The duration of a lease that the check lets expire.
const SHORT: Duration = Duration::from_millis(60);

/// The additional time that such a lease may last.
const LATE: Duration = Duration::from_secs(1);

/// An engine of a check, with one handle on the store.
#[derive(Clone)]
struct Tenant {
    store: Arc<dyn EventStore>,
    engine: EngineId,
}

impl Tenant {
    /// An engine with a unique id.
    fn new(store: &Arc<dyn EventStore>) -> Self {
        Self { store: Arc::clone(store), engine: EngineId::generate() }
    }

    fn named(&self, engine: String) -> Self {
        Self { engine: engine.into(), ..self.clone() }
    }

    async fn lease(&self, duration: Duration) -> Vec<EngineId> {
        let leased = self.store.lease(&self.engine, duration).await;
        leased.unwrap_or_else(|error| panic!("`lease` has no reason to fail here, but reported: {error}"))
    }

    /// Whether it holds a lease, as another engine sees it.
    async fn holds(&self) -> bool {
        Self::new(&self.store).lease(Duration::ZERO).await.contains(&self.engine)
    }

    /// Waits until a short lease, already taken, has expired.
    async fn has_run_out(&self, demand: &str) {
        let taken = Instant::now();
        let mut asked = taken;
        while self.holds().await {
            assert!(
                asked - taken < SHORT + LATE,
                "{demand}, and is gone a second later, but was still there"
            );
            tokio::time::sleep(SHORT / 10).await;
            asked = Instant::now();
        }
    }
}

pub fn who_takes_a_lease_holds_one<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (one, other) = (Tenant::new(&store), Tenant::new(&store));
        let demand = "`lease` answers every engine that holds one, the caller among them";
        assert!(!one.holds().await, "an engine that has taken no lease holds none");
        assert!(one.lease(HOUR).await.contains(&one.engine), "{demand}");
        let both = other.lease(HOUR).await;
        assert!(both.contains(&one.engine) && both.contains(&other.engine), "{demand}");
        let again = one.lease(HOUR).await;
        let times = |engine| again.iter().filter(|holds| *holds == engine).count();
        assert_eq!((times(&one.engine), times(&other.engine)), (1, 1), "{demand}, once");
    });
}

pub fn a_lease_runs_out_and_not_before_its_time<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        for _ in 0..3 {
            let (tenant, before) = (Tenant::new(&store), Instant::now());
            tenant.lease(SHORT).await;
            tenant.has_run_out("a lease lasts for its time").await;
            let lasted = before.elapsed();
            assert!(
                lasted >= SHORT,
                "a lease of {SHORT:?} does not run out before, but did after {lasted:?}"
            );
            tenant.lease(HOUR).await;
            assert!(tenant.holds().await, "a lease that has run out can be taken again");
            tenant.lease(Duration::ZERO).await;
        }
    });
}

pub fn the_last_renewal_counts<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (longer, shorter, clock) = (Tenant::new(&store), Tenant::new(&store), Tenant::new(&store));
        longer.lease(SHORT).await;
        longer.lease(HOUR).await;
        shorter.lease(HOUR).await;
        shorter.lease(SHORT).await;
        clock.lease(SHORT).await;
        clock.has_run_out("a lease lasts for its time").await;
        assert!(longer.holds().await, "a lease that was renewed lasts from the renewal on");
        shorter.has_run_out("of two times that a lease was taken for, the last counts").await;
    });
}

pub fn a_lease_of_no_time_is_given_up<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let (one, other) = (Tenant::new(&store), Tenant::new(&store));
        one.lease(HOUR).await;
        other.lease(HOUR).await;
        let demand = "an engine that takes a lease of no time holds none";
        for _ in 0..2 {
            let left = one.lease(Duration::ZERO).await;
            assert!(!left.contains(&one.engine), "{demand}, and is not among those that are answered");
            assert!(left.contains(&other.engine), "giving a lease up leaves those of others alone");
        }
        assert!(!one.holds().await, "{demand}");
        one.lease(HOUR).await;
        assert!(one.holds().await, "a lease that was given up can be taken again");
    });
}

pub fn engines_are_told_apart_by_their_whole_ids<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let stem = Tenant::new(&store);
        let alike: Vec<Tenant> =
            ALIKE.iter().map(|end| stem.named(format!("{}{end}", stem.engine))).collect();
        for tenant in alike.iter().step_by(2) {
            tenant.lease(HOUR).await;
        }
        let holders = Tenant::new(&store).lease(Duration::ZERO).await;
        for (place, tenant) in alike.iter().enumerate() {
            let demand = "engines are told apart by their whole ids";
            let (holds, expected) = (holders.contains(&tenant.engine), place % 2 == 0);
            assert_eq!(holds, expected, "{demand}: {:?}", tenant.engine);
        }
        for tenant in &alike {
            tenant.lease(Duration::ZERO).await;
        }
    });
}

/// Two handles, as two processes have them.
pub(super) async fn seen_by_the_other([one, other]: [Arc<dyn EventStore>; 2]) {
    let here = Tenant::new(&one);
    let there = Tenant { store: other, engine: here.engine.clone() };
    here.lease(HOUR).await;
    assert!(there.holds().await, "a lease that was taken by one handle is seen by the other");
    there.lease(Duration::ZERO).await;
    assert!(!here.holds().await, "a lease that was given up by one handle is gone for the other");
}

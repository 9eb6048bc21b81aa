//! Runs of engines that are gone.

use workflow_core::observe::{Observation, Observed, Observer};

use super::*;

/// The observed beginnings of an engine's runs.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn begun(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Told {
    fn observe(&self, Observation { run, what, .. }: &Observation) {
        let begun = match what {
            Observed::RunStarted => "begins",
            Observed::RunResumed => "goes on",
            _ => return,
        };
        self.0.lock().unwrap().push(format!("{run} {begun}"));
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

// S39, S40
#[test]
fn runs_of_an_engine_that_is_gone_are_claimed_when_its_lease_has_run_out_and_not_before() {
    let engines = Engines::new();
    let works = Works { hangs: true, ..engines.works("dead") };
    let dead = engines.killed(works, |engine| async move {
        start::<Works>(&engine, "r").await;
        sleep(Duration::from_secs(1)).await;
    });
    runtime().block_on(async {
        let told = Told::default();
        let builder = engines.builder(engines.works("alive")).observer(told.clone());
        let engine = builder.lease(LEASE).clock(VirtualClock::new()).build().unwrap();
        assert_eq!(engine.resume_open_runs().await.unwrap().elsewhere, ["r".into()]);
        engines.store.pass(LEASE * 9 / 10);
        a_while().await;
        assert!(engine.running().is_empty());
        assert_eq!(engines.store.owner("r").await.as_ref(), Some(dead.id()));

        engines.store.pass(LEASE / 10);
        a_while().await;
        assert_eq!(engine.running(), ["r".into()]);
        assert_eq!(engines.store.owner("r").await.as_ref(), Some(engine.id()));
        assert_eq!(told.begun(), ["r goes on"]);
        let run = engine.attach::<Works>("r").await.unwrap();
        run.send(Note(5)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(6));
        assert_eq!(engines.seen.all(), ["prepare by dead", "prepare by alive", "finish by alive"]);
        assert_eq!(engines.store.resumed("r").await, 1);
    });
}

// S40
#[test]
fn two_engines_that_find_the_same_orphans_claim_each_once() {
    const RUNS: usize = 40;
    let engines = Engines::new();
    let dead = engines.killed(engines.works("dead"), |engine| async move {
        for run in 0..RUNS {
            start::<Works>(&engine, &format!("r-{run:02}")).await.settled().await;
        }
    });
    runtime().block_on(async {
        let (one, other) = (engines.engine("one"), engines.engine("other"));
        for engine in [&one, &other] {
            assert_eq!(engine.resume_open_runs().await.unwrap().elsewhere.len(), RUNS);
        }
        engines.store.pass(LEASE);
        a_while().await;
        let mut claimed = [one.running(), other.running()].concat();
        claimed.sort();
        claimed.dedup();
        assert_eq!((claimed.len(), one.running().len() + other.running().len()), (RUNS, RUNS));
        for run in claimed {
            let engine = if one.running().contains(&run) { &one } else { &other };
            assert_eq!(engines.store.owner(run.as_str()).await.as_ref(), Some(engine.id()));
            let handle = engine.attach::<Works>(run.clone()).await.unwrap();
            handle.send(Note(1)).await.unwrap();
            assert_eq!(handle.outcome().await.unwrap(), Done(2));
            assert_eq!(engines.store.resumed(run.as_str()).await, 1);
        }
        assert_eq!((engines.seen.count("prepare by dead"), engines.seen.count("prepare")), (RUNS, RUNS));
        assert_eq!(engines.seen.count("finish"), RUNS);
    });
    drop(dead);
}

// S31, S40
#[test]
fn children_are_claimed_with_their_parents() {
    let engines = Engines::new();
    let dead = engines.killed(engines.works("dead"), |engine| async move {
        start::<Delegates>(&engine, "p").await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(engine.running().len(), 3);
    });
    runtime().block_on(async {
        let (one, other) = (engines.engine("one"), engines.engine("other"));
        for engine in [&one, &other] {
            assert_eq!(engine.resume_open_runs().await.unwrap().elsewhere.len(), 3);
        }
        engines.store.pass(LEASE);
        a_while().await;
        let (engine, without) = if one.running().is_empty() { (&other, &one) } else { (&one, &other) };
        assert_eq!((engine.running().len(), without.running().len()), (3, 0));
        for child in ["p/delegate-x1.2", "p/delegate-x1.alone"] {
            engine.attach::<Works>(child).await.unwrap().send(Note(1)).await.unwrap();
        }
        let parent = engine.attach::<Delegates>("p").await.unwrap();
        assert_eq!(parent.outcome().await.unwrap(), Done(2));
        assert_eq!((engines.seen.count("prepare"), engines.seen.count("finish")), (2, 2));
    });
    drop(dead);
}

// S40
#[test]
fn an_engine_that_returns_while_its_run_is_being_claimed_keeps_the_run() {
    let engines = Engines::new();
    let back = engines.killed(engines.works("back"), |engine| async move {
        start::<Works>(&engine, "r").await.settled().await;
    });
    runtime().block_on(async {
        let engine = engines.engine("one");
        assert_eq!(engine.resume_open_runs().await.unwrap().elsewhere, ["r".into()]);
        let come_back = || *engines.store.comes_back.lock().unwrap() = Some(back.id().clone());
        engines.store.pass(LEASE);
        come_back();
        a_while().await;
        assert!(engines.store.holds(back.id()).await, "it came back when the run was read to be claimed");
        assert!(engine.running().is_empty());
        engines.store.pass(LEASE);
        come_back();
        assert_eq!(engine.resume_open_runs().await.unwrap().elsewhere, ["r".into()]);
        engines.store.pass(LEASE);
        come_back();
        let error = engine.attach::<Works>("r").await.unwrap_err();
        assert!(matches!(error, ResumeError::Elsewhere { .. }), "{error}");
        assert_eq!(engines.store.resumed("r").await, 0);
        assert_eq!(engines.store.owner("r").await.as_ref(), Some(back.id()));
    });
}

// S40
#[test]
fn a_run_under_constant_writes_is_not_claimed() {
    let engines = Engines::new();
    let back = engines.killed(engines.works("back"), |engine| async move {
        start::<Works>(&engine, "r").await.settled().await;
    });
    runtime().block_on(async {
        let engine = engines.engine("one");
        engines.store.pass(LEASE);
        let writes = |times| *engines.store.writes.lock().unwrap() = Some((back.id().clone(), times));
        writes(usize::MAX);
        let error = engine.attach::<Works>("r").await.unwrap_err();
        assert!(matches!(error, ResumeError::Contended { .. }), "{error}");
        // The engine takes its lease with its write at the last read of the run.
        writes(3);
        let error = engine.attach::<Works>("r").await.unwrap_err();
        assert!(matches!(&error, ResumeError::Elsewhere { engine, .. } if engine == back.id()), "{error}");
        assert_eq!(engines.store.resumed("r").await, 0);
        assert_eq!(engines.store.owner("r").await.as_ref(), Some(back.id()));
    });
}

#[test]
fn an_orphan_of_an_unhosted_workflow_stays_unchanged() {
    let engines = Engines::new();
    let dead = engines.killed(engines.works("dead"), |engine| async move {
        start::<Works>(&engine, "r").await.settled().await;
    });
    runtime().block_on(async {
        let engine = Engine::builder().workflow(Delegates).store(engines.store.clone()).lease(LEASE).build();
        let engine = engine.unwrap();
        engine.resume_open_runs().await.unwrap();
        engines.store.pass(LEASE);
        a_while().await;
        assert!(engine.running().is_empty());
        assert_eq!(engines.store.resumed("r").await, 0);
    });
    drop(dead);
}

// S40
#[test]
fn a_root_run_named_like_a_child_is_claimed_independent_of_the_run_above() {
    let engines = Engines::new();
    let _dead = engines.killed(engines.works("dead"), |engine| async move {
        start::<Works>(&engine, "r/17").await.settled().await;
    });
    runtime().block_on(async {
        let without_lease =
            engines.builder(engines.works("elsewhere")).clock(VirtualClock::new()).build().unwrap();
        start::<Works>(&without_lease, "r").await.settled().await;
        let engine = engines.engine("alive");
        start::<Works>(&engine, "another").await.settled().await;
        engines.store.pass(LEASE);
        a_while().await;
        let mut running = engine.running();
        running.sort_unstable();
        assert_eq!(running, ["another".into(), "r/17".into()]);
    });
}

// S40
#[test]
fn an_append_that_is_never_answered_holds_up_the_claim_of_no_other_run() {
    let engines = Engines::new();
    let dead = engines.killed(engines.works("dead"), |engine| async move {
        start::<Delegates>(&engine, "p").await;
        for run in ["a", "z"] {
            start::<Works>(&engine, run).await;
        }
        sleep(Duration::from_secs(1)).await;
    });
    let later = engines.killed(engines.works("later"), |engine| async move {
        start::<Works>(&engine, "later").await.settled().await;
    });
    runtime().block_on(async {
        let (engine, store) = (engines.engine("alive"), &engines.store);
        store.leases.renew_at(later.id(), 100 * LEASE, *store.now.lock().unwrap());
        assert_eq!(engine.resume_open_runs().await.unwrap().elsewhere.len(), 6);
        *store.silent.lock().unwrap() = vec!["a".into(), "p".into()];
        store.pass(LEASE);
        a_while().await;
        assert_eq!(store.resumed("z").await, 1);
        assert!(engine.running().contains(&"p".into()), "it waits for the store");
        for child in ["p/delegate-x1.2", "p/delegate-x1.alone"] {
            assert_eq!(
                store.owner(child).await.as_ref(),
                Some(dead.id()),
                "its parent may be another engine's"
            );
        }
        store.pass(100 * LEASE);
        a_while().await;
        assert_eq!(
            store.owner("later").await.as_ref(),
            Some(engine.id()),
            "later searches find the later orphans"
        );
        engine.attach::<Works>("z").await.unwrap().send(Note(1)).await.unwrap();
        engine.cancel_all("the engine is shutting down", Duration::from_secs(1)).await;
    });
}

// S31, S40
#[test]
fn an_orphaned_child_whose_end_is_never_answered_holds_up_no_claim() {
    let engines = Engines::new();
    let dead = engines.killed(engines.works("dead"), |engine| async move {
        for parent in ["p", "q"] {
            start::<Delegates>(&engine, parent).await;
        }
        sleep(Duration::from_secs(1)).await;
    });
    let later = engines.killed(engines.works("later"), |engine| async move {
        start::<Works>(&engine, "later").await.settled().await;
    });
    runtime().block_on(async {
        let (engine, store) = (engines.engine("alive"), &engines.store);
        store.leases.renew_at(later.id(), 100 * LEASE, *store.now.lock().unwrap());
        assert_eq!(engine.resume_open_runs().await.unwrap().elsewhere.len(), 7);
        for parent in ["p", "q"] {
            store.kept.remove(&parent.into()).await.unwrap();
        }
        *store.silent.lock().unwrap() = vec!["p/delegate-x1.2".into()];
        store.pass(LEASE);
        a_while().await;
        assert_eq!(store.owner("p/delegate-x1.2").await.as_ref(), Some(dead.id()));
        assert!(matches!(store.journal("q/delegate-x1.2").await.last(), Some(Record::RunEnded { .. })));
        store.pass(100 * LEASE);
        a_while().await;
        assert_eq!(
            store.owner("later").await.as_ref(),
            Some(engine.id()),
            "later searches find the later orphans"
        );
        engine.cancel_all("the engine is shutting down", Duration::from_secs(1)).await;
    });
}

/// A store that lists every journal as longer than it is.
#[derive(Debug)]
struct Mislists(Shared);

impl EventStore for Mislists {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        self.0.append(run, expected, batch)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.0.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        let listed = self.0.runs(query);
        StoreFuture::new(async move {
            let mut listed = listed.await?;
            for run in &mut listed {
                run.end.0 += 1;
            }
            Ok(listed)
        })
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.0.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.0.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.0.lease(engine, duration)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_listed_with_another_end_than_its_journal_has_is_corrupt_and_not_contended() {
    let engines = Engines::new();
    let one = engines.engine("one");
    start::<Works>(&one, "r").await.settled().await;
    one.shut_down(Duration::ZERO).await;
    let length = engines.store.journal("r").await.len();
    let other = Engine::builder().workflow(engines.works("other"));
    let other = other.store(Mislists(engines.store.clone())).lease(LEASE).clock(VirtualClock::new());
    let error = other.build().unwrap().attach::<Works>("r").await.unwrap_err();
    let ResumeError::Store(StoreError::Corrupt { run, position, .. }) = &error else { panic!("{error:?}") };
    assert_eq!((run.as_str(), position.0), ("r", u64::try_from(length).unwrap()));
    assert_eq!(engines.store.journal("r").await.len(), length);
}

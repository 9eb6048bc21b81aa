//! Runs of engines that are gone.

use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
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

// S66: more orphans than are resumed at a time.
#[test]
fn one_claim_takes_all_orphans_however_many_there_are() {
    for runs in [31, 32, 33, 64, 65, 100] {
        let engines = Engines::new();
        let dead = engines.killed(engines.works("dead"), |engine| async move {
            for run in 0..runs {
                start::<Works>(&engine, &format!("r-{run:03}")).await.settled().await;
            }
        });
        runtime().block_on(async {
            let engine = engines.engine("one");
            assert_eq!(engine.resume_open_runs().await.unwrap().elsewhere.len(), runs);
            engines.store.pass(LEASE);
            sleep(LEASE).await;
            // The renewal at this time may claim before the caller does: together they claim each once.
            engine.claim_orphans().await.unwrap();
            yield_now().await;
            let claimed = engine.running();
            assert_eq!(claimed.len(), runs);
            for run in claimed {
                assert_eq!(engines.store.owner(run.as_str()).await.as_ref(), Some(engine.id()));
                // S88
                let claims =
                    engines.store.kept_by(run.as_str()).await + engines.store.resumed(run.as_str()).await;
                assert_eq!(claims, 1, "{run} of {runs}");
            }
        });
        drop(dead);
    }
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

/// Another release of `Works`, without the step that the runs of the first one have executed.
struct Shortened;

#[workflow(name = "Works")]
impl Shortened {
    #[step]
    async fn finish(&self, begin: &Begin, note: &Note) -> Done {
        Done(begin.0 + note.0)
    }
}

/// The warnings of a program.
#[derive(Debug, Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == tracing::Level::WARN {
            let mut fields = Vec::new();
            event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                fields.push(format!("{field} = {value:?}"));
            });
            self.0.lock().unwrap().push(fields.join(", "));
        }
    }
}

// S40
#[test]
fn an_orphan_that_does_not_fit_is_logged_once_with_the_reason() {
    let engines = Engines::new();
    let dead = engines.killed(engines.works("dead"), |engine| async move {
        start::<Works>(&engine, "r").await.settled().await;
    });
    let warnings = Warnings::default();
    let _subscribed = tracing::subscriber::set_default(tracing_subscriber::registry().with(warnings.clone()));
    runtime().block_on(async {
        let engine = Engine::builder().workflow(Shortened).store(engines.store.clone()).lease(LEASE).build();
        let engine = engine.unwrap();
        assert_eq!(engine.resume_open_runs().await.unwrap().elsewhere, ["r".into()]);
        for _ in 0..3 {
            engines.store.pass(LEASE);
            a_while().await;
        }
        assert!(engine.running().is_empty());
    });
    let warnings = warnings.0.lock().unwrap().clone();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(warnings[0].contains("a run whose engine is gone could not be resumed, run = r, error = "));
    assert!(warnings[0].contains("`prepare`"), "{}", warnings[0]);
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
        assert_eq!(store.kept_by("z").await, 1, "it waits");
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

// S66
#[test]
fn an_engine_claims_nothing_for_the_duration_of_a_new_lease_and_then_as_each_renewal_does() {
    let engines = Engines::new();
    let dead = engines.killed(engines.works("dead"), |engine| async move {
        start::<Works>(&engine, "r").await.settled().await;
    });
    runtime().block_on(async {
        let engine = engines.engine("alive");
        engines.store.pass(LEASE);
        for _ in 0..3 {
            assert!(engine.claim_orphans().await.unwrap().runs.is_empty(), "the lease is new");
            assert!(engine.running().is_empty());
            engines.store.pass(LEASE / 4);
        }
        a_while().await;
        assert_eq!(engine.running(), ["r".into()], "a renewal claimed it");
        assert_eq!(engines.store.resumed("r").await, 1);
        let claimed = engine.claim_orphans().await.unwrap();
        assert!(claimed.runs.is_empty() && claimed.refused.is_empty() && claimed.error.is_none());
    });
    drop(dead);
}

// S66
#[tokio::test(start_paused = true)]
async fn an_engine_resumes_by_itself_what_it_stopped_because_the_store_was_away() {
    let engines = Engines::new();
    let engine = engines.engine("one");
    let runs = [start::<Works>(&engine, "r").await, start::<Works>(&engine, "s").await];
    for run in &runs {
        run.settled().await;
    }
    a_while().await;
    engines.store.fails.lock().unwrap().push("r".into());
    let _ = runs[0].send(Note(1)).await;
    let error = runs[0].outcome().await.unwrap_err();
    assert!(matches!(error, workflow_core::RunError::Store { .. }), "{error:?}");
    assert_eq!(engine.running(), ["s".into()]);
    a_while().await;
    assert_eq!(engine.running(), ["s".into()], "the store is still away");
    engines.store.fails.lock().unwrap().clear();
    a_while().await;
    assert!(engine.running().contains(&"r".into()), "a renewal resumed it");
    let run = engine.attach_any("r").await.unwrap();
    run.send_json("Note", 1).await.unwrap();
    assert_eq!(run.outcome_any().await.unwrap().to_json().unwrap(), serde_json::json!(2));
    assert_eq!(engines.seen.count("finish"), 1);
    assert_eq!(engines.store.resumed("s").await, 0, "the others are left alone");
}

// S66
#[test]
fn a_claim_takes_as_many_orphans_as_there_are_permits() {
    const RUNS: usize = 6;
    let engines = Engines::new();
    let works = Works { hangs: true, ..engines.works("dead") };
    let dead = engines.killed(works, |engine| async move {
        for run in 0..RUNS {
            start::<Works>(&engine, &format!("r-{run}")).await;
        }
        sleep(Duration::from_secs(1)).await;
    });
    runtime().block_on(async {
        let limited = |who| {
            let works = Works { hangs: true, ..engines.works(who) };
            let builder = engines.builder(works).max_concurrent_runs(2).lease(LEASE);
            builder.clock(VirtualClock::new()).build().unwrap()
        };
        let two = [limited("one"), limited("other")];
        for engine in &two {
            assert!(engine.claim_orphans().await.unwrap().runs.is_empty());
        }
        engines.store.pass(LEASE);
        a_while().await;
        for engine in &two {
            assert_eq!((engine.running().len(), engine.queued().len()), (2, 0), "the rest is left to others");
        }
        let third = engines.engine("third");
        assert!(third.claim_orphans().await.unwrap().runs.is_empty());
        a_while().await;
        assert_eq!(third.running().len(), RUNS - 4);
        for run in 0..RUNS {
            assert_eq!(engines.store.resumed(&format!("r-{run}")).await, 1);
        }
    });
    drop(dead);
}

// S66
#[test]
fn a_claim_reads_no_journal_of_a_run_for_which_no_permit_is_free() {
    let engines = Engines::new();
    let dead = engines.killed(engines.works("dead"), |engine| async move {
        start::<Works>(&engine, "r").await.settled().await;
    });
    runtime().block_on(async {
        let works = Works { hangs: true, ..engines.works("alive") };
        let builder = engines.builder(works).max_concurrent_runs(1).lease(LEASE);
        let engine = builder.clock(VirtualClock::new()).build().unwrap();
        let hangs = start::<Works>(&engine, "own").await;
        // A claim that reads would wait for ever.
        engines.store.gate(Call::Read, "r");
        engines.store.pass(LEASE);
        sleep(LEASE).await;
        let claimed = tokio::time::timeout(LEASE, engine.claim_orphans()).await.expect("it reads nothing");
        assert!(claimed.unwrap().runs.is_empty());
        engines.store.open(Call::Read, "r");
        hangs.cancel("enough").await.unwrap();
        a_while().await;
        assert_eq!(engine.running(), ["r".into()]);
    });
    drop(dead);
}

/// The run's journal ends with this many `RunResumed`.
async fn crashes(store: &Shared, run: &str, times: usize) {
    for _ in 0..times {
        let listed = store.kept.runs(&RunQuery::new().run(run)).await.unwrap().pop().unwrap();
        let resumed = Record::RunResumed {
            format: workflow_core::store::JOURNAL_FORMAT,
            table: None,
            stable_keys: false,
            configs: [].into(),
            at: std::time::SystemTime::now(),
        };
        let batch = Write { records: vec![resumed], run: listed.run };
        store.kept.append(&run.into(), listed.end, batch).await.unwrap();
    }
}

// S66
#[test]
fn a_run_that_was_resumed_five_times_without_a_record_is_not_claimed_and_a_person_can_attach_to_it() {
    let engines = Engines::new();
    let works = Works { hangs: true, ..engines.works("dead") };
    let dead = engines.killed(works, |engine| async move {
        for run in ["four", "five"] {
            start::<Works>(&engine, run).await;
        }
        sleep(Duration::from_secs(1)).await;
    });
    runtime().block_on(async {
        crashes(&engines.store, "four", 4).await;
        crashes(&engines.store, "five", 5).await;
        let engine = engines.engine("alive");
        engine.claim_orphans().await.unwrap();
        engines.store.pass(LEASE);
        a_while().await;
        assert_eq!(engine.running(), ["four".into()]);
        // Its journal is as it was, so it is not read again.
        assert!(engine.claim_orphans().await.unwrap().refused.is_empty());
        let second = engines.engine("second");
        second.claim_orphans().await.unwrap();
        a_while().await;
        let resumed = second.resume_open_runs().await.unwrap();
        assert_eq!(resumed.runs, ["five".into()], "a caller that asks for the open runs gets them");
        let run = second.attach::<Works>("five").await.unwrap();
        run.send(Note(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(2));
    });
    drop(dead);
}

// S66
#[test]
fn no_number_of_restarts_makes_a_run_that_waits_or_is_paused_one_that_crashes() {
    let engines = Engines::new();
    for life in 0..10 {
        let gone = engines.killed(engines.works("gone"), |engine| async move {
            let resumed = engine.resume_open_runs().await.unwrap();
            assert!(resumed.refused.is_empty(), "{:?}", resumed.refused);
            if life == 0 {
                start::<Works>(&engine, "waits").await.settled().await;
                let rests = start::<Works>(&engine, "rests").await;
                rests.settled().await;
                rests.pause(workflow_core::Pause::Now).await.unwrap();
            }
            sleep(Duration::from_secs(1)).await;
        });
        drop(gone);
        engines.store.pass(LEASE);
    }
    runtime().block_on(async {
        assert_eq!((engines.store.resumed("waits").await, engines.store.resumed("rests").await), (0, 9));
        assert_eq!(engines.store.kept_by("waits").await, 9);
        let engine = engines.engine("alive");
        let resumed = engine.resume_open_runs().await.unwrap();
        assert_eq!(resumed.runs.len(), 2, "{:?}", resumed.refused);
    });
}

//! Live engines that could not renew their leases in time.

use std::pin::pin;

use tokio::time::timeout;
use workflow_core::Seq;
use workflow_core::store::{Inbox, MemoryInbox, RunMessage};

use super::*;

/// The number of records that the engine keeps the run.
async fn kept(store: &Shared, run: &str) -> usize {
    let journal = store.journal(run).await;
    journal.iter().filter(|record| matches!(record, Record::RunKept { .. })).count()
}

// S40
#[tokio::test(start_paused = true)]
async fn an_engine_without_its_lease_begins_nothing_until_it_has_the_lease_again() {
    let engines = Engines::new();
    let engine = engines.engine("one");
    let run = start::<Works>(&engine, "r").await;
    run.settled().await;
    engines.store.refuse(Some(&engine));
    a_while().await;
    run.send(Note(1)).await.unwrap();
    a_while().await;
    assert_eq!(engines.seen.all(), ["prepare by one"], "what came is in the log, and nothing is begun");
    assert_eq!(kept(&engines.store, "r").await, 0);
    engines.store.refuse(None);
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    assert_eq!(engines.seen.all(), ["prepare by one", "finish by one"]);
    assert_eq!(kept(&engines.store, "r").await, 1);
    let other = engines.engine("other");
    assert_eq!(other.attach::<Works>("r").await.unwrap().outcome().await.unwrap(), Done(2));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_and_succeeds_in_time_makes_no_difference() {
    let engines = Engines::new();
    let engine = engines.engine("one");
    let run = start::<Works>(&engine, "r").await;
    run.settled().await;
    for _ in 0..10 {
        // At most the time between two renewals, and different in each round.
        engines.store.refuse(Some(&engine));
        sleep(Duration::from_secs(9)).await;
        engines.store.refuse(None);
        sleep(Duration::from_secs(22)).await;
    }
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    assert_eq!(kept(&engines.store, "r").await, 0);
}

// S40
#[tokio::test(start_paused = true)]
async fn runs_that_were_claimed_meanwhile_end_before_they_begin_anything() {
    let engines = Engines::new();
    let (one, other) = (engines.engine("one"), engines.engine("other"));
    // A lease that is not new, so that the next renewal claims.
    other.resume_open_runs().await.unwrap();
    sleep(LEASE).await;
    let (works, tries) = (start::<Works>(&one, "w").await, start::<TriesAgain>(&one, "t").await);
    works.settled().await;
    assert_eq!(other.resume_open_runs().await.unwrap().elsewhere.len(), 2);
    // The engine does not know that it has lost them: more time has passed for the store than for itself.
    engines.store.refuse(Some(&one));
    engines.store.pass(LEASE);
    sleep(LEASE).await;
    assert_eq!(other.running().len(), 2);
    // The next attempt is due now, and nothing has to be written before it.
    sleep(2 * LEASE).await;
    assert_eq!(engines.seen.count("attempt 2"), 1);
    assert_eq!(engines.seen.count("attempt 2 by other"), 1);
    engines.store.refuse(None);
    a_while().await;
    assert!(matches!(tries.outcome().await, Err(RunError::Conflict { .. })));
    assert!(works.send(Note(1)).await.is_err());
    assert!(matches!(works.outcome().await, Err(RunError::Conflict { .. })));
    other.attach::<Works>("w").await.unwrap().send(Note(1)).await.unwrap();
    assert_eq!(other.attach::<Works>("w").await.unwrap().outcome().await.unwrap(), Done(2));
    assert_eq!(other.attach::<TriesAgain>("t").await.unwrap().outcome().await.unwrap(), Done(1));
    for seen in ["prepare by one", "attempt 1 by one", "attempt 2 by other", "finish by other"] {
        assert_eq!(engines.seen.count(seen), 1, "{seen}");
    }
    assert_eq!(engines.seen.all().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_run_without_a_lease_can_be_cancelled() {
    let engines = Engines::new();
    let engine = engines.engine("one");
    let run = start::<TriesAgain>(&engine, "t").await;
    engines.store.refuse(Some(&engine));
    sleep(Duration::from_mins(5)).await;
    assert_eq!(engines.seen.all(), ["attempt 1 by one"]);
    engine.cancel_all("the engine is shutting down", Duration::ZERO).await;
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
}

/// Lets several renewals fall due, for the store as well.
async fn renewals(store: &Shared) {
    for _ in 0..4 {
        store.pass(LEASE / 2);
        sleep(LEASE / 2).await;
    }
}

// S40
#[tokio::test(start_paused = true)]
async fn a_caller_that_is_not_polled_while_the_store_is_asked_stops_no_renewal() {
    for polls in 1..8 {
        let engines = Engines::new();
        let (one, other) = (engines.engine("one"), engines.engine("other"));
        let run = start::<Works>(&one, "r").await;
        run.settled().await;
        start::<Works>(&other, "o").await.settled().await;
        // The run has another owner, so the engine asks who holds a lease.
        let mut attaches = pin!(one.attach::<Works>("o"));
        for _ in 0..polls {
            if futures::poll!(attaches.as_mut()).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        renewals(&engines.store).await;
        assert!(engines.store.holds(one.id()).await, "polls: {polls}");
        run.send(Note(1)).await.unwrap();
        let ended = timeout(LEASE, run.outcome()).await.expect("the lease is held");
        assert_eq!((ended.unwrap(), kept(&engines.store, "r").await), (Done(2), 0));
    }
}

// S40
#[tokio::test(start_paused = true)]
async fn a_start_that_is_not_polled_while_the_lease_is_taken_keeps_it_from_no_other() {
    for polls in 1..8 {
        let engines = Engines::new();
        let engine = engines.engine("one");
        let mut first = pin!(engine.start_with::<Works>(Begin(1), RunOptions::new().id("first")));
        for _ in 0..polls {
            if futures::poll!(first.as_mut()).is_ready() {
                break;
            }
        }
        let second = timeout(LEASE, start::<Works>(&engine, "second")).await.expect("the lease can be taken");
        second.settled().await;
        renewals(&engines.store).await;
        assert!(engines.store.holds(engine.id()).await, "polls: {polls}");
        engine.cancel_all("the engine is shutting down", Duration::ZERO).await;
        assert!(!engines.store.holds(engine.id()).await, "polls: {polls}");
    }
}

/// An engine that unloads no run.
fn stays_loaded(engines: &Engines, who: &'static str) -> Engine {
    let builder = engines.builder(engines.works(who)).unload_waiting_after(Duration::MAX);
    builder.lease(LEASE).clock(VirtualClock::new()).build().unwrap()
}

/// The store refuses the engine's lease for so long that other engines see it lapse.
async fn lapses(store: &Shared, engine: &Engine) {
    store.refuse(Some(engine));
    store.pass(LEASE);
    sleep(LEASE).await;
}

// S40
#[tokio::test(start_paused = true)]
async fn a_run_that_only_waits_writes_once_that_its_engine_keeps_it_after_a_lapse() {
    let engines = Engines::new();
    let engine = stays_loaded(&engines, "one");
    start::<Works>(&engine, "r").await.settled().await;
    for lapse in 1..=3 {
        lapses(&engines.store, &engine).await;
        engines.store.refuse(None);
        for _ in 0..2 {
            a_while().await;
            assert_eq!(kept(&engines.store, "r").await, lapse);
        }
    }
    let run = engine.attach::<Works>("r").await.unwrap();
    assert_eq!(run.status(), RunStatus::Waiting);
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    assert_eq!(kept(&engines.store, "r").await, 3, "the store has the run in this term");
}

// S40
#[tokio::test(start_paused = true)]
async fn a_run_that_was_loaded_again_is_listed_as_before_when_its_engine_keeps_it() {
    for is_paused in [false, true] {
        let engines = Engines::new();
        let unloads = engines.builder(engines.works("one")).unload_waiting_after(LEASE);
        let engine = unloads.lease(LEASE).clock(VirtualClock::new()).build().unwrap();
        let run = start::<Works>(&engine, "r").await;
        run.settled().await;
        if is_paused {
            run.pause(workflow_core::Pause::AfterRunning).await.unwrap();
        }
        drop(run);
        let listed = async || {
            let mut listed = engines.store.kept.runs(&RunQuery::new().run("r")).await.unwrap();
            let run = listed.remove(0).run;
            (run.status, run.waits_for)
        };
        // It is unloaded meanwhile.
        sleep(2 * LEASE).await;
        let before = listed().await;
        assert_eq!(before.0, if is_paused { RunStatus::Paused } else { RunStatus::Waiting });
        engines.store.refuse(Some(&engine));
        sleep(LEASE / 2).await;
        // It is loaded, and the lease lapses before it is unloaded again.
        let run = engine.attach::<Works>("r").await.unwrap();
        sleep(LEASE / 2 + Duration::from_secs(1)).await;
        engines.store.refuse(None);
        sleep(LEASE / 3).await;
        assert_eq!((kept(&engines.store, "r").await, listed().await), (1, before));
        run.unpause().await.unwrap();
        run.send(Note(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(2));
    }
}

// S40
#[tokio::test(start_paused = true)]
async fn at_most_32_runs_write_at_a_time_that_they_are_kept() {
    const RUNS: usize = 70;
    let engines = Engines::new();
    let engine = stays_loaded(&engines, "one");
    let runs: Vec<_> = (0..RUNS).map(|run| RunId::from(format!("r-{run:02}"))).collect();
    for run in &runs {
        start::<Works>(&engine, run.as_str()).await.settled().await;
    }
    lapses(&engines.store, &engine).await;
    for run in &runs {
        engines.store.gate(Call::Answer, run.as_str());
    }
    engines.store.refuse(None);
    let all_kept = async || {
        let mut all = 0;
        for run in &runs {
            all += kept(&engines.store, run.as_str()).await;
        }
        all
    };
    // The next renewal.
    sleep(LEASE / 3).await;
    assert_eq!(all_kept().await, 32);
    for run in &runs {
        engines.store.open(Call::Answer, run.as_str());
    }
    a_while().await;
    assert_eq!(all_kept().await, RUNS);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Price;

/// Asks for a price once it has a note.
struct Asks;

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, _begin: &Begin, _note: &Note) -> Price {
        Price
    }

    #[step]
    async fn finish(&self, price: &Reply<Price>) -> Done {
        Done(**price)
    }
}

// S40, S67: the engine does not know that another one has the run, and that the run has a request there.
#[tokio::test(start_paused = true)]
async fn an_engine_that_lost_a_run_refuses_no_message_for_it() {
    let (engines, inbox) = (Engines::new(), Arc::new(MemoryInbox::default()));
    let engine = || {
        let inbox: Arc<dyn Inbox> = Arc::clone(&inbox) as _;
        let engine = Engine::builder().workflow(Asks).store(engines.store.clone()).inbox(inbox);
        let engine = engine.unload_waiting_after(Duration::MAX).lease(LEASE).clock(VirtualClock::new());
        engine.build().unwrap()
    };
    let (one, other) = (engine(), engine());
    other.resume_open_runs().await.unwrap();
    sleep(LEASE).await;
    start::<Asks>(&one, "r").await.settled().await;
    lapses(&engines.store, &one).await;
    let run = other.attach::<Asks>("r").await.unwrap();
    run.send(Note(1)).await.unwrap();
    run.settled().await;
    let request = run.requests().await.unwrap()[0].seq();
    inbox.put("r", "reply", RunMessage::Reply { request, data: 7.into() }).unwrap();
    assert!(one.notify_inbox(&"r".into()), "it drives the run still");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(inbox.pending(&"r".into(), 1).await.unwrap().len(), 1);
    assert!(other.notify_inbox(&"r".into()));
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    // The one that has the run refuses as ever.
    let reply = RunMessage::Reply { request: Seq(99), data: 8.into() };
    start::<Asks>(&other, "s").await.settled().await;
    inbox.put("s", "reply", reply).unwrap();
    assert!(other.notify_inbox(&"s".into()));
    sleep(Duration::from_secs(1)).await;
    assert!(inbox.pending(&"s".into(), 1).await.unwrap().is_empty());
}

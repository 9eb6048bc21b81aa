//! Engines that detach their runs, so that others resume them at once.

use std::pin::pin;

use workflow_core::SendError;

use super::*;

/// Works until it is dropped; the second attempt completes.
struct Toils {
    is_second: bool,
    seen: Seen,
}

#[workflow]
impl Toils {
    #[step]
    async fn toil(&self, begin: &Begin) -> Done {
        self.seen.note("toil", if self.is_second { "other" } else { "one" });
        if !self.is_second {
            std::future::pending::<()>().await;
        }
        Done(begin.0)
    }
}

/// Engines that also host it, one after the other.
fn engine(engines: &Engines, who: &'static str, released_after: Duration) -> Engine {
    let toils = Toils { is_second: who == "other", seen: engines.seen.clone() };
    let builder = engines.builder(engines.works(who)).workflow(toils).unload_waiting_after(released_after);
    builder.lease(LEASE).clock(VirtualClock::new()).build().unwrap()
}

/// Whether the journal has neither an end nor an additional failure.
async fn is_open(store: &Shared, run: &str) -> bool {
    let journal = store.journal(run).await;
    !journal.is_empty()
        && !journal
            .iter()
            .any(|record| matches!(record, Record::ExecutionFailed { .. } | Record::RunEnded { .. }))
}

// S39, S40
#[tokio::test(start_paused = true)]
async fn detached_runs_resume_elsewhere_at_once_and_do_everything_once() {
    let engines = Engines::new();
    let one = engine(&engines, "one", Duration::MAX);
    let waits = start::<Works>(&one, "waits").await;
    let toils = start::<Toils>(&one, "toils").await;
    let tries = start::<TriesAgain>(&one, "tries").await;
    let parent = start::<Delegates>(&one, "p").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(one.running().len(), 6);

    one.shut_down(Duration::ZERO).await;
    assert!(one.running().is_empty() && !engines.store.holds(one.id()).await);
    assert!(matches!(one.start::<Works>(Begin(1)).await, Err(StartError::ShutDown)));
    assert!(matches!(waits.outcome().await, Err(RunError::Detached)));
    assert!(matches!(toils.outcome().await, Err(RunError::Detached)));
    assert!(matches!(tries.outcome().await, Err(RunError::Detached)));
    assert!(matches!(parent.outcome().await, Err(RunError::Detached)));
    assert!(matches!(waits.send(Note(7)).await, Err(SendError::Stopped { .. })));
    let children = ["p/delegate-x1.2", "p/delegate-x1.alone"];
    for run in ["waits", "toils", "tries", "p"].into_iter().chain(children) {
        assert!(is_open(&engines.store, run).await, "{run}");
    }

    // No time passes for the store's leases.
    let other = engine(&engines, "other", Duration::MAX);
    let resumed = other.resume_open_runs().await.unwrap();
    assert!(resumed.elsewhere.is_empty() && resumed.refused.is_empty(), "{resumed:?}");
    sleep(Duration::from_secs(1)).await;
    for run in ["waits"].into_iter().chain(children) {
        other.attach::<Works>(run).await.unwrap().send(Note(1)).await.unwrap();
    }
    assert_eq!(other.attach::<Works>("waits").await.unwrap().outcome().await.unwrap(), Done(2));
    assert_eq!(other.attach::<Toils>("toils").await.unwrap().outcome().await.unwrap(), Done(1));
    assert_eq!(other.attach::<TriesAgain>("tries").await.unwrap().outcome().await.unwrap(), Done(1));
    assert_eq!(other.attach::<Delegates>("p").await.unwrap().outcome().await.unwrap(), Done(2));
    for (what, times) in [
        ("prepare by one", 3),
        ("prepare by other", 0),
        ("finish by other", 3),
        ("toil by one", 1),
        ("toil by other", 1),
        ("attempt 1 by one", 1),
        ("attempt 2 by other", 1),
    ] {
        assert_eq!(engines.seen.count(what), times, "{what}");
    }
}

// S40, S42
#[tokio::test(start_paused = true)]
async fn unloaded_runs_are_detached_too() {
    let engines = Engines::new();
    let one = engine(&engines, "one", Duration::ZERO);
    let run = start::<Works>(&one, "waits").await;
    run.settled().await;
    sleep(Duration::from_secs(1)).await;
    one.shut_down(Duration::ZERO).await;
    assert!(one.running().is_empty());
    assert!(matches!(run.outcome().await, Err(RunError::Detached)));
    assert!(is_open(&engines.store, "waits").await);
    let other = engine(&engines, "other", Duration::ZERO);
    let run = other.attach::<Works>("waits").await.unwrap();
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}

// S38: results of executions are written, at any time of the hand-over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_done_before_the_hand_over_is_not_repeated() {
    for round in 0..50 {
        let engines = Engines::new();
        let build = |who| engines.builder(engines.works(who)).lease(LEASE).build().unwrap();
        let (one, other) = (build("one"), build("other"));
        for run in 0..4 {
            start::<Works>(&one, &format!("w-{run}")).await.send(Note(1)).await.unwrap();
            start::<Delegates>(&one, &format!("p-{run}")).await;
        }
        for _ in 0..round {
            yield_now().await;
        }
        one.shut_down(Duration::ZERO).await;
        for stored in engines.store.kept.runs(&RunQuery::new().open()).await.unwrap() {
            assert!(is_open(&engines.store, stored.id.as_str()).await, "{}", stored.id);
        }
        other.resume_open_runs().await.unwrap();
        for run in 0..4 {
            let run = other.attach::<Works>(format!("w-{run}")).await.unwrap();
            let outcome = tokio::time::timeout(Duration::from_mins(1), run.outcome()).await;
            assert_eq!(outcome.expect("the run continues").unwrap(), Done(2));
        }
        other.shut_down(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn runs_in_memory_cannot_be_resumed_and_are_cancelled() {
    let seen = Seen::default();
    let engine = Engine::builder().workflow(Toils { is_second: false, seen }).build().unwrap();
    let run = engine.start::<Toils>(Begin(1)).await.unwrap();
    engine.shut_down(Duration::ZERO).await;
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
}

/// The reason of the run's cancel, if it was cancelled.
async fn cancelled_for(store: &Shared, run: &str) -> Option<String> {
    match store.journal(run).await.pop() {
        Some(Record::RunEnded { status: RunStatus::Cancelled, error, .. }) => error,
        _ => None,
    }
}

// S31
#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_meanwhile_ends_with_all_its_children() {
    let engines = Engines::new();
    let one = engine(&engines, "one", Duration::MAX);
    let guard = start::<Delegates>(&one, "p").await.cancel_on_drop("enough");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(one.running().len(), 3);
    drop(guard);
    one.shut_down(Duration::ZERO).await;
    assert_eq!(cancelled_for(&engines.store, "p").await.as_deref(), Some("enough"));
    for child in ["p/delegate-x1.2", "p/delegate-x1.alone"] {
        assert!(cancelled_for(&engines.store, child).await.is_some(), "{child}");
    }
}

// S31
#[tokio::test(start_paused = true)]
async fn a_handle_cancels_a_run_that_is_about_to_be_detached() {
    let engines = Engines::new();
    let one = engine(&engines, "one", Duration::MAX);
    let run = start::<Works>(&one, "waits").await;
    sleep(Duration::from_secs(1)).await;
    let (mut asks, mut cancels) = (pin!(run.timers()), pin!(run.cancel("enough")));
    assert!(futures::poll!(asks.as_mut()).is_pending() && futures::poll!(cancels.as_mut()).is_pending());
    one.shut_down(Duration::ZERO).await;
    cancels.await.unwrap();
    assert!(matches!(asks.await, Err(SendError::Ended { status: RunStatus::Cancelled, .. })));
    let outcome = run.outcome().await.unwrap_err();
    assert!(matches!(&outcome, RunError::Cancelled { reason } if **reason == *"enough"), "{outcome}");
    assert!(cancelled_for(&engines.store, "waits").await.is_some());
}

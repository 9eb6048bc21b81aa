//! Children that other engines resume.

use workflow_core::Pause;

use super::*;

/// The child that the parent waits for.
const CHILD: &str = "p/delegate-x1.2";

/// The child that it started.
const STARTED: &str = "p/delegate-x1.alone";

/// The engine of a process that was killed an hour ago, with a parent and its two children active.
fn killed(engines: &Engines) -> Engine {
    let dead = engines.killed(engines.works("dead"), |engine| async move {
        start::<Delegates>(&engine, "p").await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(engine.running().len(), 3);
    });
    engines.store.pass(Duration::from_hours(1));
    dead
}

fn has_failed(journal: &[Record]) -> bool {
    journal.iter().any(|record| matches!(record, Record::ExecutionFailed { .. } | Record::RunEnded { .. }))
}

/// Whether an error is caused by a child that this engine drives.
fn names(error: &RunError, engine: &Engine) -> bool {
    error.to_string().contains(&format!("is driven by engine `{}`", engine.id()))
}

// S40, S61: else nobody would unpause it with its parent, which could not go on elsewhere.
#[test]
fn a_child_is_taken_up_with_the_parent_that_waits_for_it() {
    let engines = Engines::new();
    let dead = killed(&engines);
    runtime().block_on(async {
        let (one, other) = (engines.engine("one"), engines.engine("other"));
        let child = other.attach::<Works>(CHILD).await.unwrap();
        assert!(other.running().contains(&"p".into()), "{:?}", other.running());
        assert_eq!(engines.store.owner("p").await.as_ref(), Some(other.id()));
        for run in ["p", CHILD] {
            let error = one.attach_any(run).await.unwrap_err();
            assert!(matches!(&error, ResumeError::Elsewhere { run: asked, engine }
                if asked.as_str() == run && engine == other.id()));
        }
        assert_eq!(finish(&other).await.unwrap(), Done(2));
        assert_eq!(child.outcome().await.unwrap(), Done(2));
        assert_eq!(engines.store.resumed(CHILD).await, 1);
    });
    drop(dead);
}

// S40
#[test]
fn a_child_stays_with_the_engine_that_has_its_parent() {
    let engines = Engines::new();
    let dead = killed(&engines);
    runtime().block_on(async {
        let (one, other) = (engines.engine("one"), engines.engine("other"));
        // The parent has not asked for its child yet, whose owner is gone.
        engines.store.gate(Call::Append, CHILD);
        let parent = one.attach::<Delegates>("p").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_ne!(engines.store.owner(CHILD).await.as_ref(), Some(one.id()));
        let error = other.attach_any(CHILD).await.unwrap_err();
        assert!(matches!(&error, ResumeError::Elsewhere { engine, .. } if engine == one.id()), "{error}");
        engines.store.open(Call::Append, CHILD);
        assert_eq!(finish(&one).await.unwrap(), Done(2));
        assert_eq!(parent.outcome().await.unwrap(), Done(2));
    });
    drop(dead);
}

// S40
#[test]
fn a_child_of_a_parent_that_cannot_be_taken_up_is_not_taken_up_either() {
    let engines = Engines::new();
    let dead = killed(&engines);
    runtime().block_on(async {
        let builder = Engine::builder().workflow(engines.works("other")).store(engines.store.clone());
        let other = builder.lease(LEASE).clock(VirtualClock::new()).build().unwrap();
        let error = other.attach::<Works>(CHILD).await.unwrap_err();
        assert!(matches!(&error, ResumeError::UnknownWorkflow { run, .. } if run.as_str() == "p"), "{error}");
        assert_eq!(engines.store.resumed(CHILD).await, 0);
        assert_eq!(finish(&engines.engine("one")).await.unwrap(), Done(2));
    });
    drop(dead);
}

// S40
#[test]
fn a_started_child_that_another_engine_drives_is_not_claimed_and_its_parent_is_detached() {
    let engines = Engines::new();
    let dead = killed(&engines);
    runtime().block_on(async {
        let (one, other) = (engines.engine("one"), engines.engine("other"));
        let child = other.attach::<Works>(STARTED).await.unwrap();
        let error = one.attach::<Delegates>("p").await.unwrap().outcome().await.unwrap_err();
        assert!(matches!(error, RunError::Store { .. }), "{error}");
        assert!(names(&error, &other), "{error}");
        assert_eq!(engines.store.owner(STARTED).await.as_ref(), Some(other.id()));
        assert!(!has_failed(&engines.store.journal("p").await), "its step was told nothing");

        child.send(Note(1)).await.unwrap();
        assert_eq!(child.outcome().await.unwrap(), Done(2));
        assert_eq!(finish(&one).await.unwrap(), Done(2));
        assert_eq!(engines.store.resumed(STARTED).await, 1);
    });
    drop(dead);
}

// S31, S40
#[test]
fn a_child_that_another_engine_drives_is_not_ended_with_its_parent() {
    let engines = Engines::new();
    let dead = killed(&engines);
    runtime().block_on(async {
        let (one, other) = (engines.engine("one"), engines.engine("other"));
        let child = other.attach::<Works>(STARTED).await.unwrap();
        let parent = one.attach::<Delegates>("p").await.unwrap();
        parent.cancel("enough").await.unwrap();
        assert!(matches!(parent.outcome().await, Err(RunError::Cancelled { .. })));
        child.send(Note(1)).await.unwrap();
        assert_eq!(child.outcome().await.unwrap(), Done(2));
        assert_eq!(engines.store.resumed(STARTED).await, 1);
    });
    drop(dead);
}

// S66: otherwise the engine with the parent would resume it again and again, and never get the child.
#[test]
fn a_child_that_its_engine_has_lost_is_left_to_the_engine_with_its_parent() {
    let engines = Engines::new();
    let dead = killed(&engines);
    runtime().block_on(async {
        let (one, other) = (engines.engine("one"), engines.engine("other"));
        let child = other.attach::<Works>(STARTED).await.unwrap();
        one.attach::<Delegates>("p").await.unwrap().outcome().await.unwrap_err();
        engines.store.fails.lock().unwrap().push(STARTED.into());
        assert!(child.send(Note(1)).await.is_err());
        assert!(matches!(child.outcome().await, Err(RunError::Store { .. })));
        engines.store.fails.lock().unwrap().clear();
        // Neither lease is new any more, and both engines claim what they have lost.
        a_while().await;
        a_while().await;
        assert!(one.running().contains(&STARTED.into()), "{:?}", one.running());
        assert_eq!(engines.store.owner(STARTED).await.as_ref(), Some(one.id()));
        assert_eq!(finish(&one).await.unwrap(), Done(2));
    });
    drop(dead);
}

// S40, S66: the parent writes nothing while it waits, so its engine would keep the children from the one that has it now.
#[tokio::test(start_paused = true)]
async fn a_lost_parent_that_only_waits_lets_its_children_go_once_its_engine_has_its_lease_again() {
    let engines = Engines::new();
    let (one, other, store) = (engines.engine("one"), engines.engine("other"), &engines.store);
    other.resume_open_runs().await.unwrap();
    sleep(LEASE).await;
    start::<Delegates>(&one, "p").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(one.running().len(), 3);
    // The other engine claims the parent, and has no answer before the lease of the first is back.
    store.gate(Call::Answer, "p");
    store.refuse(Some(&one));
    store.pass(LEASE);
    sleep(LEASE).await;
    assert_eq!(
        (store.owner("p").await.as_ref(), store.owner(CHILD).await.as_ref()),
        (Some(other.id()), Some(one.id()))
    );
    store.refuse(None);
    sleep(LEASE).await;
    store.open(Call::Answer, "p");
    a_while().await;
    assert_eq!((one.running().len(), other.running().len()), (0, 3));
    assert_eq!(store.resumed("p").await, 1, "the parent found its children at its first question");
    assert_eq!(finish(&other).await.unwrap(), Done(2));
    assert_eq!((engines.seen.count("prepare by one"), engines.seen.count("finish by other")), (2, 2));
}

// S40, S61, S66: its engine has it no more, and the parent could not go on where it was taken up.
#[tokio::test(start_paused = true)]
async fn a_child_that_left_with_the_pause_of_its_parent_is_let_go_after_a_lapse_of_the_lease() {
    let (engines, second, child) = (Engines::new(), Duration::from_secs(1), "p/delegate-x1.1");
    let one = engines.builder(engines.works("one")).lease(LEASE).clock(VirtualClock::new());
    let one = one.unload_waiting_after(second).build().unwrap();
    let (other, store) = (engines.engine("other"), &engines.store);
    other.resume_open_runs().await.unwrap();
    sleep(LEASE).await;
    let parent = start::<Awaits>(&one, "p").await;
    sleep(second).await;
    parent.pause(Pause::Now).await.unwrap();
    a_while().await;
    assert_eq!((store.owner(child).await.as_ref(), one.running().len()), (Some(one.id()), 1));
    store.refuse(Some(&one));
    store.pass(LEASE);
    sleep(LEASE).await;
    assert_eq!(store.owner("p").await.as_ref(), Some(other.id()));
    store.refuse(None);
    a_while().await;
    other.attach::<Awaits>("p").await.unwrap().unpause().await.unwrap();
    for _ in 0..5 {
        a_while().await;
    }
    let child = other.attach::<Works>(child).await.expect("its engine has let it go");
    child.send(Note(1)).await.unwrap();
    assert_eq!(other.attach::<Awaits>("p").await.unwrap().outcome().await.unwrap(), Done(2));
}

/// Sends the children of the parent what they wait for, and waits for the parent.
async fn finish(engine: &Engine) -> Result<Done, RunError> {
    for child in [CHILD, STARTED] {
        let child = engine.attach::<Works>(child).await.unwrap();
        if !child.status().is_ended() {
            child.send(Note(1)).await.unwrap();
        }
    }
    engine.attach::<Delegates>("p").await.unwrap().outcome().await
}

/// Long enough for everything that waits for no gate.
async fn moment() {
    sleep(Duration::from_secs(1)).await;
}

// S39: the store failed while the parent looked for its child.
#[test]
fn a_child_does_not_begin_for_a_parent_that_stopped_while_it_looked_for_the_child() {
    const CHILD: &str = "p/delegate-x1.1";
    for is_slow in [false, true] {
        let engines = Engines::new();
        let store = engines.store.clone();
        // The process dies before the parent asks for its child.
        store.gate(Call::Answer, "p");
        let dead = engines.killed(engines.works("dead"), |engine| async move {
            let started = engine.start_with::<Awaits>(Begin(1), RunOptions::new().id("p"));
            assert!(tokio::time::timeout(LEASE, started).await.is_err());
        });
        store.open(Call::Answer, "p");
        runtime().block_on(async {
            let engine = engines.builder(engines.works("alive")).clock(VirtualClock::new()).build().unwrap();
            store.gate(Call::Read, CHILD);
            let parent = engine.attach::<Awaits>("p").await.unwrap();
            moment().await;
            store.fails.lock().unwrap().push("p".into());
            parent.send(Note(1)).await.unwrap_err();
            assert!(matches!(parent.outcome().await, Err(RunError::Store { .. })));
            store.fails.lock().unwrap().clear();

            let parent = engine.attach::<Awaits>("p").await.unwrap();
            moment().await;
            if is_slow {
                store.gate(Call::Append, CHILD);
            }
            store.open(Call::Read, CHILD);
            moment().await;
            store.open(Call::Append, CHILD);
            moment().await;
            engine.attach::<Works>(CHILD).await.unwrap().send(Note(1)).await.unwrap();
            assert_eq!(parent.outcome().await.unwrap(), Done(2), "slow: {is_slow}");
            assert_eq!(store.resumed(CHILD).await, 0, "it began once, for the parent that continues");
        });
        drop(dead);
    }
}

// S39, S61: two attempts were dropped by pauses while they looked for their child.
#[test]
fn a_child_is_not_cancelled_for_dropped_attempts_while_a_later_one_waits_for_it() {
    let engines = Engines::new();
    let dead = killed(&engines);
    runtime().block_on(async {
        let store = &engines.store;
        let engine = engines.builder(engines.works("alive")).clock(VirtualClock::new()).build().unwrap();
        let reads = store.gate(Call::Read, CHILD);
        let parent = engine.attach::<Delegates>("p").await.unwrap();
        moment().await;
        for _ in 0..2 {
            parent.pause(Pause::Now).await.unwrap();
            parent.unpause().await.unwrap();
            moment().await;
        }
        // Each of the searches reads two pages, of which the second is empty.
        store.gate(Call::Append, CHILD);
        for _ in 0..2 {
            reads.add_permits(2);
            moment().await;
        }
        store.open(Call::Append, CHILD);
        moment().await;
        store.open(Call::Read, CHILD);
        moment().await;
        assert_eq!(finish(&engine).await.unwrap(), Done(2));
        assert_eq!(store.resumed(CHILD).await, 1);
    });
    drop(dead);
}

//! Runs over a store that fails occasionally (S38–S40). For any failing calls, every run ends here. Runs stopped by the
//! store stay open, and resume to the same end when the store works again.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::RequestId;
use workflow_core::store::{EventStore, MemoryContexts, RunQuery, StoreError};
use workflow_core::{ResumeError, RunHandle, RunOptions, StartError};
use workflow_testkit::{CrashStore, Fault, FaultyStore, StoreCall, VirtualClock};

use crate::fixtures::{Begin, Done, Item};
use crate::shapes::{
    Ask, Asks, Branches, Catches, Fails, FailsAll, Joins, Lists, Loops, Pairs, Parents, Retries, Stalls,
};

/// The number of seeds per workflow.
const SEEDS: u64 = 60;

/// The time limit of a run, in virtual time: much longer than any takes.
const PATIENCE: Duration = Duration::from_hours(24);

const ALL: [Fault; 5] = [Fault::Refused, Fault::AnswerLost, Fault::Conflict, Fault::Late(1), Fault::Late(20)];

/// A conflict at the beginning of a child means that its id is taken, which the step has to handle.
const BUT_FOR_CONFLICTS: [Fault; 4] = [Fault::Refused, Fault::AnswerLost, Fault::Late(1), Fault::Late(20)];

/// The state that survives an engine.
struct World {
    kept: CrashStore,
    contexts: Arc<MemoryContexts>,
    clock: VirtualClock,
}

impl World {
    fn new() -> Self {
        Self { kept: CrashStore::default(), contexts: Arc::default(), clock: VirtualClock::new() }
    }

    fn engine(&self, store: impl EventStore) -> Engine {
        let engine = Engine::builder().workflow(Joins).workflow(Lists).workflow(Pairs).workflow(Loops);
        let engine = engine.workflow(Retries).workflow(Catches).workflow(Fails).workflow(FailsAll);
        let engine = engine.workflow(Branches).workflow(Asks).workflow(Parents).workflow(Stalls);
        let engine = engine.workflow(Copes);
        engine.store(store).contexts(Arc::clone(&self.contexts)).clock(self.clock.clone()).build().unwrap()
    }
}

/// The outcome of a run, in a comparable form. Replies to its requests.
async fn outcome<W: Workflow<Output = Done>>(run: &RunHandle<W>) -> Result<Done, RunError> {
    let driven = async {
        while !run.settled().await.is_ended() {
            for request in run.requests().await.unwrap_or_default() {
                if let Some(Ask(number)) = request.downcast_ref::<Ask>() {
                    // An error says that the run has ended.
                    drop(run.reply(RequestId::<Ask>::new(request.seq()), number + 1).await);
                }
            }
            // The run may wait for a timer or a retry.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        run.outcome().await
    };
    tokio::time::timeout(PATIENCE, driven).await.unwrap_or_else(|_| panic!("run `{}` does not end", run.id()))
}

fn text(outcome: &Result<Done, RunError>) -> String {
    match outcome {
        Ok(done) => format!("{done:?}"),
        Err(error) => error.to_string(),
    }
}

/// Whether the store stopped the run.
fn was_let_down(outcome: &Result<Done, RunError>) -> bool {
    matches!(outcome, Err(RunError::Store { .. } | RunError::Conflict { .. }))
}

async fn start<W: Workflow>(engine: &Engine, id: &str, number: u32) -> Result<RunHandle<W>, StartError> {
    engine.start_with::<W>(Begin(number), RunOptions::new().id(id)).await
}

/// Runs with faults, resumes without them, and compares the outcome with an uninterrupted run. Returns whether the
/// store stopped the run.
async fn goes_on<W: Workflow<Output = Done>>(
    number: u32,
    faulty: impl FnOnce(CrashStore) -> FaultyStore<CrashStore>,
) -> (bool, FaultyStore<CrashStore>) {
    let world = World::new();
    let whole = start::<W>(&world.engine(CrashStore::default()), "r", number).await.unwrap();
    let (whole, status) = (text(&outcome(&whole).await), whole.status());

    let faulty = faulty(world.kept.clone());
    let engine = world.engine(faulty.clone());
    let first = match start::<W>(&engine, "r", number).await {
        Ok(run) => Some(outcome(&run).await),
        Err(_) => None,
    };
    let is_let_down = first.as_ref().is_none_or(was_let_down);
    if let Some(first) = first.filter(|_| !is_let_down) {
        assert_eq!(text(&first), whole, "{faulty:?}");
    }
    // Only the run itself wrote its end, and the store's answer may be lost.
    let stored = world.kept.runs(&RunQuery::new()).await.unwrap();
    let left = stored.iter().find(|stored| stored.id.as_str() == "r").map(|stored| stored.run.status);
    assert!(
        left.is_none_or(|left| left == status || is_let_down && !left.is_ended()),
        "{left:?}, {faulty:?}"
    );

    let well = world.engine(world.kept.clone());
    let resumed = well.resume_open_runs().await.unwrap();
    assert!(resumed.refused.is_empty(), "{:?}, {faulty:?}", resumed.refused);
    let run = match well.attach::<W>("r").await {
        // The store has not even kept the beginning.
        Err(ResumeError::UnknownRun { .. }) => start::<W>(&well, "r", number).await.unwrap(),
        found => found.unwrap(),
    };
    assert_eq!(text(&outcome(&run).await), whole, "{faulty:?}");
    (is_let_down, faulty)
}

/// Injects one fault at each append of the run and its children in turn, until there is none left.
async fn goes_on_from_each_append<W: Workflow<Output = Done>>(number: u32, fault: Fault) -> u64 {
    let mut append = 1;
    loop {
        let faulty = |kept| FaultyStore::new(kept).fail(StoreCall::Append, append, fault);
        let (is_let_down, faulty) = goes_on::<W>(number, faulty).await;
        if faulty.injected().is_empty() {
            return append - 1;
        }
        assert!(is_let_down, "nobody was told: {faulty:?}");
        append += 1;
    }
}

macro_rules! goes_on {
    ($($name:ident: $workflow:ident, $number:expr, $faults:expr;)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                let mut let_down = 0;
                for seed in 0..SEEDS {
                    let faulty =
                        |kept| FaultyStore::seeded(kept, seed).one_in(8).among($faults);
                    let_down += u64::from(goes_on::<$workflow>($number, faulty).await.0);
                }
                assert!(let_down > SEEDS / 10 && let_down < SEEDS, "the store has let {let_down} runs down");
            }
        )*
    };
}

goes_on! {
    joins: Joins, 4, ALL;
    lists: Lists, 4, ALL;
    fixed_lists: Pairs, 5, ALL;
    loops: Loops, 4, ALL;
    retries: Retries, 4, ALL;
    failures_that_are_caught: Catches, 4, ALL;
    failures: Fails, 4, ALL;
    stalls: Stalls, 4, ALL;
    branches: Branches, 4, ALL;
    a_failure_that_drops_branches: FailsAll, 4, ALL;
    requests: Asks, 3, ALL;
    children: Parents, 3, BUT_FOR_CONFLICTS;
}

/// Continues without its child.
struct Copes;

#[workflow]
impl Copes {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Item {
        Item(children.run::<Retries>(Begin(begin.0)).await.map_or(1_000, |done| done.0))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S39: a store outage says nothing about how a child ends.
#[tokio::test(start_paused = true)]
async fn no_step_sees_the_store_failure_of_its_child() {
    for fault in [Fault::Refused, Fault::AnswerLost] {
        let appends = goes_on_from_each_append::<Copes>(4, fault).await;
        assert!(appends > 6, "{appends} appends");
        goes_on_from_each_append::<Parents>(3, fault).await;
    }
}

// S40
#[tokio::test(start_paused = true)]
async fn a_run_whose_child_is_written_by_another_engine_stops() {
    let world = World::new();
    let store = FaultyStore::new(world.kept.clone()).fail(StoreCall::Append, 4, Fault::Conflict);
    let run = start::<Copes>(&world.engine(store.clone()), "r", 4).await.unwrap();
    let error = outcome(&run).await.unwrap_err();
    let RunError::Store { source: StoreError::Unavailable { source } } = &error else { panic!("{error:?}") };
    let child = store.injected()[0].run.clone().unwrap();
    assert!(source.to_string().starts_with(&format!("this engine detached run `{child}`")), "{source}");
    assert_ne!(child, *run.id());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_the_store_lets_down_is_in_the_way_of_no_other() {
    let world = World::new();
    let store = FaultyStore::new(world.kept.clone()).fail(StoreCall::Append, 2, Fault::Refused);
    let engine = world.engine(store.clone());
    let first = start::<Asks>(&engine, "a", 3).await.unwrap();
    first.settled().await;
    let (second, third) =
        (start::<Joins>(&engine, "b", 4).await.unwrap(), start::<Branches>(&engine, "c", 4).await.unwrap());
    let ends = [outcome(&first).await, outcome(&second).await, outcome(&third).await];
    assert_eq!(ends.iter().filter(|end| was_let_down(end)).count(), 1, "{ends:?}");
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 2, "{ends:?}");
}

/// Waits until a run ends or waits, and cancels it then.
async fn some_end<W: Workflow>(run: &RunHandle<W>) -> Result<(), RunError> {
    let settled = tokio::time::timeout(PATIENCE, run.settled()).await;
    if !settled
        .unwrap_or_else(|_| panic!("run `{}` neither ends nor waits {}", run.id(), run.status()))
        .is_ended()
    {
        run.cancel("nobody comes").await.unwrap();
    }
    run.outcome().await.map(drop)
}

/// A store that keeps parts of batches breaks its contract, so nothing is promised for such a run. But it ends, waits,
/// or is refused, and does not affect others.
#[tokio::test(start_paused = true)]
async fn a_run_with_a_torn_batch_is_refused_or_ends() {
    for append in 1..=12 {
        for kept in 0..4 {
            let world = World::new();
            let fault = Fault::Torn(kept);
            let store = FaultyStore::new(world.kept.clone()).fail(StoreCall::Append, append, fault);
            let engine = world.engine(store.clone());
            if let Ok(run) = start::<Branches>(&engine, "r", 4).await {
                let end = some_end(&run).await;
                assert!(!matches!(end, Err(RunError::Detached)), "{store:?}");
            }
            let well = world.engine(world.kept.clone());
            let other = start::<Joins>(&well, "b", 4).await.unwrap();
            well.resume_open_runs().await.unwrap();
            if let Ok(run) = well.attach::<Branches>("r").await {
                let end = some_end(&run).await;
                assert!(!matches!(end, Err(RunError::Detached)), "{store:?}");
            }
            assert_eq!(outcome(&other).await.unwrap(), Done(8));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_journal_is_refused_and_other_runs_continue() {
    let world = World::new();
    let engine = world.engine(world.kept.clone());
    for id in ["a", "b", "c"] {
        start::<Asks>(&engine, id, 3).await.unwrap().settled().await;
    }
    let store = FaultyStore::new(world.kept.clone()).fail(StoreCall::Read, 3, Fault::Corrupt);
    let well = world.engine(store);
    let resumed = well.resume_open_runs().await.unwrap();
    assert_eq!(resumed.runs, ["a".into(), "b".into(), "c".into()], "their journals are read later");
    for id in ["a", "b", "b", "c"] {
        match well.attach::<Asks>(id).await {
            Ok(run) => drop(outcome(&run).await.unwrap()),
            Err(ResumeError::Store(StoreError::Corrupt { run, .. })) => {
                assert_eq!((run.as_str(), id), ("b", "b"));
                assert!(well.running().contains(&run), "it may be readable again");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(well.running().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_journal_of_a_run_that_does_not_wait_is_refused_at_once() {
    let world = World::new();
    let engine = world.engine(world.kept.clone());
    for id in ["a", "b", "c"] {
        let run = start::<Asks>(&engine, id, 3).await.unwrap();
        run.settled().await;
        run.pause(workflow_core::Pause::Now).await.unwrap();
    }
    engine.shut_down(Duration::ZERO).await;
    let store = FaultyStore::new(world.kept.clone()).fail(StoreCall::Read, 3, Fault::Corrupt);
    let well = world.engine(store);
    let resumed = well.resume_open_runs().await.unwrap();
    assert_eq!(resumed.runs, ["a".into(), "c".into()]);
    let [(id, ResumeError::Store(StoreError::Corrupt { run, .. }))] = &*resumed.refused else {
        panic!("{:?}", resumed.refused)
    };
    assert!(id.as_str() == "b" && run == id);
}

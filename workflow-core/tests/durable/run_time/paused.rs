//! Run-time workflows that are paused at every point do what they do without a pause, in every order and after every crash
//! (S39, S57, S61).
//!
//! The points are the moments at which the run without a pause does something, by its journals and those of its children,
//! and the time just before each. A pause changes when the script's events and cancels come in the run, so that only outcomes
//! are compared after a crash. A test takes a few of them, each time the same; `PAUSED_POINTS=1000` takes all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use workflow_core::store::{EventStore as _, MemoryStore, Position, RunQuery};
use workflow_core::{Pause, RunStatus, StepError, Workflow};
use workflow_testkit::{CrashStore, Runtime, Scenario, ScenarioOf, TestRun, Tested, crash_everywhere};

use super::orders::{Shown, are_same, more, shown_in};
use super::shapes::{Delegates, Reads, Splits, Trees};
use crate::fixtures::Begin;
use crate::golden::workflows::{Calls, Cleans, Races, Rings};
use crate::shapes::{Asks, Branches, Catches, Joins, Lists, Retries, Waits};
use crate::translated::translated;

const SOON: Duration = Duration::from_secs(1);

/// How long a pause takes: longer than some timers and steps, and shorter than others.
const REST: Duration = Duration::from_secs(15);

/// The orders that are explored without `PAUSED_POINTS`, one by one and at random.
const ORDERS: u64 = 30;

/// How many points each test takes, if not all.
fn most_points() -> Option<usize> {
    std::env::var("PAUSED_POINTS").ok().and_then(|points| points.parse().ok())
}

/// How the run ended, and with what.
fn ended<T: Tested>(run: &TestRun<T>) -> String {
    let stop = run.report().log.iter().find(|logged| logged.value.roles().is_stop());
    let stop = stop.map(|stop| stop.value.to_json().unwrap().to_string());
    let error = run.status().is_ended().then(|| run.outcome().err().map(ToString::to_string)).flatten();
    format!("{}: {stop:?}, {error:?}", run.status())
}

/// The run without a pause: how it ends, and the points at which to pause it.
async fn unpaused(scenario: ScenarioOf<Runtime>, begin: u32) -> (String, Vec<Duration>) {
    let store = Arc::new(MemoryStore::default());
    let run = scenario.engine(|engine| engine.store(Arc::clone(&store))).start_json("Begin", begin).await;
    let (mut start, mut points) = (None, BTreeSet::new());
    for stored in store.runs(&RunQuery::new()).await.unwrap() {
        for record in store.read(&stored.id, Position(0), usize::MAX).await.unwrap() {
            // Each record has its time. A parent is listed before its children.
            let record = serde_json::to_value(record).unwrap();
            let at = record.as_object().unwrap().values().next().unwrap()["at"].clone();
            let at: SystemTime = serde_json::from_value(at).unwrap();
            let after = at.duration_since(*start.get_or_insert(at)).unwrap();
            points.extend([after.saturating_sub(Duration::from_millis(1)), after]);
        }
    }
    (ended(&run), points.into_iter().collect())
}

/// Some of them, the first and the last among them.
fn spread(points: &[Duration], most: usize) -> impl Iterator<Item = Duration> {
    let chosen = most.clamp(1, points.len());
    (0..chosen).map(move |place| points[place * (points.len() - 1) / (chosen - 1).max(1)])
}

/// Crashes the run everywhere, paused at each point. Returns how many crashes it survived.
async fn crash_paused(
    scenario: impl Fn() -> ScenarioOf<Runtime> + Send + Clone + 'static,
    begin: u32,
) -> u64 {
    let (expected, points) = unpaused(scenario(), begin).await;
    let (mut crashes, pairs) = (0, if most_points().is_some() { 20 } else { 2 });
    for point in spread(&points, most_points().unwrap_or(3)) {
        for how in [Pause::AfterRunning, Pause::Now] {
            let (scenario, expected) = (scenario.clone(), expected.clone());
            let paused = move |store: CrashStore| {
                let paused = scenario().pause_after(point, how).unpause_after(point + REST);
                paused.engine(|engine| engine.store(store)).start_json("Begin", begin)
            };
            let survived = crash_everywhere(paused).pairs(pairs).comparing_outcomes();
            let survived =
                survived.assert(move |run| assert_eq!(ended(run), expected, "{how:?} at {point:?}"));
            crashes += survived.await.once();
        }
    }
    crashes
}

/// The outcomes of the runs that were not left paused by an unpause that came first, as they print: a branch that is dropped in
/// the pause may have had a reply that no execution took.
fn outcomes(shown: &Shown) -> BTreeSet<String> {
    let ended = shown.distinct.iter().filter(|outcome| outcome.status() != RunStatus::Paused);
    ended.map(ToString::to_string).collect()
}

/// Explores both with a pause, and compares them with each other and with the run without. Returns how many orders there
/// were.
fn explore_paused<W: Workflow>(
    typed: impl Fn() -> ScenarioOf<W>,
    run_time: impl Fn() -> ScenarioOf<Runtime>,
    begin: u32,
) -> usize {
    let orders = if most_points().is_some() { 1_000 } else { ORDERS };
    // A run that stays paused would be unloaded and loaded again at each look, for a year.
    let stored = |scenario: ScenarioOf<Runtime>, store| {
        scenario
            .engine(|engine| engine.store(store).unload_waiting_after(Duration::MAX))
            .start_json("Begin", begin)
    };
    let unpaused = shown_in(1_000, |store| stored(run_time(), store));
    assert!(unpaused.is_exhaustive);
    let (expected, mut tried) = (outcomes(&unpaused), 0);
    for how in [Pause::AfterRunning, Pause::Now] {
        let typed = shown_in(orders, |store| {
            let paused = typed().pause_after(SOON, how).unpause_after(REST);
            paused
                .engine(|engine| engine.store(store).unload_waiting_after(Duration::MAX))
                .start(Begin(begin))
        });
        let run_time =
            shown_in(orders, |store| stored(run_time().pause_after(SOON, how).unpause_after(REST), store));
        tried += are_same(&typed, &run_time);
        let found = outcomes(&run_time);
        for outcome in &found {
            assert!(expected.contains(outcome), "{how:?}: {outcome} is none of {expected:#?}");
        }
        assert!(
            !run_time.is_exhaustive || found.len() == expected.len(),
            "{how:?}: {found:#?} of {expected:#?}"
        );
    }
    tried
}

/// Pauses each workflow at every point.
macro_rules! paused {
    ($($name:ident: $workflow:ident $([$($child:ident)*])?, $begin:expr
        $(, . $method:ident($($argument:expr),*))*;)*) => {
        $(
            mod $name {
                use super::*;

                fn run_time() -> ScenarioOf<Runtime> {
                    Scenario::runtime(translated(&$workflow::shape()))
                        $($(.host_runtime(translated(&$child::shape())))*)?
                        $(.$method($($argument),*))*
                }

                // S39, S57, S61
                #[tokio::test]
                async fn crashes() {
                    let crashes = crash_paused(run_time, $begin).await;
                    assert!(crashes > 20, "{crashes}");
                }

                // S57, S61
                #[test]
                fn orders() {
                    let typed = || Scenario::new($workflow) $($(.host($child))*)? $(.$method($($argument),*))*;
                    let orders = explore_paused(typed, run_time, $begin);
                    assert!(orders > 4, "{orders}");
                }
            }
        )*
    };
}

paused! {
    joins: Joins, 3;
    lists: Lists, 3;
    branches: Branches, 3;
    attempts: Retries, 3;
    caught: Catches, 3;
    races: Races, 3, .reply_json("Ask", more);
    timers: Waits, 3, .send_json_after(SOON, "Note", 9);
    family: Calls [Rings], 3, .send_json_after(SOON, "Note", 9);
    cancelled: Waits, 3, .cancel_after(SOON, "not needed any more");
    cleaned_up: Cleans, 3, .cancel_after(SOON, "not needed any more");
    passive_inputs: Reads, 2, .send_json("Note", 5);
    gathers_in_gathers: Trees, 2;
    caught_fan_outs: Splits, 3;
    children_by_name: Delegates [Joins], 3;
    failing_first: Joins, 3, .fail_first("first", 1, || StepError::transient("busy"));
}

// S39, S57, S61
#[tokio::test]
async fn replies_and_a_precondition() {
    // The typed workflow has a precondition that waits, so a pause finds it at other points.
    let run_time = || Scenario::runtime(translated(&Asks::shape())).reply_json("Ask", more);
    let crashes = crash_paused(run_time, 2).await;
    assert!(crashes > 20, "{crashes}");
}

// S39, S57, S61
#[tokio::test]
async fn children_of_the_other_kind_survive_pauses_in_both_directions() {
    let (expected, points) = unpaused(
        Scenario::runtime(translated(&Delegates::shape())).host_runtime(translated(&Joins::shape())),
        3,
    )
    .await;
    for point in spread(&points, most_points().unwrap_or(2)) {
        for how in [Pause::AfterRunning, Pause::Now] {
            let below = crash_everywhere(move |store: CrashStore| {
                let scenario = Scenario::new(Delegates).host_runtime(translated(&Joins::shape()));
                let paused = scenario.pause_after(point, how).unpause_after(point + REST);
                paused.engine(|engine| engine.store(store)).start(Begin(3))
            });
            let above = crash_everywhere(move |store: CrashStore| {
                let scenario = Scenario::runtime(translated(&Delegates::shape())).host(Joins);
                let paused = scenario.pause_after(point, how).unpause_after(point + REST);
                paused.engine(|engine| engine.store(store)).start_json("Begin", 3)
            });
            let same = expected.clone();
            let below =
                below.pairs(2).comparing_outcomes().assert(move |run| assert_eq!(ended(run), same)).await;
            let same = expected.clone();
            let above =
                above.pairs(2).comparing_outcomes().assert(move |run| assert_eq!(ended(run), same)).await;
            assert_eq!(below, above, "{how:?} at {point:?}");
        }
    }
}

// S57, S61
#[test]
fn children_of_the_other_kind_are_paused_in_both_directions() {
    let orders = if most_points().is_some() { 1_000 } else { ORDERS };
    let joins = || translated(&Joins::shape());
    for how in [Pause::AfterRunning, Pause::Now] {
        let one_kind = shown_in(orders, |store| {
            let paused = Scenario::new(Delegates).host(Joins).pause_after(SOON, how).unpause_after(REST);
            paused.engine(|engine| engine.store(store).unload_waiting_after(Duration::MAX)).start(Begin(3))
        });
        let below = shown_in(orders, |store| {
            let paused =
                Scenario::new(Delegates).host_runtime(joins()).pause_after(SOON, how).unpause_after(REST);
            paused.engine(|engine| engine.store(store).unload_waiting_after(Duration::MAX)).start(Begin(3))
        });
        let above = shown_in(orders, |store| {
            let above = Scenario::runtime(translated(&Delegates::shape())).host_named("Joins", Joins);
            let paused = above.pause_after(SOON, how).unpause_after(REST);
            paused
                .engine(|engine| engine.store(store).unload_waiting_after(Duration::MAX))
                .start_json("Begin", 3)
        });
        are_same(&one_kind, &below);
        are_same(&one_kind, &above);
    }
}

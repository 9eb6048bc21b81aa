//! The crashes of `crash_everywhere`, its findings and its reports.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::executor::block_on;
use workflow_core::RunStatus;
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_testkit::{
    Confirms, CrashEverywhere, CrashStore, Fault, FaultyStore, Mock, Scenario, Start, StoreCall,
    crash_everywhere,
};

use crate::support::{Answer, Fact, Research, question};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin(pub(crate) u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Item(pub(crate) u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Done(pub(crate) u32);

/// The failure of the crashes.
pub(crate) async fn failure<W, F>(crashes: CrashEverywhere<W, F>) -> String
where
    W: Workflow,
    F: Fn(CrashStore) -> Start<W> + Send + 'static,
{
    let panic = std::panic::AssertUnwindSafe(crashes.into_future()).catch_unwind().await;
    *panic.expect_err("it survives").downcast::<String>().expect("a panic in words")
}

fn research(store: CrashStore) -> Start<Research> {
    Scenario::new(Research).engine(|engine| engine.store(store)).start(question())
}

#[test]
fn a_workflow_that_survives_says_how_often_and_needs_no_runtime() {
    let survived = block_on(crash_everywhere(research).into_future());
    // Three writes, or four where two simultaneous completions have a write each.
    assert_eq!((survived.appends(), survived.once(), survived.twice()), (7, 14, 35));
    assert_eq!(survived.to_string(), "survived 14 crashes at 7 appends, and 35 pairs of crashes");
    let at_once = crash_everywhere(research).confirming([Confirms::AtOnce]);
    let survived = block_on(at_once.into_future());
    assert_eq!(survived.to_string(), "survived 6 crashes at 3 appends, and 13 pairs of crashes");
}

#[tokio::test]
async fn at_most_the_given_number_of_pairs_is_tried() {
    let survived = crash_everywhere(research).pairs(3).await;
    assert_eq!((survived.once(), survived.twice()), (14, 3));
    assert_eq!(crash_everywhere(research).pairs(0).await.twice(), 0);
}

/// Counts its executions in a field, which a restart loses.
#[derive(Default)]
struct Forgets {
    seen: AtomicU32,
}

#[workflow]
impl Forgets {
    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        self.seen.fetch_add(1, Ordering::Relaxed);
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0 + self.seen.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn state_of_the_process_is_found_with_the_place_of_the_crash() {
    let said = failure(crash_everywhere(|store| {
        Scenario::new(Forgets::default()).engine(|engine| engine.store(store)).start(Begin(7))
    }))
    .await;
    expect_test::expect![[r#"
        the run does not survive a crash: resumed,
        it comes to something else:
          it is completed with Done 7
          instead of completed with Done 8
          in the log Done 7: 1 instead of 0
          in the log Done 8: 0 instead of 1

        the store went down at append 2, whose batch was stored but not confirmed, of 3 in all

        the journal at the crash:
          {"run_started":{"at":{"nanos_since_epoch":0,"secs_since_epoch":946684800},"awaited":false,"format":1,"metadata":{},"private_thread":false,"table":{"fingerprint":"d93bc10e658ec9bb","shape":{"events":[{"name":"Item"},{"name":"Begin","roles":["start"]},{"name":"Done","roles":["stop"]}],"steps":[{"input…
          {"event_logged":{"at":{"nanos_since_epoch":0,"secs_since_epoch":946684800},"cause":"outside","event":{"data":7,"type":"Begin"},"scope":0,"seq":1}}
          {"execution_succeeded":{"at":{"nanos_since_epoch":0,"secs_since_epoch":946684800},"execution":1,"scope":0,"step":"make","trigger":1}}
          {"event_logged":{"at":{"nanos_since_epoch":0,"secs_since_epoch":946684800},"cause":{"execution":1},"event":{"data":7,"type":"Item"},"scope":0,"seq":2}}

        without a crash the run did this:
        #1 Begin from outside: 7
        x1 make by #1: succeeded
        #2 Item of x1: 7
        x2 end by #2: succeeded
        #3 Done of x2: 8
        completed with #3

        resumed it did this:
        x2 end: succeeded
        #3 Done of x2: 7
        completed with #3
    "#]].assert_eq(&said);
}

/// Its precondition depends on the history of this process.
#[derive(Default)]
struct Wavers {
    made: AtomicBool,
}

#[workflow]
impl Wavers {
    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        self.made.store(true, Ordering::Relaxed);
        Item(begin.0)
    }

    #[step(precondition = is_made)]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }

    #[precondition]
    fn is_made(&self, _item: &Item) -> bool {
        self.made.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_precondition_that_depends_on_the_process_is_found() {
    let wavers =
        |store| Scenario::new(Wavers::default()).engine(|engine| engine.store(store)).start(Begin(3));
    let said = failure(crash_everywhere(wavers)).await;
    assert!(said.contains("it comes to something else:\n  it is stalled with"), "{said}");
    assert!(said.contains("instead of completed with Done 3"), "{said}");
    assert!(
        said.contains("the store went down at append 2, whose batch was stored but not confirmed"),
        "{said}"
    );
}

#[tokio::test]
async fn an_assertion_that_does_not_hold_for_a_resumed_run_is_found() {
    let crashes = crash_everywhere(research);
    let said = failure(crashes.assert(|run| run.elapsed() == Duration::from_hours(2))).await;
    assert!(
        said.starts_with("the run does not survive a crash: resumed,\nthe assertion is false\n"),
        "{said}"
    );
    assert!(said.contains("the store went down at append 2, whose batch was lost, of 3 in all"), "{said}");

    let never = crash_everywhere(research).assert(|run| run.executions("answer") == 2);
    assert_eq!(failure(never).await, "without a crash: the assertion is false");
}

#[tokio::test]
async fn every_resumed_run_is_asserted_on() {
    let survived = crash_everywhere(research)
        .assert(|run| {
            run.assert_output(&Answer("why, 3 points".into()));
            run.assert_executions("answer", 1);
        })
        .assert(|run| run.status() == RunStatus::Completed);
    assert!(survived.await.twice() > 0);
}

/// The first of two steps depends on its start time.
struct Hurries;

#[workflow]
impl Hurries {
    #[step]
    async fn slow(&self, begin: &Begin) -> Item {
        tokio::time::sleep(Duration::from_secs(3)).await;
        Item(begin.0)
    }

    #[step]
    async fn quick(&self, _begin: &Begin) -> Timer<Hint> {
        Timer::after(Duration::from_secs(4), Hint)
    }

    #[step(reruns)]
    async fn end(&self, item: &Item, hint: Option<&Hint>) -> Done {
        let _ = hint;
        Done(item.0)
    }

    #[step]
    async fn notice(&self, _nudge: &Nudge) {}
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Hint;

#[tokio::test]
async fn what_depends_on_times_is_compared_by_its_outcome() {
    let hurries = |store| {
        let scenario = Scenario::new(Hurries).engine(|engine| engine.store(store));
        scenario.send_after(Duration::from_secs(2), Nudge).start(Begin(7))
    };
    let said = failure(crash_everywhere(hurries)).await;
    assert!(said.contains("in the log Hint null: 1 instead of 0"), "{said}");
    assert!(crash_everywhere(hurries).comparing_outcomes().await.once() > 0);
}

/// Appends in the middle of the wait.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Nudge;

#[tokio::test]
async fn a_scenario_without_the_store_and_one_with_a_mock_are_refused() {
    let forgets_it = failure(crash_everywhere(|_| Scenario::new(Research).start(question()))).await;
    assert_eq!(
        forgets_it,
        "the scenario keeps no journal in the store that it was given: add `.engine(|engine| engine.store(store))`"
    );
    let mocks = failure(crash_everywhere(|store| {
        let scenario = Scenario::new(Research).engine(|engine| engine.store(store));
        scenario.mock("outline", Mock::pair().0).start(question())
    }))
    .await;
    assert_eq!(mocks, "`outline` is mocked: a test cannot answer by hand in every process; use `replace`");
}

#[tokio::test]
async fn the_scenarios_own_panic_is_reported() {
    let said =
        failure(crash_everywhere(|_| -> Start<Research> { panic!("{}", String::from("no scenario")) })).await;
    assert_eq!(said, "no scenario");
}

/// Takes notes in order.
struct Takes;

#[workflow]
impl Takes {
    #[step]
    async fn take(&self, begin: &Begin, note: &Note) -> Item {
        Item(10 * begin.0 + note.0)
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 4>) -> Done {
        Done(items.iter().fold(0, |all, item| 10 * all + item.0))
    }
}

#[tokio::test]
async fn what_the_journal_has_is_not_sent_again() {
    let takes = |store| {
        Scenario::new(Takes)
            .engine(|engine| engine.store(store))
            .send(Note(1))
            .send(Note(1))
            .send_after(Duration::from_mins(1), Note(2))
            .send_after(Duration::from_secs(30), Note(3))
            .start(Begin(0))
    };
    let survived = crash_everywhere(takes).assert(|run| {
        run.assert_output(&Done(1_132));
        run.elapsed() == Duration::from_mins(1)
    });
    assert!(survived.await.appends() > 5);
}

#[tokio::test]
async fn stand_ins_stand_in_in_each_process() {
    let replaced = |store| {
        let scenario = Scenario::new(Research).engine(|engine| engine.store(store));
        scenario.replace("answer", |fact: &Fact| Answer(fact.0.to_uppercase())).start(question())
    };
    let survived = crash_everywhere(replaced).assert(|run| run.assert_output(&Answer("WHY".into())));
    assert!(survived.await.once() > 0);
}

workflow_testkit::event_store_conformance!(CrashStore::default);

#[tokio::test]
async fn a_store_of_ones_own_is_resumed_from() {
    let opened = std::sync::Arc::new(AtomicU32::new(0));
    let counted = std::sync::Arc::clone(&opened);
    let survived = crash_everywhere(research)
        .on(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            MemoryStore::default()
        })
        .await;
    assert_eq!(survived.to_string(), "survived 14 crashes at 7 appends, and 35 pairs of crashes");
    // Of the five ways of confirming, two are for several runs.
    assert_eq!(opened.load(Ordering::Relaxed), 3 + 14 + 35);
}

#[tokio::test]
async fn a_store_that_keeps_less_than_it_was_given_is_found() {
    let tears = |append| {
        move || FaultyStore::new(MemoryStore::default()).fail(StoreCall::Append, append, Fault::Torn(1))
    };
    let said = failure(crash_everywhere(research).on(tears(2))).await;
    assert!(said.contains("the store has not what it was given:\n  of `"), "{said}");
    // Only the resumed runs get this far.
    let said = failure(crash_everywhere(research).on(tears(4)).confirming([Confirms::AtOnce])).await;
    assert!(said.contains("the run does not survive a crash"), "{said}");
    assert!(said.contains("its store has not what it was given"), "{said}");
}

#[tokio::test]
async fn a_store_that_answers_late_takes_no_virtual_time() {
    let late = || FaultyStore::seeded(MemoryStore::default(), 3).one_in(2).among([Fault::Late(50)]);
    let survived = crash_everywhere(research).on(late).pairs(5).assert(|run| {
        // Its own steps: an hour each, concurrently, and another hour.
        run.status() == RunStatus::Completed
    });
    assert_eq!(survived.await.once(), 14);
}

//! Run-time workflows survive a crash at every append, and as many as the typed workflows of which they are translations (S38,
//! S39, S57).

use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::Workflow as _;
use workflow_testkit::{CrashStore, Scenario, crash_everywhere};

use super::shapes::{Delegates, Reads, Splits, Trees};
use crate::fixtures::Begin;
use crate::golden::workflows::{Calls, Cleans, Rings};
use crate::shapes::{Asks, Branches, Catches, Fails, Joins, Lists, Retries, Waits};
use crate::translated::translated;

/// Crashes each workflow and its translation everywhere, with the same script.
macro_rules! survive {
    ($($name:ident: $workflow:ident $([$($child:ident)*])?, $begin:expr
        $(, . $method:ident($($argument:expr),*))*;)*) => {
        $(
            // S38, S39, S57
            #[tokio::test]
            async fn $name() {
                let typed = |store: CrashStore| {
                    let scenario = Scenario::new($workflow) $($(.host($child))*)? $(.$method($($argument),*))*;
                    scenario.engine(|engine| engine.store(store)).start(Begin($begin))
                };
                let run_time = |store: CrashStore| {
                    let scenario = Scenario::runtime(translated(&$workflow::shape()))
                        $($(.host_runtime(translated(&$child::shape())))*)?
                        $(.$method($($argument),*))*;
                    scenario.engine(|engine| engine.store(store)).start_json("Begin", $begin)
                };
                let typed = crash_everywhere(typed).pairs(20).await;
                let run_time = crash_everywhere(run_time).pairs(20).await;
                assert_eq!(typed, run_time);
                assert!(run_time.appends() >= 2 && run_time.twice() >= 4, "{run_time}");
            }
        )*
    };
}

survive! {
    joins: Joins, 3;
    lists: Lists, 3;
    branches: Branches, 3;
    attempts: Retries, 3;
    caught: Catches, 3;
    failed: Fails, 3;
    timers: Waits, 3, .send_json("Note", 9);
    sent_at_a_time: Waits, 3, .send_json_after(Duration::from_secs(40), "Note", 9);
    family: Calls [Rings], 3, .send_json("Note", 9);
    cleaned_up: Cleans, 3, .cancel_after(Duration::from_secs(1), "not needed any more");
    passive_inputs: Reads, 2, .send_json("Note", 5);
    gathers_in_gathers: Trees, 2;
    caught_fan_outs: Splits, 4;
    children_by_name: Delegates [Joins], 3;
}

// S38, S39, S57
#[tokio::test]
async fn requests() {
    // The typed workflow has a precondition that waits, so its batches share other writes.
    let run_time = crash_everywhere(|store: CrashStore| {
        let more = |ask: &Value| json!(ask.as_u64().unwrap() + 1);
        let scenario = Scenario::runtime(translated(&Asks::shape())).reply_json("Ask", more);
        scenario.engine(|engine| engine.store(store)).start_json("Begin", 2)
    });
    let survived = run_time.assert(|run| run.outcome().unwrap() == &json!(2)).await;
    assert_eq!(survived.once(), 2 * survived.appends(), "{survived}");
}

// S38, S39, S57
#[tokio::test]
async fn children_of_the_other_kind_in_both_directions() {
    let below = crash_everywhere(|store: CrashStore| {
        let scenario = Scenario::new(Delegates).host_runtime(translated(&Joins::shape()));
        scenario.engine(|engine| engine.store(store)).start(Begin(3))
    });
    let above = crash_everywhere(|store: CrashStore| {
        let scenario = Scenario::runtime(translated(&Delegates::shape())).host(Joins);
        scenario.engine(|engine| engine.store(store)).start_json("Begin", 3)
    });
    let (below, above) = (below.pairs(20).await, above.pairs(20).await);
    assert_eq!(below, above);
    assert_eq!(below.once(), 2 * below.appends(), "{below}");
}

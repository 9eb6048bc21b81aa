//! In every explored order, a run-time workflow has the transcript, report, explanation and journals of the typed workflow of
//! which it is a translation, and both have the same orders (S57).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Value, json};
use workflow_core::Workflow;
use workflow_core::store::MemoryStore;
use workflow_testkit::{Outcome, Runtime, Scenario, ScenarioOf, Start, TestRun, Tested, explore};

use super::shapes::{Counts, Delegates, Reads, Splits, Trees};
use crate::fixtures::Begin;
use crate::golden::journals;
use crate::golden::workflows::{Calls, Cleans, Races, Rings, Wonders};
use crate::shapes::{Asks, Branches, Catches, Fails, Joins, Lists, Retries, Stalls, Waits};
use crate::translated::translated;

/// What an exploration has shown.
#[derive(Debug)]
pub(super) struct Shown {
    explored: String,
    outcomes: Vec<String>,
    /// The outcomes with what tells those apart that print alike. Injected parameters are in it.
    pub(super) distinct: Vec<Outcome>,
    /// The texts of each order.
    runs: Vec<[String; 4]>,
    pub(super) is_exhaustive: bool,
}

/// Explores every order of a scenario, each run with a store of its own.
fn shown<T: Tested>(start: impl Fn(Arc<MemoryStore>) -> Start<T>) -> Shown {
    let shown = shown_in(1_000, start);
    assert!(shown.is_exhaustive, "{}", shown.explored);
    shown
}

/// Explores orders of a scenario: at most this many, and as many at random if there are more.
pub(super) fn shown_in<T: Tested>(orders: u64, start: impl Fn(Arc<MemoryStore>) -> Start<T>) -> Shown {
    let (store, runs) = (RefCell::new(Arc::new(MemoryStore::default())), RefCell::new(Vec::new()));
    let stored = || {
        let new = store.replace(Arc::new(MemoryStore::default()));
        drop(new);
        start(Arc::clone(&store.borrow()))
    };
    let explored = explore(stored).orders(orders);
    let explored = explored.assert(|run| runs.borrow_mut().push(texts(run, &store.borrow())));
    Shown {
        explored: explored.to_string(),
        outcomes: explored.outcomes().map(Outcome::to_string).collect(),
        distinct: explored.outcomes().cloned().collect(),
        runs: runs.into_inner(),
        is_exhaustive: explored.is_exhaustive(),
    }
}

fn texts<T: Tested>(run: &TestRun<T>, store: &MemoryStore) -> [String; 4] {
    let mut report = serde_json::to_value(run.report()).unwrap();
    without_injected(&mut report);
    let explanation = run.explanation().unwrap().to_string();
    // A store in memory answers at once.
    let journals = journals(store).now_or_never().unwrap();
    let journals = journals.into_iter().map(|(run, lines)| format!("{run}:\n{lines}"));
    [run.transcript(), format!("{}\n{report:#}", run.report()), explanation, journals.collect()]
}

/// A run-time table has no injected parameters, which take nothing.
fn without_injected(report: &mut Value) {
    match report {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match member {
                    Value::Array(inputs) if name == "inputs" => {
                        inputs.retain(|input| *input != json!("nothing"));
                    }
                    _ => without_injected(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_injected),
        _ => {}
    }
}

/// Asserts that the runs of both are the same in every order; returns how many orders there are.
fn same<W: Workflow>(
    typed: impl Fn() -> ScenarioOf<W>,
    run_time: impl Fn() -> ScenarioOf<Runtime>,
    begin: u32,
) -> usize {
    let typed = shown(|store| typed().engine(|engine| engine.store(store)).start(Begin(begin)));
    let run_time = shown(|store| run_time().engine(|engine| engine.store(store)).start_json("Begin", begin));
    are_same(&typed, &run_time)
}

/// Asserts that both have shown the same; returns how many orders there are.
pub(super) fn are_same(typed: &Shown, run_time: &Shown) -> usize {
    assert_eq!(typed.explored, run_time.explored);
    for (typed, run_time) in typed.runs.iter().zip(&run_time.runs) {
        for (typed, run_time) in typed.iter().zip(run_time) {
            assert!(typed == run_time, "typed:\n{typed}\nat run time:\n{run_time}");
        }
    }
    assert_eq!(typed.outcomes, run_time.outcomes);
    assert_eq!(typed.runs.len(), run_time.runs.len());
    typed.runs.len()
}

/// Compares each workflow with its translation, with the same script.
macro_rules! same {
    ($($name:ident: $workflow:ident $([$($child:ident)*])?, $begin:expr, $least:expr
        $(, . $method:ident($($argument:expr),*))*;)*) => {
        $(
            // S57
            #[test]
            fn $name() {
                let orders = same(
                    || Scenario::new($workflow) $($(.host($child))*)? $(.$method($($argument),*))*,
                    || {
                        Scenario::runtime(translated(&$workflow::shape()))
                            $($(.host_runtime(translated(&$child::shape())))*)?
                            $(.$method($($argument),*))*
                    },
                    $begin,
                );
                assert!(orders >= $least, "{orders}");
            }
        )*
    };
}

const SOON: Duration = Duration::from_secs(1);

pub(super) fn more(ask: &Value) -> Value {
    json!(ask.as_u64().unwrap() + 1)
}

same! {
    joins: Joins, 3, 3;
    lists: Lists, 3, 15;
    branches: Branches, 3, 7;
    attempts: Retries, 3, 1;
    caught: Catches, 3, 1;
    failed: Fails, 3, 1;
    stalled: Stalls, 3, 1;
    requests: Asks, 2, 2, .reply_json("Ask", more);
    races: Races, 3, 232, .reply_json("Ask", more);
    timers: Waits, 3, 5, .send_json_after(SOON, "Note", 9);
    family: Calls [Rings], 3, 3, .send_json("Note", 9);
    cancelled: Waits, 3, 5, .cancel_after(SOON, "not needed any more");
    cleaned_up: Cleans, 3, 2, .cancel_after(SOON, "not needed any more");
    wonders: Wonders, 3, 1;
    passive_inputs: Reads, 2, 10, .send_json_after(SOON, "Note", 5);
    gathers_in_gathers: Trees, 2, 70;
    caught_fan_outs: Splits, 3, 6;
    numbers: Counts, 3, 5;
    children_by_name: Delegates [Joins], 3, 3;
    failing_first: Joins, 3, 7, .fail_first("first", 1, || workflow_core::StepError::transient("busy"));
}

// S57
#[test]
fn children_of_the_other_kind_in_both_directions() {
    let joins = || translated(&Joins::shape());
    let delegates = || Scenario::runtime(translated(&Delegates::shape()));
    let one_kind = shown(|store| {
        Scenario::new(Delegates).host(Joins).engine(|engine| engine.store(store)).start(Begin(3))
    });
    let below = shown(|store| {
        let scenario = Scenario::new(Delegates).host_runtime(joins());
        scenario.engine(|engine| engine.store(store)).start(Begin(3))
    });
    let above = shown(|store| {
        let scenario = delegates().host_named("Joins", Joins);
        scenario.engine(|engine| engine.store(store)).start_json("Begin", 3)
    });
    are_same(&one_kind, &below);
    are_same(&one_kind, &above);
}

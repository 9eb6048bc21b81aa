//! Named limits of attempts over all runs of an engine (S70).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_core::errors::BuildProblem;
use workflow_core::prelude::*;
use workflow_core::report::WaitsFor;
use workflow_core::{
    EngineBuilder, ErrorClass, Limit, Retries, RetryPolicy, RunHandle, RunOptions, RunStatus,
};
use workflow_testkit::{Scenario, VirtualClock};

use crate::fixtures::{Alpha, Begin, Close, Done, Gate, Item, Part, Seen, everyone_else};

mod clean_up;
mod ends;
mod keys;
mod preferred;
mod steps;

const SECOND: Duration = Duration::from_secs(1);

/// Pays at the bank: notes the beginning and waits at the gate.
#[derive(Clone)]
struct Pays {
    seen: Seen,
    gate: Gate,
}

impl Pays {
    fn new() -> Self {
        Self { seen: Seen::default(), gate: Gate::closed() }
    }
}

#[workflow]
impl Pays {
    #[step(limit = "bank")]
    async fn pay(&self, begin: &Begin, info: &RunInfo) -> Done {
        self.seen.note(info.run().to_string());
        self.gate.pass().await;
        Done(begin.0)
    }
}

async fn start<W: Workflow>(engine: &Engine, run: &str, begin: u32) -> RunHandle<W> {
    let run = engine.start_with::<W>(Begin(begin), RunOptions::new().id(run)).await.unwrap();
    everyone_else().await;
    run
}

async fn ends<W: Workflow<Output = Done>>(runs: impl IntoIterator<Item = RunHandle<W>>) {
    for run in runs {
        run.outcome().await.unwrap();
    }
}

// S70
#[tokio::test]
async fn attempts_of_all_runs_begin_in_order_of_arrival() {
    let pays = Pays::new();
    let engine =
        Engine::builder().workflow(pays.clone()).limit("bank", Limit::concurrent(2)).build().unwrap();
    let mut runs = Vec::new();
    for run in ["a", "b", "c", "d", "e"] {
        runs.push(start::<Pays>(&engine, run, 0).await);
    }
    for begun in 2..5 {
        assert_eq!(pays.seen.lines(), ["a", "b", "c", "d", "e"][..begun]);
        pays.gate.let_pass(1);
        everyone_else().await;
    }
    pays.gate.let_pass(2);
    ends(runs).await;
    assert_eq!(pays.seen.lines().len(), 5);
}

/// Pays too, in a workflow of its own.
struct Refunds(Pays);

#[workflow]
impl Refunds {
    #[step(limit = "bank")]
    async fn refund(&self, begin: &Begin) -> Done {
        self.0.seen.note("refund");
        self.0.gate.pass().await;
        Done(begin.0)
    }
}

// S70
#[tokio::test]
async fn workflows_of_one_engine_share_a_limit() {
    let pays = Pays::new();
    let engine = Engine::builder().workflow(pays.clone()).workflow(Refunds(pays.clone()));
    let engine = engine.limit("bank", Limit::concurrent(1)).build().unwrap();
    let paid = start::<Pays>(&engine, "a", 0).await;
    let refunded = start::<Refunds>(&engine, "b", 0).await;
    assert_eq!(pays.seen.lines(), ["a"]);
    pays.gate.let_pass(2);
    ends([paid]).await;
    ends([refunded]).await;
    assert_eq!(pays.seen.lines(), ["a", "refund"]);
}

/// Calls an API at once for each item, and notes when.
struct Calls(Arc<Mutex<Vec<u64>>>, tokio::time::Instant);

#[workflow]
impl Calls {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(limit = "api")]
    async fn call(&self, item: &Item) -> Part {
        self.0.lock().unwrap().push(u64::try_from(self.1.elapsed().as_millis()).unwrap());
        Part(item.0)
    }

    #[step]
    async fn end(&self, _: &Begin, _: FixedList<Part, 7>) -> Done {
        Done(7)
    }
}

// S70
#[tokio::test(start_paused = true)]
async fn a_rate_is_a_bucket_that_is_full_when_the_engine_starts() {
    let times = Arc::<Mutex<Vec<u64>>>::default();
    let calls = Calls(Arc::clone(&times), tokio::time::Instant::now());
    let engine = Engine::builder().workflow(calls).clock(VirtualClock::new());
    let engine = engine.limit("api", Limit::at_rate(2, SECOND)).build().unwrap();
    let run = engine.start::<Calls>(Begin(7)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    assert_eq!(*times.lock().unwrap(), [0, 0, 500, 1_000, 1_500, 2_000, 2_500]);
}

// S70
#[tokio::test(start_paused = true)]
async fn a_rate_holds_over_all_runs_of_the_engine() {
    let times = Arc::<Mutex<Vec<u64>>>::default();
    let calls = Calls(Arc::clone(&times), tokio::time::Instant::now());
    let engine = Engine::builder().workflow(calls).clock(VirtualClock::new());
    let engine = engine.limit("api", Limit::concurrent(3).rate(1, SECOND)).build().unwrap();
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(engine.start::<Calls>(Begin(7)).await.unwrap());
    }
    ends(runs).await;
    let all: Vec<u64> = (0..21).map(|second| second * 1_000).collect();
    assert_eq!(*times.lock().unwrap(), all);
}

#[tokio::test]
async fn a_limit_that_is_not_set_does_not_build() {
    let builder = || Engine::builder().workflow(Pays::new());
    let error = builder().limit("post", Limit::concurrent(1)).limit("api", Limit::concurrent(1)).build();
    let error = error.unwrap_err();
    let [BuildProblem::UnknownLimit { workflow, step, limit, known }] = &error.problems[..] else {
        panic!("{error}")
    };
    assert_eq!((&**workflow, &**step, &**limit), ("Pays", "pay", "bank"));
    assert_eq!(known[..], ["api", "post"]);
    assert_eq!(
        error.problems[0].to_string(),
        "step `pay` of workflow `Pays` has the limit `bank`, which is not set: set it with `.limit(\"bank\", …)`; \
         `api` and `post` are set"
    );
    let none = builder().build().unwrap_err().to_string();
    assert!(none.ends_with("no limit is set"), "{none}");
}

// S70
#[tokio::test]
async fn an_attempt_that_waits_has_not_begun_and_says_for_what() {
    let pays = Pays::new();
    let engine =
        Engine::builder().workflow(pays.clone()).limit("bank", Limit::concurrent(1)).build().unwrap();
    let [a, b, c] = [
        start::<Pays>(&engine, "a", 0).await,
        start::<Pays>(&engine, "b", 0).await,
        start::<Pays>(&engine, "c", 0).await,
    ];
    let report = c.report_so_far().await.unwrap();
    assert_eq!((report.executions("pay"), report.trace.len()), (0, 0));
    let WaitsFor::Limit { name, key, limit, held_by, before, .. } = &report.waiting[0].waits_for else {
        panic!("{report}")
    };
    assert_eq!((&**name, key, *limit, *before), ("bank", &None, Limit::concurrent(1), 1));
    assert_eq!((&held_by[0].run, held_by.len()), (a.id(), 1));
    let text = "the limit `bank` admits 1 attempt at a time (`limit`): x1 of `a` runs, and 1 before it";
    for said in [report.to_string(), c.explain().await.unwrap().to_string()] {
        assert!(said.contains(text), "{said}");
    }
    assert_eq!(c.status(), RunStatus::Running);
    pays.gate.let_pass(3);
    ends([a, b, c]).await;
}

//! Runs nested 10,000 deep need no deep stack: reports, ends, resumes and drops iterate over the runs (S31, S39).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Builder;
use workflow_core::prelude::*;
use workflow_core::report::{ChildReport, RunReport};
use workflow_core::store::MemoryStore;
use workflow_core::{EngineBuilder, RunOptions, RunStatus};

use crate::fixtures::{Begin, Done, Note, until};

/// The depth of nested runs.
const DEPTH: u32 = 10_000;

/// The stack size of a thread.
const STACK: usize = 2 << 20;

/// The depth of resumed runs, on a stack that is smaller in proportion: their ids are long, and journals are found by
/// id.
const RESUMED: (u32, usize) = (2_000, STACK / 5);

/// Nests to the given depth, and displays the depth.
struct S;

#[workflow]
impl S {
    #[step]
    async fn s(&self, begin: &Begin, children: &Children) -> Result<Option<Done>, RunError> {
        match begin.0 {
            0 => Ok(None),
            depth => Ok(Some(Done(children.run::<Self>(Begin(depth - 1)).await?.0 + 1))),
        }
    }

    #[step]
    async fn n(&self, _note: &Note, _begin: &Begin) -> Done {
        Done(0)
    }
}

/// Runs the work on a thread with this stack size, including all polls and drops.
fn on_a_stack_of(bytes: usize, work: impl AsyncFnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(bytes).spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work());
        drop(runtime);
    });
    thread.unwrap().join().unwrap();
}

fn on_a_small_stack(work: impl AsyncFnOnce() + Send + 'static) {
    on_a_stack_of(STACK, work);
}

fn builder() -> EngineBuilder {
    Engine::builder().workflow(S).max_child_depth(DEPTH)
}

async fn start(engine: &Engine, depth: u32) -> workflow_core::RunHandle<S> {
    engine.start_with::<S>(Begin(depth), RunOptions::new().id("r")).await.unwrap()
}

/// Waits until all runs exist, and replies to the lowest.
async fn lowest(engine: &Engine, depth: u32) -> workflow_core::RunHandle<S> {
    until(async || engine.running().len() == depth as usize + 1).await;
    let ids = engine.running();
    let id = ids.iter().max_by_key(|id| id.as_str().len()).unwrap().clone();
    engine.attach::<S>(id).await.unwrap()
}

fn depth_of(report: &Arc<RunReport>) -> u32 {
    let below = |report: &Arc<RunReport>| {
        let [ChildReport { report: Some(below), .. }] = &*report.children else { return None };
        Some(Arc::clone(below))
    };
    let levels = std::iter::successors(Some(Arc::clone(report)), below);
    u32::try_from(levels.count() - 1).unwrap()
}

#[test]
fn reports_of_runs_that_nest_deeply_are_made_and_dropped() {
    on_a_small_stack(async || {
        let engine = builder().build().unwrap();
        let run = start(&engine, DEPTH).await;
        lowest(&engine, DEPTH).await.send(Note(0)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(DEPTH));
        let explanation = run.explain().await.unwrap();
        let report = run.report().await.unwrap();
        assert_eq!(depth_of(&report), DEPTH);
        drop((run, explanation, engine));
        drop(report);
    });
}

/// How many reports of children are within each other in this JSON, and whether a further one is left out.
fn levels(mut report: &Value) -> (usize, bool) {
    let mut levels = 0;
    while let Some(child) = report.pointer("/children/0") {
        let Some(below) = child.get("report") else {
            return (levels, child["report_left_out"] == true && child["status"] == "completed");
        };
        report = below;
        levels += 1;
    }
    (levels, false)
}

#[test]
fn reports_of_runs_that_nest_deeply_are_printed_and_serialised_to_a_certain_depth() {
    for (depth, expected) in [(3, (3, false)), (32, (32, false)), (33, (32, true)), (1_000, (32, true))] {
        on_a_small_stack(async move || {
            let engine = builder().build().unwrap();
            let run = start(&engine, depth).await;
            lowest(&engine, depth).await.send(Note(0)).await.unwrap();
            run.outcome().await.unwrap();
            let report = run.report().await.unwrap();
            // A reader that takes 127 levels of JSON takes it.
            let json = serde_json::to_string(&*report).unwrap();
            assert_eq!(levels(&serde_json::from_str(&json).unwrap()), expected);
            assert_eq!(levels(&serde_json::to_value(&*report).unwrap()), expected);
            let (levels, is_cut) = expected;
            let text = report.to_string();
            assert_eq!(text.matches("ran a child:").count(), levels, "{text}");
            assert_eq!(text.contains("completed (its report is left out here)\n"), is_cut, "{text}");
            for debug in [format!("{report:?}"), format!("{report:#?}")] {
                assert_eq!(debug.matches("RunReport {").count(), levels + 1);
                assert_eq!(debug.contains("\"left out\""), is_cut);
            }
            assert_eq!(report.to_string(), text);
        });
    }
}

#[test]
fn runs_that_nest_deeply_are_cancelled_and_dropped() {
    on_a_small_stack(async || {
        let engine = builder().build().unwrap();
        let run = start(&engine, DEPTH).await;
        let lowest = lowest(&engine, DEPTH).await;
        run.cancel("enough").await.unwrap();
        assert_eq!((run.status(), lowest.status()), (RunStatus::Cancelled, RunStatus::Cancelled));
        drop(run);
        // The last reference to those above it.
        drop((engine, lowest));
    });
}

#[test]
fn runs_that_nest_deeply_are_dropped_with_their_runtime() {
    on_a_small_stack(async || {
        let engine = builder().build().unwrap();
        drop(start(&engine, DEPTH).await);
        drop(lowest(&engine, DEPTH).await);
    });
}

// S39
#[test]
fn runs_that_nest_deeply_are_resumed() {
    let (depth, stack) = RESUMED;
    on_a_stack_of(stack, async move || {
        let store = Arc::new(MemoryStore::default());
        let builder = || builder().store(Arc::clone(&store)).unload_waiting_after(Duration::MAX);
        let one = builder().build().unwrap();
        drop(start(&one, depth).await);
        drop(lowest(&one, depth).await);
        one.shut_down(Duration::from_mins(1)).await;
        drop(one);
        let other = builder().build().unwrap();
        let resumed = other.resume_open_runs().await.unwrap();
        assert_eq!(resumed.runs, ["r".into()]);
        let run = other.attach::<S>("r").await.unwrap();
        lowest(&other, depth).await.send(Note(0)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(depth));
        assert_eq!(depth_of(&run.report().await.unwrap()), depth);
        // Each run is the child of the one before.
        assert!(other.remove_run(run.id()).await.unwrap());
    });
}

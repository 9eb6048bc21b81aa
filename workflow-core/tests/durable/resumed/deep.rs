//! Runs nested 10,000 deep need no deep stack: reports, ends, resumes and drops iterate over the runs (S31, S39).

use std::sync::Arc;
use std::time::Duration;

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

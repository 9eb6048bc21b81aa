//! Allocations, counted by a global allocator (S16, S48).

use std::sync::Mutex;

use allocation_counter::AllocationInfo;
use workflow_core::prelude::*;
use workflow_core::{Engine, RunStatus};

use crate::fixtures::{Alpha, Begin, Close, Done, Item};

struct Bound(Mutex<Vec<usize>>);

#[workflow]
impl Bound {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(precondition = is_late)]
    async fn bind(&self, all: List<Item>, alpha: Option<&Alpha>) {
        assert!(alpha.is_some());
        self.0.lock().unwrap().push(all.len());
    }

    #[precondition]
    fn is_late(alpha: Option<&Alpha>) -> bool {
        alpha.is_some()
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

/// The minimum number of allocations of one more execution, without those in which a buffer grew.
fn allocations_per_execution(length: u32) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let run = runtime.block_on(async {
        let engine = Engine::builder().replay_check(false).workflow(Bound(Mutex::default())).build().unwrap();
        let run = engine.start::<Bound>(Begin(length)).await.unwrap();
        run.settled().await;
        run
    });
    let execute = |number| {
        let execution = async {
            run.send(Alpha(number)).await.unwrap();
            run.settled().await;
        };
        let AllocationInfo { count_total, .. } = allocation_counter::measure(|| runtime.block_on(execution));
        count_total
    };
    let fewest = (0..16).map(execute).min().unwrap();
    assert!(fewest > 0, "the allocator counts");
    let report = runtime.block_on(async {
        run.cancel("the test has seen enough").await.unwrap();
        run.report().await.unwrap()
    });
    assert_eq!(report.executions("bind"), 16);
    fewest
}

/// The bytes of each waiting run among this many, handle included.
fn bytes_of_waiting_runs(length: u32) -> u64 {
    const RUNS: u64 = 256;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let engine = Engine::builder().replay_check(false).workflow(Bound(Mutex::default())).build().unwrap();
    let wait = |runs: u64| {
        runtime.block_on(async {
            let mut waiting = Vec::new();
            for _ in 0..runs {
                let run = engine.start::<Bound>(Begin(length)).await.unwrap();
                assert_eq!(run.settled().await, RunStatus::Waiting);
                waiting.push(run);
            }
            waiting
        })
    };
    // One-time allocations do not count, nor does the growth of the engine's list of runs.
    let mut runs = wait(RUNS);
    let AllocationInfo { bytes_current, .. } = allocation_counter::measure(|| runs.extend(wait(RUNS)));
    for run in runs {
        runtime.block_on(run.cancel("the test has seen enough")).unwrap();
        assert_eq!(runtime.block_on(run.report()).unwrap().executions("make"), 1);
    }
    u64::try_from(bytes_current).unwrap() / RUNS
}

#[test]
fn a_run_that_waits_takes_less_than_two_kibibytes() {
    let bytes = bytes_of_waiting_runs(0);
    assert!(bytes < 2_048, "{bytes}");
}

// S16
#[test]
fn binding_a_list_of_a_hundred_thousand_costs_as_many_allocations_as_one_of_ten() {
    assert_eq!(allocations_per_execution(100_000), allocations_per_execution(10));
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Stage(u32);

#[derive(Debug, Clone, EventSet)]
enum Next {
    Stage(Stage),
    Done(Done),
}

/// A loop with a fan-out in each iteration.
struct Stages(u32);

#[workflow]
impl Stages {
    #[step]
    async fn begin(&self, _begin: &Begin) -> Stage {
        Stage(1)
    }

    #[step]
    async fn plan(&self, stage: &Stage) -> FanOut<Item> {
        [Item(stage.0), Item(0)].into_iter().collect()
    }

    #[step(loops)]
    async fn stage_done(&self, stage: &Stage, items: &Gather<Item>) -> Next {
        assert_eq!(items.ok().next().map(|item| item.0), Some(stage.0));
        if stage.0 == self.0 { Next::Done(Done(stage.0)) } else { Next::Stage(Stage(stage.0 + 1)) }
    }
}

/// The bytes that a run of this many iterations holds at its end, per iteration.
fn bytes_per_iteration(iterations: u32) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let engine = Engine::builder().replay_check(false).workflow(Stages(iterations)).build().unwrap();
    let mut ended = None;
    let AllocationInfo { bytes_max, .. } = allocation_counter::measure(|| {
        ended = Some(runtime.block_on(async {
            let run = engine.start::<Stages>(Begin(0)).await.unwrap();
            run.outcome().await.unwrap();
            run
        }));
    });
    assert_eq!(
        runtime.block_on(ended.unwrap().report()).unwrap().executions("stage_done"),
        u64::from(iterations)
    );
    f64::from(u32::try_from(bytes_max).unwrap()) / f64::from(iterations)
}

// S48
#[test]
fn each_iteration_of_a_loop_with_a_fan_out_takes_the_same_memory() {
    // An eighth, so that buffers that double are as full.
    let (few, many) = (bytes_per_iteration(1_250), bytes_per_iteration(10_000));
    assert!(many < 1.1 * few, "{few} bytes for each of 1,250 iterations, {many} for each of 10,000");
}

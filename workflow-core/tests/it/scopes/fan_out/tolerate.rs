//! Fan-outs that tolerate failed branches (S74).

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use workflow_core::errors::FanOutError;
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, ExecutionTrace, Quality};
use workflow_core::signature::{Roles, StepCall};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef, TableBuilder};
use workflow_core::{ErrorClass, FanOutPolicy, RunOptions, RuntimeWorkflow, StepFailed};
use workflow_testkit::{Scenario, ScenarioOf, explore};

use super::{Told, told};
use crate::fixtures::{Begin, Done, Item, Part};

/// How many may fail.
#[derive(Debug, Clone, Copy)]
enum Tolerated {
    Number(u32),
    Percent(f64),
}

/// Imports rows: item n takes n seconds, and fails if it is one of these.
#[derive(Debug, Clone)]
struct Imports {
    policy: FanOutPolicy,
    tolerated: Tolerated,
    until: Option<u32>,
    failing: Vec<u32>,
}

#[workflow]
impl Imports {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (0..begin.0).map(Item).collect();
        let items = match self.tolerated {
            Tolerated::Number(failures) => items.tolerate(failures),
            Tolerated::Percent(percent) => items.tolerate_percent(percent),
        };
        let items = if let Some(enough) = self.until { items.until(enough) } else { items };
        match self.policy {
            FanOutPolicy::ContinueOthers => items.continue_others(),
            FanOutPolicy::WaitAll => items.wait_all(),
            _ => items.fail_all(),
        }
    }

    #[step]
    async fn store(&self, item: &Item) -> Result<Part, StepError> {
        sleep(Duration::from_secs(u64::from(item.0))).await;
        if self.failing.contains(&item.0) { Err(StepError::permanent("bad row")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Told {
        told(parts.branches().map(|branch| match (branch.event(), branch.failure()) {
            _ if branch.is_dropped() => "dropped".to_owned(),
            (_, Some(_)) => "failed".to_owned(),
            (Some(part), None) => part.0.to_string(),
            (None, None) => "nothing".to_owned(),
        }))
    }
}

fn imports(policy: FanOutPolicy, tolerated: Tolerated, failing: &[u32]) -> ScenarioOf<Imports> {
    Scenario::new(Imports { policy, tolerated, until: None, failing: failing.into() })
}

fn items_of(outcome: Result<&Told, &RunError>) -> Vec<u64> {
    match outcome {
        Err(RunError::BranchesFailed { failures }) => {
            failures.iter().filter_map(|failure| Some(failure.item()?.seq.0)).collect()
        }
        Err(RunError::StepFailed { item, .. }) => item.iter().map(|item| item.seq.0).collect(),
        other => panic!("it should have failed: {other:?}"),
    }
}

// S34, S49, S74
#[tokio::test(start_paused = true)]
async fn as_many_failures_as_are_tolerated_are_in_the_gather_and_degrade_the_run() {
    for policy in [FanOutPolicy::FailAll, FanOutPolicy::WaitAll, FanOutPolicy::ContinueOthers] {
        let run = imports(policy, Tolerated::Number(2), &[0, 2]).start(Begin(4)).await;
        run.assert_output(&told(["failed", "1", "failed", "3"]));
        run.assert_quality(Quality::Degraded);
        let run = imports(policy, Tolerated::Number(2), &[]).start(Begin(2)).await;
        run.assert_quality(Quality::Clean);
    }
}

// S49, S74
#[tokio::test(start_paused = true)]
async fn one_failure_more_is_treated_by_the_policy_over_all_failures() {
    let run = imports(FanOutPolicy::FailAll, Tolerated::Number(1), &[0, 2, 3]).start(Begin(9)).await;
    assert_eq!(items_of(run.outcome()), [2, 4]);
    let dropped = |trace: &&ExecutionTrace| matches!(trace.outcome, ExecutionOutcome::Dropped);
    assert_eq!(run.report().trace.iter().filter(dropped).count(), 6, "nothing waits for the others");

    let run = imports(FanOutPolicy::WaitAll, Tolerated::Number(1), &[0, 2, 3]).start(Begin(5)).await;
    assert_eq!(items_of(run.outcome()), [2, 4, 5]);

    let run = imports(FanOutPolicy::ContinueOthers, Tolerated::Number(1), &[0, 2, 3]).start(Begin(5)).await;
    run.assert_output(&told(["failed", "1", "failed", "failed", "4"]));
}

// S74
#[tokio::test(start_paused = true)]
async fn a_share_counts_of_the_items_and_is_rounded_down() {
    let of = |percent, failing: &[u32]| imports(FanOutPolicy::FailAll, Tolerated::Percent(percent), failing);
    let run = of(50.0, &[0, 1]).start(Begin(5)).await;
    run.assert_output(&told(["failed", "failed", "2", "3", "4"]));
    assert_eq!(items_of(of(50.0, &[0, 1, 2]).start(Begin(5)).await.outcome()), [2, 3, 4]);
    assert_eq!(items_of(of(19.9, &[3]).start(Begin(5)).await.outcome()), [5]);
    of(100.0, &[0, 1]).start(Begin(2)).await.assert_output(&told(["failed", "failed"]));
    of(100.0, &[]).start(Begin(0)).await.assert_output(&Told(vec![]));
}

// S74
#[tokio::test(start_paused = true)]
async fn a_share_that_is_no_percentage_fails_the_execution_that_opens_the_fan_out() {
    for percent in [-1.0, 100.5, f64::NAN, f64::INFINITY] {
        for policy in [FanOutPolicy::FailAll, FanOutPolicy::ContinueOthers] {
            let run = imports(policy, Tolerated::Percent(percent), &[]).start(Begin(2)).await;
            let Err(RunError::StepFailed { step, class: ErrorClass::Permanent, source, .. }) = run.outcome()
            else {
                panic!("{}", run.transcript())
            };
            assert_eq!(&**step, "split");
            assert!(matches!(source.downcast_ref(), Some(FanOutError::Percent { .. })), "{source:?}");
            run.assert_executions("store", 0);
        }
    }
}

// S50, S74
#[tokio::test(start_paused = true)]
async fn beside_enough_branches_the_number_counts_once_too_few_can_settle() {
    let of = |until, failing: &[u32], tolerated| {
        let (policy, tolerated) = (FanOutPolicy::FailAll, Tolerated::Number(tolerated));
        Scenario::new(Imports { policy, tolerated, until: Some(until), failing: failing.into() })
    };
    // Two are enough, and two of four can settle in spite of two failures.
    of(2, &[0, 1], 0).start(Begin(4)).await.assert_output(&told(["failed", "failed", "2", "3"]));
    of(2, &[0, 1], 1).start(Begin(9)).await.assert_output(&told([
        "failed", "failed", "2", "3", "dropped", "dropped", "dropped", "dropped", "dropped",
    ]));
    // Three are not there any more, and as many failures as there are are tolerated.
    of(3, &[0, 1], 2).start(Begin(4)).await.assert_output(&told(["failed", "failed", "2", "3"]));
    assert_eq!(items_of(of(3, &[0, 1], 1).start(Begin(4)).await.outcome()), [2, 3]);
}

/// Catches a fan-out that fails in spite of its tolerance.
struct Catches;

#[workflow]
impl Catches {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().tolerate(1)
    }

    #[step]
    async fn store(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 < 3 { Err(StepError::permanent(format!("row {}", item.0))) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Told {
        told([format!("{} stored", parts.ok().count())])
    }

    #[step(catches = [split])]
    async fn report(&self, failed: &StepFailed) -> Told {
        told([failed.error.to_string(), failed.branches.len().to_string()])
    }
}

// S60, S74
#[tokio::test]
async fn a_step_can_catch_the_failures_that_are_more_than_tolerated() {
    let run = Scenario::new(Catches).start(Begin(9)).await;
    run.assert_output(&told(["step `store` failed: row 0; step `store` failed: row 1", "2"]));
    run.assert_quality(Quality::Degraded);
}

/// Two failures of three, in any order: one is tolerated.
struct AnyOrder(u32);

#[workflow]
impl AnyOrder {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().tolerate(self.0)
    }

    #[step]
    async fn store(&self, item: &Item) -> Result<Part, StepError> {
        tokio::task::yield_now().await;
        if item.0 < 2 { Err(StepError::permanent("bad row")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(10 * parts.failed().count() + parts.ok().count()).unwrap())
    }
}

// S74
#[test]
fn in_any_order_the_same_number_of_failures_decides() {
    let explored = explore(|| Scenario::new(AnyOrder(2)).start(Begin(3))).orders(200).assert(|run| {
        run.assert_output(&Done(21));
    });
    assert!(explored.is_exhaustive(), "{explored}");
    let explored = explore(|| Scenario::new(AnyOrder(1)).start(Begin(3))).orders(200).assert(|run| {
        assert!(matches!(run.outcome(), Err(RunError::BranchesFailed { failures }) if failures.len() == 2));
    });
    assert!(explored.is_exhaustive(), "{explored}");
}

// S57, S74
#[tokio::test]
async fn a_run_time_workflow_tolerates_failures_too() {
    let split = StepDef::new("split").input(InputDef::one("Begin")).output(OutputDef::fan_out("Item"));
    let store = StepDef::new("store").input(InputDef::one("Item")).output(OutputDef::event("Part"));
    let end = StepDef::new("end").input(InputDef::gather("Part")).output(OutputDef::event("Done"));
    let table = DependencyTable::builder("imports")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Item", Roles::NONE))
        .event(EventDef::new("Part", Roles::NONE))
        .event(EventDef::new("Done", Roles::NONE.stop()));
    let table = [split, store, end].into_iter().fold(table, TableBuilder::step).build().unwrap();
    let steps = |mut call: StepCall| async move {
        let (step, value) = (call.step().to_owned(), call.input(0).json().cloned());
        match &*step {
            "split" => {
                let percent = value.unwrap().as_f64().unwrap();
                let items: FanOut<_> = (0..4).map(|item| json!(item)).collect();
                call.emit("Item", items.tolerate_percent(percent))?;
            }
            "store" => {
                if value.unwrap() == json!(1) {
                    return Err(StepError::permanent("bad row"));
                }
                call.emit("Part", json!(1))?;
            }
            _ => call.emit("Done", json!("end"))?,
        }
        call.commit(())
    };
    let engine = Engine::builder().workflows([RuntimeWorkflow::new(table, steps)]).build().unwrap();
    let outcome = async |percent: f64| {
        let run = engine.start_json("imports", "Begin", json!(percent), RunOptions::new()).await.unwrap();
        run.outcome_any().await.map(|_| run)
    };
    let run = outcome(25.0).await.unwrap();
    assert_eq!(run.report().await.unwrap().quality, Quality::Degraded);
    assert!(matches!(outcome(24.9).await, Err(RunError::StepFailed { step, .. }) if &*step == "store"));
    let Err(RunError::StepFailed { step, source, .. }) = outcome(101.0).await else {
        panic!("no such share")
    };
    assert_eq!(&*step, "split");
    assert!(source.downcast_ref::<FanOutError>().is_some(), "{source:?}");
}

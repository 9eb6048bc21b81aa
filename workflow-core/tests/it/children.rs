//! Workflows that run workflows: the results of child runs, and their ids (S31).

use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::{ErrorClass, RunOptions, RunStatus, StartError};
use workflow_testkit::{Outcome, Scenario, explore};

use crate::fixtures::{Begin, Close, Done, Item, Saw, saw};

mod ends;
mod forgotten;
mod limits;
mod seen;

/// Doubles; fails at 13.
struct Doubling;

#[workflow]
impl Doubling {
    #[step]
    async fn double(&self, begin: &Begin) -> Result<Done, StepError> {
        if begin.0 == 13 { Err(StepError::rejected("thirteen")) } else { Ok(Done(begin.0 * 2)) }
    }
}

/// Delegates to a child.
struct Delegating;

#[workflow]
impl Delegating {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run::<Doubling>(begin.clone()).await
    }
}

// S31, S34
#[tokio::test]
async fn the_output_of_a_child_is_a_value() {
    let run = Scenario::new(Delegating).host(Doubling).start(Begin(4)).await;
    let expected = "\
#1 Begin from outside: 4
x1 delegate by #1: succeeded
   runs scenario/delegate-x1.1 of Doubling
   scenario/delegate-x1.1 completed
#2 Done of x1: 8
completed with #2
";
    assert_eq!(run.transcript(), expected);
}

// S29
#[tokio::test]
async fn the_failure_of_a_child_is_an_error_that_the_step_may_fail_with() {
    let run = Scenario::new(Delegating).host(Doubling).start(Begin(13)).await;
    let Err(RunError::StepFailed { step, source, .. }) = run.outcome() else { panic!("it failed") };
    let Some(RunError::StepFailed { step: of_child, class, .. }) = source.downcast_ref() else {
        panic!("{source} is the child's")
    };
    assert_eq!((&**step, &**of_child, *class), ("delegate", "double", ErrorClass::Rejected));
}

struct Forgiving;

#[workflow]
impl Forgiving {
    #[step]
    async fn delegate(&self, begin: &Begin, children: Children) -> Done {
        let doubled = children.run::<Doubling>(begin.clone()).await;
        doubled.unwrap_or_else(|error| Done(u32::from(error.to_string().contains("thirteen"))))
    }
}

// S34
#[tokio::test]
async fn the_failure_of_a_child_is_a_value_that_degrades_its_parent() {
    let run = Scenario::new(Forgiving).host(Doubling).start(Begin(13)).await;
    run.assert_output(&Done(1));
    run.assert_quality(Quality::Degraded);
    assert_eq!(run.report().children[0].status, RunStatus::Failed);
    let run = Scenario::new(Forgiving).host(Doubling).start(Begin(1)).await;
    run.assert_quality(Quality::Clean);
}

fn is_unknown(error: &RunError) -> bool {
    let RunError::StepFailed { source, .. } = error else { return false };
    assert_eq!(
        source.to_string(),
        "the engine does not host workflow `Doubling`: add it with `.workflow(…)`; a workflow that the one-line \
         `.run(…)` runs has no engine"
    );
    matches!(source.downcast_ref(), Some(RunError::Start(StartError::UnknownWorkflow { .. })))
}

#[tokio::test]
async fn a_child_of_an_unhosted_workflow_is_refused() {
    let run = Scenario::new(Delegating).start(Begin(4)).await;
    assert!(is_unknown(run.outcome().unwrap_err()));
    assert!(run.report().children.is_empty());
    assert!(is_unknown(&Delegating.run(Begin(4)).await.unwrap_err()));
}

struct Asking;

#[workflow]
impl Asking {
    #[step(precondition = ask)]
    async fn work(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[precondition]
    fn ask(_children: &Children) -> bool {
        true
    }
}

// S18
#[tokio::test]
async fn a_precondition_runs_no_children() {
    let run = Scenario::new(Asking).start(Begin(4)).await;
    let error = run.outcome().unwrap_err().to_string();
    assert_eq!(
        error,
        "precondition `ask` of step `work` failed: a precondition runs no children: a step does"
    );
}

/// Returns its own id and its parent's.
struct Introducing;

#[workflow]
impl Introducing {
    #[step]
    async fn introduce(
        &self,
        begin: &Begin,
        info: &RunInfo,
        thread: &ThreadContext,
    ) -> Result<Done, StepError> {
        let parent = info.parent().map(|parent| format!("{}/{}", parent.run, parent.execution));
        let name = format!("{} of {} in {}", info.run(), parent.unwrap_or_default(), info.thread());
        thread
            .update("names", |names: Option<Vec<String>>| {
                names.into_iter().flatten().chain([name.clone()]).collect::<Vec<_>>()
            })
            .await?;
        Ok(Done(begin.0))
    }
}

struct Naming;

#[workflow]
impl Naming {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn name(&self, _item: &Item, children: &Children) -> Result<(), RunError> {
        let named = children.run_with::<Introducing>(Begin(0), RunOptions::new().id("eu"));
        let (third, fourth) = (children.run::<Introducing>(Begin(0)), children.run::<Introducing>(Begin(0)));
        // The order of the calls counts.
        fourth.await?;
        third.await?;
        named.await?;
        Ok(())
    }

    #[step]
    async fn list(&self, _: &Close, thread: &ThreadContext) -> Result<(Saw, Done), StepError> {
        let names: Vec<String> = thread.get("names").await?.unwrap_or_default();
        Ok((Saw(names.join("\n")), Done(0)))
    }
}

// S31
#[tokio::test]
async fn the_id_of_a_child_is_made_of_its_parents_execution_and_the_order_of_the_calls() {
    let options = RunOptions::new().id("order-17").thread("user-4");
    let run = Scenario::new(Naming).host(Introducing).options(options).send(Close).start(Begin(2)).await;
    let names = saw(&run).concat();
    let mut names: Vec<&str> = names.lines().collect();
    names.sort_unstable();
    let expected = ["x2.2", "x2.3", "x2.eu", "x3.2", "x3.3", "x3.eu"].map(|id| {
        let (execution, _) = id.split_once('.').unwrap();
        format!("order-17/name-{id} of order-17/{execution} in user-4")
    });
    assert_eq!(names, expected);
    let trace = &run.report().trace[1];
    assert_eq!(trace.children.iter().map(ToString::to_string).collect::<Vec<_>>()[0], "order-17/name-x2.3");
}

struct Twice;

#[workflow]
impl Twice {
    #[step]
    async fn twice(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let same = || RunOptions::new().id("same");
        let (one, other) = futures::join!(
            children.run_with::<Doubling>(begin.clone(), same()),
            children.run_with::<Doubling>(begin.clone(), same()),
        );
        assert!(matches!(other, Err(RunError::Start(StartError::DuplicateRun { .. }))));
        one
    }
}

#[tokio::test]
async fn two_children_of_one_name_are_refused() {
    let run = Scenario::new(Twice).host(Doubling).start(Begin(4)).await;
    run.assert_output(&Done(8));
    assert_eq!(run.report().children.len(), 1);
}

struct Racing;

#[workflow]
impl Racing {
    #[step]
    async fn one(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        Ok(Item(children.run::<Doubling>(begin.clone()).await?.0))
    }

    #[step]
    async fn other(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        Ok(Item(children.run::<Doubling>(Begin(begin.0 + 1)).await?.0))
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 2>) -> Done {
        Done(items.iter().fold(0, |sum, item| sum * 100 + item.0))
    }
}

#[test]
fn what_children_do_is_explored_as_a_part_of_the_step_that_runs_them() {
    let scenario = || Scenario::new(Racing).host(Doubling).start(Begin(1));
    let explored = explore(scenario).assert(|run| run.outcome().is_ok());
    let mut outputs: Vec<&str> = explored.outcomes().filter_map(Outcome::output).collect();
    outputs.sort_unstable();
    // The parent's steps end in two orders, and the two children add none.
    assert_eq!((outputs, explored.tried()), (vec!["Done 204", "Done 402"], 2));
}

/// Asks again by the same id for a child that has failed.
struct Insisting;

#[workflow]
impl Insisting {
    #[step]
    async fn insist(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let named = || RunOptions::new().id("c");
        match children.run_with::<Doubling>(Begin(13), named()).await {
            Ok(done) => Ok(done),
            Err(_) => children.run_with::<Doubling>(begin.clone(), named()).await,
        }
    }
}

// S31
#[tokio::test]
async fn without_a_store_a_second_child_of_an_id_leaves_the_first_in_the_report() {
    let run = Scenario::new(Insisting).host(Doubling).start(Begin(4)).await;
    assert_eq!(run.outcome().unwrap(), &Done(8));
    let children: Vec<_> = run.report().children.iter().map(|child| child.status).collect();
    assert_eq!(children, [RunStatus::Failed, RunStatus::Completed]);
}

//! Workflows by name: several of one type in an engine (S55).

use std::sync::Arc;

use workflow_core::errors::BuildProblem;
use workflow_core::prelude::*;
use workflow_core::store::{MemoryStore, Record, RunQuery};
use workflow_core::{ResumeError, RunOptions, StartError, WhenFull};

use crate::fixtures::{Alpha, Begin, Done};

/// Adds its number to what comes from outside.
struct Adds(u32);

#[workflow]
impl Adds {
    #[step]
    async fn add(&self, begin: &Begin, alpha: &Alpha) -> Done {
        Done(begin.0 + alpha.0 + self.0)
    }
}

/// Runs the workflow of this name as a child, or the one with the type's own name.
struct Asks(Option<&'static str>);

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        let options = RunOptions::new();
        let options = self.0.map_or(options.clone(), |name| options.workflow(name));
        let child = children.start_with::<Adds>(begin.clone(), options).await?;
        child.send(Alpha(0)).await.map_err(StepError::permanent)?;
        Ok(child.outcome().await?)
    }
}

fn named(name: &str) -> RunOptions {
    RunOptions::new().workflow(name).id(name)
}

/// The result of a run of `Adds` that starts at 1.
async fn sum(engine: &Engine, options: RunOptions) -> u32 {
    let run = engine.start_with::<Adds>(Begin(1), options).await.unwrap();
    run.send(Alpha(0)).await.unwrap();
    run.outcome().await.unwrap().0
}

// S55
#[tokio::test]
async fn several_workflows_of_one_type_run_under_their_names() {
    let engine = Engine::builder().workflow_named("ten", Adds(10)).workflow_named("forty", Adds(40));
    let engine = engine.build().unwrap();
    assert_eq!((sum(&engine, named("ten")).await, sum(&engine, named("forty")).await), (11, 41));
    let run = engine.start_with::<Adds>(Begin(1), named("forty")).await.unwrap();
    run.send(Alpha(0)).await.unwrap();
    assert_eq!(&*run.report().await.unwrap().workflow, "forty");
}

// S55
#[tokio::test]
async fn without_a_name_a_start_takes_the_types_own_or_the_only_one() {
    let own = Engine::builder().workflow_named("ten", Adds(10)).workflow(Adds(40)).build().unwrap();
    assert_eq!(sum(&own, RunOptions::new()).await, 41);
    assert_eq!(sum(&own, named("ten")).await, 11);
    let only = Engine::builder().workflow_named("ten", Adds(10)).build().unwrap();
    assert_eq!(sum(&only, RunOptions::new()).await, 11);
    let given_its_own = Engine::builder().workflow_named("Adds", Adds(2)).workflow_named("ten", Adds(10));
    assert_eq!(sum(&given_its_own.build().unwrap(), RunOptions::new()).await, 3);
}

// S55
#[tokio::test]
async fn a_start_that_several_workflows_fit_lists_their_names() {
    let engine =
        Engine::builder().workflow_named("b", Adds(1)).workflow_named("a", Adds(2)).workflow(Asks(None));
    let engine = engine.build().unwrap();
    let refused = async |options| engine.start_with::<Adds>(Begin(1), options).await.unwrap_err();
    let unnamed = refused(RunOptions::new()).await;
    assert!(matches!(&unnamed, StartError::WhichWorkflow { names } if *names == ["a".into(), "b".into()]));
    assert_eq!(
        unnamed.to_string(),
        "the engine hosts this type of workflow as `a` and `b`: name one with `RunOptions::workflow`"
    );
    let of_another_type = refused(named("Asks")).await;
    assert!(matches!(&of_another_type, StartError::WhichWorkflow { names } if names.len() == 2));
    let unknown = refused(named("c")).await;
    assert!(matches!(&unknown, StartError::UnknownWorkflow { workflow } if &**workflow == "c"), "{unknown}");
    assert!(engine.running().is_empty());
}

// S55
#[test]
fn names_are_unique_in_an_engine() {
    let twice = Engine::builder().workflow_named("a", Adds(1)).workflow_named("a", Asks(None)).build();
    let error = twice.unwrap_err();
    assert!(matches!(&error.problems[..], [BuildProblem::DuplicateWorkflow { workflow }] if workflow == "a"));
    assert_eq!(
        error.problems[0].to_string(),
        "two workflows are named `a`: host one under another name with `.workflow_named(…)`"
    );
}

// S41, S55
#[tokio::test]
async fn a_journal_has_the_name_and_a_handle_asks_for_the_type() {
    let store = Arc::new(MemoryStore::default());
    let build = |more| {
        let engine = Engine::builder().workflow_named("ten", Adds(10)).workflow_named("forty", Adds(40));
        engine.workflow(Asks(None)).replay_check(more).store(Arc::clone(&store)).build().unwrap()
    };
    let before = build(true);
    let run = before.start_with::<Adds>(Begin(1), named("forty")).await.unwrap();
    run.send(Alpha(0)).await.unwrap();
    run.outcome().await.unwrap();
    let open = before.start_with::<Adds>(Begin(1), named("ten").id("open")).await.unwrap();
    open.settled().await;
    let listed = before.runs(&RunQuery::new().workflow("ten")).await.unwrap();
    assert_eq!(listed.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["open"]);
    let history = before.history(&"open".into()).await.unwrap();
    assert!(matches!(&history[0], Record::RunStarted { workflow, .. } if &**workflow == "ten"));

    let after = build(true);
    let open = after.attach::<Adds>("open").await.unwrap();
    open.send(Alpha(0)).await.unwrap();
    assert_eq!(open.outcome().await.unwrap(), Done(11));
    let wrong = after.attach::<Asks>("open").await.unwrap_err();
    assert_eq!(wrong.to_string(), "run `open` is of workflow `ten`, not of `Asks`");
    let without = Engine::builder().workflow(Adds(10)).store(Arc::clone(&store)).build().unwrap();
    let unhosted = without.attach::<Adds>("open").await.unwrap_err();
    assert!(matches!(unhosted, ResumeError::UnknownWorkflow { .. }), "{unhosted}");
}

// S55
#[tokio::test]
async fn children_are_started_by_name_and_reported_by_it() {
    for (name, expected) in [(None, 41), (Some("ten"), 11)] {
        let engine =
            Engine::builder().workflow(Asks(name)).workflow(Adds(40)).workflow_named("ten", Adds(10));
        let run = engine.build().unwrap().start::<Asks>(Begin(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(expected));
        let report = run.report().await.unwrap();
        assert_eq!(&*report.children[0].child.workflow, name.unwrap_or("Adds"));
    }
}

// S55
#[tokio::test]
async fn a_name_has_a_limit_within_that_of_its_type() {
    let engine =
        Engine::builder().workflow_named("a", Adds(1)).workflow_named("b", Adds(2)).workflow(Adds(3));
    let engine = engine.max_concurrent_runs_named("a", 1).max_concurrent_runs_of::<Adds>(2);
    let engine = engine.when_full(WhenFull::Refuse).build().unwrap();
    let start = async |name: &str, id: &str| {
        let started = engine.start_with::<Adds>(Begin(1), named(name).id(id)).await;
        started.map_err(|error| match error {
            StartError::Full { workflow: Some(workflow), limit, .. } => (workflow.to_string(), limit),
            other => panic!("{other}"),
        })
    };
    // Each run is active until its start returns, and waits for the outside after that.
    let first = start("a", "1").await.unwrap();
    assert_eq!(start("a", "2").await.unwrap_err(), ("a".to_owned(), 1));
    let second = start("b", "3").await.unwrap();
    assert_eq!(start("Adds", "4").await.unwrap_err(), ("Adds".to_owned(), 2));
    for run in [first, second] {
        run.send(Alpha(0)).await.unwrap();
        run.outcome().await.unwrap();
    }
    assert!(start("a", "5").await.is_ok());

    let unknown = Engine::builder().workflow(Adds(1)).max_concurrent_runs_named("a", 1).build().unwrap_err();
    assert!(
        matches!(&unknown.problems[..], [BuildProblem::LimitOfUnknown { workflow }] if &**workflow == "a")
    );
}

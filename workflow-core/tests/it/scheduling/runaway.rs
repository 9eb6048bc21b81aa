//! The limit of a run's executions, and its error about the runaway loop.

use expect_test::{Expect, expect};
use workflow_core::RunStatus;
use workflow_core::prelude::*;

use crate::fixtures::{Begin, Done, Item, Part};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Review(u32);

async fn error_of<W: Workflow>(workflow: W, begin: u32, most: u64) -> RunError {
    let engine = Engine::builder().workflow(workflow).max_executions_per_run(most).build().unwrap();
    let run = engine.start::<W>(Begin(begin)).await.unwrap();
    let Err(error) = run.outcome().await else { panic!("it should have run away") };
    let report = run.report().await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!(report.steps.iter().map(|step| step.executions).sum::<u64>(), most);
    error
}

fn says(error: &RunError, expected: &Expect) {
    expected.assert_eq(&error.to_string());
}

/// Drafts and reviews endlessly, because no review is satisfied.
struct Authors;

#[workflow]
impl Authors {
    #[step]
    async fn begin(&self, begin: &Begin) -> Draft {
        Draft(begin.0)
    }

    #[step(loops)]
    async fn review(&self, draft: &Draft) -> Review {
        Review(draft.0)
    }

    #[step(loops)]
    async fn revise(&self, review: &Review) -> (Draft, Option<Item>) {
        (Draft(review.0), (review.0 > 0).then_some(Item(review.0)))
    }

    #[step(precondition = is_good)]
    async fn publish(&self, draft: &Draft) -> Done {
        Done(draft.0)
    }

    #[precondition]
    fn is_good(draft: &Draft) -> bool {
        draft.0 > 1_000
    }

    #[step]
    async fn file(&self, _item: &Item) {}
}

#[tokio::test]
async fn the_error_names_the_loop_that_ran_away() {
    let error = error_of(Authors, 0, 100).await;
    let RunError::TooManyExecutions { limit: 100, looping, rounds: 49, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*looping, ["review".into(), "revise".into()]);
    says(
        &error,
        &expect![
            "the run had 100 executions, which is the most it may have, and another was due: the loop `review` → `revise` → `review` went round 49 times; give the loop a way out, bound one of its steps with `max_executions`, or raise `max_executions_per_run`"
        ],
    );
}

#[tokio::test]
async fn what_only_follows_from_a_loop_is_no_part_of_it() {
    let error = error_of(Authors, 1, 100).await;
    says(
        &error,
        &expect![
            "the run had 100 executions, which is the most it may have, and another was due: the loop `review` → `revise` → `review` went round 33 times; give the loop a way out, bound one of its steps with `max_executions`, or raise `max_executions_per_run`"
        ],
    );
}

/// Reads so many pages, none of which ends the run.
struct Pages;

#[workflow]
impl Pages {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn read(&self, _item: &Item) -> Option<Done> {
        None
    }
}

#[tokio::test]
async fn without_a_loop_the_error_names_the_step_that_ran_most_often() {
    let error = error_of(Pages, 1_000, 100).await;
    let RunError::TooManyExecutions { looping, rounds: 0, busiest, executions: 99, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!((looping.len(), &**busiest), (0, "read"));
    says(
        &error,
        &expect![
            "the run had 100 executions, which is the most it may have, and another was due: `read` ran 99 times and no loop led there, so something fans out that far or sends that much; if it is meant to, raise `max_executions_per_run`"
        ],
    );
}

/// Reads each page in a branch of its own.
struct Gathers;

#[workflow]
impl Gathers {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn read(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

#[tokio::test]
async fn exactly_as_many_executions_as_allowed_are_no_error() {
    let engine = Engine::builder().workflow(Gathers).max_executions_per_run(12).build().unwrap();
    let run = engine.start::<Gathers>(Begin(10)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(10));
    let run = engine.start::<Gathers>(Begin(11)).await.unwrap();
    let error = run.outcome().await.unwrap_err();
    assert!(matches!(error, RunError::TooManyExecutions { limit: 12, excess: None, .. }), "{error}");
}

/// Fans out, gathers, and begins again.
struct Rounds;

#[workflow]
impl Rounds {
    #[step]
    async fn begin(&self, begin: &Begin) -> Draft {
        Draft(begin.0)
    }

    #[step(loops)]
    async fn split(&self, draft: &Draft) -> FanOut<Item> {
        (0..draft.0).map(Item).collect()
    }

    #[step(loops)]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step(loops)]
    async fn again(&self, parts: &Gather<Part>) -> (Draft, Option<Done>) {
        (Draft(u32::try_from(parts.len()).unwrap()), None)
    }
}

#[tokio::test]
async fn a_loop_can_lead_through_branches_and_their_gather() {
    let error = error_of(Rounds, 2, 100).await;
    says(
        &error,
        &expect![
            "the run had 100 executions, which is the most it may have, and another was due: the loop `split` → `again` → `split` went round 24 times, and `work`, which follows from it, ran 50 times; give the loop a way out, bound one of its steps with `max_executions`, or raise `max_executions_per_run`"
        ],
    );
}

/// A loop with a few rounds, and unrelated items.
struct Apart;

#[workflow]
impl Apart {
    #[step(max_executions = 3, loops, reruns)]
    async fn retry(&self, _begin: Option<&Begin>, review: Option<&Review>) -> Review {
        Review(review.map_or(0, |review| review.0 + 1))
    }

    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn read(&self, _item: &Item) -> Option<Done> {
        None
    }
}

#[tokio::test]
async fn a_loop_that_does_not_lead_to_the_busiest_step_is_not_named() {
    let error = error_of(Apart, 1_000, 50).await;
    says(
        &error,
        &expect![
            "the run had 50 executions, which is the most it may have, and another was due: `read` ran 47 times and no loop led there, so something fans out that far or sends that much; if it is meant to, raise `max_executions_per_run`"
        ],
    );
}

#[tokio::test]
async fn the_default_is_a_hundred_thousand() {
    let error = Authors.run(Begin(0)).await.unwrap_err();
    assert!(matches!(error, RunError::TooManyExecutions { limit: 100_000, .. }), "{error}");
}

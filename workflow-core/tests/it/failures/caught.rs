//! Failures as events (S29, S34): which steps take which failures, how the run ends, and what reports contain.

use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality};
use workflow_core::{ErrorClass, ExecutionId, RetryPolicy, RunStatus, ScopeId, StepFailed};
use workflow_testkit::{Scenario, TestRun, explore};

use crate::fixtures::{Alpha, Begin, Done, Item, Part, Saw, log_of, outcomes_of, saw};

mod branches;
mod fan_outs;
mod records;
mod tables;

/// Retrieves, or fails; a fallback replaces the result.
struct Research {
    fails: bool,
}

#[workflow]
impl Research {
    #[step(retry = RetryPolicy::none())]
    async fn retrieve(&self, begin: &Begin) -> Result<Item, StepError> {
        if self.fails { Err(StepError::tool("the index is locked")) } else { Ok(Item(begin.0)) }
    }

    #[step(catches = [retrieve])]
    async fn fallback(&self, failed: &StepFailed) -> Item {
        assert_eq!(&*failed.step, "retrieve");
        Item(100)
    }

    #[step]
    async fn aside(&self, begin: &Begin) -> Part {
        Part(begin.0)
    }

    #[step]
    async fn answer(&self, item: &Item, _part: &Part) -> Done {
        Done(item.0)
    }
}

// S29, S34
#[test]
fn a_caught_failure_is_an_event_and_the_run_continues_degraded() {
    let explored = explore(|| Scenario::new(Research { fails: true }).start(Begin(1))).assert(|run| {
        run.assert_output(&Done(100));
        run.assert_quality(Quality::Degraded);
        run.assert_executions("fallback", 1);
        assert!(matches!(outcomes_of(run.report(), "retrieve")[..], [ExecutionOutcome::Failed { .. }]));
    });
    assert!(explored.is_exhaustive());
    assert_eq!(explored.outcomes().len(), 1);
}

#[tokio::test(flavor = "current_thread")]
async fn without_a_failure_nothing_is_caught_and_the_run_is_clean() {
    let run = Scenario::new(Research { fails: false }).start(Begin(1)).await;
    run.assert_output(&Done(1));
    run.assert_quality(Quality::Clean);
    run.assert_executions("fallback", 0);
}

#[tokio::test(flavor = "current_thread")]
async fn the_event_says_who_failed_and_how() {
    let run = Scenario::new(Research { fails: true }).start(Begin(1)).await;
    let failed: &StepFailed = run.report().log[1].value.downcast_ref().unwrap();
    assert_eq!((&*failed.step, failed.execution, failed.attempts), ("retrieve", ExecutionId(1), 1));
    assert_eq!((failed.class, &*failed.error), (ErrorClass::Tool, "the index is locked"));
    assert_eq!(failed.to_string(), "step `retrieve` failed (x1, tool): the index is locked");
    assert_eq!(log_of(run.report())[1], "retrieve.failed");
}

/// Two failing steps, a handler for each way of taking a failure, and an end after the second failure.
struct Pair;

#[workflow]
impl Pair {
    #[step]
    async fn first(&self, _begin: &Begin) -> Result<(), StepError> {
        Err(StepError::permanent("one"))
    }

    #[step]
    async fn second(&self, _begin: &Begin) -> Result<(), StepError> {
        panic!("two")
    }

    #[step]
    async fn each(&self, failed: &StepFailed) -> Saw {
        Saw(format!("{}: {}", failed.step, failed.error))
    }

    #[step(reruns)]
    async fn by_value(&self, first: StepFailed, shared: std::sync::Arc<StepFailed>) -> Saw {
        assert_eq!(first, *shared);
        Saw(format!("{} by value", first.step))
    }

    #[precondition]
    fn both(failures: &List<StepFailed>) -> bool {
        failures.len() == 2
    }

    #[step(precondition = both)]
    async fn together(&self, failures: &List<StepFailed>) -> Saw {
        let steps: Vec<&str> = failures.iter().map(|failed| &*failed.step).collect();
        Saw(steps.join(" then "))
    }

    #[step]
    async fn end(&self, seen: &FixedList<Saw, 5>) -> Done {
        Done(u32::try_from(seen.len()).unwrap())
    }
}

// S12, S16, S29
#[test]
fn two_failures_run_a_handler_twice_and_a_list_of_them_once_it_may() {
    let explored = explore(|| Scenario::new(Pair).start(Begin(0))).orders(300).assert(|run| {
        run.assert_output(&Done(5));
        run.assert_quality(Quality::Degraded);
        let mut seen = saw(run);
        seen.sort();
        let together =
            if seen[1].starts_with("first then") { "first then second" } else { "second then first" };
        let mut expected = vec!["first by value", "first: one", "second by value"];
        expected.extend([together, "second: it panicked: two"]);
        expected.sort_unstable();
        assert_eq!(seen, expected);
    });
    assert!(explored.tried() > 1);
}

/// An optional failure, and one as a member of a set.
#[derive(Debug, EventSet)]
enum Ending {
    Went(Item),
    Failed(StepFailed),
}

struct Choice {
    fails: bool,
}

#[workflow]
impl Choice {
    #[step]
    async fn work(&self, begin: &Begin) -> Result<Item, StepError> {
        if self.fails { Err(StepError::rejected("no")) } else { Ok(Item(begin.0)) }
    }

    #[step(reruns)]
    async fn either(&self, ending: Ending, failed: Option<&StepFailed>) -> Done {
        match ending {
            Ending::Went(item) => Done(item.0),
            Ending::Failed(own) => {
                assert_eq!(failed, Some(&own));
                Done(99)
            }
        }
    }
}

// S3, S29
#[tokio::test(flavor = "current_thread")]
async fn a_failure_can_be_one_of_a_set_and_optional() {
    Scenario::new(Choice { fails: true }).start(Begin(1)).await.assert_output(&Done(99));
    Scenario::new(Choice { fails: false }).start(Begin(1)).await.assert_output(&Done(1));
}

/// `rerank` is not among the caught steps.
struct Scoped;

#[workflow]
impl Scoped {
    #[step]
    async fn retrieve(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn rerank(&self, _item: &Item) -> Result<Part, StepError> {
        Err(StepError::permanent("nonsense"))
    }

    #[step(catches = [retrieve])]
    async fn fallback(&self, _failed: &StepFailed) -> Part {
        Part(0)
    }

    #[step]
    async fn end(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_failure_that_no_step_names_fails_the_run() {
    let run = Scenario::new(Scoped).start(Begin(0)).await;
    let Err(RunError::StepFailed { step, .. }) = run.outcome() else { panic!("it went well") };
    assert_eq!(&**step, "rerank");
    run.assert_executions("fallback", 0);
    run.assert_quality(Quality::Failed);
}

/// Handlers fail too: one is caught by name, and one is not caught.
struct Handlers {
    last_fails: bool,
}

#[workflow]
impl Handlers {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<(), StepError> {
        Err(StepError::permanent("broken"))
    }

    #[step]
    async fn repair(&self, failed: &StepFailed) -> Result<(), StepError> {
        assert_eq!(&*failed.step, "work");
        Err(StepError::permanent("beyond repair"))
    }

    #[step(catches = [repair])]
    async fn give_up(&self, failed: &StepFailed) -> Result<Done, StepError> {
        assert_eq!(&*failed.step, "repair");
        if self.last_fails { Err(StepError::permanent("not even that")) } else { Ok(Done(0)) }
    }
}

// S29
#[tokio::test(flavor = "current_thread")]
async fn steps_that_take_failures_catch_each_other_only_by_name() {
    let run = Scenario::new(Handlers { last_fails: false }).start(Begin(0)).await;
    run.assert_output(&Done(0));
    run.assert_executions("repair", 1);
    run.assert_executions("give_up", 1);
}

#[tokio::test(flavor = "current_thread")]
async fn the_failure_of_an_unnamed_handler_fails_the_run() {
    let run = Scenario::new(Handlers { last_fails: true }).start(Begin(0)).await;
    let Err(RunError::StepFailed { step, source, .. }) = run.outcome() else { panic!("it went well") };
    assert_eq!((&**step, source.to_string().as_str()), ("give_up", "not even that"));
}

/// Continues after failures, and is caught as well.
struct Continued;

#[workflow]
impl Continued {
    #[step(on_error = "continue")]
    async fn work(&self, _begin: &Begin) -> Result<(), StepError> {
        Err(StepError::permanent("broken"))
    }

    #[step]
    async fn end(&self, failed: &StepFailed) -> Done {
        Done(failed.attempts)
    }
}

// S29
#[tokio::test(flavor = "current_thread")]
async fn a_step_that_may_fail_is_caught_all_the_same() {
    let run = Scenario::new(Continued).start(Begin(0)).await;
    run.assert_output(&Done(1));
    run.assert_quality(Quality::Degraded);
}

/// One step ends the run while another fails.
struct Race;

#[workflow]
impl Race {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<(), StepError> {
        Err(StepError::permanent("broken"))
    }

    #[step]
    async fn end(&self, _begin: &Begin) -> Done {
        Done(1)
    }

    #[step]
    async fn other_end(&self, _failed: &StepFailed) -> Done {
        Done(2)
    }
}

// S28
#[test]
fn after_the_stop_event_a_failure_changes_nothing() {
    let explored = explore(|| Scenario::new(Race).start(Begin(0))).assert(|run| {
        let stopped_first = log_of(run.report()) == ["Begin", "Done"];
        if stopped_first {
            run.assert_output(&Done(1));
            run.assert_quality(Quality::Clean);
            run.assert_executions("other_end", 0);
        } else {
            assert_eq!(log_of(run.report())[1], "work.failed");
            run.assert_quality(Quality::Degraded);
        }
    });
    assert!(explored.is_exhaustive());
    let mut outputs: Vec<&str> = explored.outcomes().filter_map(|outcome| outcome.output()).collect();
    outputs.sort_unstable();
    outputs.dedup();
    assert_eq!(outputs, ["Done 1", "Done 2"]);
}

/// Waits for an outside event after its one step has failed.
struct Outside;

#[workflow]
impl Outside {
    #[step]
    async fn work(&self, alpha: &Alpha) -> Result<Item, StepError> {
        if alpha.0 == 0 { Err(StepError::permanent("nothing")) } else { Ok(Item(alpha.0)) }
    }

    #[step]
    async fn note(&self, _failed: &StepFailed) -> Saw {
        Saw("failed".into())
    }

    #[step]
    async fn end(&self, _begin: &Begin, item: &Item) -> Done {
        Done(item.0)
    }
}

// S30
#[tokio::test(flavor = "current_thread")]
async fn a_caught_failure_leaves_the_run_waiting_for_what_can_arrive() {
    let waiting = Scenario::new(Outside).send(Alpha(0)).start(Begin(0)).await;
    assert_eq!((waiting.status(), saw(&waiting)), (RunStatus::Waiting, vec!["failed".to_owned()]));
    let run = Scenario::new(Outside).send(Alpha(0)).send(Alpha(7)).start(Begin(0)).await;
    run.assert_output(&Done(7));
}

fn failed_scopes<W: Workflow>(run: &TestRun<W>) -> Vec<ScopeId> {
    let failed = run.report().log.iter().filter(|logged| logged.event.ends_with(".failed"));
    failed.map(|logged| logged.scope).collect()
}

//! Retries in fan-outs with each policy, in every order (S25, S35, S49).

use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality};
use workflow_core::{ErrorClass, FanOutPolicy};
use workflow_testkit::{Scenario, TestRun, explore};

use crate::fixtures::{Alive, Begin, Done, Item, Part, outcomes_of};

const ITEMS: u32 = 3;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(display)]
struct Trying(u32);

/// The work on every item fails once, and on all but the first it then fails for good.
struct Group(FanOutPolicy, Alive);

#[workflow]
impl Group {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (0..begin.0).map(Item).collect();
        match self.0 {
            FanOutPolicy::ContinueOthers => items.continue_others(),
            FanOutPolicy::WaitAll => items.wait_all(),
            _ => items.fail_all(),
        }
    }

    #[step]
    async fn work(&self, item: &Item, display: &Display, info: &RunInfo) -> Result<Part, StepError> {
        let _guard = self.1.guard();
        display.show(Trying(10 * item.0 + info.attempt()));
        tokio::task::yield_now().await;
        match info.attempt() {
            1 if item.0 == 0 => Err(StepError::transient("busy")),
            1 => Err(StepError::tool("torn")),
            _ if item.0 > 0 => Err(StepError::rejected(format!("item {} is broken", item.0))),
            _ => Ok(Part(item.0)),
        }
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

fn in_every_order(policy: FanOutPolicy, holds: impl Fn(&TestRun<Group>)) {
    let alive = Alive::default();
    let explored = explore(|| Scenario::new(Group(policy, alive.clone())).start(Begin(ITEMS)));
    explored.assert(|run| {
        holds(run);
        assert_eq!(alive.count(), 0);
        let works = run.report().trace.iter().filter(|trace| &*trace.step == "work");
        for (item, trace) in works.enumerate() {
            let class = if item == 0 { ErrorClass::Transient } else { ErrorClass::Tool };
            let failed: Vec<_> = trace.attempts.iter().map(|failed| failed.class).collect();
            let is_dropped = trace.outcome == ExecutionOutcome::Dropped;
            assert!(failed == [class] || failed.is_empty() && is_dropped, "item {item}: {failed:?}");
        }
    });
}

/// The numbers of the items whose execution had this outcome.
fn items(run: &TestRun<Group>, is_so: impl Fn(&ExecutionOutcome) -> bool) -> Vec<usize> {
    let outcomes = outcomes_of(run.report(), "work").into_iter().enumerate();
    outcomes.filter(|(_, outcome)| is_so(outcome)).map(|(item, _)| item).collect()
}

fn is_failed(outcome: &ExecutionOutcome) -> bool {
    matches!(outcome, ExecutionOutcome::Failed { .. })
}

// S49
#[test]
fn fail_all_drops_the_attempts_and_the_waits_of_the_others_with_the_first_failure() {
    in_every_order(FanOutPolicy::FailAll, |run| {
        let Err(RunError::StepFailed { attempts: 2, class: ErrorClass::Rejected, source, .. }) =
            run.outcome()
        else {
            panic!("{}", run.transcript())
        };
        let failed = items(run, is_failed);
        assert!(failed == [1] || failed == [2], "{failed:?}");
        assert_eq!(source.to_string(), format!("item {} is broken", failed[0]));
        run.assert_executions("join", 0);
    });
}

// S25, S49
#[test]
fn wait_all_waits_for_every_attempt_and_fails_with_every_last_error() {
    in_every_order(FanOutPolicy::WaitAll, |run| {
        let Err(RunError::BranchesFailed { failures }) = run.outcome() else {
            panic!("{}", run.transcript())
        };
        let errors = failures.iter().map(|failure| failure.error().to_string());
        assert_eq!(errors.collect::<Vec<_>>(), ["item 1 is broken", "item 2 is broken"]);
        assert_eq!(items(run, is_failed), [1, 2]);
        assert_eq!(items(run, |outcome| *outcome == ExecutionOutcome::Succeeded), [0]);
        run.assert_displayed(&[Trying(2)]);
        run.assert_executions("join", 0);
    });
}

// S25, S49
#[test]
fn continue_others_gathers_the_results_of_the_last_attempts() {
    in_every_order(FanOutPolicy::ContinueOthers, |run| {
        run.assert_output(&Done(0));
        run.assert_quality(Quality::Degraded);
        assert_eq!(items(run, is_failed), [1, 2]);
        run.assert_displayed(&[Trying(2)]);
    });
}

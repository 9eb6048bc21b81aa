//! Failing attempts in every order with other operations (S23, S25, S29, S31, S32, S35–S37).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::{RunOptions, RunStatus, StepFailed};
use workflow_testkit::{Scenario, ScenarioOf, TestRun, explore};

use crate::fixtures::{Alive, Begin, Close, Done, Item, Part, log_of};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(display)]
struct Trying(u32);

/// Two steps whose first attempts fail, each with its own delay, and outside events.
struct Restless(Alive);

#[workflow]
impl Restless {
    #[step]
    async fn fetch(
        &self,
        begin: &Begin,
        items: &Emitter<Item>,
        display: &Display,
        info: &RunInfo,
    ) -> Result<(), StepError> {
        let _alive = self.0.guard();
        display.show(Trying(info.attempt()));
        items.emit(Item(begin.0 * 10 + info.attempt()))?;
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(()) }
    }

    #[step(timeout = "30s")]
    async fn wait(&self, begin: &Begin, info: &RunInfo) -> Part {
        let _alive = self.0.guard();
        tokio::time::sleep(if info.attempt() == 1 { Duration::MAX } else { Duration::ZERO }).await;
        Part(begin.0 + info.attempt())
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part, _: &Close) -> Done {
        Done(item.0 + part.0)
    }
}

/// Asserts that only successful attempts have left anything.
fn is_clean<W: Workflow>(run: &TestRun<W>, failed: &[u32]) {
    let numbers = run.displayed::<Trying>();
    assert!(numbers.iter().all(|trying| !failed.contains(&trying.0)), "{}", run.transcript());
    let first = run.emitted::<Item>().into_iter().any(|item| failed.contains(&(item.0 % 10)));
    assert!(!first, "{}", run.transcript());
}

// S23, S25, S35, S37
#[test]
fn nothing_is_left_of_a_failed_attempt_in_any_order() {
    let alive = Alive::default();
    let explored =
        explore(|| Scenario::new(Restless(alive.clone())).send(Close).start(Begin(4))).assert(|run| {
            run.assert_output(&Done(42 + 6));
            run.assert_quality(Quality::Clean);
            is_clean(run, &[1]);
            assert_eq!((run.executions("fetch"), run.executions("wait"), run.executions("end")), (1, 1, 1));
            let failed = |place: usize| run.report().trace[place].attempts.len();
            assert_eq!((failed(0), failed(1), alive.count()), (1, 1, 0));
        });
    assert!(explored.is_exhaustive() && explored.tried() > 10, "{explored}");
}

// S31, S36
#[test]
fn a_cancel_ends_attempts_and_waits_for_attempts_in_any_order() {
    let alive = Alive::default();
    let scenario = || {
        let scenario = Scenario::new(Restless(alive.clone())).send(Close);
        scenario.cancel_after(Duration::ZERO, "enough").start(Begin(4))
    };
    let explored = explore(scenario).assert(|run| {
        is_clean(run, &[1]);
        let has_ended = run.emitted::<Done>().len() == 1;
        assert_eq!(run.status() == RunStatus::Completed, has_ended);
        assert_eq!(log_of(run.report()).last() == Some(&"Done"), has_ended);
        assert!(has_ended || run.status() == RunStatus::Cancelled);
        assert_eq!(alive.count(), 0);
    });
    let completed = explored.outcomes().filter(|outcome| outcome.output().is_some()).count();
    assert!(completed > 0 && explored.outcomes().count() > completed, "{explored}");
}

// S32: a retry delay counts as active time.
#[test]
fn a_run_may_be_over_before_the_next_attempt_in_any_order() {
    let most = RunOptions::new().timeout(Duration::from_secs(20));
    let scenario =
        || Scenario::new(Restless(Alive::default())).options(most.clone()).send(Close).start(Begin(4));
    explore(scenario).assert(|run| {
        assert_eq!(run.status(), RunStatus::TimedOut, "{}", run.transcript());
        is_clean(run, &[1]);
        assert!(run.emitted::<Part>().is_empty());
    });
}

/// A step that never succeeds, one that does, and one that takes the failure.
struct Hopeless;

#[workflow]
impl Hopeless {
    #[step]
    async fn fetch(&self, _: &Begin, display: &Display, info: &RunInfo) -> Result<Item, StepError> {
        display.show(Trying(info.attempt()));
        Err(StepError::tool(format!("no {}", info.attempt())))
    }

    #[step]
    async fn other(&self, begin: &Begin) -> Part {
        Part(begin.0)
    }

    #[step(catches = [fetch])]
    async fn give_up(&self, failed: &StepFailed) -> Item {
        Item(failed.attempts)
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

fn hopeless() -> ScenarioOf<Hopeless> {
    Scenario::new(Hopeless)
}

// S29
#[test]
fn a_failure_is_caught_once_after_all_attempts_in_any_order() {
    let explored = explore(|| hopeless().start(Begin(1))).assert(|run| {
        run.assert_output(&Done(4));
        run.assert_quality(Quality::Degraded);
        assert_eq!((run.executions("fetch"), run.executions("give_up")), (1, 1));
        assert_eq!(run.displayed::<Trying>(), [] as [&Trying; 0]);
    });
    assert!(explored.is_exhaustive(), "{explored}");
}

//! Runs that end during a retry delay.

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, NotRetried};
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunStatus};
use workflow_testkit::{Scenario, VirtualClock, explore};

use crate::fixtures::{Alive, Begin, Close, Done, Item, everyone_else, outcomes_of};

/// Fails at once and is retried endlessly; ends on an outside event.
struct Stubborn(Alive);

#[workflow]
impl Stubborn {
    #[step(retry = Self::stubborn())]
    async fn work(&self, _begin: &Begin, info: &RunInfo) -> Result<Item, StepError> {
        let _guard = self.0.guard();
        tokio::task::yield_now().await;
        Err(StepError::transient(format!("no {}", info.attempt())))
    }

    #[step]
    async fn end(&self, _close: &Close, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[step]
    async fn never(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

impl Stubborn {
    fn stubborn() -> RetryPolicy {
        RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(u32::MAX, Duration::from_hours(1)))
    }
}

// S28
#[tokio::test]
async fn a_stop_event_ends_the_wait() {
    let alive = Alive::default();
    let day = Duration::from_hours(24) + Duration::from_mins(1);
    let run = Scenario::new(Stubborn(alive.clone())).send_after(day, Close).start(Begin(3)).await;
    run.assert_output(&Done(3));
    assert_eq!((run.elapsed(), alive.count()), (day, 0));
    assert_eq!(run.report().trace[0].attempts.len(), 25);
    assert_eq!(outcomes_of(run.report(), "work"), [&ExecutionOutcome::Dropped]);
    let report = run.report().to_string();
    assert!(report.contains("and 19 more, was to be retried after 3600s: dropped\n"), "{report}");
}

// S31
#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_waits_for_no_retry() {
    let alive = Alive::default();
    let engine = Engine::builder().workflow(Stubborn(alive.clone())).clock(VirtualClock::new());
    let run = engine.build().unwrap().start::<Stubborn>(Begin(1)).await.unwrap();
    everyone_else().await;
    assert_eq!(run.status(), RunStatus::Running);
    let explanation = run.explain().await.unwrap().to_string();
    let waits =
        "failed once (transient: no 1), to be retried after 3600s: waits for its next attempt, which is due";
    assert!(explanation.contains(&format!("{waits} 3600s after the run began")), "{explanation}");
    let so_far = run.report_so_far().await.unwrap();
    assert_eq!(so_far.trace[0].next_attempt, Some(Duration::from_hours(1)));
    assert_eq!(outcomes_of(&so_far, "work"), [&ExecutionOutcome::Running]);
    run.cancel("enough").await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!((report.status, alive.count()), (RunStatus::Cancelled, 0));
    assert_eq!(report.trace[0].attempts.len(), 1);
    assert_eq!(report.trace[0].next_attempt, Some(Duration::from_hours(1)));
    assert_eq!(outcomes_of(&report, "work"), [&ExecutionOutcome::Dropped]);
    let never_came = "failed once (transient: no 1), was to be retried after 3600s: dropped";
    assert!(report.to_string().contains(&format!("x1 work {never_came}\n")), "{report}");
    let explanation = run.explain().await.unwrap().to_string();
    assert!(explanation.contains(&format!("`Begin`, {never_came}")), "{explanation}");
}

/// Two attempts, and an end of the run in between, before or after.
struct Race;

#[workflow]
impl Race {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        if info.attempt() == 1 { Err(StepError::tool("no")) } else { Ok(Done(begin.0)) }
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S28
#[test]
fn the_first_end_ends_the_run_and_no_attempt_follows() {
    let explored = explore(|| Scenario::new(Race).send(Close).start(Begin(7))).assert(|run| {
        let Ok(Done(ended_by)) = run.outcome() else { panic!("{}", run.transcript()) };
        let outcomes = outcomes_of(run.report(), "work");
        match ended_by {
            7 => assert_eq!(outcomes, [&ExecutionOutcome::Succeeded]),
            _ => assert!(
                matches!(outcomes[..], [ExecutionOutcome::Dropped | ExecutionOutcome::Refused]),
                "{}",
                run.transcript()
            ),
        }
    });
    assert!(explored.is_exhaustive());
}

#[test]
fn without_timers_the_execution_fails_whose_attempt_would_be_waited_for() {
    let without_timers = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = without_timers.block_on(Flat.run(Begin(1)));
    let Err(RunError::StepFailed { attempts, class, source, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((attempts, class), (1, ErrorClass::Permanent));
    assert!(source.to_string().contains("timers are disabled"), "{source}");
}

struct Flat;

#[workflow]
impl Flat {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::transient("busy"))
    }
}

// No policy retries the panic of a clock: the attempt never began.
#[test]
fn the_panic_of_a_clock_is_retried_by_no_policy_and_reported_as_the_clocks() {
    let without_timers = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let second = Retries::fixed(3, Duration::from_secs(1));
    let stubborn = RetryPolicy::standard().on(ErrorClass::Permanent, second);
    let explanation = without_timers.block_on(async {
        let engine = Engine::builder().workflow(Flat).retry(stubborn).build().unwrap();
        let run = engine.start::<Flat>(Begin(1)).await.unwrap();
        let report = run.report().await.unwrap();
        let [ExecutionOutcome::Failed { not_retried: NotRetried::Clock, .. }] =
            outcomes_of(&report, "work")[..]
        else {
            panic!("{report}")
        };
        run.explain().await.unwrap().to_string()
    });
    assert!(
        explanation
            .contains(", failed once (transient: busy), was to be retried after 10s: failed (permanent)"),
        "{explanation}"
    );
    assert!(explanation.contains("; the engine's clock panicked"), "{explanation}");
}

/// Never succeeds, and never waits.
struct Furious;

#[workflow]
impl Furious {
    #[step(retry = RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(u32::MAX, Duration::ZERO)))]
    async fn fail(&self, _begin: &Begin) -> Result<Item, StepError> {
        Err(StepError::tool("no"))
    }

    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[step]
    async fn take(&self, _item: &Item) {}
}

// S28: no attempt begins once the stop event is on its way to the store, and the write completes.
#[tokio::test]
async fn a_step_that_is_attempted_for_ever_keeps_no_run_with_a_journal_from_its_end() {
    let engine = Engine::builder()
        .workflow(Furious)
        .store(workflow_core::store::MemoryStore::default())
        .build()
        .unwrap();
    let run = engine.start::<Furious>(Begin(7)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
}

/// Ends at once, and fails at the same time.
struct Late(ErrorClass);

#[workflow]
impl Late {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Item, StepError> {
        Err(StepError::new(self.0, "no"))
    }

    #[step]
    async fn take(&self, _item: &Item) {}
}

// S28
#[tokio::test]
async fn a_failure_after_the_end_is_not_retried_and_its_execution_is_dropped() {
    for class in [ErrorClass::Tool, ErrorClass::Permanent] {
        let run = Scenario::new(Late(class)).start(Begin(1)).await;
        run.assert_output(&Done(1));
        assert_eq!(outcomes_of(run.report(), "work"), [&ExecutionOutcome::Dropped]);
        let explanation = run.explanation().unwrap().to_string();
        assert!(explanation.contains("`Begin`: dropped\n"), "{explanation}");
        // Observers learn of the failure itself.
        assert!(
            run.transcript().contains(&format!("x2 work: failed ({class}): no\n")),
            "{}",
            run.transcript()
        );
    }
}

/// A step that waits for its next attempt, and one that waits for its result.
struct Patient;

#[workflow]
impl Patient {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Item, StepError> {
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(Item(begin.0)) }
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// The transcripts of a run that continued and of one that ended first.
#[tokio::test]
async fn a_retry_that_never_started_does_not_count_as_an_attempt() {
    let run = Scenario::new(Patient).start(Begin(1)).await;
    assert!(
        run.transcript().contains(" failed (transient): busy; retried after 10s\n"),
        "{}",
        run.transcript()
    );
    let second = Duration::from_secs(1);
    let run = Scenario::new(Patient).cancel_after(second, "enough").start(Begin(1)).await;
    let was = " attempt 1 failed (transient): busy; was to be retried after 10s\n";
    assert!(run.transcript().contains(was), "{}", run.transcript());
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_said_to_wait_for_the_next_attempt_of_its_step() {
    let engine = Engine::builder().workflow(Patient).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Patient>(Begin(1)).await.unwrap();
    everyone_else().await;
    let explanation = run.explain().await.unwrap().to_string();
    let due = "`work` waits for its next attempt, which is due 10s after the run began";
    assert!(explanation.contains(due), "{explanation}");
    run.outcome().await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!((report.trace[0].attempts.len(), report.trace[0].next_attempt), (1, None));
}

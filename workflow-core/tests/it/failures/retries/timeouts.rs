//! Attempts that take too long.

use std::future::pending;
use std::time::Duration;

use expect_test::expect;
use workflow_core::errors::TimedOut;
use workflow_core::prelude::*;
use workflow_core::{ErrorClass, RetryPolicy};
use workflow_testkit::Scenario;

use crate::fixtures::{Alive, Begin, Done, Item, Part};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Trying(u32);

/// Hangs in the first attempt.
struct Hanging(Alive);

#[workflow]
impl Hanging {
    #[step(timeout = "30s")]
    async fn work(
        &self,
        begin: &Begin,
        items: &Emitter<Item>,
        display: &Display,
        info: &RunInfo,
    ) -> Result<Done, StepError> {
        let _guard = self.0.guard();
        assert_eq!(self.0.count(), 1, "the attempt before is dropped");
        items.emit(Item(info.attempt()))?;
        display.show(Trying(info.attempt()));
        if info.attempt() == 1 {
            pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok(Done(begin.0))
    }

    #[step(reruns, on_error = "continue")]
    async fn watch(&self, _item: &Item) {}
}

// S23, S25, S35
#[tokio::test]
async fn an_attempt_that_takes_too_long_is_dropped_and_the_next_one_succeeds() {
    let alive = Alive::default();
    let run = Scenario::new(Hanging(alive.clone())).start(Begin(3)).await;
    run.assert_output(&Done(3));
    assert_eq!((run.elapsed(), alive.count()), (Duration::from_mins(1), 0));
    expect![[r"
        #1 Begin from outside: 3
        x1 work by #1: succeeded
           showed Trying: 1
           took back what it showed
           attempt 1 failed (transient): it took longer than 30s, the `timeout` of its step; retried after 10s
           showed Trying: 2
        #2 Item of x1: 2
        #3 Done of x1: 3
        completed with #3
    "]]
    .assert_eq(&run.transcript());
}

/// Hangs for ever, or exactly until its timeout; also in a task of its own.
struct Late;

#[workflow]
impl Late {
    #[step(timeout = "2m", retry = RetryPolicy::none(), spawn)]
    async fn work(&self, begin: &Begin) -> Done {
        tokio::time::sleep(Duration::from_secs(begin.0.into())).await;
        Done(begin.0)
    }
}

#[tokio::test]
async fn the_error_contains_the_timeout() {
    let run = Scenario::new(Late).start(Begin(121)).await;
    let Err(RunError::StepFailed { class, attempts, source, .. }) = run.outcome() else {
        panic!("{}", run.transcript())
    };
    let two_minutes = Duration::from_mins(2);
    assert_eq!((*class, *attempts), (ErrorClass::Transient, 1));
    assert_eq!(source.downcast_ref::<TimedOut>().unwrap().after, two_minutes);
    assert_eq!(run.elapsed(), two_minutes);
}

#[tokio::test]
async fn an_attempt_that_ends_before_its_timeout_has_ended() {
    Scenario::new(Late).start(Begin(119)).await.assert_output(&Done(119));
    Scenario::new(Late).start(Begin(0)).await.assert_output(&Done(0));
}

/// Has a slow precondition.
struct Thoughtful;

#[workflow]
impl Thoughtful {
    #[precondition]
    async fn thinks(_begin: &Begin) -> bool {
        tokio::time::sleep(Duration::from_hours(1)).await;
        true
    }

    #[step(precondition = thinks, timeout = "10ms")]
    async fn work(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

// S18
#[tokio::test]
async fn a_precondition_may_take_its_time() {
    let run = Scenario::new(Thoughtful).start(Begin(5)).await;
    run.assert_output(&Done(5));
    assert_eq!(run.elapsed(), Duration::from_hours(1));
}

/// Panics when it is dropped, the first time.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(self.0 > 1, "while it was dropped");
    }
}

struct Explosive;

#[workflow]
impl Explosive {
    #[step(timeout = "30s")]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Done {
        let _bomb = Bomb(info.attempt());
        tokio::time::sleep(if info.attempt() == 1 { Duration::MAX } else { Duration::ZERO }).await;
        Done(begin.0)
    }
}

#[tokio::test]
async fn an_attempt_that_panics_while_it_is_dropped_has_taken_too_long_all_the_same() {
    let run = Scenario::new(Explosive).start(Begin(3)).await;
    run.assert_output(&Done(3));
    assert_eq!(run.report().trace[0].attempts[0].class, workflow_core::ErrorClass::Transient);
}

/// Takes exactly its timeout: in the run's task, in a task of its own, and together with its compaction. Then it fails
/// or not.
struct Punctual;

#[workflow]
impl Punctual {
    #[step(timeout = "2m", retry = RetryPolicy::none())]
    async fn here(&self, begin: &Begin) -> Result<Item, StepError> {
        tokio::time::sleep(Duration::from_mins(2)).await;
        if begin.0 == 13 { Err(StepError::rejected("thirteen")) } else { Ok(Item(1)) }
    }

    #[step(timeout = "2m", retry = RetryPolicy::none(), spawn)]
    async fn elsewhere(&self, _: &Begin) -> Part {
        tokio::time::sleep(Duration::from_mins(2)).await;
        Part(2)
    }

    #[step(timeout = "2m", compact = rest)]
    async fn end(&self, item: &Item, part: &Part, info: &RunInfo) -> Result<Done, StepError> {
        tokio::time::sleep(Duration::from_mins(1)).await;
        if info.attempt() == 1 { Err(StepError::context_limit("tired")) } else { Ok(Done(item.0 + part.0)) }
    }

    async fn rest(&self) {
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
}

#[tokio::test]
async fn an_attempt_that_ends_exactly_at_its_timeout_has_ended() {
    let run = Scenario::new(Punctual).start(Begin(1)).await;
    run.assert_output(&Done(3));
    assert_eq!(run.elapsed(), Duration::from_mins(2 + 1 + 2));
    let late = run.report().trace.iter().flat_map(|trace| &trace.attempts);
    assert_eq!(late.map(|failed| failed.class).collect::<Vec<_>>(), [ErrorClass::ContextLimit]);
}

#[tokio::test]
async fn an_attempt_that_fails_exactly_at_its_timeout_has_its_own_error() {
    let run = Scenario::new(Punctual).start(Begin(13)).await;
    let Err(RunError::StepFailed { class, source, .. }) = run.outcome() else {
        panic!("{}", run.transcript())
    };
    assert_eq!((*class, source.to_string()), (ErrorClass::Rejected, "thirteen".to_owned()));
}

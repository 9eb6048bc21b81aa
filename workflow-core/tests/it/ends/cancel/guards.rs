//! The effect of a dropped guard on its run, in any place (S31).

use futures::FutureExt as _;
use tokio::runtime::Builder;
use workflow_core::prelude::*;
use workflow_core::{RunHandle, RunStatus};

use crate::fixtures::{Alpha, Begin, Done, everyone_else, log_of, started};

/// Never ends by itself.
struct Waiting;

#[workflow]
impl Waiting {
    #[step(precondition = never)]
    async fn end(&self, _begin: &Begin, alpha: &Alpha) -> Done {
        Done(alpha.0)
    }

    #[precondition]
    fn never(alpha: &Alpha) -> bool {
        alpha.0 == 0
    }
}

async fn cancelled_because<W: Workflow>(run: &RunHandle<W>) -> String {
    match run.outcome().await {
        Err(RunError::Cancelled { reason }) => reason.to_string(),
        _ => panic!("it was cancelled: {}", run.status()),
    }
}

// S31
#[tokio::test]
async fn a_full_mailbox_does_not_lose_the_cancel_of_a_guard() {
    let run = started(Waiting, 0).await;
    run.settled().await;
    let guard = run.clone().cancel_on_drop("nobody listens");
    let sends = (0..64).filter(|number| run.send(Alpha(*number + 1)).now_or_never().is_none()).count();
    assert_eq!(sends, 64);
    drop(guard);
    assert_eq!(cancelled_because(&run).await, "nobody listens");
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin"]);
}

// S31
#[tokio::test]
async fn a_guard_can_be_dropped_outside_of_a_runtime_and_in_a_panic() {
    let run = started(Waiting, 0).await;
    let guard = run.clone().cancel_on_drop("a thread went");
    std::thread::spawn(move || drop(guard)).join().unwrap();
    assert_eq!(cancelled_because(&run).await, "a thread went");
    let run = started(Waiting, 0).await;
    let guard = run.clone().cancel_on_drop("a thread panicked");
    let thread = std::thread::spawn(move || {
        let _guard = guard;
        panic!("the thread panics");
    });
    thread.join().unwrap_err();
    assert_eq!(cancelled_because(&run).await, "a thread panicked");
}

// S31
#[test]
fn a_guard_can_outlive_the_runtime_of_its_run() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let run = runtime.block_on(started(Waiting, 0));
    let guard = run.clone().cancel_on_drop("too late");
    drop(runtime);
    drop(guard);
    assert!(matches!(run.outcome().now_or_never(), Some(Err(RunError::Detached))));
}

// S31
#[tokio::test]
async fn a_guard_that_is_disarmed_is_a_handle_and_leaves_the_run_alone() {
    let guard = started(Waiting, 0).await.cancel_on_drop("never");
    assert_eq!(guard.settled().await, RunStatus::Waiting);
    let run = guard.disarm();
    everyone_else().await;
    assert_eq!(run.status(), RunStatus::Waiting);
    run.send(Alpha(0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    drop(run.clone().cancel_on_drop("it has ended"));
    assert_eq!(run.outcome().await.unwrap(), Done(0));
}

// S31
#[tokio::test]
async fn of_several_guards_the_first_that_is_dropped_gives_the_reason() {
    let run = started(Waiting, 0).await;
    let guards = ["first", "second"].map(|reason| run.clone().cancel_on_drop(reason));
    drop(guards);
    assert_eq!(cancelled_because(&run).await, "first");
}

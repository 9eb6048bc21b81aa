//! Failing attempts in combination with requests, timers, child runs, catching and blocking.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use expect_test::expect;
use workflow_core::errors::TimedOut;
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::{ErrorClass, RetryPolicy, RunOptions, RunStatus, StepFailed, blocking};
use workflow_testkit::{Scenario, VirtualClock};

use super::flaky;
use crate::fixtures::{Alive, Begin, Done, Item};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = String)]
struct Question(u32);

/// Makes a request in every attempt; the third also sets a timer, and succeeds.
struct Asking;

#[workflow]
impl Asking {
    #[step]
    async fn ask(
        &self,
        _begin: &Begin,
        questions: &Emitter<Question>,
        info: &RunInfo,
    ) -> Result<Timer<Item>, StepError> {
        questions.emit(Question(info.attempt()))?;
        if info.attempt() < 3 {
            return Err(StepError::tool("torn"));
        }
        Ok(Timer::after(Duration::from_hours(1), Item(10 * info.attempt())))
    }

    #[step]
    async fn end(&self, item: &Item, reply: &Reply<Question>) -> Done {
        Done(item.0 + reply.request().0)
    }
}

// S23
#[tokio::test(start_paused = true)]
async fn a_failed_attempt_leaves_no_request_and_no_timer() {
    let engine = Engine::builder().workflow(Asking).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Asking>(Begin(1)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let requests = run.requests().await.unwrap();
    let asked: Vec<u32> =
        requests.iter().map(|request| request.downcast_ref::<Question>().unwrap().0).collect();
    assert_eq!((asked, run.timers().await.unwrap().len()), (vec![3], 1));
    run.reply(requests[0].id::<Question>().unwrap(), "because".into()).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(33));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(display)]
struct Napping(u32);

/// Takes this many seconds.
struct Nap(Alive);

#[workflow]
impl Nap {
    #[step]
    async fn nap(&self, begin: &Begin, display: &Display) -> Done {
        let _alive = self.0.guard();
        assert_eq!(self.0.count(), 1, "the child of the attempt before has ended");
        display.show(Napping(begin.0));
        tokio::time::sleep(Duration::from_secs(begin.0.into())).await;
        Done(begin.0)
    }
}

/// Runs a child in every attempt, and in the first one for too long.
struct Resting;

#[workflow]
impl Resting {
    #[step(timeout = "30s")]
    async fn rest(&self, _begin: &Begin, children: &Children, info: &RunInfo) -> Result<Done, RunError> {
        children.run::<Nap>(Begin(if info.attempt() == 1 { 3_600 } else { 7 })).await
    }
}

// S25, S31
#[tokio::test]
async fn the_child_of_an_attempt_ends_with_it_and_the_next_has_one_of_its_own() {
    let alive = Alive::default();
    let run = Scenario::new(Resting).host(Nap(alive.clone())).start(Begin(0)).await;
    run.assert_output(&Done(7));
    run.assert_quality(Quality::Clean);
    assert_eq!((run.elapsed(), alive.count()), (Duration::from_secs(47), 0));
    run.assert_displayed(&[Napping(7)]);
    expect![[r"
        #1 Begin from outside: 0
        x1 rest by #1: succeeded
           runs scenario/rest-x1.1 of Nap
           scenario/rest-x1.1 showed Napping: 3600
           took back what it showed
           attempt 1 failed (transient): it took longer than 30s, the `timeout` of its step; retried after 10s
           scenario/rest-x1.1 cancelled
           runs scenario/rest-x1.a2.1 of Nap
           scenario/rest-x1.a2.1 showed Napping: 7
           scenario/rest-x1.a2.1 completed
        #2 Done of x1: 7
        completed with #2
    "]]
    .assert_eq(&run.transcript());
}

/// Fails for good.
struct Failing;

#[workflow]
impl Failing {
    #[step]
    async fn fail(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::permanent("no"))
    }
}

/// Has two children in every attempt, one with a name.
struct Bearing;

#[workflow]
impl Bearing {
    #[step]
    async fn bear(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let _ = children.run::<Failing>(begin.clone()).await;
        children.run_with::<Failing>(begin.clone(), RunOptions::new().id("eu")).await
    }
}

#[tokio::test]
async fn the_children_of_every_attempt_have_ids_of_their_own() {
    let scenario = Scenario::new(Bearing).host(Failing).classify(|_: &RunError| ErrorClass::Tool);
    let run = scenario.start(Begin(0)).await;
    assert!(matches!(run.outcome(), Err(RunError::StepFailed { attempts: 3, class: ErrorClass::Tool, .. })));
    let children = run.report().children.iter().map(|child| (child.child.run.as_str(), child.child.attempt));
    let expected = [
        ("scenario/bear-x1.1", 1),
        ("scenario/bear-x1.eu", 1),
        ("scenario/bear-x1.a2.1", 2),
        ("scenario/bear-x1.a2.eu", 2),
        ("scenario/bear-x1.a3.1", 3),
        ("scenario/bear-x1.a3.eu", 3),
    ];
    assert_eq!(children.collect::<Vec<_>>(), expected);
    assert_eq!(run.report().trace[0].children.len(), 6);
}

/// Uses up its retries, and is then caught.
struct Caught;

#[workflow]
impl Caught {
    #[step]
    async fn work(&self, _begin: &Begin, info: &RunInfo) -> Result<Item, StepError> {
        Err(StepError::tool(format!("no {}", info.attempt())))
    }

    #[step(catches = [work])]
    async fn give_up(&self, failed: &StepFailed) -> Done {
        assert_eq!(failed.to_string(), "step `work` failed after 3 attempts (x1, tool): no 3");
        Done(failed.attempts)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S29
#[tokio::test]
async fn a_failure_is_caught_once_when_its_retries_are_used_up() {
    let run = Scenario::new(Caught).start(Begin(0)).await;
    run.assert_quality(Quality::Degraded);
    expect![[r#"
        #1 Begin from outside: 0
        x1 work by #1: failed (tool): no 3
           attempt 1 failed (tool): no 1; retried at once
           attempt 2 failed (tool): no 2; retried at once
        #2 work.failed of x1: {"attempts":3,"class":"tool","error":"no 3","execution":1,"step":"work"}
        x2 give_up by #2: succeeded
        #3 Done of x2: 3
        completed with #3, degraded
    "#]]
    .assert_eq(&run.transcript());
}

// S32
#[tokio::test]
async fn the_time_until_a_retry_is_the_runs_own() {
    let within = |seconds| RunOptions::new().timeout(Duration::from_secs(seconds));
    let (run, began) = flaky(&[ErrorClass::Transient], |scenario| scenario.options(within(9))).await;
    assert_eq!((run.status(), run.elapsed(), began), (RunStatus::TimedOut, Duration::from_secs(9), vec![0]));
    let (run, began) = flaky(&[ErrorClass::Transient], |scenario| scenario.options(within(11))).await;
    run.assert_output(&Done(1));
    assert_eq!(began, [0, 10]);
}

// S31
#[tokio::test]
async fn a_run_that_is_cancelled_between_two_attempts_makes_no_other() {
    let enough = Duration::from_secs(20);
    let cancelled =
        |scenario: workflow_testkit::ScenarioOf<super::Flaky>| scenario.cancel_after(enough, "enough");
    let (run, began) = flaky(&[ErrorClass::Transient; 3], cancelled).await;
    assert_eq!((run.status(), run.elapsed(), began), (RunStatus::Cancelled, enough, vec![0, 10]));
}

/// Blocks a thread until cancelled.
struct Blocking(Sender<()>);

#[workflow]
impl Blocking {
    #[step(timeout = "20ms", retry = RetryPolicy::none())]
    async fn block(&self, begin: &Begin) -> Result<Done, StepError> {
        let told = self.0.clone();
        let blocked = blocking(move |cancellation| {
            while !cancellation.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            told.send(())
        });
        blocked.await??;
        Ok(Done(begin.0))
    }
}

#[tokio::test]
async fn blocking_work_learns_that_its_attempt_has_timed_out() {
    let (sender, told): (_, Receiver<()>) = channel();
    let Err(RunError::StepFailed { source, .. }) = Blocking(sender).run(Begin(1)).await else { panic!() };
    assert!(source.downcast_ref::<TimedOut>().is_some());
    told.recv_timeout(Duration::from_secs(10)).unwrap();
}

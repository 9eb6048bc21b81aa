//! Virtual time takes no real time, and a scenario that would not end is given up.

use std::sync::mpsc;
use std::time::Duration;

use futures::FutureExt as _;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::support::{Answer, Question, Research, failure, question};

#[tokio::test]
async fn steps_that_sleep_for_hours_take_virtual_hours() {
    let run = Scenario::new(Research).start(question()).await;
    run.assert_output(&Answer("why, 3 points".into()));
    assert_eq!(run.elapsed(), Duration::from_hours(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scenario_does_not_depend_on_the_runtime_of_its_test() {
    let [first, second] =
        [(); 2].map(|()| tokio::spawn(Scenario::new(Research).start(question()).into_future()));
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!(first.transcript(), second.transcript());
    assert_eq!(first.elapsed(), second.elapsed());
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Hurry;

/// Takes an hour unless told to hurry; reports which.
struct Slow(mpsc::Sender<&'static str>);

#[workflow]
impl Slow {
    #[step]
    async fn think(&self, _question: &Question) -> Answer {
        tokio::time::sleep(Duration::from_hours(1)).await;
        let _ = self.0.send("thought");
        Answer("thought".into())
    }

    #[step]
    async fn guess(&self, _hurry: &Hurry) -> Answer {
        let _ = self.0.send("guessed");
        Answer("guessed".into())
    }
}

#[test]
fn the_clock_does_not_run_ahead_of_the_script_while_the_test_is_busy() {
    let (says, said) = mpsc::channel();
    let scenario = Scenario::new(Slow(says)).send_after(Duration::from_mins(1), Hurry);
    let mut run = scenario.start(question()).into_future();
    // From now on the run continues on its own thread; it may even have ended by now.
    let ended = run.as_mut().now_or_never();
    assert_eq!(said.recv(), Ok("guessed"));
    let run = ended.unwrap_or_else(|| futures::executor::block_on(run));
    run.assert_output(&Answer("guessed".into()));
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Leg(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
struct Arrived(u64);

/// Many concurrent legs, some of which take equally long.
struct Relay;

#[workflow]
impl Relay {
    #[step]
    async fn start(&self, _question: &Question) -> FanOut<Leg> {
        (0..100).map(Leg).collect()
    }

    #[step]
    async fn run_leg(&self, leg: &Leg) -> Arrived {
        tokio::time::sleep(Duration::from_secs(leg.0 * 7 % 10)).await;
        tokio::task::yield_now().await;
        Arrived(leg.0)
    }

    #[step]
    async fn answer(&self, arrived: &Gather<Arrived>) -> Answer {
        Answer(arrived.len().to_string())
    }
}

#[tokio::test]
async fn steps_interleave_in_the_same_order_each_time() {
    let first = Scenario::new(Relay).start(question()).await;
    let arrived: Vec<u64> = first.emitted::<Arrived>().iter().map(|arrived| arrived.0 * 7 % 10).collect();
    assert!(arrived.is_sorted(), "the order is that of the clock: {arrived:?}");
    for _ in 0..20 {
        assert_eq!(Scenario::new(Relay).start(question()).await.transcript(), first.transcript());
    }
}

#[test]
fn a_scenario_needs_no_runtime_of_its_test() {
    let run = futures::executor::block_on(Scenario::new(Research).start(question()).into_future());
    run.assert_executions("answer", 1);
}

#[derive(Clone, Copy)]
enum How {
    Pends,
    Sleeps,
    Yields,
}

/// A workflow that does not end.
struct Endless(How);

#[workflow]
impl Endless {
    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        match self.0 {
            How::Pends => std::future::pending().await,
            How::Sleeps => loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
            },
            How::Yields => loop {
                tokio::task::yield_now().await;
            },
        }
    }
}

#[tokio::test]
async fn a_step_that_waits_for_what_cannot_happen_fails_the_scenario_with_what_the_run_did() {
    let failure = failure(Scenario::new(Endless(How::Pends)).start(question())).await;
    assert!(
        failure.starts_with("the run does not end: for a year of virtual time nothing happened"),
        "{failure}"
    );
    assert!(
        failure.contains("x1 answer by #1: dropped\ncancelled: the scenario was given up\n"),
        "{failure}"
    );
    assert!(failure.contains("`answer`"), "the explanation follows: {failure}");
}

#[tokio::test]
async fn a_step_that_wakes_up_for_ever_fails_the_scenario() {
    for how in [How::Sleeps, How::Yields] {
        let failure = failure(Scenario::new(Endless(how)).start(question())).await;
        let why = "the run does not end: one call of `answer` was polled 100000 times\n";
        assert!(failure.starts_with(why), "{failure}");
    }
}

/// Waits for ever, while a detached task wakes up each second.
struct Ticking;

#[workflow]
impl Ticking {
    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        tokio::spawn(async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_run_in_which_nothing_happens_but_that_time_passes_fails_the_scenario() {
    let failure = failure(Scenario::new(Ticking).start(question())).await;
    let why = "the run does not end: its clock jumped 1000000 times and nothing happened in it, ";
    assert!(failure.starts_with(why), "{failure}");
    assert!(
        failure.contains("x1 answer by #1: dropped\ncancelled: the scenario was given up\n"),
        "{failure}"
    );
}

/// Waits for a computation on its own thread.
struct Computing;

#[workflow]
impl Computing {
    #[step]
    async fn answer(&self, question: &Question) -> Result<Answer, StepError> {
        let text = question.0.clone();
        let compute = tokio::task::spawn_blocking(move || text.to_uppercase());
        Ok(Answer(tokio::time::timeout(Duration::from_secs(1), compute).await??))
    }
}

#[tokio::test]
async fn the_clock_stands_still_while_a_step_computes_on_a_blocking_thread() {
    let run = Scenario::new(Computing).start(question()).await;
    run.assert_output(&Answer("WHY".into()));
    assert_eq!(run.elapsed(), Duration::ZERO);
}

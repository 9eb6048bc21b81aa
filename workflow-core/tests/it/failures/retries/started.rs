//! Runs that an attempt starts without waiting: they continue when the attempt fails (S31, S35).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{RunHandle, RunOptions, RunStatus};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Alive, Begin, Done, Seen, until};

/// Runs for an hour.
struct Errand(Alive, Seen);

#[workflow]
impl Errand {
    #[step]
    async fn go(&self, begin: &Begin) -> Done {
        let _alive = self.0.guard();
        tokio::time::sleep(Duration::from_hours(1)).await;
        self.1.note(begin.0.to_string());
        Done(begin.0)
    }
}

/// Starts two of them in each attempt, one with a name, and fails this often.
struct Sends(u32);

#[workflow]
impl Sends {
    #[step]
    async fn send(&self, begin: &Begin, children: &Children, info: &RunInfo) -> Result<Done, StepError> {
        children.start::<Errand>(Begin(info.attempt())).await?;
        children.start_with::<Errand>(Begin(info.attempt()), RunOptions::new().id("eu")).await?;
        if info.attempt() <= self.0 { Err(StepError::transient("torn")) } else { Ok(Done(begin.0)) }
    }
}

async fn sends(alive: &Alive, seen: &Seen, fails: u32) -> (Engine, RunHandle<Sends>) {
    let engine = Engine::builder().workflow(Sends(fails)).workflow(Errand(alive.clone(), seen.clone()));
    let engine = engine.clock(VirtualClock::new()).build().unwrap();
    let run = engine.start_with::<Sends>(Begin(7), RunOptions::new().id("r")).await.unwrap();
    (engine, run)
}

fn running(engine: &Engine) -> Vec<String> {
    let mut running: Vec<String> = engine.running().iter().map(ToString::to_string).collect();
    running.sort_unstable();
    running
}

#[tokio::test(start_paused = true)]
async fn children_started_by_a_failed_attempt_continue_beside_those_of_the_next() {
    let (alive, seen) = (Alive::default(), Seen::default());
    let (engine, run) = sends(&alive, &seen, 1).await;
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    let started = ["r/send-x1.1", "r/send-x1.a2.1", "r/send-x1.a2.eu", "r/send-x1.eu"];
    assert_eq!((running(&engine), alive.count()), (started.map(String::from).to_vec(), 4));
    let report = run.report().await.unwrap();
    let children = report.children.iter().map(|child| (child.child.run.as_str(), child.child.attempt));
    let expected = [("r/send-x1.1", 1), ("r/send-x1.eu", 1), ("r/send-x1.a2.1", 2), ("r/send-x1.a2.eu", 2)];
    assert_eq!(children.collect::<Vec<_>>(), expected);
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!(engine.running(), []);
    assert_eq!(seen.lines(), ["1", "1", "2", "2"]);
}

#[tokio::test(start_paused = true)]
async fn started_children_continue_when_the_last_attempt_has_failed() {
    let (alive, seen) = (Alive::default(), Seen::default());
    let (engine, run) = sends(&alive, &seen, 9).await;
    assert!(matches!(run.outcome().await, Err(RunError::StepFailed { attempts: 4, .. })));
    assert_eq!((engine.running().len(), alive.count()), (8, 8));
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!((engine.running().len(), seen.lines().len()), (0, 8));
}

// S31
#[tokio::test(start_paused = true)]
async fn children_started_by_all_attempts_end_before_their_cancelled_parent() {
    let (alive, seen) = (Alive::default(), Seen::default());
    let (engine, run) = sends(&alive, &seen, 9).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(alive.count(), 4);
    run.cancel("enough").await.unwrap();
    assert_eq!((run.status(), engine.running()), (RunStatus::Cancelled, vec![]));
    until(|| alive.count() == 0).await;
    let report = run.report().await.unwrap();
    assert!(report.children.iter().all(|child| child.status == RunStatus::Cancelled));
    assert!(seen.lines().is_empty());
}

//! Branches that only wait, beside a bound (S50).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::{OpenRequest, RequestId};
use workflow_core::store::MemoryStore;
use workflow_core::{RunStatus, StepFailed};
use workflow_testkit::{Scenario, explore};

use super::Level;
use crate::fixtures::{Begin, Done, Item, Part};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Approve(u32);

/// Each branch prepares, asks, and books what was approved. `level` counts the branches that work.
struct Approvals {
    most: u32,
    level: Level,
}

#[workflow]
impl Approvals {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(self.most)
    }

    #[step]
    async fn ask(&self, item: &Item) -> Approve {
        self.level.rise();
        tokio::task::yield_now().await;
        self.level.fall();
        Approve(item.0)
    }

    #[step]
    async fn book(&self, item: &Item, approved: &Reply<Approve>) -> Part {
        assert_eq!(item.0, approved.request().0);
        Part(**approved)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

fn approvals(most: u32) -> Approvals {
    Approvals { most, level: Level::default() }
}

// S42, S50
#[tokio::test]
async fn ten_thousand_approvals_are_all_asked_for_beside_a_bound_of_eight() {
    const APPROVALS: u32 = 10_000;
    let workflow = approvals(8);
    let level = workflow.level.clone();
    let engine = Engine::builder().workflow(workflow).store(MemoryStore::default()).build().unwrap();
    let run = engine.start::<Approvals>(Begin(APPROVALS)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    assert_eq!(level.highest(), 8);
    let open = run.requests().await.unwrap();
    let open: Vec<RequestId<Approve>> = open.iter().filter_map(OpenRequest::id::<Approve>).collect();
    assert_eq!(open.len(), APPROVALS as usize);
    for request in open {
        run.reply(request, 1).await.unwrap();
    }
    assert_eq!(run.outcome().await.unwrap(), Done(APPROVALS));
}

// S50
#[test]
fn every_order_of_replies_beside_a_bound_leads_to_the_same_result() {
    let scenario = || Scenario::new(approvals(1)).reply(|ask: &Approve| 10 * ask.0);
    explore(|| scenario().start(Begin(3))).every_order().orders(200).assert(|run| {
        run.assert_output(&Done(30));
        run.assert_executions("ask", 3);
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Later(u32);

/// The first branch sets a timer, the second one is retried after a delay, and the third one only works.
struct Delays;

#[workflow]
impl Delays {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1)
    }

    #[step]
    async fn work(
        &self,
        item: &Item,
        info: &RunInfo,
    ) -> Result<(Option<Timer<Later>>, Option<Part>), StepError> {
        match (item.0, info.attempt()) {
            (0, _) => Ok((Some(Timer::after(Duration::from_secs(100), Later(0))), None)),
            (1, 1) => Err(StepError::transient("busy")),
            (other, _) => Ok((None, Some(Part(other)))),
        }
    }

    #[step]
    async fn wake(&self, later: &Later) -> Part {
        Part(later.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

// S36, S50
#[tokio::test(start_paused = true)]
async fn a_branch_that_waits_for_a_retry_counts_and_one_that_waits_for_a_timer_does_not() {
    let run = Scenario::new(Delays).start(Begin(3)).await;
    run.assert_output(&Done(3));
    let work: Vec<_> = run.report().trace.iter().filter(|trace| &*trace.step == "work").collect();
    // The second branch opened at once, and the third one when the retry was over.
    assert!(work[1].started < Duration::from_secs(1), "{}", run.transcript());
    assert!(work[2].started >= Duration::from_secs(5), "{}", run.transcript());
    assert!(work[2].started < Duration::from_secs(100), "{}", run.transcript());
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Quick(u32);

/// Requests that expire, caught failures, and a bound of one.
struct Expires;

#[workflow]
impl Expires {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1)
    }

    #[step]
    async fn ask(&self, item: &Item) -> Expiring<Quick> {
        Quick(item.0).expires_in(Duration::from_secs(u64::from(item.0) + 1))
    }

    #[step]
    async fn replied(&self, reply: &Reply<Quick>) -> Part {
        Part(**reply)
    }

    #[step]
    async fn expired(&self, expired: &Expired<Quick>) -> Result<Part, StepError> {
        Err(StepError::permanent(format!("nobody answered {}", expired.request().0)))
    }

    #[step(catches = [expired])]
    async fn mend(&self, _failed: &StepFailed) -> Part {
        Part(0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

// S29, S32, S50
#[tokio::test(start_paused = true)]
async fn requests_that_expire_are_all_open_at_once_and_their_branches_continue_with_the_failure() {
    let run = Scenario::new(Expires).start(Begin(4)).await;
    run.assert_output(&Done(4));
    let asked = run.report().trace.iter().filter(|trace| &*trace.step == "ask");
    assert!(asked.clone().count() == 4 && asked.into_iter().all(|ask| ask.started < Duration::from_secs(1)));
    run.assert_executions("mend", 4);
}

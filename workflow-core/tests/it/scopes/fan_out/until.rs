//! Fan-outs of which some branches are enough (S50).

use std::time::Duration;

use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::report::{OpenRequest, Quality};
use workflow_core::{FanOutPolicy, SendError};
use workflow_testkit::{Scenario, ScenarioOf, explore};

use super::{Told, told};
use crate::fixtures::{Alive, Alpha, Begin, Done, Item, Part};

/// A race of models: item n answers after n seconds, unless it is one of those that fail at once.
struct Race {
    enough: u32,
    failing: &'static [u32],
    policy: FanOutPolicy,
    alive: Alive,
}

#[workflow]
impl Race {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (0..begin.0).map(Item).collect();
        let items = items.until(self.enough);
        match self.policy {
            FanOutPolicy::ContinueOthers => items.continue_others(),
            FanOutPolicy::WaitAll => items.wait_all(),
            _ => items.fail_all(),
        }
    }

    #[step]
    async fn ask(&self, item: &Item) -> Result<Part, StepError> {
        let _alive = self.alive.guard();
        if self.failing.contains(&item.0) {
            return Err(StepError::permanent("no model"));
        }
        sleep(Duration::from_secs(u64::from(item.0))).await;
        Ok(Part(item.0))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Told {
        // The run drops them before anything else has its turn.
        tokio::task::yield_now().await;
        assert_eq!(self.alive.count(), 0, "what was dropped does not run");
        told(parts.branches().map(|branch| match (branch.event(), branch.failure()) {
            _ if branch.is_dropped() => "dropped".to_owned(),
            (_, Some(failure)) => failure.to_string(),
            (Some(part), None) => part.0.to_string(),
            (None, None) => "nothing".to_owned(),
        }))
    }
}

fn race(enough: u32, failing: &'static [u32], policy: FanOutPolicy) -> ScenarioOf<Race> {
    Scenario::new(Race { enough, failing, policy, alive: Alive::default() })
}

const FAILED: &str = "step `ask` failed: no model";

// S34, S50
#[tokio::test(start_paused = true)]
async fn the_first_answers_are_enough_and_a_model_that_fails_early_does_not_end_the_race() {
    let run = race(2, &[], FanOutPolicy::FailAll).start(Begin(4)).await;
    run.assert_output(&told(["0", "1", "dropped", "dropped"]));
    run.assert_quality(Quality::Clean);
    for policy in [FanOutPolicy::FailAll, FanOutPolicy::ContinueOthers, FanOutPolicy::WaitAll] {
        let run = race(1, &[0, 3], policy).start(Begin(4)).await;
        run.assert_output(&told([FAILED, "1", "dropped", FAILED]));
        run.assert_quality(Quality::Degraded);
    }
}

// S49, S50
#[tokio::test(start_paused = true)]
async fn where_too_few_models_are_left_the_policy_decides_over_all_failures() {
    let run = race(2, &[0, 2], FanOutPolicy::FailAll).start(Begin(3)).await;
    let Err(RunError::BranchesFailed { failures }) = run.outcome() else { panic!("{}", run.transcript()) };
    let items: Vec<u64> = failures.iter().filter_map(|failure| Some(failure.item()?.seq.0)).collect();
    assert_eq!(items, [2, 4]);
    let run = race(2, &[0, 2], FanOutPolicy::ContinueOthers).start(Begin(3)).await;
    run.assert_output(&told([FAILED, "1", FAILED]));
    let run = race(2, &[0, 2], FanOutPolicy::WaitAll).start(Begin(3)).await;
    assert!(matches!(run.outcome(), Err(RunError::BranchesFailed { failures }) if failures.len() == 2));
}

// S50
#[tokio::test(start_paused = true)]
async fn none_is_taken_as_one_and_more_than_there_are_means_all() {
    race(0, &[], FanOutPolicy::FailAll).start(Begin(2)).await.assert_output(&told(["0", "dropped"]));
    race(9, &[], FanOutPolicy::FailAll).start(Begin(2)).await.assert_output(&told(["0", "1"]));
    race(1, &[], FanOutPolicy::FailAll).start(Begin(0)).await.assert_output(&Told(vec![]));
}

// S34, S51
#[tokio::test(start_paused = true)]
async fn report_explanation_and_drawing_say_which_branches_were_dropped_and_why() {
    let run = race(1, &[0], FanOutPolicy::FailAll).start(Begin(4)).await;
    let report = run.report();
    assert!(report.branches.iter().map(|branch| (branch.failed, branch.dropped)).eq([
        (true, false),
        (false, false),
        (false, true),
        (false, true)
    ]));
    let text = report.to_string();
    assert!(text.contains("split opened 4 branches, of which 1 failed and 2 were dropped\n"), "{text}");
    let explanation = run.handle().explain().await.unwrap().to_string();
    let why = "- `split` dropped the branches of #4 `Item` and #5 `Item`: 1 branch is enough (`FanOut::until`), and \
               settled before";
    assert!(explanation.contains(why), "{explanation}");
    let drawn = Race::graph().with_report(report).to_mermaid();
    assert!(drawn.contains(" 4, 1 failed, 2 dropped"), "{drawn}");
}

/// Items that answer whenever the explorer lets them.
struct AnyOrder;

#[workflow]
impl AnyOrder {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().until(1)
    }

    #[step]
    async fn ask(&self, item: &Item) -> Part {
        tokio::task::yield_now().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        assert_eq!((parts.ok().count(), parts.dropped().count()), (1, 2));
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S50
#[test]
fn any_branch_can_be_the_first_and_exploration_finds_each() {
    let explored = explore(|| Scenario::new(AnyOrder).start(Begin(3))).orders(200).assert(|run| {
        assert!(run.outcome().is_ok(), "{}", run.transcript());
    });
    let mut outputs: Vec<&str> = explored.outcomes().filter_map(|outcome| outcome.output()).collect();
    outputs.sort_unstable();
    outputs.dedup();
    assert_eq!(outputs, ["Done 0", "Done 1", "Done 2"]);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

/// The first of several people who answers.
struct FirstOf;

#[workflow]
impl FirstOf {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().until(1)
    }

    #[step]
    async fn ask(&self, item: &Item) -> Ask {
        Ask(item.0)
    }

    #[step]
    async fn take(&self, reply: &Reply<Ask>) -> Part {
        Part(**reply)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>, _alpha: &Alpha) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S33, S50
#[tokio::test]
async fn the_requests_of_dropped_branches_are_closed() {
    let mut run = Scenario::new(FirstOf).start(Begin(3)).await;
    let open = run.handle().requests().await.unwrap();
    let requests: Vec<_> = open.iter().filter_map(OpenRequest::id::<Ask>).collect();
    run.handle().reply(requests[1], 7).await.unwrap();
    run.settled().await;
    assert!(run.handle().requests().await.unwrap().is_empty());
    let late = run.handle().reply(requests[0], 1).await;
    assert!(matches!(late, Err(SendError::NotOpen { .. })), "{late:?}");
    run.handle().send(Alpha(0)).await.unwrap();
    run.settled().await;
    run.assert_output(&Done(7));
}

/// Items that settle in the order of their sleeps.
struct Runners {
    enough: Option<u32>,
}

#[workflow]
impl Runners {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (0..begin.0).rev().map(Item).collect();
        match self.enough {
            Some(enough) => items.until(enough),
            None => items,
        }
    }

    #[step]
    async fn run(&self, item: &Item) -> Part {
        // Items 2 and 3 arrive together.
        sleep(Duration::from_secs(u64::from(item.0.min(2)))).await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part, Item>) -> Told {
        told(
            parts
                .branches()
                .map(|branch| format!("{}: {}", branch.item::<Item>().unwrap().0, branch.settled())),
        )
    }
}

// S50, S59
#[tokio::test(start_paused = true)]
async fn a_gather_says_in_which_order_its_branches_settled() {
    let run = Scenario::new(Runners { enough: None }).start(Begin(4)).await;
    run.assert_output(&told(["3: 2", "2: 3", "1: 1", "0: 0"]));
    assert!(run.report().log.iter().any(workflow_core::report::LoggedEvent::is_order_read));
    // Dropped ones follow, in the order of the items.
    let run = Scenario::new(Runners { enough: Some(2) }).start(Begin(4)).await;
    run.assert_output(&told(["3: 2", "2: 3", "1: 1", "0: 0"]));
    let run = Scenario::new(Runners { enough: Some(1) }).start(Begin(3)).await;
    run.assert_output(&told(["2: 1", "1: 2", "0: 0"]));
}

//! The number of open branches, and their order (S50).

use workflow_core::RunStatus;
use workflow_core::prelude::*;
use workflow_core::report::OpenRequest;
use workflow_testkit::{Scenario, ScenarioOf, TestRun, explore};

use super::{Level, Noted, noted};
use crate::fixtures::{Alpha, Begin, Done, Item, Part, log_of};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = ())]
struct Ask(u32);

/// Each branch makes a request; it counts as open from the start of its first step to the end of its second.
struct Bounded {
    most: u32,
    level: Level,
}

#[workflow]
impl Bounded {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(self.most)
    }

    #[step]
    async fn first(&self, item: &Item) -> Ask {
        self.level.rise();
        Ask(item.0)
    }

    #[step]
    async fn second(&self, answer: &Reply<Ask>) -> Part {
        tokio::task::yield_now().await;
        self.level.fall();
        Part(answer.request().0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        assert!(parts.ok().map(|part| part.0).eq(0..u32::try_from(parts.len()).unwrap()));
        Done(u32::try_from(parts.len()).unwrap())
    }
}

fn bounded(most: u32) -> ScenarioOf<Bounded> {
    Scenario::new(Bounded { most, level: Level::default() })
}

/// Lets the branch of an item end.
async fn close<W: Workflow>(run: &mut TestRun<W>, item: u32) {
    let open = run.handle().requests().await.unwrap();
    let request =
        open.iter().find(|open| open.downcast_ref() == Some(&Ask(item))).and_then(OpenRequest::id::<Ask>);
    run.handle().reply(request.unwrap(), ()).await.unwrap();
    run.settled().await;
}

// S50
#[test]
fn no_more_branches_are_open_than_asked_for_and_they_open_in_order() {
    for most in [1, 3, 7] {
        let level = Level::default();
        let bounded = || Scenario::new(Bounded { most, level: level.clone() }).reply(|_: &Ask| ());
        explore(|| bounded().start(Begin(40))).orders(10).assert(|run| {
            run.assert_output(&Done(40));
            assert_eq!(level.now(), 0);
            let first = run.report().trace.iter().filter(|trace| &*trace.step == "first");
            assert!(first.map(|first| first.trigger).is_sorted());
        });
        assert_eq!(level.highest(), most as usize);
    }
}

// S50
#[tokio::test]
async fn a_branch_opens_when_one_before_it_has_settled_whichever_that_is() {
    let mut run = bounded(2).start(Begin(4)).await;
    for (open, settles) in [(2, 1), (3, 2), (4, 0), (4, 3)] {
        run.assert_executions("first", open);
        close(&mut run, settles).await;
    }
    run.assert_output(&Done(4));
}

// S50
#[tokio::test]
async fn a_bound_of_none_is_taken_as_one_and_a_larger_one_than_the_items_does_no_harm() {
    for (most, open) in [(0, 1), (100, 5)] {
        bounded(most).start(Begin(5)).await.assert_executions("first", open);
        bounded(most).reply(|_: &Ask| ()).start(Begin(5)).await.assert_output(&Done(5));
    }
}

// S50
#[tokio::test]
async fn without_a_bound_every_branch_opens_at_once() {
    bounded(u32::MAX).start(Begin(100)).await.assert_executions("first", 100);
    bounded(u32::MAX).reply(|_: &Ask| ()).start(Begin(100)).await.assert_output(&Done(100));
}

// S50
#[tokio::test]
async fn items_are_in_the_log_before_their_branches_open() {
    let mut run = bounded(1).start(Begin(3)).await;
    run.handle().cancel("the test has seen enough").await.unwrap();
    run.settled().await;
    assert_eq!(log_of(run.report()), ["Begin", "Item", "Item", "Item", "Ask"]);
    run.assert_executions("first", 1);
}

/// One branch after the other, with outside events in between.
struct OneByOne;

#[workflow]
impl OneByOne {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1)
    }

    #[step]
    async fn hold(&self, item: &Item) -> Ask {
        Ask(item.0)
    }

    #[step(reruns)]
    async fn look(&self, item: &Item, alpha: Option<&Alpha>) -> Noted {
        Noted(format!("{} {:?}", item.0, alpha.map(|alpha| alpha.0)))
    }

    #[step]
    async fn answered(&self, answer: &Reply<Ask>) -> Part {
        Part(answer.request().0)
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(0)
    }
}

// S46, S50
#[tokio::test]
async fn a_branch_that_opens_later_sees_what_was_logged_outside_meanwhile() {
    let mut run = Scenario::new(OneByOne).start(Begin(3)).await;
    for number in 0..3 {
        run.handle().send(Alpha(number)).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        close(&mut run, number).await;
    }
    run.assert_output(&Done(0));
    // Each branch records when it opens, and at each arrival while it is open.
    let expected = ["0 None", "0 Some(0)", "1 Some(0)", "1 Some(1)", "2 Some(1)", "2 Some(2)"];
    assert_eq!(noted(&run), expected);
}

// S49, S50
#[tokio::test]
async fn a_failure_that_drops_the_others_opens_no_more_of_them() {
    struct Failing;

    #[workflow]
    impl Failing {
        #[step]
        async fn split(&self, begin: &Begin) -> FanOut<Item> {
            (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(2)
        }

        #[step]
        async fn work(&self, item: &Item) -> Result<Part, StepError> {
            tokio::task::yield_now().await;
            if item.0 == 3 { Err(StepError::permanent("no more")) } else { Ok(Part(item.0)) }
        }

        #[step]
        async fn end(&self, _parts: &Gather<Part>) -> Done {
            Done(0)
        }
    }

    let run = Scenario::new(Failing).start(Begin(10)).await;
    assert!(matches!(run.outcome(), Err(RunError::StepFailed { .. })));
    assert!(run.executions("work") <= 5, "{}", run.transcript());
}

//! How many branches are open at a time, and in which order they open (S50).

use workflow_core::RunStatus;
use workflow_core::prelude::*;

use super::{Gates, Level, Random};
use crate::fixtures::{Alpha, Begin, Done, Item, Part, Seen, everyone_else, started};

/// Each branch takes two steps; it counts as open from the beginning of the first to the end of the second.
struct Bounded {
    most: u32,
    gates: Gates,
    level: Level,
    seen: Seen,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Half(u32);

#[workflow]
impl Bounded {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(self.most)
    }

    #[step]
    async fn first(&self, item: &Item) -> Half {
        self.level.rise();
        self.seen.note(item.0.to_string());
        self.gates.pass(item.0).await;
        Half(item.0)
    }

    #[step]
    async fn second(&self, half: &Half) -> Part {
        tokio::task::yield_now().await;
        self.level.fall();
        Part(half.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        assert!(parts.ok().map(|part| part.0).eq(0..u32::try_from(parts.len()).unwrap()));
        Done(u32::try_from(parts.len()).unwrap())
    }
}

fn bounded(most: u32, gates: &Gates) -> (Bounded, Level, Seen) {
    let (level, seen) = (Level::default(), Seen::default());
    (Bounded { most, gates: gates.clone(), level: level.clone(), seen: seen.clone() }, level, seen)
}

fn numbers(to: u32) -> Vec<String> {
    (0..to).map(|number| number.to_string()).collect()
}

// S50
#[tokio::test]
async fn no_more_branches_are_open_than_asked_for_and_they_open_in_order() {
    for most in [1, 3, 7] {
        let gates = Gates::closed(40);
        let (workflow, level, seen) = bounded(most, &gates);
        let run = started(workflow, 40).await;
        for place in Random::seeded(u64::from(most)).order_of(40) {
            gates.open(place);
            tokio::task::yield_now().await;
        }
        assert_eq!(run.outcome().await.unwrap(), Done(40));
        assert_eq!((level.highest(), level.now()), (most as usize, 0));
        assert_eq!(seen.lines(), numbers(40));
    }
}

// S50
#[tokio::test]
async fn a_branch_opens_when_one_before_it_has_settled_whichever_that_is() {
    let gates = Gates::closed(4);
    let (workflow, _, seen) = bounded(2, &gates);
    let run = started(workflow, 4).await;
    everyone_else().await;
    assert_eq!(seen.lines(), numbers(2));
    gates.open(1);
    everyone_else().await;
    assert_eq!(seen.lines(), numbers(3));
    gates.open(2);
    everyone_else().await;
    assert_eq!(seen.lines(), numbers(4));
    gates.open(0);
    gates.open(3);
    assert_eq!(run.outcome().await.unwrap(), Done(4));
}

// S50
#[tokio::test]
async fn a_bound_of_none_is_taken_as_one_and_a_larger_one_than_the_items_does_no_harm() {
    for (most, highest) in [(0, 1), (100, 5)] {
        let gates = Gates::open_all(5);
        let (workflow, level, _) = bounded(most, &gates);
        assert_eq!(workflow.run(Begin(5)).await.unwrap(), Done(5));
        assert!(level.highest() <= highest);
    }
}

// S50
#[tokio::test]
async fn without_a_bound_every_branch_opens_at_once() {
    let gates = Gates::closed(100);
    let (workflow, level, _) = bounded(u32::MAX, &gates);
    let run = started(workflow, 100).await;
    everyone_else().await;
    assert_eq!(level.now(), 100);
    (0..100).for_each(|place| gates.open(place));
    assert_eq!(run.outcome().await.unwrap(), Done(100));
}

// S50
#[tokio::test]
async fn items_are_in_the_log_before_their_branches_open() {
    let gates = Gates::closed(3);
    let (workflow, _, _) = bounded(1, &gates);
    let run = started(workflow, 3).await;
    everyone_else().await;
    run.cancel("the test has seen enough").await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!(report.log.iter().filter(|logged| &*logged.event == "Item").count(), 3);
    assert_eq!(report.executions("first"), 1);
}

/// One branch after the other, with something from outside in between.
struct OneByOne {
    gates: Gates,
    seen: Seen,
}

#[workflow]
impl OneByOne {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1)
    }

    #[step]
    async fn hold(&self, item: &Item) -> Part {
        self.gates.pass(item.0).await;
        Part(item.0)
    }

    #[step(reruns)]
    async fn look(&self, item: &Item, alpha: Option<&Alpha>) {
        self.seen.note(format!("{} {:?}", item.0, alpha.map(|alpha| alpha.0)));
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(0)
    }
}

// S46, S50
#[tokio::test]
async fn a_branch_that_opens_later_sees_what_was_logged_outside_meanwhile() {
    let (gates, seen) = (Gates::closed(3), Seen::default());
    let run = started(OneByOne { gates: gates.clone(), seen: seen.clone() }, 3).await;
    for number in 0..3 {
        everyone_else().await;
        run.send(Alpha(number)).await.unwrap();
        everyone_else().await;
        assert_eq!(run.status(), RunStatus::Running);
        gates.open(number as usize);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    // Each branch looks when it opens, and again at what arrives while it is open.
    let expected = ["0 None", "0 Some(0)", "1 Some(0)", "1 Some(1)", "2 Some(1)", "2 Some(2)"];
    assert_eq!(seen.lines(), expected);
}

// S49, S50
#[tokio::test]
async fn a_failure_that_drops_the_others_opens_no_more_of_them() {
    struct Failing(Seen);

    #[workflow]
    impl Failing {
        #[step]
        async fn split(&self, begin: &Begin) -> FanOut<Item> {
            (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(2)
        }

        #[step]
        async fn work(&self, item: &Item) -> Result<Part, StepError> {
            self.0.note(item.0.to_string());
            tokio::task::yield_now().await;
            if item.0 == 3 { Err(StepError::permanent("no more")) } else { Ok(Part(item.0)) }
        }

        #[step]
        async fn end(&self, _parts: &Gather<Part>) -> Done {
            Done(0)
        }
    }

    let seen = Seen::default();
    let error = Failing(seen.clone()).run(Begin(10)).await.unwrap_err();
    assert!(matches!(error, RunError::StepFailed { .. }), "{error}");
    assert!(seen.lines().len() <= 5, "{:?}", seen.lines());
}

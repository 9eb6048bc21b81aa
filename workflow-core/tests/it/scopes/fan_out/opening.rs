//! The number of open branches, and their order (S50).

use std::sync::{Arc, Mutex};

use workflow_core::RunHandle;
use workflow_core::prelude::*;
use workflow_testkit::{Scenario, explore};

use super::{Gates, Level, Noted};
use crate::fixtures::{Alpha, Begin, Done, Item, Part, everyone_else, log_of, started};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Begun(u32);

/// A branch counts as open from the start of its first step to the end of its second, which waits for a gate.
struct Bounded {
    most: u32,
    level: Level,
    gates: Gates,
}

#[workflow]
impl Bounded {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(self.most)
    }

    #[step]
    async fn first(&self, item: &Item) -> Begun {
        self.level.rise();
        Begun(item.0)
    }

    #[step]
    async fn second(&self, begun: &Begun) -> Part {
        tokio::task::yield_now().await;
        self.gates.pass(begun.0).await;
        self.level.fall();
        Part(begun.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        assert!(parts.ok().map(|part| part.0).eq(0..u32::try_from(parts.len()).unwrap()));
        Done(u32::try_from(parts.len()).unwrap())
    }
}

fn bounded(most: u32, items: usize) -> Bounded {
    Bounded { most, level: Level::default(), gates: Gates::closed(items) }
}

/// Branches that no gate holds up.
fn unhindered(most: u32, items: usize) -> Bounded {
    let bounded = bounded(most, items);
    (0..items).for_each(|item| bounded.gates.open(item));
    bounded
}

/// A run whose branches wait for their gates, and the gates.
async fn held_up(most: u32, items: u32) -> (RunHandle<Bounded>, Gates) {
    let bounded = bounded(most, items as usize);
    let gates = bounded.gates.clone();
    let run = started(bounded, items).await;
    everyone_else().await;
    (run, gates)
}

async fn opened(run: &RunHandle<Bounded>) -> u64 {
    everyone_else().await;
    run.report_so_far().await.unwrap().executions("first")
}

// S50
#[test]
fn no_more_branches_are_open_than_asked_for_and_they_open_in_order() {
    for most in [1, 3, 7] {
        let levels = Arc::new(Mutex::new(Vec::new()));
        let bounded = || {
            let bounded = unhindered(most, 40);
            levels.lock().unwrap().push(bounded.level.clone());
            Scenario::new(bounded)
        };
        explore(|| bounded().start(Begin(40))).orders(10).assert(|run| {
            run.assert_output(&Done(40));
            let first = run.report().trace.iter().filter(|trace| &*trace.step == "first");
            assert!(first.map(|first| first.trigger).is_sorted());
        });
        let levels = levels.lock().unwrap();
        assert!(levels.iter().all(|level| level.highest() <= most as usize));
        assert!(levels.iter().any(|level| level.highest() == most as usize));
    }
}

// S50
#[tokio::test]
async fn a_branch_opens_when_one_before_it_has_settled_whichever_that_is() {
    let (run, gates) = held_up(2, 4).await;
    for (open, settles) in [(2, 1), (3, 2), (4, 0), (4, 3)] {
        assert_eq!(opened(&run).await, open);
        gates.open(settles);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(4));
}

// S50
#[tokio::test]
async fn a_bound_of_none_is_taken_as_one_and_a_larger_one_than_the_items_does_no_harm() {
    for (most, open) in [(0, 1), (100, 5)] {
        let (run, _gates) = held_up(most, 5).await;
        assert_eq!(opened(&run).await, open);
        Scenario::new(unhindered(most, 5)).start(Begin(5)).await.assert_output(&Done(5));
    }
}

// S50
#[tokio::test]
async fn without_a_bound_every_branch_opens_at_once() {
    let (run, _gates) = held_up(u32::MAX, 100).await;
    assert_eq!(opened(&run).await, 100);
    Scenario::new(unhindered(u32::MAX, 100)).start(Begin(100)).await.assert_output(&Done(100));
}

// S50
#[tokio::test]
async fn items_are_in_the_log_before_their_branches_open() {
    let (run, _gates) = held_up(1, 3).await;
    run.cancel("the test has seen enough").await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!(log_of(&report), ["Begin", "Item", "Item", "Item", "Begun"]);
    assert_eq!(report.executions("first"), 1);
}

/// One branch after the other, with outside events in between.
struct OneByOne(Gates);

#[workflow]
impl OneByOne {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1)
    }

    #[step]
    async fn hold(&self, item: &Item) -> Part {
        self.0.pass(item.0).await;
        Part(item.0)
    }

    #[step(reruns)]
    async fn look(&self, item: &Item, alpha: Option<&Alpha>) -> Noted {
        Noted(format!("{} {:?}", item.0, alpha.map(|alpha| alpha.0)))
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(0)
    }
}

// S46, S50
#[tokio::test]
async fn a_branch_that_opens_later_sees_what_was_logged_outside_meanwhile() {
    let gates = Gates::closed(3);
    let run = started(OneByOne(gates.clone()), 3).await;
    for number in 0..3 {
        everyone_else().await;
        run.send(Alpha(number)).await.unwrap();
        everyone_else().await;
        gates.open(number as usize);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    let report = run.report().await.unwrap();
    let noted = report.log.iter().filter_map(|logged| logged.value.downcast_ref::<Noted>());
    // Each branch records when it opens, and at each arrival while it is open.
    let expected = ["0 None", "0 Some(0)", "1 Some(0)", "1 Some(1)", "2 Some(1)", "2 Some(2)"];
    assert_eq!(noted.map(|noted| noted.0.as_str()).collect::<Vec<_>>(), expected);
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

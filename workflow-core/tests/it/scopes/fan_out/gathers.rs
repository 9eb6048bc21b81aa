//! The contents of a gather (S48).

use workflow_core::prelude::*;
use workflow_core::{Branch, ScopeId};
use workflow_testkit::{Scenario, explore};

use super::{Told, told};
use crate::fixtures::{Begin, Done, Item, Part};

/// Items 0 to 4: the third makes a part and then fails, the fourth makes two parts, the fifth none.
struct Mixed(fn(Gather<Part>) -> u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Late;

#[workflow]
impl Mixed {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn work(&self, item: &Item) -> (Vec<Part>, Late) {
        let parts = match item.0 {
            3 => vec![Part(30), Part(31)],
            4 => vec![],
            number => vec![Part(10 * number)],
        };
        (parts, Late)
    }

    #[step]
    async fn fail(&self, item: &Item, _late: &Late) -> Result<(), StepError> {
        if item.0 == 2 { Err(StepError::rejected("not today")) } else { Ok(()) }
    }

    #[step]
    async fn end(&self, parts: Gather<Part>) -> Done {
        Done(self.0(parts))
    }
}

async fn look(look: fn(Gather<Part>) -> u32) -> Done {
    Mixed(look).run(Begin(5)).await.unwrap()
}

// S48
#[test]
fn branches_are_in_item_order_for_any_order_of_their_ends() {
    let look: fn(Gather<Part>) -> u32 = |parts| {
        let items: Vec<u32> = parts.branches().map(|branch| branch.item::<Item>().unwrap().0).collect();
        assert_eq!(items, [0, 1, 2, 3, 4]);
        let backwards = parts.branches().rev().map(|branch| branch.item::<Item>().unwrap().0);
        assert!(backwards.eq((0..5).rev()));
        assert_eq!(parts.ok().map(|part| part.0).collect::<Vec<_>>(), [0, 10, 30, 31]);
        7
    };
    let mixed = || Scenario::new(Mixed(look)).start(Begin(5));
    explore(mixed).every_order().orders(50).assert(|run| run.assert_output(&Done(7)));
}

// S48
#[tokio::test]
async fn a_gather_counts_its_branches_and_not_their_events() {
    look(|parts| {
        assert_eq!((parts.len(), parts.is_empty(), parts.branches().len()), (5, false, 5));
        assert_eq!(format!("{parts:?}"), "Gather(5 branches)");
        0
    })
    .await;
}

// S48
#[tokio::test]
async fn a_branch_has_its_item_its_events_and_its_failure() {
    look(|parts| {
        let branches: Vec<Branch<'_, Part>> = parts.branches().collect();
        let events = |branch: &Branch<'_, Part>| branch.events().map(|part| part.0).collect::<Vec<_>>();
        let numbers: Vec<Vec<u32>> = branches.iter().map(events).collect();
        assert_eq!(numbers, [vec![0], vec![10], vec![20], vec![30, 31], vec![]]);
        assert_eq!(branches[3].event(), Some(&Part(30)));
        assert_eq!(branches[4].event(), None);
        let failed: Vec<bool> = branches.iter().map(|branch| branch.failure().is_some()).collect();
        assert_eq!(failed, [false, false, true, false, false]);
        let failure = branches[2].failure().unwrap();
        assert_eq!(failure.step(), "fail");
        assert_eq!(failure.error().class(), workflow_core::ErrorClass::Rejected);
        assert_eq!(failure.to_string(), "step `fail` failed: not today");
        0
    })
    .await;
}

// S48
#[tokio::test]
async fn an_item_can_be_read_by_its_type_or_as_any_type() {
    look(|parts| {
        let branch = parts.branches().nth(1).unwrap();
        assert_eq!(branch.item::<Item>(), Some(&Item(1)));
        assert!(branch.item::<Late>().is_none());
        assert_eq!(branch.any_item().name(), "Item");
        assert_eq!(branch.any_item().downcast_ref::<Item>(), Some(&Item(1)));
        0
    })
    .await;
}

// S48
#[tokio::test]
async fn a_branch_is_found_by_its_item() {
    look(|parts| {
        assert_eq!(parts.branch_of(&Item(1)).unwrap().event(), Some(&Part(10)));
        assert!(parts.branch_of(&Item(2)).unwrap().failure().is_some());
        assert!(parts.branch_of(&Item(5)).is_none());
        assert!(parts.branch_of(&Part(0)).is_none());
        0
    })
    .await;
}

// S48
#[tokio::test]
async fn failed_and_successful_branches_are_distinguished() {
    let done = look(|parts| {
        let failed: Vec<u32> = parts.failed().map(|branch| branch.item::<Item>().unwrap().0).collect();
        assert_eq!(failed, [2]);
        let shared = parts.clone();
        let vec = parts.into_vec();
        assert_eq!(vec, [Part(0), Part(10), Part(30), Part(31)]);
        assert!(shared.ok().eq(&vec));
        u32::try_from(vec.len()).unwrap()
    });
    assert_eq!(done.await, Done(4));
}

// S48, S51
#[tokio::test]
async fn a_branch_of_a_gather_names_the_scope_that_the_report_names() {
    let done = look(|parts| {
        let scopes: Vec<ScopeId> = parts.branches().map(|branch| branch.scope()).collect();
        assert!(scopes.is_sorted() && !scopes.contains(&ScopeId::ROOT));
        scopes[4].0
    });
    let run = Scenario::new(Mixed(|_| 0)).start(Begin(5)).await;
    assert_eq!(run.report().branches[4].scope, ScopeId(done.await.0));
}

// S48
#[tokio::test]
async fn an_empty_gather_is_empty_in_every_respect() {
    let look: fn(Gather<Part>) -> u32 = |parts| {
        assert!(parts.is_empty() && parts.branch_of(&Item(0)).is_none());
        assert_eq!((parts.len(), parts.branches().len()), (0, 0));
        assert_eq!((parts.ok().count(), parts.failed().count(), parts.into_vec().len()), (0, 0, 0));
        7
    };
    assert_eq!(Mixed(look).run(Begin(0)).await.unwrap(), Done(7));
}

/// Gathers the very items; one branch adds an event of the same type.
struct Items;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Twice;

#[workflow]
impl Items {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(precondition = first_of_branch)]
    async fn work(&self, item: &Item) -> Option<Twice> {
        (item.0 == 1).then_some(Twice)
    }

    #[precondition]
    fn first_of_branch(item: &Item) -> bool {
        item.0 < 10
    }

    #[step]
    async fn more(&self, _twice: &Twice) -> Item {
        Item(11)
    }

    #[step]
    async fn end(&self, items: &Gather<Item>) -> Told {
        assert_eq!(items.ok().map(|item| item.0).sum::<u32>(), 14);
        told(items.branches().map(|branch| {
            let events: Vec<u32> = branch.events().map(|item| item.0).collect();
            format!("{} {events:?}", branch.item::<Item>().unwrap().0)
        }))
    }
}

// S48
#[tokio::test]
async fn the_items_themselves_can_be_gathered_with_what_followed_them() {
    let run = Scenario::new(Items).start(Begin(3)).await;
    run.assert_output(&told(["0 [0]", "1 [1, 11]", "2 [2]"]));
}

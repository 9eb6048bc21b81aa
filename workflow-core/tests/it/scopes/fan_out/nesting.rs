//! Fan-outs in branches of fan-outs (S44, S47, S48).

use workflow_core::FanOutPolicy;
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_testkit::{Scenario, explore};

use super::{Noted, noted_sorted};
use crate::fixtures::{Begin, Done, Item, Part, log_of};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// The outer items fan out to as many inner ones as they say.
struct TwoLevels(&'static [u32]);

#[workflow]
impl TwoLevels {
    #[step]
    async fn split(&self, _begin: &Begin) -> FanOut<Outer> {
        self.0.iter().copied().map(Outer).collect()
    }

    #[step]
    async fn again(&self, outer: &Outer) -> FanOut<Item> {
        (0..outer.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, outer: &Outer, parts: &Gather<Part>) -> (Joined, Noted) {
        (Joined(outer.0), Noted(format!("join {} of {}", parts.len(), outer.0)))
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        assert_eq!(joined.len(), self.0.len());
        Done(joined.ok().map(|joined| joined.0).sum())
    }
}

// S48
#[tokio::test]
async fn a_fan_out_may_be_empty_at_either_level() {
    for outers in [&[][..], &[0], &[0, 0, 0], &[0, 2, 0], &[2, 0]] {
        let run = Scenario::new(TwoLevels(outers)).start(Begin(0)).await;
        run.assert_output(&Done(outers.iter().sum()));
        run.assert_quality(Quality::Clean);
        let mut expected: Vec<String> =
            outers.iter().map(|outer| format!("join {outer} of {outer}")).collect();
        expected.sort();
        assert_eq!(noted_sorted(&run), expected);
    }
}

// S47
#[test]
fn an_outer_branch_settles_after_the_step_that_takes_the_inner_gather() {
    explore(|| Scenario::new(TwoLevels(&[1, 2])).start(Begin(0))).assert(|run| {
        run.assert_output(&Done(3));
        run.assert_order("join", "end");
        assert_eq!(noted_sorted(run), ["join 1 of 1", "join 2 of 2"]);
    });
}

/// A step outside of the branch's path takes the inner gather, and no step waits for its result.
struct InnerIgnored;

#[workflow]
impl InnerIgnored {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect()
    }

    #[step]
    async fn again(&self, outer: &Outer) -> (Joined, FanOut<Item>) {
        (Joined(outer.0), (0..2).map(|item| Item(2 * outer.0 + item)).collect())
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, _parts: &Gather<Part>) {}

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        Done(u32::try_from(joined.ok().count()).unwrap())
    }
}

// S47
#[test]
fn an_outer_branch_does_not_settle_while_anything_runs_below_it() {
    explore(|| Scenario::new(InnerIgnored).start(Begin(2))).assert(|run| {
        run.assert_output(&Done(2));
        run.assert_order("work", "end");
        assert!(log_of(run.report()).ends_with(&["split.Outer.gathered", "Done"]));
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Node {
    name: String,
    depth: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
struct Size {
    name: String,
    leaves: u32,
}

/// A tree whose nodes fan out to their children, down to its leaves.
struct Tree;

#[workflow]
impl Tree {
    #[step]
    async fn plant(&self, begin: &Begin) -> Node {
        Node { name: "o".into(), depth: begin.0 }
    }

    #[step(loops)]
    async fn grow(&self, node: &Node) -> FanOut<Node> {
        let children = if node.depth == 0 { 0 } else { 3 };
        let child = |n| Node { name: format!("{}{n}", node.name), depth: node.depth - 1 };
        (0..children).map(child).collect()
    }

    #[step]
    async fn measure(&self, node: &Node, below: &Gather<Size>) -> Size {
        for (branch, n) in below.branches().zip(0..) {
            assert_eq!(branch.item::<Node>().unwrap().name, format!("{}{n}", node.name));
            assert_eq!(branch.event().unwrap().name, format!("{}{n}", node.name));
            assert_eq!(branch.events().count(), 1);
        }
        let leaves: u32 = below.ok().map(|size| size.leaves).sum();
        Size { name: node.name.clone(), leaves: leaves.max(1) }
    }

    #[step(precondition = is_whole)]
    async fn end(&self, size: &Size) -> Done {
        Done(size.leaves)
    }

    #[precondition]
    fn is_whole(size: &Size) -> bool {
        size.name == "o"
    }
}

// S44, S48
#[tokio::test]
async fn a_fan_out_may_open_branches_that_fan_out_the_same_way() {
    let run = Scenario::new(Tree).start(Begin(5)).await;
    run.assert_output(&Done(243));
    // 3 + 9 + 27 + 81 + 243 branches, and the tree's root beside them.
    assert_eq!(run.report().branches.len(), 363);
    assert_eq!(["grow", "measure", "end"].map(|step| run.executions(step)), [364, 364, 1]);
}

// S48
#[tokio::test]
async fn the_leaves_of_a_tree_are_counted_once_each() {
    Scenario::new(Tree).start(Begin(4)).await.assert_output(&Done(81));
}

/// A policy per level; the inner branches of the outer item 1 fail.
struct TwoPolicies {
    outer: FanOutPolicy,
    inner: FanOutPolicy,
}

fn with_policy<E>(items: FanOut<E>, policy: FanOutPolicy) -> FanOut<E> {
    match policy {
        FanOutPolicy::ContinueOthers => items.continue_others(),
        FanOutPolicy::WaitAll => items.wait_all(),
        _ => items.fail_all(),
    }
}

#[workflow]
impl TwoPolicies {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        with_policy((0..begin.0).map(Outer).collect(), self.outer)
    }

    #[step]
    async fn again(&self, _outer: &Outer) -> FanOut<Item> {
        with_policy((0..3).map(Item).collect(), self.inner)
    }

    #[step]
    async fn work(&self, outer: &Outer, item: &Item) -> Result<Part, StepError> {
        if outer.0 == 1 && item.0 < 2 {
            return Err(StepError::permanent(format!("item {}", item.0)));
        }
        Ok(Part(item.0))
    }

    #[step]
    async fn join(&self, outer: &Outer, parts: &Gather<Part>) -> Joined {
        Joined(10 * outer.0 + u32::try_from(parts.failed().count()).unwrap())
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        let failed = u32::try_from(joined.failed().count()).unwrap();
        Done(1_000 * failed + joined.ok().map(|joined| joined.0).sum::<u32>())
    }
}

async fn outcome_of(outer: FanOutPolicy, inner: FanOutPolicy) -> Result<Done, String> {
    let outcome = TwoPolicies { outer, inner }.run(Begin(3)).await;
    outcome.map_err(|error| error.to_string())
}

// S49
#[tokio::test]
async fn the_inner_policy_decides_what_the_outer_one_sees() {
    use FanOutPolicy::{ContinueOthers, FailAll, WaitAll};

    // The outer branch continues with the inner failures in its gather: 0 + 12 + 20.
    for outer in [FailAll, ContinueOthers, WaitAll] {
        assert_eq!(outcome_of(outer, ContinueOthers).await, Ok(Done(32)));
    }
    // The outer branch fails, and the others remain: 0 + 20.
    for inner in [FailAll, WaitAll] {
        assert_eq!(outcome_of(ContinueOthers, inner).await, Ok(Done(1_020)));
    }
    for outer in [FailAll, WaitAll] {
        let error = outcome_of(outer, FailAll).await.unwrap_err();
        assert!(error.contains("item 0") && !error.contains("item 1"), "{error}");
        let error = outcome_of(outer, WaitAll).await.unwrap_err();
        assert!(error.contains("item 0") && error.contains("item 1"), "{error}");
    }
}

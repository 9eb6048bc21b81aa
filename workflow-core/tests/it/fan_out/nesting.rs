//! Fan-outs in branches of fan-outs (S44, S47, S48).

use workflow_core::prelude::*;
use workflow_core::{FanOutPolicy, Quality, RunStatus};

use super::Gates;
use crate::fixtures::{Begin, Done, Gate, Item, Part, Seen, everyone_else, log_of, report_of, started};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// The outer items fan out to as many inner ones as they say.
struct TwoLevels {
    outers: &'static [u32],
    joining: Gate,
    seen: Seen,
}

#[workflow]
impl TwoLevels {
    #[step]
    async fn split(&self, _begin: &Begin) -> FanOut<Outer> {
        self.outers.iter().copied().map(Outer).collect()
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
    async fn join(&self, outer: &Outer, parts: &Gather<Part>) -> Joined {
        self.seen.note(format!("join {} of {}", parts.len(), outer.0));
        self.joining.pass().await;
        Joined(outer.0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        self.seen.note(format!("end {}", joined.len()));
        Done(joined.ok().map(|joined| joined.0).sum())
    }
}

fn two_levels(outers: &'static [u32]) -> (TwoLevels, Gate, Seen) {
    let (joining, seen) = (Gate::closed(), Seen::default());
    (TwoLevels { outers, joining: joining.clone(), seen: seen.clone() }, joining, seen)
}

// S48
#[tokio::test]
async fn a_fan_out_may_be_empty_at_either_level() {
    for outers in [&[][..], &[0], &[0, 0, 0], &[0, 2, 0], &[2, 0]] {
        let (workflow, joining, seen) = two_levels(outers);
        joining.let_pass(10);
        let report = report_of(workflow, 0).await;
        assert_eq!((report.status, report.quality), (RunStatus::Completed, Quality::Clean), "{outers:?}");
        let mut expected: Vec<String> =
            outers.iter().map(|outer| format!("join {outer} of {outer}")).collect();
        let mut lines = seen.lines();
        assert_eq!(lines.pop().unwrap(), format!("end {}", outers.len()));
        expected.sort();
        lines.sort();
        assert_eq!(lines, expected);
    }
}

// S47
#[tokio::test]
async fn an_outer_branch_settles_after_the_step_that_takes_the_inner_gather() {
    let (workflow, joining, seen) = two_levels(&[1, 2]);
    let run = started(workflow, 0).await;
    everyone_else().await;
    assert_eq!(seen.lines(), ["join 1 of 1", "join 2 of 2"]);
    joining.let_pass(1);
    everyone_else().await;
    assert_eq!((run.status(), seen.lines().len()), (RunStatus::Running, 2));
    joining.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    assert_eq!(seen.lines()[2..], ["end 2"]);
}

/// The inner gather is taken by a step outside of the branch's path, and its product is not waited for.
struct InnerIgnored(Gates);

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
        self.0.pass(item.0).await;
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
#[tokio::test]
async fn an_outer_branch_does_not_settle_while_anything_runs_below_it() {
    let gates = Gates::closed(4);
    let run = started(InnerIgnored(gates.clone()), 2).await;
    for place in 0..4 {
        everyone_else().await;
        assert_eq!(run.status(), RunStatus::Running);
        gates.open(place);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    let report = run.report().await.unwrap();
    let names = log_of(&report);
    assert_eq!(names[names.len() - 2..], ["split.Outer.gathered", "Done"]);
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
struct Tree(Seen);

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
        self.0.note(size.name.clone());
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
    let seen = Seen::default();
    let report = report_of(Tree(seen.clone()), 5).await;
    assert_eq!(report.status, RunStatus::Completed);
    // 3 + 9 + 27 + 81 + 243 branches, and the tree's root beside them.
    assert_eq!(report.branches.len(), 363);
    assert_eq!((report.executions("grow"), report.executions("measure")), (364, 364));
    assert_eq!(seen.lines(), ["o"]);
}

// S48
#[tokio::test]
async fn the_leaves_of_a_tree_are_counted_once_each() {
    assert_eq!(Tree(Seen::default()).run(Begin(4)).await.unwrap(), Done(81));
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
async fn the_inner_policy_decides_what_the_outer_one_is_told() {
    use FanOutPolicy::{ContinueOthers, FailAll, WaitAll};

    // The outer branch goes on with the inner failures in its gather: 0 + 12 + 20.
    for outer in [FailAll, ContinueOthers, WaitAll] {
        assert_eq!(outcome_of(outer, ContinueOthers).await, Ok(Done(32)));
    }
    // The outer branch fails, and the others are there: 0 + 20.
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

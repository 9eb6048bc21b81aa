//! Branches in a run's report (S34, S51).

use workflow_core::prelude::*;
use workflow_core::report::BranchReport;
use workflow_core::{ScopeId, Seq};

use crate::fixtures::{Begin, Done, Item, Part, report_of};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// Outer branch n has n inner ones; the last inner one of all fails.
struct Reported;

#[workflow]
impl Reported {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect()
    }

    #[step]
    async fn again(&self, outer: &Outer) -> FanOut<Item> {
        (0..outer.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 == 1 { Err(StepError::permanent("no")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn polish(&self, _part: &Part) {}

    #[step]
    async fn join(&self, outer: &Outer, _parts: &Gather<Part>) -> Joined {
        Joined(outer.0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        Done(u32::try_from(joined.len()).unwrap())
    }
}

// S34, S51
#[tokio::test]
async fn a_report_lists_every_branch_with_where_it_came_from_and_what_ran_in_it() {
    let report = report_of(Reported, 3).await;
    let row = |branch: &BranchReport| (branch.scope.0, branch.parent.0, branch.executions, branch.failed);
    let rows: Vec<(u32, u32, u64, bool)> = report.branches.iter().map(row).collect();
    let expected = [
        // Each outer branch fans out and joins, not counting the branches below.
        (1, 0, 2, false),
        (2, 0, 2, false),
        (3, 0, 2, false),
        (4, 2, 2, false),
        (5, 3, 2, false),
        (6, 3, 1, true),
    ];
    assert_eq!(rows, expected);
    let steps: Vec<&str> = report.branches.iter().map(|branch| &*branch.step).collect();
    assert_eq!(steps, ["split", "split", "split", "again", "again", "again"]);
}

// S44, S51
#[tokio::test]
async fn log_trace_and_branches_of_a_report_agree_on_scopes() {
    let report = report_of(Reported, 3).await;
    for branch in &report.branches {
        let item = &report.log[usize::try_from(branch.item.0).unwrap() - 1];
        assert_eq!((item.seq, item.scope, item.execution), (branch.item, branch.scope, Some(branch.opener)));
        let opener = report.trace.iter().find(|trace| trace.execution == branch.opener).unwrap();
        assert_eq!((opener.scope, &opener.step), (branch.parent, &branch.step));
        assert!(opener.emitted.contains(&branch.item));
        let inside = report.trace.iter().filter(|trace| trace.scope == branch.scope);
        assert_eq!(inside.count() as u64, branch.executions);
    }
    // A step's events are in the scope it ran in, except for items.
    let items: Vec<Seq> = report.branches.iter().map(|branch| branch.item).collect();
    for trace in &report.trace {
        let emitted = trace.emitted.iter().filter(|seq| !items.contains(seq));
        for seq in emitted {
            assert_eq!(report.log[usize::try_from(seq.0).unwrap() - 1].scope, trace.scope);
        }
    }
}

// S34, S51
#[tokio::test]
async fn a_report_is_printed_with_its_branches_folded() {
    let text = report_of(Reported, 3).await.to_string();
    assert!(text.contains("split opened 3 branches\n"), "{text}");
    assert!(text.contains("again opened 3 branches, of which 1 failed\n"), "{text}");
    assert_eq!(text.matches("branches").count(), 2);
}

// S34
#[tokio::test]
async fn the_report_of_a_run_without_branches_says_nothing_of_them() {
    struct Plain;

    #[workflow]
    impl Plain {
        #[step]
        async fn end(&self, begin: &Begin) -> Done {
            Done(begin.0)
        }
    }

    let report = report_of(Plain, 1).await;
    assert!(report.branches.is_empty() && report.log.iter().all(|logged| logged.scope == ScopeId::ROOT));
    assert!(!report.to_string().contains("branches"));
}

// S34, S51
#[tokio::test]
async fn a_report_with_branches_is_serialised_for_machines() {
    let report = report_of(Reported, 3).await;
    let json = serde_json::to_value(&*report).unwrap();
    let branches = json["branches"].as_array().unwrap();
    assert_eq!(branches.len(), 6);
    assert_eq!((branches[5]["parent"].as_u64(), branches[5]["failed"].as_bool()), (Some(3), Some(true)));
}

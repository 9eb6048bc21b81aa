//! A failure in a branch stays in that branch, and the branch does not fail if a step catches it (S29, S49).

use workflow_core::FanOutPolicy;

use super::*;

const POLICIES: [FanOutPolicy; 3] =
    [FanOutPolicy::FailAll, FanOutPolicy::ContinueOthers, FanOutPolicy::WaitAll];

/// Reads items in branches; the odd ones fail, and their handler fails for those above `most`.
struct Reading {
    policy: FanOutPolicy,
    most: u32,
}

#[workflow]
impl Reading {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (0..begin.0).map(Item).collect();
        match self.policy {
            FanOutPolicy::ContinueOthers => items.continue_others(),
            FanOutPolicy::WaitAll => items.wait_all(),
            _ => items.fail_all(),
        }
    }

    #[step]
    async fn read(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 % 2 == 1 {
            Err(StepError::permanent(format!("{} is odd", item.0)))
        } else {
            Ok(Part(item.0))
        }
    }

    #[step(catches = [read])]
    async fn help_out(&self, item: &Item, failed: &StepFailed) -> Result<Part, StepError> {
        assert_eq!(*failed.error, format!("{} is odd", item.0), "a branch sees its own failure only");
        if item.0 > self.most { Err(StepError::permanent("helpless")) } else { Ok(Part(item.0 * 100)) }
    }

    #[step]
    async fn end(&self, begin: &Begin, parts: &Gather<Part>) -> Done {
        assert_eq!(parts.len(), begin.0 as usize);
        Done(
            parts.ok().map(|part| part.0).sum::<u32>()
                + 1_000 * u32::try_from(parts.failed().count()).unwrap(),
        )
    }
}

fn reading(policy: FanOutPolicy, most: u32) -> workflow_testkit::Start<Reading> {
    Scenario::new(Reading { policy, most }).start(Begin(4))
}

#[test]
fn a_caught_failure_fails_no_branch_under_any_policy() {
    for policy in POLICIES {
        let explored = explore(|| reading(policy, 9)).every_order().orders(200).assert(|run| {
            run.assert_output(&Done(2 + 100 + 300));
            run.assert_quality(Quality::Degraded);
            assert!(run.report().branches.iter().all(|branch| !branch.failed));
            assert!(failed_scopes(run).iter().all(|scope| *scope != ScopeId::ROOT));
        });
        assert!(explored.tried() > 1);
    }
}

#[test]
fn the_failure_of_a_handler_in_a_branch_goes_by_the_policy() {
    for policy in POLICIES {
        explore(|| reading(policy, 1)).orders(200).assert(|run| match (policy, run.outcome()) {
            (FanOutPolicy::ContinueOthers, Ok(done)) => assert_eq!(*done, Done(1_000 + 2 + 100)),
            (_, Err(RunError::StepFailed { step, .. })) => assert_eq!(&**step, "help_out"),
            (policy, outcome) => panic!("{policy:?}: {outcome:?}"),
        });
    }
}

/// One handler at the root and in branches alike.
struct Everywhere;

#[workflow]
impl Everywhere {
    #[step]
    async fn outside(&self, _begin: &Begin) -> Result<(), StepError> {
        Err(StepError::permanent("outside"))
    }

    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn inside(&self, item: &Item) -> Result<Part, StepError> {
        Err(StepError::permanent(format!("inside {}", item.0)))
    }

    #[step]
    async fn note(&self, failed: &StepFailed, scope: &RunInfo) -> Saw {
        Saw(format!("{} in {}", failed.error, scope.scope()))
    }

    #[step]
    async fn end(&self, notes: &Gather<Saw>, outer: &Saw) -> Done {
        assert_eq!(outer.0, format!("outside in {}", ScopeId::ROOT));
        Done(u32::try_from(notes.ok().count()).unwrap())
    }
}

#[test]
fn a_handler_runs_where_the_failure_is() {
    explore(|| Scenario::new(Everywhere).start(Begin(2))).orders(200).assert(|run| {
        run.assert_output(&Done(2));
        run.assert_executions("note", 3);
        let mut scopes = failed_scopes(run);
        scopes.sort_unstable();
        assert_eq!(scopes, [ScopeId(0), ScopeId(1), ScopeId(2)]);
    });
}

//! A refused batch equals a failed execution: a run over a store that refuses events of some branches has the same
//! outcome as one whose branches fail themselves.

use workflow_core::FanOutPolicy;

use super::*;

/// The behaviour of the branches whose items are in a set.
#[derive(Clone, Copy)]
enum Fails {
    /// They emit events that the store refuses.
    ByTheStore,
    ByThemselves,
}

struct Fans {
    /// A bit for each item that fails.
    set: u32,
    fails: Fails,
    policy: FanOutPolicy,
    /// The number of open branches.
    open: u32,
}

#[workflow]
impl Fans {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        let items = (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(self.open);
        match self.policy {
            FanOutPolicy::ContinueOthers => items.continue_others(),
            FanOutPolicy::WaitAll => items.wait_all(),
            _ => items,
        }
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Text, StepError> {
        let fails = self.set & (1 << item.0) != 0;
        // Some are late, and out of order.
        for _ in 0..(item.0 * 7) % 4 {
            tokio::task::yield_now().await;
        }
        match self.fails {
            Fails::ByTheStore if fails => Ok(Text(UNWANTED.into())),
            Fails::ByThemselves if fails => Err(StepError::permanent("no")),
            _ => Ok(Text(item.0.to_string())),
        }
    }

    #[step]
    async fn end(&self, texts: &Gather<Text>) -> Finished {
        let ok: Vec<&str> = texts.ok().map(|text| &*text.0).collect();
        Finished(format!("{} and {} failures", ok.join(" "), texts.failed().count()))
    }
}

/// Describes how the run ended, without the reason of a branch's failure.
async fn end(fans: Fans) -> String {
    let store = Picky { serialises: fans.set.is_multiple_of(2), ..Picky::default() };
    let engine = engine(fans, &store);
    let run = start::<Fans>(&engine, 5).await;
    let outcome = run.outcome().await;
    let recorded = recorded(&store).await;
    assert_eq!(recorded.status(), run.status());
    let report = run.report().await.unwrap();
    assert_eq!(recorded.report().log.len(), report.log.len());
    match outcome {
        Ok(Finished(text)) => text,
        Err(RunError::StepFailed { step, class, .. }) => format!("{step} failed: {class}"),
        Err(RunError::BranchesFailed { failures }) => format!("{} branches failed", failures.len()),
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn branches_whose_batches_are_refused_are_branches_that_fail() {
    for policy in [FanOutPolicy::ContinueOthers, FanOutPolicy::WaitAll, FanOutPolicy::FailAll] {
        for (set, open) in (0..32).flat_map(|set| [(set, 5), (set, 2)]) {
            let [refused, failed] =
                [Fails::ByTheStore, Fails::ByThemselves].map(|fails| Fans { set, fails, policy, open });
            assert_eq!(end(refused).await, end(failed).await, "{set:b} of {open} at a time, {policy:?}");
        }
    }
}

//! The workflows of the crash tests, each of another shape.

use std::time::Duration;

use workflow_core::StepFailed;
use workflow_core::prelude::*;

use crate::fixtures::{Begin, Done, Item, Note, Part};

/// Two steps side by side, and a join.
pub(crate) struct Joins;

#[workflow]
impl Joins {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn second(&self, begin: &Begin) -> Part {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Part(begin.0)
    }

    #[step]
    async fn join(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

/// A list with a counting precondition.
pub(crate) struct Lists;

#[workflow]
impl Lists {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn double(&self, item: &Item) -> Part {
        tokio::time::sleep(Duration::from_secs(u64::from(item.0 % 3))).await;
        Part(2 * item.0)
    }

    #[step(precondition = is_all)]
    async fn sum(&self, _begin: &Begin, parts: &List<Part>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }

    #[precondition]
    fn is_all(begin: &Begin, parts: &List<Part>) -> bool {
        parts.len() == begin.0 as usize
    }
}

/// Lists of two, with surplus.
pub(crate) struct Pairs;

#[workflow]
impl Pairs {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn pair(&self, items: &FixedList<Item, 3>) -> Done {
        Done(items.iter().map(|item| item.0).sum())
    }
}

/// Loops until it is done.
pub(crate) struct Loops;

#[workflow]
impl Loops {
    #[step]
    async fn begin(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(loops)]
    async fn round(&self, item: &Item) -> (Option<Item>, Option<Done>) {
        match item.0 {
            0 => (None, Some(Done(7))),
            more => (Some(Item(more - 1)), None),
        }
    }
}

/// Fails at first.
pub(crate) struct Retries;

#[workflow]
impl Retries {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Item, StepError> {
        match info.attempt() {
            1 | 2 => Err(StepError::transient("busy")),
            attempt => Ok(Item(begin.0 * 10 + attempt)),
        }
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// Fails for good, and a step takes the failure.
pub(crate) struct Catches;

#[workflow]
impl Catches {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Item, StepError> {
        Err(StepError::tool("broken"))
    }

    #[step(catches = [work])]
    async fn instead(&self, failed: &StepFailed) -> Done {
        Done(failed.attempts)
    }
}

/// Fails for good, and no step takes the failure.
pub(crate) struct Fails;

#[workflow]
impl Fails {
    #[step]
    async fn work(&self, begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::rejected(format!("not {}", begin.0)))
    }
}

/// Stalls with an incomplete input.
pub(crate) struct Stalls;

#[workflow]
impl Stalls {
    #[step]
    async fn first(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 100).then_some(Item(1))
    }

    #[step]
    async fn join(&self, begin: &Begin, item: &Item) -> Done {
        Done(begin.0 + item.0)
    }
}

/// Branches that gather.
pub(crate) struct Branches;

#[workflow]
impl Branches {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(2).continue_others()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        tokio::time::sleep(Duration::from_secs(u64::from(5 - item.0))).await;
        if item.0 == 1 { Err(StepError::permanent("odd")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn gather(&self, parts: &Gather<Part>) -> Done {
        Done(
            parts.ok().map(|part| part.0).sum::<u32>() + 100 * u32::try_from(parts.failed().count()).unwrap(),
        )
    }
}

/// The first failure drops the other branches.
pub(crate) struct FailsAll;

#[workflow]
impl FailsAll {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        tokio::time::sleep(Duration::from_secs(u64::from(item.0))).await;
        if item.0 == 2 { Err(StepError::permanent("two")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn gather(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
pub(crate) struct Ask(pub(crate) u32);

/// Asks people.
pub(crate) struct Asks;

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, begin: &Begin) -> Vec<Ask> {
        (0..begin.0).map(Ask).collect()
    }

    #[step(reruns)]
    async fn take(&self, reply: &Reply<Ask>) -> Item {
        Item(**reply * reply.request().0)
    }

    #[step(precondition = is_all)]
    async fn sum(&self, _begin: &Begin, replies: &List<Item>) -> Done {
        Done(replies.iter().map(|reply| reply.0).sum())
    }

    #[precondition]
    async fn is_all(&self, begin: &Begin, replies: &List<Item>) -> bool {
        tokio::task::yield_now().await;
        replies.len() == begin.0 as usize
    }
}

/// Timers, an expiring request, and an outside event.
pub(crate) struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn ask(&self, begin: &Begin) -> (Timer<Item>, Expiring<Ask>, Timer<Part>) {
        let later = |seconds| Duration::from_secs(seconds);
        (
            Timer::after(later(30), Item(begin.0)),
            Ask(1).expires_in(later(60)),
            Timer::after(later(10), Part(2)),
        )
    }

    #[step]
    async fn end(&self, item: &Item, expired: &Expired<Ask>, part: &Part, note: &Note) -> Done {
        Done(item.0 + expired.request().0 + part.0 + note.0)
    }
}

/// Runs others.
pub(crate) struct Parents;

#[workflow]
impl Parents {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        let joined = children.run::<Joins>(Begin(begin.0)).await?;
        let looped = children.run::<Loops>(Begin(3)).await?;
        Ok(Item(joined.0 + looped.0))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

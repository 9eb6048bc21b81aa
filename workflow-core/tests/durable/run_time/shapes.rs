//! Typed workflows with what the other shapes lack: passive inputs, gathers by item in branches of branches, a caught fan-out,
//! numbers of executions, and a child that it knows by name.

use workflow_core::prelude::*;
use workflow_core::{RunOptions, StepFailed};

use crate::fixtures::{Begin, Done, Item, Note, Part};

/// An event of a branch in a branch.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Leaf(u32);

/// The sum of a branch.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Sum(u32);

/// Reads a note and parts, which never trigger it.
pub(crate) struct Reads;

#[workflow]
impl Reads {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn double(&self, item: &Item) -> Part {
        Part(2 * item.0)
    }

    #[step]
    async fn look(&self, item: &Item, note: Passive<&Note>, parts: Passive<List<Part>>) -> Leaf {
        let note = note.map_or(0, |note| note.0);
        Leaf(item.0 + 10 * note + 100 * parts.iter().map(|part| part.0).sum::<u32>())
    }

    #[step]
    async fn end(&self, leaves: &FixedList<Leaf, 2>) -> Done {
        Done(leaves.iter().map(|leaf| leaf.0).sum())
    }
}

/// Branches open in branches, and each gather names its item.
pub(crate) struct Trees;

#[workflow]
impl Trees {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn split(&self, item: &Item) -> FanOut<Leaf> {
        (0..=item.0).map(|leaf| Leaf(10 * item.0 + leaf)).collect()
    }

    #[step]
    async fn grow(&self, leaf: &Leaf) -> Part {
        Part(leaf.0 + 1)
    }

    #[step]
    async fn sum(&self, parts: &Gather<Part, Leaf>) -> Sum {
        Sum(parts.ok().map(|part| part.0).sum())
    }

    #[step]
    async fn end(&self, sums: &Gather<Sum, Item>) -> Done {
        Done(sums.ok().map(|sum| sum.0).sum())
    }
}

/// A step takes the failure of a whole fan-out.
pub(crate) struct Splits;

#[workflow]
impl Splits {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().wait_all()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 % 2 == 1 { Err(StepError::tool(format!("{} is odd", item.0))) } else { Ok(Part(item.0)) }
    }

    #[step(catches = [open])]
    async fn instead(&self, failed: &StepFailed) -> Done {
        Done(u32::try_from(failed.error.len()).unwrap())
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

/// A step emits the number of its execution.
pub(crate) struct Counts;

#[workflow]
impl Counts {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn second(&self, begin: &Begin) -> Part {
        Part(begin.0)
    }

    #[step]
    async fn count(&self, _item: &Item, info: &RunInfo) -> Leaf {
        Leaf(u32::try_from(info.execution().0).unwrap())
    }

    #[step]
    async fn also(&self, part: &Part) -> Sum {
        Sum(part.0)
    }

    #[step]
    async fn end(&self, leaf: &Leaf, sum: &Sum) -> Done {
        Done(10 * leaf.0 + sum.0)
    }
}

/// Runs a child of either kind, which it knows by name.
pub(crate) struct Delegates;

#[workflow]
impl Delegates {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Item, StepError> {
        let ended = children.run_json("Joins", "Begin", begin.0, RunOptions::new()).await?;
        Ok(Item(serde_json::from_value(ended.to_json()?)?))
    }

    #[step]
    async fn beside(&self, begin: &Begin) -> Part {
        Part(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(10 * item.0 + part.0)
    }
}

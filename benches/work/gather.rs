//! A fan-out with branches as scopes, and the gather of their results.

use workflow_core::prelude::*;

use super::fan::{Begin, Item, Square, Sum, TABLE, run};
use super::{By, Extent, Work, engine, sizes};
use crate::hand::{floor, spawn};

struct Gathered;

#[workflow]
impl Gathered {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.branches).map(Item).collect()
    }

    #[step]
    async fn square(&self, item: &Item) -> Square {
        Square(item.0 * item.0)
    }

    #[step]
    async fn sum(&self, squares: &Gather<Square>) -> Sum {
        Sum(squares.ok().map(|square| square.0).sum())
    }
}

/// By hand there are no branches: the results are counted.
pub(super) fn work(size: u64) -> Work {
    let engine = engine(Gathered);
    Work::new("gather", "branch", size)
        .by(By::Ours, move || run::<Gathered>(engine.clone(), size))
        .by(By::Spawn, move || spawn(TABLE, Begin { branches: size }))
        .by(By::Floor, move || floor(TABLE, Begin { branches: size }))
}

pub(super) fn works(extent: Extent) -> Vec<Work> {
    sizes(extent, &[1_000, 10_000, 100_000]).into_iter().map(work).collect()
}

//! What one branch of a fan-out costs: an item, a step that waits once, a result, and the join.
//!
//! `cargo bench -p workflow-benches --bench fan_out`

use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, yield_now};
use workflow_benches::{Contender, compare};
use workflow_core::prelude::*;

const ITEMS: u32 = 10_000;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Item(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Square(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Sum(u64);

struct Scoped;

#[workflow]
impl Scoped {
    #[step]
    async fn split(&self, _begin: &Begin) -> FanOut<Item> {
        (0..ITEMS).map(Item).collect()
    }

    #[step]
    async fn square(&self, item: &Item) -> Square {
        Square(square(item.0).await)
    }

    #[step]
    async fn sum(&self, squares: &Gather<Square>) -> Sum {
        Sum(squares.ok().map(|square| square.0).sum())
    }
}

struct Counted;

#[workflow]
impl Counted {
    #[step]
    async fn split(&self, _begin: &Begin) -> Vec<Item> {
        (0..ITEMS).map(Item).collect()
    }

    #[step]
    async fn square(&self, item: &Item) -> Square {
        Square(square(item.0).await)
    }

    #[precondition]
    fn all(squares: &List<Square>) -> bool {
        squares.len() == ITEMS as usize
    }

    #[step(precondition = all)]
    async fn sum(&self, squares: &List<Square>) -> Sum {
        Sum(squares.iter().map(|square| square.0).sum())
    }
}

async fn square(item: u32) -> u64 {
    yield_now().await;
    u64::from(item) * u64::from(item)
}

async fn one_task() -> u64 {
    let squares: FuturesUnordered<_> = (0..ITEMS).map(|item| Box::pin(square(item))).collect();
    squares.fold(0, |sum, square| async move { sum + square }).await
}

async fn a_task_each() -> u64 {
    let mut squares: JoinSet<u64> = (0..ITEMS).map(square).collect();
    let mut sum = 0;
    while let Some(Ok(square)) = squares.join_next().await {
        sum += square;
    }
    sum
}

fn main() {
    let runtime = Runtime::new().expect("a runtime starts");
    compare(
        "one branch: an item, a step that waits once, a result, the join",
        ITEMS,
        vec![
            Contender::new("FuturesUnordered, by hand", || runtime.block_on(one_task())),
            Contender::new("JoinSet, by hand", || runtime.block_on(a_task_each())),
            Contender::new("workflow: Vec, and a list counted by hand", || {
                runtime.block_on(Counted.run(Begin)).map_or(0, |sum| sum.0)
            }),
            Contender::new("workflow: FanOut and Gather", || {
                runtime.block_on(Scoped.run(Begin)).map_or(0, |sum| sum.0)
            }),
        ],
    );
}

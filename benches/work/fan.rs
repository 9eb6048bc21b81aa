//! A fan-out whose branches are joined: by a list that a precondition counts, or by a list of a fixed length.

use workflow_core::prelude::*;

use super::{By, Extent, Work, engine, sizes};
use crate::hand::{Emitted, Kind, Log, Running, Step, Table, begin, floor, spawn};

/// The length of the fixed list.
const FIXED: usize = 1_000;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(super) struct Begin {
    pub(super) branches: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(super) struct Item(pub(super) u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(super) struct Square(pub(super) u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(super) struct Sum(pub(super) u64);

#[derive(Clone, Copy)]
struct Counted;

#[workflow]
impl Counted {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.branches).map(Item).collect()
    }

    #[step]
    async fn square(&self, item: &Item) -> Square {
        Square(item.0 * item.0)
    }

    #[precondition]
    fn all(begin: &Begin, squares: &List<Square>) -> bool {
        squares.len() as u64 == begin.branches
    }

    #[step(precondition = all)]
    async fn sum(&self, _begin: &Begin, squares: &List<Square>) -> Sum {
        Sum(squares.iter().map(|square| square.0).sum())
    }
}

#[derive(Clone, Copy)]
struct Fixed;

#[workflow]
impl Fixed {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.branches).map(Item).collect()
    }

    #[step]
    async fn square(&self, item: &Item) -> Square {
        Square(item.0 * item.0)
    }

    #[step]
    async fn sum(&self, squares: &FixedList<Square, FIXED>) -> Sum {
        Sum(squares.iter().map(|square| square.0).sum())
    }
}

impl Kind for Begin {
    const KIND: usize = 0;
}

impl Kind for Item {
    const KIND: usize = 1;
}

impl Kind for Square {
    const KIND: usize = 2;
}

pub(super) const SPLIT: Step = |_, event| {
    let event = event.clone();
    begin(async move { Emitted::many((0..event.of::<Begin>().branches).map(Item)) })
};

const SQUARE: Step = |_, event| {
    let event = event.clone();
    begin(async move {
        let item = event.of::<Item>().0;
        Emitted::one(Square(item * item))
    })
};

/// Joins when the last square has arrived.
pub(super) fn sum(log: &Log, wanted: usize) -> Option<Running> {
    if log.count::<Square>() != wanted {
        return None;
    }
    let squares = log.all::<Square>();
    begin(async move { Emitted::Stop(squares.iter().map(|square| square.of::<Square>().0).sum()) })
}

/// Joins as many as the start event asks for.
pub(super) const SUM: Step = |log, _| {
    let branches = log.latest::<Begin>()?.of::<Begin>().branches;
    sum(log, usize::try_from(branches).ok()?)
};

pub(super) const TABLE: Table = &[&[SPLIT], &[SQUARE], &[SUM]];
const FIXED_TABLE: Table = &[&[SPLIT], &[SQUARE], &[|log, _| sum(log, FIXED)]];

/// A run of an engine.
pub(super) async fn run<W>(engine: Engine, branches: u64) -> u64
where
    W: Workflow<Output = Sum>,
{
    let run = engine.start::<W>(Begin { branches }).await.expect("it starts");
    run.outcome().await.map_or(0, |sum| sum.0)
}

fn work<W>(shape: &str, size: u64, workflow: W, table: Table) -> Work
where
    W: Workflow<Output = Sum>,
{
    let engine = engine(workflow);
    Work::new(shape, "branch", size)
        .by(By::Ours, move || run::<W>(engine.clone(), size))
        .by(By::Spawn, move || spawn(table, Begin { branches: size }))
        .by(By::Floor, move || floor(table, Begin { branches: size }))
}

/// Joined by a list that a precondition counts.
pub(super) fn counted(size: u64) -> Work {
    work("fan", size, Counted, TABLE)
}

pub(super) fn works(extent: Extent) -> Vec<Work> {
    sizes(extent, &[1_000, 10_000, 100_000]).into_iter().map(counted).collect()
}

pub(super) fn fixed(_: Extent) -> Vec<Work> {
    vec![work("fixed", FIXED as u64, Fixed, FIXED_TABLE)]
}

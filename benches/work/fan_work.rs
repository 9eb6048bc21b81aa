//! A fan-out whose branches compute: each hashes for about 50 microseconds.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use workflow_core::prelude::*;

use super::fan::{Begin, Item, SPLIT, SUM, Square, Sum, run};
use super::{By, Extent, Work, engine};
use crate::hand::{Emitted, Table, begin, floor, spawn};

/// The computing time of a branch.
const LONG: Duration = Duration::from_micros(50);

#[derive(Clone, Copy)]
struct Hashing;

#[workflow]
impl Hashing {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.branches).map(Item).collect()
    }

    #[step]
    async fn hash(&self, item: &Item) -> Square {
        Square(hash(item.0) >> 32)
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

const TABLE: Table = &[
    &[SPLIT],
    &[|_, event| {
        let event = event.clone();
        begin(async move { Emitted::one(Square(hash(event.of::<Item>().0) >> 32)) })
    }],
    &[SUM],
];

/// As many rounds as take that long on this machine.
fn hash(item: u64) -> u64 {
    static ROUNDS: OnceLock<u64> = OnceLock::new();
    rounds(item, *ROUNDS.get_or_init(calibrate))
}

fn rounds(item: u64, rounds: u64) -> u64 {
    (0..rounds).fold(black_box(item), |hash, round| {
        let mixed = (hash ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    })
}

/// The fastest of a few tries counts, because the machine may do other work.
fn calibrate() -> u64 {
    const TRIED: u64 = 1_000_000;
    let fastest = (0..5).map(|item| {
        let began = Instant::now();
        black_box(rounds(item, TRIED));
        began.elapsed().as_nanos().max(1)
    });
    let fastest = fastest.min().map_or(1, |nanos| u64::try_from(nanos).unwrap_or(u64::MAX));
    let wanted = u64::try_from(LONG.as_nanos()).unwrap_or(u64::MAX);
    (TRIED * wanted / fastest).max(1)
}

pub(super) fn works(extent: Extent) -> Vec<Work> {
    let size = if extent == Extent::Full { 1_000 } else { 100 };
    let engine = engine(Hashing);
    // The first call calibrates.
    hash(0);
    let work = Work::once("fan-work", "branch", size);
    vec![
        work.by(By::Ours, move || run::<Hashing>(engine.clone(), size))
            .by(By::Spawn, move || spawn(TABLE, Begin { branches: size }))
            .by(By::Floor, move || floor(TABLE, Begin { branches: size })),
    ]
}

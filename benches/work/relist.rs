//! A step with a list, which runs again on each arrival.

use workflow_core::prelude::*;

use super::{By, Extent, Work, engine, sizes};
use crate::hand::{Emitted, Kind, Table, begin, floor, spawn};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    bids: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Bid {
    number: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Sold(u64);

struct Auction;

#[workflow]
impl Auction {
    #[step]
    async fn open(&self, begin: &Begin) -> Vec<Bid> {
        (0..begin.bids).map(|number| Bid { number }).collect()
    }

    #[step(reruns)]
    async fn hear(&self, begin: &Begin, bids: &List<Bid>) -> Option<Sold> {
        let latest = bids.last()?;
        (bids.len() as u64 == begin.bids).then_some(Sold(latest.number))
    }
}

impl Kind for Begin {
    const KIND: usize = 0;
}

impl Kind for Bid {
    const KIND: usize = 1;
}

/// By hand the step gets the length of the list and the last element, instead of a list.
const TABLE: Table = &[
    &[|_, event| {
        let event = event.clone();
        begin(async move { Emitted::many((0..event.of::<Begin>().bids).map(|number| Bid { number })) })
    }],
    &[|log, event| {
        let (opened, bid, heard) = (log.latest::<Begin>()?.clone(), event.clone(), log.count::<Bid>());
        begin(async move {
            let is_last = heard as u64 == opened.of::<Begin>().bids;
            if is_last { Emitted::Stop(bid.of::<Bid>().number) } else { Emitted::Nothing }
        })
    }],
];

async fn ours(engine: Engine, bids: u64) -> u64 {
    let run = engine.start::<Auction>(Begin { bids }).await.expect("it starts");
    run.outcome().await.map_or(0, |sold| sold.0)
}

pub(super) fn work(size: u64) -> Work {
    let engine = engine(Auction);
    Work::new("relist", "arrival", size)
        .by(By::Ours, move || ours(engine.clone(), size))
        .by(By::Spawn, move || spawn(TABLE, Begin { bids: size }))
        .by(By::Floor, move || floor(TABLE, Begin { bids: size }))
}

pub(super) fn works(extent: Extent) -> Vec<Work> {
    sizes(extent, &[1_000, 10_000]).into_iter().map(work).collect()
}

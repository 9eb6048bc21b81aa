//! A chain: each event runs a step, which emits the next event.

use tokio::sync::mpsc;
use workflow_core::prelude::*;

use super::{By, Extent, Work, sizes};
use crate::hand::{Emitted, Kind, Table, begin, floor, spawn};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin {
    pub(crate) steps: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Tick {
    pub(crate) done: u64,
    pub(crate) steps: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Tock {
    pub(crate) done: u64,
    pub(crate) steps: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Done(pub(super) u64);

#[derive(Debug, EventSet)]
pub(crate) enum FromTick {
    Tock(Tock),
    Done(Done),
}

#[derive(Debug, EventSet)]
pub(crate) enum FromTock {
    Tick(Tick),
    Done(Done),
}

/// Two steps that take turns.
pub(crate) struct Clock;

#[workflow]
impl Clock {
    #[step]
    async fn begin(&self, begin: &Begin) -> Tick {
        Tick { done: 1, steps: begin.steps }
    }

    #[step]
    async fn tick(&self, tick: &Tick) -> FromTick {
        tick.next()
    }

    #[step]
    async fn tock(&self, tock: &Tock) -> FromTock {
        tock.next()
    }
}

impl Tick {
    pub(crate) fn next(&self) -> FromTick {
        let (done, steps) = (self.done + 1, self.steps);
        if done == steps { FromTick::Done(Done(steps)) } else { FromTick::Tock(Tock { done, steps }) }
    }
}

impl Tock {
    pub(crate) fn next(&self) -> FromTock {
        let (done, steps) = (self.done + 1, self.steps);
        if done == steps { FromTock::Done(Done(steps)) } else { FromTock::Tick(Tick { done, steps }) }
    }
}

impl Kind for Begin {
    const KIND: usize = 0;
}

impl Kind for Tick {
    const KIND: usize = 1;
}

impl Kind for Tock {
    const KIND: usize = 2;
}

pub(crate) const TABLE: Table = &[
    &[|_, event| {
        let event = event.clone();
        begin(async move { Emitted::one(Tick { done: 1, steps: event.of::<Begin>().steps }) })
    }],
    &[|_, event| {
        let event = event.clone();
        begin(async move {
            let Tick { done, steps } = *event.of::<Tick>();
            if done + 1 == steps {
                Emitted::Stop(steps)
            } else {
                Emitted::one(Tock { done: done + 1, steps })
            }
        })
    }],
    &[|_, event| {
        let event = event.clone();
        begin(async move {
            let Tock { done, steps } = *event.of::<Tock>();
            if done + 1 == steps {
                Emitted::Stop(steps)
            } else {
                Emitted::one(Tick { done: done + 1, steps })
            }
        })
    }],
];

/// Two tasks that pass events to each other: typed, without a log and without a table.
async fn stages(steps: u64) -> u64 {
    let (ticks, mut ticked) = mpsc::channel::<Tick>(64);
    let (asked, mut answered) = mpsc::channel::<Tock>(64);
    let (ended, mut ends) = mpsc::channel::<u64>(1);
    let (also_ended, first) = (ended.clone(), ticks.clone());
    // A closed channel means that the other has ended.
    tokio::spawn(async move {
        while let Some(Tick { done, steps }) = ticked.recv().await {
            if done + 1 == steps {
                let _ = ended.send(steps).await;
                return;
            }
            let _ = asked.send(Tock { done: done + 1, steps }).await;
        }
    });
    tokio::spawn(async move {
        while let Some(Tock { done, steps }) = answered.recv().await {
            if done + 1 == steps {
                let _ = also_ended.send(steps).await;
                return;
            }
            let _ = ticks.send(Tick { done: done + 1, steps }).await;
        }
    });
    let _ = first.send(Tick { done: 1, steps }).await;
    drop(first);
    ends.recv().await.unwrap_or(0)
}

pub(crate) async fn ours(steps: u64) -> u64 {
    Clock.run(Begin { steps }).await.map_or(0, |done| done.0)
}

pub(super) fn work(size: u64) -> Work {
    Work::new("chain", "step", size)
        .by(By::Ours, move || ours(size))
        .by(By::Spawn, move || spawn(TABLE, Begin { steps: size }))
        .by(By::Floor, move || floor(TABLE, Begin { steps: size }))
        .by(By::Stages, move || stages(size))
}

pub(crate) fn works(extent: Extent) -> Vec<Work> {
    sizes(extent, &[10, 100, 1_000, 10_000]).into_iter().map(work).collect()
}

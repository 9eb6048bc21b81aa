//! Building an engine, and its first run.

use workflow_core::prelude::*;

use super::chain::{Begin, Clock, TABLE};
use super::{By, Extent, Work};
use crate::hand::{floor, spawn};

/// The number of beginnings per execution.
const TIMES: u64 = 1_000;

/// The length of its first run.
const STEPS: u64 = 3;

fn build() -> Engine {
    Engine::builder().workflow(Clock).build().expect("it is sound")
}

async fn first_run() -> u64 {
    let run = build().start::<Clock>(Begin { steps: STEPS }).await.expect("it starts");
    run.outcome().await.map_or(0, |done| done.0)
}

async fn build_only() -> u64 {
    u64::from(build().running().is_empty())
}

pub(super) fn works(extent: Extent) -> Vec<Work> {
    let times = if extent == Extent::Full { TIMES } else { 1 };
    let begin = || Begin { steps: STEPS };
    vec![
        Work::times("start-up/build", "engine", times).by(By::Ours, build_only),
        Work::times("start-up/first-run", "engine", times)
            .by(By::Ours, first_run)
            .by(By::Spawn, move || spawn(TABLE, begin()))
            .by(By::Floor, move || floor(TABLE, begin())),
    ]
}

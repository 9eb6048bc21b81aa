//! The delay of a new run beside busy ones, in turns of these: counted, not timed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Builder;
use tokio::task::yield_now;
use workflow_benches::figure::{Figure, Target, as_float};
use workflow_core::prelude::*;

use crate::row::Row;

/// How many runs are busy.
const BUSY: [u64; 2] = [10, 1_000];

/// The number of busy runs that have begun, and of all their turns since.
#[derive(Clone, Default)]
struct Turns(Arc<[AtomicU64; 2]>);

impl Turns {
    fn begin(&self) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
    }

    fn begun(&self) -> u64 {
        self.0[0].load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.0[1].fetch_add(1, Ordering::Relaxed);
    }

    fn had(&self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Began(u64);

/// A run with work in each turn, which never ends.
struct Busy(Turns);

#[workflow]
impl Busy {
    #[step]
    async fn go_on(&self, _begin: &Begin) -> Began {
        self.0.begin();
        loop {
            self.0.count();
            yield_now().await;
        }
    }
}

/// Reports the turns of the others at its beginning.
struct New(Turns);

#[workflow]
impl New {
    #[step]
    async fn begin(&self, _begin: &Begin) -> Began {
        Began(self.0.had())
    }
}

/// The turns of each busy run, on one thread, between the start of a new run and its first step.
async fn turns(busy: u64) -> f64 {
    let turns = Turns::default();
    let engine = Engine::builder().workflow(Busy(turns.clone())).workflow(New(turns.clone()));
    let engine = engine.build().expect("it is sound");
    let mut others = Vec::new();
    for _ in 0..busy {
        others.push(engine.start::<Busy>(Begin).await.expect("it starts"));
    }
    while turns.begun() < busy {
        yield_now().await;
    }
    let before = turns.had();
    let run = engine.start::<New>(Begin).await.expect("it starts");
    let Began(then) = run.outcome().await.expect("it completes");
    as_float(then - before) / as_float(busy)
}

/// Counts them with few busy runs and with many.
pub(crate) fn measure() -> (Vec<Row>, Figure) {
    let with = |busy| {
        let runtime = Builder::new_current_thread().build().expect("a runtime starts");
        runtime.block_on(turns(busy))
    };
    let [few, many] = BUSY.map(with);
    let names = BUSY.map(|busy| format!("latency/{busy}"));
    let figure = Figure::new(&names[1], "turns", many, few).beside("with ten busy runs");
    let rows = names.into_iter().zip([few, many]).map(|(name, turns)| Row::new(name, "turns", turns));
    (rows.collect(), figure.target(Target::AtMost(1.0)))
}

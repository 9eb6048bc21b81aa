//! Two steps that compute at the same time, each for long, and the same as two tasks of tokio.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use workflow_core::prelude::*;

use super::{By, Extent, Work, engine};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    computes: Duration,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Left(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Right(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Both(u64);

struct Computing;

#[workflow]
impl Computing {
    #[step]
    async fn left(&self, begin: &Begin) -> Left {
        Left(compute(begin.computes))
    }

    #[step]
    async fn right(&self, begin: &Begin) -> Right {
        Right(compute(begin.computes))
    }

    #[step]
    async fn both(&self, left: &Left, right: &Right) -> Both {
        Both(left.0 + right.0)
    }
}

/// Keeps a thread busy for this long.
fn compute(computes: Duration) -> u64 {
    let began = Instant::now();
    while began.elapsed() < computes {
        spin_loop();
    }
    1
}

async fn by_hand(computes: Duration) -> u64 {
    let both = [(); 2].map(|()| tokio::spawn(async move { compute(computes) }));
    let mut sum = 0;
    for one in both {
        sum += one.await.expect("it does not panic");
    }
    sum
}

pub(super) fn works(extent: Extent) -> Vec<Work> {
    let computes = Duration::from_millis(if extent == Extent::Full { 200 } else { 2 });
    let engine = engine(Computing);
    let ours = move || {
        let engine = engine.clone();
        async move {
            let run = engine.start::<Computing>(Begin { computes }).await.expect("it starts");
            run.outcome().await.map_or(0, |both| both.0)
        }
    };
    vec![Work::once("computing", "run", 1).by(By::Ours, ours).by(By::Spawn, move || by_hand(computes))]
}

//! Runs that wait for a reply.

use std::ops::Range;

use futures::future::join_all;
use workflow_core::prelude::*;
use workflow_core::{RunHandle, RunId, RunOptions, RunStatus};

use super::{By, Work, engine};

/// How many runs are started at the same time.
pub const AT_ONCE: u64 = 256;

/// Starts a run.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub struct Refund {
    cents: u64,
}

/// The request that a run waits for.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
pub struct Approve {
    cents: u64,
}

/// Ends a run.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub struct Refunded {
    cents: u64,
}

/// Asks, waits, and ends.
#[derive(Debug)]
pub struct Refunds;

#[workflow]
impl Refunds {
    #[step]
    async fn ask(&self, refund: &Refund) -> Approve {
        Approve { cents: refund.cents }
    }

    #[step]
    async fn pay(&self, approval: &Reply<Approve>) -> Refunded {
        Refunded { cents: if **approval { approval.request().cents } else { 0 } }
    }
}

/// The run of a number.
pub fn id(number: u64) -> RunId {
    format!("refund-{number}").into()
}

/// Starts runs and waits until they wait.
///
/// # Panics
/// Panics if one does not start, or does anything else.
pub async fn start(engine: &Engine, numbers: Range<u64>) -> Vec<RunHandle<Refunds>> {
    let start = |number| async move {
        let options = RunOptions::new().id(id(number));
        let run = engine.start_with::<Refunds>(Refund { cents: number }, options).await.expect("it starts");
        assert_eq!(run.settled().await, RunStatus::Waiting);
        run
    };
    let mut started = Vec::new();
    let numbers: Vec<u64> = numbers.collect();
    for numbers in numbers.chunks(usize::try_from(AT_ONCE).expect("few")) {
        started.extend(join_all(numbers.iter().map(|number| start(*number))).await);
    }
    started
}

/// All runs wait, each with a handle, when the last one is started. The engine has no other runs.
pub(super) fn work(size: u64) -> Work {
    let start = move || async move { start(&engine(Refunds), 0..size).await.len() as u64 };
    Work::new("waiting", "run", size).by(By::Ours, start)
}

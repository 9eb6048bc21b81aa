//! Measures tests: a scenario of three steps, and the exploration of all orders of five concurrent steps.
//!
//! `cargo bench -p workflow-benches --bench scenario`

use tokio::runtime::{Builder, Runtime};
use workflow_benches::{Contender, compare};
use workflow_core::prelude::*;
use workflow_testkit::{Scenario, explore};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Found(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Weighed(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Bid(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

/// Three steps, one after the other.
struct Three;

#[workflow]
impl Three {
    #[step]
    async fn find(&self, _: &Begin) -> Found {
        Found(1)
    }

    #[step]
    async fn weigh(&self, found: &Found) -> Weighed {
        Weighed(found.0 + 1)
    }

    #[step]
    async fn end(&self, weighed: &Weighed) -> Done {
        Done(weighed.0 + 1)
    }
}

/// Five concurrent steps whose order is visible: 120 orders.
struct Five;

#[workflow]
impl Five {
    #[step]
    async fn one(&self, _: &Begin) -> Bid {
        Bid(1)
    }

    #[step]
    async fn two(&self, _: &Begin) -> Bid {
        Bid(2)
    }

    #[step]
    async fn three(&self, _: &Begin) -> Bid {
        Bid(3)
    }

    #[step]
    async fn four(&self, _: &Begin) -> Bid {
        Bid(4)
    }

    #[step]
    async fn five(&self, _: &Begin) -> Bid {
        Bid(5)
    }

    #[step]
    async fn end(&self, bids: &FixedList<Bid, 5>) -> Done {
        Done(bids.iter().map(|bid| bid.0).sum())
    }
}

fn scenario(runtime: &Runtime) -> u64 {
    let run = runtime.block_on(Scenario::new(Three).start(Begin).into_future());
    run.outcome().map_or(0, |done| done.0)
}

fn exploration() -> u64 {
    let explored = explore(|| Scenario::new(Five).start(Begin)).assert(|run| run.outcome().is_ok());
    if explored.is_exhaustive() { explored.tried() } else { 0 }
}

fn main() {
    let runtime = Builder::new_current_thread().build().expect("a runtime starts");
    let contenders = vec![
        Contender::new("by itself", || runtime.block_on(Three.run(Begin)).map_or(0, |done| done.0)),
        Contender::new("as a scenario", || scenario(&runtime)),
    ];
    compare("a workflow of three steps", 1, contenders);
    compare(
        "every order of five steps at the same time: 120",
        1,
        vec![Contender::new("explored", exploration)],
    );
}

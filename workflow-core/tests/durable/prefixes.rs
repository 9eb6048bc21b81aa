//! Every prefix of a journal leads to the same end (S39).

use workflow_core::prelude::*;
use workflow_core::{RunHandle, RunStatus};

use crate::fixtures::{Begin, Note, from_every_prefix, nobody};
use crate::shapes::{
    Ask, Asks, Branches, Catches, Fails, FailsAll, Joins, Lists, Loops, Pairs, Parents, Retries, Stalls,
    Waits,
};

macro_rules! from_every_prefix_alone {
    ($($name:ident: $workflow:expr => $type:ty, $begin:expr;)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                from_every_prefix::<$type, _, _>(|| Engine::builder().workflow($workflow), Begin($begin), nobody).await;
            }
        )*
    };
}

from_every_prefix_alone! {
    joins: Joins => Joins, 4;
    lists: Lists => Lists, 4;
    fixed_lists: Pairs => Pairs, 5;
    loops: Loops => Loops, 4;
    retries: Retries => Retries, 4;
    failures_that_are_caught: Catches => Catches, 4;
    failures: Fails => Fails, 4;
    stalls: Stalls => Stalls, 4;
    branches: Branches => Branches, 4;
    a_failure_that_drops_branches: FailsAll => FailsAll, 4;
    no_branches: Branches => Branches, 0;
}

#[tokio::test(start_paused = true)]
async fn requests() {
    let reply = async |run: RunHandle<Asks>| {
        while run.settled().await == RunStatus::Waiting {
            let open = run.requests().await.unwrap();
            let Some(request) = open.last() else { break };
            let asked = request.downcast_ref::<Ask>().unwrap().0;
            run.reply(request.id::<Ask>().unwrap(), asked + 1).await.unwrap();
        }
    };
    from_every_prefix::<Asks, _, _>(|| Engine::builder().workflow(Asks), Begin(3), reply).await;
}

#[tokio::test(start_paused = true)]
async fn timers() {
    let note = async |run: RunHandle<Waits>| {
        run.settled().await;
        let log = run.report_so_far().await;
        if log.is_ok_and(|report| report.log.iter().all(|logged| &*logged.event != "Note")) {
            run.send(Note(5)).await.unwrap();
        }
    };
    from_every_prefix::<Waits, _, _>(|| Engine::builder().workflow(Waits), Begin(3), note).await;
}

#[tokio::test(start_paused = true)]
async fn children() {
    let host = || Engine::builder().workflow(Parents).workflow(Joins).workflow(Loops);
    from_every_prefix::<Parents, _, _>(host, Begin(3), nobody).await;
}

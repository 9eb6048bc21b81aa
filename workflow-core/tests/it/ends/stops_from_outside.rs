//! Stop events that are sent to a run (S2, S9, S28, S30).

use workflow_core::prelude::*;
use workflow_core::{RunStatus, SendError};
use workflow_testkit::{Scenario, explore};

use crate::fixtures::{Alpha, Begin, Done, Item};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop, external)]
struct Closed(String);

#[derive(Debug, Clone, PartialEq, EventSet)]
enum End {
    Done(Done),
    Closed(Closed),
}

/// Ends with an alpha, or when it is closed.
struct Desk;

#[workflow(output = End)]
impl Desk {
    #[step]
    async fn open(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, alpha: &Alpha) -> Done {
        Done(item.0 + alpha.0)
    }
}

/// Has no other end than being closed, and no step that could ever wait.
struct Tap;

#[workflow(output = Closed)]
impl Tap {
    #[step]
    async fn open(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 0).then_some(Item(begin.0))
    }

    #[step]
    async fn pour(&self, _item: &Item) {}
}

fn closed() -> Closed {
    Closed("for the night".into())
}

// S2, S28
#[tokio::test]
async fn a_stop_event_that_is_sent_ends_the_run() {
    let run = Scenario::new(Desk).send(closed()).start(Begin(1)).await;
    run.assert_output(&End::Closed(closed()));
    let run = Scenario::new(Desk).send(Alpha(2)).start(Begin(1)).await;
    run.assert_output(&End::Done(Done(3)));
}

// S9, S30
#[tokio::test]
async fn a_run_that_can_be_closed_waits_where_it_would_stall_and_says_what_did_not_run() {
    let engine = Engine::builder().workflow(Tap).build().unwrap();
    let run = engine.start::<Tap>(Begin(0)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let explanation = run.explain().await.unwrap().to_string();
    assert!(explanation.contains("`pour` did not run"), "{explanation}");
    assert!(explanation.contains("`open` ran once and emitted nothing"), "{explanation}");
    run.send(closed()).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), closed());
    assert!(matches!(run.send(closed()).await, Err(SendError::Ended { .. })));
}

// S28
#[test]
fn whichever_comes_first_ends_the_run() {
    let explored =
        explore(|| Scenario::new(Desk).send(Alpha(2)).send(closed()).start(Begin(1))).assert(|run| {
            let ends = [End::Done(Done(3)), End::Closed(closed())];
            assert!(ends.contains(run.outcome().as_ref().unwrap()));
        });
    assert!(explored.is_exhaustive());
}

// S2
#[test]
fn a_stop_event_from_outside_is_drawn_and_recorded() {
    let edges = Tap::graph().edges;
    assert!(edges.iter().any(|edge| (&*edge.from, &*edge.to, &*edge.event) == ("outside", "stop", "Closed")));
    let table = workflow_core::table::DependencyTable::from_spec(Tap::TABLE).unwrap();
    assert!(table.shape().events.iter().any(|event| &*event.name == "Closed"));
}

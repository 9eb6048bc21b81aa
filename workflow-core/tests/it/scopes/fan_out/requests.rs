//! Requests in branches, and their replies (S45, S47).

use workflow_core::SendError;
use workflow_core::prelude::*;
use workflow_core::report::{OpenRequest, RequestId};
use workflow_testkit::{Scenario, Start, explore};

use super::{Noted, Told, noted_sorted, told};
use crate::fixtures::{Begin, Done, Gate, Item, Part, everyone_else, started};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

struct Asking;

#[workflow]
impl Asking {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn ask(&self, item: &Item) -> Ask {
        Ask(item.0)
    }

    #[step]
    async fn take(&self, item: &Item, answer: &Reply<Ask>) -> (Part, Noted) {
        assert_eq!(item.0, answer.request().0);
        (Part(*answer.value()), Noted(format!("item {} reply {}", item.0, answer.value())))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Told {
        told(parts.ok().map(|part| part.0.to_string()))
    }
}

fn asking() -> Start<Asking> {
    Scenario::new(Asking).reply(|ask: &Ask| 10 * ask.0).start(Begin(3))
}

// S47
#[test]
fn a_reply_belongs_to_the_branch_that_asked() {
    explore(asking).every_order().orders(50).assert(|run| {
        assert_eq!(noted_sorted(run), ["item 0 reply 0", "item 1 reply 10", "item 2 reply 20"]);
        run.assert_output(&told(["0", "10", "20"]));
    });
}

// S47
#[test]
fn a_branch_settles_only_after_the_reply_to_its_request() {
    explore(asking).every_order().orders(50).assert(|run| {
        run.assert_order("take", "end");
        run.assert_executions("take", 3);
    });
}

/// The gather collects the reply itself.
struct Polling;

#[workflow]
impl Polling {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Ask> {
        (0..begin.0).map(Ask).collect()
    }

    #[step]
    async fn note(&self, answer: Reply<Ask>) -> Part {
        Part(*answer)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S44, S47
#[tokio::test]
async fn an_item_can_be_a_request_itself() {
    Scenario::new(Polling).start(Begin(3)).await.assert_waiting();
    let run = Scenario::new(Polling).reply(|ask: &Ask| 10 * ask.0).start(Begin(3)).await;
    run.assert_output(&Done(30));
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// The first branch asks, the second fails when its gate opens.
struct AskingInVain(Gate);

#[workflow]
impl AskingInVain {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn again(&self, _outer: &Outer) -> FanOut<Item> {
        (0..2).map(Item).collect()
    }

    #[step]
    async fn ask(&self, item: &Item) -> Result<Option<Ask>, StepError> {
        if item.0 == 0 {
            return Ok(Some(Ask(item.0)));
        }
        self.0.pass().await;
        Err(StepError::rejected("no"))
    }

    #[step]
    async fn answered(&self, answer: Reply<Ask>) -> Part {
        Part(*answer)
    }

    #[step]
    async fn join(&self, _parts: &Gather<Part>) -> Joined {
        Joined(0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        Done(u32::try_from(joined.failed().count()).unwrap())
    }
}

// S47, S49
#[tokio::test]
async fn a_request_of_a_dropped_branch_is_not_open_any_more() {
    let gate = Gate::closed();
    let run = started(AskingInVain(gate.clone()), 2).await;
    everyone_else().await;
    let requests: Vec<RequestId<Ask>> =
        run.requests().await.unwrap().iter().filter_map(OpenRequest::id).collect();
    assert_eq!(requests.len(), 2);
    // Only the first of the two outer branches reaches its failure.
    gate.let_pass(1);
    everyone_else().await;
    let open = run.requests().await.unwrap();
    assert_eq!(open.len(), 1);
    assert!(matches!(run.reply(requests[0], 1).await, Err(SendError::NotOpen { .. })));
    gate.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}

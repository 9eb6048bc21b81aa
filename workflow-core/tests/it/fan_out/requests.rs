//! Requests in branches, and their replies (S45, S47).

use workflow_core::prelude::*;
use workflow_core::{OpenRequest, RequestId, RunHandle, RunStatus, SendError};

use crate::fixtures::{Begin, Done, Gate, Item, Part, Seen, everyone_else, log_of, started};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

struct Asking(Seen);

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
    async fn take(&self, item: &Item, answer: &Reply<Ask>) -> Part {
        assert_eq!(item.0, answer.request().0);
        self.0.note(format!("item {} reply {}", item.0, answer.value()));
        Part(*answer.value())
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        let parts: Vec<u32> = parts.ok().map(|part| part.0).collect();
        self.0.note(format!("{parts:?}"));
        Done(u32::try_from(parts.len()).unwrap())
    }
}

async fn open(run: &RunHandle<Asking>) -> Vec<RequestId<Ask>> {
    run.requests().await.unwrap().iter().filter_map(OpenRequest::id).collect()
}

// S47
#[tokio::test]
async fn a_reply_belongs_to_the_branch_that_asked() {
    let seen = Seen::default();
    let run = started(Asking(seen.clone()), 3).await;
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let requests = open(&run).await;
    for (request, reply) in [(2, 20), (0, 0), (1, 10)] {
        run.reply(requests[request], reply).await.unwrap();
    }
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    assert_eq!(seen.lines(), ["item 2 reply 20", "item 0 reply 0", "item 1 reply 10", "[0, 10, 20]"]);
}

// S47
#[tokio::test]
async fn a_branch_settles_only_after_the_reply_to_its_request() {
    let run = started(Asking(Seen::default()), 2).await;
    run.settled().await;
    let requests = open(&run).await;
    run.reply(requests[1], 1).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    assert_eq!(open(&run).await.len(), 1);
    run.reply(requests[0], 0).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    let report = run.report().await.unwrap();
    let last_part = log_of(&report).iter().rposition(|event| *event == "Part");
    let gathered = log_of(&report).iter().position(|event| *event == "split.Item.gathered");
    assert!(last_part < gathered);
}

/// The reply itself is what the gather wants.
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
    let run = started(Polling, 3).await;
    assert_eq!(run.settled().await, RunStatus::Waiting);
    for open in run.requests().await.unwrap() {
        let asked = open.downcast_ref::<Ask>().unwrap().0;
        run.reply(open.id::<Ask>().unwrap(), 10 * asked).await.unwrap();
    }
    assert_eq!(run.outcome().await.unwrap(), Done(30));
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
    // Only the first of the two outer branches comes to its failure.
    gate.let_pass(1);
    everyone_else().await;
    let open = run.requests().await.unwrap();
    assert_eq!(open.len(), 1);
    assert!(matches!(run.reply(requests[0], 1).await, Err(SendError::NotOpen { .. })));
    gate.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}

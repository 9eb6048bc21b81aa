//! Replies to the one open request of a type (S79).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use workflow_core::prelude::*;
use workflow_core::report::OpenRequest;
use workflow_core::store::MemoryStore;
use workflow_core::{AnyRun, Origin, Pause, RunHandle, RunStatus, SendError, Seq};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, log_of};

const HOUR: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = Approval)]
struct Approve {
    left: u32,
    sum: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Approval(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Other;

/// Asks as often as its start says, one after the other, and ends with the sum.
struct Asks;

#[workflow]
impl Asks {
    #[step]
    async fn first(&self, begin: &Begin) -> Approve {
        Approve { left: begin.0, sum: 0 }
    }

    #[step]
    async fn again(&self, approval: &Reply<Approve>) -> Next {
        let (left, sum) = (approval.request().left - 1, approval.request().sum + approval.0);
        if left == 0 { Next::Done(Done(sum)) } else { Next::Ask(Approve { left, sum }) }
    }
}

#[derive(EventSet)]
enum Next {
    Ask(Approve),
    Done(Done),
}

/// Asks so many at once, each for an hour, and ends with the reply to another request.
struct AsksMany;

#[workflow]
impl AsksMany {
    #[step]
    async fn begin(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn ask(&self, item: &Item) -> Expiring<Approve> {
        Approve { left: item.0, sum: 0 }.expires_in(HOUR)
    }

    #[step]
    async fn stale(&self, _stale: &Expired<Approve>) {}

    #[step]
    async fn end(&self, other: &Reply<Other>) -> Done {
        Done(u32::from(**other))
    }

    #[step]
    async fn take(&self, _approval: &Reply<Approve>) {}

    #[step]
    async fn keep_open(&self, _begin: &Begin) -> Other {
        Other
    }
}

async fn started<W: Workflow>(workflow: W, begin: u32) -> RunHandle<W> {
    let engine = Engine::builder().workflow(workflow).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<W>(Begin(begin)).await.unwrap();
    run.settled().await;
    run
}

fn by(id: &str) -> Origin {
    Origin::new().by("ada").id(id)
}

/// Both ways to reply to the open `Approve`.
async fn refusals(run: &AnyRun) -> SendError {
    let typed = run.reply_to::<Approve>(Approval(1)).await.unwrap_err();
    assert_eq!(run.reply_to_json("Approve", json!(1)).await.unwrap_err(), typed);
    typed
}

// S79
#[tokio::test(start_paused = true)]
async fn the_only_open_request_gets_the_reply() {
    let run = started(Asks, 2).await;
    run.reply_to::<Approve>(Approval(5)).await.unwrap();
    run.settled().await;
    run.any().reply_to_json("Approve", json!(7)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(12));
}

// S79
#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_has_made_is_said_to_be_so() {
    let run = started(AsksMany, 0).await;
    assert_eq!(refusals(&run).await, SendError::NotAsked { asked: "Approve".into() });
    let error = refusals(&run).await.to_string();
    assert_eq!(error, "no request `Approve` is open: the run has made none so far");
}

// S79
#[tokio::test(start_paused = true)]
async fn a_closed_request_is_said_to_be_answered_or_expired() {
    let run = started(AsksMany, 1).await;
    let asked = run.requests().await.unwrap().into_iter().find(|open| open.name() == "Approve").unwrap();
    run.reply_to::<Approve>(Approval(5)).await.unwrap();
    assert_eq!(refusals(&run).await, SendError::Answered { request: asked.seq() });

    let run = started(AsksMany, 1).await;
    tokio::time::sleep(2 * HOUR).await;
    run.settled().await;
    let at = asked.asked_at() + HOUR;
    assert_eq!(refusals(&run).await, SendError::Expired { request: asked.seq(), at });
}

// S79
#[tokio::test(start_paused = true)]
async fn of_several_open_requests_the_caller_chooses() {
    let run = started(AsksMany, 3).await;
    let open: Vec<Seq> = run
        .requests()
        .await
        .unwrap()
        .iter()
        .filter(|open| open.name() == "Approve")
        .map(OpenRequest::seq)
        .collect();
    let refused = refusals(&run).await;
    assert_eq!(refused, SendError::SeveralOpen { asked: "Approve".into(), open: open.clone(), count: 3 });
    let text = format!(
        "3 requests `Approve` are open: choose one of {}, {} and {} with `reply`",
        open[0], open[1], open[2]
    );
    assert_eq!(refused.to_string(), text);
    for seq in &open[..2] {
        run.reply_json(*seq, json!(1)).await.unwrap();
    }
    run.reply_to::<Approve>(Approval(9)).await.unwrap();
    run.reply_to::<Other>(true).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

// S79
#[tokio::test(start_paused = true)]
async fn of_very_many_the_oldest_are_named() {
    let run = started(AsksMany, 100).await;
    let refused = refusals(&run).await;
    assert!(refused.to_string().contains(" and 84 more with `reply`"), "{refused}");
    assert!(
        matches!(refused, SendError::SeveralOpen { open, count: 100, .. } if open.len() == SendError::MOST_NAMED)
    );
}

// S79
#[tokio::test(start_paused = true)]
async fn a_request_that_the_workflow_does_not_have_is_refused_with_those_that_it_has() {
    let run = started(Asks, 1).await;
    let (asked, fitting) = ("Other".into(), vec!["Approve".into()]);
    let unknown = SendError::UnknownRequest { asked, fitting };
    assert_eq!(run.reply_to::<Other>(true).await.unwrap_err(), unknown);
    assert_eq!(run.reply_to_json("Other", json!(true)).await.unwrap_err(), unknown);
    assert_eq!(unknown.to_string(), "the workflow has no request `Other`: it has `Approve`");
    assert!(run.reply_to_json("Begin", json!(1)).await.is_err(), "an event of another role is no request");
    let unfit = run.reply_to_json("Approve", json!("many")).await.unwrap_err();
    assert!(matches!(unfit, SendError::UnfitReply { request: Seq(2), .. }), "{unfit}");
}

// S79
#[tokio::test(start_paused = true)]
async fn a_run_that_has_ended_says_so() {
    let run = started(Asks, 1).await;
    run.with_origin(by("1")).reply_to::<Approve>(Approval(5)).await.unwrap();
    run.outcome().await.unwrap();
    let ended = SendError::Ended { run: run.id().clone(), status: RunStatus::Completed };
    assert_eq!(refusals(&run).await, ended);
    run.with_origin(by("1")).reply_to::<Approve>(Approval(5)).await.unwrap();
    run.with_origin(by("1")).reply_to_json("Approve", json!(5)).await.unwrap();
}

// S79, S61
#[tokio::test(start_paused = true)]
async fn a_paused_run_takes_the_reply() {
    let run = started(Asks, 1).await;
    run.pause(Pause::AfterRunning).await.unwrap();
    run.reply_to::<Approve>(Approval(5)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    run.unpause().await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(5));
}

// S79, S62
#[tokio::test(start_paused = true)]
async fn a_repetition_answers_no_second_request() {
    let run = started(Asks, 2).await;
    let (typed, json) = (run.with_origin(by("1")), run.any().with_origin(by("1")));
    typed.reply_to::<Approve>(Approval(5)).await.unwrap();
    run.settled().await;
    // The run has asked again.
    typed.reply_to::<Approve>(Approval(5)).await.unwrap();
    json.reply_to_json("Approve", json!(5)).await.unwrap();
    assert_eq!(run.requests().await.unwrap().len(), 1);
    run.with_origin(by("2")).reply_to::<Approve>(Approval(7)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(12));
    typed.reply_to::<Approve>(Approval(5)).await.unwrap();
}

// S79, S62
#[tokio::test(start_paused = true)]
async fn a_repetition_succeeds_where_several_or_none_are_open() {
    let run = started(AsksMany, 2).await;
    let first = run.requests().await.unwrap().iter().find_map(OpenRequest::id::<Approve>).unwrap();
    run.reply(first, Approval(1)).await.unwrap();
    let by_ada = run.with_origin(by("1"));
    by_ada.reply_to::<Approve>(Approval(5)).await.unwrap();
    // None is open.
    by_ada.reply_to::<Approve>(Approval(5)).await.unwrap();
    by_ada.reply_to_json("Approve", json!(5)).await.unwrap();

    let run = started(AsksMany, 3).await;
    let first = run.requests().await.unwrap().iter().find_map(OpenRequest::id::<Approve>).unwrap();
    let by_ada = run.with_origin(by("1"));
    by_ada.reply(first, Approval(1)).await.unwrap();
    // Two are open.
    by_ada.reply_to::<Approve>(Approval(1)).await.unwrap();
    by_ada.reply_to_json("Approve", json!(1)).await.unwrap();
    assert_eq!(run.requests().await.unwrap().len(), 3);
}

/// Many callers reply to one request at once, and the same call comes twice from each.
async fn race(store: bool, round: u32) {
    let engine = Engine::builder().workflow(Asks);
    let engine = if store { engine.store(MemoryStore::default()) } else { engine };
    let engine = engine.build().unwrap();
    let run = engine.start::<Asks>(Begin(1)).await.unwrap();
    run.settled().await;
    let calls = (0..4).flat_map(|caller| [(caller, round.is_multiple_of(2)), (caller, true)]).map(
        |(caller, typed)| {
            let run = run.with_origin(by(&caller.to_string()));
            tokio::spawn(async move {
                let sent = if typed {
                    run.reply_to::<Approve>(Approval(caller)).await
                } else {
                    run.reply_to_json("Approve", json!(caller)).await
                };
                sent.map(|()| caller)
            })
        },
    );
    let results: Vec<_> = join_all(calls.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).collect();
    let won = run.outcome().await.unwrap().0;
    for (index, result) in results.into_iter().enumerate() {
        let caller = u32::try_from(index / 2).unwrap();
        match result {
            Ok(caller) => assert_eq!(caller, won),
            Err(SendError::Answered { request: Seq(2) } | SendError::Ended { .. }) => assert_ne!(caller, won),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin", "Approve", "Approve.reply", "Done"]);
}

// S79, S62
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_callers_at_once_one_answers_and_its_repetition_succeeds() {
    for round in 0..100 {
        race(round % 4 < 2, round).await;
    }
}

// S79, S62
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_at_once_with_one_id_answer_one_request_of_a_run_that_asks_again() {
    for _ in 0..50 {
        let engine = Engine::builder().workflow(Asks).build().unwrap();
        let run = engine.start::<Asks>(Begin(2)).await.unwrap();
        run.settled().await;
        let calls = (0..4).map(|caller| {
            let run = run.with_origin(by("same"));
            tokio::spawn(async move {
                if caller % 2 == 0 {
                    run.reply_to::<Approve>(Approval(1)).await
                } else {
                    run.reply_to_json("Approve", json!(1)).await
                }
            })
        });
        for result in join_all(calls.collect::<Vec<_>>()).await {
            result.unwrap().unwrap();
        }
        assert_eq!(run.settled().await, RunStatus::Waiting);
        assert_eq!(
            run.requests().await.unwrap()[0].downcast_ref::<Approve>(),
            Some(&Approve { left: 1, sum: 1 })
        );
        run.reply_to::<Approve>(Approval(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(2));
    }
}

/// What reading an `Amount` does first.
static WHILE_READ: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

#[derive(Debug, Clone, Serialize)]
struct Amount(u32);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let before = WHILE_READ.lock().unwrap().take();
        if let Some(before) = before {
            before();
        }
        u32::deserialize(from).map(Amount)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Amount)]
struct HowMuch(u32);

/// Asks twice, one after the other.
struct Bids;

#[workflow]
impl Bids {
    #[step]
    async fn ask(&self, _begin: &Begin) -> HowMuch {
        HowMuch(0)
    }

    #[step]
    async fn again(&self, bid: &Reply<HowMuch>) -> More {
        match bid.request().0 {
            0 => More::Ask(HowMuch(bid.0)),
            first => More::Done(Done(first + bid.0)),
        }
    }
}

#[derive(EventSet)]
enum More {
    Ask(HowMuch),
    Done(Done),
}

// S79
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_that_was_read_for_a_request_answers_no_later_one() {
    let engine = Engine::builder().workflow(Bids).build().unwrap();
    let run = Arc::new(engine.start::<Bids>(Begin(1)).await.unwrap());
    run.settled().await;
    let first = run.requests().await.unwrap()[0].id::<HowMuch>().unwrap();
    let faster = Arc::clone(&run);
    *WHILE_READ.lock().unwrap() = Some(Box::new(move || {
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                faster.reply(first, Amount(1)).await.unwrap();
                while faster.requests().await.unwrap().is_empty() {
                    tokio::task::yield_now().await;
                }
            });
        });
    }));
    let slower = tokio::spawn({
        let run = Arc::clone(&run);
        async move { run.reply_to_json("HowMuch", json!(100)).await }
    });
    assert_eq!(slower.await.unwrap(), Err(SendError::Answered { request: first.seq() }));
    run.reply_to_json("HowMuch", json!(2)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3));
}

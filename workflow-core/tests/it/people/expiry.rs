//! Requests that expire (S32, S33).

use std::time::Duration;

use expect_test::expect;
use workflow_core::prelude::*;
use workflow_core::report::{OpenRequest, RequestId};
use workflow_core::{RunHandle, RunStatus, SendError, Seq};
use workflow_testkit::{Outcome, Scenario, Start, VirtualClock, explore};

use crate::fixtures::{Begin, Close, Done, Item, Part, log_of};

const HOUR: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

struct Asking;

#[workflow]
impl Asking {
    #[step]
    async fn ask(&self, begin: &Begin) -> Expiring<Ask> {
        Ask(begin.0).expires_in(HOUR)
    }

    #[step]
    async fn answered(&self, answer: &Reply<Ask>) -> Done {
        Done(*answer.value())
    }

    #[step]
    async fn unanswered(&self, asked: &Expired<Ask>) -> Done {
        Done(100 + asked.request().0)
    }
}

async fn asking() -> (RunHandle<Asking>, RequestId<Ask>) {
    let engine = Engine::builder().workflow(Asking).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Asking>(Begin(7)).await.unwrap();
    run.settled().await;
    let request = run.requests().await.unwrap()[0].id().unwrap();
    (run, request)
}

// S32
#[tokio::test]
async fn a_request_without_a_timely_reply_becomes_an_expiry_event() {
    let run = Scenario::new(Asking).start(Begin(7)).await;
    run.assert_output(&Done(107));
    assert_eq!(log_of(run.report()), ["Begin", "Ask", "Ask.expired", "Done"]);
    let expired = &run.report().log[2];
    assert_eq!((expired.expired, expired.execution), (Some(Seq(2)), None));
    assert_eq!(run.elapsed(), HOUR);
}

// S32
#[tokio::test]
async fn a_request_that_is_answered_in_time_does_not_expire() {
    let run = Scenario::new(Asking).reply(|ask: &Ask| ask.0).start(Begin(7)).await;
    run.assert_output(&Done(7));
    assert_eq!(run.elapsed(), Duration::ZERO);
}

// S33
#[tokio::test(start_paused = true)]
async fn a_late_reply_is_refused_because_the_request_has_expired() {
    struct Waiting;

    #[workflow]
    impl Waiting {
        #[step]
        async fn ask(&self, begin: &Begin) -> Expiring<Ask> {
            Ask(begin.0).expires_at(VirtualClock::beginning() + HOUR)
        }

        #[step]
        async fn answered(&self, answer: &Reply<Ask>) -> Item {
            Item(*answer.value())
        }

        #[step]
        async fn end(&self, item: &Item, _: &Close) -> Done {
            Done(item.0)
        }

        #[step]
        async fn late(&self, asked: &Expired<Ask>, _: &Close) -> Done {
            Done(asked.0)
        }
    }

    let engine = Engine::builder().workflow(Waiting).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Waiting>(Begin(7)).await.unwrap();
    run.settled().await;
    let request: RequestId<Ask> = run.requests().await.unwrap()[0].id().unwrap();
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(run.settled().await, RunStatus::Waiting);
    assert!(run.requests().await.unwrap().is_empty());
    let late = run.reply(request, 1).await.unwrap_err();
    assert!(matches!(late, SendError::Expired { request: Seq(2), .. }));
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
}

// S33
#[tokio::test(start_paused = true)]
async fn a_request_that_was_answered_says_so_and_drops_its_timer() {
    let (run, request) = asking().await;
    assert_eq!(run.timers().await.unwrap()[0].request, Some(request.seq()));
    let [first, second] =
        futures::future::join_all([1, 2].map(|answer| run.reply(request, answer))).await.try_into().unwrap();
    assert_eq!(first, Ok(()));
    assert!(matches!(second, Err(SendError::Answered { .. } | SendError::Ended { .. })));
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

// S32: a reply and the expiry race, and exactly one of them wins.
#[test]
fn of_a_reply_and_the_expiry_exactly_one_is_taken() {
    let race = || -> Start<Asking> { Scenario::new(Asking).reply(|ask: &Ask| ask.0).start(Begin(7)) };
    let explored = explore(race).every_order().assert(|run| {
        let log = log_of(run.report());
        let taken = log.iter().filter(|event| ["Ask.reply", "Ask.expired"].contains(event));
        assert_eq!(taken.count(), 1);
        assert_eq!(run.executions("answered") + run.executions("unanswered"), 1);
    });
    let outputs: Vec<&str> = explored.outcomes().filter_map(Outcome::output).collect();
    assert!(outputs.contains(&"Done 7") && outputs.contains(&"Done 107"), "{outputs:?}");
}

/// No step takes the expiry.
struct Careless;

#[workflow]
impl Careless {
    #[step]
    async fn ask(&self, begin: &Begin) -> Expiring<Ask> {
        Ask(begin.0).expires_in(HOUR)
    }

    #[step]
    async fn answered(&self, answer: &Reply<Ask>) -> Done {
        Done(*answer.value())
    }
}

// S30, S32
#[tokio::test]
async fn an_expiry_without_a_taker_closes_the_request_and_the_report_says_so() {
    let run = Scenario::new(Careless).start(Begin(7)).await;
    run.assert_stalled("`Ask` was asked and expired before anybody answered");
    assert_eq!(run.elapsed(), HOUR);
}

#[tokio::test]
async fn a_transcript_tells_what_has_expired() {
    let run = Scenario::new(Asking).start(Begin(7)).await;
    expect![[r"
        #1 Begin from outside: 7
        x1 ask by #1: succeeded
        #2 Ask of x1: 7
        waits
        #3 Ask.expired of #2 without a reply: 7
        x2 unanswered by #3: succeeded
        #4 Done of x2: 107
        completed with #4
    "]]
    .assert_eq(&run.transcript());
}

/// Each branch has a request with its own time limit.
struct Polling;

#[workflow]
impl Polling {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn ask(&self, item: &Item) -> Expiring<Ask> {
        Ask(item.0).expires_in(item.0 * HOUR)
    }

    #[step]
    async fn answered(&self, item: &Item, answer: &Reply<Ask>) -> Part {
        Part(item.0 + answer.value())
    }

    #[step]
    async fn unanswered(&self, item: &Item, asked: &Expired<Ask>) -> Part {
        assert_eq!(item.0, asked.0);
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S45, S47
#[test]
fn an_expiry_belongs_to_the_branch_that_asked() {
    explore(|| Scenario::new(Polling).start(Begin(2))).orders(100).assert(|run| run.assert_output(&Done(3)));
    explore(|| Scenario::new(Polling).reply(|ask: &Ask| 10 * ask.0).start(Begin(2))).orders(300).assert(
        |run| {
            // Either may win in each branch.
            assert_eq!(run.executions("answered") + run.executions("unanswered"), 2);
            run.assert_executions("join", 1);
        },
    );
}

/// Repeats its request until a reply arrives.
struct Persistent;

#[workflow]
impl Persistent {
    #[step]
    async fn ask(&self, begin: &Begin) -> Expiring<Ask> {
        Ask(begin.0).expires_in(HOUR)
    }

    #[step(loops)]
    async fn ask_again(&self, asked: &Expired<Ask>) -> Expiring<Ask> {
        Ask(asked.0 + 1).expires_in(HOUR)
    }

    #[step]
    async fn answered(&self, answer: &Reply<Ask>) -> Done {
        Done(answer.request().0 + answer.value())
    }
}

// S32, S33
#[tokio::test(start_paused = true)]
async fn an_expired_request_may_be_repeated() {
    let engine = Engine::builder().workflow(Persistent).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Persistent>(Begin(0)).await.unwrap();
    tokio::time::sleep(HOUR * 7 / 2).await;
    let open: Vec<OpenRequest> = run.requests().await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].downcast_ref(), Some(&Ask(3)));
    run.reply(open[0].id::<Ask>().unwrap(), 10).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(13));
}

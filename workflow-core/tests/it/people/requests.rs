//! Requests to the outside, their replies, and external events (S2, S5, S30, S33).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::{OpenRequest, RequestId};
use workflow_core::{RunHandle, RunStatus, SendError, Seq};
use workflow_testkit::{Scenario, VirtualClock};

use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Item, Seen, log_of, started};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = Approval)]
struct ApproveRefund {
    cents: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Approval {
    granted: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = String)]
struct AskName;

struct Refunds(Seen);

#[workflow]
impl Refunds {
    #[step]
    async fn ask(&self, begin: &Begin) -> Vec<ApproveRefund> {
        (1..=begin.0).map(|cents| ApproveRefund { cents }).collect()
    }

    #[step]
    async fn take(&self, approval: &Reply<ApproveRefund>) {
        let verb = if approval.granted { "granted" } else { "refused" };
        self.0.note(format!("{verb} {}", approval.request().cents));
    }

    #[step]
    async fn end(&self, _close: &Close, last: Reply<ApproveRefund>) -> Done {
        Done(last.request().cents)
    }
}

async fn first_request(run: &workflow_core::RunHandle<Refunds>) -> OpenRequest {
    run.settled().await;
    run.requests().await.unwrap().remove(0)
}

// S30
#[tokio::test]
async fn a_run_with_an_open_request_waits_and_lists_it() {
    let run = started(Refunds(Seen::default()), 2).await;
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let requests = run.requests().await.unwrap();
    let cents: Vec<u32> =
        requests.iter().map(|request| request.downcast_ref::<ApproveRefund>().unwrap().cents).collect();
    assert_eq!(cents, [1, 2]);
    assert_eq!(requests[0].seq(), Seq(2));
    assert_eq!(requests[0].event().name(), "ApproveRefund");
    assert!(requests[0].id::<AskName>().is_none());
}

// S5
#[tokio::test]
async fn a_reply_comes_together_with_the_very_request_it_answers() {
    let seen = Seen::default();
    let run = started(Refunds(seen.clone()), 3).await;
    run.settled().await;
    let ids: Vec<RequestId<ApproveRefund>> =
        run.requests().await.unwrap().iter().filter_map(OpenRequest::id).collect();
    run.reply(ids[2], Approval { granted: true }).await.unwrap();
    run.reply(ids[0], Approval { granted: false }).await.unwrap();
    run.settled().await;
    assert_eq!(seen.lines(), ["granted 3", "refused 1"]);
    assert_eq!(run.requests().await.unwrap().len(), 1);
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

// S2
#[tokio::test]
async fn a_reply_stands_in_the_log_under_its_requests_name() {
    let refunds =
        Scenario::new(Refunds(Seen::default())).reply(|_: &ApproveRefund| Approval { granted: true });
    let run = refunds.send(Close).start(Begin(1)).await;
    assert_eq!(log_of(run.report()), ["Begin", "ApproveRefund", "ApproveRefund.reply", "Close", "Done"]);
}

// S33
#[tokio::test]
async fn a_reply_that_is_delivered_again_is_refused_and_changes_nothing() {
    let seen = Seen::default();
    let run = started(Refunds(seen.clone()), 2).await;
    let request = first_request(&run).await.id::<ApproveRefund>().unwrap();
    run.reply(request, Approval { granted: true }).await.unwrap();
    let again = run.reply(request, Approval { granted: false }).await.unwrap_err();
    assert_eq!(again, SendError::Answered { request: request.seq() });
    run.settled().await;
    assert_eq!(seen.lines(), ["granted 1"]);
}

// S33
#[tokio::test]
async fn a_reply_to_what_was_never_asked_is_refused() {
    let run = started(Refunds(Seen::default()), 1).await;
    run.settled().await;
    for seq in [0, 1, 99] {
        let nowhere = RequestId::<ApproveRefund>::new(Seq(seq));
        let error = run.reply(nowhere, Approval { granted: true }).await.unwrap_err();
        assert_eq!(error, SendError::NotOpen { request: Seq(seq) });
    }
}

// S5
#[tokio::test]
async fn a_reply_to_a_request_of_another_type_is_refused_and_leaves_it_open() {
    let run = started(Refunds(Seen::default()), 1).await;
    let request = first_request(&run).await;
    let wrong = RequestId::<AskName>::new(request.seq());
    let error = run.reply(wrong, "Ada".into()).await.unwrap_err();
    assert!(
        matches!(&error, SendError::WrongRequest { asked, answered: "AskName", .. } if asked == "ApproveRefund"),
        "{error}"
    );
    run.reply(request.id::<ApproveRefund>().unwrap(), Approval { granted: true }).await.unwrap();
}

// S33
#[tokio::test]
async fn of_two_replies_at_once_one_is_taken() {
    let seen = Seen::default();
    let run = started(Refunds(seen.clone()), 1).await;
    let request = first_request(&run).await.id::<ApproveRefund>().unwrap();
    let replies = [true, false].map(|granted| run.reply(request, Approval { granted }));
    let [first, second] = futures::future::join_all(replies).await.try_into().unwrap();
    assert!(first.is_ok() && second.is_err());
    run.settled().await;
    assert_eq!(seen.lines(), ["granted 1"]);
}

struct Names(Seen);

#[workflow]
impl Names {
    #[step]
    async fn ask(&self, _begin: &Begin) -> AskName {
        AskName
    }

    /// A request is a control event like any other.
    #[step]
    async fn watch(&self, _asked: &AskName) -> Item {
        self.0.note("asked");
        Item(0)
    }

    #[step(reruns)]
    async fn end(&self, alpha: &Alpha, name: Option<Reply<AskName>>, _item: &Item) -> Option<Done> {
        self.0.note(format!("{:?}", name.as_ref().map(|name| name.value().clone())));
        name.is_some().then_some(Done(alpha.0))
    }
}

// S5, S8
#[tokio::test]
async fn an_optional_reply_is_none_until_it_comes() {
    let seen = Seen::default();
    let names = Scenario::new(Names(seen.clone())).send_after(Duration::ZERO, Alpha(1));
    let run = names.reply(|_: &AskName| "Ada".into()).start(Begin(0)).await;
    run.assert_output(&Done(1));
    assert_eq!(seen.lines(), ["asked", "None", "Some(\"Ada\")"]);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Fire;

struct FireAndForget;

#[workflow]
impl FireAndForget {
    #[step]
    async fn ask(&self, begin: &Begin) -> (Fire, Done) {
        (Fire, Done(begin.0))
    }

    #[step]
    async fn take(&self, answer: Reply<Fire>) -> Done {
        Done(*answer)
    }
}

// S28
#[tokio::test]
async fn an_open_request_does_not_keep_a_run_from_its_stop() {
    assert_eq!(FireAndForget.run(Begin(2)).await.unwrap(), Done(2));
}

struct External;

#[workflow]
impl External {
    #[step]
    async fn opened(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn take(&self, alpha: &Alpha, beta: &Beta, item: &Item) -> Done {
        Done(alpha.0 + beta.0 + item.0)
    }
}

// S2
#[tokio::test]
async fn an_external_event_drives_steps_like_any_other() {
    let run = Scenario::new(External).send(Alpha(10)).send(Beta(100)).start(Begin(1)).await;
    run.assert_output(&Done(111));
    assert_eq!(log_of(run.report()), ["Begin", "Item", "Alpha", "Beta", "Done"]);
}

// S4
#[tokio::test]
async fn a_send_returns_when_the_event_is_in_the_log() {
    let run = started(External, 1).await;
    run.send(Alpha(1)).await.unwrap();
    run.cancel("now").await.unwrap();
    let report = run.report().await.unwrap();
    assert!(log_of(&report).contains(&"Alpha"));
}

// S2
#[tokio::test]
async fn events_that_are_sent_before_the_run_got_anywhere_are_kept() {
    let run = started(External, 0).await;
    let (alpha, beta, outcome) = tokio::join!(run.send(Alpha(1)), run.send(Beta(2)), run.outcome());
    alpha.unwrap();
    beta.unwrap();
    assert_eq!(outcome.unwrap(), Done(3));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Rating {
    stars: u8,
    comment: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = Rating)]
struct AskRating {
    of: String,
}

/// Makes two requests, one of which expires.
struct Ratings(Seen);

#[workflow]
impl Ratings {
    #[step]
    async fn ask(&self, begin: &Begin) -> (AskRating, Expiring<AskRating>, AskName) {
        let ask = |of: &str| AskRating { of: of.into() };
        (ask("tea"), ask("cake").expires_in(Duration::from_hours(u64::from(begin.0))), AskName)
    }

    #[step]
    async fn take(&self, rating: &Reply<AskRating>) -> Item {
        self.0.note(format!("{}: {}", rating.request().of, rating.stars));
        Item(u32::from(rating.stars))
    }

    #[step]
    async fn name(&self, name: &Reply<AskName>) -> Item {
        self.0.note(name.value().clone());
        Item(0)
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 2>) -> Done {
        Done(items.iter().map(|item| item.0).sum())
    }
}

async fn ratings(seen: &Seen) -> workflow_core::RunHandle<Ratings> {
    let engine = Engine::builder().workflow(Ratings(seen.clone())).clock(VirtualClock::new());
    let run = engine.build().unwrap().start::<Ratings>(Begin(2)).await.unwrap();
    run.settled().await;
    run
}

// S2
#[tokio::test(start_paused = true)]
async fn a_request_says_all_that_a_page_has_to_show() {
    let run = ratings(&Seen::default()).await;
    let [tea, cake, name] = run.requests().await.unwrap().try_into().unwrap();
    assert_eq!((tea.name(), tea.data().unwrap()), ("AskRating", serde_json::json!({"of": "tea"})));
    let schema = tea.reply_schema().unwrap();
    assert_eq!(schema["properties"]["stars"]["type"], "integer");
    assert_eq!(schema["required"], serde_json::json!(["stars"]));
    assert_eq!((tea.asked_at(), tea.expires_at()), (VirtualClock::beginning(), None));
    assert_eq!(cake.expires_at(), Some(VirtualClock::beginning() + Duration::from_hours(2)));
    let page = serde_json::to_value(&cake).unwrap();
    assert_eq!((&page["seq"], &page["data"]["of"]), (&serde_json::json!(3), &serde_json::json!("cake")));
    assert_eq!(page["reply_schema"], schema);
    // `String` has a schema of its own.
    assert_eq!(name.reply_schema().unwrap()["type"], "string");
}

/// Its reply has no schema.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Approval)]
struct Unsketched;

struct Plain;

#[workflow]
impl Plain {
    #[step]
    async fn ask(&self, _: &Begin) -> Unsketched {
        Unsketched
    }

    #[step]
    async fn end(&self, approval: &Reply<Unsketched>) -> Done {
        Done(u32::from(approval.granted))
    }
}

#[tokio::test]
async fn a_reply_without_a_schema_is_replied_to_all_the_same() {
    let run = started(Plain, 0).await;
    run.settled().await;
    let request = run.requests().await.unwrap().remove(0);
    assert_eq!(request.reply_schema(), None);
    run.reply_json(request.seq(), serde_json::json!({"granted": true})).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

// S33
#[tokio::test(start_paused = true)]
async fn json_that_is_no_reply_is_refused_with_its_path_and_changes_nothing() {
    let seen = Seen::default();
    let run = ratings(&seen).await;
    let [tea, _, name] = run.requests().await.unwrap().try_into().unwrap();
    let unfit = run.reply_json(tea.seq(), serde_json::json!({"stars": "many"})).await.unwrap_err();
    let SendError::UnfitReply { request, asked, path, .. } = &unfit else { panic!("{unfit}") };
    assert_eq!((*request, &**asked, &**path), (tea.seq(), "AskRating", "stars"));
    assert_eq!(run.requests().await.unwrap().len(), 3);
    assert_eq!(run.status(), RunStatus::Waiting);
    run.reply_json(tea.seq(), serde_json::json!({"stars": 4, "comment": "warm"})).await.unwrap();
    let again = run.reply_json(tea.seq(), serde_json::json!({"stars": 4})).await.unwrap_err();
    assert_eq!(again, SendError::Answered { request: tea.seq() });
    let nowhere = run.reply_json(Seq(99), serde_json::json!(null)).await.unwrap_err();
    assert_eq!(nowhere, SendError::NotOpen { request: Seq(99) });
    run.reply_json(name.seq(), serde_json::json!("Ada")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(4));
    assert_eq!(seen.lines(), ["tea: 4", "Ada"]);
}

// S5, S32
#[tokio::test(start_paused = true)]
async fn json_for_an_expired_request_is_refused_as_expired() {
    let run = ratings(&Seen::default()).await;
    tokio::time::sleep(Duration::from_hours(3)).await;
    let late = run.reply_json(Seq(3), serde_json::json!({"stars": 1})).await.unwrap_err();
    assert!(matches!(late, SendError::Expired { request: Seq(3), .. }));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = (u32, u32))]
struct Which {
    run: u32,
    place: u32,
}

/// Makes two requests at once, and fails if a reply does not reach its own request.
struct Pairs;

#[workflow]
impl Pairs {
    #[step]
    async fn ask(&self, begin: &Begin) -> Vec<Which> {
        (0..2).map(|place| Which { run: begin.0, place }).collect()
    }

    #[step]
    async fn take(&self, reply: &Reply<Which>) -> Item {
        let Which { run, place } = *reply.request();
        assert_eq!(*reply.value(), (run, place));
        Item(10_u32.pow(place))
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 2>) -> Done {
        Done(items.iter().map(|item| item.0).sum())
    }
}

/// Replies to these requests, one after the other.
async fn reply_to_all(open: Vec<(RunHandle<Pairs>, OpenRequest)>) {
    for (run, request) in open {
        let Which { run: number, place } = *request.downcast_ref().unwrap();
        if number.is_multiple_of(2) {
            run.reply(request.id::<Which>().unwrap(), (number, place)).await.unwrap();
        } else {
            run.reply_json(request.seq(), serde_json::json!([number, place])).await.unwrap();
        }
    }
}

// S5, S33: all requests are open before the first reply, and four tasks reply in random order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_thousand_runs_every_reply_reaches_its_own_request() {
    let engine = Engine::builder().workflow(Pairs).build().unwrap();
    let mut runs = Vec::new();
    for number in 0..1_000 {
        runs.push(engine.start::<Pairs>(Begin(number)).await.unwrap());
    }
    let mut open = Vec::new();
    for run in &runs {
        assert_eq!(run.settled().await, RunStatus::Waiting);
        open.extend(run.requests().await.unwrap().into_iter().map(|request| (run.clone(), request)));
    }
    assert_eq!(open.len(), 2_000);
    let seed = fastrand::u64(..);
    fastrand::Rng::with_seed(seed).shuffle(&mut open);
    let quarters = open.chunks(500).map(|quarter| tokio::spawn(reply_to_all(quarter.to_vec())));
    for replies in quarters.collect::<Vec<_>>() {
        assert!(replies.await.is_ok(), "the order of replies was drawn from {seed}");
    }
    for run in runs {
        assert_eq!(run.outcome().await.unwrap(), Done(11), "the order of replies was drawn from {seed}");
    }
}

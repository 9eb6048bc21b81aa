//! Viewers learn of open requests (S64).

use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use workflow_core::prelude::*;
use workflow_core::{AnyRun, DisplayItem, DisplayStream, RequestEnd};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Close, Done, Item, Part, started};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Heard(u32);

/// A line per item so far, with the ids of children.
fn lines(viewer: &mut DisplayStream) -> Vec<String> {
    std::iter::from_fn(|| viewer.next().now_or_never().flatten()).map(|item| line(&item)).collect()
}

fn line(item: &DisplayItem) -> String {
    match item {
        DisplayItem::Asked { request } => format!("asked {}", request.downcast_ref::<Ask>().unwrap().0),
        DisplayItem::Closed { seq, how } => format!("{seq} {how:?}"),
        DisplayItem::Child { path, item } => format!("{} {}", path.last().unwrap().step, line(item)),
        DisplayItem::Ended { status } => format!("ended {status}"),
        item => match item.event::<Heard>() {
            Some(heard) => format!("heard {}", heard.0),
            None => format!("{item:?}"),
        },
    }
}

/// Replies to the oldest request.
async fn reply(run: &AnyRun, with: u32) {
    let request = run.requests().await.unwrap()[0].seq();
    run.reply_json(request, with.into()).await.unwrap();
    run.settled().await;
}

/// Asks several times, shows each reply, and ends when it is told to.
struct Asks;

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, begin: &Begin) -> Vec<Ask> {
        (1..=begin.0).map(Ask).collect()
    }

    #[step]
    async fn hear(&self, answer: &Reply<Ask>, display: &Display) {
        display.show(Heard(*answer.value()));
    }

    #[step]
    async fn end(&self, _close: &Close, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

// S64
#[tokio::test]
async fn the_first_viewer_receives_the_open_requests_and_everyone_how_they_are_closed() {
    let run = started(Asks, 4).await;
    run.settled().await;
    reply(run.any(), 7).await;
    let mut first = run.display();
    run.settled().await;
    assert_eq!(run.requests().await.unwrap().len(), 3);
    assert_eq!(lines(&mut first), ["heard 7", "asked 2", "asked 3", "asked 4"]);
    let position = first.position().unwrap();
    reply(run.any(), 8).await;
    // Before what follows from the reply.
    assert_eq!(lines(&mut first), ["#3 Replied", "heard 8"]);
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(lines(&mut first), ["#4 Dropped", "#5 Dropped", "ended completed"]);
    let all = ["#3 Replied", "heard 8", "#4 Dropped", "#5 Dropped", "ended completed"];
    assert_eq!(lines(&mut run.display_after(position)), all);
    assert_eq!(lines(&mut run.display())[1..], [&["asked 2", "asked 3", "asked 4"][..], &all].concat());
}

// S64
#[tokio::test]
async fn a_cancel_closes_the_open_requests_before_the_end() {
    let run = started(Asks, 1).await;
    let mut viewer = run.display();
    run.settled().await;
    assert_eq!(lines(&mut viewer), ["asked 1"]);
    run.cancel("enough").await.unwrap();
    assert_eq!(lines(&mut viewer), ["#2 Dropped", "ended cancelled"]);
}

// S64
#[tokio::test]
async fn a_run_that_was_viewed_tells_also_while_nobody_views_it() {
    let run = started(Asks, 2).await;
    drop(run.display());
    run.settled().await;
    reply(run.any(), 7).await;
    assert_eq!(lines(&mut run.display()), ["asked 1", "asked 2", "#2 Replied", "heard 7"]);
}

/// Expires after an hour.
struct Expires;

#[workflow]
impl Expires {
    #[step]
    async fn ask(&self, begin: &Begin) -> Expiring<Ask> {
        Ask(begin.0).expires_in(Duration::from_hours(1))
    }

    #[step]
    async fn answered(&self, answer: &Reply<Ask>) -> Done {
        Done(*answer.value())
    }

    #[step]
    async fn unanswered(&self, _asked: &Expired<Ask>) -> Done {
        Done(0)
    }
}

// S32, S64
#[tokio::test(start_paused = true)]
async fn a_request_that_expires_says_when_and_is_closed_as_expired() {
    for viewed_late in [false, true] {
        let engine = Engine::builder().workflow(Expires).clock(VirtualClock::new()).build().unwrap();
        let run = engine.start::<Expires>(Begin(7)).await.unwrap();
        if viewed_late {
            run.settled().await;
        }
        let mut viewer = run.display();
        run.settled().await;
        let item = viewer.next().await.unwrap();
        let DisplayItem::Asked { request } = &item else { panic!("{item:?}") };
        assert_eq!(request.expires_at(), Some(request.asked_at() + Duration::from_hours(1)));
        run.outcome().await.unwrap();
        let DisplayItem::Closed { seq, how } = viewer.next().await.unwrap() else { panic!() };
        assert_eq!((seq, how), (request.seq(), RequestEnd::Expired));
        assert_eq!(lines(&mut viewer), ["ended completed"]);
    }
}

/// Asks in each branch, and goes on with the first that is replied to.
struct Races;

#[workflow]
impl Races {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect::<FanOut<_>>().until(1)
    }

    #[step]
    async fn ask(&self, item: &Item) -> Ask {
        Ask(item.0)
    }

    #[step]
    async fn take(&self, answer: &Reply<Ask>) -> Part {
        Part(*answer.value())
    }

    #[step]
    async fn end(&self, first: &Gather<Part>, _close: &Close) -> Done {
        Done(first.ok().map(|part| part.0).sum())
    }
}

// S49, S64
#[tokio::test]
async fn a_dropped_branch_closes_its_requests() {
    let run = started(Races, 3).await;
    let mut viewer = run.display();
    run.settled().await;
    let asked = lines(&mut viewer);
    assert_eq!(asked.len(), 3, "{asked:?}");
    reply(run.any(), 7).await;
    let closed = lines(&mut viewer);
    let of = |how: &str| closed.iter().filter(|line| line.ends_with(how)).count();
    assert_eq!((of("Replied"), of("Dropped")), (1, 2), "{closed:?}");
}

/// Runs children, to a depth.
struct Nests;

#[workflow]
impl Nests {
    #[step]
    async fn inner(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        if begin.0 > 1 {
            Ok(children.run::<Nests>(Begin(begin.0 - 1)).await?)
        } else {
            Ok(children.run::<Expires>(Begin(7)).await?)
        }
    }
}

// S25, S64
#[tokio::test]
async fn a_viewer_receives_the_open_requests_of_running_children_once_with_their_path() {
    for viewed_late in [false, true] {
        let engine = Engine::builder().workflow(Nests).workflow(Expires).build().unwrap();
        let run = engine.start::<Nests>(Begin(3)).await.unwrap();
        let asker = "r/inner-x1.1/inner-x1.1/inner-x1.1".replacen('r', run.id().as_str(), 1);
        let below = async || engine.attach::<Expires>(asker.as_str()).await.unwrap();
        let early = (!viewed_late).then(|| run.display());
        while engine.running().len() < 4 {
            tokio::task::yield_now().await;
        }
        below().await.settled().await;
        let mut viewer = early.unwrap_or_else(|| run.display());
        // One that views the child alone changes nothing for the others.
        let mut of_child = below().await.display();
        let item = viewer.next().await.unwrap();
        let DisplayItem::Child { path, item } = &item else { panic!("{item:?}") };
        assert_eq!((path.len(), path[2].run.as_str(), line(item)), (3, &*asker, "asked 7".to_owned()));
        assert_eq!(lines(&mut viewer), [] as [String; 0]);
        reply(below().await.any(), 5).await;
        assert_eq!(run.outcome().await.unwrap(), Done(5));
        assert_eq!(lines(&mut viewer), ["inner #2 Replied", "ended completed"]);
        assert_eq!(lines(&mut of_child), ["asked 7", "#2 Replied", "ended completed"]);
    }
}

// S31, S64
#[tokio::test]
async fn a_cancel_closes_the_requests_of_children_too() {
    let engine = Engine::builder().workflow(Nests).workflow(Expires).build().unwrap();
    let run = engine.start::<Nests>(Begin(1)).await.unwrap();
    let mut viewer = run.display();
    assert_eq!(line(&viewer.next().await.unwrap()), "inner asked 7");
    run.cancel("enough").await.unwrap();
    assert_eq!(lines(&mut viewer), ["inner #2 Dropped", "ended cancelled"]);
}

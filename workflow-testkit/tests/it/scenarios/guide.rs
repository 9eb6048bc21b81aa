//! The guide's quoted output equals the real output.

use workflow_core::prelude::*;
use workflow_testkit::{Scenario, explore};

use crate::support::panic_of;

const GUIDE: &str = include_str!("../../../../docs/guide/testing.md");

#[track_caller]
fn assert_in_guide(text: &str) {
    assert!(GUIDE.contains(text), "the guide does not have this:\n{text}");
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(start, display)]
struct Opened {
    claims: u32,
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Claim(u32);

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(String);

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress {
    settled: u32,
}

#[derive(Debug, Serialize, Deserialize, Event)]
struct Granted(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Closed;

struct Desk;

#[precondition]
fn is_granted(verdict: &Reply<Claim>) -> bool {
    **verdict
}

#[workflow]
impl Desk {
    #[step]
    async fn ask(&self, opened: &Opened) -> Vec<Claim> {
        (1..=opened.claims).map(Claim).collect()
    }

    #[step(precondition = is_granted)]
    async fn settle(&self, verdict: &Reply<Claim>, display: &Display) -> Granted {
        display.show(Progress { settled: 1 });
        Granted(verdict.request().0)
    }

    #[step]
    async fn log(&self, _: &Reply<Claim>) {}

    #[step]
    async fn close(&self, granted: &FixedList<Granted, 2>, _: &Note) -> Option<Closed> {
        (granted.len() == 2).then_some(Closed)
    }
}

#[tokio::test]
async fn the_transcript_in_the_guide_is_one() {
    let mut run = Scenario::new(Desk).start(Opened { claims: 2 }).await;
    let claim = run.requests()[1].id::<Claim>().unwrap();
    run.reply(claim, true).await.unwrap();
    run.settled().await;
    assert_in_guide(&run.transcript());
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Ordered;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Priced(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Gift(u64);

mod shop {
    use super::{Deserialize, Event, Serialize};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    #[event(stop)]
    pub(super) struct Closed(pub(super) u64);
}

struct ClosesEarly;

#[workflow]
impl ClosesEarly {
    #[step]
    async fn wrap(&self, _: &Ordered) -> Gift {
        Gift(1)
    }

    #[step]
    async fn price(&self, _: &Ordered) -> Priced {
        Priced(70)
    }

    #[step(reruns)]
    async fn close(&self, priced: &Priced, gift: Option<&Gift>) -> shop::Closed {
        shop::Closed(priced.0 + gift.map_or(0, |gift| gift.0))
    }
}

#[test]
fn the_failure_in_the_guide_is_one() {
    let scenario = || Scenario::new(ClosesEarly).start(Ordered);
    let failure = panic_of(|| explore(scenario).assert(|run| run.outcome().unwrap() == &shop::Closed(71)));
    assert_in_guide(&failure);
}

#[tokio::test]
async fn the_refusal_in_the_guide_is_one() {
    let refusal = panic_of(|| drop(Scenario::new(ClosesEarly).replace("price", |_: &Ordered| ())));
    assert_in_guide(&refusal);
}

#[test]
fn the_outcomes_in_the_guide_are_those_there_are() {
    let explored = explore(|| Scenario::new(ClosesEarly).start(Ordered)).survey();
    let outcomes = explored.outcomes().map(|outcome| {
        let order = explored.order_of(outcome).expect("the order of an outcome it has");
        format!("{outcome}, as with .replay(\"{order}\")")
    });
    let lines: Vec<String> = [explored.to_string()].into_iter().chain(outcomes).collect();
    assert_in_guide(&lines.join("\n"));
}

//! Fan-outs of which some branches are enough or may fail, the order in which branches settled, and branches that wait beside a
//! bound, survive crashes (S50, S59, S74).

use std::time::Duration;

use workflow_core::StepFailed;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item, Note, Part, survive};

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds))
}

/// A race: the first item fails, the others answer one after the other.
struct Race;

#[workflow]
impl Race {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().until(2)
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        tokio::time::sleep(seconds(item.0)).await;
        if item.0 == 0 { Err(StepError::permanent("none")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        assert_eq!((parts.ok().count(), parts.failed().count()), (2, 1));
        Done(
            100 * u32::try_from(parts.dropped().count()).unwrap()
                + parts.ok().map(|part| part.0).sum::<u32>(),
        )
    }
}

/// A race in which too few are left: the policy decides.
struct Lost;

#[workflow]
impl Lost {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().until(2)
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        tokio::time::sleep(seconds(item.0)).await;
        if item.0 == 1 { Ok(Part(item.0)) } else { Err(StepError::permanent("none")) }
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Late(u32);

/// Each branch makes a request that expires, sets a timer, and works on what comes first, one branch at a time.
struct Bounded;

#[workflow]
impl Bounded {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1).continue_others()
    }

    #[step]
    async fn ask(&self, item: &Item) -> (Option<Expiring<Ask>>, Option<Timer<Late>>) {
        tokio::time::sleep(seconds(1)).await;
        let asks = item.0.is_multiple_of(2).then(|| Ask(item.0).expires_in(seconds(20)));
        (asks, (item.0 % 2 == 1).then(|| Timer::after(seconds(3), Late(item.0))))
    }

    #[step]
    async fn take(&self, reply: &Reply<Ask>) -> Part {
        tokio::time::sleep(seconds(2)).await;
        Part(**reply)
    }

    #[step]
    async fn expired(&self, expired: &Expired<Ask>) -> Result<Part, StepError> {
        Err(StepError::permanent(format!("nobody answered {}", expired.request().0)))
    }

    #[step]
    async fn late(&self, late: &Late) -> Part {
        Part(late.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// Bounded branches, each with a race between a request and a timer that is dropped.
struct Nested;

#[workflow]
impl Nested {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect::<FanOut<_>>().concurrency(1)
    }

    #[step]
    async fn race(&self, outer: &Outer) -> FanOut<Item> {
        [Item(2 * outer.0), Item(2 * outer.0 + 1)].into_iter().collect::<FanOut<_>>().until(1)
    }

    #[step]
    async fn ask(&self, item: &Item) -> (Option<Ask>, Option<Timer<Late>>) {
        let is_even = item.0.is_multiple_of(2);
        (is_even.then_some(Ask(item.0)), (!is_even).then(|| Timer::after(seconds(1_000), Late(item.0))))
    }

    #[step]
    async fn take(&self, reply: &Reply<Ask>) -> Part {
        Part(**reply)
    }

    #[step]
    async fn late(&self, late: &Late) -> Part {
        Part(late.0)
    }

    #[step]
    async fn join(&self, outer: &Outer, parts: &Gather<Part>) -> Joined {
        assert_eq!((parts.ok().count(), parts.dropped().count()), (1, 1));
        Joined(outer.0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        Done(joined.ok().map(|joined| joined.0).sum())
    }
}

/// Waiting branches that open beside a bound of one each see the notes that are there by then. The last one is dropped.
struct Sees;

#[workflow]
impl Sees {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1).until(2)
    }

    #[step]
    async fn ask(&self, item: &Item) -> (Option<Ask>, Option<Timer<Late>>) {
        tokio::time::sleep(seconds(1)).await;
        let asks = item.0 < 2;
        (asks.then_some(Ask(item.0)), (!asks).then(|| Timer::after(seconds(1_000), Late(item.0))))
    }

    #[step]
    async fn late(&self, late: &Late) -> Part {
        Part(late.0)
    }

    #[step]
    async fn note(&self, item: &Item, note: &Note) -> Part {
        Part(10 * item.0 + note.0)
    }

    #[step]
    async fn take(&self, reply: &Reply<Ask>) -> Part {
        Part(**reply)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

/// The order in which branches settle is that of the journal (S59).
struct Ranked;

#[workflow]
impl Ranked {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().until(3)
    }

    /// The journal has when timers are due, so a crash does not change their order.
    #[step]
    async fn work(&self, item: &Item) -> Timer<Late> {
        Timer::after(seconds(100 * ((2 * item.0 + 1) % 5 + 1)), Late(item.0))
    }

    #[step]
    async fn late(&self, late: &Late) -> Part {
        Part(late.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part, Item>) -> Done {
        Done(parts.branches().fold(0, |places, branch| 10 * places + branch.settled()))
    }
}

/// A fan-out whose failure is caught in a branch of another one (S60).
struct Caught;

#[workflow]
impl Caught {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Outer> {
        (1..=begin.0).map(Outer).collect()
    }

    #[step]
    async fn split(&self, outer: &Outer) -> FanOut<Item> {
        (0..=outer.0).map(Item).collect::<FanOut<_>>().wait_all()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        tokio::time::sleep(seconds(item.0)).await;
        if item.0 == 2 { Err(StepError::tool("none")) } else { Ok(Part(item.0)) }
    }

    #[step(catches = [split])]
    async fn instead(&self, outer: &Outer, failed: &StepFailed) -> Joined {
        assert_eq!(&*failed.error, "step `work` failed: none");
        Joined(100 * outer.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part, Item>) -> Joined {
        Joined(parts.ok().map(|part| part.0).sum())
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined, Outer>) -> Done {
        Done(joined.ok().map(|joined| joined.0).sum())
    }
}

/// Some rows fail, and as many are tolerated. The order of failures is that of the journal.
struct Tolerant {
    tolerated: u32,
    waits: bool,
}

#[workflow]
impl Tolerant {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        let items = (0..begin.0).map(Item).collect::<FanOut<_>>().tolerate(self.tolerated).concurrency(3);
        if self.waits { items.wait_all() } else { items }
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        tokio::time::sleep(seconds(item.0)).await;
        if item.0 < 2 { Err(StepError::permanent("bad row")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(10 * parts.failed().count() + parts.ok().count()).unwrap())
    }
}

/// A fan-out with a share of failures, in the branches of one that tolerates a failed branch.
struct TolerantBranches;

#[workflow]
impl TolerantBranches {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (1..=begin.0).map(Outer).collect::<FanOut<_>>().tolerate(1)
    }

    #[step]
    async fn rows(&self, outer: &Outer) -> FanOut<Item> {
        (0..2 * outer.0).map(Item).collect::<FanOut<_>>().tolerate_percent(50.0)
    }

    #[step]
    async fn work(&self, outer: &Outer, item: &Item) -> Result<Part, StepError> {
        tokio::time::sleep(seconds(item.0)).await;
        let fails = if outer.0 == 2 { item.0 > 0 } else { item.0 == 0 };
        if fails { Err(StepError::permanent("bad row")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Joined {
        Joined(u32::try_from(parts.failed().count()).unwrap())
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        assert_eq!((joined.ok().count(), joined.failed().count()), (2, 1));
        Done(joined.ok().map(|joined| joined.0).sum())
    }
}

// S74
survive! {
    tolerated_failures: Scenario::new(Tolerant { tolerated: 2, waits: false }), 5;
    more_failures_than_are_tolerated: Scenario::new(Tolerant { tolerated: 1, waits: false }), 5;
    tolerated_failures_of_all: Scenario::new(Tolerant { tolerated: 2, waits: true }), 4;
    more_failures_than_are_tolerated_of_all: Scenario::new(Tolerant { tolerated: 1, waits: true }), 4;
    tolerated_failures_in_branches: Scenario::new(TolerantBranches), 3;
}

survive! {
    a_ranking: Scenario::new(Ranked), 5;
    a_caught_fan_out: Scenario::new(Caught), 3;
    a_race: Scenario::new(Race), 5;
    a_lost_race: Scenario::new(Lost), 3;
    bounded_branches_that_wait: Scenario::new(Bounded).reply_after(Duration::from_secs(5), |ask: &Ask| ask.0), 4;
    bounded_branches_that_expire: Scenario::new(Bounded), 3;
    races_in_bounded_branches: Scenario::new(Nested).reply_after(Duration::from_secs(2), |ask: &Ask| ask.0), 2;
    waiting_branches_and_outside_events: Scenario::new(Sees)
        .send_after(Duration::from_millis(1_500), Note(1))
        .reply_after(Duration::from_secs(9), |ask: &Ask| ask.0), 3;
}

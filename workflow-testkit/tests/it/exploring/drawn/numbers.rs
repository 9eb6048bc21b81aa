//! Shapes in which a step sees the number of its execution and the positions of its events, among steps that see
//! neither.

use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use super::shapes::Go;
use super::{compare_all, maybe, roll, sums};

const SEEDS: u64 = 8;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct A(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct B(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct C(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Hint(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
struct Seen(String);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

/// Everything in a `RunInfo`.
fn seen(info: &RunInfo) -> String {
    format!("{} {} {:?} {}", info.execution(), info.attempt(), info.scope(), info.idempotency_key())
}

struct Flat(u64);

#[workflow]
impl Flat {
    #[step]
    async fn one(&self, _: &Go) -> Option<A> {
        maybe(self.0, "one", 0, A(1))
    }

    #[step]
    async fn two(&self, _: &Go) -> Option<B> {
        maybe(self.0, "two", 0, B(2))
    }

    #[step]
    async fn three(&self, _: &Go) -> Option<C> {
        maybe(self.0, "three", 0, C(3))
    }

    #[step]
    async fn apart(&self, b: &B) -> Option<Hint> {
        (roll(self.0, "apart", b.0, 2) == 0).then_some(Hint(b.0))
    }

    #[step]
    async fn quiet(&self, _: &C) {}

    #[step(reruns)]
    async fn look(&self, a: &A, hint: Option<&Hint>, info: RunInfo) -> Seen {
        let _ = (a, hint);
        Seen(seen(&info))
    }

    #[step]
    async fn end(&self, seen: &Seen) -> Option<Done> {
        (roll(self.0, &seen.0, 0, 3) == 0).then_some(Done(7))
    }
}

#[test]
fn numbers_that_a_step_sees_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| Scenario::new(Flat(seed)));
}

/// The step that sees its number has a concurrency of one, so an execution begins when another ends.
struct Queued(u64);

#[workflow]
impl Queued {
    #[step]
    async fn some(&self, _: &Go) -> Vec<A> {
        (0..=roll(self.0, "some", 0, 2)).map(A).collect()
    }

    #[step]
    async fn other(&self, _: &Go) -> Option<B> {
        maybe(self.0, "other", 0, B(2))
    }

    #[step(concurrency = 1)]
    async fn look(&self, a: &A, info: RunInfo) -> Option<Seen> {
        maybe(self.0, "look", a.0, Seen(seen(&info)))
    }

    #[step]
    async fn on(&self, b: &B) -> Option<C> {
        maybe(self.0, "on", b.0, C(b.0))
    }

    #[step]
    async fn quiet(&self, _: &C) {}

    #[step]
    async fn end(&self, seen: &Seen) -> Option<Done> {
        (roll(self.0, &seen.0, 0, 4) == 0).then_some(Done(7))
    }
}

#[test]
fn numbers_of_executions_that_wait_for_others_are_explored_as_by_trying_everything() {
    let [reduced, every] = sums(SEEDS, |seed| Scenario::new(Queued(seed)));
    assert!(reduced < every, "{reduced} of {every}");
}

/// One fan-out with a gathering step that sees its number, and another with such a step in its branches.
struct Branched(u64);

#[workflow]
impl Branched {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<A> {
        (0..roll(self.0, "split", 0, 3)).map(A).collect()
    }

    #[step]
    async fn beside(&self, _: &Go) -> Option<C> {
        maybe(self.0, "beside", 0, C(1))
    }

    #[step]
    async fn work(&self, a: &A) -> Option<B> {
        maybe(self.0, "work", a.0, B(a.0))
    }

    #[step]
    async fn look(&self, b: &B, info: RunInfo) -> Option<Hint> {
        (roll(self.0, "in branches", 0, 2) == 0).then(|| Hint(b.0 + roll(0, &seen(&info), 0, 1_000)))
    }

    #[step]
    async fn close(&self, hints: &Gather<Hint>, info: RunInfo) -> Seen {
        let sum: u64 = hints.ok().map(|hint| hint.0).sum();
        Seen(format!("{} {sum}", seen(&info)))
    }

    #[step]
    async fn quiet(&self, _: &C) {}

    #[step]
    async fn end(&self, seen: &Seen) -> Option<Done> {
        (roll(self.0, &seen.0, 0, 4) == 0).then_some(Done(7))
    }
}

#[test]
fn numbers_that_are_seen_in_and_behind_branches_are_explored_as_by_trying_everything() {
    let [reduced, every] = sums(SEEDS, |seed| Scenario::new(Branched(seed)));
    assert!(reduced < every, "{reduced} of {every}");
}

/// Four steps, one of which has a key for a service, each with one after it.
struct Keyed;

#[workflow]
impl Keyed {
    #[step]
    async fn one(&self, _: &Go) -> A {
        A(1)
    }

    #[step]
    async fn two(&self, _: &Go) -> B {
        B(2)
    }

    #[step]
    async fn three(&self, _: &Go) -> C {
        C(3)
    }

    #[step]
    async fn charge(&self, _: &A, info: RunInfo) -> Seen {
        Seen(info.idempotency_key())
    }

    #[step]
    async fn left(&self, _: &B) {}

    #[step]
    async fn right(&self, _: &C) {}

    #[step]
    async fn end(&self, seen: &Seen) -> Option<Done> {
        seen.0.is_empty().then_some(Done(0))
    }
}

#[test]
fn a_run_info_prevents_swaps_of_its_own_events_only() {
    let [reduced, every] = super::compare(0, || Scenario::new(Keyed).start(Go));
    // The input of `charge` comes before, between or after the outputs of the two others: as many cases as subsets of
    // the two, not one for every order of six completions.
    assert!(reduced <= 8, "{reduced} of {every}");
    assert!(every >= 90, "{reduced} of {every}");
}

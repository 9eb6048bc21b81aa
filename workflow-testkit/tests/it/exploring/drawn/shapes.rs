//! Shapes without branches: most are explored with 25 seeds.

use workflow_core::StepError;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use super::{compare_all, maybe, roll};

const SEEDS: u64 = 10;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(start)]
pub(super) struct Go;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct A(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct B(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Hint(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u64)]
struct Ask(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

struct Joining(u64);

#[workflow]
impl Joining {
    #[step]
    async fn one(&self, _: &Go) -> Option<A> {
        maybe(self.0, "one", 0, A(1))
    }

    #[step]
    async fn two(&self, _: &Go) -> Option<A> {
        maybe(self.0, "two", 0, A(2))
    }

    #[step]
    async fn three(&self, _: &Go) -> Option<B> {
        maybe(self.0, "three", 0, B(3))
    }

    #[step]
    async fn apart(&self, b: &B) -> Option<Hint> {
        maybe(self.0, "apart", b.0, Hint(b.0))
    }

    #[step]
    async fn join(&self, a: &A, b: &B) -> Option<Done> {
        maybe(self.0, "join", a.0 * b.0, Done(a.0 * b.0))
    }

    #[step]
    async fn hear(&self, hint: &Hint) -> Option<Done> {
        (roll(self.0, "hear", hint.0, 4) == 0).then_some(Done(hint.0))
    }
}

#[test]
fn joins_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| Scenario::new(Joining(seed)));
}

struct Listing(u64);

#[workflow]
impl Listing {
    #[step]
    async fn one(&self, _: &Go) -> Vec<A> {
        (0..roll(self.0, "one", 0, 3)).map(A).collect()
    }

    #[step]
    async fn two(&self, _: &Go) -> Option<A> {
        maybe(self.0, "two", 0, A(2))
    }

    #[step]
    async fn three(&self, _: &Go) -> Option<B> {
        maybe(self.0, "three", 0, B(3))
    }

    #[step(reruns)]
    async fn list(&self, all: &List<A>) -> Option<Done> {
        let sum = all.iter().fold(0, |sum, a| sum * 3 + a.0);
        (roll(self.0, "list", sum, 3) == 0).then_some(Done(sum))
    }

    #[step]
    async fn first(&self, firsts: &FixedList<A, 2>, b: &B) -> Option<Done> {
        let [one, other] = firsts.to_array();
        (roll(self.0, "first", one.0 + b.0, 2) == 0).then_some(Done(one.0 * 10 + other.0))
    }
}

#[test]
fn lists_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| Scenario::new(Listing(seed)));
}

struct Optional(u64);

#[workflow]
impl Optional {
    #[step]
    async fn one(&self, _: &Go) -> Option<A> {
        maybe(self.0, "one", 0, A(1))
    }

    #[step]
    async fn two(&self, _: &Go) -> Vec<B> {
        (0..roll(self.0, "two", 0, 3)).map(B).collect()
    }

    #[step]
    async fn quiet(&self, _: &Go) {}

    #[step(reruns)]
    async fn both(&self, b: &B, a: Option<&A>) -> Option<Done> {
        let sum = b.0 + a.map_or(10, |a| a.0);
        (roll(self.0, "both", sum, 2) == 0).then_some(Done(sum))
    }
}

#[test]
fn optional_inputs_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| Scenario::new(Optional(seed)));
}

struct Sharing(u64);

impl Sharing {
    /// Up to two operations on one of two keys each.
    async fn work(&self, who: u64, context: &RunContext) -> Result<u64, StepError> {
        let mut seen = who;
        for turn in 0..roll(self.0, "turns", who, 3) {
            let key = ["x", "y"][usize::try_from(roll(self.0, "key", who * 2 + turn, 2))?];
            match roll(self.0, "operation", who * 2 + turn, 3) {
                0 => seen = seen * 10 + context.get::<u64>(key).await?.unwrap_or(0),
                1 => context.set(key, seen).await?,
                _ => seen = context.update(key, |there: Option<u64>| there.unwrap_or(0) * 3 + who).await?,
            }
        }
        Ok(seen)
    }
}

#[workflow]
impl Sharing {
    #[step]
    async fn one(&self, _: &Go, context: RunContext) -> Result<A, StepError> {
        Ok(A(self.work(1, &context).await?))
    }

    #[step]
    async fn two(&self, _: &Go, context: RunContext) -> Result<B, StepError> {
        Ok(B(self.work(2, &context).await?))
    }

    #[step]
    async fn finish(&self, a: &A, b: &B) -> Done {
        Done(a.0 * 1_000 + b.0)
    }
}

#[test]
fn context_operations_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| Scenario::new(Sharing(seed)));
}

struct Limited(u64);

#[workflow]
impl Limited {
    #[step]
    async fn one(&self, _: &Go) -> Option<A> {
        maybe(self.0, "one", 0, A(1))
    }

    #[step]
    async fn two(&self, _: &Go) -> Option<A> {
        maybe(self.0, "two", 0, A(2))
    }

    #[step(concurrency = 1)]
    async fn work(&self, a: &A) -> Option<B> {
        maybe(self.0, "work", a.0, B(a.0))
    }

    #[step(max_executions = 1)]
    async fn once(&self, b: &B) -> Option<Done> {
        maybe(self.0, "once", b.0, Done(b.0))
    }

    #[step]
    async fn apart(&self, a: &A) -> Option<Hint> {
        (roll(self.0, "apart", a.0, 3) == 0).then_some(Hint(a.0))
    }

    #[step]
    async fn hear(&self, _: &Hint) {}
}

#[test]
fn limits_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| Scenario::new(Limited(seed)));
}

struct Asking(u64);

#[workflow]
impl Asking {
    #[step]
    async fn one(&self, _: &Go) -> Option<Ask> {
        maybe(self.0, "one", 0, Ask(1))
    }

    #[step]
    async fn two(&self, _: &Go) -> Option<A> {
        maybe(self.0, "two", 0, A(2))
    }

    #[step]
    async fn answered(&self, reply: &Reply<Ask>) -> Option<Done> {
        (roll(self.0, "answered", **reply, 2) == 0).then_some(Done(**reply))
    }

    #[step]
    async fn hear(&self, hint: &Hint, a: &A) -> Option<Done> {
        maybe(self.0, "hear", hint.0, Done(hint.0 + a.0))
    }
}

#[test]
fn arrivals_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| {
        let scenario = Scenario::new(Asking(seed)).reply(|ask: &Ask| ask.0 + 40).send(Hint(1));
        match seed % 3 {
            0 => scenario.send(Hint(2)),
            1 => scenario.send_after(std::time::Duration::from_secs(1), Hint(2)),
            _ => scenario,
        }
    });
}

/// Some steps sleep, each for its own time, and an event arrives meanwhile.
struct Sleeping(u64);

impl Sleeping {
    async fn sleep(&self, who: &str, most: u64) {
        let hours = roll(self.0, who, 0, most);
        if hours > 0 {
            tokio::time::sleep(std::time::Duration::from_hours(hours)).await;
        }
    }
}

#[workflow]
impl Sleeping {
    #[step]
    async fn one(&self, _: &Go) -> Option<A> {
        self.sleep("one sleeps", 3).await;
        maybe(self.0, "one", 0, A(1))
    }

    #[step]
    async fn two(&self, _: &Go) -> A {
        self.sleep("two sleeps", 3).await;
        A(2)
    }

    #[step]
    async fn three(&self, _: &Go) -> B {
        if roll(self.0, "three sleeps", 0, 3) == 0 {
            tokio::time::sleep(std::time::Duration::from_hours(100)).await;
        }
        B(3)
    }

    #[step]
    async fn apart(&self, b: &B) -> Option<Done> {
        (roll(self.0, "apart", b.0, 3) == 0).then_some(Done(b.0))
    }

    #[step]
    async fn hear(&self, hint: &Hint) -> Option<Done> {
        (roll(self.0, "hear", 0, 3) == 0).then_some(Done(100 + hint.0))
    }

    #[step]
    async fn first(&self, firsts: &FixedList<A, 2>) -> Option<Done> {
        let [one, other] = firsts.to_array();
        (roll(self.0, "first", one.0, 2) == 0).then_some(Done(one.0 * 100 + other.0 * 10))
    }
}

fn sleeping(seed: u64) -> workflow_testkit::ScenarioOf<Sleeping> {
    let scenario = Scenario::new(Sleeping(seed));
    let hours = roll(seed, "hint", 0, 5);
    if hours == 0 { scenario } else { scenario.send_after(std::time::Duration::from_hours(hours), Hint(1)) }
}

#[test]
fn sleeps_are_explored_as_by_trying_everything() {
    compare_all(10, sleeping);
}

#[test]
fn the_order_that_a_scenario_has_by_itself_is_among_those_explored() {
    for seed in 0..SEEDS {
        let run = futures::executor::block_on(async { sleeping(seed).start(Go).await });
        let status = run.status();
        let completed = (status == workflow_core::RunStatus::Completed).then(|| run.outcome().ok()).flatten();
        let output = completed.map(|done| format!("Done {}", done.0));
        let explored = workflow_testkit::explore(|| sleeping(seed).start(Go)).orders(50_000).survey();
        let mut outcomes = explored.outcomes();
        assert!(
            outcomes.any(|outcome| outcome.status() == status && outcome.output() == output.as_deref()),
            "seed {seed}: {status} with {output:?} is not among what {explored} found"
        );
    }
}

struct Asked(u64);

#[precondition]
fn even(a: &A, b: &B) -> bool {
    (a.0 + b.0).is_multiple_of(2)
}

#[precondition]
async fn first_time(context: RunContext) -> Result<bool, StepError> {
    Ok(context.increment("asked", 1).await? == 1)
}

#[workflow]
impl Asked {
    #[step]
    async fn one(&self, _: &Go) -> Result<A, StepError> {
        if roll(self.0, "fails", 0, 6) == 0 {
            return Err(StepError::permanent("it fails"));
        }
        Ok(A(roll(self.0, "one", 0, 3)))
    }

    #[step]
    async fn two(&self, _: &Go) -> Option<B> {
        maybe(self.0, "two", 0, B(roll(self.0, "b", 0, 3)))
    }

    #[step]
    async fn three(&self, _: &Go) -> Option<A> {
        maybe(self.0, "three", 0, A(roll(self.0, "a", 0, 3)))
    }

    #[step(precondition = even)]
    async fn pair(&self, a: &A, b: &B) -> Option<Done> {
        maybe(self.0, "pair", a.0, Done(a.0 * 10 + b.0))
    }

    #[step(precondition = first_time)]
    async fn guarded(&self, a: &A) {
        let _ = a;
    }
}

#[test]
fn preconditions_and_failures_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| Scenario::new(Asked(seed)));
}

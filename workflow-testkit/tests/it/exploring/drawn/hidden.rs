//! Shapes with operations that show their effects only afterwards: failing preconditions, caught failures, timers, and
//! independent fan-outs.

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{StepError, StepFailed};
use workflow_testkit::Scenario;

use super::shapes::Go;
use super::{compare_all, maybe, roll, sums};

const SEEDS: u64 = 12;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct A(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct B(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct C(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct D(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u64)]
struct Ask(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

struct Refusing(u64);

#[precondition]
fn small(a: &A) -> Result<bool, StepError> {
    match a.0 {
        0 => Ok(true),
        1 => Ok(false),
        _ => Err(StepError::permanent("it is too large")),
    }
}

#[workflow]
impl Refusing {
    #[step]
    async fn one(&self, _: &Go) -> A {
        A(roll(self.0, "one", 0, 4))
    }

    #[step]
    async fn two(&self, _: &Go) -> Option<B> {
        maybe(self.0, "two", 0, B(2))
    }

    #[step]
    async fn three(&self, b: &B) -> Option<C> {
        maybe(self.0, "three", b.0, C(b.0))
    }

    #[step]
    async fn four(&self, _: &C) {}

    #[step(precondition = small)]
    async fn finish(&self, a: &A) -> Option<Done> {
        maybe(self.0, "finish", a.0, Done(a.0))
    }
}

#[test]
fn preconditions_that_fail_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| Scenario::new(Refusing(seed)));
}

#[test]
fn limits_of_a_run_are_explored_as_by_trying_everything() {
    compare_all(SEEDS, |seed| {
        Scenario::new(Refusing(0)).engine(move |engine| match seed % 3 {
            0 => engine.max_executions_per_run(3 + seed / 3),
            1 => engine.max_events_per_run(2 + seed / 3),
            _ => engine.max_executions_per_run(4).max_events_per_run(2 + seed / 3),
        })
    });
}

struct Catching(u64);

#[workflow]
impl Catching {
    #[step]
    async fn one(&self, _: &Go) -> Result<A, StepError> {
        self.fail("one", 0, 2)?;
        Ok(A(1))
    }

    #[step]
    async fn two(&self, _: &Go) -> Result<Option<A>, StepError> {
        self.fail("two", 0, 2)?;
        Ok(maybe(self.0, "two", 0, A(2)))
    }

    #[step]
    async fn three(&self, a: &A) -> Result<B, StepError> {
        self.fail("three", a.0, 3)?;
        Ok(B(a.0))
    }

    #[step]
    async fn apart(&self, _: &B) {}

    #[step(catches = [one, two, three])]
    async fn catch(&self, failed: &StepFailed) -> Option<Done> {
        let number = failed.execution.0;
        (roll(self.0, "catch", number, 3) == 0).then_some(Done(number))
    }
}

impl Catching {
    fn fail(&self, who: &str, input: u64, sides: u64) -> Result<(), StepError> {
        if roll(self.0, who, input + 7, sides) == 0 {
            return Err(StepError::permanent(who.to_owned()));
        }
        Ok(())
    }
}

#[test]
fn failures_that_are_caught_are_explored_as_by_trying_everything() {
    let [reduced, every] = sums(SEEDS, |seed| Scenario::new(Catching(seed)));
    assert!(reduced <= every, "{reduced} of {every}");
}

struct Timing(u64);

#[workflow]
impl Timing {
    #[step]
    async fn remind(&self, _: &Go) -> Timer<A> {
        Timer::after(Duration::from_secs(1 + roll(self.0, "remind", 0, 3)), A(1))
    }

    #[step]
    async fn ask(&self, _: &Go) -> Expiring<Ask> {
        Ask(1).expires_in(Duration::from_secs(1 + roll(self.0, "ask", 0, 3)))
    }

    #[step]
    async fn answered(&self, reply: &Reply<Ask>) -> Option<B> {
        maybe(self.0, "answered", 0, B(**reply))
    }

    #[step]
    async fn unanswered(&self, asked: &Expired<Ask>) -> Option<B> {
        maybe(self.0, "unanswered", 0, B(asked.request().0))
    }

    #[step]
    async fn finish(&self, a: &A, b: &B) -> Done {
        Done(a.0 * 10 + b.0)
    }

    #[step]
    async fn hurry(&self, a: &A) -> Option<Done> {
        (roll(self.0, "hurry", 0, 3) == 0).then_some(Done(a.0))
    }
}

#[test]
fn timers_and_requests_that_expire_are_explored_as_by_trying_everything() {
    let [reduced, every] = sums(SEEDS, |seed| {
        let scenario = Scenario::new(Timing(seed));
        if seed % 3 == 0 { scenario } else { scenario.reply(|ask: &Ask| ask.0 + 40) }
    });
    assert!(reduced <= every, "{reduced} of {every}");
}

struct Parting(u64);

#[workflow]
impl Parting {
    #[step]
    async fn one(&self, _: &Go) -> FanOut<A> {
        (0..=roll(self.0, "as", 0, 2)).map(A).collect()
    }

    #[step]
    async fn two(&self, _: &Go) -> FanOut<B> {
        (0..=roll(self.0, "bs", 0, 1)).map(B).collect()
    }

    #[step]
    async fn a(&self, a: &A) -> Option<C> {
        maybe(self.0, "a", a.0, C(a.0))
    }

    #[step]
    async fn b(&self, b: &B) -> Option<D> {
        maybe(self.0, "b", b.0, D(b.0))
    }

    #[step]
    async fn sum(&self, gathered: &Gather<C>) -> Option<Done> {
        let sum = gathered.branches().map(|branch| u64::from(branch.scope().0)).sum();
        maybe(self.0, "sum", sum, Done(sum))
    }

    #[step]
    async fn count(&self, gathered: &Gather<D>) -> Option<Done> {
        (roll(self.0, "count", 0, 3) == 0).then_some(Done(100 + gathered.ok().count() as u64))
    }
}

#[test]
fn fan_outs_side_by_side_are_explored_as_by_trying_everything() {
    let [reduced, every] = sums(SEEDS, |seed| Scenario::new(Parting(seed)));
    assert!(reduced <= every, "{reduced} of {every}");
}

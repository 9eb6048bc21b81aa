//! Operations that show only afterwards what they touch: a failing precondition, a reached limit, or a refused commit.

use std::collections::HashSet;

use workflow_core::prelude::*;
use workflow_testkit::{Outcome, Scenario, ScenarioOf, Start, explore};

use crate::exploring::orders::{Bid, Bought, Go, Note, Stock};

/// The findings of every order, equal to the reduced ones.
fn found<W: Workflow>(scenario: impl Fn() -> Start<W>) -> HashSet<Outcome> {
    let reduced = explore(&scenario).survey();
    let every = explore(&scenario).every_order().survey();
    let of = |explored: &workflow_testkit::Explored| {
        assert!(explored.is_exhaustive(), "{explored}");
        explored.outcomes().cloned().collect::<HashSet<_>>()
    };
    assert_eq!(of(&reduced), of(&every), "{reduced}, and {every}");
    of(&every)
}

/// No step can afford the price, which ends the run.
struct Pricing;

#[precondition]
fn cheap(_: &Bid) -> Result<bool, StepError> {
    Err(StepError::permanent("there is no price list"))
}

#[precondition]
fn fair(_: &Bid) -> bool {
    panic!("nothing is fair")
}

#[workflow]
impl Pricing {
    #[step]
    async fn price(&self, _: &Go) -> Bid {
        Bid(1)
    }

    #[step]
    async fn wrap(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn charge(&self, note: &Note) -> Stock {
        Stock(note.0)
    }

    #[step]
    async fn store(&self, _: &Stock) {}

    #[step(precondition = cheap)]
    async fn finish(&self, _: &Bid) -> Bought {
        Bought(1)
    }
}

#[test]
fn what_comes_before_a_precondition_fails_is_tried() {
    assert_eq!(found(|| Scenario::new(Pricing).start(Go)).len(), 4);
}

struct Fairness;

#[workflow]
impl Fairness {
    #[step]
    async fn price(&self, _: &Go) -> Bid {
        Bid(1)
    }

    #[step]
    async fn wrap(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn read(&self, _: &Note) {}

    #[step(precondition = fair)]
    async fn finish(&self, _: &Bid) -> Bought {
        Bought(1)
    }
}

#[test]
fn what_comes_before_a_precondition_panics_is_tried() {
    assert_eq!(found(|| Scenario::new(Fairness).start(Go)).len(), 3);
}

/// Three steps whose order is invisible.
struct Apart;

#[workflow]
impl Apart {
    #[step]
    async fn bid(&self, _: &Go) -> Bid {
        Bid(1_234_567)
    }

    #[step]
    async fn stock(&self, _: &Go) -> Stock {
        Stock(2)
    }

    #[step]
    async fn note(&self, _: &Go) -> Note {
        Note(3)
    }

    #[step]
    async fn weigh(&self, _: &Bid) {}

    #[step]
    async fn count(&self, _: &Stock) {}

    #[step]
    async fn read(&self, note: &Note) -> Option<Bought> {
        (note.0 > 3).then_some(Bought(0))
    }
}

fn apart() -> ScenarioOf<Apart> {
    Scenario::new(Apart)
}

#[test]
fn every_choice_of_executions_before_the_limit_is_tried() {
    assert!(found(|| apart().engine(|engine| engine.max_executions_per_run(4)).start(Go)).len() > 1);
    assert!(found(|| apart().engine(|engine| engine.max_executions_per_run(5)).start(Go)).len() > 1);
    assert_eq!(found(|| apart().start(Go)).len(), 1);
}

#[test]
fn what_is_in_the_log_before_the_limit_of_events_is_tried() {
    assert!(found(|| apart().engine(|engine| engine.max_events_per_run(2)).start(Go)).len() > 1);
    assert!(found(|| apart().engine(|engine| engine.max_events_per_run(3)).start(Go)).len() > 1);
}

#[test]
fn what_comes_before_an_event_that_is_too_large_is_tried() {
    assert!(found(|| apart().engine(|engine| engine.max_event_bytes(5)).start(Go)).len() > 1);
}

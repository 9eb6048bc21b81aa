//! Observers that rely on more than their guarantees fail a check.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::{ExecutionId, RunId};
use workflow_testkit::conformance::observer::checks;

use super::broken_stores::failure;

/// Calls a function with every observation and the earlier ones.
struct Noting<F>(Mutex<Vec<Observation>>, F);

fn noting<F: Fn(&[Observation], &Observation) + Send + Sync + 'static>(note: F) -> Noting<F> {
    Noting(Mutex::default(), note)
}

impl<F: Fn(&[Observation], &Observation) + Send + Sync + 'static> Observer for Noting<F> {
    fn observe(&self, observation: &Observation) {
        let mut seen = self.0.lock().unwrap();
        (self.1)(&seen, observation);
        seen.push(observation.clone());
    }
}

#[test]
fn an_observer_that_does_not_expect_displays_is_caught() {
    let picky = noting(|_, now| assert!(!matches!(now.what, Observed::Displayed(_)), "what is that"));
    let text = failure(|| checks::every_kind_of_observation_is_taken(|| picky));
    assert!(text.contains("an observer does not panic") && text.contains("what is that"), "{text}");
}

#[test]
fn an_observer_that_does_not_expect_to_miss_anything_is_caught() {
    let picky = noting(|_, now| assert!(!matches!(now.what, Observed::Missed { .. }), "never"));
    let text = failure(|| checks::every_kind_of_observation_is_taken(|| picky));
    assert!(text.contains("Missed { count: 1 }"), "{text}");
}

#[test]
fn an_observer_of_one_run_at_a_time_is_caught() {
    let alone = noting(|seen: &[Observation], now| {
        let ends = |other: &&Observation| matches!(other.what, Observed::RunEnded { .. });
        let current = seen.last().filter(|last| !ends(last));
        assert!(current.is_none_or(|last| last.run == now.run), "one at a time");
    });
    let text = failure(|| checks::observations_of_several_runs_interleave(|| alone));
    assert!(text.contains("one at a time"), "{text}");
}

/// Measures executions, and requires to have seen their start.
#[derive(Default)]
struct Stopwatch(Mutex<HashMap<(RunId, ExecutionId), SystemTime>>);

impl Observer for Stopwatch {
    fn observe(&self, Observation { run, at, what, .. }: &Observation) {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match what {
            Observed::ExecutionStarted { execution, .. } => {
                started.insert((run.clone(), *execution), *at);
            }
            Observed::ExecutionSucceeded { execution, .. } => {
                started.remove(&(run.clone(), *execution)).expect("it was started");
            }
            _ => {}
        }
    }
}

#[test]
fn an_observer_that_expects_the_beginning_of_what_ends_is_caught() {
    let text = failure(|| checks::any_observation_can_be_missed(Stopwatch::default));
    assert!(text.contains("it was started"), "{text}");
    let text = failure(|| checks::a_run_can_be_seen_from_its_middle_on(Stopwatch::default));
    assert!(text.contains("it was started"), "{text}");
    checks::observations_of_several_runs_interleave(Stopwatch::default);
}

#[test]
fn an_observer_that_needs_a_runtime_is_caught() {
    let sending = noting(|_, _| drop(tokio::spawn(async {})));
    let text = failure(|| checks::every_kind_of_observation_is_taken(|| sending));
    assert!(text.contains("called from a thread of its own, without a runtime"), "{text}");
}

#[test]
fn an_observer_that_never_returns_is_caught() {
    let stuck = noting(|_, _| {
        loop {
            std::thread::park();
        }
    });
    // The call never returns, so any time limit will do.
    let text = failure(|| checks::every_kind_is_taken_within(Duration::from_millis(1), || stuck));
    assert!(text.contains("may block, but not for ever: `observe` of RunStarted"), "{text}");
}

/// Requires to have seen every end.
struct Ledger(Stopwatch);

impl Observer for Ledger {
    fn observe(&self, observation: &Observation) {
        self.0.observe(observation);
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        assert!(self.0.0.lock().unwrap().is_empty(), "something still runs");
    }
}

#[test]
fn an_observer_that_expects_to_see_every_end_is_caught() {
    let open = || Ledger(Stopwatch::default());
    let text = failure(|| checks::an_observer_can_be_dropped_in_the_midst_of_a_run(open));
    assert!(text.contains("dropping the observer did: something still runs"), "{text}");
}

//! The calls that an `Observer` must handle, sentence by sentence. Each check is a function that panics if the observer
//! fails on them; the macro makes a test of each.

use std::iter::once;
use std::time::Duration;

use workflow_core::RunId;
use workflow_core::observe::{Observation, Observed, Observer};

use super::stage::PATIENCE;
use audience::{play, play_within};
use story::told;

mod audience;
mod story;

/// The tests that an [`Observer`](workflow_core::observe::Observer) should pass.
///
/// The macro takes an expression that makes an observer, of type `FnOnce() -> O` where `O: Observer`, and expands to a
/// module `observer` of tests. Each test evaluates the expression once, inside a tokio runtime, in the scope of the
/// calling module. To test several observers in one file, put each into a module of its own.
///
/// An observer receives guarantees and gives few in return, so the suite tests that it copes. An engine catches an
/// observer's panics and continues without a call that never returns, but the observation is lost. So each test calls
/// the observer as an engine does, in order and from one thread without a runtime. The test fails if a call or the
/// observer's drop panics or takes longer than ten seconds. The runs cover every kind of observation, interleave, begin
/// in the middle, and have gaps.
///
/// The suite does not test what the observer makes of the observations: only you know that.
///
/// ```
/// # use workflow_core::observe::TracingObserver;
/// workflow_testkit::observer_conformance!(TracingObserver::new);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! observer_conformance {
    ($open:expr $(,)?) => {
        $crate::__conformance_suite! { observer: $open;
            checks {
                every_kind_of_observation_is_taken
                observations_of_several_runs_interleave
                any_observation_can_be_missed
                a_run_can_be_seen_from_its_middle_on
                an_observer_can_be_dropped_in_the_midst_of_a_run
            }
        }
    };
}

pub mod checks {
    //! The checks, one for each test.

    use super::{
        Duration, Observation, Observer, PATIENCE, interleaved, missed, once, play, play_within, renamed,
        told,
    };

    pub fn every_kind_of_observation_is_taken<O: Observer>(open: impl FnOnce() -> O) {
        every_kind_is_taken_within(PATIENCE, open);
    }

    /// The same with this time limit per call.
    pub fn every_kind_is_taken_within<O: Observer>(patience: Duration, open: impl FnOnce() -> O) {
        let mut all = told();
        let last = all.last().map(|last| missed(last, 1));
        all.extend(last);
        play_within(patience, open, all);
    }

    pub fn observations_of_several_runs_interleave<O: Observer>(open: impl FnOnce() -> O) {
        play(open, interleaved(told()));
    }

    pub fn any_observation_can_be_missed<O: Observer>(open: impl FnOnce() -> O) {
        let all = told();
        let with_gap = |gap: usize| {
            let of_run = all.iter().filter(|other| other.run == all[gap].run);
            let told = of_run.map(|other| {
                let is_gap = std::ptr::eq(other, &raw const all[gap]);
                if is_gap { missed(other, 1) } else { other.clone() }
            });
            renamed(told.collect(), gap)
        };
        play(open, (0..all.len()).flat_map(with_gap).collect());
    }

    pub fn a_run_can_be_seen_from_its_middle_on<O: Observer>(open: impl FnOnce() -> O) {
        let all = told();
        let from = |first: usize| {
            let rest = all[first..].iter().filter(|other| other.run == all[first].run).cloned();
            renamed(once(missed(&all[first], 4_096)).chain(rest).collect(), first)
        };
        play(open, (0..all.len()).flat_map(from).collect::<Vec<Observation>>());
    }

    pub fn an_observer_can_be_dropped_in_the_midst_of_a_run<O: Observer>(open: impl FnOnce() -> O) {
        let mut all = interleaved(told());
        all.truncate(all.len() / 2);
        play(open, all);
    }
}

/// The observation that replaces omitted ones.
fn missed(instead_of: &Observation, count: u64) -> Observation {
    Observation { what: Observed::Missed { count }, ..instead_of.clone() }
}

/// The same observations with other run ids, so that they belong to other runs.
fn renamed(mut observations: Vec<Observation>, number: usize) -> Vec<Observation> {
    for observation in &mut observations {
        observation.run = RunId::new(format!("{}, told for the {number}th time", observation.run));
    }
    observations
}

/// One observation of each run in turn; each run keeps its order.
fn interleaved(observations: Vec<Observation>) -> Vec<Observation> {
    let mut placed: Vec<(usize, Observation)> = Vec::new();
    for observation in observations {
        let turn = placed.iter().filter(|(_, other)| other.run == observation.run).count();
        placed.push((turn, observation));
    }
    placed.sort_by_key(|(turn, _)| *turn);
    placed.into_iter().map(|(_, observation)| observation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_runs_take_turns_and_keep_their_order() {
        let all = told();
        let mixed = interleaved(all.clone());
        let of = |all: &[Observation], run: &RunId| -> Vec<String> {
            all.iter().filter(|other| other.run == *run).map(|other| format!("{:?}", other.what)).collect()
        };
        assert_ne!(mixed[0].run, mixed[1].run);
        for Observation { run, .. } in &all {
            assert_eq!(of(&all, run), of(&mixed, run));
        }
    }
}

//! Explorations with pauses (S61): a run is paused and unpaused at every point.

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::WaitsFor;
use workflow_core::{Pause, RunStatus};
use workflow_testkit::{Explored, Scenario, ScenarioOf, TestRun, explore};

const HOUR: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Half(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(u32);

/// Two halves, of which one is asked for, and a note.
struct Halves;

#[workflow]
impl Halves {
    #[step]
    async fn left(&self, _begin: &Begin) -> Half {
        Half(1)
    }

    #[step(precondition = is_due)]
    async fn right(&self, note: &Note) -> Half {
        Half(note.0)
    }

    #[precondition]
    #[expect(clippy::unused_self, reason = "a precondition has a receiver")]
    fn is_due(&self, note: &Note) -> bool {
        note.0 > 0
    }

    #[step]
    async fn end(&self, halves: FixedList<Half, 2>) -> Done {
        Done(halves.iter().map(|half| half.0).sum())
    }
}

fn paused(how: Pause, unpauses: bool) -> ScenarioOf<Halves> {
    let scenario = Scenario::new(Halves).send_after(Duration::ZERO, Note(2)).pause_after(HOUR, how);
    if unpauses { scenario.unpause_after(2 * HOUR) } else { scenario }
}

/// The run has completed, or is paused and would complete: all other work waits for the end of the pause.
fn is_sound(run: &TestRun<Halves>) -> bool {
    match run.status() {
        RunStatus::Completed => run.outcome().is_ok_and(|done| *done == Done(3)),
        status => {
            let report = run.report();
            let waits = report.waiting.iter().all(|waiting| waiting.waits_for == WaitsFor::Pause);
            status == RunStatus::Paused && report.paused.is_some() && waits
        }
    }
}

fn statuses(explored: &Explored) -> Vec<RunStatus> {
    let mut statuses: Vec<_> = explored.outcomes().map(workflow_testkit::Outcome::status).collect();
    statuses.sort_unstable_by_key(ToString::to_string);
    statuses.dedup();
    statuses
}

// S61
#[test]
fn a_run_that_is_paused_at_every_point_stays_paused_or_has_completed_before() {
    let explored = explore(|| paused(Pause::AfterRunning, false).start(Begin)).assert(is_sound);
    assert!(explored.is_exhaustive(), "{explored}");
    assert_eq!(statuses(&explored), [RunStatus::Completed, RunStatus::Paused]);
}

// S61
#[test]
fn a_run_that_is_paused_and_unpaused_at_every_point_completes_unless_the_pause_comes_last() {
    let explored = explore(|| paused(Pause::AfterRunning, true).start(Begin)).assert(is_sound);
    assert_eq!(statuses(&explored), [RunStatus::Completed, RunStatus::Paused]);
}

// S38, S61
#[test]
fn a_durable_run_that_is_paused_at_every_point_is_sound_too() {
    let scenario = || paused(Pause::AfterRunning, true).start(Begin);
    explore(scenario).durable().orders(150).assert(is_sound);
}
